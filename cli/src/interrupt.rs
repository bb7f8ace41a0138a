//! Ctrl-C and the wish to terminate: the process ends at once, but never in the middle of a file.

use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, PoisonError};

/// Lets SIGINT, SIGTERM and SIGHUP wait until `writing` is free, and then end the process with the status that shells give such ends.
/// Must be called before other threads are started, since they take over which signals are blocked.
pub fn wait_for_writers(writing: Arc<Mutex<()>>) {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set that the other calls read; all pointers live during the calls.
    let set = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        if libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut()) != 0 {
            return;
        }
        set.assume_init()
    };
    std::thread::spawn(move || {
        let mut signal = 0;
        // SAFETY: the set is initialised, and both pointers live during the call.
        if unsafe { libc::sigwait(&set, &mut signal) } != 0 {
            return;
        }
        // Nothing is written while this is held, and the process ends with it.
        let _writing = writing.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `_exit` takes any status. Destructors of what threads still compute with must not run.
        unsafe { libc::_exit(128 + signal) }
    });
}
