//! The interface of kernels: parameters, words of tasks, tables. Each is declared once. Kernels find them by the names
//! that are declared here; code that starts kernels fills the same structures.

mod patch;
mod points;
mod queue;
mod service;
mod task;
mod tower;
mod volume;

pub use patch::{PatchEntry, Patches, patch_tables};
pub use points::{PointEntry, PointTable, point_table};
pub use queue::{QUEUE_BYTES, QueueHeader, QueueLine, queues};
pub use service::{
    AddSources, Amend, CellGhost, CopyRows, CorrectRows, CorrectedRow, Gather, GatherPlane,
    GhostsOf, Kept, RowCopy, RowGhost, SourceCell, Stage,
};
pub use task::{PROGRESS_BYTES, TaskWord, boundary_words, task_words};
pub use tower::{Launch, ParamsOf, TimeBlock, TowerBuffers, TowerParams, Volumes, ZBlockParams};
pub use volume::{CorrectionParams, CorrectionTable, VolumeBox, VolumeParams};

use super::ir::Type;

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A place in the device's memory, in bytes.
    Place(u64),
    Word(i32),
    Long(i64),
}

/// How a kind of parameter is declared in a structure, in a kernel, and as an argument.
trait Parameter {
    const TYPE: Type;
    fn argument(&self) -> Argument;
}

/// A place in the device's memory.
impl Parameter for u64 {
    const TYPE: Type = Type::GLOBAL;
    fn argument(&self) -> Argument {
        Argument::Place(*self)
    }
}

impl Parameter for i32 {
    const TYPE: Type = Type::I32;
    fn argument(&self) -> Argument {
        Argument::Word(*self)
    }
}

impl Parameter for i64 {
    const TYPE: Type = Type::I64;
    fn argument(&self) -> Argument {
        Argument::Long(*self)
    }
}

/// Declares the parameters of a kernel: a structure with a field for each, its types, and a constant with the number of
/// each.
macro_rules! parameters {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $( $(#[$field_doc:meta])* $number:ident => $field:ident: $ty:ty, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name {
            $( $(#[$field_doc])* pub $field: $ty, )*
        }

        impl $name {
            /// The types of the parameters.
            pub const TYPES: &'static [$crate::backend::gpu::Type] =
                &[$( <$ty as $crate::backend::gpu::abi::Parameter>::TYPE, )*];

            /// The arguments of a kernel.
            pub fn arguments(&self) -> Vec<$crate::backend::gpu::abi::Argument> {
                use $crate::backend::gpu::abi::Parameter;
                vec![$( self.$field.argument(), )*]
            }

            $crate::backend::gpu::abi::numbers!(0usize; $($number)*);
        }
    };
}

/// Constants 0, 1, 2 ...: the numbers of parameters.
macro_rules! numbers {
    ($n:expr; $first:ident $($rest:ident)*) => {
        pub const $first: usize = $n;
        $crate::backend::gpu::abi::numbers!($n + 1usize; $($rest)*);
    };
    ($n:expr;) => {};
}

use {numbers, parameters};
