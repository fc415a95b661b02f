//! Readers with a language of their own: find, sed, awk, jq, git, tar, less, cd.

use super::reader::{Reads, gated, split};
use crate::shell::Word;

/// What the call reads, or none when it may do more than read.
pub(super) fn check<'a>(check: &str, arguments: &'a [Word], open_ended: bool) -> Option<Reads<'a>> {
    match check {
        "find" => find(arguments),
        "git" => super::git::check(arguments, open_ended),
        "cd" => cd(arguments),
        _ if open_ended => None,
        "sed" => sed(arguments),
        "awk" => awk(arguments),
        "jq" => jq(arguments),
        "tar" => tar(arguments),
        "less" => less(arguments),
        _ => None,
    }
}

fn cd(arguments: &[Word]) -> Option<Reads<'_>> {
    let paths: Vec<_> = arguments.iter().filter(|w| w.text() != "--").collect();
    (paths.len() <= 1).then(|| Reads {
        paths: paths.into_iter().filter(|w| w.text() != "-").collect(),
        enters: true,
        ..Reads::default()
    })
}

/// Tests and actions that only look. Those with a value take the next word.
fn find(arguments: &[Word]) -> Option<Reads<'_>> {
    const VALUE: &[&str] = &[
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-lname",
        "-ilname",
        "-type",
        "-xtype",
        "-size",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-maxdepth",
        "-mindepth",
        "-perm",
        "-user",
        "-group",
        "-uid",
        "-gid",
        "-links",
        "-inum",
        "-printf",
        "-regextype",
        "-used",
        "-fstype",
        "-context",
    ];
    const FILE: &[&str] = &[
        "-newer",
        "-anewer",
        "-cnewer",
        "-samefile",
        "-newermt",
        "-newerct",
    ];
    const BARE: &[&str] = &[
        "-print",
        "-print0",
        "-ls",
        "-prune",
        "-quit",
        "-empty",
        "-readable",
        "-writable",
        "-executable",
        "-true",
        "-false",
        "-not",
        "-and",
        "-or",
        "-a",
        "-o",
        "!",
        "(",
        ")",
        ",",
        "-depth",
        "-d",
        "-mount",
        "-xdev",
        "-follow",
        "-daystart",
        "-noleaf",
        "-nouser",
        "-nogroup",
        "-warn",
        "-nowarn",
        "-ignore_readdir_race",
        "-H",
        "-L",
        "-P",
        "-E",
        "-X",
    ];
    let mut reads = Reads::default();
    let mut rest = arguments;
    let mut expression = false;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let text = word.text();
        if VALUE.contains(&text) {
            expression = true;
            rest = rest.split_first()?.1;
        } else if FILE.contains(&text) {
            expression = true;
            let (file, after) = rest.split_first()?;
            reads.paths.push(file);
            rest = after;
        } else if BARE.contains(&text) {
            expression |= !matches!(text, "-H" | "-L" | "-P");
        } else if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
            // Judged by what it runs, which was found on its own.
            expression = true;
            let end = rest
                .iter()
                .position(|w| w.text() == ";" || w.text() == "+")?;
            rest = rest.get(end + 1..)?;
        } else if text.starts_with('-') || expression || word.may_be_option() {
            return None;
        } else {
            reads.paths.push(word);
        }
    }
    Some(reads)
}

fn sed(arguments: &[Word]) -> Option<Reads<'_>> {
    let mut scripts: Vec<&Word> = Vec::new();
    let mut operands: Vec<&Word> = Vec::new();
    let mut named: Vec<String> = Vec::new();
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        match word.text() {
            "-n" | "-E" | "-r" | "-s" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "-rn" | "--quiet"
            | "--silent" | "--regexp-extended" | "--separate" | "--unbuffered" | "--posix"
            | "--sandbox" | "--debug" => {}
            "-e" | "-ne" | "-Ee" | "-nEe" | "--expression" => {
                let (script, after) = rest.split_first()?;
                scripts.push(script);
                rest = after;
            }
            text if text.starts_with("--expression=") => {
                word.literal()?;
                named.push(text.trim_start_matches("--expression=").to_owned());
            }
            text if text.starts_with('-') && text.len() > 1 || word.may_be_option() => return None,
            _ => operands.push(word),
        }
    }
    if scripts.is_empty() && named.is_empty() {
        if operands.is_empty() {
            return None;
        }
        scripts.push(operands.remove(0));
    }
    for script in &scripts {
        sed_script(script.literal_or_glob()?).then_some(())?;
    }
    named.iter().all(|s| sed_script(s)).then_some(())?;
    Some(Reads {
        paths: operands,
        ..Reads::default()
    })
}

/// Whether a sed script only prints: no `w`, `e`, `r`, and `s` without their flags.
fn sed_script(script: &str) -> bool {
    let mut at = script.chars().peekable();
    loop {
        while at.next_if(|c| c.is_whitespace() || *c == ';').is_some() {}
        let Some(&c) = at.peek() else { return true };
        // Addresses.
        if c.is_ascii_digit() || matches!(c, '$' | '/' | '\\' | ',' | '~' | '+' | '!') {
            at.next();
            let closing = match c {
                '/' => Some('/'),
                '\\' => at.next(),
                _ => None,
            };
            if let Some(closing) = closing {
                if !skip_to(&mut at, closing) {
                    return false;
                }
                while at.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
            }
            continue;
        }
        at.next();
        match c {
            'p' | 'P' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'x' | 'n' | 'N' | 'z' | 'F'
            | '{' | '}' => {}
            'l' | 'q' | 'Q' => while at.next_if(|c| c.is_ascii_digit() || *c == ' ').is_some() {},
            'b' | 't' | 'T' | ':' => {
                while at.next_if(|c| !matches!(c, ';' | '\n' | '}')).is_some() {}
            }
            'a' | 'i' | 'c' => while at.next_if(|c| *c != '\n').is_some() {},
            '#' => while at.next_if(|c| *c != '\n').is_some() {},
            's' | 'y' => {
                let Some(delimiter) = at.next() else {
                    return false;
                };
                if !skip_to(&mut at, delimiter) || !skip_to(&mut at, delimiter) {
                    return false;
                }
                while at
                    .next_if(|c| {
                        c.is_ascii_digit() || matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M')
                    })
                    .is_some()
                {}
                if at
                    .peek()
                    .is_some_and(|c| !matches!(c, ';' | '\n' | '}' | ' '))
                {
                    return false;
                }
            }
            _ => return false,
        }
    }
}

fn skip_to(at: &mut std::iter::Peekable<std::str::Chars<'_>>, closing: char) -> bool {
    let mut class = false;
    while let Some(c) = at.next() {
        match c {
            '\\' => {
                at.next();
            }
            '[' => class = true,
            ']' => class = false,
            '\n' => return false,
            c if c == closing => {
                // Inside of a bracket expression a delimiter may or may not end it, depending on
                // the program: then it is not understood.
                return !class;
            }
            _ => {}
        }
    }
    false
}

fn awk(arguments: &[Word]) -> Option<Reads<'_>> {
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let text = word.text();
        if !text.starts_with('-') || text == "-" {
            break;
        }
        rest = after;
        match text {
            "-F" | "-v" => rest = rest.split_first()?.1,
            "--" => break,
            _ if text.starts_with("-F") || text.starts_with("-v") => {}
            _ => return None,
        }
    }
    let (program, files) = rest.split_first()?;
    awk_program(program.literal_or_glob()?).then_some(())?;
    Some(Reads {
        paths: files.iter().filter(|w| !w.text().contains('=')).collect(),
        ..Reads::default()
    })
}

/// Whether an awk program starts nothing, writes no file and prints no environment.
fn awk_program(program: &str) -> bool {
    let mut bare = String::new();
    let mut braces = 0usize;
    let mut before = '\n';
    let mut chars = program.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => {
                            chars.next();
                        }
                        '"' => break,
                        _ => {}
                    }
                }
                bare.push('"');
            }
            '/' if "(,;!~&|{}\n=".contains(before) => {
                while let Some(c) = chars.next() {
                    match c {
                        '\\' => {
                            chars.next();
                        }
                        '/' => break,
                        _ => {}
                    }
                }
                bare.push('/');
            }
            '{' => {
                braces += 1;
                bare.push(c);
            }
            '}' => {
                braces = braces.saturating_sub(1);
                bare.push(c);
            }
            '|' => match chars.next_if_eq(&'|') {
                Some(_) => bare.push(' '),
                None => return false,
            },
            '>' => {
                let compares = chars.next_if_eq(&'=').is_some();
                if !compares && braces > 0 || chars.peek() == Some(&'>') {
                    return false;
                }
                bare.push(' ');
            }
            '@' | '`' => return false,
            c => bare.push(c),
        }
        if !c.is_whitespace() {
            before = c;
        }
    }
    ![
        "system", "getline", "ENVIRON", "PROCINFO", "close", "fflush", "SYMTAB", "FUNCTAB",
    ]
    .iter()
    .any(|w| bare.contains(w))
}

fn jq(arguments: &[Word]) -> Option<Reads<'_>> {
    let mut reads = Reads::default();
    let mut program: Option<&Word> = None;
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let text = word.text();
        match text {
            "--arg" | "--argjson" => rest = rest.get(2..)?,
            "--slurpfile" | "--rawfile" => {
                reads.paths.push(rest.get(1)?);
                rest = rest.get(2..)?;
            }
            "--indent" => rest = rest.get(1..)?,
            "--raw-output"
            | "--compact-output"
            | "--exit-status"
            | "--slurp"
            | "--null-input"
            | "--sort-keys"
            | "--join-output"
            | "--ascii-output"
            | "--tab"
            | "--raw-input"
            | "--color-output"
            | "--monochrome-output"
            | "--unbuffered"
            | "--stream"
            | "--seq" => {}
            _ if text.starts_with("--") || word.may_be_option() && program.is_none() => {
                return None;
            }
            _ if text.starts_with('-') && text.len() > 1 => {
                text.chars()
                    .skip(1)
                    .all(|c| "rcesnSjaMCR0".contains(c))
                    .then_some(())?;
            }
            _ if program.is_none() => program = Some(word),
            _ => reads.paths.push(word),
        }
    }
    // No program at all is the same as `.`.
    let filter = program.map_or(Some("."), Word::literal_or_glob)?;
    let names = filter.split(|c: char| c != '_' && c != '$' && !c.is_ascii_alphanumeric());
    for name in names {
        if matches!(name, "env" | "$ENV" | "import" | "include" | "$__prog_args") {
            return None;
        }
    }
    Some(reads)
}

/// Only the listing of an archive.
fn tar(arguments: &[Word]) -> Option<Reads<'_>> {
    let mut reads = Reads::default();
    let mut lists = false;
    let mut rest = arguments;
    let mut first = true;
    while let Some((word, after)) = rest.split_first() {
        rest = after;
        let text = word.text();
        let cluster = if first && !text.starts_with('-') {
            Some(text)
        } else {
            text.strip_prefix('-')
                .filter(|t| !t.starts_with('-') && !t.is_empty())
        };
        first = false;
        match (cluster, text) {
            (Some(letters), _) => {
                word.literal()?;
                letters
                    .chars()
                    .all(|c| "tzjJvfOa".contains(c))
                    .then_some(())?;
                lists |= letters.contains('t');
                if letters.contains('f') {
                    let (file, after) = rest.split_first()?;
                    reads.paths.push(file);
                    rest = after;
                }
            }
            (_, "--list") => lists = true,
            (_, "--verbose" | "--gzip" | "--xz" | "--bzip2" | "--zstd") => {}
            _ if text.starts_with("--file=") => {
                reads
                    .named
                    .push(text.trim_start_matches("--file=").to_owned());
            }
            _ if text.starts_with('-') || word.may_be_option() => return None,
            _ => {}
        }
    }
    lists.then_some(reads)
}

fn less(arguments: &[Word]) -> Option<Reads<'_>> {
    let split = split(arguments, &[]);
    if split.unsure {
        return None;
    }
    let letters =
        |o: &&str| !o.starts_with("--") && o.chars().skip(1).all(|c| "NSRFXMiIrgn".contains(c));
    split.options.iter().all(letters).then_some(())?;
    let mut reads = Reads::default();
    for operand in split.operands {
        match operand.text().strip_prefix('+') {
            Some(at) if at == "G" || at.chars().all(|c| c.is_ascii_digit()) => {}
            Some(_) => return None,
            None => reads.paths.push(operand),
        }
    }
    Some(reads)
}

impl Word {
    /// What it says where only a glob keeps it from being literal; for words that are code and no
    /// file of that name can be meant.
    pub(super) fn literal_or_glob(&self) -> Option<&str> {
        self.dynamic.is_none().then(|| self.text())
    }
}

/// Whether one of these long options, in any abbreviation, or short ones is given.
pub(super) fn any_gated(options: &[&str], wants: &[&str]) -> bool {
    options
        .iter()
        .any(|option| wants.iter().any(|want| gated(option, want, &[])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts_that_only_print() {
        for yes in [
            "1,80p",
            "/^fn parse/,/^}/p",
            "5,15p",
            "s/a/b/g",
            "$!d",
            "s|a|b|;p",
            "/a/I{p}",
        ] {
            assert!(sed_script(yes), "{yes}");
        }
        for no in [
            "w PWNED",
            "1{w PWNED\n}",
            "s/x/y/w PWNED",
            "1p;w PWNED",
            "e touch",
            "s/x/y/e",
            "1e touch x",
            "r /etc/shadow",
            "s/a[/w x]/b/w f",
        ] {
            assert!(!sed_script(no), "{no}");
        }
    }

    #[test]
    fn awk_programs_that_only_print() {
        for yes in [
            "{print $1, $NF}",
            "$3 >= 1000 {print $1}",
            "$3 > 5",
            "/a|b/ {print}",
            "NR==1||NR==2",
        ] {
            assert!(awk_program(yes), "{yes}");
        }
        for no in [
            "BEGIN{system(\"x\")}",
            "BEGIN{\"x\" | getline}",
            "{print > \"f\"}",
            "BEGIN{c|getline}",
            "{print ENVIRON[\"A\"]}",
            "{print >> \"f\"}",
        ] {
            assert!(!awk_program(no), "{no}");
        }
    }
}
