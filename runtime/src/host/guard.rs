//! Whether values stay finite while a run goes on.
//!
//! Values that are NaN, infinite or close to overflow do not stay alone: each step they reach the cells that read them. So a part of all
//! rows is enough, looked at after the last step of each time block, when they have just been computed: one row in 16 of a grid with three
//! axes, one in 8 with two. That costs less than 1 % of the time.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use torre_compiler::lattice::{Axis, Interval, PerAxis};
use torre_compiler::real::Real;
use torre_compiler::scheme::{ComponentId, Precision, Scheme};

/// Steps between two looks at least; time blocks that are higher have one each.
const STEPS: u64 = 16;

/// A value that no calculation should have.
#[derive(Clone, Debug, PartialEq)]
pub struct BlowUp {
    /// The component's name.
    pub component: String,
    /// Its cell indices, in the order of the scheme's axes.
    pub at: Vec<i64>,
    /// Steps done when it was seen.
    pub step: u64,
    pub value: f64,
}

impl BlowUp {
    pub fn new(scheme: &Scheme, id: ComponentId, at: PerAxis<i64>, step: u64, value: f64) -> Self {
        Self {
            component: scheme.component(id).name.clone(),
            at: scheme.grid.present().map(|axis| at[axis]).collect(),
            step,
            value,
        }
    }
}

impl fmt::Display for BlowUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at: Vec<String> = self.at.iter().map(i64::to_string).collect();
        write!(
            f,
            "`{}` is {:e} at cell ({}) after step {}",
            self.component,
            self.value,
            at.join(", "),
            self.step
        )
    }
}

/// The largest absolute value that counts as regular: products of two have to stay finite in double precision, and in single precision
/// sums of many.
pub fn bound(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 1e30,
        Precision::F64 => 1e150,
    }
}

/// Looks at values, and remembers the first that is not regular. The default looks at nothing.
#[derive(Debug)]
pub struct Guard {
    looks: bool,
    tripped: AtomicBool,
    /// The step at which threads that go step by step end together.
    end: AtomicU64,
    found: Mutex<Option<BlowUp>>,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            looks: false,
            tripped: AtomicBool::new(false),
            end: AtomicU64::new(u64::MAX),
            found: Mutex::new(None),
        }
    }
}

impl Guard {
    /// One that looks.
    pub fn awake() -> Self {
        Self {
            looks: true,
            ..Self::default()
        }
    }

    pub fn looks(&self) -> bool {
        self.looks
    }

    /// Whether something was found, so that going on is of no use.
    pub fn tripped(&self) -> bool {
        self.looks && self.tripped.load(Ordering::Relaxed)
    }

    /// What was found first.
    pub fn found(&self) -> Option<BlowUp> {
        let found = self.found.lock();
        found
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Remembers a value that is not regular.
    pub fn trip(&self, found: BlowUp) {
        // Threads that wait for each other after every step know it after the next.
        self.end.fetch_min(found.step + 1, Ordering::AcqRel);
        let mut first = self
            .found
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        first.get_or_insert(found);
        drop(first);
        self.tripped.store(true, Ordering::Release);
    }

    /// Whether threads that go step by step end before a step (from 0). It is the same for all of them if they wait for each other after every
    /// step: what trips in a step ends the step after the next.
    pub fn ends_before(&self, step: u64) -> bool {
        self.looks && step >= self.end.load(Ordering::Acquire)
    }

    /// Whether it looks at the end of a time block that takes a run from step `from` to step `to` on its way to step `until`.
    pub fn looks_after(&self, from: u64, to: u64, until: u64) -> bool {
        self.looks && (to / STEPS > from / STEPS || to >= until)
    }

    /// The indices of an interval of an outer axis whose rows are looked at.
    pub fn sampled(
        scheme: &Scheme,
        axis: Axis,
        interval: Interval,
    ) -> impl Iterator<Item = i64> + use<> {
        let stride = match (scheme.grid.axes[axis].is_some(), scheme.grid.dimensions()) {
            (false, _) => 1,
            (true, 2) => 8,
            (true, _) => 4,
        };
        let first = (interval.lo + stride - 1).div_euclid(stride) * stride;
        (first..interval.hi).step_by(stride as usize)
    }
}

/// The first value that is not regular, by its place.
pub fn irregular<T: Real>(values: &[T]) -> Option<usize> {
    let bound = T::from_f64(bound(T::PRECISION));
    let is_regular = |v: &T| v.abs() <= bound;
    // Blocks without an early end, so that they become vector instructions.
    let blocks = values.chunks(64).enumerate();
    for (number, block) in blocks {
        if !block.iter().fold(true, |all, v| all & is_regular(v)) {
            let inside = block.iter().position(|v| !is_regular(v));
            return inside.map(|i| 64 * number + i);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn irregular_values_are_found_wherever_they_are() {
        for length in [0, 1, 63, 64, 65, 200] {
            let mut values: Vec<f32> = (0..length).map(|i| i as f32 - 100.0).collect();
            assert_eq!(irregular(&values), None);
            for place in 0..length {
                for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -1.1e30] {
                    let good = std::mem::replace(&mut values[place], bad);
                    assert_eq!(irregular(&values), Some(place));
                    values[place] = good;
                }
            }
        }
        assert_eq!(irregular(&[1e30f32, -1e30, 0.0]), None);
        assert_eq!(irregular(&[1e149f64, -2e150]), Some(1));
    }

    #[test]
    fn the_first_find_is_kept_and_ends_the_run_soon() {
        let find = |step| BlowUp {
            component: "u".to_owned(),
            at: vec![step as i64],
            step,
            value: f64::NAN,
        };
        let guard = Guard::awake();
        assert!(!guard.tripped() && !guard.ends_before(u64::MAX - 1));
        guard.trip(find(16));
        guard.trip(find(15));
        assert_eq!(guard.found().map(|f| f.step), Some(16));
        assert!(guard.tripped() && guard.ends_before(16) && !guard.ends_before(15));
        let asleep = Guard::default();
        assert!(!asleep.looks_after(15, 16, 16) && !asleep.ends_before(u64::MAX));
        let looks = |from, to| guard.looks_after(from, to, 100);
        assert!(looks(15, 16) && looks(0, 16) && looks(3, 40) && looks(99, 100));
        assert!(!looks(14, 15) && !looks(16, 31));
    }
}
