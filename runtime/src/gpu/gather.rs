//! The start of the kernel that gathers the values of a plane.

use super::code::blocks;
use super::device::{Address, DeviceError, Threads};
use super::step_tables::PlanePlace;
use crate::host::threads;
use crate::simulation::Value;
use torre_compiler::backend::gpu::abi::{Argument, GatherPlane};
use torre_compiler::backend::gpu::service;
use torre_compiler::real::Real;

/// Values that are converted together.
const PIECE: usize = 1024;
/// Bytes of records for which another thread is worth its start.
const LEAST_OF_A_THREAD: usize = 1 << 20;
/// Threads that convert records, at the most: memory bounds them.
const MOST_THREADS: usize = 8;

/// Values as they lie on a device.
pub(super) fn numbers<T: Value>(bytes: &[u8]) -> Vec<f64> {
    let size = T::PRECISION.bytes();
    let mut numbers = Vec::with_capacity(bytes.len() / size);
    let mut values = [T::default(); PIECE];
    for piece in bytes.chunks(PIECE * size) {
        let own = &mut values[..piece.len() / size];
        T::decode(piece, own);
        numbers.extend(own.iter().map(|value| Real::to_f64(*value)));
    }
    numbers
}

/// The values of several records, on several threads if there are many of them.
pub(super) fn numbers_of_each<T: Value>(records: &[&[u8]]) -> Vec<Vec<f64>> {
    let bytes: usize = records.iter().map(|record| record.len()).sum();
    let threads = (bytes / LEAST_OF_A_THREAD).clamp(1, threads::available().min(MOST_THREADS));
    let parts: Vec<&[&[u8]]> = records
        .chunks(records.len().div_ceil(threads).max(1))
        .collect();
    let share = |records: &&[&[u8]]| -> Vec<Vec<f64>> {
        records.iter().map(|record| numbers::<T>(record)).collect()
    };
    threads::map(&parts, share).into_iter().flatten().collect()
}

/// The most blocks along the second axis of a launch.
const MOST_BLOCKS: i64 = 65535;

/// The threads and the arguments of [`service::GATHER_PLANE`].
pub(super) struct PlaneGather {
    pub threads: Threads,
    pub arguments: Vec<Argument>,
}

impl PlaneGather {
    /// Gathers the values of a plane of an array to `out`, one after the other.
    pub fn new(
        place: &PlanePlace,
        array: Address,
        out: Address,
    ) -> Result<PlaneGather, DeviceError> {
        let word = |n: i64| i32::try_from(n).map_err(|_| DeviceError::TooLong);
        let arguments = GatherPlane {
            first: array.offset(place.first).0,
            between_rows: place.between_rows,
            between_values: place.between_values,
            rows: word(place.rows)?,
            values: word(place.values)?,
            out: out.0,
        }
        .arguments();
        let along = blocks(place.values.max(1) as u64, service::THREADS)?;
        let across = place.rows.clamp(1, MOST_BLOCKS) as u32;
        Ok(PlaneGather {
            threads: Threads {
                blocks: [along, across, 1],
                threads: [service::THREADS, 1, 1],
                shared: 0,
            },
            arguments,
        })
    }
}
