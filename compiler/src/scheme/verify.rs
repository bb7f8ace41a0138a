//! Checks the rules of [`super`]; a violation is a bug of the resolver.

use super::{Body, ComponentId, Op, Scheme, StageId, Update};
use crate::lattice::{Axis, Interval, Position};

/// All rules in the module's documentation, by number in the messages.
pub fn verify(scheme: &Scheme) -> Result<(), String> {
    let grid = &scheme.grid;
    for axis in Axis::ALL {
        let absent = grid.axes[axis].is_none();
        if grid.cells[axis] < 1 || (absent && grid.cells[axis] != 1) {
            return Err(format!(
                "rule 1: {axis} axis has {} cells",
                grid.cells[axis]
            ));
        }
    }
    let position = |p: Position, name: &str| {
        for (axis, h) in p.iter() {
            if !(0..=1).contains(&h.0) || (grid.axes[axis].is_none() && h.0 != 0) {
                return Err(format!("rule 1: {name} has position {h} along {axis}"));
            }
        }
        Ok(())
    };
    for c in &scheme.components {
        position(c.position, &c.name)?;
        if !(0..=1).contains(&c.time.0) || c.time_levels == 0 {
            return Err(format!("rule 1: time or time levels of {}", c.name));
        }
    }
    for m in &scheme.coefs {
        position(m.position, &m.name)?;
    }
    for id in scheme.stage_ids() {
        let stage = &scheme.stages[id.index()];
        for (i, update) in stage.updates.iter().enumerate() {
            if update.target.index() >= scheme.components.len() {
                return Err(format!("rule 1: {id} updates {}", update.target));
            }
            if stage.updates[..i].iter().any(|u| u.target == update.target) {
                return Err(format!("rule 3: {id} updates {} twice", update.target));
            }
            check_update(scheme, id, update).map_err(|e| format!("{e} (in {id})"))?;
        }
    }
    check_zones(scheme)?;
    for (axis, &[below, above]) in scheme.reach().iter() {
        if i64::from(below.max(above)) > grid.cells[axis] && grid.axes[axis].is_some() {
            return Err(format!("rule 8: reach {below}, {above} along {axis}"));
        }
    }
    Ok(())
}

fn check_update(scheme: &Scheme, stage: StageId, update: &Update) -> Result<(), String> {
    let target = scheme.component(update.target);
    let live = scheme.grid.live(target.position);
    if update.region.intersect(live) != update.region && !update.region.is_empty() {
        return Err(format!("rule 2: region of {}", target.name));
    }
    if target.time_levels > 1 {
        let whole = Axis::ALL.iter().all(|&a| {
            let (r, l): (Interval, Interval) = (update.region[a], live[a]);
            r == l
        });
        if !whole || update.mask.is_some() {
            return Err(format!(
                "rule 6: {} keeps {} versions",
                target.name, target.time_levels
            ));
        }
    }
    if let Some(mask) = update.mask {
        check_coef(scheme, mask, update.target)?;
    }
    check_body(scheme, update.target, &update.body)?;
    check_amendments(scheme, update)?;
    for read in update.reads() {
        let read_component = scheme.component(read.component);
        if read.age >= read_component.time_levels {
            return Err(format!(
                "rule 5: age {} of {}",
                read.age, read_component.name
            ));
        }
        let overwritten = scheme.stages[stage.index()]
            .updates
            .iter()
            .any(|u| u.target == read.component)
            && read.age + 1 == read_component.time_levels;
        let own = read.component == update.target && read.offset.0 == [0; 3];
        if overwritten && !own {
            return Err(format!(
                "rule 4: {} is overwritten while read",
                read_component.name
            ));
        }
    }
    Ok(())
}

fn check_amendments(scheme: &Scheme, update: &Update) -> Result<(), String> {
    let wrong = |name: &str| Err(format!("rule 9: {name} of {}", update.target));
    let outside = |op: &Op| match op {
        Op::Base | Op::State(_) => true,
        Op::Coef(id) => scheme.coefs[id.index()].only_axis.is_some(),
        _ => false,
    };
    let of_axis = |id: super::CoefId| scheme.coefs[id.index()].only_axis.is_some();
    if update.body.ops.iter().any(outside) || update.mask.is_some_and(of_axis) {
        return wrong("an operand outside of an amendment");
    }
    for (i, amendment) in update.amendments.iter().enumerate() {
        if amendment.zone.index() >= scheme.zones.len() {
            return wrong("the zone of an amendment");
        }
        if update.amendments[..i]
            .iter()
            .any(|a| a.zone == amendment.zone)
        {
            return wrong("a second amendment for a zone");
        }
        check_body(scheme, update.target, &amendment.body)?;
        let read = amendment.body.ops.iter().filter_map(|op| match op {
            Op::State(id) => Some(*id),
            _ => None,
        });
        let advanced = amendment.advances.iter().map(|a| a.state);
        for id in advanced.chain(read) {
            let Some(state) = scheme.states.get(id.index()) else {
                return wrong("a state that does not exist");
            };
            let place = (state.zone, state.position);
            if place != (amendment.zone, scheme.component(update.target).position) {
                return wrong("a state from elsewhere");
            }
            let times = amendment.advances.iter().filter(|a| a.state == id).count();
            if times != 1 {
                return wrong("a state that is not advanced once");
            }
        }
        let beyond = |a: &super::StateAdvance| a.value.index() >= amendment.body.ops.len();
        if amendment.advances.iter().any(beyond) {
            return wrong("the new value of a state");
        }
    }
    Ok(())
}

/// Zones are disjoint boxes, and each state belongs to one amendment.
fn check_zones(scheme: &Scheme) -> Result<(), String> {
    if scheme.zones.len() > super::MOST_ZONES {
        return Err(format!("rule 9: {} zones", scheme.zones.len()));
    }
    for zone in &scheme.zones {
        for (i, one) in zone.boxes.iter().enumerate() {
            if zone.boxes[..i]
                .iter()
                .any(|b| !b.intersect(*one).is_empty())
            {
                return Err(format!("rule 9: boxes of zone {} overlap", zone.name));
            }
        }
    }
    let mut owners = vec![0; scheme.states.len()];
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    for advance in updates
        .flat_map(|u| &u.amendments)
        .flat_map(|a| &a.advances)
    {
        if let Some(owner) = owners.get_mut(advance.state.index()) {
            *owner += 1;
        }
    }
    match owners.iter().position(|n| *n != 1) {
        Some(i) => Err(format!("rule 9: state q{i} has {} owners", owners[i])),
        None => Ok(()),
    }
}

fn check_coef(scheme: &Scheme, id: super::CoefId, target: ComponentId) -> Result<(), String> {
    match scheme.coefs.get(id.index()) {
        Some(coef) if coef.position == scheme.component(target).position => Ok(()),
        _ => Err(format!("rule 1: coefficient {id} of {target}")),
    }
}

fn check_body(scheme: &Scheme, target: ComponentId, body: &Body) -> Result<(), String> {
    for (i, op) in body.ops.iter().enumerate() {
        let mut late = false;
        op.operands(|v| late |= v.index() >= i);
        if late {
            return Err(format!("rule 7: operand of %{i}"));
        }
        match op {
            Op::Const(c) if scheme.precision.round(*c).to_bits() != c.to_bits() && !c.is_nan() => {
                return Err(format!("rule 7: constant {c:?} of %{i}"));
            }
            Op::Read(read) => {
                if read.component.index() >= scheme.components.len() {
                    return Err(format!("rule 1: read of {}", read.component));
                }
                for (axis, &o) in read.offset.iter() {
                    if scheme.grid.axes[axis].is_none() && o != 0 {
                        return Err(format!("rule 1: offset {o} along {axis}"));
                    }
                }
            }
            Op::Coef(id) => check_coef(scheme, *id, target)?,
            Op::State(id) if id.index() >= scheme.states.len() => {
                return Err(format!("rule 1: state {id}"));
            }
            _ => {}
        }
    }
    if body.result.index() >= body.ops.len() {
        return Err("rule 7: result".to_string());
    }
    Ok(())
}
