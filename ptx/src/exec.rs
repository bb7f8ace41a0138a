//! Execution of a warp: control, and instructions handed to where they belong.

use crate::alu::{self, Row, has_vectors, lanes};
use crate::block::{BUSY, Block, Group, Warp};
use crate::error::{Fault, FaultKind};
use crate::launch::Launch;
use crate::op::{Inst, NONE, Op, Polarity, Slot};
use crate::poll::LOOP;

/// The most different strong loads of a turn.
const LOOKS: usize = 32;

/// How a warp's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It may go on, and works.
    Spent,
    /// It tested something that others have to change, or did so not long ago.
    Polled,
    /// It waits, or has ended.
    Stopped,
}

/// Where lanes go after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    /// The next one, after others had their turn.
    Yield,
    /// The next one; after others had their turn if the warp comes around to a value that it has looked at.
    Looked,
    /// The same one again, after others had their turn.
    Again,
    /// The active lanes jump.
    Jump(u32),
    /// The active lanes left the group: they wait, have ended or jumped each its way.
    Left,
}

/// Where a group has come.
struct Halt {
    pc: u32,
    /// Instructions that it has executed.
    executed: u32,
    /// The lanes that execute the instruction there, which is counted already; none at the end of a turn.
    active: u32,
}

impl Launch<'_> {
    /// Lets a warp execute at most `quantum` instructions.
    pub(crate) fn turn(
        &mut self,
        block: &mut Block,
        warp: usize,
        quantum: u32,
    ) -> Result<Turn, Fault> {
        #[cfg(target_arch = "x86_64")]
        if has_vectors() {
            // SAFETY: the processor has the features.
            return unsafe { self.turn_avx2(block, warp, quantum) };
        }
        self.turn_any::<{ !cfg!(target_arch = "x86_64") }>(block, warp, quantum)
    }

    /// The same code for processors where multiply-adds are instructions and rows a few registers.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2,popcnt,lzcnt")]
    fn turn_avx2(&mut self, block: &mut Block, warp: usize, quantum: u32) -> Result<Turn, Fault> {
        self.turn_any::<true>(block, warp, quantum)
    }

    #[inline(always)]
    fn turn_any<const VECTORS: bool>(
        &mut self,
        block: &mut Block,
        warp: usize,
        quantum: u32,
    ) -> Result<Turn, Fault> {
        let entry = self.entry;
        let (mut looked, mut looks) = ([0; LOOKS], 0);
        let mut executed = 0;
        while executed < quantum {
            let state = &mut block.warps[warp];
            let most = match state.groups.len() {
                0 => return Ok(Turn::Stopped),
                1 => {
                    (state.current, state.keep) = (0, false);
                    quantum - executed
                }
                _ => {
                    pick(state);
                    1
                }
            };
            let current = state.current;
            let halt = self.arithmetic::<VECTORS>(state, state.groups[current], most)?;
            executed += halt.executed;
            if halt.active == 0 {
                state.groups[current].pc = halt.pc;
                continue;
            }
            let Halt { pc, active, .. } = halt;
            let mask = state.groups[current].mask;
            state.groups[current].pc = pc;
            (self.at.pc, self.at.lane) = (pc, mask.trailing_zeros());
            self.at.active = active;
            let flow = self.step(block, warp, &entry.code[pc as usize])?;
            let groups = &mut block.warps[warp].groups;
            match flow {
                Flow::Next => groups[current].pc = pc + 1,
                Flow::Again => {
                    self.polled(block, warp);
                    return Ok(Turn::Polled);
                }
                Flow::Looked if looks < LOOKS && !looked[..looks].contains(&pc) => {
                    groups[current].pc = pc + 1;
                    block.warps[warp].since_poll = 0;
                    looked[looks] = pc;
                    looks += 1;
                }
                Flow::Yield | Flow::Looked => {
                    groups[current].pc = pc + 1;
                    block.warps[warp].poll.repeated &= executed <= LOOP;
                    self.polled(block, warp);
                    return Ok(Turn::Polled);
                }
                Flow::Jump(target) if active == mask => groups[current].pc = target,
                Flow::Jump(target) => {
                    groups[current] = Group {
                        pc: pc + 1,
                        mask: mask & !active,
                    };
                    groups.push(Group {
                        pc: target,
                        mask: active,
                    });
                    self.counts.divergences += 1;
                }
                Flow::Left if active == mask => {
                    groups.swap_remove(current);
                }
                Flow::Left => {
                    groups[current] = Group {
                        pc: pc + 1,
                        mask: mask & !active,
                    }
                }
            }
            executed += 1;
        }
        let state = &mut block.warps[warp];
        state.since_poll = state.since_poll.saturating_add(quantum);
        state.forget_poll();
        Ok(if state.since_poll >= BUSY {
            Turn::Spent
        } else {
            Turn::Polled
        })
    }

    /// Executes at most this number of instructions as long as they are arithmetic, jumps of a whole group, or disabled
    /// by their guards.
    #[inline(always)]
    fn arithmetic<const VECTORS: bool>(
        &mut self,
        state: &mut Warp,
        group: Group,
        most: u32,
    ) -> Result<Halt, Fault> {
        let entry = self.entry;
        let Group { mut pc, mask } = group;
        for executed in 0..most {
            let Some(inst) = entry.code.get(pc as usize) else {
                self.at.pc = pc;
                return Err(Fault::new(
                    FaultKind::Unsupported,
                    "control ran past the end",
                ));
            };
            let mut active = mask;
            if inst.guard != NONE {
                if inst.tracked {
                    self.at.pc = pc;
                    self.defined(state, inst.guard, mask)?;
                }
                let truth = truth(&state.rows[inst.guard as usize]);
                active = match inst.polarity {
                    Polarity::Plain => mask & truth,
                    Polarity::Negated => mask & !truth,
                };
            }
            self.steps += 1;
            let count = &mut self.executed[usize::from(inst.name)];
            count.warps += 1;
            count.threads += u64::from(active.count_ones());
            if active == 0 {
                // Lanes that skip it go on.
                pc += 1;
                continue;
            }
            if let Op::Branch(target) = inst.op
                && active == mask
            {
                pc = target;
                continue;
            }
            if inst.tracked {
                self.at.pc = pc;
                self.sources_defined(state, inst, active)?;
            }
            if !alu::execute::<VECTORS>(&mut state.rows, &entry.lists, inst, active) {
                return Ok(Halt {
                    pc,
                    executed,
                    active,
                });
            }
            if inst.tracked {
                self.define_results(state, inst, active);
            }
            pc += 1;
        }
        Ok(Halt {
            pc,
            executed: most,
            active: 0,
        })
    }

    /// Another group gets the next turn, for this one may wait for it.
    fn polled(&mut self, block: &mut Block, warp: usize) {
        let state = &mut block.warps[warp];
        state.since_poll = 0;
        self.counts.polls += 1;
        if state.groups.len() > 1 {
            state.current = (state.current + 1) % state.groups.len();
            state.keep = true;
        }
    }

    /// Executes an instruction that is no arithmetic, for the active lanes.
    #[inline(always)]
    fn step(&mut self, block: &mut Block, warp: usize, inst: &Inst) -> Result<Flow, Fault> {
        let active = self.at.active;
        let flow = match inst.op {
            Op::Branch(target) => Flow::Jump(target),
            Op::BranchIndex { list, count } => self.branch(block, warp, inst, list, count)?,
            Op::Exit => self.exit(block, warp, active)?,
            Op::Trap => return Err(Fault::new(FaultKind::Trap, "the kernel gave up")),
            Op::Clock => {
                let now = self.steps;
                lanes(active)
                    .for_each(|lane| block.warps[warp].rows[inst.dst as usize][lane] = now);
                Flow::Next
            }
            Op::ActiveMask => {
                let row = &mut block.warps[warp].rows[inst.dst as usize];
                lanes(active).for_each(|lane| row[lane] = u64::from(active));
                Flow::Next
            }
            Op::Load(access) => self.load(block, warp, inst, &access)?,
            Op::Store(access) => self.store(block, warp, inst, &access)?,
            Op::Atomic(rmw, access) => self.atomic(block, warp, inst, rmw, &access)?,
            Op::Barrier { alignment, mode } => self.barrier(block, warp, inst, alignment, mode)?,
            Op::Warp(op) => self.warp_op(block, warp, inst, op)?,
            Op::ClusterArrive { alignment, order } => {
                self.cluster_arrive(block, warp, alignment, order)?
            }
            Op::ClusterWait { alignment } => self.cluster_wait(block, warp, alignment)?,
            Op::MapRank => self.map_rank(block, warp, inst)?,
            Op::StoreAsync(access) => self.store_async(block, warp, inst, &access)?,
            Op::Fence(scope) => {
                self.fence(block, warp, scope);
                Flow::Next
            }
            Op::FenceProxy => {
                self.fence_proxy(block, warp);
                Flow::Next
            }
            Op::MBarrier(op) => self.barrier_object(block, warp, inst, op)?,
            Op::Copy(copy) => self.copy(block, warp, inst, copy)?,
            Op::CopiesArrive => self.copies_arrive(block, warp, inst)?,
            Op::Commit(kind) => self.commit(block, warp, kind),
            Op::Wait(wait) => self.wait(block, warp, inst, wait)?,
            Op::Sleep => Flow::Yield,
            // The rest was executed as arithmetic, or changes nothing that is interpreted.
            _ => Flow::Next,
        };
        if inst.tracked {
            self.define_results(&mut block.warps[warp], inst, active);
        }
        Ok(flow)
    }

    /// Checks that the sources of an instruction have values in these lanes.
    fn sources_defined(&mut self, warp: &Warp, inst: &Inst, mask: u32) -> Result<(), Fault> {
        for slot in inst.src {
            if slot != NONE {
                self.defined(warp, slot, mask)?;
            }
        }
        match inst.op {
            Op::Pack { count, list, .. } => self.list_defined(warp, list, count, mask),
            _ => Ok(()),
        }
    }

    /// The results of an instruction have values in these lanes from now on.
    fn define_results(&self, warp: &mut Warp, inst: &Inst, mask: u32) {
        for slot in [inst.dst, inst.dst2] {
            if slot != NONE {
                warp.defined[slot as usize] |= mask;
            }
        }
        if let Op::Unpack { count, list, .. } = inst.op {
            self.define_list(warp, list, count, mask);
        }
    }

    /// Checks that the registers of a list have values in these lanes.
    pub(crate) fn list_defined(
        &mut self,
        warp: &Warp,
        list: u32,
        count: u8,
        mask: u32,
    ) -> Result<(), Fault> {
        let list = list as usize..list as usize + usize::from(count);
        for slot in &self.entry.lists[list] {
            self.defined(warp, *slot, mask)?;
        }
        Ok(())
    }

    /// The registers of a list have values in these lanes from now on.
    pub(crate) fn define_list(&self, warp: &mut Warp, list: u32, count: u8, mask: u32) {
        let list = list as usize..list as usize + usize::from(count);
        for slot in &self.entry.lists[list] {
            warp.defined[*slot as usize] |= mask;
        }
    }

    fn defined(&mut self, warp: &Warp, slot: Slot, mask: u32) -> Result<(), Fault> {
        // Rows that all warps share have values.
        let defined = warp.defined.get(slot as usize);
        let missing = mask & !defined.unwrap_or(&u32::MAX);
        if missing == 0 {
            return Ok(());
        }
        self.at.lane = missing.trailing_zeros();
        let name = self.entry.slot_name(slot);
        let message = format!("`{name}` is read before it is written");
        Err(Fault::new(FaultKind::UninitialisedRegister, message))
    }

    fn branch(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        list: u32,
        count: u32,
    ) -> Result<Flow, Fault> {
        let active = self.at.active;
        let mut targets: Vec<Group> = Vec::new();
        for lane in lanes(active) {
            self.at.lane = lane as u32;
            let index = block.warps[warp].rows[inst.src[0] as usize][lane];
            if index >= u64::from(count) {
                let message = format!("entry {index} of a table of {count} labels");
                return Err(Fault::new(FaultKind::OutOfBounds, message));
            }
            let pc = self.entry.lists[list as usize + index as usize];
            match targets.iter_mut().find(|group| group.pc == pc) {
                Some(group) => group.mask |= 1 << lane,
                None => targets.push(Group {
                    pc,
                    mask: 1 << lane,
                }),
            }
        }
        self.counts.divergences += u64::from(targets.len() > 1);
        block.warps[warp].groups.append(&mut targets);
        Ok(Flow::Left)
    }

    fn exit(&mut self, block: &mut Block, warp: usize, active: u32) -> Result<Flow, Fault> {
        self.left(block, warp, active)?;
        block.warps[warp].exited |= active;
        block.live -= active.count_ones();
        self.progress = true;
        self.check_barriers_after_exit(block)?;
        self.cluster_left(block, active);
        Ok(Flow::Left)
    }
}

/// The lanes in which a predicate holds.
#[inline(always)]
fn truth(row: &Row) -> u32 {
    let lanes = row.iter().enumerate();
    lanes.fold(0, |bits, (lane, value)| bits | (*value as u32 & 1) << lane)
}

/// Chooses the group that runs next: lanes that are at the same instruction join, and lanes that are least far go
/// first, so that all meet again where ways join.
fn pick(warp: &mut Warp) {
    if warp.current >= warp.groups.len() {
        (warp.current, warp.keep) = (0, false);
    }
    if !warp.keep {
        let least = (0..warp.groups.len()).min_by_key(|index| warp.groups[*index].pc);
        warp.current = least.unwrap_or(0);
    }
    let pc = warp.groups[warp.current].pc;
    let mut index = 0;
    while index < warp.groups.len() {
        if index == warp.current || warp.groups[index].pc != pc {
            index += 1;
            continue;
        }
        let mask = warp.groups.swap_remove(index).mask;
        if warp.current == warp.groups.len() {
            warp.current = index;
        }
        warp.groups[warp.current].mask |= mask;
        warp.keep = false;
    }
}
