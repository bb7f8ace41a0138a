//! The words of a task, in memory and in the shared memory of the block that runs it.

use crate::layout::Layout;
use crate::tower::block::NEIGHBOURS;
use crate::tower::{BoundaryRows, Task};

/// From the word of progress of a task to that of the next one: many look at each of them, and no two should wait for
/// the same piece of a cache.
pub const PROGRESS_BYTES: u32 = 128;

/// Numbers of words.
pub struct TaskWord;

impl TaskWord {
    /// Bytes from the array's first element to row 0, inner index 0 of the origin's group at the start of the time
    /// block: two words. It may lie outside.
    pub const OFFSET: u32 = 0;
    pub const ALIGNMENT: u32 = 2;
    /// The first period with rows in the grid.
    pub const FIRST: u32 = 3;
    /// The interior periods, in the range of all.
    pub const INTERIOR: [u32; 2] = [4, 5];
    /// After the last period with rows in the grid.
    pub const END: u32 = 6;
    /// The index of the origin at the start of the time block, counted on around periodic axes.
    pub const ORIGIN: [u32; 2] = [7, 8];
    /// The tasks with an index one lower along the first face, the second, and both; the number of tasks where there is
    /// none.
    pub const NEIGHBOURS: [u32; NEIGHBOURS as usize] = [9, 10, 11];
    /// Where its stages begin in the table of points; 0 if it has none.
    pub const POINTS: u32 = 12;
    /// The number of its width: the faces around a periodic axis along which it is narrow
    /// ([`crate::tower::Width::number`]).
    pub const WIDTH: u32 = 13;
    /// Whether it is along one.
    pub const NARROW: u32 = 14;
    /// Cells from the origin to where it lies in the array in interior periods: lengths of periodic axes. Where
    /// planes are counted on around the outer axis, from the plane of the origin to its index.
    pub const SHIFT: [u32; 2] = [15, 16];
    /// The variant of interior periods.
    pub const VARIANT: u32 = 17;
    /// The interior periods near faces of boxes of total fields, where the variant has such: the first one, and how
    /// many.
    pub const NEAR: [u32; 2] = [18, 19];
    /// Words of a task in memory.
    pub const COUNT: u32 = 20;

    // In shared memory only:
    /// Its number.
    pub const NUMBER: u32 = TaskWord::COUNT;
    /// Words of a task in shared memory.
    pub const SHOWN: u32 = TaskWord::NUMBER + 1;
    /// The number of the next task.
    pub const NEXT: u32 = TaskWord::SHOWN;
    /// From which queue it was taken, and how many queues have some left.
    pub const QUEUE: u32 = TaskWord::NEXT + 1;
    /// The progress of the blocks of its neighbours.
    pub const SEEN: u32 = TaskWord::QUEUE + 2;

    /// Words of shared memory for all that, for clusters of `cluster` blocks.
    pub const fn shared(cluster: u32) -> u32 {
        TaskWord::SEEN + NEIGHBOURS * cluster
    }

    /// Bytes of a task in memory.
    pub const BYTES: u32 = 4 * TaskWord::COUNT;
}

const _: () = assert!(TaskWord::SEEN == crate::tower::block::TASK_WORDS);

/// A task as kernels read it, of `count`; `points`: where its stages begin in the table of points. `None` where a
/// number is too large.
pub fn task_words(
    layout: &Layout,
    task: &Task,
    count: usize,
    points: i32,
) -> Option<[i32; TaskWord::COUNT as usize]> {
    let placement = &task.placement;
    let origin = task.interior_origin();
    // Planes of a window that are counted on around the outer axis lie where towers count them.
    let plane = match layout.windowed {
        true => placement.origin.x,
        false => origin.x,
    };
    let first = layout.group(plane, origin.y);
    let offset = first * layout.element_bytes as i64;
    let small = |n: u64| i32::try_from(n).ok();
    let number = |n: i64| i32::try_from(n).ok();
    let neighbour = |n: usize| i32::try_from(task.neighbours[n].unwrap_or(count)).ok();
    let mut words = [0; TaskWord::COUNT as usize];
    let mut set = |at: u32, word: i32| words[at as usize] = word;
    set(TaskWord::OFFSET, offset as i32);
    set(TaskWord::OFFSET + 1, (offset >> 32) as i32);
    set(TaskWord::ALIGNMENT, placement.alignment as i32);
    set(TaskWord::FIRST, small(placement.periods.start)?);
    set(TaskWord::INTERIOR[0], small(placement.interior.start)?);
    set(TaskWord::INTERIOR[1], small(placement.interior.end)?);
    set(TaskWord::END, small(placement.periods.end)?);
    for (n, at) in TaskWord::NEIGHBOURS.into_iter().enumerate() {
        set(at, neighbour(n)?);
    }
    set(TaskWord::POINTS, points);
    set(TaskWord::WIDTH, placement.width().number() as i32);
    set(TaskWord::NARROW, i32::from(task.is_narrow()));
    let [x, y] = placement.origin.array();
    let [by_x, by_y] = placement.shift.array();
    for (n, (at, by)) in [(x, by_x), (y, by_y)].into_iter().enumerate() {
        set(TaskWord::ORIGIN[n], number(at)?);
        set(TaskWord::SHIFT[n], number(by)?);
    }
    set(TaskWord::VARIANT, i32::try_from(placement.variant).ok()?);
    set(TaskWord::NEAR[0], small(placement.near.start)?);
    set(
        TaskWord::NEAR[1],
        small(placement.near.end - placement.near.start)?,
    );
    Some(words)
}

/// The rows of boundary periods as kernels read them: the index along the outer axis, relative to the origin, in the
/// lower half of a word, that along the middle axis in the upper half.
pub fn boundary_words(rows: &BoundaryRows) -> Vec<i32> {
    // They fit: `BoundaryRows::new` has looked.
    let pair = |[low, high]: [i64; 2]| (high as i32) << 16 | low as i32 & 0xffff;
    rows.rows.iter().map(|row| pair(row.array())).collect()
}
