use clap::{CommandFactory as _, Parser as _};
use insta::assert_snapshot;

use super::super::args::Args;
use super::*;

fn said(line: &str) -> String {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let typed = std::iter::once("lembas".to_owned()).chain(words.iter().cloned());
    match Args::try_parse_from(typed) {
        Ok(_) => format!("> {line}\nunderstood"),
        Err(error) => {
            let mut command = Args::command();
            command.build();
            let failure = failure(&error, &words, &command);
            assert_eq!(failure.exit, Exit::Usage);
            format!("> {line}\n{}", failure.lines().join("\n"))
        }
    }
}

#[test]
fn every_wrong_use_is_said_in_three_lines() {
    let all = [
        "stauts",
        "frobnicate",
        "up --lisen 127.0.0.1:1",
        "up --listen nowhere",
        "up --listen",
        "up now",
        "link",
        "roots ad ~/x",
        "roots add",
        "mode edit auto",
        "approvals lokal",
        "answer 7f",
        "answer 7f alow",
        "answer 7f allow --session --always",
        "allow",
        "allow --pending many",
        "log -n lots",
        "monitor --timeout 601 -- true",
        "monitor git status",
        "monitor",
        "service",
        "service scheduled onn",
        "hub --tls-cert cert.pem",
        "hub model",
        "hub model add qwen",
        "completions bsh",
        "status --jsn",
    ]
    .map(said)
    .join("\n\n");
    assert_snapshot!(all, @r"
    > stauts
    error: lembas has no command stauts
      try: lembas status

    > frobnicate
    error: lembas has no command frobnicate
      try: lembas --help

    > up --lisen 127.0.0.1:1
    error: lembas up does not know --lisen
      try: lembas up --listen

    > up --listen nowhere
    error: nowhere is not possible for --listen
      why: it must be an address and a port, as 127.0.0.1:8787
      try: lembas up --help

    > up --listen
    error: --listen needs a value
      try: lembas up --help

    > up now
    error: lembas up does not know what to do with now
      try: lembas up --help

    > link
    error: lembas link needs URL
      try: lembas link --help

    > roots ad ~/x
    error: lembas roots has no command ad
      try: lembas roots add

    > roots add
    error: lembas roots add needs FOLDER
      try: lembas roots add --help

    > mode edit auto
    error: lembas mode does not know what to do with auto
      try: lembas mode --help

    > approvals lokal
    error: lokal is not possible for lembas approvals
      why: it can be once, full or local
      try: lembas approvals local

    > answer 7f
    error: lembas answer needs OUTCOME
      try: lembas answer --help

    > answer 7f alow
    error: alow is not possible for lembas answer
      why: it can be allow or refuse
      try: lembas answer 7f allow

    > answer 7f allow --session --always
    error: --session and --always do not go together
      try: lembas answer --help

    > allow
    error: lembas allow needs --pending
      try: lembas allow --help

    > allow --pending many
    error: many is not possible for --pending
      why: it must be a whole number from 1 on
      try: lembas allow --help

    > log -n lots
    error: lots is not possible for --lines
      why: it must be a whole number from 1 on
      try: lembas log --help

    > monitor --timeout 601 -- true
    error: 601 is not possible for --timeout
      why: it must be whole seconds from 1 to 600
      try: lembas monitor --help

    > monitor git status
    error: lembas monitor takes the command behind --
      try: lembas monitor -- git status

    > monitor
    error: lembas monitor needs CMD
      try: lembas monitor --help

    > service
    error: lembas service needs a command: scheduled
      try: lembas service --help

    > service scheduled onn
    error: onn is not possible for lembas service scheduled
      why: it can be on or off
      try: lembas service scheduled on

    > hub --tls-cert cert.pem
    error: lembas hub needs --tls-key
      try: lembas hub --help

    > hub model
    error: lembas hub model needs a command: add, list, remove or test
      try: lembas hub model --help

    > hub model add qwen
    error: lembas hub model add needs --url
      try: lembas hub model add --help

    > completions bsh
    error: bsh is not possible for lembas completions
      why: it can be bash, zsh or fish
      try: lembas completions bash

    > status --jsn
    error: lembas status does not know --jsn
      try: lembas status --json
    ");
}
