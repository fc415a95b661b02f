//! Texts made to be hard to read: what is read of them is bounded, in steps and not in time, and
//! none of them is let through.

use super::*;
use crate::shell::work;

/// The readers stop at 12 and 8 steps for each of 64 KiB; what is begun then is ended first.
const MOST_STEPS: u64 = 40 * 64 * 1024;

/// A piece again and again, as often as a text may be long.
fn full(before: &str, piece: &str, after: &str) -> String {
    let room = crate::shell::MAX_BYTES - before.len() - after.len();
    format!("{before}{}{after}", piece.repeat(room / piece.len()))
}

/// The same with a number in it, which makes each piece another.
fn numbered(before: &str, piece: impl Fn(usize) -> String) -> String {
    let mut text = before.to_owned();
    for n in 0.. {
        let next = piece(n);
        if text.len() + next.len() > crate::shell::MAX_BYTES {
            break;
        }
        text.push_str(&next);
    }
    text
}

fn shapes() -> Vec<String> {
    let half = |piece: &str| piece.repeat(32_000 / piece.len());
    let mut shapes: Vec<String> = [
        "(",
        "$(",
        "$((",
        "`",
        "{",
        "{ ",
        "}",
        "[",
        "[ ",
        "[[ ",
        "]",
        "<(",
        "${",
        "${a:-",
        "\"$(",
        "$(\"",
        "\"",
        "'",
        "$'",
        "$\"",
        "\\",
        "\\\\",
        "\\\n",
        "$",
        "#",
        " #",
        "\n",
        "\t",
        ";",
        ";;",
        "&",
        "|",
        "a|",
        "a;",
        "a&&",
        "a||",
        "a\n",
        "!",
        "!|",
        "a b ",
        "<<E\n",
        "<<E ",
        "<<E;",
        "<<-'E' ",
        "<<<a ",
        "<<< '",
        ">a ",
        "2>&1 ",
        "a=b ",
        "a=$a ",
        "a=$a$a;",
        "a=(",
        "a[1]=(",
        "a() ",
        "a(){ ",
        "a) ",
        "alias a=b ",
        "alias a=b;",
        "env ",
        "sudo ",
        "env -S ",
        "sh -c ",
        "sh -c '",
        "eval ",
        "xargs ",
        "find -exec ",
        "find -exec a ; ",
        "if a; then ",
        "for a in b; do ",
        "case a in a) ",
        "while a; do ",
        "function a ",
        "rg -e a ",
        "git -c a.b=!c ",
        "ssh -o a=b ",
        "trap a b;",
        "awk '|' ",
        "cd a;",
        "cd $a;",
        "/a ",
        "~ ",
        "~/.ssh/a ",
        "a/b ",
        "../",
        "/x",
        "*",
        "?",
        "$IFS",
        "${IFS",
        "${IFS:",
        "\u{1b}[",
        "\u{1b}]",
        "{a,b}",
        "{a,",
        "{1..9}",
        ",",
        "..",
        "é",
        "\u{ff04}(",
        "time ",
        "coproc ",
    ]
    .iter()
    .map(|piece| full("", piece, ""))
    .collect();
    shapes.extend([
        full("cat ", "/a ", ""),
        full("cat ", "a/b/c ", ""),
        full("cat ", "/a", ""),
        full("cd a; cd b; cd c; cd d; cat ", "e/f ", ""),
        full("echo '", "|", "' | sh"),
        full("echo \"", "!a|", "\" | bash"),
        full("awk '", "|", "'"),
        full("python3 -c '", "\"a\" ", "'"),
        full("sqlite3 a '", ".shell ", "'"),
        full("sh -c '", "a;", "'"),
        full("sh <<'E'\n", "a\n", "\nE\n"),
        full("cat <<E\n", "`x` ", "\nE\n"),
        full("cat <<E\n", "$(x) ", "\nE\n"),
        full("[ ", "a[$(b)] ", "]"),
        full("echo \"", "$(a) ", "\""),
        full("echo \"", "${a:-$(b)}", "\""),
        full("test -v \"", "a[$b] ", "\""),
        full("git status; ", "git status;", ""),
        full("", "git -C a status;", ""),
        format!("{}{}", "${a:-".repeat(60), half("b ")),
        format!("{}{}{}", "${a:-".repeat(60), half("b "), "}".repeat(60)),
        format!("{}{}{}", "$(a ".repeat(60), half("b "), ")".repeat(60)),
        format!("{}{}{}", "\"$(".repeat(30), half("b "), ")\"".repeat(30)),
        format!("a={}; {}", half("x"), "$a ".repeat(9_000)),
        format!("{}{}", half("<<E;"), half(";")),
        format!("{}{}", half("{"), half("a,}")),
        format!("sh -c '{}' {}", half("a "), half("b ")),
        format!("{} {}", half("env "), half("sh -c b ")),
        numbered("", |n| format!("a{n}=b ")),
        numbered("", |n| format!("a{n}=b;")) + "x",
        numbered(
            &numbered("", |n| {
                if n < 3_000 {
                    format!("a{n}=b;")
                } else {
                    "$c ".into()
                }
            }),
            |_| "$d ".into(),
        ),
        numbered("", |n| {
            format!("a{n}=$a{}$a{};", n.saturating_sub(1), n.saturating_sub(1))
        }),
        numbered("alias ", |n| format!("a{n}=b ")),
        numbered("cat ", |n| format!("~/.ssh/{n} ")),
        numbered("rg ", |n| format!("-e {n} ")),
        numbered("", |n| format!("cd {n};")),
        numbered("", |n| format!("git -C {n} status;")),
        numbered("", |n| format!("p{n} a;")),
        numbered("", |n| format!("cat <<E{n};")),
        numbered("rm ", |n| format!("/a{n} ")),
    ]);
    shapes
}

#[test]
fn whatever_is_written_is_read_in_bounded_work_and_never_let_through() {
    let world = World::new();
    let mut worst = (0, String::new());
    for shape in shapes() {
        assert!(
            shape.len() <= crate::shell::MAX_BYTES + 16,
            "{}",
            shape.len()
        );
        let start: String = shape.chars().take(24).collect();
        let began = (work::steps(), crate::clock::worked());
        let verdict = world.judge(&shape, Mode::Manual);
        let steps = work::steps() - began.0;
        println!(
            "{steps:9} {:?} {start:?} {}",
            crate::clock::worked() - began.1,
            word(&verdict)
        );
        assert!(steps < MOST_STEPS, "{start:?}: {steps} steps");
        worst = worst.max((steps, start));
    }
    println!("the most: {worst:?}");
}

#[test]
fn the_floor_is_found_at_the_end_of_long_texts() {
    let world = World::new();
    for text in [
        full("echo ", "abcdefgh ", "; rm -rf /"),
        full(
            "cat > notes <<'EOF'\n",
            "let x = a | b; # c\n",
            "EOF\nrm -rf /",
        ),
        full("python3 -c '", "print(1) ", "'; rm -rf /"),
        "make a.txt b.txt c\n".repeat(1_000) + "rm -rf /",
    ] {
        let start: String = text.chars().take(20).collect();
        let verdict = world.judge(&text, Mode::Auto);
        assert_eq!(word(&verdict), "no:floor", "{start:?}");
    }
}

#[test]
fn past_the_bound_a_person_is_asked_once_and_where_there_is_none_it_is_refused() {
    let world = World::new();
    let text = full("", "a|", "rm -rf /");
    assert_eq!(word(&world.judge(&text, Mode::Auto)), "once");
    for (attended, layer) in [
        (Attended::Nobody, "no:unattended"),
        (Attended::Scheduled, "no:unreadable"),
    ] {
        let context = Context {
            attended,
            ..world.context(Mode::Auto)
        };
        let verdict = engine(Strength::Full).judge(&world.request(&text), &context, &[]);
        assert_eq!(word(&verdict), layer);
    }
}

#[test]
fn more_paths_than_are_looked_at_are_asked_about_once() {
    let world = World::new();
    let few = numbered("cat ", |n| {
        if n < 300 {
            format!("f{n} ")
        } else {
            " ".repeat(70_000)
        }
    });
    assert_eq!(word(&world.judge(&few, Mode::Edit)), "read");
    let many = numbered("cat ", |n| {
        if n < 2_000 {
            format!("f{n} ")
        } else {
            " ".repeat(70_000)
        }
    });
    assert_eq!(word(&world.judge(&many, Mode::Auto)), "once");
}
