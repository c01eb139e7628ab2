//! A request's body on its way to disk, scanned as it passes.
//!
//! No more than a piece of it is held in memory, however long it is. The file has no name: it is gone when the exchange is. A disk that
//! is full or away must not stop a request, so the file moves to wherever there is room.

use super::GatewayRefusal;
use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use komado_provider::{BadRequest, RequestScanner, ScannedRequest};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How bodies are taken.
#[derive(Clone, Debug)]
pub(super) struct BodyLimits {
    /// Where files are made first.
    pub(super) folder: PathBuf,
    /// The longest body.
    pub(super) most: u64,
    /// How long to wait for more.
    pub(super) patience: Duration,
}

/// A body that has arrived.
#[derive(Debug)]
pub(super) struct SpooledBody {
    pub(super) file: Arc<File>,
    pub(super) len: u64,
    /// Its skim; why there is none; nothing where none was wanted.
    pub(super) skim: Option<Result<ScannedRequest, BadRequest>>,
}

/// Bytes that are written at a time.
const PIECE: usize = 64 << 10;

/// Takes a body in. Disks may be slow, so files are written on threads that may wait.
pub(super) async fn take(
    mut body: Body,
    skimmer: Option<RequestScanner>,
    rules: &BodyLimits,
) -> Result<SpooledBody, GatewayRefusal> {
    let no_room = |error: io::Error| {
        GatewayRefusal::new(507, format!("the request cannot be kept while it is handled: {error}"))
    };
    let mut intake = Intake { spool: None, skimmer, bad: None };
    let (mut pieces, mut waiting, mut len) = (Vec::new(), 0, 0);
    loop {
        let Ok(next) = timeout(rules.patience, body.frame()).await else {
            let seconds = rules.patience.as_secs();
            let why = "server.timeout_seconds sets the time";
            return Err(GatewayRefusal::new(
                408,
                format!("nothing more of the request came for {seconds} s; {why}"),
            ));
        };
        let Some(frame) = next else { break };
        let frame = frame.map_err(|why| {
            GatewayRefusal::new(400, format!("the request ended before its body did: {why}"))
        })?;
        let Ok(bytes) = frame.into_data() else { continue };
        len += bytes.len() as u64;
        if len > rules.most {
            let most = rules.most;
            let why = "server.body_limit_mb sets the limit";
            return Err(GatewayRefusal::new(413, format!("the request is larger than {most} bytes; {why}")));
        }
        waiting += bytes.len();
        pieces.push(bytes);
        if waiting >= PIECE {
            intake = intake.fed(std::mem::take(&mut pieces), rules).await.map_err(no_room)?;
            waiting = 0;
        }
    }
    let Intake { spool, skimmer, bad } = intake.fed(pieces, rules).await.map_err(no_room)?;
    let file =
        spool.map(|spool| spool.file).ok_or_else(|| no_room(io::Error::other("nothing was opened")))?;
    let skim = bad.map(Err).or_else(|| skimmer.map(RequestScanner::end));
    Ok(SpooledBody { len, file: Arc::new(file), skim })
}

/// A body that is being taken in.
struct Intake {
    spool: Option<Spool>,
    skimmer: Option<RequestScanner>,
    bad: Option<BadRequest>,
}

impl Intake {
    /// With more of it, on a thread that may wait.
    async fn fed(mut self, pieces: Vec<Bytes>, rules: &BodyLimits) -> io::Result<Self> {
        let folder = rules.folder.clone();
        let fed = tokio::task::spawn_blocking(move || {
            let mut spool = self.spool.take().map_or_else(|| Spool::new(&folder), Ok)?;
            for bytes in &pieces {
                spool.write(bytes)?;
                if let Some(Err(why)) = self.skimmer.as_mut().map(|skimmer| skimmer.push(bytes)) {
                    (self.skimmer, self.bad) = (None, Some(why));
                }
            }
            self.spool = Some(spool);
            Ok(self)
        });
        fed.await.map_err(io::Error::other)?
    }
}

/// A file without a name.
struct Spool {
    file: File,
    len: u64,
}

impl Spool {
    fn new(folder: &Path) -> io::Result<Self> {
        let file =
            tempfile::tempfile_in(folder).or_else(|_| tempfile::tempfile()).or_else(|_| in_memory())?;
        Ok(Self { file, len: 0 })
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.write_all_at(bytes, self.len).is_err() {
            self.file = self.moved()?;
            self.file.write_all_at(bytes, self.len)?;
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// What was written so far, where there is room.
    fn moved(&self) -> io::Result<File> {
        let mut to = in_memory()?;
        (&self.file).rewind()?;
        match io::copy(&mut (&self.file).take(self.len), &mut to)? == self.len {
            true => Ok(to),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(target_os = "linux")]
fn in_memory() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(File::from(memfd_create("komado-request", MemfdFlags::CLOEXEC)?))
}

#[cfg(not(target_os = "linux"))]
fn in_memory() -> io::Result<File> {
    tempfile::tempfile()
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_provider::Dialect;

    fn rules(most: u64) -> BodyLimits {
        BodyLimits { folder: "/nonexistent/窓".into(), most, patience: Duration::from_millis(50) }
    }

    fn run<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
    }

    fn read(spooled: &SpooledBody) -> Vec<u8> {
        let mut bytes = vec![0; spooled.len as usize];
        spooled.file.read_exact_at(&mut bytes, 0).unwrap();
        bytes
    }

    #[test]
    fn what_arrives_is_what_is_kept_also_where_the_folder_is_away_and_it_cannot_be_skimmed() {
        for text in [r#"{"model":"m","messages":[{"role":"user","content":"窓"}]}"#, "no JSON 窓"] {
            let skimmer = RequestScanner::new(Dialect::Chat, b"");
            let spooled = run(take(Body::from(text), Some(skimmer), &rules(1000))).unwrap();
            assert_eq!(read(&spooled), text.as_bytes());
            assert_eq!(spooled.skim.unwrap().is_ok(), text.starts_with('{'));
        }
    }

    #[test]
    fn a_body_over_the_limit_or_one_that_stops_coming_is_told() {
        assert_eq!(run(take(Body::from("12345"), None, &rules(4))).unwrap_err().status, 413);
        assert!(run(take(Body::from("1234"), None, &rules(4))).is_ok());
        let never = Body::from_stream(futures_util::stream::pending::<io::Result<bytes::Bytes>>());
        assert_eq!(run(take(never, None, &rules(4))).unwrap_err().status, 408);
    }

    #[test]
    fn a_disk_that_is_full_moves_the_file_and_loses_nothing() {
        // What is opened to be read cannot be written: as good as full.
        let mut spool = Spool { file: tempfile::tempfile().unwrap(), len: 0 };
        spool.write("小".as_bytes()).unwrap();
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&spool.file));
        let Ok(read_only) = File::open(path) else { return };
        spool.file = read_only;
        spool.write("窓".as_bytes()).unwrap();
        let mut bytes = vec![0; spool.len as usize];
        spool.file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(bytes, "小窓".as_bytes());
    }
}
