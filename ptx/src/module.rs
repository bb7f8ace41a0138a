//! A parsed text: its variables and its kernels.

use std::sync::Arc;

use crate::error::{Error, line_of};
use crate::op::{Inst, Slot};

/// A parsed text of PTX.
#[derive(Clone, Debug)]
pub struct Module {
    pub(crate) entries: Vec<Entry>,
}

impl Module {
    /// Parses a text; the first statement that is wrong or not interpreted here is the error.
    pub fn parse(source: &str) -> Result<Module, Error> {
        crate::parse::module(source).map_err(|error| error.with_text(source))
    }

    /// The kernel of this name.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// All kernels, in the order of the text.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// A variable of a module in global or constant memory.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// As far as it has values, its bytes; the rest is zero.
    pub(crate) bytes: Vec<u8>,
    pub(crate) constant: bool,
}

/// A parameter of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// The contents of the row of a slot when a warp starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A register: nothing yet.
    Register,
    /// Registers that are written before they are read, one after the other.
    Shared,
    Const(u64),
    Special(Special),
    /// The address of a variable of the module.
    Variable(u32),
    /// The address of the memory whose size the launch gives.
    DynamicShared,
    /// Written by instructions whose result is dropped.
    Sink,
}

/// Special registers that stay the same for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(u8),
    Threads(u8),
    Block(u8),
    Blocks(u8),
    Lane,
    Warp,
    Warps,
    Multiprocessor,
    Multiprocessors,
    LaneMask(std::cmp::Ordering, bool),
    DynamicShared,
    /// The block's number in its cluster, along an axis or in all, and the number of blocks.
    Rank,
    Ranks,
    /// The cluster's number along the first axis.
    Cluster,
    Clusters,
}

/// A kernel, decoded.
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) name: String,
    pub(crate) source: Arc<str>,
    pub(crate) variables: Arc<Vec<Variable>>,
    pub(crate) params: Vec<Parameter>,
    pub(crate) code: Vec<Inst>,
    /// Slots of vector operands and targets of tables.
    pub(crate) lists: Vec<u32>,
    pub(crate) slots: Vec<Content>,
    /// The contents of rows that are the same in all warps: rows of slots from [`crate::rows::FIXED`] on.
    pub(crate) fixed: Vec<Content>,
    /// Names of the slots that are registers.
    pub(crate) slot_names: Vec<String>,
    /// Opcodes, by the number that instructions name.
    pub(crate) opcodes: Vec<String>,
    pub(crate) static_shared: u32,
    pub(crate) shared_align: u32,
    pub(crate) local_bytes: u32,
    pub(crate) max_threads: Option<u32>,
    pub(crate) required_threads: Option<[u32; 3]>,
    /// Blocks of a cluster.
    pub(crate) cluster: [u32; 3],
}

impl Content {
    /// Whether a row with this is the same in all warps of a launch.
    pub(crate) fn is_fixed(self) -> bool {
        match self {
            Content::Register | Content::Shared | Content::Sink => false,
            Content::Const(_) | Content::Variable(_) | Content::DynamicShared => true,
            Content::Special(special) => !matches!(
                special,
                Special::Thread(_)
                    | Special::Block(_)
                    | Special::Warp
                    | Special::Multiprocessor
                    | Special::Rank
                    | Special::Cluster
            ),
        }
    }
}

impl Entry {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes of shared memory that the kernel declares itself.
    pub fn static_shared(&self) -> u32 {
        self.static_shared
    }

    /// The number of instructions in the kernel's text.
    pub fn instructions(&self) -> usize {
        self.code.len()
    }

    /// The most threads per block that the kernel declares.
    pub fn max_threads(&self) -> Option<u32> {
        self.max_threads
            .or(self.required_threads.map(|size| size.iter().product()))
    }

    pub(crate) fn line_text(&self, line: u32) -> String {
        line_of(&self.source, line)
    }

    pub(crate) fn slot_name(&self, slot: Slot) -> &str {
        self.slot_names
            .get(slot as usize)
            .map_or("", String::as_str)
    }
}
