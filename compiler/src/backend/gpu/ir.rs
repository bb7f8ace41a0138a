//! The words of LLVM IR that GPU kernels are written in: types, operands, and the module that collects kernels.

use super::feature::Feature;
use crate::scheme::Precision;
use std::collections::BTreeSet;
use std::fmt::{self, Write};

/// Where a pointer points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// Anywhere.
    Generic,
    /// The device's memory.
    Global,
    /// The block's own memory.
    Shared,
    /// Memory that no thread writes. Reads are fastest where threads read one place together.
    Constant,
    /// The shared memory of any block of the cluster.
    Cluster,
}

impl Space {
    fn number(self) -> u32 {
        match self {
            Space::Generic => 0,
            Space::Global => 1,
            Space::Shared => 3,
            Space::Constant => 4,
            Space::Cluster => 7,
        }
    }
}

/// The type of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// An integer with this number of bits.
    Int(u32),
    /// A number, or a vector of them where there are several lanes.
    Real {
        precision: Precision,
        lanes: u32,
    },
    Pointer(Space),
}

impl Type {
    pub const I1: Type = Type::Int(1);
    pub const I32: Type = Type::Int(32);
    pub const I64: Type = Type::Int(64);
    pub const GLOBAL: Type = Type::Pointer(Space::Global);

    /// One number.
    pub fn scalar(precision: Precision) -> Type {
        Type::vector(precision, 1)
    }

    /// A vector of numbers.
    pub fn vector(precision: Precision, lanes: u32) -> Type {
        Type::Real { precision, lanes }
    }

    /// The numbers of a vector; 1 for anything else.
    pub fn lanes(self) -> u32 {
        match self {
            Type::Real { lanes, .. } => lanes,
            _ => 1,
        }
    }

    /// The type of a lane of a vector.
    pub fn element(self) -> Type {
        match self {
            Type::Real { precision, .. } => Type::scalar(precision),
            other => other,
        }
    }

    /// The bytes that it takes in memory.
    pub fn bytes(self) -> u32 {
        match self {
            Type::Int(bits) => bits.div_ceil(8),
            Type::Real { precision, lanes } => precision.bytes() as u32 * lanes,
            Type::Pointer(_) => 8,
        }
    }

    /// How LLVM names it in the names of intrinsics: `v4f32`.
    pub fn suffix(self) -> String {
        match self {
            Type::Int(bits) => format!("i{bits}"),
            Type::Real { precision, lanes } => match lanes {
                1 => precision.to_string(),
                n => format!("v{n}{precision}"),
            },
            Type::Pointer(space) => format!("p{}", space.number()),
        }
    }

    /// The type of a comparison of two such values.
    pub(super) fn truth(self) -> String {
        match self.lanes() {
            1 => "i1".to_owned(),
            n => format!("<{n} x i1>"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Int(bits) => write!(f, "i{bits}"),
            Type::Real { precision, lanes } => {
                let name = match precision {
                    Precision::F32 => "float",
                    Precision::F64 => "double",
                };
                match lanes {
                    1 => f.write_str(name),
                    n => write!(f, "<{n} x {name}>"),
                }
            }
            Type::Pointer(Space::Generic) => f.write_str("ptr"),
            Type::Pointer(space) => write!(f, "ptr addrspace({})", space.number()),
        }
    }
}

/// A value that instructions can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    pub ty: Type,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The result of an instruction.
    Local(u32),
    /// A parameter of the kernel.
    Param(u32),
    Int(i64),
    /// The bits of a double, in all lanes.
    Real(u64),
    /// Memory that the module names.
    Shared(u32),
    Constants,
    Table,
    Poison,
}

impl Operand {
    /// An integer.
    pub fn int(ty: Type, value: i64) -> Operand {
        Operand {
            ty,
            kind: Kind::Int(value),
        }
    }

    /// An integer of 32 bits.
    pub fn i32(value: i32) -> Operand {
        Operand::int(Type::I32, i64::from(value))
    }

    /// An integer of 64 bits.
    pub fn i64(value: i64) -> Operand {
        Operand::int(Type::I64, value)
    }

    /// A number in all lanes, from the bits of a double that is exact in the type's precision.
    pub fn real(ty: Type, bits: u64) -> Operand {
        Operand {
            ty,
            kind: Kind::Real(bits),
        }
    }

    /// An arbitrary value, for values that are never read.
    pub fn poison(ty: Type) -> Operand {
        Operand {
            ty,
            kind: Kind::Poison,
        }
    }

    /// The number of a constant integer.
    pub fn as_int(self) -> Option<i64> {
        match self.kind {
            Kind::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The value of a constant number.
    pub fn as_real(self) -> Option<f64> {
        match self.kind {
            Kind::Real(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// Type and value, as instructions name their first operand.
    pub fn typed(self) -> String {
        format!("{} {self}", self.ty)
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Local(n) => write!(f, "%v{n}"),
            Kind::Param(n) => write!(f, "%p{n}"),
            Kind::Int(value) => match self.ty {
                Type::I1 => write!(f, "{}", value != 0),
                _ => write!(f, "{value}"),
            },
            Kind::Real(bits) => {
                // LLVM writes numbers of all formats with the bits of a double, and takes a float only if no bit is
                // lost, which a NaN's payload could be.
                let value = f64::from_bits(bits);
                let bits = match (value.is_nan(), self.ty) {
                    (true, _) => f64::NAN.to_bits(),
                    (false, Type::Real { precision, .. }) => precision.round(value).to_bits(),
                    (false, _) => bits,
                };
                match self.ty.lanes() {
                    1 => write!(f, "0x{bits:016X}"),
                    _ => write!(f, "splat ({} 0x{bits:016X})", self.ty.element()),
                }
            }
            Kind::Shared(n) => write!(f, "@torre_shared_{n}"),
            Kind::Constants => f.write_str("@torre_constants"),
            Kind::Table => f.write_str("@torre_table"),
            Kind::Poison => f.write_str("poison"),
        }
    }
}

/// How a kernel is started, as far as the assembler has to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Threads of a block; the kernel may be started with this number only.
    pub threads: [u32; 3],
    /// Blocks that a multiprocessor should hold at least, which bounds the registers; 0: as the assembler likes.
    pub blocks: u32,
    /// Registers of a thread; 0: as the assembler likes.
    pub registers: u32,
    /// Blocks of a cluster along x; 0: none.
    pub cluster: u32,
}

/// Kernels for one GPU, as LLVM IR.
#[derive(Clone, Debug, Default)]
pub struct Module {
    shared: Vec<String>,
    /// Of constant memory.
    constants: Vec<i32>,
    /// Of memory that is read only, at a different place by each thread.
    table: Vec<i32>,
    /// Bytes of the memory that `shared` declares, without memory that is given when a kernel starts.
    shared_bytes: u32,
    kernels: String,
    declarations: BTreeSet<String>,
    features: BTreeSet<Feature>,
    /// Lines of metadata; `!0` is the empty node.
    metadata: Vec<String>,
}

impl Module {
    pub fn new() -> Module {
        Module {
            metadata: vec!["!{}".to_owned()],
            ..Module::default()
        }
    }

    /// Memory that the threads of a block share, without initial values: `count` values of a type.
    pub fn shared(&mut self, ty: Type, count: u32, align: u32) -> Operand {
        self.shared_bytes = self.shared_bytes.next_multiple_of(align.max(1)) + ty.bytes() * count;
        self.shared_memory(&format!(
            "internal addrspace(3) global [{count} x {ty}] undef, align {align}"
        ))
    }

    /// The block's shared memory whose size is given when a kernel starts; there is one such piece per kernel.
    pub fn shared_on_demand(&mut self, align: u32) -> Operand {
        self.shared_memory(&format!(
            "external addrspace(3) global [0 x i8], align {align}"
        ))
    }

    fn shared_memory(&mut self, text: &str) -> Operand {
        let kind = Kind::Shared(self.shared.len() as u32);
        let ty = Type::Pointer(Space::Shared);
        let operand = Operand { ty, kind };
        self.shared.push(format!("{operand} = {text}"));
        operand
    }

    /// Fills the module's constant memory, and gives its beginning: 64 KiB at most, which the assembler checks.
    pub fn constants(&mut self, words: &[i32]) -> Operand {
        self.constants = words.to_vec();
        Operand {
            ty: Type::Pointer(Space::Constant),
            kind: Kind::Constants,
        }
    }

    /// Fills the module's table, and gives its beginning. Threads read a table at different places, unlike constants.
    pub fn table(&mut self, words: &[i32]) -> Operand {
        self.table = words.to_vec();
        Operand {
            ty: Type::GLOBAL,
            kind: Kind::Table,
        }
    }

    /// Bytes of shared memory that the kernels name.
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// The features that the kernels need and not every GPU has.
    pub fn features(&self) -> impl Iterator<Item = Feature> + '_ {
        self.features.iter().copied()
    }

    pub(super) fn need(&mut self, feature: Feature) {
        self.features.insert(feature);
    }

    pub(super) fn declare(&mut self, declaration: String) {
        self.declarations.insert(declaration);
    }

    pub(super) fn push_kernel(&mut self, text: &str) {
        self.kernels.push_str(text);
    }

    /// The number of a new node of metadata; `text` is given its number.
    pub(super) fn metadata(&mut self, text: impl FnOnce(usize) -> String) -> usize {
        let number = self.metadata.len();
        self.metadata.push(text(number));
        number
    }

    /// The module as text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for shared in &self.shared {
            out.push_str(shared);
            out.push('\n');
        }
        let lists = [
            ("constants", Space::Constant, &self.constants),
            ("table", Space::Global, &self.table),
        ];
        for (name, space, words) in lists.into_iter().filter(|list| !list.2.is_empty()) {
            let (space, count) = (space.number(), words.len());
            let words: Vec<String> = words.iter().map(|w| format!("i32 {w}")).collect();
            let words = words.join(", ");
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "@torre_{name} = internal addrspace({space}) constant [{count} x i32] [{words}], align 8"
            );
        }
        out.push_str(&self.kernels);
        for declaration in &self.declarations {
            out.push_str(declaration);
            out.push('\n');
        }
        for (i, node) in self.metadata.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "!{i} = {node}");
        }
        out
    }
}
