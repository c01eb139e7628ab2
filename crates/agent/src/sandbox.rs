//! Runs what a task starts (commands of the shell tool, MCP servers) so that it reaches one folder, programs, and the hosts
//! that the settings list.
//!
//! Two processes do it. The keeper ([`run`] as it is first called) stays outside: it starts the second, serves the proxy,
//! enforces limits and ends all that was started. The second (`enter`) shuts itself in and becomes the command. The kernel
//! does the work, in layers that do not rely on each other:
//!
//! - Landlock (`files`): which files can be opened. No rights are needed for it, and nothing inside can lift it.
//! - Namespaces (`namespaces`): a network of its own with nothing but its loopback, and a view of the file system in which
//!   the places of sockets are empty.
//! - Seccomp (`calls`): which system calls are refused; where there are no namespaces, no sockets can be made.

mod calls;
mod files;
mod git;
mod home;
mod keeper;
mod namespaces;
mod network;
mod proxy;

pub use git::{GitChanges, GitSnapshot};
pub(crate) use home::{Environment, PrivateHome};
pub use keeper::ProcessLimits;
pub(crate) use keeper::{PATIENCE, Unlinked, family};
pub use network::{AllowedHost, BadHost, Network};

use calls::{Guarded, filter};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Whether processes are kept inside their folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Sandbox {
    /// By the kernel; where it cannot, they do not run.
    #[default]
    Required,
    /// Not at all.
    Off,
}

/// How the processes of a task are confined.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Confinement {
    /// The program, with its first arguments, that ends up in [`run`]. Without one nothing can be confined, and only a
    /// process's own group ends with it.
    pub launcher: Vec<OsString>,
    /// Whether they are.
    pub sandbox: Sandbox,
    /// Which hosts they reach.
    pub network: Network,
    /// What they may take.
    pub limits: ProcessLimits,
    /// Never reached, whatever else is.
    pub hide: Vec<PathBuf>,
}

impl Confinement {
    /// The words that run a command: the command itself where there is no launcher.
    pub(crate) fn words(
        &self,
        reach: FileAccess,
        input: CommandInput,
        command: impl IntoIterator<Item = OsString>,
    ) -> Result<Vec<OsString>, Error> {
        if self.sandbox == Sandbox::Off && self.network != Network::Open {
            return Err(Error::OpenUnsaid);
        }
        if self.launcher.is_empty() {
            return match self.sandbox {
                Sandbox::Off => Ok(command.into_iter().collect()),
                Sandbox::Required => Err(Error::NoLauncher),
            };
        }
        let job = CommandSpec {
            reach: FileAccess { hide: self.hide.clone(), everything: self.sandbox == Sandbox::Off, ..reach },
            network: self.network.clone(),
            limits: self.limits,
            input,
        };
        Ok(self.launcher.iter().cloned().chain(job.words()).chain(command).collect())
    }
}

/// Which files may be reached.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct FileAccess {
    /// Read and written, with everything below. The first is where the command starts.
    pub(crate) write: Vec<PathBuf>,
    /// Read, with everything below.
    pub(crate) read: Vec<PathBuf>,
    /// Folders of programs, as in `PATH`: read, with the trees they belong to.
    pub(crate) programs: Vec<PathBuf>,
    /// Never reached, whatever the others say.
    pub(crate) hide: Vec<PathBuf>,
    /// A home folder that is not opened as a whole.
    pub(crate) home: Option<PathBuf>,
    /// True for all files.
    pub(crate) everything: bool,
}

/// What a command reads as its standard input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum CommandInput {
    /// Nothing. The keeper's own input is the tie to the process that wants the command: when it closes, the command ends.
    #[default]
    Empty,
    /// What the keeper reads. When that ends, the command has a moment to leave by itself.
    Relayed,
}

/// One command to be run: everything but the command itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct CommandSpec {
    reach: FileAccess,
    network: Network,
    limits: ProcessLimits,
    input: CommandInput,
}

/// The argument of the second process.
const INSIDE: &str = "--inside";
const EVERYTHING: &str = "--everything";
const RELAY: &str = "--relay-input";

impl CommandSpec {
    /// As arguments, with the `--` before the command.
    fn words(&self) -> Vec<OsString> {
        let reach = &self.reach;
        let places = [
            ("--folder", &reach.write),
            ("--read", &reach.read),
            ("--programs", &reach.programs),
            ("--hide", &reach.hide),
        ];
        let all = places.iter().flat_map(|(name, paths)| paths.iter().map(|path| (*name, path)));
        let all = all.chain(reach.home.iter().map(|home| ("--home", home)));
        let mut words: Vec<OsString> =
            all.flat_map(|(name, path)| [name.into(), path.clone().into_os_string()]).collect();
        let network = self.network.words();
        words.extend(network.into_iter().flat_map(|word| ["--network".into(), word.into()]));
        words.extend(self.limits.words());
        words.extend(reach.everything.then(|| EVERYTHING.into()));
        words.extend((self.input == CommandInput::Relayed).then(|| RELAY.into()));
        words.push("--".into());
        words
    }

    /// The arguments understood, and the command behind them.
    fn parse(words: &[OsString]) -> Result<(Self, &[OsString]), Error> {
        let (mut job, mut network) = (Self::default(), Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let lacks = || Error::Words(word.to_string_lossy().into_owned());
            match word.to_str() {
                Some("--") => {
                    job.network = Network::parse(&network).map_err(|_| lacks())?;
                    return Ok((job, words.as_slice()));
                }
                Some(EVERYTHING) => job.reach.everything = true,
                Some(RELAY) => job.input = CommandInput::Relayed,
                Some(name) => {
                    job.take(name, words.next().ok_or_else(lacks)?, &mut network).ok_or_else(lacks)?
                }
                None => return Err(lacks()),
            }
        }
        Err(Error::Words("the end".to_owned()))
    }

    fn take(&mut self, name: &str, value: &OsStr, network: &mut Vec<String>) -> Option<()> {
        let path = || PathBuf::from(value);
        match name {
            "--folder" => self.reach.write.push(path()),
            "--read" => self.reach.read.push(path()),
            "--programs" => self.reach.programs.push(path()),
            "--hide" => self.reach.hide.push(path()),
            "--home" => self.reach.home = Some(path()),
            "--network" => network.push(value.to_str()?.to_owned()),
            _ => self.limits.take(name, value.to_str()?)?,
        }
        Some(())
    }
}

/// Why a process could not be confined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel cannot guard files.
    #[error(
        "this kernel cannot keep a command inside its folder ({0}): Landlock of Linux 6.2 or later is needed; \
         set `tools.sandbox: off` and `tools.network: open` to run commands without it, or take shell out of tools.enabled"
    )]
    NoLandlock(String),
    /// The kernel cannot guard the network.
    #[error(
        "this kernel cannot keep a command from the network ({0}): network namespaces or seccomp are needed; \
         set `tools.network: open` to let commands reach the network, or take shell out of tools.enabled"
    )]
    NoNetworkGuard(String),
    /// Listed hosts cannot be served.
    #[error(
        "the hosts in tools.network cannot be reached from here: that needs a network namespace, and this system allows \
         none ({0}); allow user namespaces, or set `tools.network` to none or open"
    )]
    NoNamespace(String),
    /// Without the sandbox the network is open, and the settings do not allow that.
    #[error(
        "`tools.sandbox: off` leaves the network open to commands: set `tools.network: open` as well to allow that"
    )]
    OpenUnsaid,
    /// Nothing is there that could confine.
    #[error(
        "no program is there to keep it inside the folder; set `tools.sandbox: off` and `tools.network: open` to run it without"
    )]
    NoLauncher,
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
        "what to confine is not clear at {0}: --folder DIR, --read DIR, --programs DIR, --hide DIR, --home DIR, --network HOST, \
         --memory BYTES, --cpu SECONDS, --processes N, --everything and --relay-input, then -- COMMAND"
    )]
    Words(String),
    /// The command does not start.
    #[error("{0} cannot be started: {1}")]
    Start(String, String),
    /// A folder that cannot be opened.
    #[error("{0} cannot be opened: {1}")]
    Folder(String, String),
}

/// Runs the command behind `words`, confined as they say, until it ends or our input does; nothing it started is left then.
/// `launcher` starts this program again so that it ends up here. Gives the code to end with, which for a signal is 128 and
/// its number.
pub fn run(launcher: &[OsString], words: &[OsString]) -> Result<u8, Error> {
    if let Some((_, words)) = words.split_first().filter(|(first, _)| *first == INSIDE) {
        let (job, command) = CommandSpec::parse(words)?;
        return Err(enter(&job, command));
    }
    let (job, command) = CommandSpec::parse(words)?;
    if command.is_empty() {
        return Err(Error::Words("the end".to_owned()));
    }
    keeper::run(launcher, &job, command)
}

// The second process: shuts itself in, for good, and becomes the command.

/// Where a process says how soon it goes when memory runs out.
const GOES_FIRST: &str = "/proc/self/oom_score_adj";
/// A file that a command writes ends here.
const LARGEST_FILE: u64 = 4 << 30;
/// As many processes of this user may there be, so that a command that starts itself again and again comes to an end.
const PROCESSES: u64 = 8_192;
/// Names of the loopback, which clients are told not to ask the proxy for.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// What root keeps inside: it may handle files of any owner, but not the machine.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Becomes the command; comes back only when that cannot be.
fn enter(job: &CommandSpec, command: &[OsString]) -> Error {
    let Some((program, rest)) = command.split_first() else { return Error::Words("the end".to_owned()) };
    let failed = |why: String| Error::Start(program.to_string_lossy().into_owned(), why);
    let mut command = Command::new(program);
    command.args(rest);
    // When the keeper is killed, so is the command.
    if let Err(why) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return failed(why.to_string());
    }
    if !job.reach.everything
        && let Err(why) = shut_in(job, &mut command)
    {
        return why;
    }
    if job.input == CommandInput::Empty {
        let nothing = File::open("/dev/null").and_then(|nothing| Ok(rustix::stdio::dup2_stdin(nothing)?));
        if let Err(why) = nothing {
            return failed(why.to_string());
        }
    }
    failed(command.exec().to_string())
}

fn shut_in(job: &CommandSpec, command: &mut Command) -> Result<(), Error> {
    // When memory runs out, the command goes before the worker.
    let _ = std::fs::write(GOES_FIRST, "1000");
    // What is opened is looked up before anything is covered.
    let mut rules = files::rules(&job.reach)?;
    let is_closed = job.network != Network::Open;
    let has_namespaces = match namespaces::enter(&rules.places, is_closed, job.limits.memory) {
        Ok(()) => {
            rules = rules.with_shared_memory()?;
            true
        }
        Err(why) if job.network.hosts().is_some() => return Err(Error::NoNamespace(why)),
        Err(_) => false,
    };
    bound();
    if let Some(folder) = job.reach.write.first() {
        // The folder as it is now: what was the current one may lead to what has been covered.
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        std::env::set_current_dir(&folder)
            .map_err(|why| Error::Folder(folder.display().to_string(), why.to_string()))?;
    }
    if job.network.hosts().is_some() {
        let port = open_proxy().map_err(|why| Error::NoNamespace(format!("its proxy: {why}")))?;
        command.envs(proxy_variables(&job.network, port));
    }
    rules.enforce()?;
    let is_root = rustix::process::geteuid().is_root();
    let guarded = Guarded { has_namespaces, is_root, has_network: has_namespaces || !is_closed };
    filter(guarded).map_err(Error::NoNetworkGuard)
}

/// Listens in this process's own network and hands the socket to the keeper, which serves it from outside. It comes
/// through standard input, which until the command starts is a socket between the two.
fn open_proxy() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let handles = [listener.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    if !with.push(SendAncillaryMessage::ScmRights(&handles)) {
        return Err(Errno::NOBUFS.into());
    }
    sendmsg(io::stdin(), &[IoSlice::new(b"p")], &mut with, SendFlags::empty())?;
    Ok(listener.local_addr()?.port())
}

/// What clients look at to find a proxy. Their own loopback stays their own, unless the one outside is listed.
fn proxy_variables(network: &Network, port: u16) -> Vec<(&'static str, String)> {
    let hosts = network.hosts().unwrap_or_default();
    let own = LOOPBACK.iter().filter(|name| !hosts.iter().any(|host| host.is_named(name)));
    let own = own.copied().collect::<Vec<_>>().join(",");
    let proxy = format!("http://127.0.0.1:{port}");
    let names = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
    let proxies = names.into_iter().map(|name| (name, proxy.clone()));
    proxies.chain([("no_proxy", own.clone()), ("NO_PROXY", own)]).collect()
}

/// Bounds that hold inside. A limit that cannot be set is not a reason not to run: files and network are guarded apart.
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
        // A user other than root has none to give up.
        let _ = remove_capability_from_bounding_set(right);
    }
}

#[cfg(test)]
mod tests {
    use super::{CommandInput, CommandSpec, Confinement, Error, FileAccess, Network, ProcessLimits, Sandbox};
    use std::ffi::OsString;

    #[test]
    fn a_job_goes_through_arguments_unchanged() {
        let job = CommandSpec {
            reach: FileAccess {
                write: vec!["/a b".into(), "/窓".into()],
                read: vec!["/r".into()],
                programs: vec!["/usr/bin".into()],
                hide: vec!["/h".into()],
                home: Some("/home".into()),
                everything: true,
            },
            network: Network::parse(&["example.com".into(), "[::1]:8080".into()]).unwrap(),
            limits: ProcessLimits { memory: 1 << 30, cpu: 60, processes: 7, disk: 0 },
            input: CommandInput::Relayed,
        };
        let command = ["sh", "-c", "--"].map(OsString::from);
        for job in [job.clone(), CommandSpec { network: Network::Open, ..job }, CommandSpec::default()] {
            let words: Vec<OsString> = job.words().into_iter().chain(command.clone()).collect();
            assert_eq!(CommandSpec::parse(&words).unwrap(), (job, command.as_slice()));
        }
        for bad in [
            vec!["--folder"],
            vec!["--other", "x", "--", "ls"],
            vec!["--folder", "x"],
            vec!["--cpu", "x", "--"],
        ] {
            assert!(CommandSpec::parse(&bad.into_iter().map(OsString::from).collect::<Vec<_>>()).is_err());
        }
    }

    #[test]
    fn without_the_sandbox_an_open_network_must_be_said() {
        let words = |confinement: &Confinement| {
            confinement.words(FileAccess::default(), CommandInput::Empty, [OsString::from("ls")])
        };
        let off = Confinement { sandbox: Sandbox::Off, ..Confinement::default() };
        assert!(matches!(words(&off), Err(Error::OpenUnsaid)));
        let open = Confinement { network: Network::Open, ..off };
        assert_eq!(words(&open).unwrap(), ["ls"]);
        let required = Confinement { sandbox: Sandbox::Required, ..open };
        assert!(matches!(words(&required), Err(Error::NoLauncher)));
    }
}
