//! Rules of patch programs, checked before code is generated.
//!
//! 1. A time block is a whole number of rounds, at least one, and a round begins with the same time levels.
//! 2. Bases cover the grid; each is in its tile with its halo. The halo is as wide as wrong values come, unless one
//!    tile holds the whole axis and all that updates read beyond its ends. Where rows are right only in the part of it
//!    that they need, rows that are held are right in the base after a time block.
//! 3. A row that is read before a round has written it is held.
//! 4. A value that a row of threads reads of another one has a slot. The last stage that wrote the row published it, or
//!    it was published before the first round and no stage has written it yet; and no other row has been published in
//!    the slot since then.
//! 5. A barrier lies between a publication and the reads of it, and another one between these reads and the next
//!    publication in the same slot.
//! 6. Where tiles stay, a cell that a row needs of a halo is in the row's rim of the tile that has it in its base, and
//!    so are states of all cells of halos. A tile waits for tiles whose cells it has in its halo, and for tiles that
//!    have its own cells.
//! 7. A tile with cells of a zone in which updates are amended has a room, which no other tile has.

use super::creep::{creep, creep_of_rows};
use super::program::PatchProgram;
use super::rooms::amended;
use super::shape::AXES;
use super::slots::Place;
use super::stay::{MOST_NEIGHBOURS, Staying};
use crate::lattice::{Axis, div_ceil};
use crate::layout::Layout;
use crate::scheme::Scheme;
use std::collections::BTreeSet;
use std::fmt;

/// A rule that a program breaks: a defect of Torre.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(pub String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn rule(holds: bool, broken: impl FnOnce() -> String) -> Result<(), Fault> {
    match holds {
        true => Ok(()),
        false => Err(Fault(broken())),
    }
}

/// Checks the rules.
pub fn verify(scheme: &Scheme, layout: &Layout, program: &PatchProgram) -> Result<(), Fault> {
    let round = u64::from(scheme.phases()).max(1);
    rule(
        program.round == round && program.height >= round && program.height.is_multiple_of(round),
        || {
            format!(
                "time blocks of {} steps in rounds of {}",
                program.height, program.round
            )
        },
    )?;
    for (n, axis) in AXES.into_iter().enumerate() {
        along(scheme, layout, program, n, axis)?;
    }
    rows(program)?;
    exchanges(program)?;
    rooms(scheme, layout, program)?;
    match &program.stays {
        Some(staying) => stays(layout, program, staying),
        None => Ok(()),
    }
}

fn along(
    scheme: &Scheme,
    layout: &Layout,
    program: &PatchProgram,
    n: usize,
    axis: Axis,
) -> Result<(), Fault> {
    let (own, cells) = (&program.along[n], program.shape.tile()[n]);
    let extent = layout.extent[axis];
    rule(own.base >= 1 && own.base * own.tiles >= extent, || {
        format!(
            "{} bases of {} cells do not cover {axis}",
            own.tiles, own.base
        )
    })?;
    let [below, above] = own.halo;
    rule(below + own.base + above <= cells, || {
        format!("a base with its halo is wider than {cells} cells along {axis}")
    })?;
    if scheme.grid.axes[axis].is_none() {
        return Ok(());
    }
    let reach = layout.reach[axis].map(i64::from);
    let ring = scheme.grid.is_periodic(axis);
    rule(own.ring == ring.then_some(scheme.grid.cells[axis]), || {
        format!("the ring of {axis}")
    })?;
    let whole = !ring && own.tiles == 1 && [below, above].iter().zip(reach).all(|(h, r)| *h >= r);
    let wrong = creep(scheme, layout, axis, program.height);
    rule(whole || (below >= wrong[0] && above >= wrong[1]), || {
        format!(
            "wrong values come {wrong:?} cells along {axis}, and halos have {:?}",
            own.halo
        )
    })?;
    rule(program.needs.len() == program.held.len(), || {
        "rows without what they need".to_owned()
    })?;
    let needs = program.needs.iter().map(|row| row[n]);
    let before = |[lo, hi]: [i64; 2]| [below - lo, above - hi];
    let before: Vec<[i64; 2]> = needs.map(before).collect();
    rule(before.iter().flatten().all(|wrong| *wrong >= 0), || {
        format!("a row needs more than a halo along {axis}")
    })?;
    let after = creep_of_rows(scheme, layout, axis, program.height, before);
    program.held_rows().try_for_each(|row| {
        let right = after[row][0] <= below && after[row][1] <= above;
        rule(whole || right, || {
            format!("r{row} is wrong in bases after a time block, along {axis}")
        })
    })
}

/// Rooms of tiles, box by box of zones.
fn rooms(scheme: &Scheme, layout: &Layout, program: &PatchProgram) -> Result<(), Fault> {
    let rooms = &program.rooms;
    let all = rooms.of_tile.iter().flatten();
    let numbers: BTreeSet<&u32> = all.clone().collect();
    let own = numbers.len() == all.count() && numbers.iter().all(|n| **n < rooms.count);
    rule(own, || "tiles share a room".to_owned())?;
    rule(!rooms.any() || rooms.states == scheme.states.len(), || {
        "rooms do not have all states".to_owned()
    })?;
    for zone in amended(scheme).iter() {
        for region in layout.zones[zone.index()].boxes.iter().map(|b| b.region) {
            // The tiles that have the cells of an interval: around a ring, the cells of some turn.
            let tiles = |n: usize| {
                let along = &program.along[n];
                let turns = along.ring.map_or(0..1, |ring| {
                    let most = (along.tiles * along.base + along.needed()) / ring + 1;
                    -most..most + 1
                });
                let shifts = turns.map(|turn| turn * along.ring.unwrap_or(0));
                let own = region[AXES[n]];
                let first = |by: i64| own.lo + by - along.needed() + along.halo[0] + 1;
                let tiles = shifts.flat_map(move |by| {
                    let from = div_ceil(first(by), along.base).max(0);
                    let to = (own.hi - 1 + by + along.halo[0]).div_euclid(along.base);
                    from..(to + 1).min(along.tiles)
                });
                tiles.collect::<BTreeSet<i64>>()
            };
            let [xs, ys, zs] = [0, 1, 2].map(tiles);
            let met = program.places().filter(|[x, y, z]| {
                let across = ys.contains(y) && zs.contains(z);
                across && xs.contains(x)
            });
            for tile in met.map(|place| program.tile_number(place)) {
                let has = rooms.of_tile.get(tile).is_some_and(Option::is_some);
                rule(has, || {
                    format!("tile {tile} has cells of {zone}, but no room")
                })?;
            }
        }
    }
    Ok(())
}

/// The exchanges of tiles that stay.
fn stays(layout: &Layout, program: &PatchProgram, staying: &Staying) -> Result<(), Fault> {
    rule(staying.neighbours.len() as i64 == program.tiles(), || {
        "tiles without a list of neighbours".to_owned()
    })?;
    rule(staying.width() <= MOST_NEIGHBOURS, || {
        "more neighbours than lanes".to_owned()
    })?;
    // Rows and states are exchanged, each with its own halo and rims.
    let whole = program.along.each_ref().map(|along| along.halo);
    let rows = program.needs.iter().zip(&staying.rims);
    let rows = rows.zip(&program.held).filter(|(_, held)| **held);
    let rows = rows.map(|((halo, rims), _)| (*halo, *rims));
    let all: BTreeSet<_> = rows.chain([(whole, staying.of_states)]).collect();
    rule(staying.rims.len() == program.held.len(), || {
        "rows without rims".to_owned()
    })?;
    all.into_iter()
        .try_for_each(|(halo, rims)| exchanged(layout, program, staying, [halo, rims]))
}

/// All cells of some halos, tile by tile.
fn exchanged(
    layout: &Layout,
    program: &PatchProgram,
    staying: &Staying,
    [halo, rims]: [[[i64; 2]; 3]; 2],
) -> Result<(), Fault> {
    // Along an axis: for a cell of a tile the tile that has it, and whether it is in its rim, or its own.
    let seen = |n: usize, tile: i64| {
        let own = &program.along[n];
        let [below, above] = rims[n];
        let base = own.halo[0]..own.halo[0] + own.base;
        let cells = base.start - halo[n][0]..base.end + halo[n][1];
        cells.filter_map(move |cell| {
            let [owner, number] = own.owner(own.origin(tile) + cell, layout.extent[AXES[n]])?;
            let rim = number < below || number >= own.base - above;
            Some((owner, rim, base.contains(&cell)))
        })
    };
    let waits = |tile: i64, other: i64| staying.neighbours[tile as usize].contains(&(other as u32));
    for place in program.places() {
        let tile = program.tile_number(place) as i64;
        let [xs, ys, zs] = [0, 1, 2].map(|n| BTreeSet::from_iter(seen(n, place[n])));
        let lines = xs.iter().flat_map(|x| ys.iter().map(move |y| [x, y]));
        for [x, y, z] in lines.flat_map(|[x, y]| zs.iter().map(move |z| [x, y, z])) {
            let all = [x, y, z];
            let other = program.tile_number(all.map(|(owner, ..)| *owner)) as i64;
            let own = all.iter().all(|(_, _, own)| *own);
            let rim = all.iter().any(|(_, rim, _)| *rim);
            rule(own || rim, || {
                format!("tile {tile} reads of tile {other} what is not in its rim")
            })?;
            let both = waits(tile, other) && waits(other, tile);
            rule(tile == other || both, || {
                format!("tiles {tile} and {other} do not wait for each other")
            })?;
        }
    }
    Ok(())
}

fn rows(program: &PatchProgram) -> Result<(), Fault> {
    let mut written = vec![false; program.held.len()];
    for stage in &program.stages {
        for read in stage.all_reads() {
            rule(written[read.row] || program.held[read.row], || {
                format!("r{} is read before it is written, and not held", read.row)
            })?;
        }
        stage.updates.iter().for_each(|u| written[u.target] = true);
    }
    let leaves = |row: usize| {
        program
            .stages
            .iter()
            .filter(|s| s.leave.contains(&row))
            .count()
    };
    let all = (0..written.len()).filter(|row| written[*row] && !program.held[*row]);
    all.into_iter().try_for_each(|row| {
        rule(leaves(row) == 1, || {
            format!("r{row} leaves {} times", leaves(row))
        })
    })
}

/// The state of a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// A barrier has come since a row was published in it.
    Settled(usize),
    /// The same, but some threads may still have to write it.
    Written(usize),
    /// It is out of date.
    Old,
}

/// The slots of a block, as far as a round has come.
struct Published {
    slots: Vec<Slot>,
    /// Slots that some thread may still be reading.
    busy: Vec<bool>,
}

impl Published {
    fn barrier(&mut self) {
        self.busy.fill(false);
        for slot in &mut self.slots {
            if let Slot::Written(row) = *slot {
                *slot = Slot::Settled(row);
            }
        }
    }

    /// A row is written anew.
    fn age(&mut self, row: usize) {
        let own = [Slot::Settled(row), Slot::Written(row)];
        let slots = self.slots.iter_mut();
        let old = slots.filter(|slot| own.contains(slot));
        old.for_each(|slot| *slot = Slot::Old);
    }
}

fn exchanges(program: &PatchProgram) -> Result<(), Fault> {
    let shape = &program.shape;
    let count = program.slots.count();
    let mut all = Published {
        slots: vec![Slot::Old; count],
        busy: vec![false; count],
    };
    let of_row = |row: usize| {
        let own: Vec<usize> = program.slots.of_row(row).map(|(_, n)| n as usize).collect();
        rule(own.iter().all(|slot| *slot < count), || {
            format!("r{row} has a slot beyond the others")
        })?;
        Ok(own)
    };
    for row in &program.begin {
        rule(program.held[*row], || {
            format!("r{row} is published before a round, but not held")
        })?;
        let own = of_row(*row)?.into_iter();
        own.for_each(|slot| all.slots[slot] = Slot::Settled(*row));
    }
    // Twice, as the second round finds the slots as the first one left them.
    for stage in program.stages.iter().chain(&program.stages) {
        for read in stage.all_reads() {
            for place in shape.cells().map(|cell| Place::of(shape, cell, read)) {
                if shape.rows() == 1 || !place.is_elsewhere() {
                    continue;
                }
                let slot = program.slots.of(place.row, place.cell);
                let slot = slot.map(|n| n as usize).filter(|n| *n < count);
                let Some(slot) = slot else {
                    let (row, cell) = (place.row, place.cell);
                    return Err(Fault(format!("cell {cell:?} of r{row} has no slot")));
                };
                rule(all.slots[slot] == Slot::Settled(place.row), || {
                    format!(
                        "r{} is read of other rows of threads before they have published it",
                        place.row
                    )
                })?;
                all.busy[slot] = true;
            }
        }
        stage.updates.iter().for_each(|u| all.age(u.target));
        if stage.frees {
            all.barrier();
        }
        for row in &stage.publish {
            for slot in of_row(*row)? {
                rule(!all.busy[slot], || {
                    format!("r{row} is published while others read its slots")
                })?;
                all.slots[slot] = Slot::Written(*row);
            }
        }
        if stage.barrier {
            all.barrier();
        }
    }
    Ok(())
}
