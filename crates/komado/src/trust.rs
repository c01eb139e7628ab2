//! What did the user consent to?
//!
//! A folder that came from elsewhere may carry settings and sessions. Komado uses neither before the user said so, once for
//! each content. What was said is kept here: one small file for each consent, in the user's data folder and never in the
//! folder it is about. This module shows nothing and asks nothing; it keeps and compares.

pub(crate) mod sessions;

use crate::clock::SystemClock;
use komado_engine::Clock;
use serde::{Deserialize, Serialize};
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Most bytes of a consent that are read.
const MOST: u64 = 1 << 16;

/// What a consent is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum About {
    /// A settings file.
    Settings,
    /// A folder of sessions.
    Sessions,
}

impl About {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Settings => "settings",
            Self::Sessions => "sessions",
        }
    }
}

/// One consent, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Consent {
    /// What it is about.
    pub(crate) about: About,
    /// Where that is, for people.
    pub(crate) path: String,
    /// When it was given.
    pub(crate) at: String,
}

/// The consents of the user.
pub(crate) struct Consents {
    /// Their folder; `None` when no data folder is known.
    folder: Option<PathBuf>,
}

impl Consents {
    /// Those of the user who runs this process. A variable with a relative path is passed over: it would lead into whichever
    /// folder is worked in.
    pub(crate) fn of_user() -> Self {
        let path = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data = path("XDG_DATA_HOME").or_else(|| path("HOME").map(|home| home.join(".local/share")));
        Self { folder: data.map(|data| data.join("komado/trust")) }
    }

    /// Whether the user consented to what is at `path` and has this digest.
    pub(crate) fn has(&self, about: About, path: &Path, digest: &str) -> bool {
        let file = self.folder.as_ref().map(|folder| folder.join(name(about, path, digest)));
        file.is_some_and(|file| file.symlink_metadata().is_ok_and(|found| found.is_file()))
    }

    /// Keeps a consent; durable when it returns.
    pub(crate) fn give(&self, about: About, path: &Path, digest: &str) -> io::Result<()> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "neither HOME nor XDG_DATA_HOME is an absolute path")
        })?;
        let named = |why: io::Error| io::Error::new(why.kind(), format!("{}: {why}", folder.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(named)?;
        let consent = Consent { about, path: path.display().to_string(), at: SystemClock.now() };
        // A temporary file is made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(named)?;
        serde_json::to_writer(&mut file, &consent)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(folder.join(name(about, path, digest))).map_err(|error| error.error)?;
        Ok(())
    }

    /// Takes back one consent.
    pub(crate) fn take_back(&self, about: About, path: &Path, digest: &str) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_file(folder.join(name(about, path, digest)));
        }
    }

    /// Takes back each consent about what is at `path`, whatever it held; says how many there were.
    pub(crate) fn revoke(&self, about: About, path: &Path) -> io::Result<usize> {
        let start = format!("{}-", place(about, path));
        let files = self.files()?;
        let own = |file: &&PathBuf| {
            file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(&start))
        };
        let files: Vec<&PathBuf> = files.iter().filter(own).collect();
        for file in &files {
            std::fs::remove_file(file)?;
        }
        Ok(files.len())
    }

    /// All of them, by path; of several about one path, the latest.
    pub(crate) fn list(&self) -> io::Result<Vec<Consent>> {
        let read = |file: &PathBuf| {
            let bytes = komado_config::regular::read(file, MOST).ok()?;
            serde_json::from_slice::<Consent>(&bytes).ok()
        };
        let mut all: Vec<Consent> = self.files()?.iter().filter_map(read).collect();
        all.sort_by(|a, b| (&a.path, a.about.name(), &b.at).cmp(&(&b.path, b.about.name(), &a.at)));
        all.dedup_by(|later, first| (&later.path, later.about) == (&first.path, first.about));
        Ok(all)
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        match std::fs::read_dir(folder) {
            Ok(entries) => entries.map(|entry| entry.map(|entry| entry.path())).collect(),
            Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(why) => Err(why),
        }
    }
}

/// The name of the file of a consent: two digests, so that no path and no content can choose it.
fn name(about: About, path: &Path, digest: &str) -> String {
    format!("{}-{}", place(about, path), blake3::hash(digest.as_bytes()).to_hex())
}

fn place(about: About, path: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(about.name().as_bytes()).update(b"\0").update(path.as_os_str().as_bytes());
    hasher.finalize().to_hex().as_str().chars().take(32).collect()
}
