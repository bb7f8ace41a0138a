//! Passes of time blocks lower than the time blocks for which a buffer was made.

use super::*;

/// Lists passes one after the other; each begins when it finds room. How often one had to wait for the others.
fn listed(window: &Window, passes: &[Pass]) -> Result<(Vec<Op>, usize), NoLayout> {
    let mut builder = Builder::new(window.clone());
    let (mut ops, mut waits) = (Vec::new(), 0);
    for pass in passes {
        while !builder.may_begin() {
            ops.extend(builder.tick()?);
        }
        if !builder.has_room_for(pass.clone()) {
            waits += 1;
            while !builder.is_idle() {
                ops.extend(builder.tick()?);
            }
        }
        builder.begin(pass.clone());
    }
    while !builder.is_idle() {
        ops.extend(builder.tick()?);
    }
    Ok((ops, waits))
}

/// A buffer with places for the highest time blocks has places for lower ones, some passes of which wait for others.
#[test]
fn lower_time_blocks_find_room() {
    let (mut tried, mut waits) = (0, 0);
    for (seed, mut case) in cases(0..3000) {
        let window = &mut case.window;
        if window.ring.is_some() || window.places().is_none() {
            continue;
        }
        let (scheme, layout, footprints) = (&case.scheme, &case.layout, &mut case.footprints);
        let mut rng = Rng::new(seed + 1_000_000);
        let period = footprints.towers().steps;
        let highest = rng.within(2, 6);
        let held = footprints.held();
        (window.planes, window.devices) = (held, 1);
        let lo = rng.within(held.lo, held.hi - 1);
        let mut gathers = vec![held, Interval::new(lo, lo + 1)];
        gathers.truncate(rng.below(3) as usize);
        let high = vec![highest as u64 * period; window.in_flight];
        let least = footprints.least_places(scheme, layout, &high, window, &gathers);
        window.buffer = window.buffer.with_places(least.expect("a large buffer"));
        for _ in 0..4 {
            let mut passes = Vec::new();
            for _ in 0..rng.within(1, 5) {
                let height = |_| rng.within(1, highest) as u64 * period;
                let low: Vec<u64> = high.iter().map(height).collect();
                let count = rng.within(1, low.len() as i64) as usize;
                let heights = if rng.once_in(3) { &high } else { &low[..count] };
                let mut pass = footprints.pass(scheme, layout, heights).expect("groups");
                for block in &mut pass.blocks {
                    if rng.once_in(2) {
                        block.gathers = gathers.clone();
                    }
                }
                passes.push(pass);
            }
            let (ops, waited) = listed(window, &passes).expect("room");
            assert_eq!(check(window, &passes, &ops), Ok(()), "seed {seed}");
            tried += 1;
            waits += waited;
        }
    }
    assert!(tried > 1000 && waits > 2, "{tried} {waits}");
}
