//! Parts that users put into a problem, beside the bare box: both run alternately with the same schedule.

use crate::args::Args;
use crate::cases::{Case, MAXWELL, MAXWELL42};
use crate::machine::Cores;
use crate::program::{Kernels, Running, load_for};
use crate::report::Samples;
use crate::tiling::{Tiles, all_tiles};
use serde_json::{Value, json};
use torre_compiler::real::Real;
use torre_compiler::resolve::Resolved;
use torre_compiler::scheme::Precision;

/// Steps for which waves of sources are computed; runs do fewer.
const STEPS: u64 = 1 << 16;

macro_rules! box_with {
    ($($clause:literal)*) => {
        concat!(
            "use std::maxwell::maxwell42\nproblem bench {\n  scheme maxwell42\n  domain 64 x 64 x 64\n",
            $("  ", $clause, "\n",)*
            "  steps 1\n}\n"
        )
    };
}

/// The parts that users put into a problem.
#[derive(Debug)]
pub struct RealProblem {
    pub name: &'static str,
    text: &'static str,
}

/// FDTD(4,2) with one addition each, at last with several at once as example 08 has them.
pub static PROBLEMS: [RealProblem; 11] = [
    RealProblem {
        name: "walls",
        text: box_with!("boundary x: pec, y: pec, z: pec | pmc"),
    },
    RealProblem {
        name: "periodic x",
        text: box_with!("boundary x: periodic"),
    },
    RealProblem {
        name: "periodic y",
        text: box_with!("boundary y: periodic"),
    },
    RealProblem {
        name: "periodic z",
        text: box_with!("boundary z: periodic"),
    },
    RealProblem {
        name: "all periodic",
        text: box_with!("boundary x: periodic, y: periodic, z: periodic"),
    },
    RealProblem {
        name: "a source",
        text: box_with!("source E.z at (24, 24, 24) += 0.01 * sin(0.2 * t)"),
    },
    RealProblem {
        name: "a box of probes",
        text: box_with!("probe E.z in x = 20..30, y = 20..30, z = 24"),
    },
    RealProblem {
        name: "slices",
        text: box_with!("output slice E.z z = 24 every 20"),
    },
    RealProblem {
        name: "several",
        text: box_with!(
            "boundary x: pec, y: periodic, z: pec | pmc"
            "source E.z at (24, 24, 24) += 0.01 * sin(0.2 * t)"
            "probe E.z at (40, 24, 24)"
            "output slice E.z z = 24 every 20"
        ),
    },
    RealProblem {
        name: "layers",
        text: box_with!("boundary x: cpml(10), y: cpml(10), z: cpml(10)"),
    },
    RealProblem {
        name: "media",
        text: "use std::curl::curl
scheme media {
  axes x, y, z
  param h  = 1
  param dt = 0.45 * h
  coef inverse_eps : vector on edges = 0.75 + 0.0001 * x
  field E : vector on edges
  field H : vector on faces at 1/2
  step {
    H -= dt * curl(E, order = 4)
    E += inverse_eps * dt * curl(H, order = 4)
  }
}
problem bench {
  scheme media
  domain 64 x 64 x 64
  steps 1
}
",
    },
];

/// The schedule, where none is given.
const TILING: &str = "8; x+y:24, x-y:24; x+y:12, x-y:12";

/// A problem's rate beside that of the bare box.
#[derive(Clone, Debug)]
pub struct Beside {
    pub problem: &'static str,
    /// `layerwise` or a tiling.
    pub program: String,
    pub threads: usize,
    /// 1e9 cell-steps per second.
    pub gcells: Samples,
    /// Per round, the rate over that of the bare box a moment before.
    pub to_bare: Samples,
}

impl Beside {
    pub fn json(&self, precision: Precision, cells: &[i64]) -> Value {
        json!({
            "problem": self.problem, "precision": precision.to_string(), "cells": cells,
            "threads": self.threads, "program": self.program,
            "gcells_per_s": self.gcells.median(), "ratio_to_bare": self.to_bare.median(),
            "spread": self.to_bare.spread(),
        })
    }
}

fn case(name: &'static str, text: &'static str) -> Case {
    Case {
        name,
        text,
        baseline: "maxwell.c",
        order: 4,
        fields: MAXWELL,
        axes: 3,
        sizes: &[192],
        precisions: &[Precision::F32],
        tilings: &[TILING],
    }
}

/// A problem ready to run.
struct Prepared {
    case: Case,
    resolved: Resolved,
    tilings: Vec<Tiles>,
    kernels: Kernels,
}

impl Prepared {
    fn new(case: Case, precision: Precision, cells: &[i64], args: &Args) -> Result<Self, String> {
        let resolved = load_for(&case, precision, cells, STEPS)?;
        let tilings = all_tiles(&resolved.scheme, &args.tilings(&case))?;
        Ok(Self {
            kernels: Kernels::new(args.backend, &resolved.scheme, &tilings)?,
            case,
            resolved,
            tilings,
        })
    }

    /// The programs: layerwise, and the tilings.
    fn programs(&self) -> impl Iterator<Item = Option<&Tiles>> {
        std::iter::once(None).chain(self.tilings.iter().map(Some))
    }
}

/// Grids on which real problems are measured.
pub fn grids(args: &Args) -> Vec<Vec<i64>> {
    args.grids(&case("bare", MAXWELL42))
}

/// Measures all problems on a grid.
pub fn real(
    precision: Precision,
    cells: &[i64],
    args: &Args,
    cores: &Cores,
) -> Result<Vec<Beside>, String> {
    match precision {
        Precision::F32 => real_in::<f32>(cells, args, cores),
        Precision::F64 => real_in::<f64>(cells, args, cores),
    }
}

fn real_in<T: Real>(cells: &[i64], args: &Args, cores: &Cores) -> Result<Vec<Beside>, String> {
    let most = args.threads.iter().copied().max().unwrap_or(1);
    let bare = Prepared::new(case("bare", MAXWELL42), T::PRECISION, cells, args)?;
    let mut running = Running::<T>::new(&bare.case, &bare.resolved, &bare.kernels, most)?;
    let mut found = Vec::new();
    for &RealProblem {
        name: problem,
        text,
    } in args.problems.iter().copied()
    {
        eprintln!("{problem}");
        let failure = |message: String| format!("{problem}: {message}");
        let own = Prepared::new(case(problem, text), T::PRECISION, cells, args).map_err(failure)?;
        let beside = Running::<T>::new(&own.case, &own.resolved, &own.kernels, most);
        let mut beside = beside.map_err(failure)?;
        for &threads in &args.threads {
            for (plain, tiles) in bare.programs().zip(own.programs()) {
                let (mut gcells, mut to_bare) = (Vec::new(), Vec::new());
                let height = tiles.map_or(1, |t| t.program.height);
                let volume: f64 = cells.iter().map(|&n| n as f64).product();
                let mut steps = height;
                // Round 0 is not counted; it tells how many steps a round takes.
                for round in 0..=args.rounds {
                    let base = running.run(plain, threads, steps, cores);
                    let seconds = beside.run(tiles, threads, steps, cores);
                    // The pictures are not used, but would fill memory.
                    drop(beside.calculation.take_pictures());
                    match round {
                        0 => {
                            let wanted = (steps as f64 * args.seconds / base).ceil() as u64;
                            steps = wanted.clamp(1, 1 << 10).next_multiple_of(height);
                        }
                        _ => {
                            gcells.push(1e-9 * volume * steps as f64 / seconds);
                            to_bare.push(base / seconds);
                        }
                    }
                }
                let samples = |values| Samples::new(values).ok_or("no round was measured");
                found.push(Beside {
                    problem,
                    program: tiles.map_or("layerwise".to_owned(), |t| t.name.clone()),
                    threads,
                    gcells: samples(gcells)?,
                    to_bare: samples(to_bare)?,
                });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_resolve() {
        for RealProblem { name, text } in &PROBLEMS {
            let resolved = load_for(&case(name, text), Precision::F32, &[64, 64, 64], 7);
            assert_eq!(resolved.map(|r| r.problem.steps), Ok(7), "{name}");
        }
    }
}
