//! The task's folder, and the only code that opens what is in it.
//!
//! A path is never checked first and opened later: between the two, a link can be put in its place. The kernel itself
//! resolves it from the folder's handle and refuses each step that would lead out (`openat2` with `RESOLVE_BENEATH`); where
//! it does not know that call, the path is walked step by step, and no link is followed at all.

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// How often a path is resolved again when something in it was renamed meanwhile.
const TRIES: u32 = 16;

/// Why there is no file to be read.
pub(super) enum OpenFailure {
    /// Nothing has that name.
    Missing,
    /// In words.
    Other(String),
}

pub(super) struct WorkingFolder {
    path: PathBuf,
    /// The folder as it was named, before links were followed.
    named: PathBuf,
    handle: OwnedFd,
}

impl WorkingFolder {
    pub(super) fn open(named: &Path) -> io::Result<Self> {
        let path = named.canonicalize()?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty())?;
        Ok(Self { path, named: std::path::absolute(named)?, handle })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What a model wrote as a path, seen from the folder. An absolute path inside the folder is taken.
    pub(super) fn inside(&self, given: &str) -> Result<PathBuf, String> {
        if given.contains('\0') {
            return Err(format!("{given:?} is not a path: it has a NUL in it"));
        }
        let path = Path::new(given);
        if !path.is_absolute() {
            return Ok(plain(path));
        }
        let inside = path.strip_prefix(&self.path).or_else(|_| path.strip_prefix(&self.named));
        match inside {
            Ok(inside) => Ok(plain(inside)),
            Err(_) => Err(leads_out(path)),
        }
    }

    /// A file to be read. Pipes and devices are none: they could keep us waiting.
    pub(super) fn file(&self, path: &Path) -> Result<File, String> {
        self.regular_file(path).map_err(|closed| match closed {
            OpenFailure::Missing => words(path, Errno::NOENT),
            OpenFailure::Other(why) => why,
        })
    }

    /// The same, where it matters whether it is there at all.
    pub(super) fn regular_file(&self, path: &Path) -> Result<File, OpenFailure> {
        let file: File = match self.handle_of(path, OFlags::RDONLY | OFlags::NONBLOCK) {
            Ok(handle) => handle.into(),
            Err(Errno::NOENT) => return Err(OpenFailure::Missing),
            Err(errno) => return Err(OpenFailure::Other(words(path, errno))),
        };
        let other = |why: String| Err(OpenFailure::Other(format!("{}{why}", path.display())));
        match file.metadata() {
            Err(why) => other(format!(": {why}")),
            Ok(about) if about.is_dir() => other(" is a folder; use list".to_owned()),
            Ok(about) if !about.is_file() => other(" is not a regular file".to_owned()),
            Ok(_) => Ok(file),
        }
    }

    /// A handle of a folder.
    pub(super) fn folder(&self, path: &Path) -> Result<OwnedFd, String> {
        self.handle_of(path, OFlags::RDONLY | OFlags::DIRECTORY).map_err(|errno| words(path, errno))
    }

    /// A handle of a folder that is made when it is missing, with those above it.
    pub(super) fn made(&self, path: &Path) -> Result<OwnedFd, String> {
        let mut so_far = PathBuf::from(".");
        for part in path.components() {
            so_far.push(part);
            if !matches!(part, Component::Normal(_)) {
                continue;
            }
            match self.handle_of(&so_far, OFlags::PATH | OFlags::DIRECTORY) {
                Err(Errno::NOENT) => self.make(&so_far)?,
                other => drop(other.map_err(|errno| words(path, errno))?),
            }
        }
        self.folder(&so_far)
    }

    fn make(&self, path: &Path) -> Result<(), String> {
        let parent = self.folder(path.parent().unwrap_or(Path::new(".")))?;
        let name = path.file_name().unwrap_or_default();
        match rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(words(path, errno)),
        }
    }

    /// Where an open file really is, seen from the folder: links on the way to it are gone.
    pub(super) fn real(&self, file: &File) -> io::Result<PathBuf> {
        let real = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        real.strip_prefix(&self.path).map(Path::to_owned).map_err(io::Error::other)
    }

    fn handle_of(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            match openat2(&self.handle, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if tries < TRIES => tries += 1,
                Err(Errno::NOSYS) => return self.walked(path, flags),
                other => return other,
            }
        }
    }

    /// The same for a kernel that cannot: step by step, and no link is followed.
    fn walked(&self, path: &Path, flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let step = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut handle = openat(&self.handle, ".", step, Mode::empty())?;
        let mut parts = path.components().filter(|part| *part != Component::CurDir).peekable();
        if parts.peek().is_none() {
            return openat(&handle, ".", flags | OFlags::CLOEXEC, Mode::empty());
        }
        while let Some(part) = parts.next() {
            let Component::Normal(name) = part else { return Err(Errno::XDEV) };
            let last = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let flags = if parts.peek().is_some() { step } else { last };
            handle = openat(&handle, name, flags, Mode::empty())?;
        }
        Ok(handle)
    }
}

/// Without steps that stay where they are.
fn plain(path: &Path) -> PathBuf {
    let plain: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
    if plain.as_os_str().is_empty() { PathBuf::from(".") } else { plain }
}

fn leads_out(path: &Path) -> String {
    format!("{} leads out of the working folder; write a path inside it, such as src/main.rs", path.display())
}

/// What the kernel said about a path, in words.
pub(super) fn words(path: &Path, errno: Errno) -> String {
    let shown = path.display();
    match errno {
        Errno::XDEV => leads_out(path),
        Errno::NOENT => format!("{shown} is not there; list shows what is"),
        Errno::NOTDIR => format!("{shown} is not a folder, or goes through something that is none"),
        Errno::LOOP => format!("{shown} goes through a link that cannot be followed"),
        Errno::NAMETOOLONG => format!("the name is too long: {} bytes", path.as_os_str().len()),
        other => format!("{shown} cannot be opened: {}", io::Error::from(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Errno, OFlags, Path, WorkingFolder};
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn without_the_kernels_help_no_step_leads_out_and_no_link_is_followed() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/file"), "here").unwrap();
        symlink(outside.path(), dir.path().join("out")).unwrap();
        symlink(outside.path().join("secret"), dir.path().join("link")).unwrap();
        let folder = WorkingFolder::open(dir.path()).unwrap();
        let walked = |path: &str| folder.walked(Path::new(path), OFlags::RDONLY);
        assert!(walked("sub/file").is_ok());
        assert!(walked("./sub/./file").is_ok());
        assert!(walked(".").is_ok());
        assert_eq!(walked("sub/../sub/file").err(), Some(Errno::XDEV));
        assert_eq!(walked("../x").err(), Some(Errno::XDEV));
        assert_eq!(walked("/etc/passwd").err(), Some(Errno::XDEV));
        assert_eq!(walked("link").err(), Some(Errno::LOOP));
        assert_eq!(walked("out/secret").err(), Some(Errno::NOTDIR));
    }
}
