//! The cost of amendments in zones: the instructions of rows in them, and the states that go through memory.

use torre_compiler::lattice::{Axis, Interval};
use torre_compiler::scheme::{Amendment, Op, Precision, Scheme, StageId, Update, ZoneId, ZoneSet};
use torre_compiler::tower::{Tally, Towers, memory_of};

// Fitted with the rates of code in `predict` to 42 rates of FDTD(4,2) on an H100 and an H200: media with one to four
// states for one or three fields in no cells to all cells of the grid, with layers on six sides and without, and layers
// alone, W = 3 to 6, f32 and f64; and to 43 of FDTD(4,2) on 768^3 cells of an H200, with layers along some axes or all,
// W = 4 to 6, in slabs and z blocks. All of them are met within 20 %.

/// Instructions of a row for an amendment that acts, besides its arithmetic and one for each value of memory: several
/// rows share conditions and a jump.
const AROUND: f64 = 2.0;
/// Instructions of a row where it does not act.
const BESIDE: f64 = 1.0;
/// Share of the time of the warps that an amendment along the inner axis keeps busy for which all others wait: warps
/// beside each other keep order, and others of the same quarter of a multiprocessor run meanwhile.
const WAITED: f64 = 0.5;
/// Instructions of a quotient or a root beside one, in f32 and f64: the assembler refines an estimate, and has a call
/// for numbers near the ends of the format.
const QUOTIENT: [f64; 2] = [18.0, 84.0];

/// The cost that the amendments of some zones add to a cell-step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Added {
    /// Instructions that a warp runs.
    pub run: f64,
    /// Instructions of a cell-step in the code of a period.
    pub code: f64,
    /// Bytes of states that are read and written.
    pub bytes: f64,
}

/// The cost of amendments for towers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Layers {
    /// For towers that run the first variant, and for towers that meet zones which not all towers meet.
    pub added: [Added; 2],
    /// Share of the latter.
    pub share: f64,
    /// Bytes of states per cell-step of the grid.
    pub bytes: f64,
    /// Values of memory that a cell-step of a boundary period loads for them, wherever it lies.
    pub loads: f64,
}

/// A variant of interior periods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedVariant {
    /// The names of the zones whose amendments it has.
    pub zones: Vec<String>,
    /// Whole rows are corrected near faces of total fields.
    pub faces: bool,
    /// Ends of the grid may cut rows off.
    pub predicated: bool,
    /// Towers of a time block that run it.
    pub towers: usize,
}

impl PlannedVariant {
    /// The variants of the towers of a time block; none where there are neither zones nor faces of total fields.
    pub fn all(scheme: &Scheme, towers: &Towers, tally: &Tally) -> Vec<PlannedVariant> {
        let variants = towers.variants.all.iter().enumerate();
        let planned = variants.map(|(number, variant)| {
            let names = variant.zones.iter().map(|z| scheme.zone(z).name.clone());
            PlannedVariant {
                zones: names.collect(),
                faces: variant.faces,
                predicated: variant.predicated,
                towers: tally.variants.get(number).copied().unwrap_or(0),
            }
        });
        let differ = towers.variants.any_zones() || towers.variants.any_faces();
        planned.filter(|_| differ).collect()
    }
}

pub(super) fn amendments(scheme: &Scheme) -> impl Iterator<Item = (&Update, &Amendment)> {
    let stages = scheme.stage_ids();
    stages.flat_map(|stage| amendments_of(scheme, stage))
}

fn amendments_of(scheme: &Scheme, stage: StageId) -> impl Iterator<Item = (&Update, &Amendment)> {
    let updates = scheme.stages[stage.index()].updates.iter();
    updates.flat_map(|update| update.amendments.iter().map(move |a| (update, a)))
}

/// Cells in which an amendment acts, as a share of the cells of the grid.
pub(super) fn share_of(scheme: &Scheme, update: &Update, amendment: &Amendment) -> f64 {
    let cells = scheme.grid.cell_count();
    let boxes = scheme.zone(amendment.zone).boxes.iter();
    let own = boxes.map(|b| b.intersect(update.region).volume() as f64);
    own.sum::<f64>() / cells
}

/// Bytes of old values per cell-step that kernels read and write before the updates of a stage overwrite them.
pub fn kept_bytes_of(scheme: &Scheme, stage: StageId) -> f64 {
    let own = amendments_of(scheme, stage);
    let kept = own.filter(|(update, amendment)| scheme.needs_old(update, amendment));
    let shares = kept.map(|(update, amendment)| share_of(scheme, update, amendment));
    2.0 * scheme.precision.bytes() as f64 * shares.sum::<f64>()
}

/// Bytes of states that are read and written per cell-step, and bytes of the values that amending kernels read and
/// write again after a stage has stored them.
pub fn bytes(scheme: &Scheme) -> [f64; 2] {
    let stages = scheme.stage_ids().map(|stage| bytes_of(scheme, stage));
    stages.fold([0.0; 2], |sum, own| [0, 1].map(|n| sum[n] + own[n]))
}

/// The same of the amendments of a stage.
pub fn bytes_of(scheme: &Scheme, stage: StageId) -> [f64; 2] {
    let element = scheme.precision.bytes() as f64;
    let mut bytes = [0.0; 2];
    for (update, amendment) in amendments_of(scheme, stage) {
        let share = element * share_of(scheme, update, amendment);
        let mut read: Vec<_> = amendment
            .body
            .reads()
            .map(|r| (r.component, r.age))
            .collect();
        read.sort_unstable();
        read.dedup();
        bytes[0] += 2.0 * share * amendment.advances.len() as f64;
        bytes[1] += share * (2 + read.len()) as f64;
    }
    bytes
}

impl Layers {
    /// Of towers in time blocks of `steps` steps.
    pub fn new(scheme: &Scheme, towers: &Towers, steps: u64) -> Layers {
        let variants = &towers.variants.all;
        let [first, last] = [variants.first(), variants.last()].map(|v| v.map(|v| v.zones));
        let (first, all) = (first.unwrap_or_default(), last.unwrap_or_default());
        let share = share(scheme, towers, steps, first);
        let some = Met {
            everywhere: first,
            share,
        };
        Layers {
            added: [some.added(scheme, first), some.added(scheme, all)],
            share,
            bytes: bytes(scheme)[0],
            loads: loads(scheme) as f64,
        }
    }
}

/// Values of memory that all amendments of a step read.
fn loads(scheme: &Scheme) -> usize {
    let ops = amendments(scheme).flat_map(|(_, amendment)| &amendment.body.ops);
    ops.filter(|op| memory_of(scheme, op).is_some()).count()
}

/// Instructions of a row for an amendment that acts.
fn instructions(scheme: &Scheme, amendment: &Amendment) -> f64 {
    let ops = &amendment.body.ops;
    let memory = ops.iter().filter(|op| memory_of(scheme, op).is_some());
    let values = memory.count() + amendment.advances.len() + amendment.body.arithmetic();
    let quotients = ops
        .iter()
        .filter(|op| matches!(op, Op::Div(..) | Op::Sqrt(_)));
    let quotient = QUOTIENT[usize::from(scheme.precision == Precision::F64)];
    values as f64 + quotient * quotients.count() as f64 + AROUND
}

/// Where amendments act.
struct Met {
    /// Zones that all towers meet.
    everywhere: ZoneSet,
    /// The share of towers that meet others.
    share: f64,
}

impl Met {
    /// The cost that the amendments of some zones add to towers that meet them. Amendments of zones that all towers
    /// meet act in some warps, others in some rows: code is fetched where it does not act, too, as rows that are jumped
    /// over are short.
    fn added(&self, scheme: &Scheme, zones: ZoneSet) -> Added {
        let element = scheme.precision.bytes() as f64;
        let own = amendments(scheme).filter(|(_, a)| zones.contains(a.zone));
        own.fold(Added::default(), |sum, (update, amendment)| {
            let instructions = instructions(scheme, amendment);
            let of_grid = share_of(scheme, update, amendment);
            let (acting, waited) = match self.everywhere.contains(amendment.zone) {
                true => (of_grid, WAITED + (1.0 - WAITED) * of_grid),
                false => {
                    let of_towers = (of_grid / self.share.max(f64::MIN_POSITIVE)).min(1.0);
                    (of_towers, of_towers)
                }
            };
            Added {
                run: sum.run + BESIDE + waited * (instructions - BESIDE),
                code: sum.code + instructions,
                bytes: sum.bytes + acting * 2.0 * element * amendment.advances.len() as f64,
            }
        })
    }
}

/// Steps of low time blocks.
const LOW: u64 = 8;

/// The share of towers of low time blocks that meet zones which not all of them meet.
pub(super) fn share_of_low(scheme: &Scheme, towers: &Towers) -> f64 {
    let first = towers.variants.all.first().map(|v| v.zones);
    share(scheme, towers, LOW, first.unwrap_or_default())
}

/// The share of towers that meet zones which not all of them meet.
fn share(scheme: &Scheme, towers: &Towers, steps: u64, everywhere: ZoneSet) -> f64 {
    let wide = (2.0 * towers.cells()).sqrt();
    let moved = towers.advance.x.abs() as f64 * (steps / towers.steps.max(1)) as f64;
    let outside = |axis: Axis, more: f64| {
        let length = scheme.grid.cells[axis];
        let whole = Interval::new(0, length);
        let zones = scheme.zones.iter().enumerate();
        let partial = zones.filter(|(n, _)| !everywhere.contains(ZoneId(*n as u32)));
        let boxes = partial.flat_map(|(_, zone)| &zone.boxes);
        let along = boxes.map(|b| b[axis].intersect(whole).len());
        let met: f64 = along.filter(|n| *n < length).map(|n| n as f64 + more).sum();
        (1.0 - met / length as f64).max(0.0)
    };
    1.0 - outside(Axis::OUTER, wide + moved) * outside(Axis::MIDDLE, wide)
}
