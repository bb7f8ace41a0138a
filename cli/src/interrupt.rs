//! Ctrl-C and the wish to terminate: the process ends at once, and leaves no file half written. And faults of files
//! that are used as memory.

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

/// The end of a run whose disk fails, as other errors say it.
#[cfg(target_os = "linux")]
const FAULT: &[u8] = b"E0802

  x cannot use a file in the folder of `--window` as memory: its disk fails or is full, or another program made the
  | file shorter

`torre explain E0802` says more.
";

/// Lets SIGBUS end the process with a message and the status of errors: it comes at an access to memory behind which
/// there is a file, where the file or its disk has no such place (any more).
#[cfg(target_os = "linux")]
pub fn end_at_faults_of_files() {
    extern "C" fn fault(_: libc::c_int) {
        // SAFETY: both calls may be made by handlers of signals, and the bytes live forever.
        unsafe {
            libc::write(libc::STDERR_FILENO, FAULT.as_ptr().cast(), FAULT.len());
            libc::_exit(1)
        }
    }
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zeros are a valid action, of which all that is needed is set; the handler has the type that it must have
    // without `SA_SIGINFO`, and its pointer lives as long as the process.
    unsafe {
        let action = action.assume_init_mut();
        action.sa_sigaction = fault as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, action, std::ptr::null_mut());
    }
}

#[cfg(not(target_os = "linux"))]
pub fn end_at_faults_of_files() {}

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
