//! Files that a run reads and writes, independent of the compiler.
//!
//! A field reaches a file through [`Rows`]: a shape and a way to copy a stretch of one row, so a volume that lies
//! padded, bricked or on a device is streamed and never copied as a whole. Everything is written under a temporary name
//! and renamed when complete ([`atomic`]), so a killed run leaves no half-written file under a final name; and a folder
//! of results belongs to one run at a time ([`claim`]). An error is a [`FileError`]: the path, the attempt, and the
//! facts.
//!
//! | module | files |
//! |---|---|
//! | [`npy`] | `.npy`, read and written |
//! | [`csv`], [`probes`] | tables of probes over time |
//! | [`zarr`] | Zarr v3 stores, written; they open in xarray |
//! | [`vtk`] | VTK ImageData, written; it opens in ParaView |
//! | [`picture`] | PNG of slices, lines and probes |
//! | [`checkpoint`] | the state of a run, written and read back |

pub mod array;
pub mod atomic;
pub mod checkpoint;
pub(crate) mod checksum;
pub mod claim;
pub mod csv;
pub mod error;
pub mod npy;
pub mod open;
pub mod picture;
pub mod probes;
pub mod vtk;
pub mod zarr;

pub use array::{AnyRows, Element, ElementType, Rows, RowsFrom, Slice, View};
pub use error::{Attempt, Cause, FileError};
