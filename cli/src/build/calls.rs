//! Kernels in a header in C: their declarations and their calls, a box of a stage in parts that lie in the same zones.

use super::header::Header;
use std::fmt::{Result, Write};
use std::iter::once;
use torre_compiler::kernel::{
    RowKernel, RunStart, StageBox, ZoneParts, ZoneSplitter, record_width, run_axis,
};
use torre_compiler::lattice::{Axis, Group, Interval, PerAxis};
use torre_compiler::scheme::{StageId, ZoneSet};

/// Groups of a block that one kernel takes, for some indices of the outer axis.
struct Rows<'a> {
    kernel: RowKernel,
    /// The first group of the first index.
    first: Group,
    /// Indices for each of which the kernel is called; one call where runs go along the outer axis.
    outer: Option<Interval>,
    range: Interval,
    /// The numbers of all runs at the first index.
    runs: Vec<i64>,
    /// The same at the next index.
    next: &'a [i64],
}

impl Rows<'_> {
    fn print(&self, header: &Header<'_>, out: &mut String) -> Result {
        let p = header.prefix;
        let width = match self.kernel.zones.is_empty() {
            true => 2,
            false => record_width(&header.set.layout),
        };
        let numbers: Vec<String> = (self.runs.chunks(width).zip(self.next.chunks(width)))
            .map(|(run, next)| {
                let numbers = run.iter().zip(next).map(|(now, next)| match next - now {
                    0 => now.to_string(),
                    by => format!("{now} + (x - {}) * ({by})", self.first.x),
                });
                let numbers: Vec<String> = numbers.collect();
                match width {
                    2 => format!("{{{}}}", numbers.join(", ")),
                    _ => numbers.join(", "),
                }
            })
            .collect();
        let kind = match width {
            2 => format!("{p}_groups"),
            _ => "int64_t".to_owned(),
        };
        let (x, head) = match self.outer {
            Some(Interval { lo, hi }) => (
                "x".to_owned(),
                format!("for (int64_t x = {lo}; x < {hi}; ++x) "),
            ),
            None => (self.first.x.to_string(), String::new()),
        };
        writeln!(
            out,
            "    {head}{{\n\
             \x20     const {kind} runs[] = {{{}}};\n\
             \x20     {}({p}_row(self, 0, {x}, {}), runs, {}, {}, {});\n\
             \x20   }}",
            numbers.join(", "),
            header.function(&self.kernel),
            self.first.y,
            numbers.len(),
            self.range.lo,
            self.range.hi,
        )
    }
}

/// The declarations of kernels.
pub fn declare(header: &Header<'_>, out: &mut String) -> Result {
    let p = header.prefix;
    writeln!(
        out,
        "/* Consecutive groups: `offset` bytes behind the base of a kernel's call. */\n\
         typedef struct {p}_groups {{\n\
         \x20 int64_t offset, groups;\n}} {p}_groups;\n\n\
         /* The kernels: `count` runs of groups, indices lo <= z < hi of the contiguous axis. The object has them\n\
         \x20  under names of this build, so that no object of another one fits. */"
    )?;
    for kernel in &header.set.kernels {
        writeln!(
            out,
            "#define {} {}",
            header.function(kernel),
            header.symbol(kernel)
        )?;
    }
    let (bare, zoned): (Vec<_>, Vec<_>) =
        header.set.kernels.iter().partition(|k| k.zones.is_empty());
    for kernel in bare {
        let function = header.function(kernel);
        writeln!(
            out,
            "void {function}(void *base, const {p}_groups *runs, int64_t count, int64_t lo, int64_t hi);"
        )?;
    }
    if !zoned.is_empty() {
        writeln!(
            out,
            "/* The kernels in layers and other zones: {} numbers for each run; the first two are \
             as above. */",
            record_width(&header.set.layout)
        )?;
    }
    for kernel in zoned {
        let function = header.function(kernel);
        writeln!(
            out,
            "void {function}(void *base, const int64_t *runs, int64_t count, int64_t lo, int64_t hi);"
        )?;
    }
    writeln!(out)
}

/// The calls that advance a box of a stage in a phase.
pub fn print(
    header: &Header<'_>,
    out: &mut String,
    stage: StageId,
    phase: u32,
    block: &StageBox,
) -> Result {
    let (scheme, layout) = (header.scheme, &header.set.layout);
    let split = ZoneSplitter::new(scheme, layout);
    let every = ZoneSet(u32::MAX);
    let relevant = RowKernel::relevant(scheme, stage, block.updates, every);
    let PerAxis([x, y, range]) = block.region;
    let across = run_axis(scheme) == Axis::MIDDLE;
    let map = scheme.zone_map();
    let parts: Vec<Interval> = match across {
        true => map.parts(Axis::OUTER, x).map(|(_, part)| part).collect(),
        false => vec![x],
    };
    let (mut now, mut next) = (ZoneParts::default(), ZoneParts::default());
    for part in parts {
        // Within a part of the outer axis all numbers change by the same from an index to the next.
        let runs_at = |x: i64, found: &mut ZoneParts| {
            let place = Group::new(x, y.lo);
            let groups = if across { y.len() } else { part.len() };
            let start = RunStart {
                place,
                offset: 0,
                groups,
            };
            split.split(layout, relevant, place, once(start), range, found);
        };
        runs_at(part.lo, &mut now);
        let is_last = !across || part.len() == 1;
        runs_at(part.lo + i64::from(!is_last), &mut next);
        for (own, next) in now.iter().zip(next.iter()) {
            let numbers = |zoned: &torre_compiler::kernel::ZonedRuns| match own.zones.is_empty() {
                true => (zoned.runs.iter())
                    .flat_map(|run| [run.offset, run.groups])
                    .collect(),
                false => zoned.records.clone(),
            };
            let next: Vec<i64> = numbers(next);
            let rows = Rows {
                kernel: RowKernel {
                    stage,
                    phase,
                    updates: block.updates,
                    zones: own.zones,
                },
                first: Group::new(part.lo, y.lo),
                outer: across.then_some(part),
                range: own.range,
                runs: numbers(own),
                next: &next,
            };
            rows.print(header, out)?;
        }
    }
    Ok(())
}
