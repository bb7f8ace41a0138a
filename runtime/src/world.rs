//! The world outside as the compiler sees it: the standard library, which is part of the executable, and the files
//! beside the user's source.

use crate::output::npy::{NpyFault, NpyReader};
use crate::output::open::open;
use crate::output::{Cause, FileError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use torre_compiler::world::{ArrayInfo, World};
use torre_grammar::source::Source;

mod standard {
    include!("../../stdlib/index.rs");
}

/// The first part of the path of every module of the standard library.
const STANDARD: &str = "std";

/// How source files end.
const EXTENSION: &str = "torre";

/// Longer files are cut here; the parser refuses them because of their length anyway.
const MAX_BYTES: u64 = 64 << 20;

/// The standard library and the folder of the user's source.
#[derive(Clone, Debug)]
pub struct FileWorld {
    /// The folder of the main source, as the user wrote it; empty for the current one.
    base: PathBuf,
}

impl FileWorld {
    /// The world that a source file sees: modules and arrays are looked up beside it.
    pub fn beside(source: &Path) -> Self {
        Self {
            base: source.parent().unwrap_or(Path::new("")).to_path_buf(),
        }
    }

    /// Where a path that the source names lies: beside the source, unless it is absolute.
    pub fn path(&self, named: &str) -> PathBuf {
        self.base.join(named)
    }
}

/// Reads a source file.
pub fn read_source(path: &Path) -> io::Result<Source> {
    let text = read_text(path)?;
    Ok(Source::new(path.display().to_string(), text))
}

/// Reads a text of up to [`MAX_BYTES`].
fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path)?.take(MAX_BYTES).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!("it is not text in UTF-8: see byte {}", at + 1);
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

impl World for FileWorld {
    fn module(&self, from: &Source, path: &[&str]) -> Option<Source> {
        match path {
            [STANDARD, name] => standard::MODULES
                .iter()
                .find(|(module, _)| module == name)
                .map(|(name, text)| Source::new(format!("{STANDARD}::{name}"), *text)),
            // The standard library does not depend on where it is used.
            [_] if from.name().starts_with("std::") => None,
            [name] => {
                let file = self.base.join(name).with_extension(EXTENSION);
                file.is_file().then(|| read_source(&file).ok()).flatten()
            }
            _ => None,
        }
    }

    fn unreadable(&self, from: &Source, path: &[&str]) -> Option<String> {
        let [name] = path else { return None };
        if from.name().starts_with("std::") {
            return None;
        }
        let file = self.base.join(name).with_extension(EXTENSION);
        let error = read_source(&file).err()?;
        (error.kind() != io::ErrorKind::NotFound).then(|| error.to_string())
    }

    fn modules(&self) -> Vec<String> {
        let mut modules: Vec<String> = standard::MODULES
            .iter()
            .map(|(name, _)| format!("{STANDARD}::{name}"))
            .collect();
        let folder = match self.base.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.base,
        };
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == EXTENSION)
                && let Some(name) = path.file_stem().and_then(|name| name.to_str())
            {
                modules.push(name.to_owned());
            }
        }
        modules.sort();
        modules
    }

    fn array(&self, _: &Source, path: &str) -> Result<ArrayInfo, String> {
        let reader = match NpyReader::open(&self.path(path)) {
            // The message on their type names types that can be read.
            Err(FileError {
                cause: Cause::Npy(NpyFault::Dtype(dtype)),
                ..
            }) => {
                return Ok(ArrayInfo {
                    dtype,
                    shape: Vec::new(),
                });
            }
            opened => opened.map_err(|error| error.cause.to_string())?,
        };
        let header = reader.header();
        Ok(ArrayInfo {
            dtype: header.dtype.to_string(),
            shape: header.shape.iter().map(|&n| n as u64).collect(),
        })
    }

    fn table(&self, _: &Source, path: &str) -> Result<String, String> {
        let text = read_text(&self.path(path)).map_err(|error| error.to_string())?;
        match text.len() as u64 {
            MAX_BYTES => Err(format!("it has more than {} MiB", MAX_BYTES >> 20)),
            _ => Ok(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{View, npy};

    #[test]
    fn modules_come_from_the_library_and_from_beside_the_source() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("main.torre");
        std::fs::write(&main, "use lib::f\n").unwrap();
        std::fs::write(folder.path().join("lib.torre"), "const f = 1\n").unwrap();
        let world = FileWorld::beside(&main);
        let source = read_source(&main).unwrap();
        let lib = world.module(&source, &["lib"]).unwrap();
        assert_eq!(lib.text(), "const f = 1\n");
        let curl = world.module(&source, &["std", "curl"]).unwrap();
        assert_eq!(curl.name(), "std::curl");
        assert!(curl.text().contains("def curl("));
        std::fs::write(folder.path().join("bytes.torre"), b"const f = 1\xff").unwrap();
        assert!(world.module(&source, &["bytes"]).is_none());
        let reason = world.unreadable(&source, &["bytes"]).unwrap();
        assert_eq!(reason, "it is not text in UTF-8: see byte 12");
        std::fs::create_dir(folder.path().join("folder.torre")).unwrap();
        assert!(world.module(&source, &["folder"]).is_none());
        assert!(world.unreadable(&source, &["folder"]).is_some());
        assert_eq!(world.unreadable(&source, &["nothing"]), None);
        for missing in [&["std", "nothing"][..], &["nothing"], &["a", "b"], &[]] {
            assert!(world.module(&source, missing).is_none(), "{missing:?}");
        }
        assert!(world.module(&curl, &["lib"]).is_none());
        let modules = world.modules();
        assert!(modules.contains(&"lib".into()) && modules.contains(&"std::curl".into()));
    }

    #[test]
    fn arrays_show_their_heads() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("main.torre");
        let values = [0.0f32; 6];
        let view = View::contiguous(&values, &[2, 3]).unwrap();
        npy::write(&folder.path().join("eps.npy"), &view).unwrap();
        std::fs::write(folder.path().join("bad.npy"), "no array").unwrap();
        let world = FileWorld::beside(&main);
        let source = Source::new("main.torre", "");
        let info = world.array(&source, "eps.npy").unwrap();
        assert_eq!((info.dtype.as_str(), &info.shape[..]), ("<f4", &[2, 3][..]));
        assert!(world.array(&source, "bad.npy").is_err());
        assert!(world.array(&source, "absent.npy").is_err());
    }
}
