//! The command line.

use crate::baseline::Builder;
use crate::cases::{CASES, Case};
use crate::gpu::asked::Asked;
use crate::gpu::cases::{GPU_CASES, GpuCase};
use crate::program::Backend;
use crate::real::{PROBLEMS, RealProblem};
use torre_compiler::scheme::Precision;
use torre_compiler::tower::block::{Division, MOST_SLABS};

pub const USAGE: &str = "\
usage: cargo run --release -p torre-bench -- [OPTIONS]

What is measured:
  --sections LIST    of verify, compare, ceiling, compile, bandwidth, real, scaling, gpu
                     (default: all but real, scaling and gpu)
  --case LIST        cases by name (default: all)
  --problem LIST     real problems by name, such as \"layers,all periodic\" (default: all)
  --precision LIST   f32, f64 (default: those of the case)
  --sizes LIST       cells along each axis, such as 256 or 640x640x128 (default: those of the case)
  --threads LIST     (default: 1 and all cores)
  --tiling TEXT      HEIGHT; CUT, CUT; CUT, ... with cuts FORM:PITCH, levels from the outermost in, such as
                     \"16; x+y:24, x-y:24; x+y:8, x-y:8, z:64\"; may be repeated (default: that of the case);
                     auto: what the model chooses; every: all that it looks at
  --heights LIST     each tiling with each of these heights
On a GPU:
  --gpu-case LIST    cases by name (default: all); --precision and --sizes are as above
  --gpu-file FILE    the problem of a file, on its own grid or on --sizes, instead of cases; may be repeated
  --set NAME=VALUE   a parameter of it; may be repeated
  --towers TEXT      auto: what the model chooses (the default); every: all that it looks at; WIDTH,HEIGHT or
                     WIDTH,HEIGHT,STRIP,OVERLAP,HEAD_START,PARTITIONS: the pitch of both faces in cells, steps
                     of a time block, towers of a strip, columns that alternate, stages that neighbours are ahead,
                     parts of the cache that have strips of their own; may be repeated
  --patches TEXT     pyramids: WARPS,LINES,CELLS,BLOCKS,HEIGHT, with `,shared` where coefficients lie in shared memory
                     and `,again` where rows have the same slots one after the other:
                     warps of a block, cells of a patch along both axes, blocks of a multiprocessor, steps of a time
                     block; with three axes TX,TY,TZ,PX,PY,PZ,BLOCKS,HEIGHT: threads and cells along each; may be
                     repeated
  --slabs N          blocks of a cluster that share lines, instead of what the model chooses
  --z-blocks N       values of the z blocks into which lines are cut, a multiple of 32, instead of the choice of the \
  model
  --check            compares instead: the baseline with the CPU, towers with layerwise kernels, bit by bit
  --device N         (default 0)
  --nvcc FILE        the CUDA compiler (default: in PATH, CUDA_HOME/bin, CUDA_PATH/bin, /usr/local/cuda/bin)
  --built FOLDER     CUDA programs that were built before, instead of a compiler
  --portable         code of towers that later GPUs run, too
  --limit S          after S seconds begin no further towers on a grid (default 120)
How:
  --rounds N         rounds that each program gets (default 7)
  --seconds S        the least time of a round (default 0.5)
  --backend NAME     llvm, cranelift or interp (default llvm)
  --cc NAME          the C compiler (default cc)
  --cflags FLAGS     (default -O3 -march=native -ffast-math -fopenmp)
  --no-baseline      Torre alone
  --quick            tiny grids and short rounds: checks that all works; the figures mean nothing
  --json FILE        also writes all figures there
";

/// A part of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Results of C and Torre agree on a small grid.
    Verify,
    /// Rates, programs alternating.
    Compare,
    /// Rates in a level-2 cache.
    Ceiling,
    /// Times from source text to machine code.
    Compile,
    /// Rates of copying.
    Bandwidth,
    /// Rates of what users put into a problem, beside the bare box.
    Real,
    /// Rates by size and height.
    Scaling,
    /// Rates on a GPU.
    Gpu,
}

impl Section {
    const ALL: [(&str, Section); 8] = [
        ("verify", Section::Verify),
        ("compare", Section::Compare),
        ("ceiling", Section::Ceiling),
        ("compile", Section::Compile),
        ("bandwidth", Section::Bandwidth),
        ("real", Section::Real),
        ("scaling", Section::Scaling),
        ("gpu", Section::Gpu),
    ];
}

/// The options of the command line.
#[derive(Clone, Debug)]
pub struct Args {
    pub sections: Vec<Section>,
    pub cases: Vec<&'static Case>,
    pub problems: Vec<&'static RealProblem>,
    pub precisions: Option<Vec<Precision>>,
    pub sizes: Vec<Vec<i64>>,
    pub threads: Vec<usize>,
    pub tilings: Vec<String>,
    pub heights: Vec<u64>,
    pub rounds: usize,
    pub seconds: f64,
    pub backend: Backend,
    pub compiler: String,
    pub flags: String,
    pub baseline: bool,
    pub quick: bool,
    pub json: Option<String>,
    pub gpu_cases: Vec<&'static GpuCase>,
    pub gpu_files: Vec<String>,
    /// Parameters of problems in files.
    pub set: Vec<(String, String)>,
    pub towers: Vec<Asked>,
    /// How lines are divided.
    pub division: Option<Division>,
    /// On a GPU: whether programs agree, instead of how fast they are.
    pub check: bool,
    pub device: usize,
    pub nvcc: Option<String>,
    /// Where baselines in CUDA were built before.
    pub built: Option<String>,
    pub portable: bool,
    /// Seconds after which no further towers begin on a grid.
    pub limit: f64,
}

/// Reads the command line; `Ok(None)`: help is wanted.
pub fn parse(words: &[String], cores: usize) -> Result<Option<Args>, String> {
    let mut args = Args {
        sections: Section::ALL[..5].iter().map(|(_, s)| *s).collect(),
        cases: CASES.iter().collect(),
        problems: PROBLEMS.iter().collect(),
        precisions: None,
        sizes: Vec::new(),
        threads: Vec::new(),
        tilings: Vec::new(),
        heights: Vec::new(),
        rounds: 0,
        seconds: 0.0,
        backend: Backend::Llvm,
        compiler: "cc".to_string(),
        flags: Builder::FLAGS.to_string(),
        baseline: true,
        quick: false,
        json: None,
        gpu_cases: GPU_CASES.iter().collect(),
        gpu_files: Vec::new(),
        set: Vec::new(),
        towers: Vec::new(),
        division: None,
        check: false,
        device: 0,
        nvcc: None,
        built: None,
        portable: false,
        limit: 120.0,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let (option, inline) = match word.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (word.as_str(), None),
        };
        match option {
            "--help" | "-h" => return Ok(None),
            "--quick" => args.quick = true,
            "--portable" => args.portable = true,
            "--check" => args.check = true,
            "--no-baseline" => args.baseline = false,
            _ if !option.starts_with("--") => return Err(format!("`{word}` is not an option")),
            _ => {
                let value = inline
                    .or_else(|| words.next().map(String::as_str))
                    .ok_or_else(|| format!("`{option}` wants a value"))?;
                args.set(option, value)?;
            }
        }
    }
    if args.threads.is_empty() {
        args.threads = vec![1, cores];
        args.threads.dedup();
    }
    if args.towers.is_empty() {
        args.towers.push(Asked::Auto);
    }
    if args.rounds == 0 {
        args.rounds = if args.quick { 2 } else { 7 };
    }
    if args.seconds == 0.0 {
        args.seconds = if args.quick { 0.001 } else { 0.5 };
    }
    Ok(Some(args))
}

impl Args {
    fn set(&mut self, option: &str, value: &str) -> Result<(), String> {
        let wrong = || format!("`{value}` does not suit `{option}`");
        match option {
            "--sections" => {
                let find = |name: &str| Section::ALL.iter().find(|(n, _)| *n == name).map(|p| p.1);
                self.sections = list(value, find).ok_or_else(wrong)?;
            }
            "--case" => {
                let find = |name: &str| CASES.iter().find(|c| c.name == name);
                self.cases = list(value, find).ok_or_else(|| {
                    let names: Vec<&str> = CASES.iter().map(|c| c.name).collect();
                    format!("{}; there are {}", wrong(), names.join(", "))
                })?;
            }
            "--problem" => {
                let find = |name: &str| PROBLEMS.iter().find(|p| p.name == name);
                self.problems = list(value, find).ok_or_else(|| {
                    let names: Vec<&str> = PROBLEMS.iter().map(|p| p.name).collect();
                    format!("{}; there are {}", wrong(), names.join(", "))
                })?;
            }
            "--precision" => {
                let find = |name: &str| match name {
                    "f32" => Some(Precision::F32),
                    "f64" => Some(Precision::F64),
                    _ => None,
                };
                self.precisions = Some(list(value, find).ok_or_else(wrong)?);
            }
            "--sizes" => {
                let size = |text: &str| {
                    let cells = text.split('x').map(|n| positive(n).map(|n| n as i64));
                    cells.collect::<Option<Vec<i64>>>()
                };
                self.sizes = list(value, size).ok_or_else(wrong)?;
            }
            "--threads" => {
                let count = |n: &str| positive(n).map(|n| n as usize);
                self.threads = list(value, count).ok_or_else(wrong)?;
            }
            "--tiling" => self.tilings.push(value.to_string()),
            "--heights" => {
                self.heights = list(value, |n| positive(n).map(u64::from)).ok_or_else(wrong)?;
            }
            "--rounds" => self.rounds = positive(value).ok_or_else(wrong)? as usize,
            "--seconds" => self.seconds = seconds(value).ok_or_else(wrong)?,
            "--limit" => self.limit = seconds(value).ok_or_else(wrong)?,
            "--gpu-case" => {
                let find = |name: &str| GPU_CASES.iter().find(|c| c.name == name);
                self.gpu_cases = list(value, find).ok_or_else(|| {
                    let names: Vec<&str> = GPU_CASES.iter().map(|c| &*c.name).collect();
                    format!("{}; there are {}", wrong(), names.join(", "))
                })?;
            }
            "--towers" => self.towers.push(Asked::parse(value).ok_or_else(wrong)?),
            "--patches" => self.towers.push(Asked::pyramids(value).ok_or_else(wrong)?),
            "--slabs" => {
                let slabs = positive(value).filter(|n| *n <= MOST_SLABS);
                self.division = Some(Division::Shared(slabs.ok_or_else(wrong)?));
            }
            "--z-blocks" => {
                let values = positive(value).filter(|n| n.is_multiple_of(32));
                self.division = Some(Division::ZBlocks(values.ok_or_else(wrong)? / 32));
            }
            "--device" => self.device = value.parse().map_err(|_| wrong())?,
            "--gpu-file" => self.gpu_files.push(value.to_string()),
            "--set" => {
                let (name, value) = value.split_once('=').ok_or_else(wrong)?;
                self.set.push((name.to_string(), value.to_string()));
            }
            "--built" => self.built = Some(value.to_string()),
            "--nvcc" => self.nvcc = Some(value.to_string()),
            "--backend" => self.backend = Backend::parse(value).ok_or_else(wrong)?,
            "--cc" => self.compiler = value.to_string(),
            "--cflags" => self.flags = value.to_string(),
            "--json" => self.json = Some(value.to_string()),
            _ => return Err(format!("`{option}` is not an option")),
        }
        Ok(())
    }

    /// The precisions to measure a case in.
    pub fn precisions(&self, case: &Case) -> Vec<Precision> {
        match &self.precisions {
            Some(precisions) => precisions.clone(),
            None => case.precisions.to_vec(),
        }
    }

    /// The grids to measure a case on.
    pub fn grids(&self, case: &Case) -> Vec<Vec<i64>> {
        let own = match (self.quick, case.axes) {
            (false, _) => case.sizes,
            (true, 2) => &[96],
            (true, _) => &[32],
        };
        let own: Vec<Vec<i64>> = own.iter().map(|n| vec![*n]).collect();
        let sizes = if self.sizes.is_empty() {
            &own
        } else {
            &self.sizes
        };
        let full = |size: &Vec<i64>| match size.as_slice() {
            [n] => vec![*n; case.axes],
            _ => size.clone(),
        };
        sizes
            .iter()
            .map(full)
            .filter(|size| size.len() == case.axes)
            .collect()
    }

    /// The tilings to measure a case with.
    pub fn tilings(&self, case: &Case) -> Vec<String> {
        let own: Vec<String> = match self.tilings.is_empty() {
            true => case.tilings.iter().map(|t| t.to_string()).collect(),
            false => self.tilings.clone(),
        };
        if self.heights.is_empty() {
            return own;
        }
        own.iter()
            .flat_map(|text| {
                self.heights
                    .iter()
                    .map(|h| crate::tiling::with_height(text, *h))
            })
            .collect()
    }
}

fn list<T>(text: &str, find: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    text.split(',').map(|word| find(word.trim())).collect()
}

fn seconds(text: &str) -> Option<f64> {
    text.parse().ok().filter(|s| *s > 0.0 && *s < 1e6)
}

fn positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n| *n > 0)
}
