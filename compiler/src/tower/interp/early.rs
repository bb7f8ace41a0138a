//! The first operations of a stage, which wait for no loads: towers run them as soon as the stage before is over, and the
//! neighbours may be behind.

use super::TowerInterp;
use super::interior::{Interior, Lane};
use super::line::Line;
use super::state::{Begun, Tower, UnderWay};
use super::volume::VolumeAt;
use crate::real::Real;
use crate::tower::program::RowOp;
use crate::tower::residency::StageAt;

impl<T: Real> TowerInterp<'_, T> {
    /// The lanes of a tower in a stage of which some operations have been run.
    pub(super) fn lane<'s, 'p>(
        &self,
        of: Interior<'p>,
        tower: &'s mut Tower<T>,
        shared: &'s mut [Line<T>],
        stage: Begun<T>,
    ) -> Lane<'s, 'p, T> {
        Lane {
            of,
            at: StageAt::new(self.scheme, of.stage as i64),
            origin: of.origin(self.program.towers.advance),
            tower,
            shared,
            stage,
        }
    }

    /// Runs the operations of a stage that come before the wait for loads.
    pub(super) fn begin_stage(
        &mut self,
        of: Interior<'_>,
        tower: &mut Tower<T>,
        shared: &mut [Line<T>],
        volumes: &VolumeAt<'_, T>,
    ) -> Result<(), String> {
        let ops = self.stages_of(of)[of.stage].ops.iter();
        let early: Vec<RowOp> = ops.take_while(|op| **op != RowOp::Await).cloned().collect();
        let begun = Begun {
            ops: early.len(),
            ..Begun::default()
        };
        let mut lane = self.lane(of, tower, shared, begun);
        for op in &early {
            self.op(op, &mut lane, &UnderWay::new(), volumes)?;
        }
        let begun = lane.stage;
        tower.begun = Some(begun);
        Ok(())
    }
}
