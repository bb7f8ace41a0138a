//! Points act where and when the problem says, and leave most periods of a tower interior ones.

use super::*;
use torre_compiler::injection::Receiver;
use torre_compiler::testing::diamonds;

#[test]
fn every_injection_is_found_once_in_each_step() {
    let scheme = maxwell(4, Precision::F32, [60, 66, 16]);
    let frame = Frame::new(&scheme, &cones(&scheme));
    let tiling = diamonds(&frame, [Rational::whole(6); 2], 8);
    let tiles = lower(&scheme, &frame, &tiling).expect("fitting faces are legal");
    let layout = Layout::for_gpu(&scheme).expect("a size that can be addressed");
    let towers = Towers::new(&scheme, &layout, &tiles, Numbering::Grid).expect("towers");
    let order = Order {
        width: 4,
        overlap: 4,
        head_start: 0,
        partitions: 1,
    };
    let list = tasks(&scheme, &layout, &towers, 8, order)
        .expect("tasks")
        .tasks;
    let (stage, component) = (StageId(0), scheme.stages[0].updates[0].target);
    let injection = |x: i64, y: i64| PointInjection {
        stage,
        component,
        at: PerAxis([x, y, 5]),
        profile: 1.0,
        wave: 0,
    };
    let points = Points {
        injections: vec![injection(31, 33), injection(31, 33), injection(1, 2)],
        receivers: vec![Receiver {
            component,
            at: PerAxis([30, 33, 7]),
            stage: Some(stage),
        }],
        waves: 1,
    };
    assert!(!points.leave_out());
    let mut cut = list.clone();
    let attach = |points: &Points, list: &mut [Task]| {
        let plan = points.attach(&scheme, &layout, &towers, 8, list);
        plan.expect("a plan")
    };
    let plan = attach(&points, &mut cut);
    let mut steps: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for (at, rows) in &plan.stages {
        assert!(!cut[at.task].placement.interior.contains(&at.period));
        assert!(cut[at.task].placement.periods.contains(&at.period));
        rows.iter()
            .for_each(|row| steps.entry(row.row).or_default().push(at.period));
    }
    // Three rows, each of them once in each of eight steps.
    assert_eq!(plan.rows.len(), 3);
    for (row, mut found) in steps {
        found.sort_unstable();
        assert_eq!(found, (0..8).collect::<Vec<u64>>(), "{row}");
    }
    let none = attach(&Points::default(), &mut list.clone());
    assert_eq!((none.cut, none.interior), (0, plan.cut + plan.interior));
    assert!(
        plan.cut > 0 && 10 * plan.cut < plan.interior,
        "{}",
        plan.cut
    );
}
