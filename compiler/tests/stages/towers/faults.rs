//! Planted faults in tower programs, one for each rule: `verify` finds them, and finds nothing without them.

use super::*;
use torre_compiler::incident::FarRows;
use torre_compiler::scheme::{Op, Read};
use torre_compiler::testing::{add_layers, diamonds, lengthen, star};
use torre_compiler::tower::block::{Division, Options};
use torre_compiler::tower::{
    Adds, AllocatedTowers, Amend, Numbering, Operand, RowOp, StageProgram, TowerProgram, Update,
    VolumeSource, verify,
};

/// A scheme with its layout and a program for it.
struct Case {
    scheme: Scheme,
    layout: Layout,
    program: TowerProgram,
}

impl Case {
    /// FDTD(4,2) with ends that may cut rows off.
    fn new(division: Division) -> Case {
        let mut scheme = maxwell(4, Precision::F32, [24, 24, 24]);
        scheme.grid.boundary = PerAxis::splat([Boundary::Zero; 2]);
        everywhere(&mut scheme);
        if division != Division::Shared(1) {
            lengthen(&mut scheme, Axis::INNER, 60);
        }
        Case::of(scheme, division)
    }

    fn of(scheme: Scheme, division: Division) -> Case {
        let layout = Layout::for_gpu(&scheme).expect("it is small");
        let frame = Frame::new(&scheme, &cones(&scheme)).opened();
        let tiling = diamonds(&frame, [Rational::whole(6); 2], 1 << 20);
        let tiles = lower(&scheme, &frame, &tiling).expect("fitting faces are legal");
        let options = Options {
            division,
            ..Options::default()
        };
        let program = TowerProgram::new(&scheme, &layout, &tiles, &[], options);
        let program = program.expect("these are towers");
        verify(&scheme, &layout, &program).expect("the program is right");
        Case {
            scheme,
            layout,
            program,
        }
    }

    /// The rule that a program breaks after a change.
    fn broken(&self, change: impl FnOnce(&mut TowerProgram)) -> Option<u32> {
        let mut program = self.program.clone();
        change(&mut program);
        assert_ne!(program, self.program, "nothing was changed");
        let fault = verify(&self.scheme, &self.layout, &program).err();
        fault.map(|fault| fault.rule)
    }

    /// The same after a change of the first stage for which it is possible.
    fn broken_stage(&self, change: impl Fn(&mut StageProgram) -> bool) -> Option<u32> {
        self.broken(|program| {
            let mut stages = program.periods[0].variants[0].iter_mut();
            assert!(stages.any(change), "no stage can be changed so");
        })
    }
}

fn remove(stage: &mut StageProgram, which: impl Fn(&RowOp) -> bool) -> bool {
    let found = stage.ops.iter().position(which);
    found.map(|at| stage.ops.remove(at)).is_some()
}

fn updates(stage: &mut StageProgram) -> impl Iterator<Item = &mut Update> {
    stage.ops.iter_mut().filter_map(|op| match op {
        RowOp::Update(update) => Some(update),
        _ => None,
    })
}

/// A shared row that a stage reads.
fn read(stage: &mut StageProgram) -> Option<usize> {
    let mut operands = updates(stage).flat_map(|update| update.operands.iter().flatten());
    operands.find_map(|operand| match operand {
        Operand::CrossLane { shared, .. } => Some(*shared),
        _ => None,
    })
}

#[test]
fn each_alignment_has_a_period() {
    let case = Case::new(Division::Shared(1));
    let broken = case.broken(|program| {
        program.periods.pop();
    });
    assert_eq!(broken, Some(1));
    let broken = case.broken(|program| {
        program.periods[0].variants[0].pop();
    });
    assert_eq!(broken, Some(1));
}

#[test]
fn each_row_is_updated_once() {
    let case = Case::new(Division::Shared(1));
    let broken = case.broken_stage(|stage| {
        let first = stage
            .ops
            .iter()
            .position(|op| matches!(op, RowOp::Update(_)));
        first.is_some_and(|at| {
            stage.ops.insert(at, stage.ops[at].clone());
            true
        })
    });
    assert_eq!(broken, Some(2));
    let broken = case.broken(|program| {
        program.boundary.rows.pop();
    });
    assert_eq!(broken, Some(2), "in boundary periods");
}

#[test]
fn operands_are_the_newest_values_of_the_rows_that_are_meant() {
    let case = Case::new(Division::Shared(1));
    let broken = case.broken_stage(|stage| {
        let mut operands = updates(stage).flat_map(|update| update.operands.iter_mut().flatten());
        operands.any(|operand| match operand {
            Operand::CrossLane { by, .. } => {
                *by += 1;
                true
            }
            _ => false,
        })
    });
    assert_eq!(broken, Some(3), "of another index");
    let broken = case.broken(|program| program.periods[0].carried.clear());
    assert_eq!(broken, Some(3), "of no register");
    // The stage after one that loads does not wait.
    let broken = case.broken(|program| {
        for stage in &mut program.periods[0].variants[0] {
            stage.ops.retain(|op| !matches!(op, RowOp::Await));
        }
    });
    assert_eq!(broken, Some(3), "on its way");
}

#[test]
fn a_stage_overwrites_no_shared_row_that_it_reads() {
    let case = Case::new(Division::Shared(1));
    let broken = case.broken_stage(|stage| {
        let publish = |op: &RowOp| matches!(op, RowOp::Publish { .. });
        let (Some(read), Some(at)) = (read(stage), stage.ops.iter().position(publish)) else {
            return false;
        };
        let mut op = stage.ops.remove(at);
        if let RowOp::Publish { shared, .. } = &mut op {
            *shared = read;
        }
        stage.ops.push(op);
        true
    });
    assert_eq!(broken, Some(4));
}

#[test]
fn memory_has_what_is_loaded() {
    let case = Case::new(Division::Shared(1));
    let stages = &case.program.periods[0].variants[0];
    let copy = stages.iter().flat_map(|stage| &stage.loads).next();
    let copy = *copy.expect("something is loaded");
    let free = case.program.allocations.iter().map(|a| a.shared_rows);
    let free = free.max().unwrap_or(0);
    let broken = case.broken_stage(|stage| {
        let stored = stage.ops.iter().filter_map(|op| match op {
            RowOp::Store { row, .. } => Some(*row),
            _ => None,
        });
        let stored: Vec<torre_compiler::tower::RowRef> = stored.collect();
        let kept = updates(stage).map(|update| update.target);
        let Some(row) = kept.into_iter().find(|row| !stored.contains(row)) else {
            return false;
        };
        stage.loads.push(torre_compiler::tower::SharedCopy {
            row,
            shared: free,
            ..copy
        });
        true
    });
    assert_eq!(broken, Some(5));
}

#[test]
fn rows_are_committed_before_they_are_used() {
    let case = Case::new(Division::Shared(1));
    let broken = case.broken_stage(|stage| remove(stage, |op| matches!(op, RowOp::Commit(_))));
    assert_eq!(broken, Some(6));
    let broken = case.broken_stage(|stage| {
        let commit = |op: &RowOp| matches!(op, RowOp::Commit(_));
        let at = stage.ops.iter().position(commit);
        at.is_some_and(|at| {
            stage.ops.insert(at, stage.ops[at].clone());
            true
        })
    });
    assert_eq!(broken, Some(6), "twice");
}

#[test]
fn a_period_leaves_what_the_next_one_begins_with() {
    let case = Case::new(Division::Shared(1));
    let broken = case.broken(|program| {
        let mut stages = program.periods[0].variants[0].iter_mut().rev();
        let store = |op: &RowOp| matches!(op, RowOp::Store { .. });
        assert!(stages.any(|stage| remove(stage, store)));
    });
    assert_eq!(broken, Some(7), "in memory");
    let broken = case.broken(|program| {
        let carried = &mut program.periods[0].carried;
        let extra = torre_compiler::tower::RowRef {
            at: Group::new(1000, 1000),
            ..carried[0].row
        };
        let mut carry = carried[0];
        carry.row = extra;
        carried.push(carry);
    });
    assert_eq!(broken, Some(7), "in registers");
}

#[test]
fn updates_that_may_be_cut_have_the_old_value() {
    for division in [Division::Shared(1), Division::ZBlocks(1)] {
        let case = Case::new(division);
        let broken = case.broken(|program| {
            let period = &mut program.periods[0];
            let stages = match division {
                Division::ZBlocks(_) => &mut period.variants[0],
                _ => period.variants.last_mut().expect("ends cut rows off"),
            };
            let mut all = stages.iter_mut().flat_map(updates);
            let update = all.find(|update| update.old.is_some());
            update.expect("an old value").old = None;
        });
        assert_eq!(broken, Some(8), "{division:?}");
    }
}

#[test]
fn faces_of_z_blocks_move_as_far_as_stages_read() {
    let mut case = Case::new(Division::ZBlocks(1));
    let read = case.scheme.stages[0].updates.iter_mut();
    let mut reads = read.flat_map(|update| &mut update.body.ops);
    let read = reads.find_map(|op| match op {
        Op::Read(read) if read.offset[Axis::INNER] > 0 => Some(read),
        _ => None,
    });
    read.expect("a read above").offset[Axis::INNER] += 3;
    let fault = verify(&case.scheme, &case.layout, &case.program);
    assert_eq!(fault.err().map(|fault| fault.rule), Some(9));
}

/// Of steps of one stage or two.
#[test]
fn rows_are_amended_in_order_with_the_values_that_were_fetched() {
    let open = PerAxis::splat([Boundary::Zero; 2]);
    for mut scheme in [
        maxwell(4, Precision::F32, [24, 24, 24]),
        star(1, Precision::F32, [24, 24, 24]),
    ] {
        scheme.grid.boundary = open;
        everywhere(&mut scheme);
        let early = scheme.stages.len() == 1;
        add_layers(&mut scheme, PerAxis::splat(3));
        let mut case = Case::of(scheme, Division::Shared(1));
        assert_eq!(case.program.towers.variants.all.len(), 3);
        // The second variant has all amendments.
        case.program.periods[0].variants[0] = case.program.periods[0].variants[1].clone();
        case.program.towers.variants.all[0] = case.program.towers.variants.all[1];
        let is_amend = |op: &RowOp| matches!(op, RowOp::Amend(_));
        let is_fetch = |op: &RowOp| matches!(op, RowOp::Fetch(_));
        let at =
            |stage: &StageProgram, which: &dyn Fn(&RowOp) -> bool| stage.ops.iter().position(which);
        let none = case.broken_stage(|stage| remove(stage, is_amend));
        assert_eq!(none, Some(10), "an amendment is missing");
        let none = case.broken_stage(|stage| remove(stage, is_fetch));
        assert_eq!(none, Some(10), "nothing was asked for");
        let twice = case.broken_stage(|stage| {
            let fetch = at(stage, &is_fetch);
            fetch.is_some_and(|n| {
                stage.ops.insert(n, stage.ops[n].clone());
                true
            })
        });
        assert_eq!(twice, Some(10), "something was asked for twice");
        let late = case.broken_stage(|stage| {
            let commit = |op: &RowOp| matches!(op, RowOp::Commit(_));
            let (Some(amend), Some(commit)) = (at(stage, &is_amend), at(stage, &commit)) else {
                return false;
            };
            let amend = stage.ops.remove(amend);
            stage.ops.insert(commit, amend);
            true
        });
        assert_eq!(late, Some(10), "a row is final before it is amended");
        let order = case.broken_stage(|stage| {
            let rows = |op: &RowOp| match op {
                RowOp::Amend(all) => all.iter().map(|amend| amend.of.row).collect(),
                _ => Vec::new(),
            };
            let Some(first) = at(stage, &is_amend) else {
                return false;
            };
            let before = rows(&stage.ops[first]);
            let shares = |op: &RowOp| rows(op).iter().any(|row| before.contains(row));
            let mut later = first + 1..stage.ops.len();
            let Some(second) = later.find(|n| shares(&stage.ops[*n])) else {
                return false;
            };
            let amend = stage.ops.remove(first);
            stage.ops.insert(second, amend);
            true
        });
        assert_eq!(order, Some(10), "amendments are out of order");
        // The first row alone, then its next amendment together with the others.
        let together = case.broken_stage(|stage| {
            let Some(first) = at(stage, &is_amend) else {
                return false;
            };
            let RowOp::Amend(mut others) = stage.ops.remove(first) else {
                return false;
            };
            let alone = others.remove(0);
            let mut later = stage.ops[first..].iter_mut();
            let next = later.find_map(|op| match op {
                RowOp::Amend(all) => {
                    let own = all.iter().position(|amend| amend.of.row == alone.of.row);
                    own.map(|n| all.remove(n))
                }
                _ => None,
            });
            others.extend(next);
            let both = [vec![alone], others].map(RowOp::Amend);
            stage.ops.splice(first..first, both);
            true
        });
        assert_eq!(together, Some(10), "rows are amended together in two zones");
        if early {
            let early = case.broken_stage(|stage| {
                let fetch = at(stage, &is_fetch).map(|n| stage.ops.remove(n));
                stage.ops.splice(0..0, fetch).count() == 0
            });
            assert_eq!(early, Some(10), "something was asked for before the wait");
        }
        let operand = case.broken_stage(|stage| {
            let operands = stage.ops.iter_mut().flat_map(|op| match op {
                RowOp::Amend(all) => all.as_mut_slice(),
                _ => &mut [],
            });
            let mut reads = operands.flat_map(|amend| amend.operands.iter_mut().flatten());
            reads.any(|operand| match operand {
                Operand::CrossLane { by, .. } => {
                    *by += 1;
                    true
                }
                _ => false,
            })
        });
        assert_eq!(operand, Some(3), "another value is read");
    }
}

/// The new value of a row instead of the old one, and an update that does not keep the old one.
#[test]
fn amendments_read_old_values_of_their_rows() {
    let mut scheme = maxwell(4, Precision::F32, [24; 3]);
    scheme.grid.boundary = PerAxis::splat([Boundary::Zero; 2]);
    everywhere(&mut scheme);
    add_layers(&mut scheme, PerAxis([0, 0, 3]));
    for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
        let ops = update.amendments.iter_mut().flat_map(|a| &mut a.body.ops);
        let mut reads = ops.filter(|op| matches!(op, Op::Read(_)));
        if let Some(op) = reads.next() {
            *op = Op::Read(Read {
                component: update.target,
                age: 0,
                offset: PerAxis::splat(0),
            });
        }
    }
    let case = Case::of(scheme, Division::Shared(1));
    fn amends(op: &mut RowOp) -> &mut [Amend] {
        match op {
            RowOp::Amend(all) => all,
            _ => &mut [],
        }
    }
    let is_old = |operand: &Operand| matches!(operand, Operand::Old(_));
    let new = case.broken_stage(|stage| {
        let operands = stage.ops.iter_mut().flat_map(amends);
        let mut operands = operands.flat_map(|amend| amend.operands.iter_mut().flatten());
        let found = operands.find(|operand| is_old(operand));
        found
            .map(|operand| *operand = Operand::Register(operand.row()))
            .is_some()
    });
    assert_eq!(new, Some(10), "the new value is read");
    let none = case.broken_stage(|stage| {
        let mut all = stage.ops.iter_mut().flat_map(amends);
        let reads = |amend: &&mut Amend| amend.operands.iter().flatten().any(is_old);
        let Some(row) = all.find(reads).map(|amend| amend.of.row) else {
            return false;
        };
        let updates = stage.ops.iter_mut().filter_map(|op| match op {
            RowOp::Update(update) if update.row == row => Some(update),
            _ => None,
        });
        updates.map(|update| update.old = None).count() == 1
    });
    assert_eq!(none, Some(3), "no register has the old value");
}

/// Waves in slots: too early, from another slot, not copied, twice.
#[test]
fn waves_come_from_their_slots() {
    let scheme = Case::new(Division::Shared(1)).scheme;
    let layout = Layout::for_gpu(&scheme).expect("it is small");
    let frame = Frame::new(&scheme, &cones(&scheme)).opened();
    let tiling = diamonds(&frame, [Rational::whole(6); 2], 1 << 20);
    let tiles = lower(&scheme, &frame, &tiling).expect("fitting faces are legal");
    let source = VolumeSource {
        stage: StageId(0),
        component: scheme.stages[0].updates[0].target,
        adds: Adds::Correction(FarRows::Alike),
    };
    let allocated = AllocatedTowers::new(&scheme, &layout, &tiles, Numbering::Grid);
    let allocated = allocated.expect("these are towers");
    let allocated = allocated.correcting(&[], &[source; 2], 7);
    let block = allocated.block(&scheme, &layout, Options::default());
    let block = block.expect("a block as before");
    assert!(block.slots.is_some(), "there is room");
    let program = allocated.program(&scheme, &layout, block);
    verify(&scheme, &layout, &program).expect("the program is right");
    let case = Case {
        scheme,
        layout,
        program,
    };
    let is_inject = |op: &RowOp| matches!(op, RowOp::Inject { .. });
    let early = case.broken_stage(|stage| {
        let Some(at) = stage.ops.iter().position(is_inject) else {
            return false;
        };
        let wait = stage.ops.iter().position(|op| *op == RowOp::Await);
        let wait = wait.map(|at| stage.ops.remove(at));
        // The wait was before; now it follows.
        stage.ops.splice(at..at, wait).count() == 0
    });
    assert_eq!(early, Some(11), "waves are added before the wait");
    let other = case.broken_stage(|stage| {
        let slots = stage.ops.iter_mut().find_map(|op| match op {
            RowOp::Inject { copied, .. } => copied.as_mut(),
            _ => None,
        });
        slots.map(|slots| slots[0] += 1).is_some()
    });
    assert_eq!(other, Some(11), "another slot is read");
    let none = case.broken_stage(|stage| stage.waves.pop().is_some());
    assert_eq!(none, Some(11), "nothing was copied");
    let same = case.broken_stage(|stage| {
        let slot = stage.waves.first().map(|copy| copy.slot);
        let last = stage
            .waves
            .last_mut()
            .filter(|copy| Some(copy.slot) != slot);
        last.zip(slot)
            .map(|(last, slot)| last.slot = slot)
            .is_some()
    });
    assert_eq!(same, Some(11), "two rows have a slot");
}
