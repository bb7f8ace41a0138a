//! Start values for calculations of many gigabytes: noise from a table, a row at a time, on all cores.

use std::sync::{Mutex, PoisonError};
use torre_compiler::lattice::{Axis, PerAxis, Region};
use torre_compiler::layout::RowId;
use torre_compiler::scheme::CoefId;
use torre_runtime::host::ghosts::Ghosts;
use torre_runtime::host::{Calculation, threads};
use torre_runtime::output::Element;
use torre_runtime::simulation::Value;

/// Values of the table; a prime, so that rows begin at all of its places.
const TABLE: usize = 8191;

/// A row of every group, and the table that it gets.
struct Row {
    id: RowId,
    extent: Region,
    table: usize,
}

/// Where the noise of a row begins.
fn start_of_row(x: i64, y: i64, number: usize) -> usize {
    (x as usize * 977 + y as usize * 3571 + number * 5003) % TABLE
}

/// Noise between two values, repeated such that a row can begin anywhere.
fn table_values<T: Value>(length: usize, [least, largest]: [f64; 2]) -> Vec<T> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let once: Vec<T> = (0..TABLE)
        .map(|_| <T as Element>::from_f64(least + (largest - least) * draw()))
        .collect();
    once.iter().copied().cycle().take(TABLE + length).collect()
}

/// The same as bytes.
fn table<T: Value>(length: usize, range: [f64; 2]) -> Vec<u8> {
    let values = table_values::<T>(length, range);
    let mut bytes = vec![0; values.len() * T::PRECISION.bytes()];
    T::encode(&values, &mut bytes);
    bytes
}

/// Gives all components values between -1/2 and 1/2, and all coefficients values between `coefs`, if there are any.
pub fn fill<T: Value>(calculation: &mut Calculation<'_, T>, coefs: Option<[f64; 2]>) {
    let scheme = calculation.scheme;
    let layout = calculation.layout.clone();
    let mut rows = Vec::new();
    for id in scheme.component_ids() {
        rows.extend(
            (0..u64::from(scheme.component(id).time_levels)).map(|version| Row {
                id: layout.row(id, version),
                extent: scheme.extent(id),
                table: 0,
            }),
        );
    }
    for (index, coef) in scheme.coefs.iter().enumerate().filter(|_| coefs.is_some()) {
        rows.push(Row {
            id: layout.coef_row(CoefId(index as u32)),
            extent: scheme.grid.extent(coef.position),
            table: 1,
        });
    }
    let length = layout.extent[Axis::INNER] as usize;
    let tables = [
        table::<T>(length, [-0.5, 0.5]),
        table::<T>(length, coefs.unwrap_or_default()),
    ];
    let bytes = layout.element_bytes;
    if Ghosts::new(scheme, &layout).has_any() {
        // Ghosts have to follow. That takes longer, and is for small grids.
        let noise = table_values::<T>(length, [-0.5, 0.5]);
        let restored = calculation.restore(0, |id, age, x, y, row| {
            let from = start_of_row(x, y, id.index() + 7 * usize::from(age));
            row.copy_from_slice(&noise[from..from + row.len()]);
            Ok::<(), std::convert::Infallible>(())
        });
        let Ok(()) = restored;
        return;
    }
    // From the first row of group (0, 0): rows of a plane follow each other up to the next plane.
    let start = layout.element(RowId(0), PerAxis([0, 0, 0]));
    let plane = layout.stride[Axis::OUTER] as usize * bytes;
    let array = &mut calculation.array_mut()[start as usize * bytes..];
    let planes = Mutex::new(array.chunks_mut(plane).enumerate());
    let run = threads::run(threads::available(), |_| {
        let next = || planes.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((x, plane)) = next() {
            for (number, row) in rows.iter().enumerate() {
                let [outer, middle, inner] = row.extent.0;
                if !outer.contains(x as i64) {
                    continue;
                }
                for y in middle.lo..middle.hi {
                    let first = layout.element(row.id, PerAxis([0, y, 0])) - start;
                    let first = first as usize * bytes;
                    let from = start_of_row(x as i64, y, number) * bytes;
                    let count = inner.hi as usize * bytes;
                    plane[first..first + count]
                        .copy_from_slice(&tables[row.table][from..from + count]);
                }
            }
        }
    });
    run.expect("as many threads as cores");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::GPU_CASES;
    use torre_compiler::scheme::Precision;
    use torre_compiler::statics::NoFiles;

    #[test]
    fn values_are_noise_and_pads_stay_zero() {
        let case = GPU_CASES.iter().find(|c| c.name == "media");
        let case = case.expect("the case exists");
        let cells = [5, 7, 19];
        let resolved = case.resolve(Precision::F32, &cells);
        let (resolved, _) = resolved.expect("the case resolves");
        let scheme = &resolved.scheme;
        let mut calculation: Calculation<'_, f32> =
            Calculation::new(scheme, &resolved.problem, &NoFiles, 1).expect("a small grid");
        fill(&mut calculation, Some([0.25, 0.5]));
        let mut filled = 0;
        let mut sum = 0.0;
        for id in scheme.component_ids() {
            let [outer, middle, _] = scheme.extent(id).0;
            for x in outer.lo..outer.hi {
                for y in middle.lo..middle.hi {
                    let row = calculation.row(id, x, y);
                    assert!(row.iter().all(|v| *v != 0.0 && v.abs() <= 0.5));
                    sum += row.iter().map(|v| f64::from(*v)).sum::<f64>();
                    filled += row.len();
                }
            }
        }
        assert!(sum.abs() < 0.05 * filled as f64, "{sum}");
        let mut values = vec![0f32; calculation.array().len() / 4];
        <f32 as Element>::decode(calculation.array(), &mut values);
        let coefs: i64 = scheme
            .coefs
            .iter()
            .map(|c| scheme.grid.extent(c.position).volume() as i64)
            .sum();
        assert_eq!(scheme.coefs.len(), 3);
        let nonzero = values.iter().filter(|v| **v != 0.0).count();
        assert_eq!(nonzero, filled + coefs as usize);
    }
}
