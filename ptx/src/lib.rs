//! An interpreter of PTX, for tests of generated kernels on machines without a GPU.
//!
//! ```text
//! text --lex--> tokens --parse, decode--> Module {Entry}        errors with their line
//! (Device, Entry, grid, block, arguments) --launch--> Counts    or the first Fault
//! ```
//!
//! It runs the output of LLVM's NVPTX back end, and the instructions for barriers and asynchronous copies that kernels
//! of compute capability 9.0 use. Floats have the bits of IEEE 754; instructions whose bits would depend on the
//! assembler (`.ftz`, `.approx`, unrounded `add.f32`) are refused when the text is parsed. Faults that a device lets
//! pass are found: accesses out of bounds or misaligned, reads of memory that was never written, races in shared and
//! global memory, data read while an asynchronous copy may still bring it, barriers that not all can reach, deadlocks.
//! Blocks of a cluster run side by side; barrier objects with the scope of a block order only the shared memory between
//! two blocks.
//!
//! The functions that take most of the time are compiled a second time for processors with vectors of 32 bytes; others
//! do the same lane by lane.
//!
//! ```
//! use torre_ptx::{Device, Module, Options};
//!
//! let module = Module::parse(
//!     ".version 8.6 .target sm_90a .address_size 64
//!      .visible .entry twice(.param .u64 a) {
//!          .reg .b32 %r<4>; .reg .b64 %rd<4>;
//!          ld.param.b64 %rd1, [a];
//!          mov.u32 %r1, %tid.x;
//!          mul.wide.u32 %rd2, %r1, 4;
//!          add.s64 %rd3, %rd1, %rd2;
//!          ld.global.b32 %r2, [%rd3];
//!          add.rn.f32 %r3, %r2, %r2;
//!          st.global.b32 [%rd3], %r3;
//!          ret;
//!      }",
//! )?;
//! let entry = module.entry("twice").ok_or("no kernel")?;
//! let mut device = Device::new();
//! let a = device.upload(&[1.0f32, 2.0]);
//! let counts = device.launch(entry, [1; 3], [2, 1, 1], 0, &[a.into()], &Options::default())?;
//! assert_eq!(device.download::<f32>(a), [2.0, 4.0]);
//! assert_eq!(counts.global_loads.bytes, 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod alu;
mod block;
mod body;
mod cells;
mod claim;
mod clock;
mod cluster;
mod convert;
mod copies;
mod counts;
mod crew;
mod decode;
mod decode_memory;
mod device;
mod error;
mod exec;
mod launch;
mod lex;
mod memory;
mod module;
mod object;
mod op;
mod operand;
mod order;
mod parse;
mod place;
mod poll;
mod race;
mod reads;
mod registers;
mod rows;
mod shadow;
mod sync;
mod together;
mod transfer;

pub use counts::{Counts, Executed, Traffic};
pub use device::{Device, Element};
pub use error::{Error, Fault, FaultKind};
pub use launch::{Options, Param};
pub use memory::Buffer;
pub use module::{Entry, Module};
