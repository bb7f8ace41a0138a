//! Memory that cannot be had: an error in place of the abort with which programs in Rust end.
//!
//! Arrays of the grid have their own messages ([`torre_runtime::simulation::SetupError`]). All other memory is taken
//! through the allocator of this file: where the system has none, the process ends like one that met an error.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use torre_runtime::output::atomic::try_abandon;
use torre_runtime::room::may_be_refused;

/// The allocator of the system, without an answer of "no" unless the caller can take it.
struct Ending;

#[global_allocator]
static MEMORY: Ending = Ending;

// SAFETY: all memory is the system's, and what callers promise is passed on.
unsafe impl GlobalAlloc for Ending {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        had(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        had(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: passed on.
        had(unsafe { System.realloc(place, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(place, layout) }
    }
}

fn had(place: *mut u8, bytes: usize) -> *mut u8 {
    if place.is_null() && !may_be_refused() {
        end(bytes);
    }
    place
}

/// A message that takes no memory of the allocator.
struct Message {
    text: [u8; 512],
    length: usize,
}

impl Write for Message {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.text.get_mut(self.length..self.length + text.len());
        room.ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}

/// Ends the process as an error does: from any thread, in the middle of anything.
#[cold]
fn end(bytes: usize) -> ! {
    static ENDING: AtomicBool = AtomicBool::new(false);
    if ENDING.swap(true, Ordering::Relaxed) {
        // Another thread ends the process; or giving up files took memory, too.
        // SAFETY: both take any number.
        unsafe {
            libc::sleep(1);
            libc::_exit(1);
        }
    }
    let mut message = Message {
        text: [0; 512],
        length: 0,
    };
    let written = write!(
        message,
        "{}\n\n  x {bytes} bytes of memory beside the fields cannot be had\n  help: make the domain smaller with \
         `--set domain=AxBxC`, use fewer `--threads`, or raise the limit of the process\n\n`torre explain {}` says \
         more.\n",
        crate::codes::MEMORY.0,
        crate::codes::MEMORY.0
    );
    let length = written.map_or(0, |()| message.length);
    // SAFETY: the text lives during the call.
    unsafe { libc::write(libc::STDERR_FILENO, message.text.as_ptr().cast(), length) };
    try_abandon();
    // SAFETY: `_exit` takes any status. Destructors of data that threads still use must not run.
    unsafe { libc::_exit(1) }
}
