//! The private home of a task's commands, with a place for temporary files: only their user's to read, and gone with its
//! owner.
//!
//! An owner that is killed cannot clean up. So it holds a lock on its home for as long as it lives, and a process that makes
//! a home first removes those of the same user that are not locked.

use super::FileAccess;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

const PREFIX: &str = "komado-home-";
const PRIVATE: u32 = 0o700;
/// How often a home is made before giving up: a process that sweeps may take one that is not held yet.
const TRIES: usize = 16;

pub(crate) struct PrivateHome {
    path: PathBuf,
    /// Removed before the lock is let go.
    _folder: TempDir,
    _lock: OwnedFd,
}

impl PrivateHome {
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
        write(&self.home())
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

impl Drop for PrivateHome {
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
        // A file system that knows no locks: a process that sweeps cannot take it there either.
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

/// The lock of a home of this user that no process holds.
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

// Whose commits those of a task are: the user's own, as their git has them. Of everything else in their `.gitconfig`,
// such as helpers that know passwords, nothing reaches the private home of commands. What a repository says goes first.

/// Where the user has none: without a name git commits nothing.
const NO_AUTHOR: (&str, &str) = ("komado", "komado@localhost");

/// Writes a `.gitconfig` with name and address into a home.
pub(super) fn write(home: &Path) -> io::Result<()> {
    let (name, email) = match (asked("user.name"), asked("user.email")) {
        (Some(name), Some(email)) => (name, email),
        _ => (NO_AUTHOR.0.to_owned(), NO_AUTHOR.1.to_owned()),
    };
    let text = format!("[user]\n\tname = {}\n\temail = {}\n", quoted(&name), quoted(&email));
    std::fs::write(home.join(".gitconfig"), text)
}

/// What the user's own git says; `None` where there is no git, or where it does not know.
fn asked(key: &str) -> Option<String> {
    let mut git = Command::new("git");
    git.args(["config", "--global", "--get", key]).stdin(Stdio::null()).stderr(Stdio::null());
    // The folder we happen to be in may be a repository, and its settings are not the user's.
    git.current_dir("/").env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env("GIT_CONFIG_NOSYSTEM", "1");
    let said = git.output().ok().filter(|said| said.status.success())?;
    let value = String::from_utf8(said.stdout).ok()?.trim().to_owned();
    (!value.is_empty()).then_some(value)
}

/// As git reads it back: in quotes, on one line.
fn quoted(value: &str) -> String {
    let one_line: String = value.chars().filter(|letter| !letter.is_control()).collect();
    format!("\"{}\"", one_line.replace('\\', "\\\\").replace('"', "\\\""))
}

// What a confined process knows of its surroundings: an environment made anew, and the places of programs.
//
// No key of ours is in it, and git is told to run nothing that a repository brings along.

/// What processes may know of our environment. No key is ever in these.
const KNOWN: &[&str] = &["LANG", "LC_ALL", "TZ", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "GOROOT"];

/// Settings of git that win over those of a repository: it runs no hooks, monitors, pagers, editors and helpers of theirs.
/// A command line (`git -c …`) still wins over these.
const GIT: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.sshCommand", "ssh"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("core.askPass", "true"),
    ("sequence.editor", "true"),
    ("credential.helper", ""),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gpg.program", "gpg"),
    ("protocol.ext.allow", "never"),
];

/// The surroundings of this process, as far as confined ones may know them.
pub(crate) struct Environment {
    path: OsString,
    home: Option<PathBuf>,
    rustup: Option<PathBuf>,
    known: Vec<(&'static str, OsString)>,
}

impl Environment {
    pub(crate) fn here() -> Self {
        let var = |name: &'static str| std::env::var_os(name).filter(|value| !value.is_empty());
        let home = var("HOME").map(PathBuf::from);
        let rustup = var("RUSTUP_HOME").map(PathBuf::from).or_else(|| Some(home.as_ref()?.join(".rustup")));
        let mut known: Vec<_> = KNOWN.iter().filter_map(|name| Some((*name, real(var(name)?)))).collect();
        if !known.iter().any(|(name, _)| *name == "LANG") {
            known.push(("LANG", "C.UTF-8".into()));
        }
        Self {
            path: var("PATH").map_or_else(|| "/usr/local/bin:/usr/bin:/bin".into(), |path| absolute(&path)),
            rustup: rustup.and_then(|folder| folder.canonicalize().ok()).filter(|folder| folder.is_dir()),
            home,
            known,
        }
    }

    pub(crate) fn shell(&self) -> &'static str {
        if std::env::split_paths(&self.path).any(|folder| folder.join("bash").is_file()) {
            "bash"
        } else {
            "sh"
        }
    }

    /// The home folder of our own user.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// Folders of a program that the settings name: where it is, where a link leads to, and the same of the interpreter that
    /// its first line names. So what was installed with its own interpreter runs, wherever that is.
    pub(crate) fn programs_of(&self, program: &str) -> Vec<PathBuf> {
        let path = match program.contains('/') {
            true => Some(PathBuf::from(program)),
            false => std::env::split_paths(&self.path)
                .map(|folder| folder.join(program))
                .find(|path| path.is_file()),
        };
        let Some(path) = path.filter(|path| path.is_absolute()) else { return Vec::new() };
        let interpreter = interpreter(&path);
        let files = [Some(path), interpreter].into_iter().flatten();
        let real = files.flat_map(|file| [file.canonicalize().ok(), Some(file)]).flatten();
        real.filter_map(|file| file.parent().map(Path::to_owned)).collect()
    }

    /// What may be reached by a process that writes to `write` and the private home.
    pub(crate) fn reach(&self, mut write: Vec<PathBuf>, home: &PrivateHome) -> FileAccess {
        write.extend([home.home(), home.temporary()]);
        let told = |name: &str| self.known.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
        let tools = ["JAVA_HOME", "GOROOT"].iter().filter_map(|name| told(name)).map(PathBuf::from);
        FileAccess {
            write,
            programs: std::env::split_paths(&self.path).collect(),
            read: self.rustup.iter().cloned().chain(tools).filter(|folder| Path::is_dir(folder)).collect(),
            home: self.home.clone(),
            ..FileAccess::default()
        }
    }

    /// All variables of a process that has the private home.
    pub(crate) fn variables(self, home: &PrivateHome) -> Vec<(String, OsString)> {
        let known = self.known.into_iter().map(|(name, value)| (name.to_owned(), value));
        let own = [
            ("PATH", self.path),
            ("TERM", "dumb".into()),
            ("HOME", home.home().into()),
            ("TMPDIR", home.temporary().into()),
        ];
        let rustup = self.rustup.map(|rustup| ("RUSTUP_HOME".to_owned(), rustup.into()));
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        known.chain(own).chain(rustup).chain(git()).collect()
    }
}

fn git() -> impl Iterator<Item = (String, OsString)> {
    let settings = GIT.iter().enumerate().flat_map(|(at, (key, value))| {
        [
            (format!("GIT_CONFIG_KEY_{at}"), OsString::from(key)),
            (format!("GIT_CONFIG_VALUE_{at}"), OsString::from(value)),
        ]
    });
    settings.chain([("GIT_CONFIG_COUNT".to_owned(), GIT.len().to_string().into())])
}

/// The interpreter that the first line of a script names.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut start = [0; 256];
    let length = std::fs::File::open(script).and_then(|mut file| file.read(&mut start)).ok()?;
    let line = start[..length].split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let word = std::str::from_utf8(line).ok()?.split_whitespace().next()?;
    Some(PathBuf::from(word)).filter(|path| path.is_absolute())
}

/// The folders of `PATH` that are the same from everywhere: one that is not absolute would be a folder of the repository.
/// Links on the way to them are not there inside.
fn absolute(path: &OsString) -> OsString {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    std::env::join_paths(folders.map(|folder| folder.canonicalize().unwrap_or(folder))).unwrap_or_default()
}

/// The real path of a folder that a variable names; any other value as it is.
fn real(value: OsString) -> OsString {
    let path = Path::new(&value);
    path.canonicalize().ok().filter(|_| path.is_absolute()).map_or(value, PathBuf::into_os_string)
}

#[cfg(test)]
mod tests {
    use super::{PREFIX, PrivateHome};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_home_is_private_and_gone_with_its_owner() {
        let place = tempfile::tempdir().unwrap();
        let home = PrivateHome::new_in(place.path()).unwrap();
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
        let living = PrivateHome::new_in(place.path()).unwrap();
        assert!(!at(&left).exists());
        let next = PrivateHome::new_in(place.path()).unwrap();
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
                        let home = PrivateHome::new_in(place.path()).unwrap();
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
        let home = PrivateHome::new_in(place.path()).unwrap();
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

#[cfg(test)]
mod identity_tests {
    use super::quoted;

    #[test]
    fn a_name_stays_one_value_whatever_is_in_it() {
        assert_eq!(quoted("窓 # ; \"a\\b\"\n[core]"), r#""窓 # ; \"a\\b\"[core]""#);
    }
}

#[cfg(test)]
mod environment_tests {
    use super::{Environment, absolute};
    use std::os::unix::fs::symlink;

    #[test]
    fn a_program_brings_its_interpreter_and_what_links_lead_to() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["bin", "tool/bin", "python/bin"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("python/bin/python3"), "").unwrap();
        symlink(root.join("python/bin/python3"), root.join("tool/bin/python")).unwrap();
        std::fs::write(root.join("tool/bin/server"), format!("#!{}/tool/bin/python -s\nx\n", root.display()))
            .unwrap();
        symlink(root.join("tool/bin/server"), root.join("bin/server")).unwrap();
        let found = Environment::here().programs_of(root.join("bin/server").to_str().unwrap());
        assert_eq!(found, ["tool/bin", "bin", "python/bin", "tool/bin"].map(|folder| root.join(folder)));
        assert!(Environment::here().programs_of("./server").is_empty());
    }

    #[test]
    fn a_relative_folder_of_programs_is_left_out() {
        assert_eq!(absolute(&"/usr/bin:.::bin:/gone/bin".into()), "/usr/bin:/gone/bin");
    }
}
