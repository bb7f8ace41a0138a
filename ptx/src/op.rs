//! Decoded instructions: operations and their registers.
//!
//! Registers, constants and special registers are rows ("slots") of one value for each lane of a warp. A value is kept
//! as the bits of its type, extended by zeros to 64 bits; predicates are 0 or 1.

/// A row of values, one for each lane.
pub(crate) type Slot = u32;

/// No slot: an instruction without guard, result or operand there.
pub(crate) const NONE: Slot = u32::MAX;

/// The type of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Pred,
    B8,
    B16,
    B32,
    B64,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F32,
    F64,
}

impl Ty {
    pub(crate) fn parse(word: &str) -> Option<Ty> {
        Some(match word {
            "pred" => Ty::Pred,
            "b8" => Ty::B8,
            "b16" => Ty::B16,
            "b32" => Ty::B32,
            "b64" => Ty::B64,
            "u8" => Ty::U8,
            "u16" => Ty::U16,
            "u32" => Ty::U32,
            "u64" => Ty::U64,
            "s8" => Ty::S8,
            "s16" => Ty::S16,
            "s32" => Ty::S32,
            "s64" => Ty::S64,
            "f32" => Ty::F32,
            "f64" => Ty::F64,
            _ => return None,
        })
    }

    pub(crate) fn bits(self) -> u32 {
        match self {
            Ty::Pred => 1,
            Ty::B8 | Ty::U8 | Ty::S8 => 8,
            Ty::B16 | Ty::U16 | Ty::S16 => 16,
            Ty::B32 | Ty::U32 | Ty::S32 | Ty::F32 => 32,
            Ty::B64 | Ty::U64 | Ty::S64 | Ty::F64 => 64,
        }
    }

    pub(crate) fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }

    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64)
    }

    pub(crate) fn signedness(self) -> Signedness {
        if self.is_signed() {
            Signedness::Signed
        } else {
            Signedness::Unsigned
        }
    }

    pub(crate) fn is_float(self) -> bool {
        matches!(self, Ty::F32 | Ty::F64)
    }

    /// The ones of a value of this type.
    pub(crate) fn mask(self) -> u64 {
        mask(self.bits())
    }
}

/// How the bits of an integer are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signedness {
    Unsigned,
    Signed,
}

/// The lowest bits set.
pub(crate) fn mask(bits: u32) -> u64 {
    if bits >= 64 {
        u64::MAX
    } else {
        (1 << bits) - 1
    }
}

/// A value of `bits` bits extended by its sign.
pub(crate) fn sign_extend(value: u64, bits: u32) -> i64 {
    let shift = 64 - bits.clamp(1, 64);
    ((value << shift) as i64) >> shift
}

/// Operations on one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Un {
    Neg,
    Abs,
    Not,
    Clz,
    Popc,
    Brev,
    Sqrt,
    Rcp,
    IsFinite,
    IsInfinite,
    IsNumber,
    IsNan,
    IsNormal,
    IsSubnormal,
}

/// Operations on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bin {
    Add,
    Sub,
    Mul,
    MulHi,
    MulWide,
    Div,
    Rem,
    Min,
    Max,
    MinNan,
    MaxNan,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    CopySign,
}

/// Operations on three operands; [`Tri::Insert`] takes four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tri {
    Mad,
    MadHi,
    MadWide,
    Fma,
    Extract,
    Insert,
    Permute,
    ShiftLeftWrap,
    ShiftRightWrap,
    ShiftLeftClamp,
    ShiftRightClamp,
    Logic,
    Select,
    SelectSign,
}

/// Comparisons; comparisons in unsigned order on integers follow from the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Num,
    Nan,
}

/// The result of a comparison with a NaN: false (`lt`), or true (`ltu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatOrder {
    Ordered,
    Unordered,
}

/// How a comparison is combined with another predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Join {
    None,
    And,
    Or,
    Xor,
}

/// How a predicate is read: as it is, or negated by `!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polarity {
    Plain,
    Negated,
}

impl Polarity {
    pub(crate) fn is_negated(self) -> bool {
        self == Polarity::Negated
    }
}

/// The result of a conversion for values out of range: with `.sat` their nearest neighbour in it, 0 to 1 for floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Saturation {
    Off,
    On,
}

/// Rounding: to nearest even, to zero, down, up; to floats or, in the second four, to integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    Exact,
    Near,
    Zero,
    Down,
    Up,
    NearInt,
    ZeroInt,
    DownInt,
    UpInt,
}

/// Where an address points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    /// The shared memory of any block of the cluster.
    Cluster,
    Local,
    Const,
    Param,
}

/// The order of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
}

impl Order {
    pub(crate) fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel)
    }

    pub(crate) fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel)
    }

    pub(crate) fn strength(self) -> Strength {
        if self == Order::Weak {
            Strength::Weak
        } else {
            Strength::Strong
        }
    }
}

/// Whether accesses are ordinary ones, or relaxed, acquiring, releasing, volatile or atomic: strong ones never race
/// with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strength {
    Weak,
    Strong,
}

/// The effect of an access on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    Read,
    Write,
}

impl AccessKind {
    pub(crate) fn verb(self) -> &'static str {
        match self {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
        }
    }
}

/// Among which threads an access orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Block,
    Device,
}

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) space: Space,
    pub(crate) ty: Ty,
    pub(crate) order: Order,
    pub(crate) scope: Scope,
    /// Through the read-only path.
    pub(crate) constant: bool,
    /// Elements, the slots of which are in the list at `list`.
    pub(crate) count: u8,
    pub(crate) list: u32,
    /// Bits of the registers, which may be more than the type's.
    pub(crate) width: u8,
}

/// Operations on memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rmw {
    Add,
    Min,
    Max,
    Inc,
    Dec,
    Exchange,
    CompareExchange,
    And,
    Or,
    Xor,
}

/// Which lane a shuffle reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

/// The result of a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// Operations among the lanes of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpOp {
    Barrier,
    Shuffle(Shuffle),
    Vote(Vote, Polarity),
    Reduce(Rmw, Ty),
    Elect,
}

/// Whether all lanes of a warp execute a barrier together, as `.aligned` promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpAlignment {
    Unaligned,
    Aligned,
}

/// The mode of threads at a barrier: they arrive and wait for the others, or arrive only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierMode {
    Sync,
    Arrive,
}

/// Among which threads an arrival at a barrier object of the cluster orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArriveScope {
    Cta,
    Cluster,
}

/// Operations on barrier objects in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MBarrier {
    Init,
    Invalidate,
    Arrive,
    /// At any block of the cluster; `expects`: announces bytes, and arrives once.
    ArriveAnywhere {
        scope: ArriveScope,
        expects: bool,
    },
    ArriveExpect,
    Expect,
    ArriveDrop,
    /// Waits for the phase of a token, or of a parity.
    Test {
        parity: bool,
    },
}

/// The kinds of asynchronous copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copy {
    /// `cp.async` with this number of bytes; operand 2, if any, says how many of them are read.
    Element(u8),
    /// `cp.async.bulk` to shared memory; a barrier object counts its bytes.
    BulkLoad,
    /// `cp.async.bulk` to global memory, in a group of the thread.
    BulkStore,
}

impl Copy {
    /// Its places and its length are multiples of these bytes.
    pub(crate) fn unit(self) -> usize {
        match self {
            Copy::Element(bytes) => usize::from(bytes),
            Copy::BulkLoad | Copy::BulkStore => 16,
        }
    }

    pub(crate) fn kind(self) -> CopyKind {
        match self {
            Copy::Element(_) => CopyKind::Element,
            Copy::BulkLoad | Copy::BulkStore => CopyKind::Bulk,
        }
    }
}

/// `cp.async`, which sees memory as its thread does, or `cp.async.bulk`, which sees it through the asynchronous proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyKind {
    Element,
    Bulk,
}

/// The copies for which a thread waits that has issued copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyWait {
    /// `cp.async.wait_all`: the open group is closed, and all arrive.
    All,
    /// `cp.async.wait_group`
    Group,
    /// `cp.async.bulk.wait_group`
    BulkGroup,
    /// `cp.async.bulk.wait_group.read`: the sources have been read.
    BulkGroupRead,
}

/// The operation of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Nop,
    Move,
    /// Joins the registers of a list into one, or splits one into them.
    Pack {
        bits: u8,
        count: u8,
        list: u32,
    },
    Unpack {
        bits: u8,
        count: u8,
        list: u32,
    },
    Un(Un, Ty),
    Bin(Bin, Ty),
    Tri(Tri, Ty),
    /// The result fills a register of `width` bits.
    Convert {
        to: Ty,
        from: Ty,
        round: Round,
        saturation: Saturation,
        width: u8,
    },
    /// Predicates `dst` and `dst2`; with `join`, operand 2 is the other predicate, read with `polarity`.
    Compare {
        cmp: Cmp,
        order: FloatOrder,
        ty: Ty,
        join: Join,
        polarity: Polarity,
    },
    /// All ones or 1.0 of a type where the comparison holds.
    Set {
        cmp: Cmp,
        order: FloatOrder,
        ty: Ty,
        to: Ty,
    },
    Clock,
    ActiveMask,
    Load(Access),
    Store(Access),
    /// Operand 0 is the address, 2 that of a barrier object which counts the bytes.
    StoreAsync(Access),
    /// Operand 0 is the address, 1 and 2 the values.
    Atomic(Rmw, Access),
    Fence(Scope),
    FenceProxy,
    Branch(u32),
    /// A jump through a table of `count` labels.
    BranchIndex {
        list: u32,
        count: u32,
    },
    Exit,
    Trap,
    /// Operand 0 is the number, 1 the count of threads if there is one.
    Barrier {
        alignment: WarpAlignment,
        mode: BarrierMode,
    },
    Warp(WarpOp),
    /// All threads of a cluster arrive, released or relaxed, or wait until all have.
    ClusterArrive {
        alignment: WarpAlignment,
        order: Order,
    },
    ClusterWait {
        alignment: WarpAlignment,
    },
    /// The address of operand 0 in the block of rank operand 1.
    MapRank,
    /// Operand 0 is the address, 1 a count, token or parity.
    MBarrier(MBarrier),
    /// Operand 0 is the destination, 1 the source, 2 the size, 3 the barrier object.
    Copy(Copy),
    /// The copies of the thread so far arrive, at some time, at the barrier object that operand 0 names, and so does
    /// the thread.
    CopiesArrive,
    /// Ends the current group of copies.
    Commit(CopyKind),
    /// Waits until at most `imm` groups are under way.
    Wait(CopyWait),
    Sleep,
    SetMaxRegisters,
}

/// An instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inst {
    pub(crate) op: Op,
    pub(crate) dst: Slot,
    pub(crate) dst2: Slot,
    pub(crate) src: [Slot; 4],
    /// Displacements of the addresses, or a number.
    pub(crate) imm: [i64; 3],
    /// The predicate that guards, and how it is read.
    pub(crate) guard: Slot,
    pub(crate) polarity: Polarity,
    /// It has registers of which lanes may have been left without a value.
    pub(crate) tracked: bool,
    pub(crate) line: u32,
    /// The index of the opcode's text.
    pub(crate) name: u16,
}
