//! From an opcode and its operands to an [`Inst`]: arithmetic and control here, memory in [`crate::decode_memory`].
//!
//! Modifiers are taken from the opcode one by one; one that is left over is not interpreted, and an error.

use crate::body::Body;
use crate::decode_memory;
use crate::op::{
    Bin, Cmp, FloatOrder, Inst, Join, NONE, Op, Polarity, Round, Saturation, Slot, Space, Tri, Ty,
    Un,
};
use crate::operand::Operand;

/// The parts of an opcode after its first.
pub(crate) struct Modifiers<'a> {
    parts: Vec<&'a str>,
}

impl<'a> Modifiers<'a> {
    /// Takes a modifier away; whether it was there.
    pub(crate) fn take(&mut self, name: &str) -> bool {
        let found = self.parts.iter().position(|part| *part == name);
        found.map(|at| self.parts.remove(at)).is_some()
    }

    /// Takes the first of these that is there.
    pub(crate) fn one<T: Copy>(&mut self, names: &[(&str, T)]) -> Option<T> {
        names
            .iter()
            .find(|(name, _)| self.take(name))
            .map(|(_, value)| *value)
    }

    /// Takes the modifiers for which a predicate holds.
    pub(crate) fn drop_all(&mut self, drop: impl Fn(&str) -> bool) {
        self.parts.retain(|part| !drop(part));
    }

    /// Takes the first type.
    pub(crate) fn ty(&mut self) -> Result<Ty, String> {
        let found = self.parts.iter().position(|part| Ty::parse(part).is_some());
        let at = found.ok_or("the instruction has no type that is interpreted")?;
        Ty::parse(self.parts.remove(at)).ok_or_else(|| "no type".to_string())
    }

    /// The next modifier, of any kind.
    pub(crate) fn first(&mut self) -> Option<&'a str> {
        if self.parts.is_empty() {
            None
        } else {
            Some(self.parts.remove(0))
        }
    }

    fn done(&self) -> Result<(), String> {
        match self.parts.first() {
            Some(part) => Err(format!("modifier `.{part}` is not interpreted here")),
            None => Ok(()),
        }
    }
}

/// An instruction as written, and the decoded one.
pub(crate) struct Statement<'b, 'a> {
    pub(crate) body: &'b mut Body<'a>,
    pub(crate) mods: Modifiers<'a>,
    pub(crate) operands: &'b [Operand<'a>],
    pub(crate) inst: &'b mut Inst,
}

impl Statement<'_, '_> {
    /// How many operands there are, or an error.
    pub(crate) fn count(&self, from: usize, to: usize) -> Result<(), String> {
        let found = self.operands.len();
        if (from..=to).contains(&found) {
            return Ok(());
        }
        Err(format!("the instruction takes {to} operands, not {found}"))
    }

    /// Writes the result to an operand.
    pub(crate) fn write(&mut self, operand: usize, ty: Ty) -> Result<(), String> {
        self.inst.dst = self.body.write(&self.operands[operand], ty)?;
        Ok(())
    }

    /// Reads a source from an operand.
    pub(crate) fn read(&mut self, source: usize, operand: usize, ty: Ty) -> Result<(), String> {
        self.inst.src[source] = self.body.read(&self.operands[operand], ty)?;
        Ok(())
    }

    /// Takes a source, and the offset, from an operand that is an address.
    pub(crate) fn address(
        &mut self,
        source: usize,
        operand: usize,
        space: Space,
    ) -> Result<(), String> {
        let address = self.body.address(&self.operands[operand], space)?;
        (self.inst.src[source], self.inst.imm[source]) = address;
        Ok(())
    }
}

/// Decodes an instruction.
pub(crate) fn instruction<'a>(
    body: &mut Body<'a>,
    opcode: &'a str,
    operands: &[Operand<'a>],
    inst: &mut Inst,
) -> Result<(), String> {
    let mut parts = opcode.split('.');
    let name = parts.next().unwrap_or_default();
    let parts = parts.collect();
    let statement = &mut Statement {
        body,
        mods: Modifiers { parts },
        operands,
        inst,
    };
    statement.inst.op = match name {
        "mov" => moves(statement)?,
        "cvt" => convert(statement)?,
        "cvta" => address_space(statement)?,
        "setp" => compare(statement, Truth::Predicates)?,
        "set" => compare(statement, Truth::Number)?,
        "testp" => test(statement)?,
        "bra" | "brx" => branch(statement, name)?,
        "ret" | "exit" => Op::Exit,
        "trap" => Op::Trap,
        "call" => return Err("calls are not interpreted: inline functions".to_string()),
        _ => match arithmetic(statement, name)? {
            Some(op) => op,
            None => decode_memory::instruction(statement, name)?,
        },
    };
    statement.mods.done()
}

fn arithmetic(statement: &mut Statement<'_, '_>, name: &str) -> Result<Option<Op>, String> {
    let mods = &mut statement.mods;
    let found = match name {
        "neg" => Some(Un::Neg),
        "abs" => Some(Un::Abs),
        "not" => Some(Un::Not),
        "clz" => Some(Un::Clz),
        "popc" => Some(Un::Popc),
        "brev" => Some(Un::Brev),
        "sqrt" => Some(Un::Sqrt),
        "rcp" => Some(Un::Rcp),
        _ => None,
    };
    if let Some(un) = found {
        let ty = mods.ty()?;
        if matches!(un, Un::Sqrt | Un::Rcp) {
            rounding(ty, mods)?;
        }
        statement.count(2, 2)?;
        let to = if matches!(un, Un::Clz | Un::Popc) {
            Ty::B32
        } else {
            ty
        };
        statement.write(0, to)?;
        statement.read(0, 1, ty)?;
        return Ok(Some(Op::Un(un, ty)));
    }
    let binary = match name {
        "add" => Bin::Add,
        "sub" => Bin::Sub,
        "mul" => Bin::Mul,
        "div" => Bin::Div,
        "rem" => Bin::Rem,
        "min" if mods.take("NaN") => Bin::MinNan,
        "max" if mods.take("NaN") => Bin::MaxNan,
        "min" => Bin::Min,
        "max" => Bin::Max,
        "and" => Bin::And,
        "or" => Bin::Or,
        "xor" => Bin::Xor,
        "shl" => Bin::Shl,
        "shr" => Bin::Shr,
        "copysign" => Bin::CopySign,
        _ => return ternary(statement, name),
    };
    let ty = mods.ty()?;
    let mut bin = binary;
    let mut to = ty;
    if bin == Bin::Mul && !ty.is_float() {
        bin = half(mods)?;
        to = if bin == Bin::MulWide { wide(ty)? } else { ty };
    }
    if matches!(bin, Bin::Add | Bin::Sub | Bin::Mul | Bin::Div) {
        rounding(ty, mods)?;
    }
    statement.count(3, 3)?;
    let second = if matches!(bin, Bin::Shl | Bin::Shr) {
        Ty::U32
    } else {
        ty
    };
    statement.write(0, to)?;
    statement.read(0, 1, ty)?;
    statement.read(1, 2, second)?;
    if bin == Bin::CopySign {
        // The first operand gives the sign.
        statement.inst.src.swap(0, 1);
    }
    Ok(Some(Op::Bin(bin, ty)))
}

fn half(mods: &mut Modifiers) -> Result<Bin, String> {
    mods.one(&[("lo", Bin::Mul), ("hi", Bin::MulHi), ("wide", Bin::MulWide)])
        .ok_or_else(|| "`.lo`, `.hi` or `.wide` is missing".to_string())
}

fn wide(ty: Ty) -> Result<Ty, String> {
    match ty {
        Ty::U16 | Ty::S16 => Ok(Ty::B32),
        Ty::U32 | Ty::S32 => Ok(Ty::B64),
        _ => Err("`.wide` takes 16 or 32 bits".to_string()),
    }
}

/// Takes the `.rn` of a result that is rounded; if the type is a float, anything else is refused. `add`, `sub` and
/// `mul` without rounding may be contracted by assemblers, so that their bits are not known: refused too.
fn rounding(ty: Ty, mods: &mut Modifiers) -> Result<(), String> {
    if ty.is_float() && !mods.take("rn") {
        return Err(
            "only `.rn` is interpreted: other forms have bits that are not defined".to_string(),
        );
    }
    Ok(())
}

fn ternary(statement: &mut Statement<'_, '_>, name: &str) -> Result<Option<Op>, String> {
    let mods = &mut statement.mods;
    let (tri, types, ty) = match name {
        "mad" | "fma" => {
            let ty = mods.ty()?;
            let (tri, result) = match (ty.is_float(), name) {
                (true, _) => (Tri::Fma, ty),
                (false, "mad") => match half(mods)? {
                    Bin::MulHi => (Tri::MadHi, ty),
                    Bin::MulWide => (Tri::MadWide, wide(ty)?),
                    _ => (Tri::Mad, ty),
                },
                _ => return Err("`fma` takes floats".to_string()),
            };
            rounding(ty, mods)?;
            (tri, vec![result, ty, ty, result], ty)
        }
        "bfe" => {
            let ty = mods.ty()?;
            (Tri::Extract, vec![ty, ty, Ty::U32, Ty::U32], ty)
        }
        "bfi" => {
            let ty = mods.ty()?;
            (Tri::Insert, vec![ty, ty, ty, Ty::U32, Ty::U32], ty)
        }
        "prmt" => {
            let ty = mods.ty()?;
            (Tri::Permute, vec![ty; 4], ty)
        }
        "lop3" => {
            let ty = mods.ty()?;
            (Tri::Logic, vec![ty, ty, ty, ty, Ty::U32], ty)
        }
        "shf" => {
            let left = match mods.first() {
                Some("l") => true,
                Some("r") => false,
                _ => return Err("`.l` or `.r` is missing".to_string()),
            };
            let tri = match (left, mods.take("wrap")) {
                (true, true) => Tri::ShiftLeftWrap,
                (false, true) => Tri::ShiftRightWrap,
                (true, false) => Tri::ShiftLeftClamp,
                (false, false) => Tri::ShiftRightClamp,
            };
            mods.take("clamp");
            let ty = mods.ty()?;
            (tri, vec![ty, ty, ty, Ty::U32], ty)
        }
        "selp" => {
            let ty = mods.ty()?;
            (Tri::Select, vec![ty, ty, ty, Ty::Pred], ty)
        }
        "slct" => {
            let ty = mods.ty()?;
            let sign = mods.ty()?;
            (Tri::SelectSign, vec![ty, ty, ty, sign], sign)
        }
        _ => return Ok(None),
    };
    statement.count(types.len(), types.len())?;
    statement.write(0, types[0])?;
    for (slot, (operand, ty)) in statement
        .inst
        .src
        .iter_mut()
        .zip(statement.operands[1..].iter().zip(&types[1..]))
    {
        *slot = statement.body.read(operand, *ty)?;
    }
    Ok(Some(Op::Tri(tri, ty)))
}

fn moves(statement: &mut Statement<'_, '_>) -> Result<Op, String> {
    let ty = statement.mods.ty()?;
    statement.count(2, 2)?;
    let split = |count: usize| -> Result<Ty, String> {
        match ty.bits() / count as u32 {
            8 => Ok(Ty::B8),
            16 => Ok(Ty::B16),
            32 => Ok(Ty::B32),
            _ => Err("the lists of `mov` have elements of 8, 16 or 32 bits".to_string()),
        }
    };
    match (&statement.operands[0], &statement.operands[1]) {
        (Operand::List(parts), from) => {
            let element = split(parts.len())?;
            statement.inst.src[0] = statement.body.read(from, ty)?;
            let slots = slots(parts, |part| statement.body.write(part, element))?;
            let list = statement.body.list(&slots);
            Ok(Op::Unpack {
                bits: element.bits() as u8,
                count: parts.len() as u8,
                list,
            })
        }
        (to, Operand::List(parts)) => {
            let element = split(parts.len())?;
            statement.inst.dst = statement.body.write(to, ty)?;
            let slots = slots(parts, |part| statement.body.read(part, element))?;
            let list = statement.body.list(&slots);
            Ok(Op::Pack {
                bits: element.bits() as u8,
                count: parts.len() as u8,
                list,
            })
        }
        (to, Operand::Word(word))
            if ["%clock", "%clock64", "%clock_hi", "%globaltimer"].contains(word) =>
        {
            statement.inst.dst = statement.body.write(to, ty)?;
            Ok(Op::Clock)
        }
        (to, from) => {
            statement.inst.dst = statement.body.write(to, ty)?;
            statement.inst.src[0] = statement.body.read(from, ty)?;
            Ok(Op::Move)
        }
    }
}

/// The slots of a list of operands.
pub(crate) fn slots<'a>(
    operands: &[Operand<'a>],
    slot: impl FnMut(&Operand<'a>) -> Result<Slot, String>,
) -> Result<Vec<Slot>, String> {
    operands.iter().map(slot).collect()
}

fn convert(statement: &mut Statement<'_, '_>) -> Result<Op, String> {
    let mods = &mut statement.mods;
    let round = mods.one(&[
        ("rn", Round::Near),
        ("rz", Round::Zero),
        ("rm", Round::Down),
        ("rp", Round::Up),
        ("rni", Round::NearInt),
        ("rzi", Round::ZeroInt),
        ("rmi", Round::DownInt),
        ("rpi", Round::UpInt),
    ]);
    let saturation = if mods.take("sat") {
        Saturation::On
    } else {
        Saturation::Off
    };
    let (to, from) = (mods.ty()?, mods.ty()?);
    let integral = matches!(
        round,
        Some(Round::NearInt | Round::ZeroInt | Round::DownInt | Round::UpInt)
    );
    let fits = match (to.is_float(), from.is_float()) {
        (false, false) => round.is_none(),
        (false, true) => integral,
        (true, false) => round.is_some() && !integral,
        (true, true) if to.bits() > from.bits() => round.is_none(),
        (true, true) if to.bits() < from.bits() => round.is_some() && !integral,
        (true, true) => round.is_none() || integral,
    };
    if !fits {
        return Err("this conversion takes another rounding".to_string());
    }
    statement.count(2, 2)?;
    statement.inst.dst = statement.body.write_wide(&statement.operands[0], to)?;
    statement.inst.src[0] = statement.body.read_wide(&statement.operands[1], from)?;
    let width = statement.body.width(statement.inst.dst) as u8;
    Ok(Op::Convert {
        to,
        from,
        round: round.unwrap_or(Round::Exact),
        saturation,
        width,
    })
}

/// Addresses of a space and generic ones differ by the start of a window.
fn address_space(statement: &mut Statement<'_, '_>) -> Result<Op, String> {
    let mods = &mut statement.mods;
    let back = mods.take("to");
    let start = mods.one(&[
        ("global", 0),
        ("const", 0),
        ("shared", crate::memory::SHARED_WINDOW),
        ("shared::cta", crate::memory::SHARED_WINDOW),
        ("shared::cluster", crate::memory::SHARED_WINDOW),
        ("local", crate::memory::LOCAL_WINDOW),
        ("param", crate::memory::PARAM_WINDOW),
    ]);
    let start = start.ok_or("the state space is missing")?;
    if mods.ty()? != Ty::U64 {
        return Err("addresses have 64 bits".to_string());
    }
    statement.count(2, 2)?;
    statement.write(0, Ty::U64)?;
    statement.read(0, 1, Ty::U64)?;
    statement.inst.src[1] = statement.body.constant(start);
    Ok(Op::Bin(if back { Bin::Sub } else { Bin::Add }, Ty::U64))
}

/// The types that a comparison takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Any,
    Integers,
    Floats,
}

/// A comparison as it is named.
struct Comparison {
    cmp: Cmp,
    order: FloatOrder,
    compared: Compared,
}

fn comparison(mods: &mut Modifiers<'_>) -> Result<Comparison, String> {
    let ordered = |compared, cmp| Comparison {
        cmp,
        order: FloatOrder::Ordered,
        compared,
    };
    let unordered = |cmp| Comparison {
        cmp,
        order: FloatOrder::Unordered,
        compared: Compared::Floats,
    };
    Ok(match mods.first() {
        Some("eq") => ordered(Compared::Any, Cmp::Eq),
        Some("ne") => ordered(Compared::Any, Cmp::Ne),
        Some("lt") => ordered(Compared::Any, Cmp::Lt),
        Some("le") => ordered(Compared::Any, Cmp::Le),
        Some("gt") => ordered(Compared::Any, Cmp::Gt),
        Some("ge") => ordered(Compared::Any, Cmp::Ge),
        Some("lo") => ordered(Compared::Integers, Cmp::Lt),
        Some("ls") => ordered(Compared::Integers, Cmp::Le),
        Some("hi") => ordered(Compared::Integers, Cmp::Gt),
        Some("hs") => ordered(Compared::Integers, Cmp::Ge),
        Some("equ") => unordered(Cmp::Eq),
        Some("neu") => unordered(Cmp::Ne),
        Some("ltu") => unordered(Cmp::Lt),
        Some("leu") => unordered(Cmp::Le),
        Some("gtu") => unordered(Cmp::Gt),
        Some("geu") => unordered(Cmp::Ge),
        Some("num") => ordered(Compared::Floats, Cmp::Num),
        Some("nan") => ordered(Compared::Floats, Cmp::Nan),
        other => return Err(format!("comparison {other:?} is not interpreted")),
    })
}

/// The result of a comparison: predicates (`setp`), or a number of a type (`set`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Predicates,
    Number,
}

fn compare(statement: &mut Statement<'_, '_>, truth: Truth) -> Result<Op, String> {
    let mods = &mut statement.mods;
    let Comparison {
        cmp,
        order,
        compared,
    } = comparison(mods)?;
    let join = mods.one(&[("and", Join::And), ("or", Join::Or), ("xor", Join::Xor)]);
    let join = join.unwrap_or(Join::None);
    let to = match truth {
        Truth::Predicates => Ty::Pred,
        Truth::Number => mods.ty()?,
    };
    let ty = mods.ty()?;
    let fits = match compared {
        Compared::Integers => !ty.is_float(),
        Compared::Floats => ty.is_float(),
        Compared::Any => {
            ty.is_float()
                || matches!(cmp, Cmp::Eq | Cmp::Ne)
                || !matches!(ty, Ty::B16 | Ty::B32 | Ty::B64)
        }
    };
    if !fits {
        return Err("this comparison does not suit the type".to_string());
    }
    let operands = 3 + usize::from(join != Join::None);
    statement.count(operands, operands)?;
    if let (Operand::Pair(first, second), Truth::Predicates) = (&statement.operands[0], truth) {
        statement.inst.dst = statement.body.write(&Operand::Word(first), Ty::Pred)?;
        statement.inst.dst2 = statement.body.write(&Operand::Word(second), Ty::Pred)?;
    } else {
        statement.write(0, to)?;
    }
    statement.read(0, 1, ty)?;
    statement.read(1, 2, ty)?;
    let mut polarity = Polarity::Plain;
    if join != Join::None {
        let operand = match &statement.operands[3] {
            Operand::Not(word) => {
                polarity = Polarity::Negated;
                Operand::Word(word)
            }
            other => other.clone(),
        };
        statement.inst.src[2] = statement.body.read(&operand, Ty::Pred)?;
    }
    if truth == Truth::Predicates {
        return Ok(Op::Compare {
            cmp,
            order,
            ty,
            join,
            polarity,
        });
    }
    if join != Join::None {
        return Err("`set` with another predicate is not interpreted".to_string());
    }
    Ok(Op::Set { cmp, order, ty, to })
}

fn test(statement: &mut Statement<'_, '_>) -> Result<Op, String> {
    let mods = &mut statement.mods;
    let un = mods.one(&[
        ("finite", Un::IsFinite),
        ("infinite", Un::IsInfinite),
        ("number", Un::IsNumber),
        ("notanumber", Un::IsNan),
        ("normal", Un::IsNormal),
        ("subnormal", Un::IsSubnormal),
    ]);
    let un = un.ok_or("the property is missing")?;
    let ty = mods.ty()?;
    statement.count(2, 2)?;
    statement.write(0, Ty::Pred)?;
    statement.read(0, 1, ty)?;
    Ok(Op::Un(un, ty))
}

fn branch(statement: &mut Statement<'_, '_>, name: &str) -> Result<Op, String> {
    let mods = &mut statement.mods;
    mods.take("uni");
    if name == "brx" {
        mods.take("idx");
        statement.count(2, 2)?;
        statement.read(0, 0, Ty::U32)?;
        let Operand::Word(table) = statement.operands[1] else {
            return Err("expected a table of labels".to_string());
        };
        statement.body.jump(table);
        return Ok(Op::BranchIndex { list: 0, count: 0 });
    }
    statement.count(1, 1)?;
    let Operand::Word(label) = statement.operands[0] else {
        return Err("expected a label".to_string());
    };
    statement.body.jump(label);
    debug_assert!(statement.inst.dst == NONE);
    Ok(Op::Branch(0))
}
