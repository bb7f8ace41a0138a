//! `cargo run --release -p torre-bench -- --help`

use serde_json::json;
use std::process::ExitCode;
use torre_bench::args::{self, Args, Section};
use torre_bench::bandwidth::bandwidth;
use torre_bench::baseline::Builder;
use torre_bench::ceiling::ceiling;
use torre_bench::compare::{Comparison, compare};
use torre_bench::compile::compile;
use torre_bench::gpu::gpu;
use torre_bench::machine::{self, Cores};
use torre_bench::real;
use torre_bench::report::{Report, Table, domain};
use torre_bench::verify::verify;
use torre_compiler::cost::gcells;
use torre_compiler::scheme::Precision;

fn main() -> ExitCode {
    let cores = Cores::find();
    let words: Vec<String> = std::env::args().skip(1).collect();
    let args = match args::parse(&words, cores.count()) {
        Ok(Some(args)) => args,
        Ok(None) => {
            print!("{}", args::USAGE);
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("{message}; see --help");
            return ExitCode::from(2);
        }
    };
    match measure(&args, &cores) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything could be measured and verified.
fn measure(args: &Args, cores: &Cores) -> Result<bool, String> {
    let builder = Builder::new(&args.compiler, &args.flags).map_err(|e| e.to_string())?;
    let mut bench = Bench {
        args,
        cores,
        builder,
        report: Report::default(),
        complete: true,
    };
    bench.head();
    for section in &args.sections {
        match section {
            Section::Verify => bench.verify(),
            Section::Bandwidth => bench.bandwidth(),
            Section::Compile => bench.compile(),
            Section::Ceiling => bench.ceiling(),
            Section::Compare => bench.compare("compare", args),
            Section::Real => bench.real(),
            Section::Scaling => bench.scaling(),
            Section::Gpu => bench.complete &= gpu(args, &mut bench.report),
        }
    }
    if let Some(path) = &args.json {
        std::fs::write(path, bench.report.json()).map_err(|e| format!("{path}: {e}"))?;
    }
    Ok(bench.complete)
}

struct Bench<'a> {
    args: &'a Args,
    cores: &'a Cores,
    builder: Builder,
    report: Report,
    complete: bool,
}

impl Bench<'_> {
    fn head(&mut self) {
        let load = machine::load();
        println!("{}, {} cores", machine::processor(), self.cores.count());
        println!("{}; {}", self.builder.description(), self.builder.version());
        if let Some(load) = load.filter(|l| *l > 0.3) {
            println!("others use this machine (load {load:.1}): the figures are not to be trusted");
        }
        if self.args.quick {
            println!("quick: the figures mean nothing");
        }
        self.report.set("processor", json!(machine::processor()));
        self.report
            .set("baseline", json!(self.builder.description()));
        self.report.set("compiler", json!(self.builder.version()));
        self.report.set("load", json!(load));
        self.report.set("quick", json!(self.args.quick));
    }

    fn fail(&mut self, name: &str, message: impl std::fmt::Display) {
        eprintln!("{name}: {message}");
        self.complete = false;
    }

    fn verify(&mut self) {
        let mut table = Table::new(&["case", "precision", "error", "allowed", "tilings"]);
        for case in &self.args.cases {
            for precision in self.args.precisions(case) {
                match verify(case, precision, self.args, &self.builder, self.cores) {
                    Ok(a) => {
                        self.complete &= a.holds();
                        table.row(vec![
                            case.name.to_string(),
                            precision.to_string(),
                            format!("{:.1e}", a.error),
                            format!("{:.1e}", a.tolerance),
                            match (a.holds(), a.bitwise) {
                                (true, _) => "same bits".to_string(),
                                (false, true) => "same bits; C DIFFERS".to_string(),
                                (false, false) => "DIFFERENT BITS".to_string(),
                            },
                        ]);
                        let value = json!({
                            "case": case.name, "precision": precision.to_string(),
                            "error": a.error, "tolerance": a.tolerance, "bitwise": a.bitwise,
                        });
                        self.report.push("verify", value);
                    }
                    Err(message) => self.fail(&format!("{} {precision}", case.name), message),
                }
            }
        }
        println!("\nC and Torre on a small grid\n{}", table.text());
    }

    fn compare(&mut self, section: &str, args: &Args) {
        let mut table = Table::new(&RATES);
        let mut choices = Table::new(&[
            "case",
            "cells",
            "precision",
            "threads",
            "best",
            "chosen / best",
            "measured / expected",
            "chosen",
            "of",
        ]);
        let mut memory = Table::new(&[
            "case",
            "cells",
            "precision",
            "fields MB",
            "layout MB",
            "over fields",
            "peak MB",
            "C peak MB",
        ]);
        for case in &args.cases {
            for precision in args.precisions(case) {
                for cells in args.grids(case) {
                    let title = format!("{} {precision} {}", case.name, domain(&cells));
                    eprintln!("{title}");
                    let found = compare(case, precision, &cells, args, &self.builder, self.cores);
                    let found = match found {
                        Ok(found) => found,
                        Err(message) => {
                            self.fail(&title, message);
                            continue;
                        }
                    };
                    for (threads, comparison) in &found {
                        let start = [
                            case.name.to_string(),
                            domain(&cells),
                            precision.to_string(),
                            threads.to_string(),
                        ];
                        rates(&mut table, &start, comparison);
                        choice(&mut choices, &start, comparison);
                        for value in comparison.json(case, precision, &cells, *threads) {
                            self.report.push(section, value);
                        }
                    }
                    if let Some((_, comparison)) = found.last() {
                        let m = comparison.memory;
                        let mb = |bytes: u64| format!("{:.1}", bytes as f64 * 1e-6);
                        let some = |bytes: Option<u64>| bytes.map_or("-".to_string(), mb);
                        memory.row(vec![
                            case.name.to_string(),
                            domain(&cells),
                            precision.to_string(),
                            mb(m.fields),
                            mb(m.layout),
                            format!("{:.3}", m.layout as f64 / m.fields as f64),
                            some(m.peak),
                            some(m.baseline_peak),
                        ]);
                    }
                }
            }
        }
        println!("\nRates in 1e9 cell-steps per second\n{}", table.text());
        if !choices.is_empty() {
            println!("What the model chose\n{}", choices.text());
        }
        println!("Memory\n{}", memory.text());
    }

    fn real(&mut self) {
        let mut table = Table::new(&[
            "problem", "cells", "threads", "Gcells/s", "to bare", "spread", "program",
        ]);
        let precisions = self.args.precisions.clone().unwrap_or(vec![Precision::F32]);
        for precision in precisions {
            for cells in real::grids(self.args) {
                let found = match real::real(precision, &cells, self.args, self.cores) {
                    Ok(found) => found,
                    Err(message) => {
                        self.fail(&format!("real problems {precision}"), message);
                        continue;
                    }
                };
                for beside in found {
                    table.row(vec![
                        beside.problem.to_string(),
                        format!("{} {precision}", domain(&cells)),
                        beside.threads.to_string(),
                        gcells(beside.gcells.median() * 1e9),
                        format!("{:.2}", beside.to_bare.median()),
                        format!("{:.0} %", 100.0 * beside.to_bare.spread()),
                        beside.program.clone(),
                    ]);
                    self.report.push("real", beside.json(precision, &cells));
                }
            }
        }
        println!("\nReal problems beside the bare box\n{}", table.text());
    }

    fn scaling(&mut self) {
        let mut args = self.args.clone();
        if args.sizes.is_empty() {
            let sizes: &[i64] = match args.quick {
                true => &[24, 32],
                false => &[64, 96, 128, 192, 256, 320, 384, 512],
            };
            args.sizes = sizes.iter().map(|n| vec![*n]).collect();
            args.cases.retain(|c| c.axes == 3);
        }
        if args.heights.is_empty() {
            args.heights = vec![4, 8, 16, 32];
        }
        self.compare("scaling", &args);
    }

    fn ceiling(&mut self) {
        let mut table = Table::new(&RATES);
        for case in &self.args.cases {
            for precision in self.args.precisions(case) {
                match ceiling(case, precision, self.args, &self.builder, self.cores) {
                    Ok((cells, comparison)) => {
                        let start = [
                            case.name.to_string(),
                            domain(&cells),
                            precision.to_string(),
                            "1".to_string(),
                        ];
                        rates(&mut table, &start, &comparison);
                        for value in comparison.json(case, precision, &cells, 1) {
                            self.report.push("ceiling", value);
                        }
                    }
                    Err(message) => self.fail(&format!("{} {precision}", case.name), message),
                }
            }
        }
        println!("\nRates in a level-2 cache, one thread\n{}", table.text());
    }

    fn compile(&mut self) {
        let mut table = Table::new(&[
            "case",
            "precision",
            "front ms",
            "schedule ms",
            "kernels",
            "LLVM ms",
            "Cranelift ms",
            "with tiles",
            "LLVM ms",
            "Cranelift ms",
        ]);
        for case in &self.args.cases {
            for precision in self.args.precisions(case) {
                match compile(case, precision, self.args) {
                    Ok(t) => {
                        let ms = |t: Option<f64>| t.map_or("-".to_string(), |t| format!("{t:.1}"));
                        table.row(vec![
                            case.name.to_string(),
                            precision.to_string(),
                            format!("{:.2}", t.front),
                            format!("{:.2}", t.schedule),
                            t.kernels[0].to_string(),
                            ms(t.llvm[0]),
                            ms(t.cranelift[0]),
                            t.kernels[1].to_string(),
                            ms(t.llvm[1]),
                            ms(t.cranelift[1]),
                        ]);
                        let value = json!({
                            "case": case.name, "precision": precision.to_string(),
                            "front_ms": t.front, "schedule_ms": t.schedule,
                            "kernels": t.kernels, "llvm_ms": t.llvm, "cranelift_ms": t.cranelift,
                        });
                        self.report.push("compile", value);
                    }
                    Err(message) => self.fail(&format!("{} {precision}", case.name), message),
                }
            }
        }
        println!("\nFrom source text to machine code\n{}", table.text());
    }

    fn bandwidth(&mut self) {
        let found = match bandwidth(self.args, &self.builder) {
            Ok(found) => found,
            Err(message) => return self.fail("bandwidth", message),
        };
        let mut table = Table::new(&["level", "threads", "MB", "copy GB/s", "triad GB/s"]);
        for b in found {
            table.row(vec![
                b.level.to_string(),
                b.threads.to_string(),
                format!("{:.1}", b.bytes as f64 * 1e-6),
                format!("{:.1}", b.copy),
                format!("{:.1}", b.triad),
            ]);
            let value = json!({
                "level": b.level, "threads": b.threads, "bytes": b.bytes,
                "copy_gb_per_s": b.copy, "triad_gb_per_s": b.triad,
            });
            self.report.push("bandwidth", value);
        }
        println!("\nBandwidth, read and written\n{}", table.text());
    }
}

const RATES: [&str; 10] = [
    "case",
    "cells",
    "precision",
    "threads",
    "Gcells/s",
    "to C",
    "to layerwise",
    "spread",
    "expected",
    "program",
];

/// How good the model's choice is among all that it looked at.
fn choice(table: &mut Table, start: &[String; 4], comparison: &Comparison) {
    let Some((best, chosen)) = comparison.choice() else {
        return;
    };
    let rate = chosen.gcells.median();
    let expected = chosen.expected.unwrap_or(f64::NAN);
    let mut row = start.to_vec();
    row.extend([
        best.name.clone(),
        format!("{:.2}", rate / best.gcells.median()),
        format!("{:.2}", rate / expected),
        chosen.name.clone(),
        comparison.rates.len().to_string(),
    ]);
    table.row(row);
}

fn rates(table: &mut Table, start: &[String; 4], comparison: &Comparison) {
    let some = |ratio: Option<f64>| ratio.map_or("-".to_string(), |r| format!("{r:.2}"));
    for (i, rate) in comparison.rates.iter().enumerate() {
        let mut row = start.to_vec();
        row.extend([
            gcells(rate.gcells.median() * 1e9),
            some(comparison.ratio(i, "c")),
            some(comparison.ratio(i, "layerwise")),
            format!("{:.0} %", 100.0 * rate.gcells.spread()),
            rate.expected.map_or("-".to_string(), |e| gcells(e * 1e9)),
            rate.name.clone(),
        ]);
        table.row(row);
    }
}
