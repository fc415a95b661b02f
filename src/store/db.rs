//! One SQLite database on one thread.
//!
//! Callers hand over a closure and await its result; the queue of closures is bounded, and a
//! caller waits while it is full. Reads and writes run in the order in which they were handed over.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, Params, Row, Transaction, TransactionBehavior};
use tokio::sync::{mpsc, oneshot};

/// Statements that are kept prepared; a further one takes the place of the one that was not used
/// for longest. A turn runs about twenty.
const STATEMENTS: usize = 32;

/// Closures that may wait for the thread. A caller waits when there are more.
const QUEUE: usize = 256;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot open the store {path}")]
    Open {
        path: PathBuf,
        #[source]
        source: rusqlite::Error,
    },
    #[error(
        "the store {path} was written by a newer lembas (version {found}, this one knows {known}): update lembas on this computer"
    )]
    Newer {
        path: PathBuf,
        found: i64,
        known: i64,
    },
    #[error("the store could not read or write")]
    Sql(#[from] rusqlite::Error),
    #[error("the disk is full")]
    Full(#[source] rusqlite::Error),
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the file is there and is not a store, or not one any more.
    pub fn is_damage(&self) -> bool {
        let (Self::Open { source, .. } | Self::Sql(source)) = self else {
            return false;
        };
        matches!(
            source.sqlite_error_code(),
            Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt)
        )
    }

    /// What SQLite says of a store that could not be opened, without the file and the numbers.
    pub fn cause(&self) -> Option<&'static str> {
        let Self::Open { source, .. } = self else {
            return None;
        };
        let cause = source.sqlite_error()?;
        Some(rusqlite::ffi::code_to_str(cause.extended_code))
    }

    /// Sorts an SQLite error: a full disk is a state of its own, which the person can mend.
    pub fn from_sql(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full(error),
            _ => Self::Sql(error),
        }
    }
}

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

/// A step from one version of the tables to the next: its number and its SQL.
pub type Migration = (i64, &'static str);

/// Statements that a connection keeps prepared: reading SQL takes longer than most of it runs.
pub trait Cached {
    /// # Errors
    /// As SQLite says.
    fn execute_cached(&self, sql: &str, params: impl Params) -> Result<usize, rusqlite::Error>;

    /// # Errors
    /// As SQLite or `read` says, and when there is no row.
    fn query_row_cached<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, rusqlite::Error>;
}

impl Cached for Connection {
    fn execute_cached(&self, sql: &str, params: impl Params) -> Result<usize, rusqlite::Error> {
        self.prepare_cached(sql)?.execute(params)
    }

    fn query_row_cached<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> Result<T, rusqlite::Error>,
    ) -> Result<T, rusqlite::Error> {
        self.prepare_cached(sql)?.query_row(params, read)
    }
}

/// How hard a write is pushed to the disk before its caller goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives a crash of this process (WAL, no flush): streamed text and what can be asked again.
    Process,
    /// Survives a crash of the computer (flushed): intents, asks, runs, keys, tokens.
    Disk,
}

/// A cheap handle to the database thread. The thread ends when the last handle is gone.
#[derive(Clone, Debug)]
pub struct Db {
    jobs: mpsc::Sender<Job>,
    path: PathBuf,
}

impl Db {
    /// Opens or makes the database and brings its tables forward.
    ///
    /// # Errors
    /// When the file cannot be opened, is not a database, or was written by a newer program.
    pub fn open(path: &Path, migrations: &'static [Migration]) -> Result<Self, StoreError> {
        let wrap = |source| StoreError::Open {
            path: path.to_owned(),
            source,
        };
        private(path);
        let mut connection = Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
        .map_err(wrap)?;
        prepare(&mut connection).map_err(wrap)?;
        migrate(&mut connection, path, migrations)?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || run(connection, queue))
            .map_err(|e| StoreError::Open {
                path: path.to_owned(),
                source: rusqlite::Error::ToSqlConversionFailure(Box::new(e)),
            })?;
        Ok(Self {
            jobs,
            path: path.to_owned(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a closure on the database thread. Cancel-safe: once taken it runs to its end.
    ///
    /// # Errors
    /// What the closure answers, or `Closed` when the thread is gone.
    pub async fn call<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T, rusqlite::Error> + Send + 'static,
    {
        let (answer, wait) = oneshot::channel();
        let job: Job = Box::new(move |connection| {
            let _gone = answer.send(work(connection));
        });
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        wait.await
            .map_err(|_| StoreError::Closed)?
            .map_err(StoreError::from_sql)
    }

    /// Runs a closure in one transaction, committed before this returns, as hard as asked.
    ///
    /// # Errors
    /// What the closure answers (nothing is kept then), or `Closed`.
    pub async fn write<T, F>(&self, how: Durability, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>) -> Result<T, rusqlite::Error> + Send + 'static,
    {
        self.call(move |connection| {
            let level = match how {
                Durability::Process => "NORMAL",
                Durability::Disk => "FULL",
            };
            connection.pragma_update(None, "synchronous", level)?;
            let transaction =
                connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        })
        .await
    }
}

fn run(mut connection: Connection, mut queue: mpsc::Receiver<Job>) {
    while let Some(job) = queue.blocking_recv() {
        job(&mut connection);
    }
}

fn prepare(connection: &mut Connection) -> Result<(), rusqlite::Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "wal_autocheckpoint", 1000)?;
    connection.pragma_update(None, "journal_size_limit", 16 * 1024 * 1024)?;
    Ok(())
}

fn migrate(
    connection: &mut Connection,
    path: &Path,
    migrations: &[Migration],
) -> Result<(), StoreError> {
    let found: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let known = migrations.last().map_or(0, |m| m.0);
    if found > known {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found,
            known,
        });
    }
    for (version, sql) in migrations.iter().filter(|m| m.0 > found) {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(sql)?;
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}

/// Makes the file ahead of SQLite so that it is never readable by others, not for a moment.
fn private(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        let made = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        if made.is_err() {
            let _kept = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &[Migration] = &[(1, "create table t (n integer) strict")];

    #[tokio::test]
    async fn a_failed_write_keeps_nothing_and_the_thread_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&folder.path().join("s.db"), TABLES).unwrap();
        let failed = db
            .write(Durability::Disk, |t| {
                t.execute("insert into t values (1)", [])?;
                t.execute("insert into nowhere values (1)", [])
            })
            .await;
        assert!(failed.is_err());
        let count: i64 = db
            .call(|c| c.query_row("select count(*) from t", [], |r| r.get(0)))
            .await
            .unwrap();
        assert_eq!(count, 0);
    }

    #[test]
    fn a_newer_store_is_refused_and_untouched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        drop(Db::open(&path, TABLES).unwrap());
        Connection::open(&path)
            .unwrap()
            .pragma_update(None, "user_version", 9)
            .unwrap();
        let error = Db::open(&path, TABLES).unwrap_err();
        assert!(matches!(error, StoreError::Newer { found: 9, .. }));
    }
}
