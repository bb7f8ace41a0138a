//! The model beside measured rates: its choice, and how far it is off.

use super::*;
use crate::cone::cones;
use crate::schedule::template::{Size, diamond, skewed, torre};
use crate::scheme::Precision;
use crate::testing::{elasticity, maxwell, maxwell_te};

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

/// A Zen 5 with two cores.
fn zen5(threads: usize) -> Machine {
    Machine {
        threads,
        l1: 48 << 10,
        l2_rate: 3.46e11,
        l3_rate: 2.35e11,
        l3_rate_all: 4.39e11,
        l3_rate_far: 2.14e11,
        memory_rate: 5.74e10,
        memory_rate_all: 1.125e11,
        vector_rate: 8.39e9,
        vector_rate_all: 1.635e10,
        vector_rate_slowest: 8.0e9,
        ..zen(threads)
    }
}

/// Another one, whose shared cache and memory others used.
fn other_zen5(threads: usize) -> Machine {
    Machine {
        l3: 26_000_000,
        memory_rate: 6.5e10,
        memory_rate_all: 7.1e10,
        ..zen5(threads)
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

/// Another one, whose cores are more alike.
fn even_xeon(threads: usize) -> Machine {
    Machine {
        l2_rate: 8.6e10,
        l3_rate: 4.6e10,
        l3_rate_all: 6.4e11,
        l3_rate_far: 4.3e10,
        memory_rate_all: 1.69e11,
        vector_rate: 4.6e9,
        vector_rate_all: 7.0e10,
        vector_rate_slowest: 3.4e9,
        ..xeon(threads)
    }
}

/// A third one.
fn usual_xeon(threads: usize) -> Machine {
    Machine {
        l2_rate: 7.9e10,
        l3_rate: 4.1e10,
        l3_rate_all: 5.2e11,
        l3_rate_far: 3.8e10,
        memory_rate: 2.4e10,
        memory_rate_all: 1.74e11,
        vector_rate: 4.46e9,
        vector_rate_all: 6.7e10,
        vector_rate_slowest: 3.8e9,
        ..xeon(threads)
    }
}

/// Two cores of a Xeon, a virtual machine that gets a sixth of its shared cache.
fn part_of_a_xeon() -> Machine {
    Machine {
        threads: 2,
        cores: 2,
        l3: 89_000_000,
        l2_rate: 1.2e11,
        l3_rate: 5.8e10,
        l3_rate_all: 1.17e11,
        l3_rate_far: 3.4e10,
        memory_rate: 2.9e10,
        memory_rate_all: 5.4e10,
        vector_rate: 5.2e9,
        vector_rate_all: 1.01e10,
        vector_rate_slowest: 5.0e9,
        ..xeon(2)
    }
}

/// The family of a schedule, with its sizes: W, G and TH, or P, TH and Z.
#[derive(Clone, Copy, Debug)]
enum Sizes {
    Torre([i64; 3]),
    Skewed([i64; 3]),
    Diamond([i64; 3]),
}

impl Sizes {
    fn family(self) -> TiledTemplate {
        let size = |value| Size::of("N", &[value]);
        match self {
            Sizes::Torre([w, g, th]) => torre(size(w), size(g), size(th), size(0)),
            Sizes::Skewed([p, th, z]) => skewed(size(p), size(th), size(z)),
            Sizes::Diamond([p, th, z]) => diamond(size(p), size(th), size(z)),
        }
    }
}

fn towers(rates: &[([i64; 3], f64)]) -> Vec<(Sizes, f64)> {
    let of = |(sizes, rate): &([i64; 3], f64)| (Sizes::Torre(*sizes), *rate);
    rates.iter().map(of).collect()
}

/// Rates in 1e9 cell-steps per second, of 32 to 3000 steps.
struct Case {
    name: &'static str,
    machine: Machine,
    scheme: Scheme,
    layerwise: f64,
    tiled: Vec<(Sizes, f64)>,
}

fn cases() -> Vec<Case> {
    let cube = |n: i64| [n; 3];
    vec![
        Case {
            name: "FDTD(4,2) on 16 cores",
            machine: xeon(16),
            scheme: maxwell(4, Precision::F32, cube(256)),
            layerwise: 1.83,
            tiled: towers(&[
                ([16, 1, 16], 6.09),
                ([16, 2, 8], 5.93),
                ([24, 1, 16], 5.74),
                ([12, 2, 8], 5.70),
                ([12, 1, 32], 5.49),
                ([12, 1, 8], 5.37),
                ([8, 3, 16], 5.05),
                ([16, 2, 32], 3.94),
            ]),
        },
        Case {
            name: "FDTD(2,2) on 16 cores",
            machine: xeon(16),
            scheme: maxwell(2, Precision::F32, cube(256)),
            layerwise: 1.90,
            tiled: towers(&[
                ([8, 3, 16], 10.27),
                ([16, 1, 16], 9.46),
                ([12, 1, 32], 9.18),
                ([12, 2, 8], 8.83),
                ([16, 2, 8], 8.53),
                ([16, 2, 32], 7.84),
                ([12, 1, 8], 7.83),
                ([24, 1, 16], 6.93),
            ]),
        },
        Case {
            name: "FDTD(4,2), f64, on 16 cores",
            machine: xeon(16),
            scheme: maxwell(4, Precision::F64, cube(256)),
            layerwise: 0.70,
            tiled: towers(&[
                ([12, 1, 8], 2.49),
                ([8, 1, 16], 2.46),
                ([12, 2, 8], 2.31),
                ([12, 1, 32], 2.20),
                ([16, 1, 16], 2.11),
                ([24, 1, 16], 1.39),
            ]),
        },
        Case {
            name: "elastic waves on 16 cores",
            machine: xeon(16),
            scheme: elasticity(Precision::F32, cube(256)),
            layerwise: 0.66,
            tiled: towers(&[
                ([8, 1, 16], 2.40),
                ([12, 1, 16], 1.96),
                ([16, 1, 16], 1.91),
                ([12, 2, 8], 1.84),
                ([24, 1, 16], 1.47),
            ]),
        },
        Case {
            name: "FDTD(4,2), f64, on one core of 16",
            machine: xeon(1),
            scheme: maxwell(4, Precision::F64, [96, 96, 256]),
            layerwise: 0.111,
            tiled: towers(&[
                ([12, 1, 8], 0.201),
                ([12, 2, 8], 0.200),
                ([8, 3, 16], 0.190),
                ([24, 1, 16], 0.160),
            ]),
        },
        Case {
            name: "FDTD(4,2) on two cores",
            machine: zen(2),
            scheme: maxwell(4, Precision::F32, cube(256)),
            layerwise: 0.652,
            tiled: towers(&[
                ([24, 1, 8], 1.309),
                ([20, 1, 8], 1.269),
                ([16, 2, 8], 1.269),
                ([24, 1, 16], 1.269),
                ([16, 1, 16], 1.219),
                ([12, 1, 8], 1.170),
                ([8, 1, 8], 1.038),
            ]),
        },
        Case {
            name: "elastic waves on one core of two",
            machine: zen(1),
            scheme: elasticity(Precision::F32, cube(128)),
            layerwise: 0.136,
            tiled: towers(&[
                ([24, 1, 16], 0.295),
                ([16, 2, 8], 0.290),
                ([12, 2, 8], 0.274),
                ([12, 1, 16], 0.250),
                ([8, 1, 8], 0.238),
            ]),
        },
        Case {
            name: "FDTD(4,2) on one fast core of two",
            machine: zen5(1),
            scheme: maxwell(4, Precision::F32, cube(256)),
            layerwise: 0.403,
            tiled: towers(&[
                ([12, 3, 8], 0.958),
                ([16, 2, 16], 0.944),
                ([32, 1, 16], 0.937),
                ([24, 1, 8], 0.883),
                ([12, 1, 8], 0.832),
                ([8, 1, 8], 0.720),
            ]),
        },
        Case {
            name: "FDTD(4,2) on two fast cores",
            machine: zen5(2),
            scheme: maxwell(4, Precision::F32, cube(256)),
            layerwise: 0.776,
            tiled: towers(&[
                ([16, 2, 8], 1.65),
                ([24, 1, 8], 1.64),
                ([32, 1, 16], 1.64),
                ([12, 2, 8], 1.62),
                ([16, 2, 16], 1.54),
                ([12, 1, 8], 1.50),
                ([8, 3, 16], 1.45),
                ([16, 2, 32], 1.38),
                ([8, 1, 8], 1.34),
            ]),
        },
        Case {
            name: "FDTD(4,2), f64, on two fast cores",
            machine: zen5(2),
            scheme: maxwell(4, Precision::F64, cube(256)),
            layerwise: 0.367,
            tiled: towers(&[
                ([32, 1, 16], 0.803),
                ([24, 4, 32], 0.770),
                ([16, 1, 8], 0.748),
                ([12, 2, 8], 0.735),
                ([16, 2, 16], 0.705),
                ([12, 2, 16], 0.664),
                ([8, 1, 8], 0.656),
            ]),
        },
        Case {
            name: "elastic waves on two fast cores",
            machine: zen5(2),
            scheme: elasticity(Precision::F32, cube(256)),
            layerwise: 0.406,
            tiled: towers(&[
                ([24, 4, 32], 0.745),
                ([24, 1, 16], 0.735),
                ([16, 2, 16], 0.707),
                ([16, 1, 8], 0.702),
                ([12, 2, 8], 0.704),
                ([8, 1, 8], 0.571),
            ]),
        },
        Case {
            name: "elastic waves, f64, on two fast cores",
            machine: zen5(2),
            scheme: elasticity(Precision::F64, cube(256)),
            layerwise: 0.195,
            tiled: towers(&[
                ([24, 4, 32], 0.312),
                ([24, 1, 16], 0.307),
                ([16, 1, 8], 0.302),
                ([16, 2, 16], 0.295),
                ([12, 2, 8], 0.294),
                ([8, 1, 8], 0.274),
            ]),
        },
        Case {
            name: "FDTD(4,2), wide towers on two fast cores",
            machine: other_zen5(2),
            scheme: maxwell(4, Precision::F32, cube(256)),
            layerwise: 0.788,
            tiled: towers(&[
                ([48, 1, 32], 1.85),
                ([40, 1, 16], 1.83),
                ([32, 1, 16], 1.83),
                ([24, 1, 16], 1.79),
                ([12, 2, 8], 1.72),
                ([20, 3, 32], 1.57),
            ]),
        },
        Case {
            name: "FDTD(4,2), f64, wide towers on two fast cores",
            machine: other_zen5(2),
            scheme: maxwell(4, Precision::F64, cube(256)),
            layerwise: 0.408,
            tiled: towers(&[
                ([40, 1, 32], 0.893),
                ([32, 2, 32], 0.875),
                ([32, 1, 16], 0.867),
                ([24, 1, 16], 0.835),
                ([24, 3, 32], 0.816),
            ]),
        },
        Case {
            name: "FDTD(4,2), f64, 384^3, wide towers on two fast cores",
            machine: other_zen5(2),
            scheme: maxwell(4, Precision::F64, cube(384)),
            layerwise: 0.383,
            tiled: towers(&[
                ([24, 1, 32], 0.777),
                ([24, 3, 32], 0.766),
                ([32, 1, 32], 0.763),
                ([24, 1, 16], 0.734),
                ([20, 3, 32], 0.714),
                ([32, 1, 16], 0.678),
                ([40, 1, 32], 0.634),
                ([40, 1, 16], 0.484),
            ]),
        },
        Case {
            name: "elastic waves, wide towers on two fast cores",
            machine: other_zen5(2),
            scheme: elasticity(Precision::F32, cube(256)),
            layerwise: 0.330,
            tiled: towers(&[
                ([24, 3, 32], 0.749),
                ([24, 1, 32], 0.745),
                ([20, 2, 32], 0.720),
                ([32, 2, 32], 0.714),
                ([32, 1, 32], 0.673),
                ([40, 1, 32], 0.557),
                ([48, 1, 32], 0.494),
            ]),
        },
        Case {
            name: "elastic waves, f64, wide towers on two fast cores",
            machine: other_zen5(2),
            scheme: elasticity(Precision::F64, cube(256)),
            layerwise: 0.168,
            tiled: towers(&[
                ([20, 3, 32], 0.308),
                ([24, 1, 32], 0.298),
                ([12, 3, 32], 0.296),
                ([28, 1, 32], 0.270),
                ([32, 1, 32], 0.247),
            ]),
        },
        Case {
            name: "FDTD(4,2), f64, on two cores with a part of a cache",
            machine: part_of_a_xeon(),
            scheme: maxwell(4, Precision::F64, cube(256)),
            layerwise: 0.245,
            tiled: towers(&[
                ([12, 2, 16], 0.590),
                ([12, 3, 8], 0.549),
                ([12, 1, 8], 0.531),
                ([16, 2, 8], 0.524),
                ([8, 4, 32], 0.473),
                ([8, 2, 8], 0.457),
                ([6, 2, 8], 0.440),
            ]),
        },
        Case {
            name: "elastic waves, f64, on two cores with a part of a cache",
            machine: part_of_a_xeon(),
            scheme: elasticity(Precision::F64, cube(256)),
            layerwise: 0.120,
            tiled: towers(&[
                ([12, 3, 8], 0.218),
                ([12, 2, 16], 0.213),
                ([12, 1, 8], 0.213),
                ([8, 2, 8], 0.207),
                ([16, 2, 8], 0.188),
                ([6, 2, 8], 0.188),
            ]),
        },
        Case {
            name: "TE on 16 cores",
            machine: even_xeon(16),
            scheme: maxwell_te(2, Precision::F32, [8192; 2]),
            layerwise: 3.68,
            tiled: vec![
                (Sizes::Skewed([32, 32, 512]), 30.3),
                (Sizes::Skewed([32, 32, 1024]), 28.6),
                (Sizes::Skewed([32, 32, 256]), 24.8),
                (Sizes::Skewed([32, 16, 256]), 21.7),
            ],
        },
        Case {
            name: "TE on 16 other cores, with diamonds",
            machine: usual_xeon(16),
            scheme: maxwell_te(2, Precision::F32, [8192; 2]),
            layerwise: 3.06,
            tiled: vec![
                (Sizes::Skewed([32, 32, 512]), 20.2),
                (Sizes::Skewed([32, 16, 512]), 19.4),
                (Sizes::Diamond([64, 32, 1024]), 18.1),
                (Sizes::Diamond([64, 32, 512]), 12.3),
            ],
        },
        Case {
            name: "TE of order 4 on 16 cores",
            machine: even_xeon(16),
            scheme: maxwell_te(4, Precision::F32, [8192; 2]),
            layerwise: 3.48,
            tiled: vec![
                (Sizes::Skewed([32, 32, 512]), 18.0),
                (Sizes::Skewed([32, 16, 256]), 13.8),
            ],
        },
        Case {
            name: "TE of order 4 on one core of two",
            machine: zen(1),
            scheme: maxwell_te(4, Precision::F32, [1024, 8192]),
            layerwise: 0.754,
            tiled: vec![
                (Sizes::Skewed([32, 32, 1024]), 1.91),
                (Sizes::Diamond([64, 32, 0]), 1.83),
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
            tiled,
        } = case;
        let layout = Layout::new(&scheme).expect("a small size");
        let frame = Frame::new(&scheme, &cones(&scheme));
        let rate = |sizes: Sizes| {
            let (_, schedule) = sizes.family().members(&frame).remove(0);
            predict(&scheme, &layout, &frame, &schedule, &machine).rate * 1e-9
        };
        let sweep = predict_layerwise(&scheme, &layout, &machine).rate * 1e-9;
        let expected: Vec<f64> = tiled.iter().map(|(sizes, _)| rate(*sizes)).collect();
        let chosen = (0..tiled.len()).max_by(|&a, &b| expected[a].total_cmp(&expected[b]));
        let (sizes, chosen) = tiled[chosen.expect("some schedules")];
        let best = tiled.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        assert!(chosen >= 0.8 * best, "{name}: {sizes:?} {chosen} of {best}");
        let measured = tiled.iter().map(|(_, rate)| *rate).zip(expected);
        for (measured, expected) in measured.chain([(layerwise, sweep)]) {
            let off = (measured / expected).ln().abs();
            assert!(off < 1.5f64.ln(), "{name}: {measured} beside {expected}");
            near += usize::from(off < 1.25f64.ln());
            all += 1;
        }
    }
    assert!(10 * near >= 8 * all, "{near} of {all} within a quarter");
}
