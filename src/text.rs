//! Text for people and models: cutting it, making hidden characters visible, sizes and times in words.
