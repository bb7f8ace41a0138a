//! The arrays of the files that a scheme names.

use crate::output::npy::NpyReader;
use crate::output::{Attempt, Cause, FileError};
use crate::world::FileWorld;
use std::path::{Path, PathBuf};
use torre_compiler::lattice::{Axis, PerAxis};
use torre_compiler::scheme::{FileId, Scheme, StaticFile};
use torre_compiler::statics::Files;

/// The arrays of the files that a scheme names, in memory.
#[derive(Debug, Default)]
pub struct LoadedFiles(Vec<LoadedFile>);

#[derive(Debug)]
struct LoadedFile {
    path: PathBuf,
    /// Values per axis, an absent one has 1.
    extent: PerAxis<i64>,
    values: Vec<f64>,
}

impl LoadedFiles {
    /// The bytes that they will take.
    pub fn bytes(scheme: &Scheme) -> u64 {
        let count = |f: &StaticFile| scheme.grid.extent(f.position).volume().saturating_mul(8);
        scheme.files.iter().map(count).fold(0, u64::saturating_add)
    }

    /// Reads all files of a scheme. A shape that is not the one that was resolved is an error: the file has changed
    /// meanwhile.
    pub fn load(world: &FileWorld, scheme: &Scheme) -> Result<LoadedFiles, FileError> {
        let load = |file: &StaticFile| {
            let path = world.path(&file.path);
            let mut reader = NpyReader::open(&path)?;
            let extent = scheme.grid.extent(file.position).map(|i| i.hi);
            let expected: Vec<usize> = scheme
                .grid
                .present()
                .map(|axis| extent[axis] as usize)
                .collect();
            let found = reader.header().shape.clone();
            if found != expected {
                let cause = Cause::Shape { expected, found };
                return Err(FileError::new(&path, Attempt::Read, cause));
            }
            let values = reader.read_all()?;
            Ok(LoadedFile {
                path,
                extent,
                values,
            })
        };
        Ok(Self(
            scheme.files.iter().map(load).collect::<Result<_, _>>()?,
        ))
    }

    /// All values, file after file, for a hash.
    pub fn values(&self) -> impl Iterator<Item = &[f64]> {
        self.0.iter().map(|file| &file.values[..])
    }

    /// Where the files lie.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|file| file.path.as_path())
    }
}

impl Files for LoadedFiles {
    fn value(&self, file: FileId, at: PerAxis<i64>) -> f64 {
        let file = &self.0[file.index()];
        let index = Axis::ALL
            .iter()
            .fold(0, |n, &axis| n * file.extent[axis] + at[axis]);
        file.values[index as usize]
    }
}
