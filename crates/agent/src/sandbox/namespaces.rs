//! A process's own network, and its own view of the file system.
//!
//! The network has nothing but its own loopback. Of the file system, all that no rule of [`files`](super::files) opens is
//! covered by empty folders: Landlock guards what is opened, but not sockets with a name, such as those of Docker, tmux or a
//! database, nor modes and owners. Root makes both by itself; for other users a user namespace comes first. Where the
//! system allows none of it, `calls` guards the network alone.

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, StatVfsMountFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, mount_remount,
    move_mount, open_tree,
};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::param::page_size;
use rustix::process::{getegid, geteuid};
use std::ffi::{CStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Top folders that stay as they are: the system's own, guarded by Landlock, without sockets.
const KEPT: &[&str] =
    &["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "nix", "proc", "sbin", "sys", "usr"];
/// Folders below these that are covered all the same.
const COVERED: &[&str] = &[SHARED_MEMORY, "/dev/mqueue", "/nix/var"];
/// Where programs share memory; a process with namespaces has one of its own.
pub(super) const SHARED_MEMORY: &str = "/dev/shm";
const EMPTY: &CStr = c"mode=0755,size=1m";
const SHARED: &CStr = c"mode=1777,size=256m";

/// What of the file system stays, by real paths.
pub(super) struct KeptPlaces {
    /// Can be written.
    pub(super) write: Vec<PathBuf>,
    /// Can be read.
    pub(super) read: Vec<PathBuf>,
}

/// Leaves the namespaces of this process: of mounts and of System V objects, and of the network where `is_closed`. The
/// process has one thread. Then covers all but `places` and starts the loopback.
pub(super) fn enter(places: &KeptPlaces, is_closed: bool, memory: u64) -> Result<(), String> {
    let mut own = CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWIPC;
    if is_closed {
        own |= CloneFlags::CLONE_NEWNET;
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // A root without rights over the machine, as in most containers, is like any other user here.
    if user != 0 || unshare(own).is_err() {
        unshare(own | CloneFlags::CLONE_NEWUSER).map_err(|why| format!("user namespaces: {}", told(why)))?;
        map(user, group).map_err(|why| format!("the user in its namespace: {why}"))?;
    }
    if memory > 0 {
        // System V memory belongs to no process, so the namespace itself bounds it.
        let _ = fs::write("/proc/sys/kernel/shmall", (memory / page_size() as u64).to_string());
    }
    cover(places).map_err(|why| format!("mounts: {why}"))?;
    if is_closed {
        start_loopback().map_err(|why| format!("the loopback: {why}"))?;
    }
    Ok(())
}

fn told(why: nix::errno::Errno) -> &'static str {
    match why {
        nix::errno::Errno::ENOSPC => "user.max_user_namespaces, or that of another kind, allows no more",
        why => why.desc(),
    }
}

/// The user stays who it is.
fn map(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Covers the top folders with empty ones, puts `places` back where they were, and lets nothing but those for writing be
/// changed: Landlock does not guard modes, owners and times.
fn cover(places: &KeptPlaces) -> io::Result<()> {
    // What is mounted here must not be seen outside.
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    let covered = covered(places)?;
    let is_covered = |place: &Path| covered.iter().any(|folder| place.starts_with(folder));
    let read =
        outermost(&places.read).into_iter().filter(|place| is_covered(place)).map(|place| (place, false));
    let write = outermost(&places.write).into_iter().map(|place| (place, true));
    let mut trees: Vec<(&Path, bool, OwnedFd)> = Vec::new();
    for (place, is_written) in read.chain(write) {
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::AT_RECURSIVE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        trees.push((place, is_written, open_tree(CWD, place, flags)?));
    }
    for folder in &covered {
        let options = if folder == Path::new(SHARED_MEMORY) { SHARED } else { EMPTY };
        mount("tmpfs", folder, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(options))?;
    }
    for (place, _, tree) in &trees {
        if is_covered(place) {
            prepare(place, tree)?;
        }
    }
    // All that was mounted before, but for what has been covered.
    for place in mounts()?.into_iter().filter(|place| !is_covered(place)) {
        let fixed = fix(&place);
        // A user other than root owns nothing there.
        if geteuid().is_root() {
            fixed?;
        }
    }
    for (place, is_written, tree) in trees {
        move_mount(tree, "", CWD, place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
        if !is_written {
            let _ = fix(place);
        }
    }
    Ok(())
}

/// Something to mount a tree on, in a folder that was empty.
fn prepare(place: &Path, tree: &OwnedFd) -> io::Result<()> {
    if place.symlink_metadata().is_ok() {
        return Ok(());
    }
    let is_folder = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(tree)?.st_mode).is_dir();
    if is_folder {
        return fs::create_dir_all(place);
    }
    fs::create_dir_all(place.parent().unwrap_or(Path::new("/")))?;
    fs::write(place, "")
}

/// Where something is mounted.
fn mounts() -> io::Result<Vec<PathBuf>> {
    let text = fs::read("/proc/self/mountinfo")?;
    let places = text.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    Ok(places.map(|place| PathBuf::from(OsString::from_vec(unescaped(place)))).collect())
}

/// A path as it is: blanks and the like are written as octal numbers.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::new(), path);
    while let Some((first, behind)) = rest.split_first() {
        let number =
            behind.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match number.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => (plain.push(byte), rest = &behind[3..]).1,
            None => (plain.push(*first), rest = behind).1,
        }
    }
    plain
}

/// Lets nothing on a mount be changed, and leaves its other properties as they are.
fn fix(place: &Path) -> io::Result<()> {
    let now = rustix::fs::statvfs(place)?.f_flag;
    let kept = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ];
    let kept = kept.into_iter().filter(|(has, _)| now.contains(*has)).map(|(_, flag)| flag);
    let flags = kept.fold(MountFlags::BIND | MountFlags::RDONLY, |flags, flag| flags | flag);
    Ok(mount_remount(place, flags, "")?)
}

/// The folders to be covered: real ones that no place holds.
fn covered(places: &KeptPlaces) -> io::Result<Vec<PathBuf>> {
    let top = fs::read_dir("/")?.flatten().filter(|entry| {
        let is_kept = entry.file_name().to_str().is_some_and(|name| KEPT.contains(&name));
        !is_kept && entry.file_type().is_ok_and(|kind| kind.is_dir())
    });
    let below = COVERED.iter().map(PathBuf::from).filter(|folder| folder.is_dir());
    let all = top.map(|entry| entry.path()).chain(below);
    let is_place =
        |folder: &PathBuf| places.read.iter().chain(&places.write).any(|place| folder.starts_with(place));
    Ok(all.filter(|folder| !is_place(folder)).collect())
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

#[cfg(test)]
mod tests {
    use super::{outermost, unescaped};
    use std::path::PathBuf;

    #[test]
    fn a_mounted_path_is_read_as_it_is() {
        assert_eq!(unescaped(br"/a\040b\134c/\x"), b"/a b\\c/\\x");
    }

    #[test]
    fn a_place_inside_another_is_left_to_it() {
        let places: Vec<PathBuf> = ["/a/b", "/a", "/ab", "/a/b/c", "/a"].map(PathBuf::from).into();
        assert_eq!(outermost(&places), [&PathBuf::from("/a"), &PathBuf::from("/ab")]);
    }
}
