//! Where the program's own log goes: stderr, by `LEMBAS_LOG`, and a file of this computer that is
//! never larger than two of its halves. Standard output belongs to results.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::prelude::*;

use crate::config::{Paths, env};

/// Bytes of the file; when there would be more it becomes `lembas.log.1`, and the one that was
/// that is gone.
const MOST: u64 = 4 * 1024 * 1024;
/// What the file gets where the person says nothing.
const KEPT: &str = "info";

/// Begins logging; `usual` is what stderr gets where the person says nothing.
pub(super) fn begin(paths: &Paths, usual: &str) {
    let wanted = env::text(&env::LEMBAS_LOG);
    let read = wanted.as_deref().map(EnvFilter::try_new);
    let refused = matches!(read, Some(Err(_)));
    let filter = |usual: &str| {
        let wanted = wanted.as_deref().filter(|_| !refused);
        EnvFilter::new(wanted.unwrap_or(usual))
    };
    let plain = env::os(&env::NO_COLOR).is_some();
    let lines = layer()
        .with_writer(io::stderr)
        .with_ansi(!plain && io::IsTerminal::is_terminal(&io::stderr()))
        .with_target(false)
        .with_filter(filter(usual));
    let kept = Kept::open(&paths.log()).map(|kept| {
        layer()
            .with_writer(kept)
            .with_ansi(false)
            .with_target(false)
            .with_filter(filter(KEPT))
    });
    let problem = kept.as_ref().err().map(ToString::to_string);
    // A second call, in one process, changes nothing.
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(kept.ok())
        .try_init();
    if refused {
        tracing::warn!(
            "LEMBAS_LOG is not understood and not used: it is a level or module=level, as debug or lembas::link=trace"
        );
    }
    if let Some(problem) = problem {
        tracing::warn!(
            problem,
            "the log file cannot be written; only this gets the log"
        );
    }
}

/// The file.
struct Kept {
    path: PathBuf,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
}

impl Kept {
    fn open(path: &Path) -> io::Result<Self> {
        let file = append(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            open: Mutex::new(Open { file, bytes }),
        })
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

impl<'w> MakeWriter<'w> for Kept {
    type Writer = Line<'w>;

    fn make_writer(&'w self) -> Line<'w> {
        Line(self)
    }
}

/// One line of the log; it comes in one write.
struct Line<'w>(&'w Kept);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut open = self.0.open.lock();
        let more = line.len() as u64;
        if open.bytes.saturating_add(more) > MOST && open.bytes > 0 {
            let mut older = self.0.path.clone().into_os_string();
            older.push(".1");
            std::fs::rename(&self.0.path, older)?;
            *open = Open {
                file: append(&self.0.path)?,
                bytes: 0,
            };
        }
        open.bytes = open.bytes.saturating_add(more);
        open.file.write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_never_grows_over_its_bound() {
        use std::os::unix::fs::PermissionsExt as _;
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("lembas.log");
        let kept = Kept::open(&path).unwrap();
        let line = [b'x'; 64 * 1024];
        for _ in 0..(3 * MOST / line.len() as u64) {
            kept.make_writer().write_all(&line).unwrap();
        }
        // Opened again it goes on where it was.
        drop(kept);
        Kept::open(&path)
            .unwrap()
            .make_writer()
            .write_all(b"more")
            .unwrap();
        let sizes: Vec<u64> = std::fs::read_dir(base.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= MOST), "{sizes:?}");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
