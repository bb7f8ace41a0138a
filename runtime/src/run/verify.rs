//! Comparing two calculations bit by bit.

use super::checkpoint::state_boxes;
use super::fields::state_value;
use crate::simulation::{Difference, Picture, Simulation, Value};
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::real::Real;
use torre_compiler::reference::for_each_index;
use torre_compiler::scheme::Scheme;

/// Collects differences of one kind of values.
struct Finder {
    found: Option<Difference>,
}

impl Finder {
    fn compare<T: Real>(
        &mut self,
        a: T,
        b: T,
        step: u64,
        place: impl FnOnce() -> (String, Vec<i64>),
    ) {
        if a.bits() == b.bits() {
            return;
        }
        match &mut self.found {
            Some(found) => found.count += 1,
            None => {
                let (holder, at) = place();
                self.found = Some(Difference {
                    holder,
                    at,
                    step,
                    values: [a.to_f64(), b.to_f64()],
                    count: 1,
                });
            }
        }
    }

    fn end(self) -> Result<(), Difference> {
        self.found.map_or(Ok(()), Err)
    }
}

fn place(scheme: &Scheme, at: PerAxis<i64>) -> Vec<i64> {
    scheme.grid.present().map(|axis| at[axis]).collect()
}

/// Compares all values that both keep, and the records of their probes.
#[inline(never)]
pub fn compare<T: Value>(
    run: &dyn Simulation<T>,
    check: &dyn Simulation<T>,
) -> Result<(), Difference> {
    let scheme = run.scheme();
    let step = run.steps();
    for (index, probe) in run.problem().probes.iter().enumerate() {
        let mut finder = Finder { found: None };
        let (ours, theirs) = (run.probe(index), check.probe(index));
        for (i, (a, b)) in ours.iter().zip(&theirs).enumerate() {
            let name = || (format!("the probe `{}`", probe.name), Vec::new());
            finder.compare(*a, *b, i as u64 + 1, name);
        }
        finder.end()?;
        find_missing(&ours, &theirs, step, || {
            format!("the probe `{}`", probe.name)
        })?;
    }
    for id in scheme.component_ids() {
        let [outer, middle, _] = scheme.extent(id).0;
        for age in 0..scheme.component(id).time_levels {
            let mut finder = Finder { found: None };
            for x in outer.lo..outer.hi {
                for y in middle.lo..middle.hi {
                    let rows = run.row(id, age, x, y).iter().zip(check.row(id, age, x, y));
                    for (z, (a, b)) in rows.enumerate() {
                        finder.compare(*a, *b, step, || {
                            let name = &scheme.component(id).name;
                            let name = match age {
                                0 => name.clone(),
                                _ => format!("{name}, {age} versions ago,"),
                            };
                            (name, place(scheme, PerAxis([x, y, z as i64])))
                        });
                    }
                }
            }
            finder.end()?;
        }
    }
    for (id, region) in state_boxes(scheme) {
        let mut finder = Finder { found: None };
        for_each_index(region, |at| {
            let [a, b] = [run, check].map(|s| state_value(s, id, at));
            finder.compare(a, b, step, || {
                let name = format!("the state {}", scheme.states[id.index()].name);
                (name, place(scheme, at))
            });
        });
        finder.end()?;
    }
    Ok(())
}

/// Compares recorded slices of the same steps. The check may have fewer, where it does not record.
#[inline(never)]
pub fn compare_pictures<T: Value>(
    run: &dyn Simulation<T>,
    ours: &[Picture],
    theirs: &[Picture],
) -> Result<(), Difference> {
    for a in ours {
        let same = |b: &&Picture| (b.output, b.step) == (a.output, a.step);
        let Some(b) = theirs.iter().find(same) else {
            continue;
        };
        let mut finder = Finder { found: None };
        for (i, (x, y)) in a.values.iter().zip(&b.values).enumerate() {
            let name = || {
                (
                    format!("value {i} of the slice `{}`", slice_name(run, a)),
                    vec![],
                )
            };
            finder.compare(*x, *y, a.step, name);
        }
        finder.end()?;
        find_missing(&a.values, &b.values, a.step, || {
            format!("the slice `{}`", slice_name(run, a))
        })?;
    }
    Ok(())
}

/// Looks whether two records have as many values.
fn find_missing<T: Real>(
    ours: &[T],
    theirs: &[T],
    step: u64,
    name: impl FnOnce() -> String,
) -> Result<(), Difference> {
    let [recorded, expected] = [ours.len(), theirs.len()];
    if recorded == expected {
        return Ok(());
    }
    let both = recorded.min(expected);
    let value = |all: &[T]| all.get(both).map_or(f64::NAN, |value| value.to_f64());
    Err(Difference {
        holder: format!(
            "value {both} of {}, which has {recorded} values instead of {expected},",
            name()
        ),
        at: Vec::new(),
        step,
        values: [value(ours), value(theirs)],
        count: recorded.abs_diff(expected) as u64,
    })
}

/// Looks whether a run whose slices are written has recorded all that its check has.
#[inline(never)]
pub fn find_missing_pictures<T: Value>(
    run: &dyn Simulation<T>,
    ours: &[Picture],
    theirs: &[Picture],
) -> Result<(), Difference> {
    let is_missing = |b: &&Picture| {
        let mut ours = ours.iter();
        !ours.any(|a| (a.output, a.step) == (b.output, b.step))
    };
    match theirs.iter().find(is_missing) {
        None => Ok(()),
        Some(missing) => Err(Difference {
            holder: format!(
                "the slice `{}`, which was not recorded,",
                slice_name(run, missing)
            ),
            at: Vec::new(),
            step: missing.step,
            values: [f64::NAN, missing.values.first().copied().unwrap_or(0.0)],
            count: missing.values.len() as u64,
        }),
    }
}

/// The name of a slice.
fn slice_name<'a, T: Value>(run: &'a dyn Simulation<T>, picture: &Picture) -> &'a str {
    &run.problem().outputs[picture.output].name
}

/// Whether the reference can check a run in reasonable time and memory, or compiled code for another machine has to.
pub fn is_small(scheme: &Scheme, steps: u64) -> bool {
    const CELL_STEPS: f64 = 2e8;
    let operations: usize = scheme
        .stages
        .iter()
        .flat_map(|stage| &stage.updates)
        .map(|update| update.body.ops.len())
        .sum();
    let cells: f64 = Axis::ALL
        .iter()
        .map(|&a| scheme.grid.cells[a] as f64)
        .product();
    cells * steps as f64 * operations as f64 / 4.0 <= CELL_STEPS
}
