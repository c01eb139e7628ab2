//! The second process: shuts itself in, for good, and becomes the command.

use super::calls::{Guarded, filter};
use super::{CommandSpec, Error, Input, Network, files, namespaces};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

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
pub(super) fn enter(job: &CommandSpec, command: &[OsString]) -> Error {
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
    if job.input == Input::Empty {
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

/// Bounds that hold inside. A limit that cannot be set is no reason not to run: files and network are guarded apart.
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
