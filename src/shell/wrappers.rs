//! Programs that run another program named in their own arguments: a table, and how options are
//! stepped over.

use super::word::Word;

/// How one wrapper's arguments are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// Options whose value is the next word, short ones as one letter.
    takes: &'static [&'static str],
    /// Options with which it runs nothing.
    looks: &'static [&'static str],
    /// Words between its options and the command.
    operands: usize,
    /// Whether assignments may stand before the command.
    pub(super) assigns: bool,
    /// Whether it changes nothing about what the command may do: not for those that change the
    /// user, the root folder or the place where it runs.
    pub(super) transparent: bool,
    /// Whether the rest is joined and read by a shell.
    pub(super) joined: bool,
    /// Whether more arguments follow that the text does not say.
    pub(super) open_ended: bool,
}

const PLAIN: Wrapper = Wrapper {
    name: "",
    takes: &[],
    looks: &[],
    operands: 0,
    assigns: false,
    transparent: true,
    joined: false,
    open_ended: false,
};

const OPAQUE: Wrapper = Wrapper {
    transparent: false,
    ..PLAIN
};

const TABLE: &[Wrapper] = &[
    Wrapper {
        name: "env",
        takes: &["u", "C", "unset", "chdir", "a", "argv0"],
        assigns: true,
        ..PLAIN
    },
    Wrapper {
        name: "command",
        looks: &["v", "V"],
        ..PLAIN
    },
    Wrapper {
        name: "builtin",
        ..PLAIN
    },
    Wrapper {
        name: "exec",
        takes: &["a"],
        ..PLAIN
    },
    Wrapper {
        name: "nohup",
        ..PLAIN
    },
    Wrapper {
        name: "setsid",
        ..PLAIN
    },
    Wrapper {
        name: "time",
        takes: &["f", "format"],
        ..PLAIN
    },
    Wrapper {
        name: "coproc",
        ..PLAIN
    },
    Wrapper {
        name: "noglob",
        ..PLAIN
    },
    Wrapper {
        name: "nice",
        takes: &["n", "adjustment"],
        ..PLAIN
    },
    Wrapper {
        name: "ionice",
        takes: &["c", "n", "class", "classdata"],
        ..PLAIN
    },
    Wrapper {
        name: "stdbuf",
        takes: &["i", "o", "e", "input", "output", "error"],
        ..PLAIN
    },
    Wrapper {
        name: "timeout",
        takes: &["s", "k", "signal", "kill-after"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        name: "chrt",
        takes: &["T", "P", "D"],
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        name: "taskset",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        name: "unbuffer",
        ..PLAIN
    },
    Wrapper {
        name: "xargs",
        takes: XARGS,
        open_ended: true,
        ..PLAIN
    },
    Wrapper {
        name: "parallel",
        takes: &["j", "jobs", "a", "arg-file", "I"],
        open_ended: true,
        ..OPAQUE
    },
    Wrapper {
        name: "watch",
        takes: &["n", "interval", "q", "equexit"],
        joined: true,
        ..OPAQUE
    },
    Wrapper {
        name: "entr",
        ..OPAQUE
    },
    Wrapper {
        name: "flock",
        takes: &["w", "timeout", "E", "conflict-exit-code"],
        operands: 1,
        ..OPAQUE
    },
    Wrapper {
        name: "strace",
        takes: &["e", "o", "p", "s", "u", "E", "a", "I", "P", "S", "O", "X"],
        ..OPAQUE
    },
    Wrapper {
        name: "ltrace",
        takes: &["e", "o", "p", "s", "u", "a", "n", "l", "x"],
        ..OPAQUE
    },
    Wrapper {
        name: "valgrind",
        ..OPAQUE
    },
    Wrapper {
        name: "rlwrap",
        ..OPAQUE
    },
    Wrapper {
        name: "caffeinate",
        takes: &["t", "w"],
        ..OPAQUE
    },
    Wrapper {
        name: "dbus-run-session",
        ..OPAQUE
    },
    Wrapper {
        name: "xvfb-run",
        takes: &["n", "s", "e", "f", "p", "w"],
        ..OPAQUE
    },
    Wrapper {
        name: "systemd-run",
        takes: &[
            "p", "u", "t", "H", "M", "E", "property", "unit", "slice", "uid", "gid", "setenv",
        ],
        ..OPAQUE
    },
    Wrapper {
        name: "systemd-inhibit",
        ..OPAQUE
    },
    Wrapper {
        name: "unshare",
        takes: &["S", "G", "R", "w", "root", "wd"],
        ..OPAQUE
    },
    Wrapper {
        name: "nsenter",
        takes: &["t", "S", "G", "target"],
        ..OPAQUE
    },
    Wrapper {
        name: "setpriv",
        takes: &["reuid", "regid", "groups"],
        ..OPAQUE
    },
    Wrapper {
        name: "chroot",
        takes: &["userspec", "groups"],
        operands: 1,
        ..OPAQUE
    },
    Wrapper {
        name: "fakeroot",
        ..OPAQUE
    },
    Wrapper {
        name: "proot",
        takes: &["r", "b", "w"],
        ..OPAQUE
    },
    Wrapper {
        name: "sudo",
        takes: &[
            "u", "g", "h", "p", "C", "r", "t", "U", "D", "R", "T", "user", "group", "host",
            "prompt", "chdir", "chroot", "role", "type",
        ],
        assigns: true,
        ..OPAQUE
    },
    Wrapper {
        name: "doas",
        takes: &["u", "C"],
        assigns: true,
        ..OPAQUE
    },
    Wrapper {
        name: "pkexec",
        takes: &["user", "u"],
        ..OPAQUE
    },
    Wrapper {
        name: "run0",
        takes: &["u", "g", "D", "user", "group", "chdir", "property", "unit"],
        ..OPAQUE
    },
    Wrapper {
        name: "runuser",
        takes: &["u", "g", "G", "s", "c"],
        ..OPAQUE
    },
    // `$(shell …)` of make.
    Wrapper {
        name: "shell",
        ..OPAQUE
    },
    Wrapper {
        name: "busybox",
        ..OPAQUE
    },
    Wrapper {
        name: "toybox",
        ..OPAQUE
    },
    Wrapper {
        name: "npx",
        takes: &["p", "package"],
        ..OPAQUE
    },
    Wrapper {
        name: "ld.so",
        takes: &["argv0", "preload", "library-path", "audit"],
        ..OPAQUE
    },
];

const XARGS: &[&str] = &[
    "I",
    "n",
    "P",
    "L",
    "s",
    "d",
    "E",
    "a",
    "max-args",
    "max-procs",
    "max-lines",
    "max-chars",
    "delimiter",
    "arg-file",
    "replace",
];

/// The last part of a program's path.
pub(super) fn base(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    if name.starts_with("ld-linux") || name.starts_with("ld-musl") || name.starts_with("ld.so") {
        return "ld.so";
    }
    name
}

/// The wrapper of that name.
pub(super) fn wrapper(program: &str) -> Option<&'static Wrapper> {
    let name = base(program);
    TABLE.iter().find(|w| w.name == name)
}

/// Where a wrapper's command begins.
pub(super) enum Command<'a> {
    /// These words, with options of the wrapper left aside.
    At(&'a [Word]),
    /// It runs nothing here.
    Nothing,
    /// Not told before it runs.
    Unknown,
}

impl Wrapper {
    /// Steps over the wrapper's own options.
    pub(super) fn command<'a>(&self, arguments: &'a [Word]) -> Command<'a> {
        let mut rest = arguments;
        while let Some((word, after)) = rest.split_first() {
            let text = word.text();
            if !text.starts_with('-') || text == "-" && self.name != "env" {
                if word.may_be_option() && word.dynamic.is_some() {
                    return Command::Unknown;
                }
                break;
            }
            rest = after;
            if text == "--" {
                break;
            }
            if self.runs_nothing(text) {
                return Command::Nothing;
            }
            if self.value_follows(text) {
                rest = rest.split_first().map_or(&[][..], |(_, r)| r);
            }
        }
        if !self.assigns {
            rest = rest.get(self.operands..).unwrap_or_default();
        }
        if rest.is_empty() {
            Command::Nothing
        } else {
            Command::At(rest)
        }
    }

    fn runs_nothing(&self, option: &str) -> bool {
        self.looks
            .iter()
            .any(|l| option.trim_start_matches('-').contains(l))
    }

    fn value_follows(&self, option: &str) -> bool {
        if let Some(long) = option.strip_prefix("--") {
            return !long.contains('=')
                && long.len() >= 3
                && self
                    .takes
                    .iter()
                    .any(|t| t.len() > 1 && t.starts_with(long));
        }
        // A cluster: the first letter that takes a value takes the rest, or the next word.
        let letters = option.trim_start_matches('-');
        for (at, c) in letters.char_indices() {
            if self.takes.iter().any(|t| t.len() == 1 && t.starts_with(c)) {
                return letters.len() == at + c.len_utf8();
            }
        }
        false
    }
}
