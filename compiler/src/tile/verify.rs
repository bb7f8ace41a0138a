//! Checks the rules of tile programs; a violation is a bug of `lower`, not of a tiling.
//!
//! 1. A time block has at least one step; there is a list of classes for each stage of the scheme.
//! 2. Planes differ, and their slopes are at least 0. A form that has the inner axis has no other axis.
//! 3. Each cut names a plane and has a positive pitch.
//! 4. A stage has at most 64 classes. Each update with a row region that is not empty is in exactly one class of its
//!    stage, and that class has its row region; updates without rows are in none.
//! 5. The position of a class is that of its updates' targets; along the inner axis all classes of a stage share one, 0
//!    or 1. A class has a lead, at least 0, for each plane.
//! 6. Each periodic axis is either folded, with a ring of twice as many half cells as cells, or open; no other axis is.
//! 7. Rows follow each other along the middle axis if the grid has one.
//! 8. No update reads farther away than the reach.
//! 9. There is a seam only where the outer axis is open. It is a plane of that axis alone, whose form has the other
//!    sign there than all faces of the outermost level.

use super::{ClassSet, TileProgram};
use crate::kernel::row_region;
use crate::lattice::{Axis, PerAxis};
use crate::scheme::{Scheme, StageId};

/// All rules in the module's documentation, by number in the messages.
pub fn verify(scheme: &Scheme, program: &TileProgram) -> Result<(), String> {
    if program.height == 0 || program.stages.len() != scheme.stages.len() {
        return Err(format!(
            "rule 1: height {}, {} stages for {}",
            program.height,
            program.stages.len(),
            scheme.stages.len()
        ));
    }
    for (i, plane) in program.planes.iter().enumerate() {
        let mixed = plane.form[Axis::INNER] != 0
            && (plane.form[Axis::OUTER] != 0 || plane.form[Axis::MIDDLE] != 0);
        if mixed || plane.slope < 0 {
            return Err(format!("rule 2: plane {i} is {plane}"));
        }
        if program.planes[..i].contains(plane) {
            return Err(format!("rule 2: plane {i} is there twice"));
        }
    }
    for cut in program.levels.iter().flatten() {
        if cut.plane >= program.planes.len() || cut.pitch <= 0 {
            return Err(format!("rule 3: plane {} pitch {}", cut.plane, cut.pitch));
        }
    }
    for stage in scheme.stage_ids() {
        check_classes(scheme, program, stage)?;
    }
    for axis in Axis::ALL {
        let ring = scheme.grid.is_periodic(axis) && !program.open[axis];
        let length = ring.then_some(2 * scheme.grid.cells[axis]);
        let closed = program.open[axis] && !scheme.grid.is_periodic(axis);
        if closed || program.ring[axis] != length {
            let found = program.ring[axis];
            return Err(format!(
                "rule 6: the ring of the {axis:?} axis is {found:?}"
            ));
        }
    }
    let reach = scheme.reach();
    if Axis::ALL
        .iter()
        .any(|&a| reach[a].iter().any(|r| i64::from(*r) > program.reach[a]))
    {
        return Err(format!("rule 8: a reach of {:?}", program.reach.0));
    }
    if program.three_axes != scheme.grid.axes[Axis::MIDDLE].is_some() {
        return Err("rule 7: rows follow each other along a wrong axis".to_string());
    }
    check_seam(program)
}

fn check_seam(program: &TileProgram) -> Result<(), String> {
    let Some(seam) = program.seam else {
        return Ok(());
    };
    let form = program.planes.get(seam).map(|plane| plane.form);
    let against = form.is_some_and(|PerAxis([outer, middle, inner])| {
        let cuts = program.levels.first().into_iter().flatten();
        let mut along = cuts.map(|cut| program.planes[cut.plane].form[Axis::OUTER].signum());
        (middle, inner) == (0, 0) && outer != 0 && along.all(|sign| sign == -outer.signum())
    });
    match program.open[Axis::OUTER] && against {
        true => Ok(()),
        false => Err(format!("rule 9: the seam is plane {seam}")),
    }
}

fn check_classes(scheme: &Scheme, program: &TileProgram, stage: StageId) -> Result<(), String> {
    let classes = &program.stages[stage.index()];
    if classes.len() > ClassSet::BITS as usize {
        return Err(format!("rule 4: {stage} has {} classes", classes.len()));
    }
    let updates = &scheme.stages[stage.index()].updates;
    for (i, update) in updates.iter().enumerate() {
        let region = row_region(scheme, update);
        let own: Vec<_> = classes.iter().filter(|c| c.updates.contains(i)).collect();
        match own.as_slice() {
            [] if region.is_empty() => {}
            [class] if !region.is_empty() && class.region == region => {
                let position = scheme.component(update.target).position;
                let same = [Axis::OUTER, Axis::MIDDLE]
                    .iter()
                    .all(|&a| class.position[a] == position[a].0);
                if !same {
                    return Err(format!("rule 5: update {i} of {stage} lies elsewhere"));
                }
            }
            _ => {
                let found = own.len();
                return Err(format!(
                    "rule 4: update {i} of {stage} is in {found} classes or has other rows"
                ));
            }
        }
    }
    let known = |set: u64| updates.len() >= 64 || set >> updates.len() == 0;
    for class in classes {
        let anchor = class.position[Axis::INNER];
        if class.updates.is_empty() || !known(class.updates.0) {
            return Err(format!("rule 4: {stage} has a class of wrong updates"));
        }
        if !(0..=1).contains(&anchor) || anchor != classes[0].position[Axis::INNER] {
            return Err(format!("rule 5: {stage} has an anchor {anchor}"));
        }
        if class.leads.len() != program.planes.len() || class.leads.iter().any(|&l| l < 0) {
            return Err(format!("rule 5: {stage} has leads {:?}", class.leads));
        }
    }
    Ok(())
}
