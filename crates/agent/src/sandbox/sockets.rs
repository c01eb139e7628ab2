//! Which sockets can be made: a filter of system calls, for what namespaces and Landlock do not see.
//!
//! Some families of sockets know no namespaces (`AF_VSOCK` leads to the machine's host), and others are doors into rarely
//! used parts of the kernel. The kernel's key rings belong to a user, not to a sandbox. And `io_uring` makes sockets without
//! a system call that could be filtered.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    apply_filter,
};
use std::collections::BTreeMap;

/// Which families can be used. Netlink tells of the system's interfaces, and programs ask it as they start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Families {
    /// Those of the network, and sockets with a name in the file system.
    Usual,
    /// None that leads anywhere. Pairs of sockets can still be made.
    None,
}

/// Calls that do not happen inside.
const REFUSED: &[i64] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
];

/// Filters the calls of this process and of all it becomes or starts.
pub(super) fn filter(families: Families) -> Result<(), String> {
    let program = program(families).map_err(|why| why.to_string())?;
    apply_filter(&program).map_err(|why| why.to_string())
}

fn program(families: Families) -> Result<BpfProgram, seccompiler::BackendError> {
    let usual = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let allowed = match families {
        Families::Usual => &usual[..],
        Families::None => &usual[3..],
    };
    let others = SeccompRule::new(
        allowed.iter().map(|family| is(0, SeccompCmpOp::Ne, *family)).collect::<Result<_, _>>()?,
    )?;
    // Of netlink only what tells of interfaces and routes.
    let netlink = SeccompRule::new(vec![
        is(0, SeccompCmpOp::Eq, libc::AF_NETLINK)?,
        is(2, SeccompCmpOp::Ne, libc::NETLINK_ROUTE)?,
    ])?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socket, vec![others, netlink]);
    if cfg!(target_arch = "x86_64") {
        // The same calls have a second number each there (x32).
        const SECOND: i64 = 0x4000_0000;
        rules.extend(rules.clone().into_iter().map(|(call, rules)| (call | SECOND, rules)));
    }
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let target = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::Allow, refused, target)?.try_into()
}

fn is(argument: u8, how: SeccompCmpOp, value: i32) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, how, u64::from(value.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::{Families, program};

    #[test]
    fn a_filter_can_be_made_for_this_machine() {
        for families in [Families::Usual, Families::None] {
            assert!(!program(families).unwrap().is_empty());
        }
    }
}
