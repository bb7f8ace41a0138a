//! Tower programs: the work of a tower, row operation by row operation.
//!
//! A [`TowerProgram`] is a stage of its own between tiles and code. Per alignment it has a straight line of row
//! operations for a period, which every interior period of every tower of that alignment runs, and the rows of periods
//! that ends of the grid cut. A *row operation* works on a row along the inner axis: on a GPU each thread of a block
//! has one index of it. Operations name rows relative to the origin of the period.
//!
//! ```text
//! rows of memory  --load-->  shared rows  --update-->  registers  --publish-->  shared rows  --update--> ...
//!                                                      registers  --store-->    rows of memory
//! ```
//!
//! The scheme defines the updates; the program defines the rows, their order and the places of their values. Back ends
//! print it and decide nothing.

use super::allocate::{Allocation, Carried, SharedCopy};
use super::block::{Block, Division, Misfit, Options, boundary_rows};
use super::boundary::BoundaryRows;
use super::end_zeros::EndZeros;
use super::group_box::GroupBox;
use super::numbering::{Numbering, View};
use super::order;
use super::residency::{RowRef, RowUpdate};
use super::towers::Towers;
use super::unfit::Unfit;
use super::volume_source::VolumeSource;
use super::wave_slots::{WaveCopy, WaveSlots};
use super::zone_coefs::ZoneCoefs;
use super::zones::Variant;
use crate::ghost::reads_ghosts_of_zeros;
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::tile::{Checked, TileProgram};
use std::fmt;

/// The towers of a schedule, and the operations of each.
#[derive(Clone, Debug, PartialEq)]
pub struct TowerProgram {
    pub towers: Towers,
    /// Per alignment, where the values of a period lie.
    pub allocations: Vec<Allocation>,
    /// How a block of threads runs them.
    pub block: Block,
    /// The rows of boundary periods.
    pub boundary: BoundaryRows,
    /// In the order in which they act.
    pub sources: Vec<VolumeSource>,
    /// Per alignment.
    pub periods: Vec<PeriodProgram>,
}

/// An interior period of the towers of one alignment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeriodProgram {
    /// Values in registers when the period begins; after it each has moved by the advance.
    pub carried: Vec<Carried>,
    /// Values in shared rows when the period begins.
    pub held: Vec<SharedCopy>,
    /// The stages of each of the towers' variants. Where ends of the grid may cut rows off, all updates keep old
    /// values.
    pub variants: Vec<Vec<StageProgram>>,
}

/// A stage of a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StageProgram {
    /// Copies from memory to shared rows that begin with the stage and are there when the next one begins. Copies of
    /// the last stage belong to the next period.
    pub loads: Vec<SharedCopy>,
    /// Waves that are copied to slots while the stage before runs, and are there from the wait on: in periods that are
    /// not near faces of boxes of total fields across the first two axes.
    pub waves: Vec<WaveCopy>,
    pub ops: Vec<RowOp>,
}

/// An operation on a row, or on several.
#[derive(Clone, Debug, PartialEq)]
pub enum RowOp {
    /// The values that volume sources will add to rows of an update are brought to a cache, so that they are near when
    /// they are needed.
    Prefetch { update: usize, rows: Vec<RowUpdate> },
    /// From here on shared rows hold the loads of the previous stage, with ghosts along the inner axis if towers make
    /// them; slots hold the waves of this stage.
    Await,
    /// Begins to load the states and the coefficients of one axis that amendments of rows need, so that they are there
    /// when these act.
    Fetch(Vec<Amended>),
    /// Computes the new value of a row into a register.
    Update(Update),
    /// Turns the new values of rows into others where they lie in a zone, the same for all of them, and writes the new
    /// states to memory there.
    Amend(Vec<Amend>),
    /// Volume sources add to the new values of rows of an update.
    Inject {
        update: usize,
        rows: Vec<RowUpdate>,
        /// Of each row the slots of waves that were copied, one for each source of which they are. `None`: sources find
        /// all their waves now, as they do in periods near faces across the first two axes.
        copied: Option<Vec<usize>>,
    },
    /// The new value is final. Rows that an end of the grid cuts off keep their old one.
    Commit(RowUpdate),
    /// Writes a row from registers to a shared row, with its ghosts along the inner axis.
    Publish {
        row: RowRef,
        shared: usize,
        /// Indices beyond the ends of the row at which it is 0, and other rows of the shared row have values.
        zeros: Vec<i64>,
    },
    /// Writes a row from registers to memory. It was first written `before` stages before.
    Store { row: RowRef, before: i64 },
    /// Brings the thread's own value of a shared row to a register, if it is not there, for later stages.
    Keep(Operand),
}

/// The update of a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub row: RowUpdate,
    pub target: RowRef,
    /// Per operation of the body, where it finds the value that it reads; `None` for operations that read nothing. Where
    /// mirrors may cut rows off, a row that reads beyond one takes the operand of another operation
    /// ([`Towers::mirrored`]).
    pub operands: Vec<Option<Operand>>,
    /// Where the update has a mask.
    pub mask: Option<Operand>,
    /// The old value, where some threads or rows keep it, or amendments read it.
    pub old: Option<Operand>,
}

/// An amendment of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amended {
    pub row: RowUpdate,
    /// Index into the amendments of the update.
    pub amendment: usize,
}

/// How a row is amended.
#[derive(Clone, Debug, PartialEq)]
pub struct Amend {
    pub of: Amended,
    pub target: RowRef,
    /// Per operation of the amendment's body, where it finds a value of a row; `None` for operations that read none:
    /// states and coefficients of one axis have been fetched.
    pub operands: Vec<Option<Operand>>,
    /// Where the update has a mask.
    pub mask: Option<Operand>,
}

/// Where a thread finds a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Its own, in a register.
    Register(RowRef),
    /// Its own, in a shared row; from here on it is in a register.
    Entering { row: RowRef, shared: usize },
    /// The value at an index `by` away, in a shared row.
    CrossLane { row: RowRef, shared: usize, by: i64 },
    /// Its own old value of a row whose new one is not final, in a register.
    Old(RowRef),
}

impl Operand {
    pub fn row(&self) -> RowRef {
        match *self {
            Operand::Register(row)
            | Operand::Old(row)
            | Operand::Entering { row, .. }
            | Operand::CrossLane { row, .. } => row,
        }
    }
}

/// Why a schedule has no tower program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoProgram {
    /// Its tiles are no towers.
    Unfit(Unfit),
    /// A block cannot run them.
    Misfit(Misfit),
}

impl fmt::Display for NoProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoProgram::Unfit(unfit) => unfit.fmt(f),
            NoProgram::Misfit(misfit) => misfit.fmt(f),
        }
    }
}

impl std::error::Error for NoProgram {}

impl From<Unfit> for NoProgram {
    fn from(unfit: Unfit) -> Self {
        NoProgram::Unfit(unfit)
    }
}

impl From<Misfit> for NoProgram {
    fn from(misfit: Misfit) -> Self {
        NoProgram::Misfit(misfit)
    }
}

/// Towers whose values have places, but that no block runs yet: the part of a program that is the same for all
/// divisions of lines.
#[derive(Clone, Debug, PartialEq)]
pub struct AllocatedTowers {
    pub towers: Towers,
    pub allocations: Vec<Allocation>,
    pub boundary: BoundaryRows,
    /// Volume sources, in the order in which they act.
    pub sources: Vec<VolumeSource>,
    /// Places along the inner axis at which rows far from faces are corrected.
    places: usize,
}

impl AllocatedTowers {
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        tiles: &Checked<TileProgram>,
        numbering: Numbering,
    ) -> Result<AllocatedTowers, NoProgram> {
        if reads_ghosts_of_zeros(scheme) {
            return Err(Unfit::Zeros.into());
        }
        let towers = Towers::new(scheme, layout, tiles, numbering)?;
        let boundary = boundary_rows(&towers)?;
        let allocate = |residency| Allocation::new(residency, towers.advance);
        Ok(AllocatedTowers {
            allocations: towers.alignments.iter().map(allocate).collect(),
            towers,
            boundary,
            sources: Vec::new(),
            places: 0,
        })
    }

    /// The same with sources that correct rows: at each place where rows meet the boxes `faces` along the first two
    /// axes, at `places` places along the inner axis elsewhere.
    pub fn correcting(
        mut self,
        faces: &[GroupBox],
        sources: &[VolumeSource],
        places: usize,
    ) -> AllocatedTowers {
        self.towers.variants = self.towers.variants.with_faces(faces);
        self.towers.rings.uniform &= sources.is_empty();
        self.sources = sources.to_vec();
        self.places = places;
        self
    }

    /// A block that runs them.
    pub fn block(
        &self,
        scheme: &Scheme,
        layout: &Layout,
        options: Options,
    ) -> Result<Block, Misfit> {
        let numbering = self.towers.numbering;
        if numbering == Numbering::Packed && options.division != Division::Shared(1) {
            return Err(Misfit::Line);
        }
        let View { scheme, layout } = &numbering.view(scheme, layout);
        let block = Block::new(scheme, layout, &self.towers, &self.allocations, options)?;
        let rows = self.towers.alignments.iter().map(|own| own.rows());
        let rows = rows.fold(GroupBox::default(), |all, own| all.hull(own));
        let block = block.with_coefs(ZoneCoefs::new(scheme, layout, rows), layout);
        let places = u32::try_from(self.places).unwrap_or(0);
        let slots = WaveSlots::new(scheme, &self.allocations, &self.sources, places);
        Ok(match slots {
            Some(slots) => block.with_slots(slots),
            None => block,
        })
    }

    /// The program of a block, if one gets lines and room.
    fn in_a_block(
        self,
        scheme: &Scheme,
        layout: &Layout,
        options: Options,
    ) -> Result<TowerProgram, NoProgram> {
        let block = self.block(scheme, layout, options)?;
        Ok(self.program(scheme, layout, block))
    }

    /// The program of such a block.
    pub fn program(self, scheme: &Scheme, layout: &Layout, block: Block) -> TowerProgram {
        let AllocatedTowers {
            towers,
            allocations,
            boundary,
            sources,
            ..
        } = self;
        let View { scheme, layout } = &towers.numbering.view(scheme, layout);
        let order = order::Context {
            scheme,
            layout,
            towers: &towers,
            sources: &sources,
            copies: block.slots.is_some(),
            coefs: &block.coefs,
            end_zeros: EndZeros::of(scheme, layout, &allocations),
            // Threads of a z block that have no part in an update keep the old value.
            keeps: block.lines.z_blocks().is_some(),
        };
        let period = |(alignment, allocation): (usize, &Allocation)| {
            let variants = towers.variants.all.iter();
            let stages = |variant: &Variant| order.stages(alignment, allocation, variant);
            PeriodProgram {
                carried: allocation.carried.clone(),
                held: allocation.held.clone(),
                variants: variants.map(stages).collect(),
            }
        };
        let periods = allocations.iter().enumerate().map(period).collect();
        TowerProgram {
            periods,
            towers,
            allocations,
            block,
            boundary,
            sources,
        }
    }
}

impl TowerProgram {
    /// The program of the towers of a tile program, if a block gets lines and room in some way.
    pub fn new(
        scheme: &Scheme,
        layout: &Layout,
        tiles: &Checked<TileProgram>,
        sources: &[VolumeSource],
        options: Options,
    ) -> Result<TowerProgram, NoProgram> {
        let towers = AllocatedTowers::new(scheme, layout, tiles, Numbering::Grid)?;
        let towers = towers.correcting(&[], sources, 0);
        towers.in_a_block(scheme, layout, options)
    }

    /// The same with packed rows, where no sources correct rows and a block has whole lines.
    pub fn packed(
        scheme: &Scheme,
        layout: &Layout,
        tiles: &Checked<TileProgram>,
        options: Options,
    ) -> Result<TowerProgram, NoProgram> {
        let towers = AllocatedTowers::new(scheme, layout, tiles, Numbering::Packed)?;
        towers.in_a_block(scheme, layout, options)
    }

    /// A scheme and a layout as its operations see them.
    pub fn view<'a>(&self, scheme: &'a Scheme, layout: &'a Layout) -> View<'a> {
        self.towers.numbering.view(scheme, layout)
    }

    /// Stages of a period.
    pub fn per_period(&self) -> usize {
        self.towers.per_period() as usize
    }
}
