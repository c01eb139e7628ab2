//! Other ways out: files, mounts, namespaces, keys, system calls.

use super::{ALL, Ground, On};
use std::os::unix::fs::PermissionsExt;

/// Attempts that must not change or show anything outside. Each prints `GOT` when it has what it wants.
const ATTEMPTS: &[&str] = &[
    "cat OUTSIDE/secret && echo GOT",
    "cat /proc/self/root/OUTSIDE/secret && echo GOT",
    "cat /proc/$PPID/root/OUTSIDE/secret && echo GOT",
    "cat /proc/1/environ && echo GOT",
    "tr '\\0' '\\n' < /proc/$PPID/environ | grep -a KOMADO_SANDBOX_TEST && echo GOT",
    "ln OUTSIDE/secret here && cat here && echo GOT",
    "echo x > OUTSIDE/new && echo GOT",
    "mount -t tmpfs none /usr && echo GOT",
    "mount --bind . /etc && echo GOT",
    "umount -l /tmp && echo GOT",
    "unshare -m umount -l /tmp && echo GOT",
    "unshare -U -r -m sh -c 'umount -l /tmp && echo GOT'",
    "unshare -U -r -m sh -c 'mount -t tmpfs none /usr && echo GOT'",
    "unshare -U true && echo GOT",
    "unshare -n true && echo GOT",
    // A file that runs as its owner, for other users of the machine.
    "cp /usr/bin/env s; chmod 4755 s; test -u s && echo GOT",
    "install -m 4755 /usr/bin/env t; test -u t && echo GOT",
    "nsenter -t $PPID -n true && echo GOT",
    "nsenter -t $PPID -m true && echo GOT",
    "nsenter -t 1 -n true && echo GOT",
    "chroot /proc/1/root true && echo GOT",
    "ip link set lo down && echo GOT",
    "echo 1 > /proc/sys/kernel/panic && echo GOT",
    "echo x > /proc/sysrq-trigger && echo GOT",
    "mkdir /sys/fs/cgroup/komado-sandbox-test && echo GOT",
    "mknod dev b 8 0 && head -c 1 dev && echo GOT",
    "mknod dev c 1 1 && head -c 1 dev && echo GOT",
    "head -c 1 /dev/mem && echo GOT",
    // With namespaces this is the command's own.
    "echo x > /dev/shm/komado-sandbox-test",
    "kill -0 $PPID && echo GOT",
    "kill -0 1 && echo GOT",
    "ls /dev/pts/0 && echo x > /dev/pts/0 && echo GOT",
    "dmesg && echo GOT",
    "crontab -l && echo GOT",
    "sudo -n true && echo GOT",
];

/// Landlock does not guard these; with namespaces the file is not there.
const ABOUT_FILES: &[&str] = &[
    "chmod 0777 OUTSIDE/secret && echo GOT",
    "touch -t 200001010000 OUTSIDE/secret && echo GOT",
    "chown 1:1 OUTSIDE/secret && echo GOT",
    "setfattr -n user.komado -v x OUTSIDE/secret && echo GOT",
    "stat OUTSIDE/secret && echo GOT",
    // What root could do to programs and devices that all users have.
    "chmod 4755 /usr/bin/env && echo GOT",
    "chmod 0666 /dev/null && echo GOT",
    "touch /etc/passwd && echo GOT",
    "touch /usr/bin && echo GOT",
];

#[test]
fn nothing_outside_is_read_changed_or_entered() {
    for on in ALL {
        let mut ground = Ground::new(on);
        let outside = ground.outside();
        // Open to all: only the sandbox is in the way.
        std::fs::set_permissions(&outside, PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::set_permissions(outside.join("secret"), PermissionsExt::from_mode(0o666)).unwrap();
        let about_files = ABOUT_FILES.iter().filter(|_| on == On::This);
        for attempt in ATTEMPTS.iter().chain(about_files) {
            let line = attempt.replace("OUTSIDE", outside.to_str().unwrap());
            let (text, _) = ground.shell(&line);
            assert!(!text.contains("GOT") && !text.contains("SECRET"), "on {on:?}: {line}: {text}");
            assert!(
                !text.contains("cannot keep a command") && !text.contains("cannot be started"),
                "{line}: {text}"
            );
        }
        assert_eq!(std::fs::read_to_string(outside.join("secret")).unwrap(), "SECRET");
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1, "on {on:?}");
        assert!(!std::path::Path::new("/dev/shm/komado-sandbox-test").exists(), "on {on:?}");
        let mode = std::fs::metadata(outside.join("secret")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o666, "on {on:?}");
    }
}

#[test]
fn calls_that_lead_around_the_walls_are_refused() {
    for on in ALL {
        // Numbers of x86_64 and of all newer machines; a call that is not there is refused, too.
        Ground::new(on).python(
            r#"
import ctypes, os, platform, resource
libc = ctypes.CDLL(None, use_errno=True)
is_x86 = platform.machine() == "x86_64"
calls = {
    "io_uring_setup": (425, 8, ctypes.create_string_buffer(120)),
    "keyctl": (250 if is_x86 else 219, 0, -3, 0),
    "add_key": (248 if is_x86 else 217, b"user", b"komado", b"x", 1, -3),
    "bpf": (321 if is_x86 else 280, 0, ctypes.create_string_buffer(64), 64),
    "userfaultfd": (323 if is_x86 else 282, 1),
    "perf_event_open": (298 if is_x86 else 241, ctypes.create_string_buffer(128), 0, -1, -1, 0),
}
if is_x86:
    calls["socket with its second number"] = (41 | 0x40000000, 40, 1, 0)
keeper = os.getppid()
attempt("limits of the keeper", lambda: resource.prlimit(keeper, resource.RLIMIT_NOFILE, (0, 0)))
attempt("priority of the keeper", lambda: os.setpriority(os.PRIO_PROCESS, keeper, 19))
attempt("priority of all processes of the user", lambda: os.setpriority(os.PRIO_USER, 0, 1))
if libc.prctl(4, 0, 0, 0, 0) == 0:
    print("reached hiding")
attempt("scheduling of the keeper", lambda: os.sched_setscheduler(keeper, os.SCHED_IDLE, os.sched_param(0)))
resource.prlimit(0, resource.RLIMIT_NOFILE)
for name, call in calls.items():
    if libc.syscall(*call) >= 0:
        print("reached", name)
print("done")
"#,
            "done",
        );
    }
}

#[test]
fn descriptors_that_the_worker_was_started_with_are_not_open_inside() {
    let dir = tempfile::tempdir().unwrap();
    let secret = dir.path().join("secret");
    std::fs::write(&secret, "SECRET").unwrap();
    let mut ground = Ground::with(On::This, |confinement| {
        let open = format!("exec 9< {}; exec \"$@\"", secret.display());
        let before = ["sh", "-c", &open, "sh"].map(std::ffi::OsString::from);
        confinement.launcher.splice(0..0, before);
    });
    let (text, is_error) = ground.shell("cat <&9");
    assert!(is_error && !text.contains("SECRET"), "{text}");
}

/// What only namespaces keep apart must be closed where there are none.
#[test]
fn without_namespaces_neither_pairs_of_sockets_nor_shared_memory_lead_out() {
    let mut ground = Ground::new(On::WithoutNamespaces);
    let named = ground.outside().join("datagrams");
    let outside = std::os::unix::net::UnixDatagram::bind(&named).unwrap();
    std::fs::set_permissions(&named, PermissionsExt::from_mode(0o777)).unwrap();
    outside.set_nonblocking(true).unwrap();
    let program = format!(
        r#"
import ctypes, socket
for kind in [socket.SOCK_DGRAM, socket.SOCK_RAW, 4]:
    attempt("datagrams", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b"x", "{}"))
libc = ctypes.CDLL(None)
if libc.shmget(4711, 4096, 0o1666) >= 0:
    print("reached shared memory")
a, b = socket.socketpair()
a.send(b"pair")
print(b.recv(9).decode())
"#,
        named.display()
    );
    ground.python(&program, "pair");
    assert!(outside.recv(&mut [0]).is_err());
}

#[test]
fn memory_is_shared_between_the_processes_of_a_command() {
    Ground::new(On::This).python(
        r#"
import multiprocessing, multiprocessing.shared_memory
lock = multiprocessing.Lock()
with lock:
    memory = multiprocessing.shared_memory.SharedMemory(create=True, size=1 << 20)
    memory.buf[0] = 7
    print(memory.buf[0])
    memory.close()
    memory.unlink()
"#,
        "7",
    );
}
