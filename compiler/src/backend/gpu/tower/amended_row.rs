//! Amendments of rows of boundary periods: row by row, wherever these lie.

use super::super::ir::Operand;
use super::super::kernel::{IntOp, Kernel};
use super::amended::{Acting, AmendedValues, amend};
use super::context::{Context, Lane};
use super::source_box::RowPlace;
use super::zone::{OfLane, base, lane_coef, layout_of, pointer, some_box};
use crate::lattice::Axis;
use crate::scheme::{Amendment, Op, StateId, Update, ZoneId};
use crate::tower::{Memory, memory_of};

/// An amendment of a row of a boundary period.
pub(super) struct AmendedRow {
    /// Whether it acts on the thread's value, but for a mask.
    acts: Operand,
    /// Row 0 of its states.
    states: Operand,
    /// The values that its body reads from memory, rows excepted, by its operations.
    loaded: Vec<Option<Operand>>,
}

impl AmendedRow {
    /// Loads the values that an amendment of a row needs from memory.
    pub fn new(
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        lane: &Lane,
        update: &Update,
        amendment: &Amendment,
        place: RowPlace,
        of_lane: &OfLane,
    ) -> AmendedRow {
        let layout = layout_of(context, amendment.zone);
        let range = update.region[Axis::INNER];
        let (some, by) = some_box(k, context, lane, layout, place.at, range);
        let acts = k.int(IntOp::And, place.inside, some);
        let first = layout.boxes.first().map_or(0, |b| base(context, layout, b));
        let first = k.int(IntOp::Add, by, Operand::i64(first));
        let plane = match layout.in_planes {
            true => place.plane,
            false => place.at[0],
        };
        let strides = [(plane, layout.plane), (place.at[1], layout.group)];
        let array = context.states(k, layout);
        let states = pointer(k, context, array, first, &strides);
        let mut row = AmendedRow {
            acts,
            states: k.advance(states, lane.index, context.real.bytes()),
            loaded: Vec::new(),
        };
        for op in &amendment.body.ops {
            let from = match (memory_of(context.scheme, op), op) {
                (Some(Memory::State(state)), _) => {
                    Some(row.state(k, context, amendment.zone, state))
                }
                (Some(Memory::Row(axis)), Op::Coef(coef)) => {
                    let at = place.at[usize::from(axis == Axis::MIDDLE)];
                    let first = context.layout.axis_coef_element(axis, *coef, 0);
                    let first = Operand::i64(context.bytes(first));
                    let stride = context.layout.axis_coefs[axis].stride;
                    let array = context.beside(k);
                    Some(pointer(k, context, array, first, &[(at, stride)]))
                }
                (Some(Memory::Lane), Op::Coef(coef)) => {
                    row.loaded
                        .push(of_lane.get(&(amendment.zone, *coef)).copied());
                    continue;
                }
                _ => None,
            };
            row.loaded
                .push(from.map(|from| k.load_if(acts, context.real, from)));
        }
        row
    }

    fn state(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        zone: ZoneId,
        state: StateId,
    ) -> Operand {
        let row = context.layout.state_start(zone, state);
        k.offset(self.states, context.bytes(row))
    }

    /// The amended value of the thread; the amendment's states advance.
    pub fn amend(
        &self,
        k: &mut Kernel<'_>,
        context: &Context<'_>,
        amendment: &Amendment,
        values: AmendedValues,
    ) -> Operand {
        let advances = amendment.advances.iter();
        let to = advances.map(|a| self.state(k, context, amendment.zone, a.state));
        let to: Vec<Operand> = to.collect();
        let acting = Acting {
            amendment,
            values: &values,
            acts: values.unmasked(k, context, self.acts),
            fetched: self.loaded.clone(),
            near: Vec::new(),
            to,
        };
        let amended = amend(k, context, &[acting], &[]);
        amended.first().copied().unwrap_or(values.base)
    }
}

/// The coefficients of the inner axis that the amendments of an update read: the same for all rows.
pub(super) fn lane_coefs(
    k: &mut Kernel<'_>,
    context: &Context<'_>,
    lane: &Lane,
    update: &Update,
) -> OfLane {
    let mut all = OfLane::new();
    for amendment in &update.amendments {
        for op in &amendment.body.ops {
            let (Some(Memory::Lane), Op::Coef(coef)) = (memory_of(context.scheme, op), op) else {
                continue;
            };
            let zone = amendment.zone;
            all.entry((zone, *coef))
                .or_insert_with(|| lane_coef(k, context, lane, zone, *coef));
        }
    }
    all
}
