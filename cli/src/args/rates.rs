//! Which rates decide.

use clap::{Args, ValueEnum};

/// Which rates decide between schedules.
#[derive(Debug, Default, Args)]
pub struct RatesArgs {
    /// The rates by which schedules are chosen; with `modelled` no rates are recorded either [default: learned, or as
    /// `TORRE_RATES` says]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub rates: Option<RatesArg>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RatesArg {
    /// The rates of the model, corrected by measurements of runs on this machine
    Learned,
    /// The rates of the model
    Modelled,
}
