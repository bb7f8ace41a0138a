//! The array of a calculation in main memory, or in a file that looks like memory.

use memmap2::{MmapMut, MmapOptions};
use std::io;
use torre_compiler::layout::Layout;
use torre_compiler::real::Real;

/// Zeroed, page-aligned memory for a [`Layout`]; pages are taken when they are first written.
///
/// Threads of a run read and write disjoint parts of it through raw pointers; the tile program decides which thread may
/// touch which part when (see [`super::engine`]).
pub struct Memory {
    map: MmapMut,
    elements: usize,
    in_file: bool,
}

impl Memory {
    /// Zeros for the array of a layout. An error where the system has no such memory, or has no addresses for it.
    pub fn new(layout: &Layout) -> io::Result<Memory> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let bytes = usize::try_from(layout.bytes()).map_err(|_| too_large())?;
        let map = MmapMut::map_anon(bytes.max(1))?;
        // Huge pages are a wish: without them everything works, more slowly.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Memory {
            map,
            elements: layout.elements as usize,
            in_file: false,
        })
    }

    /// Zeros that take no memory before they are written, and are not promised any: parts of an array that is larger
    /// than memory.
    pub fn reserved(bytes: u64, layout: &Layout) -> io::Result<Memory> {
        let too_large = || io::Error::from(io::ErrorKind::OutOfMemory);
        let bytes = usize::try_from(bytes.max(layout.bytes())).map_err(|_| too_large())?;
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?;
        Ok(Memory {
            map,
            elements: layout.elements as usize,
            in_file: false,
        })
    }

    /// The array of a file as memory. The system brings its pages when they are first used.
    pub fn of_file(map: MmapMut, layout: &Layout) -> Memory {
        assert!(map.len() as u64 >= layout.bytes(), "room for the array");
        Memory {
            map,
            elements: layout.elements as usize,
            in_file: true,
        }
    }

    /// Whether it is a file that looks like memory.
    pub fn is_in_file(&self) -> bool {
        self.in_file
    }

    /// Its bytes: as many as the layout has, or more.
    pub fn bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// The bytes of all elements, while no thread writes.
    pub fn content(&self) -> &[u8] {
        &self.map
    }

    /// The same, to be replaced.
    pub fn content_mut(&mut self) -> &mut [u8] {
        &mut self.map
    }

    /// A handle for threads to read and write elements.
    pub fn cells<T: Real>(&mut self) -> Cells<T> {
        assert!(self.elements * size_of::<T>() <= self.map.len());
        Cells {
            start: self.map.as_mut_ptr().cast(),
            first: 0,
            elements: self.elements,
        }
    }

    /// All elements, while no thread writes.
    pub fn elements<T: Real>(&self) -> &[T] {
        assert!(self.elements * size_of::<T>() <= self.map.len());
        // SAFETY: the map is page-aligned and at least this long (asserted); f32 and f64 have no invalid bits; `&self`
        // excludes `cells`, which needs `&mut self`, and runs end their borrow before they return.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.elements) }
    }
}

/// The elements of a [`Memory`], shared between threads.
#[derive(Clone, Copy)]
pub struct Cells<T> {
    /// Where element 0 is, or would be.
    start: *mut T,
    first: i64,
    elements: usize,
}

// SAFETY: it is a plain address; every access goes through unsafe functions whose callers order conflicting accesses.
unsafe impl<T: Send> Send for Cells<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Cells<T> {}

impl<T: Real> Cells<T> {
    /// # Safety
    /// No other thread writes this element meanwhile.
    pub unsafe fn get(self, element: i64) -> T {
        debug_assert!(self.holds(element));
        // SAFETY: the layout's elements lie in the map (debug-asserted); the caller orders accesses.
        unsafe { *self.start.wrapping_offset(element as isize) }
    }

    /// # Safety
    /// No other thread touches this element meanwhile.
    pub unsafe fn set(self, element: i64, value: T) {
        debug_assert!(self.holds(element));
        // SAFETY: as in `get`.
        unsafe { *self.start.wrapping_offset(element as isize) = value }
    }

    /// `count` elements from `element` on.
    ///
    /// # Safety
    /// No thread writes them while they are read.
    pub unsafe fn row<'a>(self, element: i64, count: i64) -> &'a [T] {
        if count <= 0 {
            return &[];
        }
        debug_assert!(self.holds(element) && self.holds(element + count - 1));
        let start = self.start.wrapping_offset(element as isize);
        // SAFETY: the range lies in the map (debug-asserted); the caller keeps writers away.
        unsafe { std::slice::from_raw_parts(start, count as usize) }
    }

    /// Copies `count` elements of another array, from `start` on, to `element` and the elements after it.
    ///
    /// # Safety
    /// The arrays are two; no other thread writes the elements that are read, or touches the elements that are written.
    pub unsafe fn copy(self, element: i64, other: Cells<T>, start: i64, count: i64) {
        if count <= 0 {
            return;
        }
        debug_assert!(self.holds(element) && self.holds(element + count - 1));
        debug_assert!(other.holds(start) && other.holds(start + count - 1));
        let from = other.start.wrapping_offset(start as isize);
        let to = self.start.wrapping_offset(element as isize);
        // SAFETY: both ranges lie in their maps (debug-asserted), which are two; the caller orders accesses.
        unsafe { std::ptr::copy_nonoverlapping(from, to, count as usize) }
    }

    /// Copies `count` elements from `start` on to `element` and the elements after it.
    ///
    /// # Safety
    /// The elements that are written are others; no other thread writes the elements that are read, or touches the
    /// elements that are written.
    pub unsafe fn repeat(self, element: i64, start: i64, count: i64) {
        // SAFETY: passed on.
        let (from, to) = unsafe { self.pair(element, start, count) };
        to.copy_from_slice(from);
    }

    /// The same with the other sign.
    ///
    /// # Safety
    /// As for [`Cells::repeat`].
    pub unsafe fn repeat_negated(self, element: i64, start: i64, count: i64) {
        // SAFETY: passed on.
        let (from, to) = unsafe { self.pair(element, start, count) };
        let pairs = to.iter_mut().zip(from);
        pairs.for_each(|(to, from)| *to = from.neg());
    }

    /// `count` elements from `start` on, and as many from `element` on.
    ///
    /// # Safety
    /// As for [`Cells::repeat`].
    unsafe fn pair<'a>(self, element: i64, start: i64, count: i64) -> (&'a [T], &'a mut [T]) {
        if count <= 0 {
            return (&[], &mut []);
        }
        debug_assert!(self.holds(element) && self.holds(element + count - 1));
        debug_assert!(self.holds(start) && self.holds(start + count - 1));
        let [from, to] = [start, element].map(|first| self.start.wrapping_offset(first as isize));
        // SAFETY: both ranges lie in the map (debug-asserted) and have no element in common; the caller orders
        // accesses.
        unsafe {
            (
                std::slice::from_raw_parts(from, count as usize),
                std::slice::from_raw_parts_mut(to, count as usize),
            )
        }
    }

    /// The same array counted from another element: element `e + by` becomes element `e`.
    pub fn shifted(self, by: i64) -> Cells<T> {
        Cells {
            start: self.start.wrapping_offset(by as isize),
            first: self.first - by,
            elements: self.elements,
        }
    }

    fn holds(self, element: i64) -> bool {
        (0..self.elements as i64).contains(&(element - self.first))
    }

    /// The address of an element as kernels want it; the element need not exist.
    pub fn address(self, element: i64) -> *mut u8 {
        self.start.wrapping_offset(element as isize).cast()
    }
}
