//! The bare drivers, doing the same inserts.
//!
//! One acknowledged statement for each entry and nothing else: no lease, no number that must fit, no index, no news. What a
//! store costs more than this is what it does for it.

use super::super::append::line;
use super::super::words::BenchWords;
use crate::error::{Error, Result};
use komado_core::SessionId;
use komado_store::connect::POSTGRES;
use redis::Commands;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Statement};

/// Entries sent at once while filling.
const BATCH: u64 = 1000;

/// Appends lines through a driver.
pub(super) trait RawClient {
    /// What it does, with everything that bears on its figures.
    fn name(&self) -> String;

    /// Lines so far.
    fn len(&self) -> u64;

    /// Appends many lines quickly.
    fn append_many(&mut self, lines: &[String]) -> Result;

    /// Appends one line and waits until it is acknowledged.
    fn append(&mut self, line: &str) -> Result;

    /// Reads the last line.
    fn read_last(&mut self) -> Result;

    /// Takes away what it made.
    fn clear(&mut self) -> Result;

    /// Appends until there are `size` lines.
    fn fill(&mut self, words: &BenchWords, size: u64) -> Result {
        while self.len() < size {
            let upto = (self.len() + BATCH).min(size);
            let lines: Vec<String> = (self.len()..upto).map(|n| line(words, n)).collect();
            self.append_many(&lines)?;
        }
        Ok(())
    }
}

/// The driver for the store at `url`.
pub(super) fn raw(url: &str, path: &Path, id: &SessionId) -> Result<Box<dyn RawClient>> {
    let bare = url.split('?').next().unwrap_or(url);
    let name = id.as_str().replace('-', "_");
    match url {
        "file:" => Ok(Box::new(Plain::new(path)?)),
        _ if POSTGRES.iter().any(|start| url.starts_with(start)) => Ok(Box::new(Table::new(bare, &name)?)),
        _ if url.starts_with("redis://") => Ok(Box::new(List::new(bare, &name)?)),
        _ => Err(Error::usage(
            "the bare driver is measured on one server without TLS: redis:// or postgres://",
        )),
    }
}

/// A file: one write and one sync a line.
struct Plain {
    file: File,
    path: PathBuf,
    len: u64,
}

impl Plain {
    fn new(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, path: path.to_owned(), len: 0 })
    }
}

impl RawClient for Plain {
    fn name(&self) -> String {
        "plain file, write + fdatasync".into()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn append_many(&mut self, lines: &[String]) -> Result {
        self.file.write_all(lines.concat().as_bytes())?;
        self.len += lines.len() as u64;
        Ok(())
    }

    fn append(&mut self, line: &str) -> Result {
        self.file.write_all(line.as_bytes())?;
        self.len += 1;
        Ok(self.file.sync_data()?)
    }

    fn read_last(&mut self) -> Result {
        let file = File::open(&self.path)?;
        let from = file.metadata()?.len().saturating_sub(4096);
        file.read_at(&mut [0; 4096], from)?;
        Ok(())
    }

    fn clear(&mut self) -> Result {
        Ok(std::fs::remove_file(&self.path)?)
    }
}

/// A table in PostgreSQL with a row for each line.
struct Table {
    runtime: Runtime,
    client: Client,
    name: String,
    insert: Statement,
    last: Statement,
    len: u64,
}

impl Table {
    fn new(url: &str, name: &str) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let made = runtime.block_on(async {
            let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
            // It speaks for the client until that is dropped; what goes wrong is told there.
            tokio::spawn(async move {
                let _ = connection.await;
            });
            let create = format!("CREATE TABLE {name} (seq BIGINT PRIMARY KEY, line BYTEA NOT NULL)");
            client.batch_execute(&create).await?;
            let insert = client.prepare(&format!("INSERT INTO {name} (seq, line) VALUES ($1, $2)")).await?;
            let last = format!("SELECT seq, line FROM {name} ORDER BY seq DESC LIMIT 1");
            let last = client.prepare(&last).await?;
            Ok((client, insert, last))
        });
        let (client, insert, last) = made.map_err(|e| postgres_failed(&e))?;
        Ok(Self { runtime, client, name: name.to_owned(), insert, last, len: 0 })
    }
}

fn postgres_failed(error: &tokio_postgres::Error) -> Error {
    Error::failed(format!("the bare PostgreSQL driver: {error}"))
}

impl RawClient for Table {
    fn name(&self) -> String {
        "tokio-postgres, one prepared INSERT (seq, line)".into()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn append_many(&mut self, lines: &[String]) -> Result {
        let (client, insert, from) = (&mut self.client, &self.insert, self.len);
        let done = self.runtime.block_on(async {
            let whole = client.transaction().await?;
            for (line, seq) in lines.iter().zip(from..) {
                whole.execute(insert, &[&seq.cast_signed(), &line.as_bytes()]).await?;
            }
            whole.commit().await
        });
        self.len += lines.len() as u64;
        done.map_err(|e| postgres_failed(&e))
    }

    fn append(&mut self, line: &str) -> Result {
        let (seq, bytes) = (self.len.cast_signed(), line.as_bytes());
        self.len += 1;
        let done = self.runtime.block_on(self.client.execute(&self.insert, &[&seq, &bytes]));
        done.map(|_| ()).map_err(|e| postgres_failed(&e))
    }

    fn read_last(&mut self) -> Result {
        let done = self.runtime.block_on(self.client.query_one(&self.last, &[]));
        done.map(|_| ()).map_err(|e| postgres_failed(&e))
    }

    fn clear(&mut self) -> Result {
        let drop = format!("DROP TABLE {}", self.name);
        self.runtime.block_on(self.client.batch_execute(&drop)).map_err(|e| postgres_failed(&e))
    }
}

/// A list in Redis.
struct List {
    server: redis::Connection,
    key: String,
    len: u64,
}

impl List {
    fn new(url: &str, key: &str) -> Result<Self> {
        let opened = redis::Client::open(url).and_then(|client| client.get_connection());
        Ok(Self { server: opened.map_err(|e| redis_failed(&e))?, key: key.to_owned(), len: 0 })
    }
}

fn redis_failed(error: &redis::RedisError) -> Error {
    Error::failed(format!("the bare Redis driver: {error}"))
}

impl RawClient for List {
    fn name(&self) -> String {
        "redis-rs, one RPUSH".into()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn append_many(&mut self, lines: &[String]) -> Result {
        self.len += lines.len() as u64;
        self.server.rpush::<_, _, ()>(&self.key, lines).map_err(|e| redis_failed(&e))
    }

    fn append(&mut self, line: &str) -> Result {
        self.len += 1;
        self.server.rpush::<_, _, ()>(&self.key, line).map_err(|e| redis_failed(&e))
    }

    fn read_last(&mut self) -> Result {
        self.server.lindex::<_, String>(&self.key, -1).map(|_| ()).map_err(|e| redis_failed(&e))
    }

    fn clear(&mut self) -> Result {
        self.server.del::<_, ()>(&self.key).map_err(|e| redis_failed(&e))
    }
}
