//! Sizes, durations and times in words.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `59 bytes`, `9.4 kB`, `412 MB` (powers of ten).
pub fn bytes(count: u64) -> String {
    scaled(count, 1000, ["kB", "MB", "GB", "TB"])
}

/// `512 bytes`, `11.8 MiB` (powers of two): memory.
pub fn memory(count: u64) -> String {
    scaled(count, 1024, ["KiB", "MiB", "GiB", "TiB"])
}

fn scaled(count: u64, step: u64, units: [&str; 4]) -> String {
    if count < step {
        return plural(count, "byte", "bytes");
    }
    let mut unit = step;
    let mut name = "";
    for (n, candidate) in units.iter().enumerate() {
        name = candidate;
        if n + 1 == units.len() || count / unit < step {
            break;
        }
        unit *= step;
    }
    let half = unit / 2;
    let tenths = (count.saturating_mul(10).saturating_add(half)) / unit;
    if tenths < 1000 {
        format!("{}.{} {name}", tenths / 10, tenths % 10)
    } else {
        format!("{} {name}", count.saturating_add(half) / unit)
    }
}

/// `1 chat`, `3 chats`.
pub fn plural(count: u64, one: &str, many: &str) -> String {
    if count == 1 {
        format!("1 {one}")
    } else {
        format!("{count} {many}")
    }
}

/// A measured time: `28 ms`, `0.41 s`, `48 s`, `6 min 12 s`, `2 h 5 min`, `3 days`.
pub fn duration(time: Duration) -> String {
    let ms = time.as_millis();
    let s = time.as_secs();
    match s {
        0 if ms < 100 => format!("{ms} ms"),
        0..10 => {
            let hundredths = ms / 10;
            if hundredths.is_multiple_of(10) {
                let tenths = hundredths / 10;
                if tenths.is_multiple_of(10) {
                    format!("{} s", tenths / 10)
                } else {
                    format!("{}.{} s", tenths / 10, tenths % 10)
                }
            } else {
                format!("{}.{:02} s", hundredths / 100, hundredths % 100)
            }
        }
        10..60 => format!("{s} s"),
        60..3_600 if s.is_multiple_of(60) => format!("{} min", s / 60),
        60..3_600 => format!("{} min {} s", s / 60, s % 60),
        3_600..86_400 if s % 3_600 < 60 => format!("{} h", s / 3_600),
        3_600..86_400 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        _ => plural(s / 86_400, "day", "days"),
    }
}

/// How long something has been so, roughly: `48 s`, `4 min`, `2 h`, `3 days`.
pub fn rough(time: Duration) -> String {
    let s = time.as_secs();
    match s {
        0..60 => format!("{s} s"),
        60..3_600 => format!("{} min", s / 60),
        3_600..86_400 => format!("{} h", s / 3_600),
        _ => plural(s / 86_400, "day", "days"),
    }
}

/// How long ago a moment was, from milliseconds since the epoch; one in the future is `0 s` ago.
pub fn ago(then_ms: i64, now_ms: i64) -> String {
    rough(elapsed(then_ms, now_ms))
}

/// The time between two moments; zero when the second is earlier.
pub fn elapsed(then_ms: i64, now_ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(now_ms.saturating_sub(then_ms)).unwrap_or(0))
}

/// A moment as a clock shows it: `14:02` today, `12 Nov 14:02` this year, `12 Nov 2025` before.
pub fn clock(then_ms: i64, now_ms: i64, zone: &TimeZone) -> String {
    let (Ok(then), Ok(now)) = (
        Timestamp::from_millisecond(then_ms),
        Timestamp::from_millisecond(now_ms),
    ) else {
        return "an unknown time".to_owned();
    };
    let then = then.to_zoned(zone.clone());
    let now = now.to_zoned(zone.clone());
    let form = if then.date() == now.date() {
        "%H:%M"
    } else if then.year() == now.year() {
        "%-d %b %H:%M"
    } else {
        "%-d %b %Y"
    };
    then.strftime(form).to_string()
}

/// The day of a moment, as it stays right when it is read later: `12 Nov` this year, `12 Nov 2025`
/// else.
pub fn day(then_ms: i64, now_ms: i64, zone: &TimeZone) -> String {
    let zoned = |ms| Timestamp::from_millisecond(ms).map(|at| at.to_zoned(zone.clone()));
    let (Ok(then), Ok(now)) = (zoned(then_ms), zoned(now_ms)) else {
        return "an unknown day".to_owned();
    };
    let form = if then.year() == now.year() {
        "%-d %b"
    } else {
        "%-d %b %Y"
    };
    then.strftime(form).to_string()
}

/// RFC 3339 with the zone's offset, to the millisecond: what `--json` carries.
pub fn rfc3339(ms: i64, zone: &TimeZone) -> String {
    Timestamp::from_millisecond(ms).map_or_else(
        |_| ms.to_string(),
        |at| {
            at.to_zoned(zone.clone())
                .strftime("%Y-%m-%dT%H:%M:%S%.3f%:z")
                .to_string()
        },
    )
}

/// A word as it can be pasted into a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// `a`, `a and b`, `a, b and c`.
pub fn list<S: AsRef<str>>(items: &[S], and: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} {and} {}", first.join(", "), last.as_ref())
        }
    }
}

/// Why a file or folder could not be used.
pub fn io(error: &std::io::Error) -> String {
    use std::io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => "it does not exist".to_owned(),
        Kind::PermissionDenied => "you are not allowed to use it".to_owned(),
        Kind::NotADirectory => "a part of its path is a file".to_owned(),
        Kind::IsADirectory => "it is a folder".to_owned(),
        Kind::DirectoryNotEmpty => "it is a folder with something in it".to_owned(),
        Kind::InvalidFilename => "its name is too long".to_owned(),
        Kind::InvalidData => "it is not UTF-8 text".to_owned(),
        Kind::AddrNotAvailable => "this computer has no such address".to_owned(),
        Kind::ConnectionRefused => "the connection was refused: nobody listens there".to_owned(),
        Kind::StorageFull => "the disk is full".to_owned(),
        Kind::ReadOnlyFilesystem => "the disk is read-only".to_owned(),
        _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            "it is a link that leads back to itself".to_owned()
        }
        _ => {
            // The system's words, without its number.
            let text = error.to_string();
            let text = text.split(" (os error ").next().unwrap_or_default();
            let mut chars = text.chars();
            chars.next().map_or_else(String::new, |first| {
                first.to_lowercase().chain(chars).collect()
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (count, shown) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (59, "59 bytes"),
            (1_000, "1.0 kB"),
            (9_437, "9.4 kB"),
            (999_999, "1000 kB"),
            (412_000_000, "412 MB"),
            (5_000_000_000_000_000, "5000 TB"),
        ] {
            assert_eq!(bytes(count), shown);
        }
        assert_eq!(memory(12_373_196), "11.8 MiB");
    }

    #[test]
    fn durations() {
        for (ms, shown) in [
            (28, "28 ms"),
            (410, "0.41 s"),
            (800, "0.8 s"),
            (3_000, "3 s"),
            (48_900, "48 s"),
            (60_000, "1 min"),
            (372_000, "6 min 12 s"),
            (7_200_000, "2 h"),
            (7_500_000, "2 h 5 min"),
            (86_400_000, "1 day"),
        ] {
            assert_eq!(duration(Duration::from_millis(ms)), shown);
        }
        assert_eq!(ago(0, 250_000), "4 min");
        assert_eq!(ago(5_000, 0), "0 s");
        assert_eq!(ago(0, 3 * 86_400_000), "3 days");
    }

    #[test]
    fn moments() {
        let zone = TimeZone::fixed(jiff::tz::offset(1));
        let noon = 1_796_036_520_000; // 2026-11-30T11:02:00Z
        assert_eq!(clock(noon, noon + 60_000, &zone), "12:02");
        assert_eq!(clock(noon - 18 * 86_400_000, noon, &zone), "12 Nov 12:02");
        assert_eq!(clock(noon - 400 * 86_400_000, noon, &zone), "26 Oct 2025");
        assert_eq!(day(noon - 60_000, noon, &zone), "30 Nov");
        assert_eq!(day(noon - 18 * 86_400_000, noon, &zone), "12 Nov");
        assert_eq!(day(noon - 400 * 86_400_000, noon, &zone), "26 Oct 2025");
        assert_eq!(rfc3339(noon + 7, &zone), "2026-11-30T12:02:00.007+01:00");
    }

    #[test]
    fn a_word_can_be_pasted_into_a_shell() {
        assert_eq!(quoted("~/a-b.c"), "~/a-b.c");
        assert_eq!(quoted("a b'c"), "'a b'\\''c'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn lists() {
        assert_eq!(list::<&str>(&[], "and"), "");
        assert_eq!(list(&["a"], "or"), "a");
        assert_eq!(
            list(&["manual", "edit", "auto"], "or"),
            "manual, edit or auto"
        );
    }
}
