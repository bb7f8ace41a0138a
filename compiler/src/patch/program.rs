//! The program: the rows that a block holds, and the work of a stage.

use super::creep::{creep, needed};
use super::rooms::{AMENDED, Rooms, acts};
use super::shape::{AXES, Along, CoefPlace, Read, Shape};
use super::slots::{Slots, lives};
use super::stages::{AmendmentPlan, StagePlan, UpdatePlan};
use super::stay::Staying;
use crate::distinct::distinct;
use crate::ghost::AxisGhosts;
use crate::lattice::{Axis, Interval, Region, div_ceil};
use crate::layout::{Layout, RowId};
use crate::schedule::Pyramid;
use crate::scheme::{Body, CoefId, ComponentId, Op, Scheme, StageId, Update};
use std::collections::BTreeSet;
use std::fmt;

/// Grids are at most this long along an axis, so that indices of cells fit words.
const LONGEST: i64 = 1 << 30;

/// Blocks of a launch along its second axis, at most.
pub const MOST_TILES: i64 = 65535;

/// The program of the blocks of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct PatchProgram {
    /// Steps of a time block, at most: whole rounds.
    pub height: u64,
    /// Steps of a round: the steps after which time levels repeat.
    pub round: u64,
    pub shape: Shape,
    /// Whether the scheme has three axes.
    pub three: bool,
    /// Along the axes; a tile has one cell along one that the scheme does not have.
    pub along: [Along; 3],
    /// Per row of components: rows that are held from round to round are loaded and stored.
    pub held: Vec<bool>,
    /// Cells of the halo along the axes that have to be right in each row before a time block: its whole halo, or less.
    pub needs: Vec<[[i64; 2]; 3]>,
    /// The component of each row.
    pub components: Vec<ComponentId>,
    /// Coefficients that updates read.
    pub coefs: Vec<CoefId>,
    /// All stages of a round.
    pub stages: Vec<StagePlan>,
    pub slots: Slots,
    /// Rows that are published before the first round of a time block: rows that other rows of threads read before a
    /// stage writes them.
    pub begin: Vec<usize>,
    /// Values of ghosts along the axes that are exchanged at a time.
    pub exchanged: [usize; 3],
    /// Where tiles keep states of zones.
    pub rooms: Rooms,
    /// How tiles stay on the chip for a whole launch of several time blocks, if they do.
    pub stays: Option<Staying>,
}

/// Why there is no program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// Threads of a block are no whole warps, or the threads along the inner axis are in more than one.
    Threads,
    /// Tiles of a scheme with three axes do not all run at the same time.
    Many {
        tiles: i64,
        most: i64,
    },
    /// A tile of a scheme with three axes depends on more others than it can wait for.
    Neighbours,
    /// The grid is too long for words.
    Length,
    /// A base with its halo has more cells along an axis than a tile.
    Base {
        /// As the scheme calls it.
        axis: String,
        needed: i64,
        most: i64,
    },
    /// A base that is not positive.
    Size,
    /// More tiles along the outer axis than a launch has blocks.
    Tiles {
        tiles: i64,
        most: i64,
    },
    Shared {
        bytes: u64,
        most: u64,
    },
    Registers {
        needed: u64,
        /// Registers that a thread may need: few more than it can have are values in memory.
        may: u64,
    },
    /// Blocks are wide enough for a base with its halo along each axis, but none along all of them.
    Wide,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::Threads => f.write_str("threads of a block are no whole warps"),
            Misfit::Many { tiles, most } => write!(
                f,
                "with three axes pyramids stay on the chip, which holds {most} of them at a time, and there are {tiles}"
            ),
            Misfit::Neighbours => f.write_str(
                "with three axes pyramids stay on the chip, and one of them would wait for more than 32 others",
            ),
            Misfit::Length => write!(f, "the grid is longer than {LONGEST} cells along an axis"),
            Misfit::Base { axis, needed, most } => write!(
                f,
                "a base with the cells that it is computed from is {needed} cells wide along {axis}, and a block of \
                 threads holds {most}"
            ),
            Misfit::Size => f.write_str("a base has at least one cell"),
            Misfit::Tiles { tiles, most } => write!(
                f,
                "there are {tiles} pyramids along the first axis, and a launch has at most {most}"
            ),
            Misfit::Shared { bytes, most } => write!(
                f,
                "a pyramid needs {bytes} bytes of shared memory, and a block has {most}"
            ),
            Misfit::Registers { needed, may } => write!(
                f,
                "a thread needs about {needed} registers for the values of a pyramid, and may need {may} at most"
            ),
            Misfit::Wide => f.write_str(
                "no block of threads holds a base with the cells that it is computed from along all axes together",
            ),
        }
    }
}

impl PatchProgram {
    /// Before: a scheme that `verify` accepts, and its layout. A base that is left open is as wide as the tile allows.
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        pyramid: &Pyramid,
        shape: Shape,
    ) -> Result<PatchProgram, Misfit> {
        if !shape.is_whole() {
            return Err(Misfit::Threads);
        }
        if AXES.iter().any(|axis| layout.extent[*axis] > LONGEST) {
            return Err(Misfit::Length);
        }
        let round = u64::from(scheme.phases()).max(1);
        let height = (pyramid.height / round).max(1) * round;
        let rows: Vec<Option<ComponentId>> = (0..layout.rows)
            .map(|r| layout.component_of(RowId(r)))
            .collect();
        let components: Vec<ComponentId> = rows.iter().copied().flatten().collect();
        let held = held(scheme, layout, components.len());
        let mut stages = stages(scheme, layout, &held);
        let slots = Slots::new(&shape, &stages);
        publish_what_is_read(&mut stages, &shape, &slots);
        let begin = begin(&shape, &stages, &slots);
        let own = Tall { shape, height };
        let along = cuts(scheme, layout, pyramid, own)?;
        let tiles = along[0].tiles;
        if tiles > MOST_TILES {
            let most = MOST_TILES;
            return Err(Misfit::Tiles { tiles, most });
        }
        let exchanged = AXES.map(|axis| exchanged(scheme, axis));
        let rooms = Rooms::new(scheme, layout, &along);
        let needs = needs(scheme, layout, &along, &held, own);
        Ok(PatchProgram {
            height,
            round,
            shape,
            three: scheme.grid.axes[Axis::MIDDLE].is_some(),
            along,
            held,
            needs,
            components,
            coefs: coefs(scheme),
            stages,
            slots,
            begin,
            exchanged,
            rooms,
            stays: None,
        })
    }

    /// Blocks of a launch along the inner, the outer and the middle axis.
    pub fn blocks(&self) -> [i64; 3] {
        [2, 0, 1].map(|n| self.along[n].tiles)
    }

    /// Tiles of a time block.
    pub fn tiles(&self) -> i64 {
        self.along.iter().map(|along| along.tiles).product()
    }

    /// The number of the tile at an index along each axis.
    pub fn tile_number(&self, [x, y, z]: [i64; 3]) -> usize {
        ((x * self.along[1].tiles + y) * self.along[2].tiles + z) as usize
    }

    /// The axes along which tiles may have more than one cell, as numbers of [`AXES`]: the outer and the inner one, and
    /// the middle one of schemes with three.
    pub fn axes(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let three = self.three;
        (0..3).filter(move |n| *n != 1 || three)
    }

    /// Rows that are held from round to round, in order.
    pub fn held_rows(&self) -> impl Iterator<Item = usize> {
        (0..self.held.len()).filter(|row| self.held[*row])
    }

    /// Bytes of coefficients in shared memory.
    pub fn coef_bytes(&self, element: usize) -> u64 {
        match self.shape.coefs {
            CoefPlace::Registers => 0,
            CoefPlace::Shared => {
                (self.coefs.len() * self.shape.count() * element) as u64
                    * self.shape.all_threads() as u64
            }
        }
    }

    /// Bytes of shared memory for ghosts along the axes, as they are exchanged.
    pub fn ghost_bytes(&self, element: usize) -> [u64; 3] {
        [0, 1, 2].map(|n| (self.exchanged[n] * element) as u64 * self.section(n) as u64)
    }

    /// Cells of a tile at an index along an axis.
    pub fn section(&self, n: usize) -> i64 {
        let tile = self.shape.tile();
        (0..3).filter(|m| *m != n).map(|m| tile[m]).product()
    }

    /// Bytes of shared memory of a block.
    pub fn shared_bytes(&self, element: usize) -> u64 {
        let ghosts: u64 = self.ghost_bytes(element).iter().sum();
        self.slots.bytes(&self.shape, element) + self.coef_bytes(element) + ghosts
    }

    /// Values that a thread has in registers at a time: values that it holds, of others as many lines as later lines
    /// read of the values that they replace, and some where updates are amended.
    pub fn values(&self) -> usize {
        let held = self.held.iter().filter(|held| **held).count();
        let coefs = match self.shape.coefs {
            CoefPlace::Registers => self.coefs.len(),
            CoefPlace::Shared => 0,
        };
        let [outer, middle, inner] = self.shape.patch;
        let window = |stage: &StagePlan| {
            let reads = stage.updates.iter().flat_map(|u| u.reads.iter().flatten());
            let reach = reads.map(|r| r.offset[0].abs()).max().unwrap_or(0);
            let lines = (reach + 1).min(outer) * middle * inner;
            stage.updates.len() as i64 * lines
        };
        let windows = self.stages.iter().map(window).max().unwrap_or(0);
        // Tiles that use slots again are as large as registers allow: threads keep lines in flight in memory, as far as
        // registers do not hold them.
        let windows = if self.shape.reuses_slots { 0 } else { windows };
        let amended = if self.rooms.any() { AMENDED } else { 0 };
        (held + coefs) * self.shape.count() + windows as usize + amended
    }

    /// The updates of all stages of a step, counted through: the number of the first one of a stage.
    pub fn first_update(scheme: &Scheme, stage: StageId) -> usize {
        let before = &scheme.stages[..stage.index()];
        before.iter().map(|s| s.updates.len()).sum()
    }
}

/// The coefficients that updates read, each once.
fn coefs(scheme: &Scheme) -> Vec<CoefId> {
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    distinct(updates.flat_map(|u| {
        let read = u.body.ops.iter().filter_map(coef_of);
        u.mask.into_iter().chain(read)
    }))
}

fn coef_of(op: &Op) -> Option<CoefId> {
    match op {
        Op::Coef(id) => Some(*id),
        _ => None,
    }
}

/// Which rows of components have a value that is needed after a whole number of rounds: one that is read before it is
/// replaced, or that may stay.
fn held(scheme: &Scheme, layout: &Layout, rows: usize) -> Vec<bool> {
    let mut held = vec![false; rows];
    let mut written = vec![false; rows];
    for id in scheme.component_ids() {
        // Users look at the versions that are the newest then.
        held[layout.row(id, 0).0 as usize] = true;
    }
    for phase in 0..scheme.phases() {
        for stage in scheme.stage_ids() {
            let updates = || scheme.stages[stage.index()].updates.iter().filter(acts);
            for read in updates().flat_map(Update::reads) {
                let row = layout.read_row(scheme, stage, phase, read).0 as usize;
                held[row] |= !written[row];
            }
            for update in updates() {
                written[layout.target_row(scheme, stage, phase, update.target).0 as usize] = true;
            }
        }
    }
    held
}

fn stages(scheme: &Scheme, layout: &Layout, held: &[bool]) -> Vec<StagePlan> {
    let mut all = Vec::new();
    for phase in 0..scheme.phases().max(1) {
        for stage in scheme.stage_ids() {
            let read = |op: &Op| match op {
                Op::Read(read) => Some(Read {
                    row: layout.read_row(scheme, stage, phase, read).0 as usize,
                    offset: AXES.map(|axis| i64::from(read.offset[axis])),
                }),
                _ => None,
            };
            let reads = |body: &Body| body.ops.iter().map(read).collect();
            let updates = scheme.stages[stage.index()].updates.iter().enumerate();
            let updates: Vec<UpdatePlan> = updates
                .filter(|(_, update)| acts(update))
                .map(|(number, update)| UpdatePlan {
                    update: number,
                    component: update.target,
                    target: layout.target_row(scheme, stage, phase, update.target).0 as usize,
                    reads: reads(&update.body),
                    amendments: (update.amendments.iter())
                        .map(|amendment| AmendmentPlan {
                            zone: amendment.zone,
                            reads: reads(&amendment.body),
                        })
                        .collect(),
                })
                .collect();
            all.push(StagePlan {
                phase,
                stage,
                publish: updates.iter().map(|u| u.target).collect(),
                updates,
                leave: Vec::new(),
                frees: false,
                barrier: false,
            });
        }
    }
    // A row leaves where it is written for the last time.
    let mut left = held.to_vec();
    for stage in all.iter_mut().rev() {
        for update in &stage.updates {
            if !std::mem::replace(&mut left[update.target], true) {
                stage.leave.push(update.target);
            }
        }
    }
    all
}

/// Leaves, of the rows that stages publish, the rows that the next stage has alive in slots, and sets where barriers
/// are.
fn publish_what_is_read(stages: &mut [StagePlan], shape: &Shape, slots: &Slots) {
    let next = |n: usize| (n + 1) % stages.len();
    let is_read = |n: usize, row: &usize| lives(shape, stages, *row)[next(n)];
    let publish = stages.iter().enumerate().map(|(n, stage)| {
        let rows = stage.publish.iter().copied();
        rows.filter(|row| is_read(n, row)).collect()
    });
    let publish: Vec<Vec<usize>> = publish.collect();
    for (stage, publish) in stages.iter_mut().zip(publish) {
        stage.publish = publish;
        let read = stage.all_reads().filter(|read| shape.is_across(read));
        let read: BTreeSet<usize> = read.map(|read| read.row).collect();
        let mut published = stage.publish.iter();
        stage.frees = published.any(|row| read.iter().any(|other| slots.share(*row, *other)));
        stage.barrier = !stage.publish.is_empty() || !read.is_empty();
    }
}

/// Rows with slots that other rows of threads read before they are written.
fn begin(shape: &Shape, stages: &[StagePlan], slots: &Slots) -> Vec<usize> {
    let (mut begin, mut written) = (BTreeSet::new(), BTreeSet::new());
    for stage in stages {
        let across = stage.all_reads().filter(|read| shape.is_across(read));
        let first = across.map(|read| read.row);
        begin.extend(first.filter(|row| !written.contains(row)));
        written.extend(stage.updates.iter().map(|update| update.target));
    }
    let published = |row: &usize| slots.of_row(*row).next().is_some();
    begin.into_iter().filter(published).collect()
}

/// The cells at which all updates act, and all that is stored is stored.
fn bare(scheme: &Scheme) -> Region {
    let stored = scheme.components.iter().map(|c| c.position);
    let stored = stored.chain(scheme.coefs.iter().map(|c| c.position));
    let stored = stored.map(|position| scheme.grid.extent(position));
    let updates = scheme.stages.iter().flat_map(|s| &s.updates);
    let acts = updates.filter(acts).map(|u| u.region);
    let whole = Region::from_fn(|_| Interval::new(0, i64::MAX));
    stored.chain(acts).fold(whole, Region::intersect)
}

/// Cells of a tile along an axis, and cells that are accessed together.
#[derive(Clone, Copy)]
struct Cells {
    tile: i64,
    piece: i64,
}

/// A tile in space and time.
#[derive(Clone, Copy)]
struct Tall {
    shape: Shape,
    height: u64,
}

/// Cells below and above a base that have to be right before `steps` steps, along the axes, in each row that is held.
pub fn halos_of_rows(scheme: &Scheme, layout: &Layout, steps: u64) -> Vec<[[i64; 2]; 3]> {
    let rows = (0..layout.rows).filter(|row| layout.component_of(RowId(*row)).is_some());
    let held = held(scheme, layout, rows.count());
    let mut halos = vec![[[0; 2]; 3]; held.len()];
    for (n, axis) in AXES.into_iter().enumerate() {
        if scheme.grid.axes[axis].is_some() {
            let of_rows = needed(scheme, layout, axis, steps, &held);
            let own = halos.iter_mut().zip(of_rows);
            own.for_each(|(row, cells)| row[n] = cells);
        }
    }
    let own = halos.into_iter().zip(held);
    own.filter(|(_, held)| *held).map(|(row, _)| row).collect()
}

/// The part of a halo that each row needs, along the inner axis in whole pieces.
fn needs(
    scheme: &Scheme,
    layout: &Layout,
    along: &[Along; 3],
    held: &[bool],
    own: Tall,
) -> Vec<[[i64; 2]; 3]> {
    let mut needs = vec![along.each_ref().map(|along| along.halo); held.len()];
    for n in 0..3 {
        let (axis, whole) = (AXES[n], along[n].halo);
        let alone = along[n].tiles == 1 && along[n].ring.is_none();
        if alone || scheme.grid.axes[axis].is_none() {
            continue;
        }
        let piece = own.shape.piece(n);
        let of_rows = needed(scheme, layout, axis, own.height, held);
        for (row, cells) in needs.iter_mut().zip(of_rows) {
            row[n] = [0, 1].map(|end| (div_ceil(cells[end], piece) * piece).min(whole[end]));
        }
    }
    needs
}

/// How the axes are cut; one that the scheme does not have has one cell.
fn cuts(
    scheme: &Scheme,
    layout: &Layout,
    pyramid: &Pyramid,
    Tall { shape, height }: Tall,
) -> Result<[Along; 3], Misfit> {
    let tile = shape.tile();
    let mut along = [0, 1, 2].map(|n| Along {
        base: 1,
        halo: [0; 2],
        tiles: 1,
        bare: bare(scheme)[AXES[n]],
        ring: None,
    });
    for n in 0..3 {
        let axis = AXES[n];
        if scheme.grid.axes[axis].is_some() {
            let own = Cells {
                tile: tile[n],
                piece: shape.piece(n),
            };
            along[n] = cut(scheme, layout, axis, pyramid.base[axis], own, height)?;
        }
    }
    Ok(along)
}

/// How an axis is cut, for a base as asked for.
fn cut(
    scheme: &Scheme,
    layout: &Layout,
    axis: Axis,
    asked: Option<i64>,
    own: Cells,
    height: u64,
) -> Result<Along, Misfit> {
    let cells = own.tile;
    let extent = layout.extent[axis];
    let ring = scheme
        .grid
        .is_periodic(axis)
        .then_some(scheme.grid.cells[axis]);
    let along = |base: i64, halo: [i64; 2]| Along {
        base,
        halo,
        tiles: div_ceil(extent, base),
        bare: bare(scheme)[axis],
        ring,
    };
    if asked.is_some_and(|base| base < 1) {
        return Err(Misfit::Size);
    }
    // Cells beyond an end are right as far as updates read.
    let reach = layout.reach[axis].map(i64::from);
    let whole = reach.iter().sum::<i64>().saturating_add(extent);
    if ring.is_none() && whole <= cells && asked.is_none_or(|base| base >= extent) {
        return Ok(along(extent, reach));
    }
    let halo = creep(scheme, layout, axis, height);
    // Bases begin where a patch does, so that its cells lie alike in all tiles.
    let halo = halo.map(|n| div_ceil(n, own.piece) * own.piece);
    let room = cells - halo.iter().sum::<i64>();
    let base = asked.unwrap_or(room).min(extent);
    match room < base.max(1) {
        true => Err(Misfit::Base {
            axis: scheme.grid.axis_name(axis).to_owned(),
            needed: base.max(1) + halo.iter().sum::<i64>(),
            most: cells,
        }),
        false => Ok(along(base, halo)),
    }
}

/// The most ghosts along an axis, of all components that a stage updates, and of each one.
pub fn exchanged(scheme: &Scheme, axis: Axis) -> usize {
    if scheme.grid.is_periodic(axis) {
        return 0;
    }
    let of = |id: ComponentId| AxisGhosts::new(scheme, id, axis).pairs().len();
    let stages = scheme.stages.iter();
    let stages = stages.map(|s| s.updates.iter().map(|u| of(u.target)).sum::<usize>());
    stages
        .chain(scheme.component_ids().map(of))
        .max()
        .unwrap_or(0)
}
