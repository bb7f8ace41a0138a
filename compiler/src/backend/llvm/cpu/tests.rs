//! Lines of more than 2^31 values, of which no test has memory: the emitted text, and the operations that make masks.

use super::part::distance;
use super::*;
use crate::kernel::{KernelSet, RowKernel, UpdateSet};
use crate::layout::Layout;
use crate::scheme::{Boundary, Precision};
use crate::testing::{bounded, maxwell_te};

type Behind = unsafe extern "C" fn(i64, i64) -> i32;

#[test]
fn distances_beyond_32_bits_keep_their_side() {
    let library = match Library::open() {
        Ok(library) => library,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let cpu = Cpu::host(library).expect("a CPU that is a target");
    let ir = format!(
        "declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
define i32 @behind(i64 %at, i64 %from) {{
{}  %lane = extractelement <4 x i32> %n.v, i64 3
  ret i32 %lane
}}
",
        distance(4, "%n", ["%at", "%from"], 9)
    );
    let object = compile(library, &ir, &cpu.target, &Options::CPU).expect("valid IR");
    let jit = Jit::load(library, &object).expect("code for this machine");
    // SAFETY: `@behind` has this signature.
    let behind = unsafe { jit.entry::<Behind>("behind") }.expect("the function");
    for from in [0, 5, 1 << 31, (1 << 33) + 7] {
        for far in [
            0,
            1,
            -1,
            8,
            9,
            10,
            1 << 31,
            1 << 32,
            1 << 40,
            -(1 << 31),
            -(1 << 32) + 3,
        ] {
            // SAFETY: it computes with numbers alone.
            let found = unsafe { behind(from + far, from) };
            assert_eq!(i64::from(found), far.clamp(-1, 9), "{far} from {from}");
        }
    }
}

#[test]
fn masks_of_long_lines_have_numbers_of_32_bits() {
    for boundary in [Boundary::Periodic, Boundary::Pec] {
        let scheme = maxwell_te(2, Precision::F32, [4, (1 << 31) + 69]);
        let scheme = bounded(scheme, [[boundary; 2]; 3]);
        let kernels = scheme.stage_ids().map(|stage| RowKernel {
            stage,
            phase: 0,
            updates: UpdateSet::all(scheme.stages[stage.index()].updates.len()),
            zones: Default::default(),
        });
        let set = KernelSet {
            layout: Layout::new(&scheme).expect("a size that can be addressed"),
            kernels: kernels.collect(),
            bands: Default::default(),
            ends: true,
        };
        for window in [false, true] {
            let shape = Shape {
                vector_bits: 512,
                window,
            };
            let text = emit(&scheme, &set, shape);
            let numbers = text.split("i32 ").skip(1).filter_map(|rest| {
                let end = rest.find(|c: char| c != '-' && !c.is_ascii_digit());
                let number = &rest[..end.unwrap_or(rest.len())];
                number.parse::<i64>().ok()
            });
            let numbers: Vec<i64> = numbers.collect();
            assert!(numbers.len() > 100, "no masks");
            let fits = |n: &&i64| i32::try_from(**n).is_err();
            assert_eq!(numbers.iter().find(fits), None, "{boundary:?}");
        }
    }
}
