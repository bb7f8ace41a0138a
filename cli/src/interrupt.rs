//! Ctrl-C and the wish to terminate: the process ends at once, and leaves no file half written.

use std::mem::MaybeUninit;
use torre_runtime::output::atomic::abandon;

/// Lets SIGINT, SIGTERM and SIGHUP end the process with the status that shells give such ends, after the files that are
/// being written were given up. Signals that the parent had ignored, as `nohup` does, stay ignored. Must be called
/// before other threads are started, since they take over which signals are blocked.
pub fn end_tidily() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set that the other calls read; all pointers live during the calls.
    let set = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // `sigwait` would take it.
            if !is_ignored(signal) {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
        }
        if libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr()) != 0 {
            return;
        }
        set.assume_init()
    };
    let waiting = std::thread::Builder::new().spawn(move || {
        let mut signal = 0;
        // SAFETY: the set is initialised, and both pointers live during the call.
        if unsafe { libc::sigwait(&set, &mut signal) } != 0 {
            return;
        }
        abandon();
        // SAFETY: `_exit` takes any status. Destructors of data that threads still use must not run.
        unsafe { libc::_exit(128 + signal) }
    });
    if waiting.is_err() {
        // Then signals end the process as they do by default, and may leave temporary files.
        // SAFETY: the mask was set by the first call.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        }
    }
}

/// Whether nothing happens when a signal comes.
fn is_ignored(signal: libc::c_int) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no action is set, and the pointer to the present one lives during the call, which writes all of it unless
    // it fails.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
