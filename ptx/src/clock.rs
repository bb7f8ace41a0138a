//! Vector clocks: what a thread knows to have happened before what it does now (Lamport 1978; Mattern 1989).
//!
//! Copies in bulk see memory through a proxy of their own: a thread also knows what a proxy fence has made visible to it.
//!
//! Every warp has a time, which grows when one of its threads publishes what it has done. A thread knows for each
//! other thread a time up to which that one's accesses come before its own. Within a block all times are kept; other
//! blocks are known only if something of them was heard. Threads that met at a barrier share what they know.

use std::sync::Arc;

use crate::alu::{LANES, lanes};

/// Times of the threads of a block, warp after warp, and of its barrier objects after them: one more warp, in which
/// each lane stands for the asynchronous copies that one object counts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Times {
    times: Vec<u32>,
    /// The least time of the threads.
    floor: u32,
}

impl Times {
    fn new(times: Vec<u32>) -> Arc<Times> {
        let threads = times.len() - LANES.min(times.len());
        let floor = times[..threads].iter().copied().min().unwrap_or(0);
        Arc::new(Times { times, floor })
    }

    /// Whether all these lanes are known at this time.
    pub(crate) fn covers(&self, warp: u32, lanes_mask: u32, time: u32) -> bool {
        let first = warp as usize * LANES;
        if time <= self.floor && first + LANES < self.times.len() {
            return true;
        }
        lanes(lanes_mask).all(|lane| {
            self.times
                .get(first + lane)
                .is_some_and(|known| *known >= time)
        })
    }

    fn join(this: &Arc<Times>, other: &Arc<Times>) -> Arc<Times> {
        if Arc::ptr_eq(this, other) {
            return Arc::clone(this);
        }
        let mut pairs = this.times.iter().zip(&other.times);
        if pairs.all(|(this, other)| other <= this) {
            return Arc::clone(this);
        }
        let pairs = this.times.iter().zip(&other.times);
        Times::new(pairs.map(|(this, other)| *this.max(other)).collect())
    }
}

type Others = Arc<Vec<(u32, Arc<Times>)>>;

/// What is known of the own block and of others, ascending by block.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    own: Arc<Times>,
    others: Others,
}

impl Known {
    /// What is known of a block, seen from block `own`.
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
        Arc::ptr_eq(&self.own, &other.own) && Arc::ptr_eq(&self.others, &other.others)
    }
}

/// What a thread knows.
#[derive(Clone, Debug)]
pub(crate) struct View {
    known: Known,
    /// The part of it that copies in bulk see.
    bulk: Known,
    /// What is known of accesses to shared memory, where that can be more: in clusters.
    near: Option<Known>,
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
    /// Of a block of so many warps, nothing.
    pub(crate) fn new(warps: u32, clustered: bool) -> View {
        let times = vec![0; (warps as usize + 1) * LANES];
        let known = Known {
            own: Times::new(times),
            others: Arc::default(),
        };
        View {
            bulk: known.clone(),
            near: clustered.then(|| known.clone()),
            known,
        }
    }

    /// Nothing but what is known of accesses to shared memory.
    pub(crate) fn of_shared(&self, warps: u32) -> View {
        View {
            near: self.near.clone(),
            ..View::new(warps, true)
        }
    }

    /// What is known of a block, seen from block `own`.
    pub(crate) fn times(&self, own: u32, block: u32, sight: Sight) -> Option<&Times> {
        let known = match sight {
            Sight::Global => &self.known,
            Sight::Shared => self.near.as_ref().unwrap_or(&self.known),
            Sight::Bulk => &self.bulk,
        };
        known.times(own, block)
    }

    pub(crate) fn same(&self, other: &View) -> bool {
        let near = match (&self.near, &other.near) {
            (Some(near), Some(other)) => near.same(other),
            (near, other) => near.is_none() && other.is_none(),
        };
        near && self.known.same(&other.known) && self.bulk.same(&other.bulk)
    }

    /// Makes all that is known visible to copies in bulk, with what the thread has done.
    pub(crate) fn fence_proxy(&mut self, published: &Published) {
        self.bulk = published.view.known.clone();
    }
}

/// What a thread of a block has published.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) block: u32,
    pub(crate) view: View,
}

impl Published {
    /// What a thread knows and has done itself up to a time.
    pub(crate) fn new(block: u32, view: &View, thread: usize, time: u32) -> Published {
        let done = |known: &Known| {
            let mut times = known.own.times.clone();
            if let Some(entry) = times.get_mut(thread) {
                *entry = time;
            }
            Known {
                own: Times::new(times),
                others: Arc::clone(&known.others),
            }
        };
        Published {
            block,
            view: View {
                known: done(&view.known),
                bulk: view.bulk.clone(),
                near: view.near.as_ref().map(done),
            },
        }
    }

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

/// What a thread of a block knows after it has read what was published.
pub(crate) fn learn(block: u32, view: &View, news: &Published) -> View {
    View {
        known: join(block, &view.known, news.block, &news.view.known),
        bulk: join(block, &view.bulk, news.block, &news.view.bulk),
        near: view.near.as_ref().map(|near| {
            let news_near = news.view.near.as_ref().unwrap_or(&news.view.known);
            join(block, near, news.block, news_near)
        }),
    }
}

/// What a thread of a block knows after what was known in another block was added.
fn join(block: u32, known: &Known, from: u32, news: &Known) -> Known {
    let mut own = Arc::clone(&known.own);
    if from == block {
        own = Times::join(&own, &news.own);
        if Arc::ptr_eq(&known.others, &news.others) || news.others.is_empty() {
            return Known {
                own,
                others: Arc::clone(&known.others),
            };
        }
    }
    let mut others: Vec<(u32, Arc<Times>)> = known.others.to_vec();
    let foreign = (from != block).then_some((from, &news.own));
    let heard = news.others.iter().map(|(block, times)| (*block, times));
    for (other, times) in heard.chain(foreign) {
        if other == block {
            own = Times::join(&own, times);
            continue;
        }
        match others.binary_search_by_key(&other, |(block, _)| *block) {
            Ok(index) => others[index].1 = Times::join(&others[index].1, times),
            Err(index) => others.insert(index, (other, Arc::clone(times))),
        }
    }
    Known {
        own,
        others: Arc::new(others),
    }
}

/// Threads that arrived where others wait for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// What they knew, each view once.
    views: Vec<View>,
    /// Warp, lanes and time.
    stamps: Vec<(u32, u32, u32)>,
}

impl Arrivals {
    pub(crate) fn add(&mut self, warp: u32, lanes_mask: u32, time: u32, views: &[View]) {
        for lane in lanes(lanes_mask) {
            if let Some(view) = views.get(lane)
                && !self.views.iter().rev().any(|other| other.same(view))
            {
                self.views.push(view.clone());
            }
        }
        self.stamps.push((warp, lanes_mask, time));
    }

    /// Something of another block has arrived; `view` is that of the block where it did.
    pub(crate) fn add_view(&mut self, view: View) {
        self.views.push(view);
    }

    /// What all that arrived know together, with what they have done.
    pub(crate) fn meet(&self, block: u32) -> Option<View> {
        let mut views = self.views.iter();
        let mut all = views.next()?.clone();
        for view in views {
            all = learn(
                block,
                &all,
                &Published {
                    block,
                    view: view.clone(),
                },
            );
        }
        let parts = [Some(&mut all.known), all.near.as_mut()];
        for known in parts.into_iter().flatten() {
            let mut times = known.own.times.clone();
            for (warp, lanes_mask, time) in &self.stamps {
                for lane in lanes(*lanes_mask) {
                    if let Some(entry) = times.get_mut(*warp as usize * LANES + lane) {
                        *entry = (*entry).max(*time);
                    }
                }
            }
            known.own = Times::new(times);
        }
        Some(all)
    }
}
