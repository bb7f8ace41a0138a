//! The benchmarks themselves: their baselines, options and checks.

mod agreement;
mod gpu;

use torre_bench::args::{Args, parse};

fn args(words: &str) -> Args {
    let words: Vec<String> = words.split_whitespace().map(str::to_string).collect();
    let args = parse(&words, 2).expect("these options exist");
    args.expect("no help was asked for")
}
