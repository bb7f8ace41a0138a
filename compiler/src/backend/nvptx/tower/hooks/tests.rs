//! Hooks act where and when the problem says, and leave most of a tower whole.

use super::super::{Order, tasks};
use super::*;
use crate::cone::{Rational, cones};
use crate::schedule::{Cut, Frame, Level, Tiling};
use crate::testing::maxwell;
use crate::tile::lower;
use crate::tile::residency::towers;

#[test]
fn the_longest_part_without_hooks_is_whole() {
    let any = |_: i32| true;
    assert_eq!(longest([2, 9], &[], any), [2, 9]);
    assert_eq!(longest([2, 9], &[0, 4, 5], any), [6, 9]);
    assert_eq!(longest([2, 9], &[4, 5], |t| t > 7), [8, 9]);
    assert_eq!(longest([2, 9], &[8], |t| t != 2), [3, 8]);
    assert_eq!(longest([2, 4], &[2, 3], any), [4, 4]);
}

#[test]
fn every_addition_is_found_once_in_each_step() {
    let scheme = maxwell(4, Precision::F32, [60, 66, 16]);
    let frame = Frame::new(&scheme, &cones(&scheme));
    let cut = |form| Cut {
        face: frame.fitting(PerAxis(form)),
        pitch: Rational::whole(6),
    };
    let tiling = Tiling {
        height: 8,
        levels: vec![Level {
            cuts: vec![cut([1, 1, 0]), cut([1, -1, 0])],
        }],
    };
    let program = lower(&scheme, &frame, &tiling);
    let layout = Layout::for_gpu(&scheme).expect("a size that can be addressed");
    let towers = towers(&scheme, &layout, &program).expect("towers");
    let order = Order {
        width: 4,
        overlap: 4,
        lead: 0,
        partitions: 1,
    };
    let list = tasks(&scheme, &layout, &towers, 8, order)
        .expect("tasks")
        .tasks;
    let stage = StageId(0);
    let id = scheme.stages[0].updates[0].target;
    let addition = |x: i64, y: i64| Addition {
        stage,
        component: id,
        at: PerAxis([x, y, 5]),
        profile: 1.0,
        wave: 0,
    };
    let hooks = Hooks {
        additions: vec![addition(31, 33), addition(31, 33), addition(1, 2)],
        probes: vec![(id, PerAxis([30, 33, 7]))],
        waves: 1,
    };
    assert!(!hooks.leave_out(&scheme));
    let mut hooked = list.clone();
    let attach = |hooks: &Hooks, list: &mut [Task]| {
        hooks
            .attach(&scheme, &layout, &towers, 8, list)
            .expect("a table")
    };
    let table = attach(&hooks, &mut hooked);
    let word = |at: i32| {
        let at = at as usize;
        let bytes = table.bytes[at..at + 4].try_into();
        i32::from_le_bytes(bytes.expect("four bytes"))
    };
    let stages = towers.alignments[0].stages.len() as i32;
    let mut rows = 0;
    for task in hooked.iter().filter(|t| t.hooks != 0) {
        for period in task.first..task.end {
            let number = (period - task.first) * stages;
            let [from, until] = [number, number + stages].map(|n| word(task.hooks + 4 * n));
            rows += (until - from) / 4;
            let whole = (task.whole[0]..task.whole[1]).contains(&period);
            assert!(!whole || from == until, "{task:?}");
        }
    }
    // Three columns of cells in each step, two of them far from the ends.
    assert_eq!(rows, 3 * 8);
    let none = attach(&Hooks::default(), &mut list.clone());
    assert_eq!((none.cut, none.whole), (0, table.cut + table.whole));
    assert!(
        table.cut > 0 && 10 * table.cut < table.whole,
        "{}",
        table.cut
    );
}
