//! An array of a layout.

use super::Rng;
use crate::layout::{ALIGNMENT, Layout};
use crate::real::Real;
use crate::scheme::Precision;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

/// The array of a layout, aligned as kernels expect.
#[derive(Clone, Debug)]
pub struct Memory {
    lines: Vec<Line>,
    precision: Precision,
    elements: usize,
}

impl Memory {
    /// Zeros.
    pub fn new(layout: &Layout) -> Memory {
        let precision = match layout.element_bytes {
            4 => Precision::F32,
            _ => Precision::F64,
        };
        Memory {
            lines: vec![Line([0; ALIGNMENT]); (layout.bytes() as usize).div_ceil(ALIGNMENT)],
            precision,
            elements: layout.elements as usize,
        }
    }

    /// Random values. One in `special` is special: a zero of either sign, a subnormal, huge, infinite or NaN; 0: none.
    pub fn fill(&mut self, rng: &mut Rng, special: u64) {
        for i in 0..self.elements {
            let value = if special != 0 && rng.below(special) == 0 {
                let tiny = match self.precision {
                    Precision::F32 => 1e-40,
                    Precision::F64 => 1e-310,
                };
                let huge = match self.precision {
                    Precision::F32 => 1e38,
                    Precision::F64 => 1e307,
                };
                let special = [0.0, -0.0, tiny, -tiny, huge, f64::INFINITY, f64::NAN];
                *rng.pick(&special)
            } else {
                rng.float() * 2.0 - 1.0
            };
            self.set(i, value);
        }
    }

    /// Sets an element, rounded to the precision.
    pub fn set(&mut self, element: usize, value: f64) {
        let bytes = self.precision.bytes();
        let at = element * bytes;
        let target = &mut self.lines[at / ALIGNMENT].0[at % ALIGNMENT..][..bytes];
        match self.precision {
            Precision::F32 => target.copy_from_slice(&(value as f32).to_ne_bytes()),
            Precision::F64 => target.copy_from_slice(&value.to_ne_bytes()),
        }
    }

    /// The bits of an element; all NaNs give the same ones.
    pub fn bits(&self, element: usize) -> u64 {
        let bytes = self.precision.bytes();
        let at = element * bytes;
        let source = &self.lines[at / ALIGNMENT].0[at % ALIGNMENT..][..bytes];
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(source);
        match self.precision {
            Precision::F32 => f32::from_bits(u64::from_le_bytes(word) as u32).bits(),
            Precision::F64 => f64::from_bits(u64::from_le_bytes(word)).bits(),
        }
    }

    /// The first element in which two memories differ.
    pub fn difference(&self, other: &Memory) -> Option<usize> {
        (0..self.elements).find(|&i| self.bits(i) != other.bits(i))
    }

    /// All bytes, lines of [`ALIGNMENT`] bytes one after the other.
    pub fn bytes(&self) -> Vec<u8> {
        self.lines.iter().flat_map(|line| line.0).collect()
    }

    /// Takes all bytes, as [`Memory::bytes`] gave them.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        for (line, bytes) in self.lines.iter_mut().zip(bytes.as_chunks().0) {
            line.0 = *bytes;
        }
    }

    /// The address of an element, for kernels.
    pub fn pointer(&mut self, element: i64) -> *mut u8 {
        let offset = element * self.precision.bytes() as i64;
        self.lines
            .as_mut_ptr()
            .cast::<u8>()
            .wrapping_offset(offset as isize)
    }
}
