//! A kernel while it is parsed: scopes of names, slots, labels that are not resolved yet.

use std::collections::HashMap;
use std::sync::Arc;

use crate::decode;
use crate::error::Error;
use crate::memory::{LOCAL_BASE, PARAM_BASE, SHARED_BASE};
use crate::module::{Content, Entry, Special};
use crate::op::{Inst, NONE, Op, Polarity, Slot, Space, Ty};
use crate::operand::{Guard, Operand, Sign, constant};
use crate::parse::Declaration;
use crate::race::MOST_INSTRUCTIONS;

/// The most registers that a kernel may have.
const MOST_REGISTERS: u32 = 1 << 20;

/// The meaning of a name other than a register.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Param(u32),
    Shared(u32),
    DynamicShared,
    Local(u32),
    Variable(u32),
}

/// The state spaces in which a kernel declares variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableSpace {
    Shared,
    Local,
}

/// The bits that a register needs to hold values of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegisterWidth {
    Exact,
    AtLeast,
}

#[derive(Default)]
struct Scope<'a> {
    parent: Option<usize>,
    registers: HashMap<&'a str, Slot>,
    /// Names of `%r<N>`, with N and the slot of number 0.
    ranges: Vec<(&'a str, u32, Slot)>,
    places: HashMap<String, Place>,
    labels: HashMap<&'a str, u32>,
    tables: HashMap<&'a str, (u32, u32)>,
}

/// A reference to a label or table by an instruction (`table` false) or an entry of a list.
struct Pending<'a> {
    scope: usize,
    name: &'a str,
    line: u32,
    at: usize,
    in_list: bool,
}

pub(crate) struct Body<'a> {
    pub(crate) entry: Entry,
    scopes: Vec<Scope<'a>>,
    scope: usize,
    /// Bits of the register in each slot.
    widths: Vec<u8>,
    constants: HashMap<u64, Slot>,
    others: Vec<(Content, Slot)>,
    opcodes: HashMap<&'a str, u16>,
    pending: Vec<Pending<'a>>,
    line: u32,
}

impl<'a> Body<'a> {
    pub(crate) fn new(name: &str, source: Arc<str>) -> Self {
        let entry = Entry {
            name: name.to_string(),
            source,
            variables: Arc::default(),
            params: Vec::new(),
            code: Vec::new(),
            lists: Vec::new(),
            slots: Vec::new(),
            fixed: Vec::new(),
            slot_names: Vec::new(),
            opcodes: Vec::new(),
            static_shared: 0,
            shared_align: 16,
            local_bytes: 0,
            max_threads: None,
            required_threads: None,
            cluster: [1; 3],
        };
        Body {
            entry,
            scopes: vec![Scope::default()],
            scope: 0,
            widths: Vec::new(),
            constants: HashMap::new(),
            others: Vec::new(),
            opcodes: HashMap::new(),
            pending: Vec::new(),
            line: 0,
        }
    }

    pub(crate) fn open(&mut self) {
        self.scopes.push(Scope {
            parent: Some(self.scope),
            ..Scope::default()
        });
        self.scope = self.scopes.len() - 1;
    }

    pub(crate) fn close(&mut self) {
        self.scope = self.scopes[self.scope].parent.unwrap_or(0);
    }

    /// Resolves labels.
    pub(crate) fn finish(mut self) -> Result<Entry, Error> {
        for pending in &self.pending {
            let error = || {
                Error::new(
                    pending.line,
                    format!("there is no label `{}`", pending.name),
                )
            };
            let scopes =
                std::iter::successors(Some(pending.scope), |scope| self.scopes[*scope].parent);
            let mut scopes = scopes.map(|scope| &self.scopes[scope]);
            if !pending.in_list && matches!(self.entry.code[pending.at].op, Op::BranchIndex { .. })
            {
                let found = scopes.find_map(|scope| scope.tables.get(pending.name));
                let (list, count) = *found.ok_or_else(error)?;
                self.entry.code[pending.at].op = Op::BranchIndex { list, count };
                continue;
            }
            let found = scopes.find_map(|scope| scope.labels.get(pending.name));
            let target = *found.ok_or_else(error)?;
            if pending.in_list {
                self.entry.lists[pending.at] = target;
            } else {
                self.entry.code[pending.at].op = Op::Branch(target);
            }
        }
        // Control that runs past the last statement ends.
        let line = self.entry.code.last().map_or(0, |inst| inst.line);
        let end = self.blank("ret", line, Op::Exit);
        self.entry.code.push(end);
        crate::registers::share(&mut self.entry);
        Ok(self.entry)
    }

    fn blank(&mut self, opcode: &'a str, line: u32, op: Op) -> Inst {
        let next = self.opcodes.len() as u16;
        let name = *self.opcodes.entry(opcode).or_insert(next);
        if name == next {
            self.entry.opcodes.push(opcode.to_string());
        }
        let (src, imm) = ([NONE; 4], [0; 3]);
        Inst {
            op,
            dst: NONE,
            dst2: NONE,
            src,
            imm,
            guard: NONE,
            polarity: Polarity::Plain,
            tracked: true,
            line,
            name,
        }
    }

    fn slot(&mut self, content: Content, name: String, bits: u32) -> Slot {
        self.entry.slots.push(content);
        self.entry.slot_names.push(name);
        self.widths.push(bits as u8);
        self.entry.slots.len() as Slot - 1
    }

    pub(crate) fn register(&mut self, name: &'a str, ty: Ty) -> Result<(), String> {
        if self.entry.slots.len() as u32 >= MOST_REGISTERS {
            return Err("too many registers".to_string());
        }
        let slot = self.slot(Content::Register, name.to_string(), ty.bits());
        match self.scopes[self.scope].registers.insert(name, slot) {
            Some(_) => Err(format!("register `{name}` is declared twice")),
            None => Ok(()),
        }
    }

    pub(crate) fn registers(&mut self, name: &'a str, count: u32, ty: Ty) -> Result<(), String> {
        if count > MOST_REGISTERS - (self.entry.slots.len() as u32).min(MOST_REGISTERS) {
            return Err("too many registers".to_string());
        }
        let first = self.entry.slots.len() as Slot;
        for number in 0..count {
            self.slot(Content::Register, format!("{name}{number}"), ty.bits());
        }
        self.scopes[self.scope].ranges.push((name, count, first));
        Ok(())
    }

    pub(crate) fn place(&mut self, name: &str, place: Place) -> Result<(), String> {
        match self.scopes[self.scope]
            .places
            .insert(name.to_string(), place)
        {
            Some(_) => Err(format!("`{name}` is declared twice")),
            None => Ok(()),
        }
    }

    /// A variable that the kernel declares itself.
    pub(crate) fn variable(
        &mut self,
        declaration: &Declaration<'a>,
        space: VariableSpace,
    ) -> Result<(), String> {
        let align = declaration.align.max(1);
        let entry = &mut self.entry;
        let place = match (declaration.bytes, space) {
            (None | Some(0), VariableSpace::Shared) => {
                entry.shared_align = entry.shared_align.max(align);
                Place::DynamicShared
            }
            (None, VariableSpace::Local) => {
                return Err(format!("`{}` has no size", declaration.name));
            }
            (Some(bytes), space) => {
                let top = match space {
                    VariableSpace::Shared => &mut entry.static_shared,
                    VariableSpace::Local => &mut entry.local_bytes,
                };
                let start = top.next_multiple_of(align);
                *top = start
                    .checked_add(bytes)
                    .ok_or("too much memory is declared")?;
                match space {
                    VariableSpace::Shared => Place::Shared(start),
                    VariableSpace::Local => Place::Local(start),
                }
            }
        };
        self.place(declaration.name, place)
    }

    /// A shared variable of the module that an instruction names: allocated when it is met first.
    pub(crate) fn module_shared(&mut self, declaration: &Declaration<'a>) -> Result<(), String> {
        if self.find_place(declaration.name).is_some() {
            return Ok(());
        }
        let inner = std::mem::replace(&mut self.scope, 0);
        let result = self.variable(declaration, VariableSpace::Shared);
        self.scope = inner;
        result
    }

    /// A variable of the module in global or constant memory, if an operand names it.
    pub(crate) fn module_variable(&mut self, index: u32, operands: &[Operand<'a>], name: &str) {
        let named = |operand: &Operand| match operand {
            Operand::Word(word) | Operand::Memory(word, _) => *word == name,
            _ => false,
        };
        if operands.iter().any(named) && self.find_place(name).is_none() {
            self.scopes[0]
                .places
                .insert(name.to_string(), Place::Variable(index));
        }
    }

    pub(crate) fn label(&mut self, name: &'a str) -> Result<(), String> {
        let at = self.entry.code.len() as u32;
        match self.scopes[self.scope].labels.insert(name, at) {
            Some(_) => Err(format!("label `{name}` is defined twice")),
            None => Ok(()),
        }
    }

    pub(crate) fn table(&mut self, name: &'a str, labels: Vec<&'a str>) -> Result<(), String> {
        let list = self.entry.lists.len();
        for (index, label) in labels.iter().enumerate() {
            self.entry.lists.push(0);
            let (scope, line) = (self.scope, self.line);
            self.pending.push(Pending {
                scope,
                name: label,
                line,
                at: list + index,
                in_list: true,
            });
        }
        self.scopes[self.scope]
            .tables
            .insert(name, (list as u32, labels.len() as u32));
        Ok(())
    }

    pub(crate) fn instruction(
        &mut self,
        opcode: &'a str,
        line: u32,
        guard: Option<Guard<'a>>,
        operands: &[Operand<'a>],
    ) -> Result<(), String> {
        self.line = line;
        if self.entry.code.len() >= MOST_INSTRUCTIONS {
            return Err("too many instructions".to_string());
        }
        let mut inst = self.blank(opcode, line, Op::Nop);
        if let Some(guard) = guard {
            inst.guard = self.read(&Operand::Word(guard.predicate), Ty::Pred)?;
            inst.polarity = guard.polarity;
        }
        decode::instruction(self, opcode, operands, &mut inst)?;
        self.entry.code.push(inst);
        Ok(())
    }

    /// Makes the instruction that is decoded jump to this label or table.
    pub(crate) fn jump(&mut self, name: &'a str) {
        let (scope, line, at) = (self.scope, self.line, self.entry.code.len());
        self.pending.push(Pending {
            scope,
            name,
            line,
            at,
            in_list: false,
        });
    }

    fn find_register(&self, name: &str) -> Option<Slot> {
        let mut scope = Some(self.scope);
        while let Some(at) = scope {
            let names = &self.scopes[at];
            if let Some(slot) = names.registers.get(name) {
                return Some(*slot);
            }
            let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
            let (base, digits) = name.split_at(name.len() - digits);
            if let Ok(number) = digits.parse::<u32>()
                && (digits == "0" || !digits.starts_with('0'))
                && let Some((.., first)) = names
                    .ranges
                    .iter()
                    .find(|range| range.0 == base && number < range.1)
            {
                return Some(first + number);
            }
            scope = names.parent;
        }
        None
    }

    fn find_place(&self, name: &str) -> Option<Place> {
        let scopes = std::iter::successors(Some(self.scope), |scope| self.scopes[*scope].parent);
        scopes
            .into_iter()
            .find_map(|scope| self.scopes[scope].places.get(name).copied())
    }

    pub(crate) fn constant(&mut self, bits: u64) -> Slot {
        if let Some(slot) = self.constants.get(&bits) {
            return *slot;
        }
        let slot = self.slot(Content::Const(bits), format!("{bits:#x}"), 64);
        self.constants.insert(bits, slot);
        slot
    }

    fn other(&mut self, content: Content, name: &str, bits: u32) -> Slot {
        if let Some((_, slot)) = self.others.iter().find(|other| other.0 == content) {
            return *slot;
        }
        let slot = self.slot(content, name.to_string(), bits);
        self.others.push((content, slot));
        slot
    }

    /// A register that nothing reads.
    pub(crate) fn sink(&mut self) -> Slot {
        self.other(Content::Sink, "_", 64)
    }

    fn place_slot(&mut self, name: &str, place: Place) -> Slot {
        match place {
            Place::Param(offset) => self.constant(PARAM_BASE + u64::from(offset)),
            Place::Shared(offset) => self.constant(SHARED_BASE + u64::from(offset)),
            Place::Local(offset) => self.constant(LOCAL_BASE + u64::from(offset)),
            Place::DynamicShared => self.other(Content::DynamicShared, name, 64),
            Place::Variable(index) => self.other(Content::Variable(index), name, 64),
        }
    }

    /// The slot of an operand that is read as this type.
    pub(crate) fn read(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<Slot, String> {
        self.read_from(operand, ty, RegisterWidth::Exact)
    }

    /// The same where a wider register may stand: in conversions, loads and stores.
    pub(crate) fn read_wide(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<Slot, String> {
        self.read_from(operand, ty, RegisterWidth::AtLeast)
    }

    fn read_from(
        &mut self,
        operand: &Operand<'a>,
        ty: Ty,
        width: RegisterWidth,
    ) -> Result<Slot, String> {
        let (word, sign) = match operand {
            Operand::Word(word) => (*word, Sign::Plus),
            Operand::Negative(word) => (*word, Sign::Minus),
            other => return Err(format!("operand {other:?} does not fit here")),
        };
        if let Some(bits) = constant(word, sign, ty) {
            return Ok(self.constant(bits));
        }
        if sign == Sign::Minus {
            return Err(format!("`-{word}` does not fit here"));
        }
        if let Some(slot) = self.find_register(word) {
            return self.fits(slot, ty, width);
        }
        if let Some(special) = special(word) {
            return Ok(self.other(Content::Special(special), word, 32));
        }
        if let Some(bits) = fixed(word) {
            return Ok(self.constant(bits));
        }
        match self.find_place(word) {
            Some(place) if matches!(ty.bits(), 32 | 64) => Ok(self.place_slot(word, place)),
            Some(_) => Err(format!("address `{word}` does not fit here")),
            None => Err(format!("`{word}` is unknown, or no value of this type")),
        }
    }

    fn fits(&self, slot: Slot, ty: Ty, width: RegisterWidth) -> Result<Slot, String> {
        let bits = u32::from(self.widths[slot as usize]);
        // Values of 8 bits live in registers of 16.
        let exact = bits == ty.bits() || ty.bits() == 8 && bits == 16;
        let wider = width == RegisterWidth::AtLeast && bits > ty.bits() && ty != Ty::Pred;
        if exact || wider {
            return Ok(slot);
        }
        let name = self.entry.slot_name(slot);
        Err(format!(
            "register `{name}` has {bits} bits, {} are needed",
            ty.bits()
        ))
    }

    /// The slot of a register that is written as this type; `_` is a register that nothing reads.
    pub(crate) fn write(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<Slot, String> {
        self.write_to(operand, ty, RegisterWidth::Exact)
    }

    /// The same where a wider register may stand.
    pub(crate) fn write_wide(&mut self, operand: &Operand<'a>, ty: Ty) -> Result<Slot, String> {
        self.write_to(operand, ty, RegisterWidth::AtLeast)
    }

    fn write_to(
        &mut self,
        operand: &Operand<'a>,
        ty: Ty,
        width: RegisterWidth,
    ) -> Result<Slot, String> {
        match operand {
            Operand::Word("_") => Ok(self.sink()),
            Operand::Word(word) => match self.find_register(word) {
                Some(slot) => self.fits(slot, ty, width),
                None => Err(format!("`{word}` is no register")),
            },
            other => Err(format!("operand {other:?} is no register")),
        }
    }

    /// The base and displacement of an address; registers of 32 bits hold addresses of shared and local memory only.
    pub(crate) fn address(
        &mut self,
        operand: &Operand<'a>,
        space: Space,
    ) -> Result<(Slot, i64), String> {
        let Operand::Memory(base, offset) = operand else {
            return Err(format!("expected an address, found {operand:?}"));
        };
        if let Some(slot) = self.find_register(base) {
            let bits = self.widths[slot as usize];
            return match bits {
                64 => Ok((slot, *offset)),
                32 if matches!(
                    space,
                    Space::Shared | Space::Cluster | Space::Local | Space::Param
                ) =>
                {
                    Ok((slot, *offset))
                }
                _ => Err(format!("`{base}` has {bits} bits and is no address")),
            };
        }
        if let Some(bits) = constant(base, Sign::Plus, Ty::B64) {
            return Ok((self.constant(bits), *offset));
        }
        match self.find_place(base) {
            Some(place) => Ok((self.place_slot(base, place), *offset)),
            None => Err(format!("`{base}` is unknown")),
        }
    }

    /// A list of slots.
    pub(crate) fn list(&mut self, slots: &[Slot]) -> u32 {
        let list = self.entry.lists.len() as u32;
        self.entry.lists.extend_from_slice(slots);
        list
    }

    /// The bits of the register in a slot.
    pub(crate) fn width(&self, slot: Slot) -> u32 {
        u32::from(self.widths[slot as usize])
    }
}

fn special(word: &str) -> Option<Special> {
    let axis = |name: &str| Some(["x", "y", "z"].iter().position(|axis| *axis == name)? as u8);
    use std::cmp::Ordering;
    Some(match word.split_once('.') {
        Some(("%tid", name)) => Special::Thread(axis(name)?),
        Some(("%ntid", name)) => Special::Threads(axis(name)?),
        Some(("%ctaid", name)) => Special::Block(axis(name)?),
        Some(("%nctaid", name)) => Special::Blocks(axis(name)?),
        Some(("%clusterid", "x")) => Special::Cluster,
        Some(("%nclusterid", "x")) => Special::Clusters,
        Some(("%clusterid", name)) => Special::Block(axis(name)?),
        Some(("%nclusterid", name)) => Special::Blocks(axis(name)?),
        Some(("%cluster_ctaid", "x")) => Special::Rank,
        Some(("%cluster_nctaid", "x")) => Special::Ranks,
        _ => match word {
            "%cluster_ctarank" => Special::Rank,
            "%cluster_nctarank" => Special::Ranks,
            "%laneid" => Special::Lane,
            "%warpid" => Special::Warp,
            "%nwarpid" => Special::Warps,
            "%smid" => Special::Multiprocessor,
            "%nsmid" => Special::Multiprocessors,
            "%dynamic_smem_size" => Special::DynamicShared,
            "%lanemask_eq" => Special::LaneMask(Ordering::Equal, true),
            "%lanemask_lt" => Special::LaneMask(Ordering::Less, false),
            "%lanemask_le" => Special::LaneMask(Ordering::Less, true),
            "%lanemask_gt" => Special::LaneMask(Ordering::Greater, false),
            "%lanemask_ge" => Special::LaneMask(Ordering::Greater, true),
            _ => return None,
        },
    })
}

/// Special registers whose value is the same in every launch: clusters extend along the first axis.
fn fixed(word: &str) -> Option<u64> {
    match word {
        "WARP_SZ" | "%WARP_SZ" => Some(32),
        "%cluster_ctaid.y" | "%cluster_ctaid.z" => Some(0),
        "%cluster_nctaid.y" | "%cluster_nctaid.z" => Some(1),
        _ => None,
    }
}
