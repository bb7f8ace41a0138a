//! Towers of random schemes: same bits as row kernels stage by stage.

use super::*;

#[test]
fn towers_of_random_schemes_give_the_bits_of_rows() {
    let Some(library) = library() else { return };
    let (mut tried, mut whole, mut shared, mut rings, mut made) = (0, 0, 0, 0, 0);
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let mut scheme = random_scheme(&mut rng, &LIMITS);
        if scheme.grid.dimensions() < 3 || scheme.grid.cells[Axis::INNER] < 6 {
            continue;
        }
        // Some lines are shared by two blocks.
        let longer = if tried % 2 == 1 {
            rng.within(30, 60)
        } else {
            0
        };
        scheme.grid.cells[Axis::INNER] += longer;
        let flow = longer > 0 || seed % 2 == 0;
        for axis in [Axis::OUTER, Axis::MIDDLE] {
            // Whole towers alone do not go around.
            if scheme.grid.is_periodic(axis) && !flow {
                scheme.grid.boundary[axis] = [Boundary::Zero; 2];
            }
            let ring = if scheme.grid.is_periodic(axis) { 14 } else { 0 };
            scheme.grid.cells[axis] = ring + rng.within(14, 22);
        }
        for update in scheme.stages.iter_mut().flat_map(|s| &mut s.updates) {
            // Zones along the inner axis alone.
            let live = scheme
                .grid
                .live(scheme.components[update.target.index()].position);
            let mut range = update.region[Axis::INNER];
            if range.hi + longer == live[Axis::INNER].hi {
                range.hi += longer;
            }
            update.region = live;
            if !range.is_empty() {
                update.region[Axis::INNER] = range;
            }
        }
        let mut pitch = || Rational::new(rng.within(4, 16), 2).unwrap_or(Rational::ONE);
        let pitches = if seed % 3 == 0 {
            [pitch(), pitch()]
        } else {
            [pitch(); 2]
        };
        let options = Options {
            direct: rng.once_in(2),
            asynchronous: rng.once_in(2) || longer > 0,
            shift: true,
            patient: seed % 4 < 2,
            single: seed % 2 == 1,
            parts: if longer > 0 { 2 } else { 1 },
            room: if seed % 5 < 2 { 0 } else { u32::MAX },
            near: if seed % 3 == 0 { 64 } else { 1 << 23 },
            ..Options::default()
        };
        let periods = 1 + rng.below(3);
        if let Some(report) = differ(library, &scheme, pitches, periods, options, seed, flow) {
            tried += 1;
            let ring = |axis: &Axis| scheme.grid.is_periodic(*axis);
            rings += usize::from([Axis::OUTER, Axis::MIDDLE].iter().any(ring));
            whole += report.whole;
            made += usize::from(report.made);
            shared += usize::from(longer > 0);
        }
    }
    assert!(tried > 0 && whole > 10 * tried, "{whole} in {tried}");
    assert!(3 * shared > tried, "{shared} of {tried}");
    assert!(3 * made > tried, "{made} of {tried}");
    assert!(5 * rings > tried, "{rings} of {tried}");
}
