//! The private home of a task's commands, with a place for temporary files: only their user's to read, and gone with its
//! owner.
//!
//! An owner that is killed cannot clean up. So it holds a lock on its home for as long as it lives, and a process that makes
//! a home first removes those of the same user that are not locked.

use super::identity;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const PREFIX: &str = "komado-home-";
const PRIVATE: u32 = 0o700;
/// How often a home is made before giving up: somebody who sweeps may take one that is not held yet.
const TRIES: usize = 16;

pub(crate) struct Home {
    path: PathBuf,
    /// Removed before the lock is let go.
    _folder: TempDir,
    _lock: OwnedFd,
}

impl Home {
    pub(crate) fn new() -> io::Result<Self> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(place: &Path) -> io::Result<Self> {
        sweep(place);
        for _ in 0..TRIES {
            let mut named = tempfile::Builder::new();
            let folder =
                named.prefix(PREFIX).permissions(Permissions::from_mode(PRIVATE)).tempdir_in(place)?;
            if let Some(lock) = held(folder.path())? {
                let home = Self { path: folder.path().canonicalize()?, _folder: folder, _lock: lock };
                home.furnish()?;
                return Ok(home);
            }
        }
        Err(io::Error::other(format!("others remove what is made in {}", place.display())))
    }

    fn furnish(&self) -> io::Result<()> {
        for folder in [self.home(), self.temporary()] {
            DirBuilder::new().mode(PRIVATE).create(folder)?;
        }
        identity::write(&self.home())
    }

    /// What `HOME` is.
    pub(crate) fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// What `TMPDIR` is.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = remove(&self.path);
    }
}

/// Removes a folder with all that is in it. Some tools close the folders of what they keep against removal.
fn remove(folder: &Path) -> io::Result<()> {
    fs::remove_dir_all(folder)
        .or_else(|_| {
            let mut closed = vec![folder.to_owned()];
            while let Some(folder) = closed.pop() {
                let _ = fs::set_permissions(&folder, Permissions::from_mode(PRIVATE));
                let inside = fs::read_dir(folder).into_iter().flatten().flatten();
                let folders = inside.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
                closed.extend(folders.map(|entry| entry.path()));
            }
            fs::remove_dir_all(folder)
        })
        .or_else(|_| {
            // Folders nested so deep that their handles or paths run out; this program has its ways with them.
            let mut removed = Command::new("rm");
            removed
                .args(["-rf", "--"])
                .arg(folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if removed.status()?.success() { Ok(()) } else { Err(io::Error::other("it cannot be removed")) }
        })
}

/// The lock of one's own home; `None` when it was swept away in between.
fn held(folder: &Path) -> io::Result<Option<OwnedFd>> {
    let taken = open(folder)
        .and_then(|handle| flock(&handle, FlockOperation::NonBlockingLockShared).map(|()| handle));
    match taken {
        Ok(handle) => Ok(folder.is_dir().then_some(handle)),
        Err(Errno::NOENT | Errno::WOULDBLOCK) => Ok(None),
        // A file system that knows no locks: nobody who sweeps can take it there either.
        Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(Some(open(folder)?)),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes homes whose owner is gone. One that cannot be removed is left to the next.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_home = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        if is_home && let Some(_lock) = left_behind(&entry.path()) {
            let _ = remove(&entry.path());
        }
    }
}

/// The lock of a home of this user that nobody holds.
fn left_behind(folder: &Path) -> Option<OwnedFd> {
    let handle = open(folder).ok()?;
    let is_ours = fstat(&handle).ok()?.st_uid == rustix::process::geteuid().as_raw();
    (is_ours && flock(&handle, FlockOperation::NonBlockingLockExclusive).is_ok()).then_some(handle)
}

/// A folder itself, never what a link leads to.
fn open(folder: &Path) -> Result<OwnedFd, Errno> {
    openat(
        CWD,
        folder,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

#[cfg(test)]
mod tests {
    use super::{Home, PREFIX};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_home_is_private_and_gone_with_its_owner() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::new_in(place.path()).unwrap();
        for folder in [home.path.clone(), home.home(), home.temporary()] {
            assert_eq!(mode(&folder), 0o700, "{}", folder.display());
        }
        assert!(home.home().join(".gitconfig").is_file());
        drop(home);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_dead_owner_left_is_removed_and_nothing_else_is() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let (left, link, file) = (format!("{PREFIX}a"), format!("{PREFIX}b"), format!("{PREFIX}c"));
        fs::create_dir_all(at(&left).join("home/deep")).unwrap();
        fs::create_dir_all(at("other/kept")).unwrap();
        symlink(at("other"), at(&link)).unwrap();
        symlink(at("other"), at(&left).join("home/link")).unwrap();
        fs::write(at(&file), "x").unwrap();
        let living = Home::new_in(place.path()).unwrap();
        assert!(!at(&left).exists());
        let next = Home::new_in(place.path()).unwrap();
        for kept in [&living.home(), &next.home(), &at("other/kept"), &at(&link), &at(&file)] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn many_that_make_homes_at_once_take_none_from_one_another() {
        let place = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let home = Home::new_in(place.path()).unwrap();
                        assert!(home.home().join(".gitconfig").is_file());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_closed_against_removal_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let home = Home::new_in(place.path()).unwrap();
        let closed = home.home().join("kept/窓");
        fs::create_dir_all(&closed).unwrap();
        fs::write(closed.join("file"), "").unwrap();
        for folder in [&closed, closed.parent().unwrap()] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o555)).unwrap();
        }
        drop(home);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
