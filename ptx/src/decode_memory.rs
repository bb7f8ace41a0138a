//! Decoding of instructions on memory, barriers, warps and asynchronous copies.

use crate::decode::{Modifiers, Statement, slots};
use crate::lex::{Number, number};
use crate::op::{
    Access, ArriveScope, BarrierMode, Copy, CopyKind, CopyWait, MBarrier, Op, Order, Polarity, Rmw,
    Scope, Shuffle, Space, Ty, Vote, WarpAlignment, WarpOp,
};
use crate::operand::Operand;

const SPACES: [(&str, Space); 7] = [
    ("global", Space::Global),
    ("shared", Space::Shared),
    ("shared::cta", Space::Shared),
    ("shared::cluster", Space::Cluster),
    ("local", Space::Local),
    ("const", Space::Const),
    ("param", Space::Param),
];

const SCOPES: [(&str, Scope); 4] = [
    ("cta", Scope::Block),
    // As if other blocks of the cluster were far away.
    ("cluster", Scope::Block),
    ("gpu", Scope::Device),
    ("sys", Scope::Device),
];

const OPERATIONS: [(&str, Rmw); 10] = [
    ("add", Rmw::Add),
    ("min", Rmw::Min),
    ("max", Rmw::Max),
    ("inc", Rmw::Inc),
    ("dec", Rmw::Dec),
    ("exch", Rmw::Exchange),
    ("cas", Rmw::CompareExchange),
    ("and", Rmw::And),
    ("or", Rmw::Or),
    ("xor", Rmw::Xor),
];

/// Decodes an instruction that is not arithmetic.
pub(crate) fn instruction(statement: &mut Statement<'_, '_>, name: &str) -> Result<Op, String> {
    let mods = &mut statement.mods;
    let operands = statement.operands;
    match name {
        "ld" | "ldu" | "st" => load_store(statement, name),
        "atom" => atomic(statement, OldValue::Returned),
        "red" => atomic(statement, OldValue::Dropped),
        "fence" | "membar" => fence(mods),
        "bar" => barrier(statement, WarpAlignment::Aligned),
        "barrier" => barrier(statement, WarpAlignment::Unaligned),
        "mbarrier" => barrier_object(statement),
        "cp" => copy(statement),
        "prefetch" | "prefetchu" | "applypriority" | "discard" => {
            mods.drop_all(|_| true);
            let first = operands.first().ok_or("the address is missing")?;
            statement.body.address(first, Space::Global)?;
            Ok(Op::Nop)
        }
        "createpolicy" => {
            mods.drop_all(|_| true);
            let first = operands.first().ok_or("the result is missing")?;
            statement.inst.dst = statement.body.write(first, Ty::B64)?;
            statement.inst.src[0] = statement.body.constant(0);
            Ok(Op::Move)
        }
        "shfl" | "vote" | "redux" | "elect" => warp(statement, name),
        "activemask" => {
            statement.count(1, 1)?;
            let ty = statement.mods.ty()?;
            statement.write(0, ty)?;
            Ok(Op::ActiveMask)
        }
        "nanosleep" => {
            mods.ty()?;
            Ok(Op::Sleep)
        }
        "setmaxnreg" => {
            mods.drop_all(|part| ["inc", "dec", "sync", "aligned", "u32"].contains(&part));
            statement.count(1, 1)?;
            match whole(&operands[0])? {
                registers if (24..=256).contains(&registers) && registers % 8 == 0 => {
                    statement.inst.imm[0] = registers;
                    Ok(Op::SetMaxRegisters)
                }
                other => Err(format!(
                    "{other} registers: a multiple of 8 from 24 to 256 is needed"
                )),
            }
        }
        "griddepcontrol" => early_launch(statement),
        "mapa" => {
            if !mods.take("shared::cluster") {
                return Err("only `mapa.shared::cluster` is interpreted".to_string());
            }
            let ty = mods.ty()?;
            statement.count(3, 3)?;
            statement.write(0, ty)?;
            statement.read(0, 1, ty)?;
            statement.read(1, 2, Ty::U32)?;
            Ok(Op::MapRank)
        }
        "getctarank" | "clusterlaunchcontrol" => Err(format!("`{name}` is not interpreted")),
        other => Err(format!("instruction `{other}` is not interpreted")),
    }
}

/// Launches are interpreted one after the other, so nothing is left to wait for. Until it waits a kernel may read
/// memory that no launch changes, and no other.
fn early_launch(statement: &mut Statement<'_, '_>) -> Result<Op, String> {
    let mods = &mut statement.mods;
    let (waits, lets) = (mods.take("wait"), mods.take("launch_dependents"));
    statement.count(0, 0)?;
    if waits == lets {
        return Err("`griddepcontrol` waits or launches dependents".to_string());
    }
    let shared = |access: &Access| {
        matches!(access.space, Space::Global | Space::Generic) && !access.constant
    };
    let mut before = statement.body.entry.code.iter();
    let early = before.any(|inst| match inst.op {
        Op::Load(access) | Op::Store(access) | Op::StoreAsync(access) | Op::Atomic(_, access) => {
            shared(&access)
        }
        Op::Copy(_) => true,
        _ => false,
    });
    match waits && early {
        true => Err("memory is accessed before `griddepcontrol.wait`".to_string()),
        false => Ok(Op::Nop),
    }
}

fn whole(operand: &Operand<'_>) -> Result<i64, String> {
    if let Operand::Word(word) = operand
        && let Some(Number::Int(value)) = number(word)
    {
        return i64::try_from(value).map_err(|_| format!("{value} is too large"));
    }
    Err(format!("expected a whole number, found {operand:?}"))
}

/// Hints on caches do not change results.
fn is_hint(part: &str) -> bool {
    part.starts_with("L1::")
        || part.starts_with("L2::") && part != "L2::cache_hint"
        || ["ca", "cg", "cs", "lu", "cv", "wb", "wt"].contains(&part)
}

fn load_store(statement: &mut Statement<'_, '_>, name: &str) -> Result<Op, String> {
    let mods = &mut statement.mods;
    if name == "st" && mods.take("async") {
        return store_async(statement);
    }
    let load = name != "st";
    let policy = mods.take("L2::cache_hint");
    mods.drop_all(is_hint);
    let order = mods.one(&[
        ("weak", Order::Weak),
        // Volatile accesses are relaxed ones of the widest scope.
        ("volatile", Order::Relaxed),
        ("relaxed", Order::Relaxed),
        ("acquire", Order::Acquire),
        ("release", Order::Release),
    ]);
    let order = order.unwrap_or(Order::Weak);
    if order == Order::Acquire && !load || order == Order::Release && load {
        return Err("loads acquire, stores release".to_string());
    }
    let scope = mods.one(&SCOPES).unwrap_or(Scope::Device);
    let space = mods.one(&SPACES).unwrap_or(Space::Generic);
    let constant = mods.take("nc") || name == "ldu";
    let number = mods.one(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let ty = mods.ty()?;
    statement.count(2, 2 + usize::from(policy))?;
    let (values, address) = if load { (0, 1) } else { (1, 0) };
    statement.address(0, address, space)?;
    let values = match &statement.operands[values] {
        Operand::List(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    if values.len() != number {
        return Err(format!(
            "{number} registers are needed, not {}",
            values.len()
        ));
    }
    if !load && matches!(space, Space::Const | Space::Param) {
        return Err("constants and parameters cannot be written".to_string());
    }
    let slots = if load {
        slots(values, |value| statement.body.write_wide(value, ty))?
    } else {
        slots(values, |value| statement.body.read_wide(value, ty))?
    };
    let width = statement.body.width(slots[0]) as u8;
    let list = statement.body.list(&slots);
    let access = Access {
        space,
        ty,
        order,
        scope,
        constant,
        count: number as u8,
        list,
        width,
    };
    Ok(if load {
        Op::Load(access)
    } else {
        Op::Store(access)
    })
}

fn store_async(statement: &mut Statement<'_, '_>) -> Result<Op, String> {
    let mods = &mut statement.mods;
    mods.take("weak");
    if !mods.take("shared::cluster") || !mods.take("mbarrier::complete_tx::bytes") {
        return Err(
            "only stores that a barrier object of the cluster counts are interpreted".to_string(),
        );
    }
    let ty = mods.ty()?;
    statement.count(3, 3)?;
    statement.address(0, 0, Space::Cluster)?;
    statement.address(2, 2, Space::Cluster)?;
    statement.read(1, 1, ty)?;
    Ok(Op::StoreAsync(Access {
        space: Space::Cluster,
        ty,
        order: Order::Weak,
        scope: Scope::Block,
        constant: false,
        count: 1,
        list: 0,
        width: ty.bits() as u8,
    }))
}

/// The use of the value that an atomic operation finds: `atom` returns it, `red` does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OldValue {
    Returned,
    Dropped,
}

fn atomic(statement: &mut Statement<'_, '_>, old: OldValue) -> Result<Op, String> {
    let mods = &mut statement.mods;
    mods.drop_all(is_hint);
    let order = mods.one(&[
        ("relaxed", Order::Relaxed),
        ("acquire", Order::Acquire),
        ("release", Order::Release),
        ("acq_rel", Order::AcqRel),
    ]);
    let order = order.unwrap_or(Order::Relaxed);
    let scope = mods.one(&SCOPES).unwrap_or(Scope::Device);
    let space = mods.one(&SPACES).unwrap_or(Space::Generic);
    let rmw = mods
        .one(&OPERATIONS)
        .ok_or("the operation is missing or not interpreted")?;
    let ty = mods.ty()?;
    let fits = matches!(
        (rmw, ty),
        (Rmw::Add, Ty::F32 | Ty::F64)
            | (Rmw::Inc | Rmw::Dec, Ty::U32)
            | (
                Rmw::Add | Rmw::Min | Rmw::Max,
                Ty::U32 | Ty::S32 | Ty::U64 | Ty::S64
            )
            | (Rmw::Exchange | Rmw::CompareExchange, Ty::B32 | Ty::B64)
            | (Rmw::And | Rmw::Or | Rmw::Xor, Ty::B32 | Ty::B64)
    );
    if !fits {
        return Err("this operation does not suit the type".to_string());
    }
    let values = 1 + usize::from(rmw == Rmw::CompareExchange);
    let first = usize::from(old == OldValue::Returned);
    let operands = first + 1 + values;
    statement.count(operands, operands)?;
    if old == OldValue::Returned {
        statement.write(0, ty)?;
    }
    statement.address(0, first, space)?;
    for (index, operand) in statement.operands[first + 1..].iter().enumerate() {
        statement.inst.src[1 + index] = statement.body.read(operand, ty)?;
    }
    let (constant, list, width) = (false, 0, ty.bits() as u8);
    Ok(Op::Atomic(
        rmw,
        Access {
            space,
            ty,
            order,
            scope,
            constant,
            count: 1,
            list,
            width,
        },
    ))
}

fn fence(mods: &mut Modifiers) -> Result<Op, String> {
    if mods.take("proxy") {
        mods.drop_all(|part| {
            part == "async" || part == "alias" || part == "global" || part.starts_with("shared")
        });
        return Ok(Op::FenceProxy);
    }
    if mods.take("mbarrier_init") {
        mods.drop_all(|part| part == "release" || part == "cluster");
        return Ok(Op::Fence(Scope::Block));
    }
    mods.one(&[("acq_rel", ()), ("sc", ())]);
    let device = mods.take("gl");
    match mods.one(&SCOPES) {
        Some(scope) => Ok(Op::Fence(scope)),
        None if device => Ok(Op::Fence(Scope::Device)),
        None => Err("the fence has no scope".to_string()),
    }
}

/// A barrier whose alignment is `implied` where no modifier says it.
fn barrier(statement: &mut Statement<'_, '_>, implied: WarpAlignment) -> Result<Op, String> {
    let mods = &mut statement.mods;
    let alignment = |mods: &mut Modifiers, implied| match mods.take("aligned") {
        true => WarpAlignment::Aligned,
        false => implied,
    };
    if mods.take("cluster") {
        let arrives = mods.take("arrive");
        if !arrives && !mods.take("wait") {
            return Err("barriers of clusters arrive or wait".to_string());
        }
        let order = match mods.take("relaxed") {
            true => Order::Relaxed,
            false => Order::Release,
        };
        mods.drop_all(|part| part == "release" || part == "acquire");
        let alignment = alignment(mods, WarpAlignment::Unaligned);
        statement.count(0, 0)?;
        return Ok(match arrives {
            true => Op::ClusterArrive { alignment, order },
            false => Op::ClusterWait { alignment },
        });
    }
    if mods.take("warp") {
        mods.take("sync");
        statement.count(1, 1)?;
        statement.read(3, 0, Ty::B32)?;
        return Ok(Op::Warp(WarpOp::Barrier));
    }
    mods.take("cta");
    let mode = mods.one(&[("sync", BarrierMode::Sync), ("arrive", BarrierMode::Arrive)]);
    let mode = mode.ok_or("only barriers that synchronise or arrive are interpreted")?;
    let alignment = alignment(mods, implied);
    statement.count(1 + usize::from(mode == BarrierMode::Arrive), 2)?;
    statement.read(0, 0, Ty::U32)?;
    if let Some(threads) = statement.operands.get(1) {
        statement.inst.src[1] = statement.body.read(threads, Ty::U32)?;
    }
    Ok(Op::Barrier { alignment, mode })
}

fn barrier_object(statement: &mut Statement<'_, '_>) -> Result<Op, String> {
    let mods = &mut statement.mods;
    mods.drop_all(|part| ["shared", "shared::cta", "b64", "cta"].contains(&part));
    let anywhere = mods.take("shared::cluster");
    let scope = match mods.take("cluster") {
        true => ArriveScope::Cluster,
        false => ArriveScope::Cta,
    };
    let parity = mods.take("parity");
    let (op, result, values) = match mods.first() {
        Some("init") => (MBarrier::Init, false, 1..=1),
        Some("inval") => (MBarrier::Invalidate, false, 0..=0),
        Some("expect_tx") => {
            mods.take("relaxed");
            (MBarrier::Expect, false, 1..=1)
        }
        Some("arrive") if anywhere => {
            let expects = mods.take("expect_tx");
            let least = usize::from(expects);
            (MBarrier::ArriveAnywhere { scope, expects }, true, least..=1)
        }
        Some("arrive") if mods.take("expect_tx") => (MBarrier::ArriveExpect, true, 1..=1),
        Some("arrive") => (MBarrier::Arrive, true, 0..=1),
        Some("arrive_drop") => (MBarrier::ArriveDrop, true, 0..=1),
        Some("test_wait") => (MBarrier::Test { parity }, true, 1..=1),
        // The hint on time does not matter.
        Some("try_wait") => (MBarrier::Test { parity }, true, 1..=2),
        other => {
            return Err(format!(
                "`mbarrier.{}` is not interpreted",
                other.unwrap_or_default()
            ));
        }
    };
    if anywhere && !matches!(op, MBarrier::ArriveAnywhere { .. }) {
        return Err("at other blocks only `mbarrier.arrive` is interpreted".to_string());
    }
    match op {
        MBarrier::Arrive
        | MBarrier::ArriveAnywhere { .. }
        | MBarrier::ArriveExpect
        | MBarrier::ArriveDrop => mods.take("release"),
        MBarrier::Test { .. } => mods.take("acquire"),
        _ => false,
    };
    let first = usize::from(result);
    statement.count(first + 1 + values.start(), first + 1 + values.end())?;
    let test = matches!(op, MBarrier::Test { .. });
    if result {
        statement.write(0, if test { Ty::Pred } else { Ty::B64 })?;
    }
    let space = if anywhere {
        Space::Cluster
    } else {
        Space::Shared
    };
    statement.address(0, first, space)?;
    if let Some(value) = statement.operands.get(first + 1) {
        statement.inst.src[1] = statement
            .body
            .read(value, if test && !parity { Ty::B64 } else { Ty::B32 })?;
    } else if *values.end() > 0 {
        statement.inst.src[1] = statement.body.constant(1);
    }
    Ok(Op::MBarrier(op))
}

fn copy(statement: &mut Statement<'_, '_>) -> Result<Op, String> {
    let mods = &mut statement.mods;
    let operands = statement.operands;
    if !mods.take("async") {
        return Err("only asynchronous copies are interpreted".to_string());
    }
    let kind = match mods.take("bulk") {
        true => CopyKind::Bulk,
        false => CopyKind::Element,
    };
    if mods.take("multicast::cluster") {
        return Err("clusters of blocks are not interpreted".to_string());
    }
    if mods.take("mbarrier") {
        if kind == CopyKind::Bulk || !mods.take("arrive") || !mods.take("noinc") {
            let message = "of arrivals of copies only `arrive.noinc` is interpreted";
            return Err(message.to_string());
        }
        mods.drop_all(|part| ["shared", "shared::cta", "b64"].contains(&part));
        statement.count(1, 1)?;
        statement.address(0, 0, Space::Shared)?;
        return Ok(Op::CopiesArrive);
    }
    if mods.take("commit_group") {
        return Ok(Op::Commit(kind));
    }
    if mods.take("wait_all") {
        return Ok(Op::Wait(CopyWait::All));
    }
    if mods.take("wait_group") {
        let wait = match (kind, mods.take("read")) {
            (CopyKind::Element, _) => CopyWait::Group,
            (CopyKind::Bulk, false) => CopyWait::BulkGroup,
            (CopyKind::Bulk, true) => CopyWait::BulkGroupRead,
        };
        statement.count(1, 1)?;
        statement.inst.imm[0] = whole(&operands[0])?;
        return Ok(Op::Wait(wait));
    }
    if mods.take("prefetch") {
        mods.drop_all(|part| part == "L2" || part == "global" || part.starts_with("L2::"));
        return Ok(Op::Nop);
    }
    let policy = usize::from(mods.take("L2::cache_hint"));
    mods.drop_all(is_hint);
    let spaces = (mods.first(), mods.first());
    let shared =
        |part: Option<&str>| matches!(part, Some("shared" | "shared::cta" | "shared::cluster"));
    let load = shared(spaces.0) && spaces.1 == Some("global");
    let store = spaces.0 == Some("global") && shared(spaces.1);
    let op = match (kind, load, store) {
        (CopyKind::Element, true, _) => {
            statement.count(3, 4 + policy)?;
            let size = whole(&operands[2])?;
            if ![4, 8, 16].contains(&size) {
                return Err(format!("copies of {size} bytes do not exist"));
            }
            statement.inst.src[2] = statement.body.constant(size as u64);
            if operands.len() > 3 + policy {
                statement.read(3, 3, Ty::U32)?;
            }
            Copy::Element(size as u8)
        }
        (CopyKind::Bulk, true, _) if mods.take("mbarrier::complete_tx::bytes") => {
            statement.count(4, 4 + policy)?;
            (statement.inst.src[3], statement.inst.imm[2]) =
                statement.body.address(&operands[3], Space::Shared)?;
            Copy::BulkLoad
        }
        (CopyKind::Bulk, _, true) if mods.take("bulk_group") => {
            statement.count(3, 3 + policy)?;
            Copy::BulkStore
        }
        _ => return Err("this asynchronous copy is not interpreted".to_string()),
    };
    let (to, from) = match op {
        Copy::BulkStore => (Space::Global, Space::Shared),
        _ => (Space::Shared, Space::Global),
    };
    statement.address(0, 0, to)?;
    statement.address(1, 1, from)?;
    if kind == CopyKind::Bulk {
        statement.read(2, 2, Ty::U32)?;
    }
    Ok(Op::Copy(op))
}

fn warp<'a>(statement: &mut Statement<'_, 'a>, name: &str) -> Result<Op, String> {
    let mods = &mut statement.mods;
    let operands = statement.operands;
    if !mods.take("sync") {
        return Err("only the forms with `.sync` are interpreted".to_string());
    }
    let pair = |operand: &Operand<'a>| match operand {
        Operand::Pair(first, second) => (Operand::Word(first), Some(Operand::Word(second))),
        other => (other.clone(), None),
    };
    let mask = operands.last().ok_or("the mask of lanes is missing")?;
    statement.inst.src[3] = statement.body.read(mask, Ty::B32)?;
    let (result, predicate) = pair(&operands[0]);
    if let Some(predicate) = predicate {
        statement.inst.dst2 = statement.body.write(&predicate, Ty::Pred)?;
    }
    let op = match name {
        "shfl" => {
            let mode = mods.one(&[
                ("up", Shuffle::Up),
                ("down", Shuffle::Down),
                ("bfly", Shuffle::Butterfly),
                ("idx", Shuffle::Index),
            ]);
            let ty = mods.ty()?;
            statement.count(5, 5)?;
            statement.inst.dst = statement.body.write(&result, ty)?;
            statement.read(0, 1, ty)?;
            statement.read(1, 2, Ty::U32)?;
            statement.read(2, 3, Ty::U32)?;
            WarpOp::Shuffle(mode.ok_or("the mode is missing")?)
        }
        "vote" => {
            let vote = mods.one(&[
                ("all", Vote::All),
                ("any", Vote::Any),
                ("uni", Vote::Uniform),
                ("ballot", Vote::Ballot),
            ]);
            let ty = mods.ty()?;
            statement.count(3, 3)?;
            statement.inst.dst = statement.body.write(&result, ty)?;
            let (operand, polarity) = match &operands[1] {
                Operand::Not(word) => (Operand::Word(word), Polarity::Negated),
                other => (other.clone(), Polarity::Plain),
            };
            statement.inst.src[0] = statement.body.read(&operand, Ty::Pred)?;
            WarpOp::Vote(vote.ok_or("the mode is missing")?, polarity)
        }
        "redux" => {
            let rmw = mods.one(&OPERATIONS).ok_or("the operation is missing")?;
            let ty = mods.ty()?;
            statement.count(3, 3)?;
            statement.inst.dst = statement.body.write(&result, ty)?;
            statement.read(0, 1, ty)?;
            WarpOp::Reduce(rmw, ty)
        }
        _ => {
            statement.count(2, 2)?;
            statement.inst.dst = statement.body.write(&result, Ty::B32)?;
            WarpOp::Elect
        }
    };
    Ok(Op::Warp(op))
}
