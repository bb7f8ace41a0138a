//! Barriers of blocks, and operations among the lanes of a warp.

use crate::alu::{LANES, lanes};
use crate::block::{Block, Group, Waiting, Why};
use crate::clock::Arrivals;
use crate::error::{Fault, FaultKind};
use crate::exec::Flow;
use crate::launch::Launch;
use crate::op::{BarrierMode, Inst, NONE, Op, Rmw, Shuffle, Ty, Vote, WarpAlignment, WarpOp};

/// One of a block's sixteen barriers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    /// How many threads open it, once the first has arrived.
    expected: u32,
    arrived: u32,
    arrivals: Arrivals,
}

fn bad<T>(message: String) -> Result<T, Fault> {
    Err(Fault::new(FaultKind::BadBarrier, message))
}

fn divergent<T>(message: String) -> Result<T, Fault> {
    Err(Fault::new(FaultKind::DivergentBarrier, message))
}

impl Launch<'_> {
    /// Lanes arrive at a barrier, and wait unless they only announce themselves.
    pub(crate) fn barrier(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        alignment: WarpAlignment,
        mode: BarrierMode,
    ) -> Result<Flow, Fault> {
        let active = self.at.active;
        let Some(number) = block.uniform(warp, inst.src[0], active) else {
            return bad("lanes of a warp name different barriers".to_string());
        };
        let Some(barrier) = block.barriers.get(number as usize) else {
            return bad(format!("there is no barrier {number}, the last is 15"));
        };
        let expected = self.expected(block, warp, inst)?;
        if barrier.arrived > 0 && u64::from(barrier.expected) != expected {
            let already = barrier.expected;
            return bad(format!(
                "barrier {number} waits for {already} threads, not {expected}"
            ));
        }
        if expected > u64::from(block.live) {
            let live = block.live;
            return divergent(format!(
                "barrier {number} waits for {expected} threads, but only {live} have not ended"
            ));
        }
        if alignment == WarpAlignment::Aligned {
            self.check_aligned(block, warp)?;
        }
        let arrived = barrier.arrived + active.count_ones();
        if u64::from(arrived) > expected {
            return bad(format!(
                "barrier {number}: {arrived} threads arrive, {expected} are expected"
            ));
        }
        let pc = self.at.pc;
        let barrier = &mut block.barriers[number as usize];
        (barrier.expected, barrier.arrived) = (expected as u32, arrived);
        let mut arrivals = std::mem::take(&mut barrier.arrivals);
        self.arrive(block, warp, active, &mut arrivals);
        self.tick(block, warp);
        block.barriers[number as usize].arrivals = arrivals;
        if mode == BarrierMode::Sync {
            let why = Why::Barrier(number as u32);
            let group = Group { pc, mask: active };
            block.warps[warp].waiting.push(Waiting {
                group,
                why,
                alignment,
            });
        }
        if u64::from(arrived) == expected {
            self.open(block, number as u32);
        }
        Ok(match mode {
            BarrierMode::Sync => Flow::Left,
            BarrierMode::Arrive => Flow::Next,
        })
    }

    /// The number of threads that a barrier waits for.
    ///
    /// # Errors
    /// Lanes differ, or the threads are no whole warps.
    fn expected(&self, block: &Block, warp: usize, inst: &Inst) -> Result<u64, Fault> {
        let expected = match inst.src[1] {
            NONE => return Ok(u64::from(self.shape.threads)),
            slot => block.uniform(warp, slot, self.at.active),
        };
        match expected {
            None => bad("lanes of a warp name different numbers of threads".to_string()),
            Some(expected) if expected == 0 || expected % LANES as u64 != 0 => bad(format!(
                "{expected} threads: a multiple of {LANES} is needed"
            )),
            Some(expected) => Ok(expected),
        }
    }

    /// Whether all lanes of a warp come to one barrier, as aligned ones demand.
    fn check_aligned(&self, block: &Block, warp: usize) -> Result<(), Fault> {
        let state = &block.warps[warp];
        if state.exited != 0 {
            let lane = state.exited.trailing_zeros();
            return divergent(format!("lane {lane} of the warp has ended"));
        }
        let mut waiting = state.waiting.iter();
        let elsewhere = waiting.find(|other| {
            other.alignment == WarpAlignment::Aligned && other.group.pc != self.at.pc
        });
        let Some(other) = elsewhere else {
            return Ok(());
        };
        let line = self.entry.code[other.group.pc as usize].line;
        let lane = other.group.mask.trailing_zeros();
        divergent(format!(
            "lane {lane} of the warp waits at line {line} instead"
        ))
    }

    /// All have arrived: the threads that wait go on, and know the earlier accesses of all.
    fn open(&mut self, block: &mut Block, number: u32) {
        let barrier = std::mem::take(&mut block.barriers[number as usize]);
        let view = self.meet(block, &barrier.arrivals);
        for warp in 0..block.warps.len() {
            let mut index = 0;
            while let Some(waiting) = block.warps[warp].waiting.get(index).copied() {
                if waiting.why != Why::Barrier(number) {
                    index += 1;
                    continue;
                }
                let state = &mut block.warps[warp];
                state.waiting.swap_remove(index);
                let Group { pc, mask } = waiting.group;
                state.groups.push(Group { pc: pc + 1, mask });
                if let Some(view) = &view {
                    self.learn(block, warp, mask, view);
                }
            }
        }
        self.counts.barriers += 1;
    }

    /// After threads have ended: barriers that wait for more than are left never open.
    pub(crate) fn check_barriers_after_exit(&mut self, block: &Block) -> Result<(), Fault> {
        for (number, barrier) in block.barriers.iter().enumerate() {
            if barrier.arrived > 0 && barrier.expected > block.live {
                let (expected, arrived) = (barrier.expected, barrier.arrived);
                let message = format!(
                    "the thread ends, but barrier {number} waits for {expected} threads; {arrived} have arrived{}",
                    self.where_waiting(block, number as u32)
                );
                return Err(Fault::new(FaultKind::DivergentBarrier, message));
            }
        }
        Ok(())
    }

    fn where_waiting(&self, block: &Block, number: u32) -> String {
        let mut waiting = block.warps.iter().flat_map(|warp| &warp.waiting);
        match waiting.find(|waiting| waiting.why == Why::Barrier(number)) {
            Some(waiting) => {
                let line = self.entry.code[waiting.group.pc as usize].line;
                format!(", some at line {line}")
            }
            None => String::new(),
        }
    }

    /// Lanes of a warp meet at an instruction; when all its members are there, it is executed for all.
    pub(crate) fn warp_op(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        op: WarpOp,
    ) -> Result<Flow, Fault> {
        let bad = |message: String| Err(Fault::new(FaultKind::DivergentBarrier, message));
        let active = self.at.active;
        let Some(members) = block.uniform(warp, inst.src[3], active) else {
            return bad("lanes that execute it together name different lanes".to_string());
        };
        let state = &mut block.warps[warp];
        let members = members as u32 & state.lanes;
        if active & !members != 0 {
            self.at.lane = (active & !members).trailing_zeros();
            return bad("a lane executes it that is not named".to_string());
        }
        if members & state.exited != 0 {
            let lane = (members & state.exited).trailing_zeros();
            return bad(format!("lane {lane} is named, but has ended"));
        }
        let pc = self.at.pc;
        // Barriers of a warp may be different instructions, other operations may not.
        let joins = |waiting: &Waiting, code: &[Inst]| {
            waiting.why == Why::Warp { members }
                && (waiting.group.pc == pc
                    || op == WarpOp::Barrier
                        && code[waiting.group.pc as usize].op == Op::Warp(WarpOp::Barrier))
        };
        let code = &self.entry.code;
        let there = state.waiting.iter().filter(|waiting| joins(waiting, code));
        let together = there.fold(active, |all, waiting| all | waiting.group.mask);
        if together != members {
            let group = Group { pc, mask: active };
            state.waiting.push(Waiting {
                group,
                why: Why::Warp { members },
                alignment: WarpAlignment::Unaligned,
            });
            return Ok(Flow::Left);
        }
        let mut met: Vec<Group> = Vec::new();
        state.waiting.retain(|waiting| {
            let joined = joins(waiting, code);
            if joined {
                met.push(waiting.group);
            }
            !joined
        });
        self.together(block, warp, inst, op, members)?;
        let slots = [inst.dst, inst.dst2]
            .into_iter()
            .filter(|slot| *slot != NONE);
        slots.for_each(|slot| block.warps[warp].defined[slot as usize] |= members);
        let groups = met.iter().map(|group| Group {
            pc: group.pc + 1,
            mask: group.mask,
        });
        block.warps[warp].groups.extend(groups);
        Ok(Flow::Next)
    }

    fn together(
        &mut self,
        block: &mut Block,
        warp: usize,
        inst: &Inst,
        op: WarpOp,
        members: u32,
    ) -> Result<(), Fault> {
        if op == WarpOp::Barrier {
            let mut arrivals = Arrivals::default();
            self.arrive(block, warp, members, &mut arrivals);
            self.tick(block, warp);
            if let Some(view) = self.meet(block, &arrivals) {
                self.learn(block, warp, members, &view);
            }
            return Ok(());
        }
        let state = &mut block.warps[warp];
        let row = |slot: u32| match slot {
            NONE => [0; LANES],
            slot => state.rows[slot as usize],
        };
        let values = row(inst.src[0]);
        match op {
            WarpOp::Barrier => {}
            WarpOp::Shuffle(mode) => {
                let (second, third) = (row(inst.src[1]), row(inst.src[2]));
                for lane in lanes(members) {
                    self.at.lane = lane as u32;
                    let (from, inside) = source(mode, lane as u32, second[lane], third[lane]);
                    if members >> from & 1 == 0 {
                        let message = format!("lane {from} is read, but does not take part");
                        return Err(Fault::new(FaultKind::Unsupported, message));
                    }
                    state.rows[inst.dst as usize][lane] = values[from as usize];
                    if inst.dst2 != NONE {
                        state.rows[inst.dst2 as usize][lane] = u64::from(inside);
                    }
                }
            }
            WarpOp::Vote(vote, polarity) => {
                let ballot = lanes(members).fold(0, |ballot, lane| {
                    ballot | u32::from((values[lane] == 1) != polarity.is_negated()) << lane
                });
                let result = match vote {
                    Vote::All => u64::from(ballot == members),
                    Vote::Any => u64::from(ballot != 0),
                    Vote::Uniform => u64::from(ballot == 0 || ballot == members),
                    Vote::Ballot => u64::from(ballot),
                };
                lanes(members).for_each(|lane| state.rows[inst.dst as usize][lane] = result);
            }
            WarpOp::Reduce(rmw, ty) => {
                let all = lanes(members).map(|lane| values[lane]);
                let Some(result) = all.reduce(|a, b| combine(rmw, ty, a, b)) else {
                    return Ok(());
                };
                lanes(members).for_each(|lane| state.rows[inst.dst as usize][lane] = result);
            }
            WarpOp::Elect => {
                let leader = members.trailing_zeros();
                for lane in lanes(members) {
                    state.rows[inst.dst as usize][lane] = u64::from(leader);
                    if inst.dst2 != NONE {
                        state.rows[inst.dst2 as usize][lane] = u64::from(lane as u32 == leader);
                    }
                }
            }
        }
        Ok(())
    }
}

/// The lane that a shuffle reads, and whether it lies in the segment; `clamp` has the segment's mask in bits 8 to 12.
fn source(mode: Shuffle, lane: u32, offset: u64, clamp: u64) -> (u32, bool) {
    let (offset, clamp) = (offset as u32 & 31, clamp as u32);
    let segment = clamp >> 8 & 31;
    let most = lane & segment | clamp & 31 & !segment;
    let from = match mode {
        Shuffle::Up => lane.wrapping_sub(offset),
        Shuffle::Down => lane + offset,
        Shuffle::Butterfly => lane ^ offset,
        Shuffle::Index => lane & segment | offset & !segment,
    };
    let inside = match mode {
        Shuffle::Up => from as i32 >= most as i32,
        _ => from <= most,
    };
    (if inside { from & 31 } else { lane }, inside)
}

/// The value that an operation on memory stores in place of the old one.
pub(crate) fn combine(rmw: Rmw, ty: Ty, old: u64, value: u64) -> u64 {
    let signed = |value| crate::op::sign_extend(value, ty.bits());
    match rmw {
        Rmw::Add if ty == Ty::F32 => {
            u64::from((f32::from_bits(old as u32) + f32::from_bits(value as u32)).to_bits())
        }
        Rmw::Add if ty == Ty::F64 => (f64::from_bits(old) + f64::from_bits(value)).to_bits(),
        Rmw::Add => old.wrapping_add(value) & ty.mask(),
        Rmw::Min if ty.is_signed() => {
            if signed(value) < signed(old) {
                value
            } else {
                old
            }
        }
        Rmw::Max if ty.is_signed() => {
            if signed(value) > signed(old) {
                value
            } else {
                old
            }
        }
        Rmw::Min => old.min(value),
        Rmw::Max => old.max(value),
        Rmw::Inc => {
            if old >= value {
                0
            } else {
                old + 1
            }
        }
        Rmw::Dec => {
            if old == 0 || old > value {
                value
            } else {
                old - 1
            }
        }
        Rmw::And => old & value,
        Rmw::Or => old | value,
        Rmw::Xor => old ^ value,
        Rmw::Exchange | Rmw::CompareExchange => value,
    }
}
