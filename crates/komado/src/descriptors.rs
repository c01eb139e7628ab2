//! Descriptors that this process was started with and that what it starts must not have.

/// Lets no descriptor beyond standard input, output and error pass on to other programs. Those that were open when we were
/// started, by a shell or a service manager, would be open in every command.
#[allow(unsafe_code)]
pub(crate) fn keep_to_oneself() {
    // SAFETY: with this flag the call closes nothing; it only marks descriptors to be closed when another program begins.
    // The numbers cover all there can be. Where the kernel does not know the call, it fails and changes nothing.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}
