//! What is in memory while steps run.

use super::size;
use clap::Args;
use std::path::{Path, PathBuf};

/// What a GPU holds while it computes.
#[derive(Debug, Default, Args)]
pub struct Holding {
    /// What is in memory while steps run: `auto`, `none`, `device` and `host` say what a GPU holds, a folder is for a
    /// calculation window over files, on the processor, too
    ///
    /// `auto`: all values if they fit, a calculation window over the host's memory otherwise; `none`: all values, one
    /// time block at a time; `device`: all values, several time blocks in flight; `host`: a calculation window over the
    /// host's memory; anything else: one over two files in the folder of that name
    #[arg(long, value_name = "WHAT", default_value = "auto", value_parser = window)]
    pub window: WindowArg,
    /// Memory of the GPU, or of the processor for a window over files, that is used at most, such as `20GB` or `16GiB`
    /// [default: what is free]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Time blocks in flight, with `--window host` or `device` [default: the model chooses]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub in_flight: Option<u32>,
    /// Columns of towers of a launch, in the same cases [default: the model chooses]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub columns: Option<u32>,
}

impl Holding {
    /// The folder of a calculation window over files.
    pub fn folder(&self) -> Option<&Path> {
        match &self.window {
            WindowArg::Folder(folder) => Some(folder),
            _ => None,
        }
    }

    /// Whether anything was asked for.
    pub fn is_given(&self) -> bool {
        let numbers = [self.in_flight, self.columns].iter().any(Option::is_some);
        self.window != WindowArg::Auto || self.memory.is_some() || numbers
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WindowArg {
    /// All values if they fit, a calculation window over the host's memory otherwise
    #[default]
    Auto,
    /// All values, one time block at a time
    None,
    /// All values, several time blocks in flight
    Device,
    /// A calculation window over the host's memory
    Host,
    /// A calculation window over files of a folder
    Folder(PathBuf),
}

/// What a GPU holds, or a folder; one that has the name of something else is written with `./`.
fn window(text: &str) -> Result<WindowArg, String> {
    Ok(match text {
        "" => return Err("a folder has a name".to_owned()),
        "auto" => WindowArg::Auto,
        "none" => WindowArg::None,
        "device" => WindowArg::Device,
        "host" => WindowArg::Host,
        folder => WindowArg::Folder(folder.into()),
    })
}
