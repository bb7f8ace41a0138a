//! Vector clocks: the accesses that a thread knows to have happened before its present one (Lamport 1978; Mattern
//! 1989).
//!
//! Copies in bulk see memory through a proxy of their own: a thread also knows the writes that a proxy fence has made
//! visible to it.
//!
//! Every warp has a time, which grows when one of its threads publishes its accesses. A thread has for each other
//! thread a time up to which that one's accesses come before its own. Within a block all times are kept; times of other
//! blocks are kept only if a value of them was read. Threads that met at a barrier share their knowledge.

use std::rc::Rc;

#[cfg(target_arch = "x86_64")]
use crate::alu::has_vectors;
use crate::alu::{LANES, lanes};

/// Times of the threads of a block, warp after warp, and of its barrier objects after them: one more warp, in which
/// each lane stands for the asynchronous copies that one object counts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Times {
    times: Vec<u32>,
    /// The least time of the threads.
    floor: u32,
    /// The least time of each warp.
    floors: Floors,
}

/// More than the warps of a block with that of its objects, a power of two.
pub(crate) const MOST_WARPS: usize = 64;

/// A time of each warp of a block.
pub(crate) type Floors = [u32; MOST_WARPS];

/// Of each warp nothing.
pub(crate) static NO_FLOORS: Floors = [0; MOST_WARPS];

impl Times {
    fn new(times: Vec<u32>) -> Rc<Times> {
        let mut all = Times {
            times,
            floor: 0,
            floors: NO_FLOORS,
        };
        (0..all.warps()).for_each(|warp| all.find_floor(warp));
        all.find_least_floor();
        Rc::new(all)
    }

    /// The same with later times of some lanes of warps.
    fn with(&self, stamps: &[Presence]) -> Rc<Times> {
        let mut all = Times {
            times: self.times.clone(),
            floor: 0,
            floors: self.floors,
        };
        for stamp in stamps {
            let first = stamp.warp as usize * LANES;
            let Some(times) = all.times.get_mut(first..first + LANES) else {
                continue;
            };
            for lane in lanes(stamp.lanes) {
                times[lane] = times[lane].max(stamp.time);
            }
            all.find_floor(stamp.warp as usize);
        }
        all.find_least_floor();
        Rc::new(all)
    }

    /// The number of warps, with the one of the objects.
    fn warps(&self) -> usize {
        (self.times.len() / LANES).min(MOST_WARPS)
    }

    fn find_floor(&mut self, warp: usize) {
        let times = &self.times[warp * LANES..(warp + 1) * LANES];
        self.floors[warp] = times.iter().fold(u32::MAX, |least, time| least.min(*time));
    }

    fn find_least_floor(&mut self) {
        let threads = &self.floors[..self.warps().saturating_sub(1)];
        let least = threads
            .iter()
            .fold(u32::MAX, |least, floor| least.min(*floor));
        self.floor = if threads.is_empty() { 0 } else { least };
    }

    /// Whether all these lanes are known at this time.
    pub(crate) fn covers(&self, warp: u32, lanes_mask: u32, time: u32) -> bool {
        let first = warp as usize * LANES;
        if time <= self.floors[warp as usize % MOST_WARPS] {
            return true;
        }
        lanes(lanes_mask).all(|lane| {
            self.times
                .get(first + lane)
                .is_some_and(|known| *known >= time)
        })
    }

    /// The later time of each thread; one of the two where it is that one already, so that equal times are shared.
    fn join(this: &Rc<Times>, other: &Rc<Times>) -> Rc<Times> {
        if Rc::ptr_eq(this, other) {
            return Rc::clone(this);
        }
        let (below, above) = order(&this.times, &other.times);
        if above {
            return Rc::clone(this);
        }
        if below {
            return Rc::clone(other);
        }
        let pairs = this.times.iter().zip(&other.times);
        Times::new(pairs.map(|(this, other)| *this.max(other)).collect())
    }
}

/// Whether no time of the first list is later than in the second, and the reverse.
fn order(this: &[u32], other: &[u32]) -> (bool, bool) {
    #[cfg(target_arch = "x86_64")]
    if has_vectors() {
        // SAFETY: the processor has the features.
        return unsafe { order_avx2(this, other) };
    }
    order_any(this, other)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn order_avx2(this: &[u32], other: &[u32]) -> (bool, bool) {
    order_any(this, other)
}

/// The lists are compared in chunks, which the compiler turns into vector instructions.
#[inline(always)]
fn order_any(this: &[u32], other: &[u32]) -> (bool, bool) {
    let (mut below, mut above) = (true, true);
    for (this, other) in this.chunks_exact(LANES).zip(other.chunks_exact(LANES)) {
        let (mut later, mut earlier) = (0, 0);
        for (this, other) in this.iter().zip(other) {
            later |= u32::from(this > other);
            earlier |= u32::from(this < other);
        }
        below &= later == 0;
        above &= earlier == 0;
        if !below && !above {
            break;
        }
    }
    (below, above)
}

/// The latest times of several lists. A list is made only where no single one of them has them all.
struct Latest {
    shared: Rc<Times>,
    /// The times, where they differ from the times of `shared`.
    times: Vec<u32>,
}

impl Latest {
    fn new(first: &Rc<Times>) -> Latest {
        Latest {
            shared: Rc::clone(first),
            times: Vec::new(),
        }
    }

    fn add(&mut self, other: &Rc<Times>) {
        if self.times.is_empty() {
            if Rc::ptr_eq(&self.shared, other) {
                return;
            }
            match order(&self.shared.times, &other.times) {
                (_, true) => return,
                (true, false) => {
                    self.shared = Rc::clone(other);
                    return;
                }
                (false, false) => self.times.clone_from(&self.shared.times),
            }
        }
        for (latest, other) in self.times.iter_mut().zip(&other.times) {
            *latest = (*latest).max(*other);
        }
    }

    fn finish(self) -> Rc<Times> {
        if self.times.is_empty() {
            self.shared
        } else {
            Times::new(self.times)
        }
    }
}

type Others = Rc<Vec<(u32, Rc<Times>)>>;

/// The known times of the own block and of others, ascending by block.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    own: Rc<Times>,
    others: Others,
}

impl Known {
    /// The known times of a block, seen from block `own`.
    fn times(&self, own: u32, block: u32) -> Option<&Times> {
        if own == block {
            return Some(&self.own);
        }
        let found = self
            .others
            .binary_search_by_key(&block, |(block, _)| *block);
        found.ok().map(|index| &*self.others[index].1)
    }

    fn same(&self, other: &Known) -> bool {
        Rc::ptr_eq(&self.own, &other.own) && Rc::ptr_eq(&self.others, &other.others)
    }
}

/// The knowledge of a thread. Most threads of a block have the same, and share it.
#[derive(Clone, Debug)]
pub(crate) struct View {
    parts: Rc<Parts>,
}

#[derive(Clone, Debug)]
struct Parts {
    known: Known,
    /// The part of it that copies in bulk see.
    bulk: Known,
    /// The known times of accesses to shared memory, where these can be later: in clusters.
    near: Option<Known>,
    /// The least time up to which all threads of the own block are known.
    floor: u32,
}

/// The part of a view that an access depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// Of accesses to global memory.
    Global,
    /// Of accesses to shared memory.
    Shared,
    /// Of copies in bulk.
    Bulk,
}

impl View {
    /// No knowledge, in a block of `warps` warps.
    pub(crate) fn new(warps: u32) -> View {
        let times = vec![0; (warps as usize + 1) * LANES];
        let known = Known {
            own: Times::new(times),
            others: Rc::default(),
        };
        View::of(known.clone(), known, None)
    }

    fn of(known: Known, bulk: Known, near: Option<Known>) -> View {
        let least = near.as_ref().map_or(u32::MAX, |near| near.own.floor);
        let floor = known.own.floor.min(least);
        let parts = Rc::new(Parts {
            known,
            bulk,
            near,
            floor,
        });
        View { parts }
    }

    /// The same in a cluster: the known times of accesses to shared memory may become later.
    pub(crate) fn in_cluster(self) -> View {
        let Parts { known, bulk, .. } = &*self.parts;
        View::of(known.clone(), bulk.clone(), Some(known.clone()))
    }

    /// Only the known times of accesses to shared memory.
    pub(crate) fn of_shared(&self, warps: u32) -> View {
        let nothing = View::new(warps).parts;
        let near = self.parts.near.clone();
        View::of(nothing.known.clone(), nothing.bulk.clone(), near)
    }

    /// The known times of a block, seen from block `own`.
    pub(crate) fn times(&self, own: u32, block: u32, sight: Sight) -> Option<&Times> {
        let parts = &self.parts;
        let known = match sight {
            Sight::Global => &parts.known,
            Sight::Shared => parts.near.as_ref().unwrap_or(&parts.known),
            Sight::Bulk => &parts.bulk,
        };
        known.times(own, block)
    }

    /// The least time up to which all threads of the own block are known.
    pub(crate) fn floor(&self) -> u32 {
        self.parts.floor
    }

    /// The least times up to which each warp of the own block is known.
    pub(crate) fn floors(&self) -> &Floors {
        match self.parts.near {
            Some(_) => &NO_FLOORS,
            None => &self.parts.known.own.floors,
        }
    }

    /// Whether two are one.
    #[inline(always)]
    pub(crate) fn is(&self, other: &View) -> bool {
        Rc::ptr_eq(&self.parts, &other.parts)
    }

    pub(crate) fn same(&self, other: &View) -> bool {
        Rc::ptr_eq(&self.parts, &other.parts) || self.parts.same(&other.parts)
    }

    /// Makes all known accesses visible to copies in bulk, with the thread's own.
    pub(crate) fn fence_proxy(&mut self, published: &Published) {
        let Parts { known, near, .. } = &*self.parts;
        let bulk = published.view.parts.known.clone();
        *self = View::of(known.clone(), bulk, near.clone());
    }
}

impl Parts {
    fn same(&self, other: &Parts) -> bool {
        self.consist_of(&other.known, &other.bulk, other.near.as_ref())
    }

    fn consist_of(&self, known: &Known, bulk: &Known, near: Option<&Known>) -> bool {
        let near = match (&self.near, near) {
            (Some(near), Some(other)) => near.same(other),
            (near, other) => near.is_none() && other.is_none(),
        };
        near && self.known.same(known) && self.bulk.same(bulk)
    }
}

/// The knowledge that a thread of a block has published.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) block: u32,
    pub(crate) view: View,
}

/// Lanes of a warp, and the time up to which their accesses are meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Presence {
    pub(crate) warp: u32,
    pub(crate) lanes: u32,
    pub(crate) time: u32,
}

/// The knowledge of a thread and its own accesses up to a time, without a copy of the times.
#[derive(Clone, Debug)]
pub(crate) struct Witness {
    pub(crate) view: View,
    pub(crate) own: Presence,
}

/// Knowledge that a thread may publish later. Its times are copied when they are needed.
#[derive(Debug)]
pub(crate) struct Promise {
    witness: Witness,
    made: Option<Published>,
}

impl Promise {
    pub(crate) fn new(witness: Witness) -> Promise {
        Promise {
            witness,
            made: None,
        }
    }

    /// The same object each time, so that equal knowledge is found at once.
    pub(crate) fn published(&mut self, block: u32) -> Published {
        let make = || self.witness.published(block);
        self.made.get_or_insert_with(make).clone()
    }
}

impl Witness {
    /// That of a lane of the same warp that has the same knowledge.
    pub(crate) fn of(&self, lane: usize) -> Witness {
        let lanes = 1 << lane;
        Witness {
            view: self.view.clone(),
            own: Presence { lanes, ..self.own },
        }
    }

    /// The knowledge of a thread of a block with its own accesses.
    pub(crate) fn published(&self, block: u32) -> Published {
        let done = |known: &Known| Known {
            own: known.own.with(&[self.own]),
            others: Rc::clone(&known.others),
        };
        let Parts {
            known, bulk, near, ..
        } = &*self.view.parts;
        let view = View::of(done(known), bulk.clone(), near.as_ref().map(done));
        Published { block, view }
    }
}

impl Published {
    pub(crate) fn same(&self, other: &Published) -> bool {
        self.block == other.block && self.view.same(&other.view)
    }

    /// Both together, as known to the first one's block.
    pub(crate) fn join(&self, other: &Published) -> Published {
        Published {
            block: self.block,
            view: learn(self.block, &self.view, other),
        }
    }
}

/// The knowledge of a thread of a block after it has read published knowledge.
pub(crate) fn learn(block: u32, view: &View, news: &Published) -> View {
    let (parts, heard) = (&view.parts, &news.view.parts);
    let near = parts.near.as_ref().map(|near| {
        let news_near = heard.near.as_ref().unwrap_or(&heard.known);
        join(block, near, news.block, news_near)
    });
    let known = join(block, &parts.known, news.block, &heard.known);
    let bulk = join(block, &parts.bulk, news.block, &heard.bulk);
    // Equal knowledge is one object, so that it is found at once.
    for same in [view, &news.view] {
        if same.parts.consist_of(&known, &bulk, near.as_ref()) {
            return same.clone();
        }
    }
    View::of(known, bulk, near)
}

/// The knowledge of a thread of a block with the knowledge of another block added.
fn join(block: u32, known: &Known, from: u32, news: &Known) -> Known {
    let mut own = Rc::clone(&known.own);
    if from == block {
        own = Times::join(&own, &news.own);
        if Rc::ptr_eq(&known.others, &news.others) || news.others.is_empty() {
            return Known {
                own,
                others: Rc::clone(&known.others),
            };
        }
    }
    let foreign = (from != block).then_some((from, &news.own));
    let heard = match Rc::ptr_eq(&known.others, &news.others) {
        true => &[][..],
        false => &news.others[..],
    };
    let heard = heard.iter().map(|(block, times)| (*block, times));
    // Copied where something new is heard, which most of the time is not so.
    let mut others: Option<Vec<(u32, Rc<Times>)>> = None;
    for (other, times) in heard.chain(foreign) {
        if other == block {
            own = Times::join(&own, times);
            continue;
        }
        let list = others.as_deref().unwrap_or(&known.others);
        match list.binary_search_by_key(&other, |(block, _)| *block) {
            Ok(index) => {
                let joined = Times::join(&list[index].1, times);
                if !Rc::ptr_eq(&joined, &list[index].1) {
                    others.get_or_insert_with(|| known.others.to_vec())[index].1 = joined;
                }
            }
            Err(index) => {
                let entry = (other, Rc::clone(times));
                let others = others.get_or_insert_with(|| known.others.to_vec());
                others.insert(index, entry);
            }
        }
    }
    let others = match others {
        None => Rc::clone(&known.others),
        // Lists that say the same are one, so that later joins see it at once.
        Some(others) if same_others(&others, &news.others) => Rc::clone(&news.others),
        Some(others) => Rc::new(others),
    };
    Known { own, others }
}

/// Whether two lists hold the same times.
fn same_others(these: &[(u32, Rc<Times>)], those: &[(u32, Rc<Times>)]) -> bool {
    let mut pairs = these.iter().zip(those);
    these.len() == those.len() && pairs.all(|(a, b)| a.0 == b.0 && Rc::ptr_eq(&a.1, &b.1))
}

/// The common knowledge of several threads of a block: the latest times.
fn join_all<'a>(block: u32, mut all: impl Iterator<Item = &'a Known>) -> Option<Known> {
    let first = all.next()?;
    let mut own = Latest::new(&first.own);
    let mut rest = Known {
        own: Rc::clone(&first.own),
        others: Rc::clone(&first.others),
    };
    for known in all {
        own.add(&known.own);
        if !Rc::ptr_eq(&rest.others, &known.others) && !known.others.is_empty() {
            let others = Rc::clone(&known.others);
            let own = Rc::clone(&rest.own);
            rest = join(block, &rest, block, &Known { own, others });
        }
    }
    // Other blocks may have told something of this one.
    own.add(&rest.own);
    rest.own = own.finish();
    Some(rest)
}

/// Threads that arrived where others wait for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// Their knowledge; consecutive views differ.
    views: Vec<View>,
    stamps: Vec<Presence>,
}

impl Arrivals {
    /// Lanes of a warp arrive, of which each has its view.
    pub(crate) fn add(&mut self, presence: Presence, views: &[View]) {
        for lane in lanes(presence.lanes) {
            if let Some(view) = views.get(lane) {
                self.add_view(view);
            }
        }
        self.stamp(presence);
    }

    /// A thread arrives with the knowledge that it had some time ago.
    pub(crate) fn add_witness(&mut self, witness: &Witness) {
        self.add_view(&witness.view);
        self.stamp(witness.own);
    }

    /// Something has arrived that no thread waits with.
    pub(crate) fn stamp(&mut self, presence: Presence) {
        match self.stamps.last_mut() {
            Some(last) if last.warp == presence.warp && last.time == presence.time => {
                last.lanes |= presence.lanes
            }
            _ => self.stamps.push(presence),
        }
    }

    /// Knowledge has arrived, as known to the block where it did.
    pub(crate) fn add_view(&mut self, view: &View) {
        if !self.views.last().is_some_and(|other| other.same(view)) {
            self.views.push(view.clone());
        }
    }

    /// The joined knowledge of all threads that arrived, with their own accesses.
    pub(crate) fn meet(&self, block: u32) -> Option<View> {
        let parts = || self.views.iter().map(|view| &*view.parts);
        let near = parts().map(|parts| parts.near.as_ref().unwrap_or(&parts.known));
        let near = self.views.first()?.parts.near.is_some().then_some(near);
        let mut known = join_all(block, parts().map(|parts| &parts.known))?;
        let bulk = join_all(block, parts().map(|parts| &parts.bulk))?;
        let mut near = near.and_then(|near| join_all(block, near));
        for known in [Some(&mut known), near.as_mut()].into_iter().flatten() {
            known.own = known.own.with(&self.stamps);
        }
        Some(View::of(known, bulk, near))
    }
}
