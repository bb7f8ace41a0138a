//! The rows that registers share: a kernel's text has thousands of registers, as LLVM numbers values, and few of them
//! have a value that is still needed at a time.
//!
//! Lanes of a warp may be at different instructions, but each has its own places in all rows, and goes one of the ways
//! that control may take. So a property of all ways holds for each lane: two registers share a row if no way passes a
//! place where the values of both are needed, and a register that every way writes before it reads is never found
//! without a value. All others have rows of their own, and reads of them are checked.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::module::{Content, Entry};
use crate::op::{Inst, NONE, Op, Slot};
use crate::rows::FIXED;

/// The most bits of all sets; kernels that need more keep a row for each register.
const MOST_BITS: usize = 1 << 28;

/// A set of registers.
type Set = Vec<u64>;

fn insert(set: &mut Set, register: usize) {
    set[register / 64] |= 1 << (register % 64);
}

fn remove(set: &mut Set, register: usize) {
    set[register / 64] &= !(1 << (register % 64));
}

fn contains(set: &Set, register: usize) -> bool {
    set[register / 64] >> (register % 64) & 1 == 1
}

fn members(set: &Set) -> impl Iterator<Item = usize> {
    let words = set.iter().enumerate();
    words.flat_map(|(index, word)| {
        let mut rest = *word;
        std::iter::from_fn(move || {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
            (bit < 64).then_some(index * 64 + bit)
        })
    })
}

/// Instructions that follow each other, of which control enters the first one only.
#[derive(Debug)]
struct Stretch {
    code: std::ops::Range<usize>,
    next: Vec<usize>,
    /// Registers whose values are needed from the beginning on, and after the end.
    needed: Set,
    needed_after: Set,
    /// Registers that have a value at the beginning on all ways.
    given: Set,
}

/// The registers of an instruction, numbered from 0.
#[derive(Default)]
struct Used {
    reads: Vec<usize>,
    writes: Vec<usize>,
}

/// The slots in an entry's lists that an instruction reads or writes.
fn list_of(op: Op) -> std::ops::Range<usize> {
    match op {
        Op::Load(access) | Op::Store(access) => {
            access.list as usize..access.list as usize + usize::from(access.count)
        }
        Op::Pack { count, list, .. } | Op::Unpack { count, list, .. } => {
            list as usize..list as usize + usize::from(count)
        }
        _ => 0..0,
    }
}

struct Registers<'a> {
    entry: &'a Entry,
    /// The number of the register in each slot.
    numbers: Vec<Option<usize>>,
    count: usize,
}

impl Registers<'_> {
    /// Finds the registers that an instruction uses.
    fn used(&self, inst: &Inst, used: &mut Used) {
        used.reads.clear();
        used.writes.clear();
        let number = |slot: &Slot| *self.numbers.get(*slot as usize)?;
        let list = &self.entry.lists[list_of(inst.op)];
        let sources = inst.src.iter().chain([&inst.guard]);
        used.reads.extend(sources.filter_map(number));
        let results = [&inst.dst, &inst.dst2].into_iter();
        used.writes.extend(results.filter_map(number));
        match inst.op {
            Op::Store(_) | Op::Pack { .. } => used.reads.extend(list.iter().filter_map(number)),
            _ => used.writes.extend(list.iter().filter_map(number)),
        }
    }

    /// Cuts the code where control parts or meets.
    fn stretches(&self) -> Vec<Stretch> {
        let (code, lists) = (&self.entry.code, &self.entry.lists);
        let targets = |inst: &Inst| match inst.op {
            Op::Branch(target) => vec![target as usize],
            Op::BranchIndex { list, count } => {
                let targets = &lists[list as usize..(list + count) as usize];
                targets.iter().map(|target| *target as usize).collect()
            }
            _ => Vec::new(),
        };
        let ends = |op| {
            matches!(
                op,
                Op::Branch(_) | Op::BranchIndex { .. } | Op::Exit | Op::Trap
            )
        };
        let mut begins = vec![false; code.len() + 1];
        begins[0] = true;
        for (pc, inst) in code.iter().enumerate() {
            targets(inst)
                .iter()
                .for_each(|target| begins[*target] = true);
            begins[pc + 1] |= ends(inst.op);
        }
        let firsts: Vec<usize> = (0..code.len()).filter(|pc| begins[*pc]).collect();
        let place = |pc: usize| firsts.partition_point(|first| *first < pc);
        let stretch = |(index, first): (usize, &usize)| {
            let end = firsts.get(index + 1).copied().unwrap_or(code.len());
            let last = &code[end - 1];
            let mut next: Vec<usize> = targets(last).into_iter().map(place).collect();
            if (!ends(last.op) || last.guard != NONE) && end < code.len() {
                next.push(index + 1);
            }
            Stretch {
                code: *first..end,
                next,
                needed: Set::new(),
                needed_after: Set::new(),
                given: Set::new(),
            }
        };
        firsts.iter().enumerate().map(stretch).collect()
    }

    /// Finds the registers that each stretch needs, from the last one to the first one until nothing changes.
    fn needs(&self, stretches: &mut [Stretch]) {
        let empty: Set = vec![0; self.count.div_ceil(64)];
        for stretch in stretches.iter_mut() {
            stretch.needed.clone_from(&empty);
            stretch.needed_after.clone_from(&empty);
            stretch.given = vec![u64::MAX; empty.len()];
        }
        let mut used = Used::default();
        // The registers that a stretch reads before it writes them, and the registers that it writes for all lanes.
        let own: Vec<(Set, Set)> = stretches
            .iter()
            .map(|stretch| {
                let (mut reads, mut writes) = (stretch.needed.clone(), stretch.needed.clone());
                for inst in &self.entry.code[stretch.code.clone()] {
                    self.used(inst, &mut used);
                    for read in &used.reads {
                        if !contains(&writes, *read) {
                            insert(&mut reads, *read);
                        }
                    }
                    if inst.guard == NONE {
                        used.writes
                            .iter()
                            .for_each(|write| insert(&mut writes, *write));
                    }
                }
                (reads, writes)
            })
            .collect();
        let mut changed = true;
        while changed {
            changed = false;
            for index in (0..stretches.len()).rev() {
                let mut after = std::mem::take(&mut stretches[index].needed_after);
                for place in 0..stretches[index].next.len() {
                    let next = stretches[index].next[place];
                    let needed = &stretches[next].needed;
                    after
                        .iter_mut()
                        .zip(needed)
                        .for_each(|(all, more)| *all |= more);
                }
                let (reads, writes) = &own[index];
                let stretch = &mut stretches[index];
                let words = stretch.needed.iter_mut().zip(reads.iter().zip(writes));
                for ((needed, (read, written)), after) in words.zip(&after) {
                    let all = read | after & !written;
                    changed |= all != *needed;
                    *needed = all;
                }
                stretch.needed_after = after;
            }
        }
        let mut changed = true;
        if let Some(first) = stretches.first_mut() {
            first.given.fill(0);
        }
        while changed {
            changed = false;
            for index in 0..stretches.len() {
                for place in 0..stretches[index].next.len() {
                    let next = stretches[index].next[place];
                    for word in 0..own[index].1.len() {
                        let given = stretches[index].given[word] | own[index].1[word];
                        let all = stretches[next].given[word] & given;
                        changed |= all != stretches[next].given[word];
                        stretches[next].given[word] = all;
                    }
                }
            }
        }
    }
}

/// From the first place to the last one where a register's value is needed. An instruction has two places: it reads at
/// the first one and writes at the second one.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: usize,
    last: usize,
}

impl Span {
    const NOWHERE: Span = Span {
        first: usize::MAX,
        last: 0,
    };

    fn add(&mut self, place: usize) {
        self.first = self.first.min(place);
        self.last = self.last.max(place);
    }
}

/// Lets registers share rows.
pub(crate) fn share(entry: &mut Entry) {
    let mut numbers = vec![None; entry.slots.len()];
    let mut count = 0;
    let lists = entry
        .code
        .iter()
        .flat_map(|inst| &entry.lists[list_of(inst.op)]);
    let slots = entry.code.iter().flat_map(|inst| {
        let operands = [inst.dst, inst.dst2, inst.guard].into_iter();
        operands.chain(inst.src)
    });
    for slot in slots.chain(lists.copied()) {
        if entry.slots.get(slot as usize) == Some(&Content::Register)
            && numbers[slot as usize].is_none()
        {
            numbers[slot as usize] = Some(count);
            count += 1;
        }
    }
    let registers = Registers {
        entry,
        numbers,
        count,
    };
    let mut stretches = registers.stretches();
    let fits = stretches.len().saturating_mul(count) < MOST_BITS;
    let rows = fits.then(|| {
        registers.needs(&mut stretches);
        rows(&registers, &stretches)
    });
    let Registers { numbers, .. } = registers;
    if let Some(rows) = rows {
        renumber(entry, &numbers, &rows);
    }
}

/// The row that a register lies in.
#[derive(Clone, Copy, Debug)]
enum Row {
    Shared(usize),
    Own,
}

fn rows(registers: &Registers, stretches: &[Stretch]) -> Vec<Row> {
    let mut spans = vec![Span::NOWHERE; registers.count];
    let mut is_checked = vec![false; registers.count];
    let mut used = Used::default();
    for stretch in stretches {
        let std::ops::Range { start, end } = stretch.code;
        members(&stretch.needed).for_each(|register| spans[register].add(2 * start));
        members(&stretch.needed_after).for_each(|register| spans[register].add(2 * end - 1));
        let mut missing: Set = stretch.given.iter().map(|given| !given).collect();
        for (pc, inst) in stretch.code.clone().zip(&registers.entry.code[start..end]) {
            registers.used(inst, &mut used);
            // Other instructions may write for one lane before they read for the next one.
            let reads_first = matches!(
                inst.op,
                Op::Move | Op::Un(..) | Op::Bin(..) | Op::Tri(..) | Op::Convert { .. }
            );
            for read in &used.reads {
                spans[*read].add(2 * pc + usize::from(!reads_first));
                is_checked[*read] |= contains(&missing, *read);
            }
            for write in &used.writes {
                spans[*write].add(2 * pc + 1);
                if inst.guard == NONE {
                    remove(&mut missing, *write);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..registers.count).collect();
    order.retain(|register| !is_checked[*register]);
    order.sort_by_key(|register| (spans[*register].first, *register));
    let mut rows = vec![Row::Own; registers.count];
    let (mut taken, mut free) = (BinaryHeap::new(), BinaryHeap::new());
    let mut made = 0;
    for register in order {
        let Span { first, last } = spans[register];
        while let Some(Reverse((end, row))) = taken.peek().copied()
            && end < first
        {
            taken.pop();
            free.push(Reverse(row));
        }
        let Reverse(row) = free.pop().unwrap_or_else(|| {
            made += 1;
            Reverse(made - 1)
        });
        taken.push(Reverse((last, row)));
        rows[register] = Row::Shared(row);
    }
    rows
}

/// Gives registers their rows, and leaves out registers that no instruction uses.
fn renumber(entry: &mut Entry, numbers: &[Option<usize>], rows: &[Row]) {
    let shared = rows.iter().map(|row| match row {
        Row::Shared(row) => row + 1,
        Row::Own => 0,
    });
    let shared = shared.max().unwrap_or(0);
    let mut slots = vec![Content::Shared; shared];
    let mut names = vec![String::new(); shared];
    let mut fixed = Vec::new();
    let mut places = vec![NONE; entry.slots.len()];
    for (slot, content) in entry.slots.iter().enumerate() {
        places[slot] = match (content, numbers[slot].map(|number| rows[number])) {
            (Content::Register, None) => continue,
            (_, Some(Row::Shared(row))) => row as Slot,
            (content, _) if content.is_fixed() => {
                fixed.push(*content);
                (FIXED + fixed.len() - 1) as Slot
            }
            _ => {
                slots.push(*content);
                names.push(std::mem::take(&mut entry.slot_names[slot]));
                slots.len() as Slot - 1
            }
        };
    }
    for inst in &mut entry.code {
        let operands = [&mut inst.dst, &mut inst.dst2, &mut inst.guard];
        let operands = operands.into_iter().chain(&mut inst.src);
        inst.tracked = false;
        for slot in operands.chain(&mut entry.lists[list_of(inst.op)]) {
            if *slot != NONE {
                *slot = places[*slot as usize];
                let content = slots.get(*slot as usize);
                inst.tracked |= matches!(content, Some(Content::Register | Content::Sink));
            }
        }
    }
    (entry.slots, entry.slot_names, entry.fixed) = (slots, names, fixed);
}
