//! The number of threads, for each command that computes.

use clap::Args;

#[derive(Debug, Args)]
pub struct ThreadsArg {
    /// Number of threads of the processor; with this option `--backend auto` takes no GPU unless one is named
    /// [default: one per core, fewer for small grids]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
}
