//! The model beside measured rates: its choice, and how far it is off.

use super::*;
use crate::cone::cones;
use crate::schedule::template::{Size, torre};
use crate::scheme::Precision;
use crate::testing::{elasticity, maxwell};

/// A Zen 4 with two cores.
fn zen(threads: usize) -> Machine {
    Machine {
        threads,
        cores: 2,
        l1: 32 << 10,
        l2: 1 << 20,
        l3: 32 << 20,
        l2_rate: 1.97e11,
        l3_rate: 1.76e11,
        l3_rate_all: 3.3e11,
        l3_rate_far: 1.7e11,
        memory_rate: 4.21e10,
        memory_rate_all: 8.49e10,
        vector_rate: 3.69e9,
        vector_rate_all: 7.38e9,
        vector_rate_slowest: 3.69e9,
        vector_bytes: 64,
    }
}

/// A virtual machine with 16 cores of a Xeon (Emerald Rapids).
fn xeon(threads: usize) -> Machine {
    Machine {
        threads,
        cores: 16,
        l1: 48 << 10,
        l2: 2 << 20,
        l3: 300 << 20,
        l2_rate: 8.1e10,
        l3_rate: 4.2e10,
        l3_rate_all: 5.6e11,
        l3_rate_far: 3.2e10,
        memory_rate: 2.5e10,
        memory_rate_all: 2.1e11,
        vector_rate: 4.5e9,
        vector_rate_all: 5.8e10,
        vector_rate_slowest: 2.4e9,
        vector_bytes: 64,
    }
}

/// Rates in 1e9 cell-steps per second, of 32 to 250 steps.
struct Case {
    name: &'static str,
    machine: Machine,
    scheme: Scheme,
    layerwise: f64,
    /// By W, G and TH.
    towers: Vec<([i64; 3], f64)>,
}

fn cases() -> Vec<Case> {
    let cube = |n: i64| [n; 3];
    vec![
        Case {
            name: "FDTD(4,2) on 16 cores",
            machine: xeon(16),
            scheme: maxwell(4, Precision::F32, cube(256)),
            layerwise: 1.83,
            towers: vec![
                ([16, 1, 16], 6.09),
                ([16, 2, 8], 5.93),
                ([24, 1, 16], 5.74),
                ([12, 2, 8], 5.70),
                ([12, 1, 32], 5.49),
                ([12, 1, 8], 5.37),
                ([8, 3, 16], 5.05),
                ([16, 2, 32], 3.94),
            ],
        },
        Case {
            name: "FDTD(2,2) on 16 cores",
            machine: xeon(16),
            scheme: maxwell(2, Precision::F32, cube(256)),
            layerwise: 1.90,
            towers: vec![
                ([8, 3, 16], 10.27),
                ([16, 1, 16], 9.46),
                ([12, 1, 32], 9.18),
                ([12, 2, 8], 8.83),
                ([16, 2, 8], 8.53),
                ([16, 2, 32], 7.84),
                ([12, 1, 8], 7.83),
                ([24, 1, 16], 6.93),
            ],
        },
        Case {
            name: "FDTD(4,2), f64, on 16 cores",
            machine: xeon(16),
            scheme: maxwell(4, Precision::F64, cube(256)),
            layerwise: 0.70,
            towers: vec![
                ([12, 1, 8], 2.49),
                ([8, 1, 16], 2.46),
                ([12, 2, 8], 2.31),
                ([12, 1, 32], 2.20),
                ([16, 1, 16], 2.11),
                ([24, 1, 16], 1.39),
            ],
        },
        Case {
            name: "elastic waves on 16 cores",
            machine: xeon(16),
            scheme: elasticity(Precision::F32, cube(256)),
            layerwise: 0.66,
            towers: vec![
                ([8, 1, 16], 2.40),
                ([12, 1, 16], 1.96),
                ([16, 1, 16], 1.91),
                ([12, 2, 8], 1.84),
                ([24, 1, 16], 1.47),
            ],
        },
        Case {
            name: "FDTD(4,2), f64, on one core of 16",
            machine: xeon(1),
            scheme: maxwell(4, Precision::F64, [96, 96, 256]),
            layerwise: 0.111,
            towers: vec![
                ([12, 1, 8], 0.201),
                ([12, 2, 8], 0.200),
                ([8, 3, 16], 0.190),
                ([24, 1, 16], 0.160),
            ],
        },
        Case {
            name: "FDTD(4,2) on two cores",
            machine: zen(2),
            scheme: maxwell(4, Precision::F32, cube(256)),
            layerwise: 0.652,
            towers: vec![
                ([24, 1, 8], 1.309),
                ([20, 1, 8], 1.269),
                ([16, 2, 8], 1.269),
                ([24, 1, 16], 1.269),
                ([16, 1, 16], 1.219),
                ([12, 1, 8], 1.170),
                ([8, 1, 8], 1.038),
            ],
        },
        Case {
            name: "elastic waves on one core of two",
            machine: zen(1),
            scheme: elasticity(Precision::F32, cube(128)),
            layerwise: 0.136,
            towers: vec![
                ([24, 1, 16], 0.295),
                ([16, 2, 8], 0.290),
                ([12, 2, 8], 0.274),
                ([12, 1, 16], 0.250),
                ([8, 1, 8], 0.238),
            ],
        },
    ]
}

#[test]
fn choices_are_near_the_best_and_rates_near_measured_ones() {
    let (mut near, mut all) = (0, 0);
    for case in cases() {
        let Case {
            name,
            machine,
            scheme,
            layerwise,
            towers,
        } = case;
        let layout = Layout::new(&scheme).expect("a small size");
        let frame = Frame::new(&scheme, &cones(&scheme));
        let rate = |[w, g, th]: [i64; 3]| {
            let size = |name, value| Size::of(name, &[value]);
            let family = torre(size("W", w), size("G", g), size("TH", th), size("Z", 0));
            let (_, schedule) = family.members(&frame).remove(0);
            predict(&scheme, &layout, &frame, &schedule, &machine).rate * 1e-9
        };
        let sweep = predict_layerwise(&scheme, &layout, &machine).rate * 1e-9;
        let expected: Vec<f64> = towers.iter().map(|(sizes, _)| rate(*sizes)).collect();
        let chosen = (0..towers.len()).max_by(|&a, &b| expected[a].total_cmp(&expected[b]));
        let (sizes, chosen) = towers[chosen.expect("some towers")];
        let best = towers.iter().map(|tower| tower.1).fold(0.0, f64::max);
        assert!(chosen >= 0.8 * best, "{name}: {sizes:?} {chosen} of {best}");
        let measured = towers.iter().map(|tower| tower.1).zip(expected);
        for (measured, expected) in measured.chain([(layerwise, sweep)]) {
            let off = (measured / expected).ln().abs();
            assert!(off < 1.5f64.ln(), "{name}: {measured} beside {expected}");
            near += usize::from(off < 1.25f64.ln());
            all += 1;
        }
    }
    assert!(10 * near >= 8 * all, "{near} of {all} within a quarter");
}
