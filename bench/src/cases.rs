//! The cases: schemes of the standard library, and the C programs that compute the same.

use torre_compiler::scheme::Precision;

/// A scheme with its baseline.
#[derive(Debug)]
pub struct Case {
    pub name: &'static str,
    /// In Torre; the problem gets its domain from the command line.
    pub text: &'static str,
    /// The file in `c/`.
    pub baseline: &'static str,
    /// In space.
    pub order: u32,
    /// The component and age of each field of the baseline, in its order.
    pub fields: &'static [(&'static str, u8)],
    pub axes: usize,
    /// Cells along each axis.
    pub sizes: &'static [i64],
    pub precisions: &'static [Precision],
    /// Where none is given; see [`crate::tiling`].
    pub tilings: &'static [&'static str],
}

const BOTH: &[Precision] = &[Precision::F32, Precision::F64];

pub const MAXWELL: &[(&str, u8)] = &[
    ("E.x", 0),
    ("E.y", 0),
    ("E.z", 0),
    ("H.x", 0),
    ("H.y", 0),
    ("H.z", 0),
];
const TE: &[(&str, u8)] = &[("E.x", 0), ("E.y", 0), ("Hz", 0)];
const WAVE: &[(&str, u8)] = &[("u", 0), ("u", 1)];
const ELASTIC: &[(&str, u8)] = &[
    ("v.x", 0),
    ("v.y", 0),
    ("v.z", 0),
    ("S.xx", 0),
    ("S.yy", 0),
    ("S.zz", 0),
    ("S.yz", 0),
    ("S.xz", 0),
    ("S.xy", 0),
];

// Problems that are measured on CPUs and on GPUs.
pub const MAXWELL42: &str = "use std::maxwell::maxwell42
problem bench {
  scheme maxwell42
  domain 8 x 8 x 8
  steps 1
}
";

pub const MAXWELL22: &str = "use std::maxwell::maxwell22
problem bench {
  scheme maxwell22
  domain 8 x 8 x 8
  steps 1
}
";

pub const ELASTIC3D: &str = "use std::elastic::elastic
problem bench {
  scheme elastic { order = 4 }
  domain 8 x 8 x 8
  coef   rho = 1 + 0.0005 * y
  coef   lambda = 0.5 + 0.0005 * x
  coef   mu = 0.5 + 0.0005 * z
  steps  1
}
";

pub const WAVE3D_2: &str = "use std::wave::wave
problem bench {
  scheme wave { order = 2 }
  domain 16 x 16 x 16
  coef   c = 0.6 + 0.0005 * x + 0.0001 * y + 0.0001 * z
  steps  1
}
";

pub const WAVE3D_8: &str = "use std::wave::wave
problem bench {
  scheme wave { order = 8 }
  domain 16 x 16 x 16
  coef   c = 0.6 + 0.0005 * x + 0.0001 * y + 0.0001 * z
  steps  1
}
";

/// All cases.
pub const CASES: &[Case] = &[
    Case {
        name: "maxwell42",
        text: MAXWELL42,
        baseline: "maxwell.c",
        order: 4,
        fields: MAXWELL,
        axes: 3,
        sizes: &[256, 384],
        precisions: BOTH,
        tilings: &["16; x+y:24, x-y:24"],
    },
    Case {
        name: "maxwell22",
        text: MAXWELL22,
        baseline: "maxwell.c",
        order: 2,
        fields: MAXWELL,
        axes: 3,
        sizes: &[256, 384],
        precisions: BOTH,
        tilings: &["16; x+y:24, x-y:24; x+y:6, x-y:6"],
    },
    Case {
        name: "elastic3d",
        text: ELASTIC3D,
        baseline: "elastic.c",
        order: 4,
        fields: ELASTIC,
        axes: 3,
        sizes: &[256, 384],
        precisions: BOTH,
        tilings: &["16; x+y:24, x-y:24"],
    },
    Case {
        name: "wave3d-2",
        text: WAVE3D_2,
        baseline: "wave.c",
        order: 2,
        fields: WAVE,
        axes: 3,
        sizes: &[512],
        precisions: &[Precision::F32],
        tilings: &["32; x+y:24, x-y:24; x+y:8, x-y:8"],
    },
    Case {
        name: "wave3d-8",
        text: WAVE3D_8,
        baseline: "wave.c",
        order: 8,
        fields: WAVE,
        axes: 3,
        sizes: &[512],
        precisions: &[Precision::F32],
        tilings: &["32; x+y:24, x-y:24"],
    },
    Case {
        name: "te2d-2",
        text: "use std::maxwell::maxwell_te
problem bench {
  scheme maxwell_te { order = 2 }
  domain 8 x 8
  steps 1
}
",
        baseline: "te.c",
        order: 2,
        fields: TE,
        axes: 2,
        sizes: &[8192],
        precisions: BOTH,
        tilings: &["32; x:64, -x:64"],
    },
    Case {
        name: "te2d-4",
        text: "use std::maxwell::maxwell_te
problem bench {
  scheme maxwell_te { order = 4, dt = 0.45 * h }
  domain 8 x 8
  steps 1
}
",
        baseline: "te.c",
        order: 4,
        fields: TE,
        axes: 2,
        sizes: &[8192],
        precisions: BOTH,
        tilings: &["16; x:64, -x:64"],
    },
];

/// The value that every field starts with at an index: noise between -1/2 and 1/2, exact in both precisions.
/// `c/common.h` has the same.
pub fn noise(field: u32, at: [i64; 3]) -> f64 {
    let [i, j, k] = at.map(|n| n as u32);
    let mut u = i.wrapping_mul(73_856_093)
        ^ j.wrapping_mul(19_349_663)
        ^ k.wrapping_mul(83_492_791)
        ^ field.wrapping_mul(2_654_435_761);
    u ^= u >> 15;
    u = u.wrapping_mul(2_246_822_519);
    u ^= u >> 13;
    f64::from(u & 0xffff) / 65536.0 - 0.5
}

/// The value that every field starts with at an index if a pulse is asked for: in the first field a Gaussian of 8 cells
/// in the middle of the grid.
pub fn pulse(field: u32, at: [i64; 3], cells: [i64; 3]) -> f64 {
    let from_middle = |n: usize| (2 * at[n] - cells[n]) as f64 / 2.0;
    let squares: f64 = (0..3).map(|n| from_middle(n).powi(2)).sum();
    if field == 0 {
        (-squares / 64.0).exp()
    } else {
        0.0
    }
}
