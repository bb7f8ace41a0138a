//! Calculation windows of random schemes, over the host's memory, over files, and on two devices in turns; and
//! overlapped slabs.

use super::slabs::slabs_of;
use super::windows::{Trial, least_places};
use super::*;
use torre_runtime::gpu::{Devices, HeldPlanes, InFlight};
use torre_suite::interpreted::{InterpretedPeers, MAPPING};

/// Random schemes on long grids, with all kinds of ends; towers up and down the first axis.
#[test]
fn random_problems_by_windows_give_the_bits_of_the_reference() {
    let Some(library) = library() else { return };
    let limits = Limits {
        length: 14,
        width: 10,
        reach: 2,
        ..LIMITS
    };
    let (mut tried, mut slides, mut zoned) = (0, 0, 0);
    let (mut over, mut turns, mut slabs, mut rounds, mut rings) = (0, 0, 0, 0, 0);
    for seed in 0..10 * seeds().end / 9 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &limits);
        if scheme.grid.dimensions() < 3 {
            continue;
        }
        let ring = scheme.grid.is_periodic(Axis::OUTER);
        let [width, height] = [rng.within(1, 5), rng.within(1, 3)];
        let frame = Frame::new(&scheme, &cones(&scheme)).opened();
        let slopes = [[1, 1, 0], [1, -1, 0]].map(|form| frame.slope(PerAxis(form)));
        let doubled = slopes.map(|slope| (slope * Rational::whole(2)).ceil());
        let slope = doubled[0].max(doubled[1]).max(1);
        let around = 4 * width * i64::from(scheme.grid.is_periodic(Axis::MIDDLE));
        let by = (around - scheme.grid.cells[Axis::MIDDLE]).max(0);
        lengthen(&mut scheme, Axis::MIDDLE, by);
        let more = rng.within(10, 30) + if ring { 40 } else { 0 };
        lengthen(&mut scheme, Axis::OUTER, more);
        if rng.once_in(2) {
            add_random_zones(&mut rng, &limits, &mut scheme);
        }
        let mut problem = random_problem(&mut rng, &scheme);
        let steps = i64::from(scheme.phases()) * rng.within(2, 5) * 2;
        problem.steps = steps as u64;
        for output in &mut problem.outputs {
            output.every = u64::from(scheme.phases()) * rng.within(1, 3) as u64 * 2;
        }
        problem.outputs.truncate(2);
        if rng.once_in(2) {
            problem.sources.extend(volume_sources(&mut rng, &scheme, 1));
        }
        let slope = slope as f64 / 2.0;
        let schedule =
            &format!("(outer, middle): diamond(W = {width}) slope {slope} height {height}");
        let device = Interpreted::new();
        let Some((mut plan, model)) = planned(&device, &scheme, &problem, schedule) else {
            continue;
        };
        if plan
            .note
            .as_ref()
            .is_some_and(|note| note.contains("stage by stage"))
        {
            continue;
        }
        let window = !rng.once_in(4) || ring;
        if window {
            let arranged = plan.arrange_for_window(&scheme);
            arranged.expect("a size that can be addressed");
        }
        // Not all random amendments find their values in registers.
        let has_zones = !scheme.zones.is_empty();
        let Ok((_, Some(towers))) = plan.compile(library, &scheme, &model) else {
            assert!(has_zones, "{seed}");
            continue;
        };
        let towers = &towers;
        let period = towers.program.towers.steps;
        let due = problem.outputs.iter().map(|output| output.every);
        if due
            .chain([problem.steps])
            .any(|steps| !steps.is_multiple_of(period))
        {
            continue;
        }
        let mut how = InFlight {
            blocks: rng.within(1, 3) as usize,
            group: rng.within(2, 9),
            ahead: rng.within(0, 2),
            spread: rng.once_in(2),
            held: HeldPlanes::All,
        };
        let more = rng.within(0, 1) * rng.within(0, 9);
        let Some(least) = least_places(&scheme, &problem, towers, how) else {
            continue;
        };
        if window {
            how.held = HeldPlanes::window(least + more, (seed % 3 > 0).then_some(MAPPING));
        }
        device.reseed(seed);
        let trial = Trial {
            library,
            scheme: &scheme,
            problem: &problem,
            towers,
            how,
        };
        rings += u64::from(ring);
        let done = match window && rng.once_in(2) {
            true => {
                let folder = tempfile::tempdir().expect("a folder");
                over += 1;
                let path = folder.path();
                let peers = InterpretedPeers::new(2);
                peers.reseed(seed);
                let devices = match rng.once_in(2) {
                    true => Devices::InTurns(&peers),
                    false => Devices::One(&device),
                };
                let done = trial.over_files(devices, path);
                done.expect("the bits of the reference")
            }
            // Overlapped slabs, or two devices that take passes in turns.
            false if window && !ring && rng.once_in(2) => {
                how.group = rng.within(2, 9);
                let base = rng.within(3, 12);
                how = slabs_of(&scheme, towers, how, base).expect("groups");
                slabs += 1;
                let trial = Trial { how, ..trial };
                let folder = tempfile::tempdir().expect("a folder");
                let done = match seed % 4 > 1 {
                    true => trial.over_files(Devices::One(&device), folder.path()),
                    false => trial.in_flight(Devices::One(&device)),
                };
                done.expect("the bits of the reference")
            }
            false if window => {
                let peers = InterpretedPeers::new(2);
                peers.reseed(seed);
                turns += 1;
                let several = Devices::InTurns(&peers);
                trial.in_flight(several).expect("the bits of the reference")
            }
            false => trial
                .in_flight(Devices::One(&device))
                .expect("the bits of the reference"),
        };
        tried += 1;
        slides += u64::from(done.slides > 0);
        rounds += u64::from(how.held.unit().is_some() && done.around > 1.5);
        zoned += u64::from(has_zones && window);
    }
    assert!(
        tried > 4 && slides > 0 && rounds > 1 && zoned > 0 && over > 1 && turns > 0 && slabs > 0,
        "{slides} {rounds} {zoned} {turns} {slabs} {rings} of {tried}"
    );
}
