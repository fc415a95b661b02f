mod cli;
mod deps;
mod layers;
mod schema;
mod spec;
