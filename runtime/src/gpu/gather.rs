//! The start of the kernel that gathers the values of a plane.

use super::code::blocks;
use super::device::{Address, DeviceError, Threads};
use super::step_tables::PlanePlace;
use crate::simulation::Value;
use torre_compiler::backend::gpu::abi::{Argument, GatherPlane};
use torre_compiler::backend::gpu::service;
use torre_compiler::real::Real;

/// Values as they lie on a device.
pub(super) fn numbers<T: Value>(bytes: &[u8]) -> Vec<f64> {
    let mut values = vec![T::default(); bytes.len() / T::PRECISION.bytes()];
    T::decode(bytes, &mut values);
    values.into_iter().map(Real::to_f64).collect()
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
