//! What did the user consent to?
//!
//! A folder that came from elsewhere may carry settings and sessions. Komado uses neither before the user said so, once for
//! each content. What was said is kept here: one small file for each consent, in the user's data folder and never in the
//! folder it is about. This module shows nothing and asks nothing; it keeps and compares.

use crate::app::KomadoClock;
use komado_core::notation::tamed;
use komado_engine::Clock;
use komado_ops::{OpFault, OpResult};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, Metadata};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Most bytes of a consent that are read.
const MOST: u64 = 1 << 16;

/// What a consent is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConsentAbout {
    /// A settings file.
    Settings,
    /// A folder of sessions.
    Sessions,
}

impl ConsentAbout {
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
    pub(crate) about: ConsentAbout,
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
    pub(crate) fn has(&self, about: ConsentAbout, path: &Path, digest: &str) -> bool {
        let file = self.folder.as_ref().map(|folder| folder.join(name(about, path, digest)));
        file.is_some_and(|file| file.symlink_metadata().is_ok_and(|found| found.is_file()))
    }

    /// Keeps a consent; durable when it returns.
    pub(crate) fn give(&self, about: ConsentAbout, path: &Path, digest: &str) -> io::Result<()> {
        let folder = self.folder.as_ref().ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, "neither HOME nor XDG_DATA_HOME is an absolute path")
        })?;
        let named = |why: io::Error| io::Error::new(why.kind(), format!("{}: {why}", folder.display()));
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(named)?;
        let consent = Consent { about, path: path.display().to_string(), at: KomadoClock.now() };
        // A temporary file is made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(named)?;
        serde_json::to_writer(&mut file, &consent)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(folder.join(name(about, path, digest))).map_err(|error| error.error)?;
        Ok(())
    }

    /// Takes back one consent.
    pub(crate) fn take_back(&self, about: ConsentAbout, path: &Path, digest: &str) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_file(folder.join(name(about, path, digest)));
        }
    }

    /// Takes back each consent about what is at `path`, whatever it held; says how many there were.
    pub(crate) fn revoke(&self, about: ConsentAbout, path: &Path) -> io::Result<usize> {
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
fn name(about: ConsentAbout, path: &Path, digest: &str) -> String {
    format!("{}-{}", place(about, path), blake3::hash(digest.as_bytes()).to_hex())
}

fn place(about: ConsentAbout, path: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(about.name().as_bytes()).update(b"\0").update(path.as_os_str().as_bytes());
    hasher.finalize().to_hex().as_str().chars().take(32).collect()
}

// ---- folders of sessions ----
//
// A folder `contexts` that lies in the working folder may have come with it, with sessions, keys and a table of models
// that another person wrote. When Komado makes the folder it puts a file with a random text into it, and keeps the digest
// of that text with the user's consents: no other person can know the text beforehand. A device and an inode would not do:
// both may be given to another folder later.

/// The file that tells a folder of the user's own.
const MARK: &str = ".trust";
/// Most bytes of it that are read.
const MARK_BYTES: u64 = 100;

/// A path as people see it: nothing in it moves a terminal's cursor.
pub(crate) fn shown(path: &Path) -> String {
    tamed(&path.display().to_string())
}

/// What a folder is found to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FolderTrust {
    /// There is nothing, or nothing that can be looked at.
    Absent,
    /// The user's, and empty.
    Empty,
    /// One that the user consented to.
    Own,
    /// One that the user did not consent to.
    Strange,
    /// A link, wherever it leads, or no folder.
    Link,
}

/// What is at `path`.
pub(crate) fn look(path: &Path, consents: &Consents) -> FolderTrust {
    let Ok(found) = path.symlink_metadata() else { return FolderTrust::Absent };
    if !found.is_dir() {
        return FolderTrust::Link;
    }
    let is_marked = || mark(path).is_some_and(|mark| consents.has(ConsentAbout::Sessions, path, &mark));
    if is_marked() {
        return FolderTrust::Own;
    }
    if is_own(&found) && is_empty(path) {
        return FolderTrust::Empty;
    }
    // Another process may have marked and filled it since the first look.
    if is_marked() { FolderTrust::Own } else { FolderTrust::Strange }
}

/// Says what is to be done about a folder that was found and may not be used.
pub(crate) fn check(path: &Path, consents: &Consents) -> OpResult {
    let shown = shown(path);
    match look(path, consents) {
        FolderTrust::Strange => Err(OpFault::usage(format!(
            "{shown} was found in this folder and is not used without your consent: it was not made by you with komado, and may \
             bring sessions, keys and models of others; `komado admin trust` shows it and gives consent, --base-dir PATH names a \
             folder to use"
        ))),
        FolderTrust::Link => Err(OpFault::usage(format!(
            "{shown} is a link or a file and not a folder: name the folder that is meant with --base-dir PATH, or set \
             context_storage.base_dir or KOMADO_BASE_DIR"
        ))),
        FolderTrust::Absent | FolderTrust::Empty | FolderTrust::Own => Ok(()),
    }
}

/// Makes the folder the user's own, unless it is: it is made if need be, marked, and the consent is kept. A folder that
/// cannot be written is left to the store, which says so.
pub(crate) fn claim(path: &Path, consents: &Consents) -> OpResult {
    check(path, consents)?;
    if look(path, consents) == FolderTrust::Own {
        return Ok(());
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
        Err(_) => return Ok(()),
    }
    match trust(path, consents) {
        Err(TrustError::Mark(why)) if cannot_write(&why) => Ok(()),
        Err(TrustError::Mark(why)) => Err(unmarked(path, &why)),
        Err(TrustError::Consent(why)) => {
            // A folder that is left without a mark would be refused next time. One that is not empty stays.
            let _ = std::fs::remove_dir(path);
            Err(OpFault::usage(format!(
                "{}: that this folder is yours cannot be kept ({why}), so it would be refused next time: name it with \
                 --base-dir PATH or KOMADO_BASE_DIR, or set HOME or XDG_DATA_HOME to a folder that can be written",
                shown(path)
            )))
        }
        Ok(()) => Ok(()),
    }
}

/// The error for a folder that could not be marked: what was kept in it would be refused next time.
pub(crate) fn unmarked(path: &Path, why: &io::Error) -> OpFault {
    OpFault::usage(format!(
        "{}: it cannot be marked as yours: {why}; or name the folder with --base-dir PATH",
        shown(path)
    ))
}

/// True where nothing can be put into a folder at all.
fn cannot_write(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// Why a folder could not be trusted.
#[derive(Debug)]
pub(crate) enum TrustError {
    /// It could not be marked.
    Mark(io::Error),
    /// The consent could not be kept.
    Consent(io::Error),
}

/// Marks a folder and keeps the consent. The consent comes first: a process that finds the mark finds it, too.
pub(crate) fn trust(path: &Path, consents: &Consents) -> Result<(), TrustError> {
    let text = uuid::Uuid::new_v4().simple().to_string();
    consents.give(ConsentAbout::Sessions, path, &text).map_err(TrustError::Consent)?;
    put(path, &text).map_err(|why| {
        consents.take_back(ConsentAbout::Sessions, path, &text);
        TrustError::Mark(why)
    })
}

/// Puts the mark in place of what has its name, a link included.
fn put(folder: &Path, text: &str) -> io::Result<()> {
    let mark = folder.join(MARK);
    if mark.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        let shown = shown(&mark);
        let why = format!("{shown} is a folder, where a file belongs: look into it, remove it and try again");
        return Err(io::Error::new(io::ErrorKind::IsADirectory, why));
    }
    let mut file = tempfile::Builder::new().prefix(&format!("{MARK}-")).tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(mark).map_err(|error| error.error)?;
    Ok(())
}

fn mark(folder: &Path) -> Option<String> {
    let path = folder.join(MARK);
    path.symlink_metadata().ok().filter(Metadata::is_file)?;
    String::from_utf8(komado_config::regular::read(&path, MARK_BYTES).ok()?).ok()
}

/// True when nothing is in it but marks: two processes that begin at once may both put one. A folder or a link with such a
/// name is none.
fn is_empty(folder: &Path) -> bool {
    let is_mark = |entry: io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name();
            let rest = name.to_str().and_then(|name| name.strip_prefix(MARK));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                && entry.file_type().is_ok_and(|kind| kind.is_file())
        })
    };
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.all(is_mark))
}

/// One that another user owns may be filled by them at any time.
fn is_own(found: &Metadata) -> bool {
    found.uid() == rustix::process::geteuid().as_raw()
}
