//! A process's own network, and its own view of the file system.
//!
//! The network has nothing but its own loopback. Of the file system, all that no rule of [`files`](super::files) opens is
//! covered by empty folders: Landlock guards what is opened, but not sockets with a name, such as those of Docker, tmux or a
//! database, nor modes and owners. Root makes both by itself; for other users a user namespace comes first. Where the
//! system allows none of it, `sockets` guards the network alone.

use nix::sched::{CloneFlags, unshare};
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount,
    open_tree,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::process::{getegid, geteuid};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Top folders that stay as they are: the system's own, guarded by Landlock, without sockets.
const KEPT: &[&str] =
    &["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "proc", "sbin", "sys", "usr"];
/// Folders below these that are covered all the same.
const COVERED: &[&str] = &["/dev/shm", "/dev/mqueue", "/nix/var"];
const EMPTY: &str = "mode=0755,size=1m";

/// Leaves the namespaces of this process: of mounts and of System V objects, and of the network where `is_closed`. The
/// process has one thread. Then covers all but `places`, which are absolute and real, and starts the loopback.
pub(super) fn enter(places: &[PathBuf], is_closed: bool) -> Result<(), String> {
    let mut own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if is_closed {
        own |= CloneFlags::CLONE_NEWNET;
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // A root without rights over the machine, as in most containers, is like any other user here.
    if user != 0 || unshare(own).is_err() {
        unshare(own | CloneFlags::CLONE_NEWUSER).map_err(|why| format!("user namespaces: {}", why.desc()))?;
        map(user, group).map_err(|why| format!("the user in its namespace: {why}"))?;
    }
    cover(places).map_err(|why| format!("mounts: {why}"))?;
    if is_closed {
        start_loopback().map_err(|why| format!("the loopback: {why}"))?;
    }
    Ok(())
}

/// The user stays who it is.
fn map(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Covers the top folders with empty ones, and puts `places` back where they were.
fn cover(places: &[PathBuf]) -> io::Result<()> {
    // What is mounted here must not be seen outside.
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let covered = covered(places)?;
    let is_covered = |place: &&PathBuf| covered.iter().any(|folder| place.starts_with(folder));
    let mut trees: Vec<(&Path, OwnedFd)> = Vec::new();
    for place in outermost(places).into_iter().filter(is_covered) {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        trees.push((place, open_tree(CWD, place.as_path(), flags)?));
    }
    for folder in &covered {
        mount("tmpfs", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(empty().as_c_str()))?;
    }
    for (place, tree) in trees {
        if tree_is_folder(&tree)? {
            fs::create_dir_all(place)?;
        } else {
            fs::create_dir_all(place.parent().unwrap_or(Path::new("/")))?;
            fs::write(place, "")?;
        }
        move_mount(tree, "", CWD, place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    }
    Ok(())
}

fn empty() -> std::ffi::CString {
    std::ffi::CString::new(EMPTY).unwrap_or_default()
}

fn tree_is_folder(tree: &OwnedFd) -> io::Result<bool> {
    Ok(rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode).is_dir())
}

/// The folders to be covered: real ones that no place holds.
fn covered(places: &[PathBuf]) -> io::Result<Vec<PathBuf>> {
    let top = fs::read_dir("/")?.flatten().filter(|entry| {
        let is_kept = entry.file_name().to_str().is_some_and(|name| KEPT.contains(&name));
        !is_kept && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    let below = COVERED.iter().map(PathBuf::from).filter(|folder| folder.is_dir());
    let all = top.map(|entry| entry.path()).chain(below);
    Ok(all.filter(|folder| !places.iter().any(|place| folder.starts_with(place))).collect())
}

/// Places that do not lie in others.
fn outermost(places: &[PathBuf]) -> Vec<&PathBuf> {
    let mut sorted: Vec<&PathBuf> = places.iter().collect();
    sorted.sort();
    sorted.dedup();
    let mut kept: Vec<&PathBuf> = Vec::new();
    for place in sorted {
        if !kept.iter().any(|above| place.starts_with(above)) {
            kept.push(place);
        }
    }
    kept
}

/// Sets the first interface up: one message to the kernel, and its answer.
fn start_loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ANSWER: u16 = 1 | 4;
    const UP: u32 = 1;
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32u32.to_ne_bytes());
    message.extend_from_slice(&NEW_LINK.to_ne_bytes());
    message.extend_from_slice(&REQUEST_AND_ANSWER.to_ne_bytes());
    // Number and sender of the message, family and kind of the interface: all 0.
    message.extend_from_slice(&[0; 12]);
    message.extend_from_slice(&1i32.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    message.extend_from_slice(&UP.to_ne_bytes());
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0u8; 512];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    let code = answer.get(16..20).filter(|_| length >= 20).and_then(|code| code.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(-errno)),
        None => Err(io::Error::other("the kernel's answer is none")),
    }
}
