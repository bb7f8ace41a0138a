//! What is measured on GPUs.

use crate::cases::{ELASTIC3D, MAXWELL22, MAXWELL42, WAVE3D_2, WAVE3D_8};
use torre_compiler::scheme::Precision;

/// A problem on some grids.
#[derive(Debug)]
pub struct GpuCase {
    pub name: &'static str,
    /// In Torre; the problem gets its domain from the list of grids.
    pub text: &'static str,
    /// The file in `cuda/` that computes the same, and its options.
    pub baseline: Option<(&'static str, &'static [&'static str])>,
    pub grids: [(Precision, &'static [[i64; 3]]); 2],
    /// Where stored coefficients are noise: its least and its largest value. Else they are what the text says.
    pub coefs: Option<[f64; 2]>,
    /// Widths of towers, best first; where none are asked for, the first of them for which a block has room is measured.
    pub widths: &'static [i64],
}

const MEDIA: &str = "use std::curl::curl
scheme media {
  axes x, y, z
  param h  = 1
  param dt = 0.45 * h
  coef inverse_eps : vector on edges = 0.75 + 0.0001 * x
  field E : vector on edges
  field H : vector on faces at 1/2
  step {
    H -= dt * curl(E, order = 4)
    E += inverse_eps * curl(H, order = 4)
  }
}
problem bench {
  scheme media
  domain 8 x 8 x 8
  steps 1
}
";

/// For order 4 in space, a step moves a face by 3 cells: 6 are two of them.
const ORDER_4: &[i64] = &[6, 4, 3];

const MAXWELL: Option<(&str, &[&str])> = Some(("maxwell.cu", &[]));

/// All cases, those that matter most first.
pub const GPU_CASES: &[GpuCase] = &[
    GpuCase {
        name: "maxwell42",
        text: MAXWELL42,
        baseline: MAXWELL,
        grids: [
            (Precision::F32, &[[1536, 1536, 256], [1024, 1024, 512]]),
            (Precision::F64, &[[1536, 1536, 128], [1024, 1024, 256]]),
        ],
        coefs: None,
        widths: ORDER_4,
    },
    GpuCase {
        name: "media",
        text: MEDIA,
        baseline: Some(("maxwell.cu", &["--media"])),
        grids: [
            (Precision::F32, &[[1536, 1536, 256]]),
            (Precision::F64, &[[1536, 1536, 128]]),
        ],
        coefs: Some([0.2, 0.45]),
        widths: ORDER_4,
    },
    GpuCase {
        name: "wave3d-2",
        text: WAVE3D_2,
        baseline: Some(("wave.cu", &["--order", "2"])),
        grids: [
            (Precision::F32, &[[1536, 1536, 512]]),
            (Precision::F64, &[[1536, 1536, 256]]),
        ],
        coefs: Some([0.05, 0.15]),
        widths: &[8, 6, 4, 2],
    },
    GpuCase {
        name: "wave3d-8",
        text: WAVE3D_8,
        baseline: Some(("wave.cu", &["--order", "8"])),
        grids: [
            (Precision::F32, &[[1536, 1536, 200], [1536, 1536, 512]]),
            (Precision::F64, &[[1536, 1536, 100], [1536, 1536, 256]]),
        ],
        coefs: Some([0.05, 0.15]),
        widths: &[8],
    },
    GpuCase {
        name: "elastic3d",
        text: ELASTIC3D,
        baseline: None,
        grids: [
            (Precision::F32, &[[1024, 1024, 128], [1024, 1024, 256]]),
            (Precision::F64, &[[1024, 1024, 128]]),
        ],
        coefs: None,
        widths: ORDER_4,
    },
    GpuCase {
        name: "rows",
        text: MAXWELL42,
        baseline: MAXWELL,
        grids: [
            (
                Precision::F32,
                &[
                    [1024, 1024, 200],
                    [1024, 1024, 256],
                    [1024, 1024, 500],
                    [1024, 1024, 1000],
                ],
            ),
            (
                Precision::F64,
                &[
                    [1024, 1024, 100],
                    [1024, 1024, 200],
                    [1024, 1024, 256],
                    [768, 768, 500],
                    [512, 512, 1000],
                ],
            ),
        ],
        coefs: None,
        widths: ORDER_4,
    },
    GpuCase {
        name: "odd",
        text: MAXWELL42,
        baseline: MAXWELL,
        grids: [
            (Precision::F32, &[[1024, 1021, 256], [1536, 1531, 256]]),
            (Precision::F64, &[[1024, 1021, 128], [1536, 1531, 128]]),
        ],
        coefs: None,
        widths: ORDER_4,
    },
    GpuCase {
        name: "cubes",
        text: MAXWELL42,
        baseline: MAXWELL,
        grids: [
            (
                Precision::F32,
                &[
                    [256, 256, 256],
                    [512, 512, 512],
                    [768, 768, 768],
                    [1024, 1024, 1024],
                    [1280, 1280, 1280],
                    [1536, 1536, 1536],
                ],
            ),
            (
                Precision::F64,
                &[
                    [256, 256, 256],
                    [512, 512, 512],
                    [768, 768, 768],
                    [1024, 1024, 1024],
                    [1280, 1280, 1280],
                ],
            ),
        ],
        coefs: None,
        widths: ORDER_4,
    },
    GpuCase {
        name: "maxwell22",
        text: MAXWELL22,
        baseline: None,
        grids: [
            (Precision::F32, &[[1536, 1536, 256]]),
            (Precision::F64, &[[1536, 1536, 128]]),
        ],
        coefs: None,
        widths: &[6, 4, 2],
    },
];

impl GpuCase {
    /// The grids to measure in a precision.
    pub fn grids(&self, precision: Precision) -> Vec<Vec<i64>> {
        let own = self.grids.iter().filter(|(p, _)| *p == precision);
        own.flat_map(|(_, grids)| grids.iter().map(|g| g.to_vec()))
            .collect()
    }
}
