//! The cases on GPUs.

use super::problems::{
    BEAM, ELASTIC2D, HEAT2, HEAT4, LAYERS22, LAYERS42, MEDIA, PLANE, SLAB, TE2, TE4, TM2, WALLS22,
    WALLS42, WAVE1D,
};
use crate::cases::{ELASTIC3D, MAXWELL22, MAXWELL42, WAVE3D_2, WAVE3D_8};
use crate::program::messages;
use std::borrow::Cow;
use std::path::Path;
use torre_compiler::driver::load;
use torre_compiler::resolve::{Options, Resolved};
use torre_compiler::scheme::Precision;
use torre_grammar::source::Source;
use torre_runtime::files::LoadedFiles;
use torre_runtime::world::{FileWorld, read_source};

/// A problem on some grids.
#[derive(Clone, Debug)]
pub struct GpuCase {
    pub name: Cow<'static, str>,
    pub text: Text,
    /// The file in `cuda/` that computes the same, and its options.
    pub baseline: Option<(&'static str, &'static [&'static str])>,
    /// A problem in a file has its own.
    pub grids: [(Precision, &'static [&'static [i64]]); 2],
    /// The sources of the text act; else none do.
    pub sources: bool,
    /// Where stored coefficients are noise: its least and its largest value. Else they have the values of the text.
    pub coefs: Option<[f64; 2]>,
}

/// A problem in Torre.
#[derive(Clone, Debug)]
pub enum Text {
    Here(&'static str),
    /// Its text and the file that it is from, beside which its modules are looked up; its own domain, and parameters of
    /// the command line.
    File {
        source: Source,
        path: String,
        cells: Vec<i64>,
        set: Vec<(String, String)>,
    },
}

/// The grids of schemes with two axes: one that no cache holds, and two that stay on the chip.
const PLANES: [(Precision, &[&[i64]]); 2] = [
    (Precision::F32, &[&[8192, 8192], &[1024, 1024], &[512, 512]]),
    (Precision::F64, &[&[8192, 8192], &[1024, 1024], &[512, 512]]),
];

/// The grids of layers on all sides.
const LAYERED: [(Precision, &[&[i64]]); 2] = [
    (Precision::F32, &[&[512, 512, 512], &[768, 768, 768]]),
    (Precision::F64, &[&[512, 512, 512], &[768, 768, 768]]),
];

/// The grids of sources.
const SOURCES: [(Precision, &[&[i64]]); 2] = [
    (Precision::F32, &[&[1536, 1536, 256]]),
    (Precision::F64, &[&[1536, 1536, 128]]),
];

const MAXWELL: Option<(&str, &[&str])> = Some(("maxwell.cu", &[]));

/// All cases, the most important ones first.
pub const GPU_CASES: &[GpuCase] = &[
    GpuCase {
        name: Cow::Borrowed("maxwell42"),
        text: Text::Here(MAXWELL42),
        baseline: MAXWELL,
        grids: [
            (Precision::F32, &[&[1536, 1536, 256], &[1024, 1024, 512]]),
            (Precision::F64, &[&[1536, 1536, 128], &[1024, 1024, 256]]),
        ],
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("media"),
        text: Text::Here(MEDIA),
        baseline: Some(("maxwell.cu", &["--media"])),
        grids: [
            (Precision::F32, &[&[1536, 1536, 256]]),
            (Precision::F64, &[&[1536, 1536, 128]]),
        ],
        sources: false,
        coefs: Some([0.2, 0.45]),
    },
    GpuCase {
        name: Cow::Borrowed("wave3d-2"),
        text: Text::Here(WAVE3D_2),
        baseline: Some(("wave.cu", &["--order", "2"])),
        grids: [
            (Precision::F32, &[&[1536, 1536, 512]]),
            (Precision::F64, &[&[1536, 1536, 256]]),
        ],
        sources: false,
        coefs: Some([0.05, 0.15]),
    },
    GpuCase {
        name: Cow::Borrowed("wave3d-8"),
        text: Text::Here(WAVE3D_8),
        baseline: Some(("wave.cu", &["--order", "8"])),
        grids: [
            (Precision::F32, &[&[1536, 1536, 200], &[1536, 1536, 512]]),
            (Precision::F64, &[&[1536, 1536, 100], &[1536, 1536, 256]]),
        ],
        sources: false,
        coefs: Some([0.05, 0.15]),
    },
    GpuCase {
        name: Cow::Borrowed("elastic3d"),
        text: Text::Here(ELASTIC3D),
        baseline: Some(("elastic.cu", &[])),
        grids: [
            (Precision::F32, &[&[1024, 1024, 128], &[1024, 1024, 256]]),
            (Precision::F64, &[&[1024, 1024, 128]]),
        ],
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("rows"),
        text: Text::Here(MAXWELL42),
        baseline: MAXWELL,
        grids: [
            (
                Precision::F32,
                &[
                    &[1024, 1024, 200],
                    &[1024, 1024, 256],
                    &[1024, 1024, 500],
                    &[1024, 1024, 1000],
                ],
            ),
            (
                Precision::F64,
                &[
                    &[1024, 1024, 100],
                    &[1024, 1024, 200],
                    &[1024, 1024, 256],
                    &[768, 768, 500],
                    &[512, 512, 1000],
                ],
            ),
        ],
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("odd"),
        text: Text::Here(MAXWELL42),
        baseline: MAXWELL,
        grids: [
            (Precision::F32, &[&[1024, 1021, 256], &[1536, 1531, 256]]),
            (Precision::F64, &[&[1024, 1021, 128], &[1536, 1531, 128]]),
        ],
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("large"),
        text: Text::Here(MAXWELL42),
        baseline: MAXWELL,
        grids: [
            (
                Precision::F32,
                &[&[768, 768, 256], &[2304, 2304, 256], &[3072, 3072, 256]],
            ),
            (
                Precision::F64,
                &[&[768, 768, 128], &[2304, 2304, 128], &[3072, 3072, 128]],
            ),
        ],
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("cubes"),
        text: Text::Here(MAXWELL42),
        baseline: MAXWELL,
        grids: [
            (
                Precision::F32,
                &[
                    &[256, 256, 256],
                    &[512, 512, 512],
                    &[768, 768, 768],
                    &[1024, 1024, 1024],
                    &[1280, 1280, 1280],
                    &[1536, 1536, 1536],
                ],
            ),
            (
                Precision::F64,
                &[
                    &[256, 256, 256],
                    &[512, 512, 512],
                    &[768, 768, 768],
                    &[1024, 1024, 1024],
                    &[1280, 1280, 1280],
                ],
            ),
        ],
        sources: false,
        coefs: None,
    },
    // Schemes with two axes and one.
    GpuCase {
        name: Cow::Borrowed("heat2d-2"),
        text: Text::Here(HEAT2),
        baseline: Some(("heat.cu", &[])),
        grids: [
            (
                Precision::F32,
                &[&[8192, 8192], &[16384, 16384], &[1024, 1024], &[512, 512]],
            ),
            (
                Precision::F64,
                &[&[8192, 8192], &[16384, 16384], &[1024, 1024], &[512, 512]],
            ),
        ],
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("heat2d-4"),
        text: Text::Here(HEAT4),
        baseline: None,
        grids: PLANES,
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("te2"),
        text: Text::Here(TE2),
        baseline: None,
        grids: PLANES,
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("te4"),
        text: Text::Here(TE4),
        baseline: None,
        grids: PLANES,
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("tm2"),
        text: Text::Here(TM2),
        baseline: None,
        grids: PLANES,
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("elastic2d"),
        text: Text::Here(ELASTIC2D),
        baseline: None,
        grids: PLANES,
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("wave1d"),
        text: Text::Here(WAVE1D),
        baseline: None,
        grids: [
            (Precision::F32, &[&[16777216]]),
            (Precision::F64, &[&[16777216]]),
        ],
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("maxwell22"),
        text: Text::Here(MAXWELL22),
        baseline: None,
        grids: [
            (Precision::F32, &[&[1536, 1536, 256]]),
            (Precision::F64, &[&[1536, 1536, 128]]),
        ],
        sources: false,
        coefs: None,
    },
    // Absorbing layers of 10 cells on all sides, and walls without them.
    GpuCase {
        name: Cow::Borrowed("layers42"),
        text: Text::Here(LAYERS42),
        baseline: None,
        grids: LAYERED,
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("walls42"),
        text: Text::Here(WALLS42),
        baseline: None,
        grids: LAYERED,
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("layers22"),
        text: Text::Here(LAYERS22),
        baseline: None,
        grids: LAYERED,
        sources: false,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("walls22"),
        text: Text::Here(WALLS22),
        baseline: None,
        grids: LAYERED,
        sources: false,
        coefs: None,
    },
    // A plane wave, the same with a profile, and one in a slab of cells.
    GpuCase {
        name: Cow::Borrowed("plane"),
        text: Text::Here(PLANE),
        baseline: None,
        grids: SOURCES,
        sources: true,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("beam"),
        text: Text::Here(BEAM),
        baseline: None,
        grids: SOURCES,
        sources: true,
        coefs: None,
    },
    GpuCase {
        name: Cow::Borrowed("slab"),
        text: Text::Here(SLAB),
        baseline: None,
        grids: SOURCES,
        sources: true,
        coefs: None,
    },
];

impl GpuCase {
    /// The problem of a file.
    pub fn in_file(path: &str, set: &[(String, String)]) -> Result<GpuCase, String> {
        let source = read_source(Path::new(path)).map_err(|e| format!("{path}: {e}"))?;
        let mut case = GpuCase {
            name: Cow::Owned(path.to_string()),
            text: Text::File {
                source,
                path: path.to_string(),
                cells: Vec::new(),
                set: set.to_vec(),
            },
            baseline: None,
            grids: [(Precision::F32, &[]), (Precision::F64, &[])],
            sources: false,
            coefs: None,
        };
        let (resolved, _) = case.resolve(Precision::F32, &[])?;
        if let Text::File { cells, .. } = &mut case.text {
            let grid = &resolved.scheme.grid;
            *cells = grid.present().map(|axis| grid.cells[axis]).collect();
        }
        Ok(case)
    }

    /// The number of axes.
    pub fn axes(&self) -> usize {
        match &self.text {
            Text::File { cells, .. } => cells.len(),
            Text::Here(_) => self.grids[0].1.first().map_or(3, |grid| grid.len()),
        }
    }

    pub fn is_in_file(&self) -> bool {
        matches!(self.text, Text::File { .. })
    }

    /// The grids to measure in a precision.
    pub fn grids(&self, precision: Precision) -> Vec<Vec<i64>> {
        if let Text::File { cells, .. } = &self.text {
            return vec![cells.clone()];
        }
        let own = self.grids.iter().filter(|(p, _)| *p == precision);
        own.flat_map(|(_, grids)| grids.iter().map(|g| g.to_vec()))
            .collect()
    }

    /// The calculation on a grid, with the arrays that it names; without cells on that of the text.
    pub fn resolve(
        &self,
        precision: Precision,
        cells: &[i64],
    ) -> Result<(Resolved, LoadedFiles), String> {
        let (source, path, own, set) = match &self.text {
            Text::Here(text) => (
                &Source::new(self.name.to_string(), *text),
                "",
                &[][..],
                &[][..],
            ),
            Text::File {
                source,
                path,
                cells,
                set,
            } => (source, path.as_str(), cells.as_slice(), set.as_slice()),
        };
        let world = FileWorld::beside(Path::new(path));
        let mut overrides = set.to_vec();
        if cells != own {
            let cells: Vec<String> = cells.iter().map(i64::to_string).collect();
            overrides.push(("domain".to_string(), cells.join("x")));
        }
        let options = Options {
            precision,
            overrides,
            ..Options::default()
        };
        let resolved = load(&world, source, &options).map_err(|d| messages(&d))?;
        let files = LoadedFiles::load(&world, &resolved.scheme).map_err(|e| format!("{e:?}"))?;
        Ok((resolved, files))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use torre_runtime::gpu::VolumeChoice;

    #[test]
    fn sources_that_are_measured_act_in_many_columns() {
        let cases = GPU_CASES.iter().filter(|case| case.sources);
        let found = cases.map(|case| {
            let (resolved, _) = case.resolve(Precision::F32, &[48, 48, 64])?;
            let chosen = VolumeChoice::new(&resolved.scheme, &resolved.problem);
            Ok(chosen.acting(&resolved.problem).len())
        });
        let found: Result<Vec<usize>, String> = found.collect();
        assert_eq!(found, Ok(vec![1, 1, 1]));
    }
}
