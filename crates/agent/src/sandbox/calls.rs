//! Which system calls are refused: a filter for what namespaces and Landlock do not see.
//!
//! Some families of sockets know no namespaces (`AF_VSOCK` leads to the machine's host), and others are doors into rarely
//! used parts of the kernel. The kernel's key rings belong to a user, not to a sandbox. `io_uring` makes sockets without a
//! system call that could be filtered. `prlimit` reaches every process of the same user, the keeper too. A file that runs
//! as its owner would outlive the sandbox. And new namespaces would bring all rights inside them.

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;

/// What else guards the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Guarded {
    /// It has namespaces of its own, for System V objects among others.
    pub(super) has_namespaces: bool,
    /// It is root.
    pub(super) is_root: bool,
    /// It may reach the network as it is. With namespaces that may be its own alone.
    pub(super) has_network: bool,
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Calls that do not happen inside.
const REFUSED: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
];

/// System V objects, which only a namespace keeps apart.
const SYSTEM_V: &[i64] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
];

/// Calls whose arguments lie in memory, where a filter cannot look. Programs take others when these are not there.
const NOT_THERE: &[i64] = &[libc::SYS_clone3, libc::SYS_openat2];

const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Filters the calls of this process and of all it becomes or starts.
pub(super) fn filter(guarded: Guarded) -> Result<(), String> {
    for program in programs(guarded).map_err(|why| why.to_string())? {
        apply_filter(&program).map_err(|why| why.to_string())?;
    }
    Ok(())
}

fn programs(guarded: Guarded) -> Result<[BpfProgram; 2], BackendError> {
    let mut refused: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    if !guarded.has_namespaces {
        refused.extend(SYSTEM_V.iter().map(|call| (*call, Vec::new())));
    }
    refused.extend(sockets(guarded.has_network)?);
    refused.extend(others()?);
    refused.extend(modes(guarded.is_root)?);
    let namespaces = || NAMESPACES.iter().map(|flag| rule(&[has(0, *flag)?])).collect::<Result<Vec<_>, _>>();
    refused.insert(libc::SYS_unshare, namespaces()?);
    refused.insert(libc::SYS_clone, namespaces()?);
    let not_there = NOT_THERE.iter().map(|call| (*call, Vec::new())).collect();
    Ok([program(refused, libc::EPERM)?, program(not_there, libc::ENOSYS)?])
}

/// Netlink tells of the system's interfaces, and programs ask it as they start: of it only that.
fn sockets(has_network: bool) -> Result<Rules, BackendError> {
    let usual = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let allowed = if has_network { &usual[..] } else { &usual[3..] };
    let unusual = allowed.iter().map(|family| is_not(0, *family)).collect::<Result<Vec<_>, _>>()?;
    let netlink = rule(&[is(0, libc::AF_NETLINK)?, is_not(2, libc::NETLINK_ROUTE)?])?;
    let mut pairs = vec![rule(&[is_not(0, libc::AF_UNIX)?])?];
    if !has_network {
        // One of a pair of datagram sockets can still be used to send elsewhere, and those have several names.
        let connected = [libc::SOCK_STREAM, libc::SOCK_SEQPACKET];
        for kind in (0..=0xf).filter(|kind| !connected.contains(kind)) {
            pairs.push(rule(&[masked(1, 0xf, kind)?])?);
        }
    }
    Ok(Rules::from([(libc::SYS_socket, vec![rule(&unusual)?, netlink]), (libc::SYS_socketpair, pairs)]))
}

/// What a process may do to itself, but not to others of its user.
fn others() -> Result<Rules, BackendError> {
    let first = || Ok::<_, BackendError>(vec![rule(&[is_not(0, 0)?])?]);
    // "All of my user" is another meaning of 0 in the second place.
    let which = |one: i32| Ok::<_, BackendError>(vec![rule(&[is_not(0, one)?])?, rule(&[is_not(1, 0)?])?]);
    let is_set = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    Ok(Rules::from([
        (libc::SYS_prlimit64, vec![rule(&[is_not(0, 0)?, is_set])?]),
        (libc::SYS_sched_setscheduler, first()?),
        (libc::SYS_sched_setparam, first()?),
        (libc::SYS_sched_setattr, first()?),
        (libc::SYS_setpriority, which(0)?),
        (libc::SYS_ioprio_set, which(1)?),
        // What a process holds open must be seen, or its limits could not be kept.
        (libc::SYS_prctl, vec![rule(&[is(0, libc::PR_SET_DUMPABLE)?])?]),
    ]))
}

/// Files that run as their owner, and of root also those that run as their group. Other users may need that bit for folders
/// that they share, and a filter does not see what a file is.
fn modes(is_root: bool) -> Result<Rules, BackendError> {
    const BITS: [i32; 2] = [0o4000, 0o2000];
    let as_owner = if is_root { &BITS[..] } else { &BITS[..1] };
    let at = |argument: u8| {
        as_owner.iter().map(|bit| rule(&[has(argument, *bit)?])).collect::<Result<Vec<_>, _>>()
    };
    let made = |flags: u8, mode: u8| {
        let makes = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];
        let all = makes.iter().flat_map(|flag| as_owner.iter().map(move |bit| (flag, bit)));
        all.map(|(flag, bit)| rule(&[has(flags, *flag)?, has(mode, *bit)?])).collect::<Result<Vec<_>, _>>()
    };
    let mut rules = Rules::from([
        (libc::SYS_fchmod, at(1)?),
        (libc::SYS_fchmodat, at(2)?),
        // fchmodat2, which not every library has a name for.
        (452, at(2)?),
        (libc::SYS_mknodat, at(2)?),
        (libc::SYS_openat, made(2, 3)?),
    ]);
    #[cfg(target_arch = "x86_64")]
    rules.extend([
        (libc::SYS_chmod, at(1)?),
        (libc::SYS_mknod, at(1)?),
        (libc::SYS_creat, at(1)?),
        (libc::SYS_open, made(1, 2)?),
    ]);
    Ok(rules)
}

fn program(mut rules: Rules, error: i32) -> Result<BpfProgram, BackendError> {
    if cfg!(target_arch = "x86_64") {
        // The same calls have a second number each there (x32).
        const SECOND: i64 = 0x4000_0000;
        rules.extend(rules.clone().into_iter().map(|(call, rules)| (call | SECOND, rules)));
    }
    let refused = SeccompAction::Errno(error.unsigned_abs());
    let target = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, refused, target)?.try_into()
}

fn rule(conditions: &[SeccompCondition]) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(conditions.to_vec())
}

fn is(argument: u8, value: i32) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: i32) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, bit: i32) -> Result<SeccompCondition, BackendError> {
    masked(argument, bit, bit)
}

fn masked(argument: u8, mask: i32, value: i32) -> Result<SeccompCondition, BackendError> {
    condition(argument, SeccompCmpOp::MaskedEq(u64::from(mask.cast_unsigned())), value)
}

fn condition(argument: u8, how: SeccompCmpOp, value: i32) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, u64::from(value.cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use super::{Guarded, programs};

    #[test]
    fn filters_can_be_made_for_this_machine() {
        for (has_namespaces, has_network) in [(true, true), (false, false), (false, true)] {
            let made = programs(Guarded { has_namespaces, has_network, is_root: has_network }).unwrap();
            // The kernel takes no longer ones.
            assert!(made.iter().all(|program| !program.is_empty() && program.len() <= 4096));
        }
    }
}
