//! Runs a command shut in: the kernel lets it and all that it starts reach one folder, and programs.
//!
//! Landlock is the wall: no rights are needed for it and nothing inside can lift it, root or not. What may be read
//! besides the folder is named here, place by place: programs and what they need, and of `/etc` only what holds no secret.
//! A home folder is never opened as a whole, and neither is a place that holds what is to be hidden. Not walled off: the
//! network, and sockets that have a name in the file system. We ourselves stay outside, as its keeper (see `keeper`).

use super::keeper;
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// What cannot be left out: the first kernel interface that also guards truncating (Linux 6.2).
const NEEDED: ABI = ABI::V3;
/// What is taken when it is there.
const WANTED: ABI = ABI::V6;

/// Programs and their libraries.
const PROGRAMS: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Read, never written: the system's settings that programs need, and what the kernel tells about itself. The kernel lets
/// nobody inside read another's memory or environment in `/proc`.
const SETTINGS: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/perl",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
];

/// Devices that are harmless to write to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// The argument for no wall at all.
const EVERYTHING: &str = "--everything";
/// Where a process says how soon it goes when memory runs out.
const GOES_FIRST: &str = "/proc/self/oom_score_adj";
/// A file that a command writes ends here.
const LARGEST_FILE: u64 = 4 << 30;
/// As many processes of this user may there be, so that a command that starts itself again and again comes to an end.
const PROCESSES: u64 = 8_192;

/// What root keeps inside: it may handle files of any owner, but not the machine.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// What may be reached.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reach {
    /// Read and written, with everything below.
    pub write: Vec<PathBuf>,
    /// Read, with everything below.
    pub read: Vec<PathBuf>,
    /// Folders of programs, as in `PATH`: read, with the trees they belong to.
    pub programs: Vec<PathBuf>,
    /// Never reached, whatever the others say.
    pub hide: Vec<PathBuf>,
    /// A home folder that is not opened as a whole.
    pub home: Option<PathBuf>,
    /// True for no wall at all.
    pub everything: bool,
}

impl Reach {
    /// As arguments of a program that ends up in [`run`], with the `--` before the command.
    pub fn words(&self) -> Vec<OsString> {
        let places = [
            ("--folder", &self.write),
            ("--read", &self.read),
            ("--programs", &self.programs),
            ("--hide", &self.hide),
        ];
        let all = places.iter().flat_map(|(name, paths)| paths.iter().map(|path| (*name, path)));
        let all = all.chain(self.home.iter().map(|home| ("--home", home)));
        let words = all.flat_map(|(name, path)| [OsString::from(name), path.clone().into_os_string()]);
        let everything = self.everything.then(|| OsString::from(EVERYTHING));
        words.chain(everything).chain([OsString::from("--")]).collect()
    }

    /// The arguments understood, and the command behind them.
    pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<(Self, Vec<OsString>), Error> {
        let (mut reach, mut words) = (Self::default(), words.into_iter());
        while let Some(word) = words.next() {
            if word == "--" {
                return Ok((reach, words.collect()));
            }
            if word == EVERYTHING {
                reach.everything = true;
                continue;
            }
            let lacks = || Error::Words(word.to_string_lossy().into_owned());
            let path = PathBuf::from(words.next().ok_or_else(lacks)?);
            match word.to_str() {
                Some("--folder") => reach.write.push(path),
                Some("--read") => reach.read.push(path),
                Some("--programs") => reach.programs.push(path),
                Some("--hide") => reach.hide.push(path),
                Some("--home") => reach.home = Some(path),
                _ => return Err(lacks()),
            }
        }
        Err(Error::Words("the end".to_owned()))
    }
}

/// Why a process could not be shut in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel cannot.
    #[error(
        "this kernel cannot keep a command inside its folder ({0}): Landlock of Linux 6.2 or later is needed; \
         set `tools.sandbox: off` to run commands without it, or take shell out of tools.enabled"
    )]
    NoLandlock(String),
    /// What is to be hidden lies in what is to be written.
    #[error("{hidden} must not be reached by commands, but lies in {folder}: put one of them elsewhere")]
    Exposed {
        /// What is to be hidden.
        hidden: String,
        /// What would show it.
        folder: String,
    },
    /// Arguments that mean nothing.
    #[error(
        "what to confine is not clear at {0}: --folder DIR, --read DIR, --programs DIR, --hide DIR, --home DIR and --everything, then -- COMMAND"
    )]
    Words(String),
    /// The command does not start.
    #[error("{0} cannot be started: {1}")]
    Start(String, String),
    /// A folder that cannot be opened.
    #[error("{0} cannot be opened: {1}")]
    Folder(String, String),
}

/// Runs the command behind `words`, shut in as they say, until it ends or our input does. Nobody it started is left then.
/// Gives the code to end with, which for a signal is 128 and its number.
pub fn run(words: impl IntoIterator<Item = OsString>) -> Result<u8, Error> {
    let (reach, words) = Reach::parse(words)?;
    let (program, rest) = words.split_first().ok_or_else(|| Error::Words("the end".to_owned()))?;
    let failed = |why: io::Error| Error::Start(program.to_string_lossy().into_owned(), why.to_string());
    let mut command = Command::new(program);
    // A group of its own, so that it can signal all of it without signalling us.
    command.args(rest).stdin(Stdio::null()).process_group(0);
    keeper::adopt().map_err(failed)?;
    let child = started(&reach, || command.spawn().map_err(failed))?;
    keeper::keep(&child).map_err(failed)
}

/// Starts a command from a thread that is shut in and then ends. Walls are put around a thread and what it starts: so
/// nothing inside can reach us, who are to end it.
fn started(reach: &Reach, start: impl FnOnce() -> Result<Child, Error> + Send) -> Result<Child, Error> {
    if reach.everything {
        return start();
    }
    let before = std::fs::read_to_string(GOES_FIRST);
    let inside = || enter(reach).and_then(|()| start());
    let started = std::thread::scope(|scope| scope.spawn(inside).join());
    if let Ok(before) = before {
        let _ = std::fs::write(GOES_FIRST, before);
    }
    started.unwrap_or_else(|_| Err(Error::Start("the command".to_owned(), "its thread broke off".to_owned())))
}

/// Shuts this thread in, for good. What it starts is inside, too.
fn enter(reach: &Reach) -> Result<(), Error> {
    bound();
    let rules = ruleset().map_err(|error| Error::NoLandlock(error.to_string()))?;
    let rules = written(rules, reach)?;
    let rules = looked_at(rules, reach).map_err(|error| Error::NoLandlock(error.to_string()))?;
    let status = rules.restrict_self().map_err(|error| Error::NoLandlock(error.to_string()))?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err(Error::NoLandlock("it is switched off".to_owned())),
        _ => Ok(()),
    }
}

/// Bounds that hold inside. A limit that cannot be set is no reason not to run: the wall is another thing.
fn bound() {
    let lower = |resource, most: u64| {
        let now = getrlimit(resource);
        let most = |limit: Option<u64>| Some(limit.unwrap_or(u64::MAX).min(most));
        let _ = setrlimit(resource, Rlimit { current: most(now.current), maximum: most(now.maximum) });
    };
    lower(Resource::Core, 0);
    lower(Resource::Fsize, LARGEST_FILE);
    lower(Resource::Nproc, PROCESSES);
    for right in CapabilitySet::all().difference(KEPT).iter() {
        // Whoever is not root has none to give up.
        let _ = remove_capability_from_bounding_set(right);
    }
    // When memory runs out, the command goes before whoever runs it.
    let _ = std::fs::write(GOES_FIRST, "1000");
}

fn ruleset() -> Result<RulesetCreated, landlock::RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::AbstractUnixSocket)?
        .scope(Scope::Signal)?
        .create()
}

fn written(mut rules: RulesetCreated, reach: &Reach) -> Result<RulesetCreated, Error> {
    for folder in &reach.write {
        let bad = |why: String| Error::Folder(folder.display().to_string(), why);
        let folder = folder.canonicalize().map_err(|error| bad(error.to_string()))?;
        if let Some(hidden) = shows(&folder, &reach.hide) {
            return Err(Error::Exposed {
                hidden: hidden.display().to_string(),
                folder: folder.display().to_string(),
            });
        }
        let handle = PathFd::new(&folder).map_err(|error| bad(error.to_string()))?;
        let rule = PathBeneath::new(handle, AccessFs::from_all(WANTED) & !AccessFs::IoctlDev);
        rules = rules.add_rule(rule).map_err(|error| bad(error.to_string()))?;
    }
    Ok(rules)
}

fn looked_at(rules: RulesetCreated, reach: &Reach) -> Result<RulesetCreated, landlock::RulesetError> {
    let read = AccessFs::from_read(WANTED);
    let named = PROGRAMS.iter().chain(SETTINGS).map(PathBuf::from);
    let programs = reach.programs.iter().flat_map(|folder| prefix(folder, reach.home.as_deref()));
    let places = named
        .chain(reach.read.iter().cloned())
        .chain(programs)
        .filter(|place| shows(place, &reach.hide).is_none());
    let devices = AccessFs::ReadFile | AccessFs::WriteFile;
    rules
        .add_rules(landlock::path_beneath_rules(places, read))?
        .add_rules(landlock::path_beneath_rules(DEVICES, devices))
}

/// The hidden place that would be reached with `place`.
fn shows<'a>(place: &Path, hide: &'a [PathBuf]) -> Option<&'a Path> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let place = real(place);
    hide.iter().find(|hidden| real(hidden).starts_with(&place)).map(PathBuf::as_path)
}

/// A folder of programs, and the tree they were put into: `…/bin` goes with `…/lib`. Not when that tree holds a home, or
/// is one of those that keep secrets beside their programs.
fn prefix(folder: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let Ok(folder) = folder.canonicalize() else { return Vec::new() };
    let holds_home =
        |place: &Path| home.is_some_and(|home| home.starts_with(place)) || place == Path::new("/");
    let ends_in = |path: &Path, names: &[&str]| {
        path.file_name().is_some_and(|last| names.iter().any(|name| last == *name))
    };
    if holds_home(&folder) {
        return Vec::new();
    }
    let tree = folder.parent().filter(|tree| {
        ends_in(&folder, &["bin", "sbin", "shims"])
            && !holds_home(tree)
            && !ends_in(tree, &[".cargo", ".local", ".config"])
    });
    tree.map(Path::to_owned).into_iter().chain([folder.clone()]).collect()
}

#[cfg(test)]
mod tests {
    use super::{Reach, prefix, shows};
    use std::ffi::OsString;
    use std::fs;
    use std::path::PathBuf;

    #[test]
    fn programs_bring_their_tree_but_never_a_home_or_a_folder_of_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home");
        for folder in ["bin", ".cargo/bin", ".local/bin", "node/bin", "tools"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let of = |folder: &str| prefix(&home.join(folder), Some(&home));
        assert_eq!(of("node/bin"), [home.join("node"), home.join("node/bin")]);
        assert_eq!(of("bin"), [home.join("bin")]);
        assert_eq!(of(".cargo/bin"), [home.join(".cargo/bin")]);
        assert_eq!(of(".local/bin"), [home.join(".local/bin")]);
        assert_eq!(of("tools"), [home.join("tools")]);
        assert_eq!(of("."), Vec::<PathBuf>::new());
        assert_eq!(of("../.."), Vec::<PathBuf>::new());
        assert_eq!(of("missing"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_place_that_holds_what_is_hidden_is_found_also_through_links() {
        let dir = tempfile::tempdir().unwrap();
        let hidden = dir.path().join("tree/sessions");
        fs::create_dir_all(&hidden).unwrap();
        std::os::unix::fs::symlink(dir.path().join("tree"), dir.path().join("link")).unwrap();
        let hide = [hidden.clone()];
        assert_eq!(shows(&dir.path().join("link"), &hide), Some(hidden.as_path()));
        assert_eq!(shows(&hidden, &hide), Some(hidden.as_path()));
        assert_eq!(shows(&dir.path().join("tree/other"), &hide), None);
    }

    #[test]
    fn what_may_be_reached_goes_through_arguments_unchanged() {
        let reach = Reach {
            write: vec!["/a b".into(), "/窓".into()],
            read: vec!["/r".into()],
            programs: vec!["/usr/bin".into()],
            hide: vec!["/h".into()],
            home: Some("/home".into()),
            everything: true,
        };
        let command = ["sh", "-c", "--"].map(OsString::from);
        let words = reach.words().into_iter().chain(command.clone());
        assert_eq!(Reach::parse(words).unwrap(), (reach, command.to_vec()));
        for bad in [vec!["--folder"], vec!["--other", "x", "--", "ls"], vec!["--folder", "x"]] {
            assert!(Reach::parse(bad.into_iter().map(OsString::from)).is_err());
        }
    }
}
