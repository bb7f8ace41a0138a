//! What is in memory while steps run.

use super::size;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use torre_runtime::plan::gpu::SlabSizes;

/// The values that are in memory while steps run.
#[derive(Debug, Default, Args)]
pub struct Holding {
    /// The place of values while steps run: the memory of the GPU, a calculation window over the host's memory, or a
    /// window over files in a folder, also on the processor
    ///
    /// On a GPU: `auto`: all values in its memory if they fit, a calculation window over the host's memory otherwise;
    /// `none` or `off`: all values, one time block at a time; `device`: all values, several time blocks in flight;
    /// `host`: a calculation window over the host's memory; `slabs`, or `slabs(base = B, height = H)`: overlapped slabs
    /// over the host's memory, with bases of B planes, in passes of H steps; with ` in DIR` after it, over two files in
    /// the folder DIR. Any other name, on a GPU or the processor: a window over two files in the folder of that name
    #[arg(long, value_name = "PLACE", default_value = "auto", value_parser = OsStringValueParser::new().try_map(named))]
    pub window: WindowArg,
    /// The most memory of the GPU, or of the processor for a window over files, that a run uses, such as `20GB` or
    /// `16GiB` [default: all free memory of the GPU; three quarters of the free memory of the processor]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<u64>,
    /// Time blocks in flight, with `--window host` or `device` [default: the model chooses]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub in_flight: Option<u32>,
    /// Columns of towers in a launch, with `--window host` or `device` [default: the model chooses]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub columns: Option<u32>,
}

impl Holding {
    /// The folder of a calculation over files.
    pub fn folder(&self) -> Option<&Path> {
        match &self.window {
            WindowArg::Folder(folder) => Some(folder),
            WindowArg::Slabs { folder, .. } => folder.as_deref(),
            _ => None,
        }
    }

    /// Whether it is a window over files, which a processor has, too.
    pub fn is_window_in_files(&self) -> bool {
        matches!(self.window, WindowArg::Folder(_))
    }

    /// The first option that has a meaning for several time blocks in flight only, if one was given.
    pub fn of_several_blocks(&self) -> Option<&'static str> {
        let options = [("--in-flight", self.in_flight), ("--columns", self.columns)];
        let given = options.into_iter().find(|(_, value)| value.is_some());
        given.map(|(name, _)| name)
    }

    /// Whether anything was asked for.
    pub fn is_given(&self) -> bool {
        let window = self.window != WindowArg::Auto;
        window || self.memory.is_some() || self.of_several_blocks().is_some()
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
    /// Overlapped slabs over the host's memory, or over files of a folder
    Slabs {
        sizes: SlabSizes,
        folder: Option<PathBuf>,
    },
    /// A calculation window over files of a folder
    Folder(PathBuf),
}

/// The same for any name; one that is no text is that of a folder.
fn named(name: OsString) -> Result<WindowArg, String> {
    match name.to_str() {
        Some(text) => window(text),
        None => Ok(WindowArg::Folder(name.into())),
    }
}

/// What a GPU holds, or a folder; one that has the name of something else is written with `./`.
fn window(text: &str) -> Result<WindowArg, String> {
    Ok(match text {
        "" => return Err("a folder has a name".to_owned()),
        "auto" => WindowArg::Auto,
        "none" | "off" => WindowArg::None,
        "device" => WindowArg::Device,
        "host" => WindowArg::Host,
        _ => match slabs_in(text)? {
            Some(slabs) => slabs,
            None => WindowArg::Folder(text.into()),
        },
    })
}

/// Slabs, if a text begins with them.
fn slabs_in(text: &str) -> Result<Option<WindowArg>, String> {
    let (held, folder) = match text.split_once(" in ") {
        Some((held, folder)) => (held.trim_end(), Some(folder.trim())),
        None => (text, None),
    };
    let sizes = match (held, held.strip_prefix("slabs(")) {
        ("slabs", _) => SlabSizes::default(),
        (_, Some(sizes)) => slabs(sizes)?,
        (_, None) => return Ok(None),
    };
    if folder.is_some_and(str::is_empty) {
        return Err("a folder has a name".to_owned());
    }
    Ok(Some(WindowArg::Slabs {
        sizes,
        folder: folder.map(PathBuf::from),
    }))
}

/// The sizes of slabs, as schedules have them: `base = 512, height = 32)`, or `B` and `TH`, each at most once.
fn slabs(text: &str) -> Result<SlabSizes, String> {
    let form = || "slabs are written `slabs(base = 512, height = 32)`".to_owned();
    let inside = text.strip_suffix(')').ok_or_else(form)?;
    let mut sizes = SlabSizes::default();
    for part in inside.split(',') {
        let (name, value) = part.split_once('=').ok_or_else(form)?;
        let value = value.trim();
        let size: u32 = value
            .parse()
            .map_err(|_| format!("`{value}` is no whole number of planes or steps"))?;
        if size == 0 {
            return Err("a slab has a plane and a step at least".to_owned());
        }
        let before = match name.trim() {
            "base" | "B" => sizes.base.replace(i64::from(size)).is_some(),
            "height" | "TH" => sizes.height.replace(u64::from(size)).is_some(),
            _ => return Err(form()),
        };
        if before {
            return Err(form());
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn slabs_are_written_as_schedules_are() {
        let over = |base, height, folder: Option<&str>| {
            Ok(WindowArg::Slabs {
                sizes: SlabSizes { base, height },
                folder: folder.map(PathBuf::from),
            })
        };
        let of = |base, height| over(base, height, None);
        assert_eq!(window("off"), window("none"));
        assert_eq!(window("slabs"), of(None, None));
        assert_eq!(
            window("slabs(base = 512, height = 32)"),
            of(Some(512), Some(32))
        );
        assert_eq!(window("slabs(TH=8)"), of(None, Some(8)));
        assert_eq!(
            window("slabs(TH=8) in /scratch/a b"),
            over(None, Some(8), Some("/scratch/a b"))
        );
        assert_eq!(window("slabs in x"), over(None, None, Some("x")));
        assert_eq!(
            window("./slabs in x"),
            Ok(WindowArg::Folder(PathBuf::from("./slabs in x")))
        );
        assert_eq!(
            window("./slabs"),
            Ok(WindowArg::Folder(PathBuf::from("./slabs")))
        );
        let folder = OsString::from_vec(b"a\xff".to_vec());
        let named = named(folder.clone());
        assert_eq!(named, Ok(WindowArg::Folder(folder.into())));
        for wrong in [
            "slabs()",
            "slabs(8)",
            "slabs(base = 0)",
            "slabs(base = 1, B = 2)",
            "slabs(width = 3)",
            "slabs(base = 1",
            "slabs in ",
        ] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }
}
