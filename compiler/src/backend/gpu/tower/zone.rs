//! Amendments: where states and coefficients of one axis lie, and which rows and threads are in a zone.
//!
//! A row is in a zone along the first two axes or not, alike for all threads of a warp, which so have one jump for it;
//! along the inner axis each thread knows for itself. Where the boxes of a zone lie so far from each other that a tower
//! meets one of them only, as layers at two sides do, or lie behind each other along the inner axis, the box is chosen
//! once in a stage, and a row has a comparison and a displacement that is known when the kernel is written.

use super::super::ir::{Operand, Type};
use super::super::kernel::{IntCmp, IntOp, Kernel};
use super::amended::{Acting, AmendedValues, Near, amend};
use super::context::{Context, Lane, in_interval, word};
use super::predicate::Predicate;
use super::steer::RowPointers;
use super::zone_coefs;
use crate::lattice::{Axis, Interval};
use crate::layout::{BoxLayout, ZoneLayout};
use crate::scheme::{Amendment, CoefId, Op, StateId, Update, ZoneId};
use crate::tower::{Amended, Group, GroupBox, Memory, memory_of};
use std::collections::BTreeMap;

/// The axes over which towers are cut.
const ACROSS: [Axis; 2] = [Axis::OUTER, Axis::MIDDLE];

/// Coefficients of the inner axis at the thread's index.
pub(super) type OfLane = BTreeMap<(ZoneId, CoefId), Operand>;

/// Where a stage of an interior period finds the values that amendments need.
pub(super) struct Zones {
    /// Where the period's origin is.
    origin: Predicate,
    places: BTreeMap<ZoneId, StageZone>,
    /// The coefficients of an axis at the origin's index.
    coefs: [Option<Operand>; 2],
    /// Coefficients of the inner axis: the same for all rows.
    of_lane: OfLane,
    /// Where coefficients in shared memory lie, by zones and axes.
    near: BTreeMap<(ZoneId, usize), Operand>,
    /// Values that rows have fetched, by the operations of the amendment's body.
    fetched: BTreeMap<Amended, Vec<Option<Operand>>>,
}

/// A zone, as a stage sees it.
struct StageZone {
    /// Row 0 of the states of the origin's group at the thread's index, in the box that was chosen, or in the first
    /// one.
    states: RowPointers,
    /// Where rows are tested against one box: from its first index to the origin's, and its length.
    tests: Option<[Option<[Operand; 2]>; 2]>,
}

/// A row that an amendment may act on.
pub(super) struct Amending<'u> {
    pub of: Amended,
    pub update: &'u Update,
    /// Whether the thread takes part in the stage, where lines are cut into z blocks.
    pub active: Option<Operand>,
    pub predicate: Option<Predicate>,
}

impl<'u> Amending<'u> {
    fn amendment(&self) -> &'u Amendment {
        &self.update.amendments[self.of.amendment]
    }
}

/// A zone in memory.
pub(super) fn layout_of<'a>(context: &Context<'a>, zone: ZoneId) -> &'a ZoneLayout {
    &context.layout.zones[zone.index()]
}

/// The axis along which the box that a tower or a thread meets follows from its index; `None` where each row has to
/// look at all boxes. `rows`: the rows of a period.
fn choosing(boxes: &[BoxLayout], rows: GroupBox) -> Option<Axis> {
    let same = |axis: Axis| {
        let mut ranges = boxes.iter().map(|b| b.region[axis]);
        let first = ranges.next();
        ranges.all(|range| Some(range) == first)
    };
    let separate = |axis: Axis, least: i64| {
        let boxes = sorted(boxes, axis);
        let mut pairs = boxes.windows(2);
        pairs.all(|pair| pair[1].region[axis].lo - pair[0].region[axis].hi >= least)
    };
    let across = |(axis, rows): (Axis, Interval)| {
        (same(Axis::INNER) && separate(axis, rows.len())).then_some(axis)
    };
    let found = ACROSS.into_iter().zip([rows.x, rows.y]).find_map(across);
    let inner = ACROSS.into_iter().all(same) && separate(Axis::INNER, 0);
    found.or(inner.then_some(Axis::INNER))
}

/// Boxes in the order in which they lie along an axis.
fn sorted(boxes: &[BoxLayout], axis: Axis) -> Vec<BoxLayout> {
    let mut boxes = boxes.to_vec();
    boxes.sort_by_key(|b| b.region[axis].lo);
    boxes
}

/// Whether no row lies beside a zone along an axis.
fn covers(context: &Context<'_>, boxes: &[BoxLayout], axis: Axis) -> bool {
    let whole = Interval::new(0, context.layout.extent[axis]);
    boxes.iter().all(|b| b.region[axis] == whole)
}

/// A condition and another one that need not be there.
fn and(k: &mut Kernel<'_>, all: Option<Operand>, one: Operand) -> Option<Operand> {
    Some(match all {
        None => one,
        Some(all) => k.int(IntOp::And, all, one),
    })
}

/// Whether the thread's index is in a range; `None`: that of all threads is.
fn lane_is_within(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    range: Interval,
) -> Option<Operand> {
    let all = range.lo <= 0 && range.hi >= context.block().line_threads();
    (!all).then(|| lane.is_within(k, range))
}

/// Whether the thread is in some of the boxes and in a range along the inner axis; `None`: all threads are.
fn lane_meets(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    boxes: &[BoxLayout],
    range: Interval,
) -> Option<Operand> {
    let mut ranges: Vec<Interval> = Vec::new();
    for own in boxes {
        let own = own.region[Axis::INNER].intersect(range);
        if !own.is_empty() && !ranges.contains(&own) {
            ranges.push(own);
        }
    }
    let mut meets = Operand::int(Type::I1, 0);
    for range in ranges {
        let within = lane_is_within(k, context, lane, range)?;
        meets = k.int(IntOp::Or, meets, within);
    }
    Some(meets)
}

/// Bytes to where a box has row 0 of the group at index 0 of both axes.
pub(super) fn base(context: &Context<'_>, zone: &ZoneLayout, own: &BoxLayout) -> i64 {
    context.bytes(own.group(zone, 0, 0))
}

/// A pointer into an array that begins somewhere: to an element, and some indices times elements farther.
pub(super) fn pointer(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    array: Operand,
    first: Operand,
    at: &[(Operand, i64)],
) -> Operand {
    let mut to = k.advance(array, first, 1);
    for (index, stride) in at {
        let wide = k.resize(*index, Type::I64);
        let by = k.int(IntOp::Mul, wide, Operand::i64(context.bytes(*stride)));
        to = k.advance(to, by, 1);
    }
    to
}

impl StageZone {
    fn new(
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        zone: ZoneId,
        Predicate { at, plane }: Predicate,
    ) -> StageZone {
        let layout = layout_of(context, zone);
        let rows = context.towers().alignments[context.alignment].rows();
        let axis = choosing(&layout.boxes, rows);
        // Rows that look at all boxes count from the first one as the layout has them.
        let boxes = axis.map_or_else(|| layout.boxes.clone(), |axis| sorted(&layout.boxes, axis));
        // Where a box begins to be the one that counts.
        let mut later = Vec::new();
        for pair in boxes.windows(2) {
            let Some(axis) = axis else { break };
            let end = pair[0].region[axis].hi;
            let (index, end) = match axis {
                Axis::OUTER => (at[0], end - rows.x.lo),
                Axis::MIDDLE => (at[1], end - rows.y.lo),
                _ => (lane.thread, end),
            };
            later.push(k.compare(IntCmp::Ge, index, word(end)));
        }
        let choose = |k: &mut Kernel<'_>, of: &dyn Fn(&BoxLayout) -> Operand| {
            let mut chosen = of(&boxes[0]);
            for (own, later) in boxes.iter().skip(1).zip(&later) {
                if of(own) != chosen {
                    chosen = k.choose(*later, of(own), chosen);
                }
            }
            chosen
        };
        let first = choose(k, &|own| Operand::i64(base(context, layout, own)));
        let tests = axis.map(|_| {
            [0, 1].map(|n| {
                let axis = ACROSS[n];
                if covers(context, &boxes, axis) {
                    return None;
                }
                let lo = choose(k, &|own| word(own.region[axis].lo));
                let from = k.int(IntOp::Sub, at[n], lo);
                Some([from, choose(k, &|own| word(own.region[axis].len()))])
            })
        });
        let plane = match layout.in_planes {
            true => plane,
            false => at[0],
        };
        let strides = [(plane, layout.plane), (at[1], layout.group)];
        let array = context.states(k, layout);
        let states = pointer(k, context, array, first, &strides);
        let states = k.advance(states, lane.index, context.real.bytes());
        StageZone {
            states: RowPointers::new(states),
            tests,
        }
    }
}

impl Zones {
    /// `place`: where the period is. That is the same for all threads, which is hidden from the assembler: a value that
    /// it computes once for a warp takes an instruction more in each access to memory that depends on it.
    pub fn new(k: &mut Kernel<'_>, lane: &Lane, place: Predicate) -> Zones {
        // Of small numbers, negative ones included, the two highest bits are the same.
        let own = k.again(lane.thread);
        let twice = k.int(IntOp::Left, own, word(1));
        let differ = k.int(IntOp::Xor, own, twice);
        let zero = k.int(IntOp::Right, differ, word(31));
        Zones {
            origin: Predicate {
                at: place.at.map(|at| k.int(IntOp::Add, at, zero)),
                ..place
            },
            places: BTreeMap::new(),
            coefs: [None; 2],
            of_lane: BTreeMap::new(),
            near: BTreeMap::new(),
            fetched: BTreeMap::new(),
        }
    }

    fn place(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        zone: ZoneId,
    ) -> &mut StageZone {
        let origin = self.origin;
        let new = || StageZone::new(k, context, lane, zone, origin);
        self.places.entry(zone).or_insert_with(new)
    }

    /// Whether an amendment acts on the thread's value of a row, but for a mask. The condition is not kept for later,
    /// except for other rows with the same condition (`known`).
    fn meets(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        amending: &Amending<'_>,
        known: &mut Known,
    ) -> Met {
        let zone = amending.amendment().zone;
        let tests = self.place(k, context, lane, zone).tests;
        let range = amending.update.region[Axis::INNER];
        let by = amending.of.row.at.array();
        let tested = [0, 1].map(|n| {
            tests
                .is_none_or(|tests| tests[n].is_some())
                .then_some(by[n])
        });
        let of = (range, tested);
        let found = known.iter().find(|(other, _)| *other == of);
        let mut met = match found {
            Some((_, met)) => *met,
            None => {
                let met = self.meets_box(k, context, lane, amending, tests);
                known.push((of, met));
                met
            }
        };
        if let Some(predicate) = amending.predicate {
            let acts = predicate.acts(k, context, amending.update, &amending.of.row);
            met.acts = k.int(IntOp::And, met.acts, acts);
        }
        met
    }

    /// The same without regard to ends of the grid.
    fn meets_box(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        amending: &Amending<'_>,
        tests: Option<[Option<[Operand; 2]>; 2]>,
    ) -> Met {
        let layout = layout_of(context, amending.amendment().zone);
        let range = amending.update.region[Axis::INNER];
        let by = amending.of.row.at.array();
        let mut all = amending.active;
        let mut moved = None;
        match tests {
            Some(tests) => {
                for (test, by) in tests.into_iter().zip(by) {
                    let Some([from, len]) = test else { continue };
                    let from = k.again(from);
                    let from = k.int(IntOp::Add, from, word(by));
                    let within = k.compare(IntCmp::Below, from, len);
                    all = and(k, all, within);
                }
                if let Some(within) = lane_meets(k, context, lane, &layout.boxes, range) {
                    all = and(k, all, within);
                }
            }
            None => {
                let at = [0, 1].map(|n| {
                    let at = k.again(self.origin.at[n]);
                    k.int(IntOp::Add, at, word(by[n]))
                });
                let (some, by) = some_box(k, context, lane, layout, at, range);
                all = and(k, all, some);
                moved = Some(by);
            }
        }
        Met {
            acts: all.unwrap_or(Operand::int(Type::I1, 1)),
            moved,
        }
    }

    /// Where a state of a row lies, from the place of row 0 of its group.
    fn state(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        amending: &Amending<'_>,
        state: StateId,
        moved: Option<Operand>,
    ) -> Operand {
        let zone = amending.amendment().zone;
        let layout = layout_of(context, zone);
        let Group { x, y } = amending.of.row.at;
        let row = context.layout.state_start(zone, state);
        let far = context.bytes(x * layout.plane + y * layout.group + row);
        let plane = context.bytes(layout.plane);
        let Some(place) = self.places.get_mut(&zone) else {
            return Operand::poison(Type::GLOBAL);
        };
        let to = place.states.plane(k, context, x, plane, far);
        match moved {
            Some(by) => k.advance(to, by, 1),
            None => to,
        }
    }

    /// Fetches the values that amendments of rows in the same zone need from memory.
    pub fn fetch(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        rows: &[Amending<'_>],
    ) {
        let mut known = Known::new();
        // Coefficients of an axis, by the index along it and where they are needed.
        let mut coefs: Vec<((CoefId, i64, Operand), Operand)> = Vec::new();
        for amending in rows {
            let Met { acts, moved } = self.meets(k, context, lane, amending, &mut known);
            let amendment = amending.amendment();
            let at = amending.of.row.at;
            let mut found: Vec<(Op, Operand)> = Vec::new();
            let mut values = Vec::with_capacity(amendment.body.ops.len());
            for op in &amendment.body.ops {
                let before = found.iter().find(|(other, _)| other == op);
                let kept = &context.block().coefs;
                let is_near = |coef| kept.line(amendment.zone, coef).is_some();
                let value = match (before, memory_of(context.scheme, op), op) {
                    (_, _, Op::Coef(coef)) if is_near(*coef) => None,
                    (Some((_, value)), ..) => Some(*value),
                    (_, Some(Memory::State(state)), _) => {
                        let from = self.state(k, context, amending, state, moved);
                        Some(k.load_if(acts, context.real, from))
                    }
                    (_, Some(Memory::Row(axis)), Op::Coef(coef)) => {
                        let of = (*coef, at.array()[usize::from(axis == Axis::MIDDLE)], acts);
                        let before = coefs.iter().find(|(other, _)| *other == of);
                        Some(match before {
                            Some((_, value)) => *value,
                            None => {
                                let from = self.coef(k, context, axis, *coef, at);
                                let value = k.load_if(acts, context.real, from);
                                coefs.push((of, value));
                                value
                            }
                        })
                    }
                    (_, Some(Memory::Lane), Op::Coef(coef)) => {
                        Some(self.coef_of_lane(k, context, lane, amendment.zone, *coef))
                    }
                    _ => None,
                };
                found.extend(value.map(|value| (*op, value)));
                values.push(value);
            }
            self.fetched.insert(amending.of, values);
        }
    }

    /// Where a coefficient of an axis along which rows differ lies.
    fn coef(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        axis: Axis,
        coef: CoefId,
        by: Group,
    ) -> Operand {
        let n = usize::from(axis == Axis::MIDDLE);
        let own = &context.layout.axis_coefs[axis];
        let first = Operand::i64(context.bytes(own.origin));
        let at = self.origin.at[n];
        let find = || {
            let array = context.beside(k);
            pointer(k, context, array, first, &[(at, own.stride)])
        };
        let origin = *self.coefs[n].get_or_insert_with(find);
        let element = context.layout.axis_coef_element(axis, coef, by.array()[n]);
        k.offset(origin, context.bytes(element - own.origin))
    }

    fn coef_of_lane(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        zone: ZoneId,
        coef: CoefId,
    ) -> Operand {
        let load = || lane_coef(k, context, lane, zone, coef);
        *self.of_lane.entry((zone, coef)).or_insert_with(load)
    }

    /// Which of the coefficients `all` in shared memory the operations of an amendment read; missing ones are added.
    fn near(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        amending: &Amending<'_>,
        all: &mut Vec<Near>,
    ) -> Vec<Option<usize>> {
        let Amending { of, .. } = amending;
        let amendment = amending.amendment();
        let zone = amendment.zone;
        let ops = amendment.body.ops.iter().map(|op| {
            let Op::Coef(coef) = op else { return None };
            let line = context.block().coefs.line(zone, *coef)?;
            let axis = line.axis;
            let by = zone_coefs::distance(context, line, *coef, of.row.at);
            let same = |near: &Near| near.of == (axis, by);
            if let Some(number) = all.iter().position(same) {
                return Some(number);
            }
            let at = self.origin.at;
            let find = || zone_coefs::base(k, context, lane, line, at);
            let base = *self.near.entry((zone, axis.index())).or_insert_with(find);
            let from = k.offset(base, by);
            let of = (axis, by);
            all.push(Near { of, from });
            Some(all.len() - 1)
        });
        ops.collect()
    }

    /// Amends the thread's values of rows in the same zone, and advances their states. There is one jump
    /// for all rows.
    pub fn amend(
        &mut self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        rows: &[(Amending<'_>, AmendedValues)],
    ) -> Vec<Operand> {
        let mut known = Known::new();
        let mut near: Vec<Near> = Vec::new();
        let mut all = Vec::with_capacity(rows.len());
        for (amending, values) in rows {
            let Met { acts, moved } = self.meets(k, context, lane, amending, &mut known);
            let amendment = amending.amendment();
            let advances = amendment.advances.iter();
            let to = advances.map(|a| self.state(k, context, amending, a.state, moved));
            let to: Vec<Operand> = to.collect();
            let acts = values.unmasked(k, context, acts);
            all.push(Acting {
                amendment,
                values,
                acts,
                near: self.near(k, context, lane, amending, &mut near),
                fetched: self.fetched.remove(&amending.of).unwrap_or_default(),
                to,
            });
        }
        amend(k, context, &all, &near)
    }
}

/// Whether an amendment acts on the thread's value of a row, and bytes from the place of its states in the first box.
#[derive(Clone, Copy)]
struct Met {
    acts: Operand,
    moved: Option<Operand>,
}

/// The same of rows in one zone, by the range along the inner axis and the indices that decide.
type Known = Vec<((Interval, [Option<i64>; 2]), Met)>;

/// A coefficient of the inner axis at the thread's index, if that is in the zone.
pub(super) fn lane_coef(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    zone: ZoneId,
    coef: CoefId,
) -> Operand {
    let boxes = &layout_of(context, zone).boxes;
    let whole = Interval::new(0, context.layout.extent[Axis::INNER]);
    let meets = lane_meets(k, context, lane, boxes, whole);
    let meets = meets.unwrap_or(Operand::int(Type::I1, 1));
    let first = context.layout.axis_coef_element(Axis::INNER, coef, 0);
    let array = context.beside(k);
    let from = k.offset(array, context.bytes(first));
    let from = k.advance(from, lane.index, context.real.bytes());
    k.load_if(meets, context.real, from)
}

/// Whether the thread's cell of a row, at indices of the array and in a range along the inner axis, is in a box of a
/// zone; and bytes from the first box's place of its states to theirs.
pub(super) fn some_box(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    layout: &ZoneLayout,
    at: [Operand; 2],
    range: Interval,
) -> (Operand, Operand) {
    let mut some = Operand::int(Type::I1, 0);
    let mut by = Operand::i64(0);
    let first = layout.boxes.first().map_or(0, |b| base(context, layout, b));
    for own in &layout.boxes {
        let mut within = None;
        for (axis, at) in ACROSS.into_iter().zip(at) {
            if !covers(context, std::slice::from_ref(own), axis) {
                let test = in_interval(k, at, own.region[axis]);
                within = and(k, within, test);
            }
        }
        let range = own.region[Axis::INNER].intersect(range);
        if range.is_empty() {
            continue;
        }
        if let Some(test) = lane_is_within(k, context, lane, range) {
            within = and(k, within, test);
        }
        let within = within.unwrap_or(Operand::int(Type::I1, 1));
        some = k.int(IntOp::Or, some, within);
        let moved = Operand::i64(base(context, layout, own) - first);
        if moved != by {
            by = k.choose(within, moved, by);
        }
    }
    (some, by)
}
