//! The medium that a plane wave goes through: the weights of an update at places outside of the faces of boxes.
//!
//! They are the same everywhere, or, where the wave goes along an axis, for all places with the same index along it.
//! Beyond the faces the medium goes on as it is at the outermost places.

use super::fault::Fault;
use super::shell::Shell;
use super::weigh::{Weigher, Weights};
use crate::lattice::{Axis, PerAxis, for_each_index};
use crate::scheme::{ComponentId, Update};
use crate::statics::Files;
use std::rc::Rc;

/// The weights that were found at one place; no weights where the update does not act.
#[derive(Clone, Debug)]
struct Seen {
    at: PerAxis<i64>,
    weights: Option<Weights>,
}

impl Seen {
    fn is_like(&self, other: &Option<Weights>) -> bool {
        match (&self.weights, other) {
            (Some(a), Some(b)) => Rc::ptr_eq(a, b) || a == b,
            (None, None) => true,
            _ => false,
        }
    }
}

/// The medium of an update.
#[derive(Clone, Debug)]
pub struct Background {
    target: ComponentId,
    /// The axis along which it may vary, and whether the wave goes to lower indices.
    along: Option<(Axis, bool)>,
    /// By index along the axis; otherwise one.
    seen: Vec<Option<Seen>>,
}

/// A part of a line in one medium: points up to one, which is the first of the next part.
#[derive(Clone, Debug)]
pub struct Layer {
    pub until: i64,
    pub weights: Weights,
}

impl Background {
    /// Of an update and a wave that goes in a direction, before any place was looked at.
    pub fn new(shell: &Shell<'_>, update: &Update, direction: PerAxis<i64>) -> Background {
        let mut axes = Axis::ALL.into_iter().filter(|axis| direction[*axis] != 0);
        let along = match (axes.next(), axes.next()) {
            (Some(axis), None) => Some((axis, direction[axis] < 0)),
            _ => None,
        };
        let extent = shell.scheme.extent(update.target);
        let count = along.map_or(1, |(axis, _)| extent[axis].hi.max(1));
        Background {
            target: update.target,
            along,
            seen: vec![None; count as usize],
        }
    }

    /// Looks at the places outside of the faces of a box.
    pub fn look(
        &mut self,
        shell: &Shell<'_>,
        files: &dyn Files,
        update: &Update,
    ) -> Result<(), Fault> {
        for outside in shell.outside(update.target) {
            let mut weigher = Weigher::new(shell.scheme, files, update, &[outside]);
            // Where weights are the same everywhere, one place tells.
            let acting = outside.intersect(update.region);
            if weigher.is_fixed() && (acting.is_empty() || acting == outside) {
                let weights = weigher.at(outside.map(|range| range.lo));
                let along = self.along.map(|(axis, _)| (axis, outside[axis]));
                let corner = outside.map(|range| range.lo);
                match along {
                    None => self.note(corner, &weights)?,
                    Some((axis, range)) => {
                        for index in range.lo..range.hi {
                            let mut at = corner;
                            at[axis] = index;
                            self.note(at, &weights)?;
                        }
                    }
                }
                continue;
            }
            let mut found = Ok(());
            for_each_index(outside, |at| {
                if found.is_ok() {
                    found = self.note(at, &weigher.at(at));
                }
            });
            found?;
        }
        Ok(())
    }

    fn note(&mut self, at: PerAxis<i64>, weights: &Option<Weights>) -> Result<(), Fault> {
        let target = self.target;
        if let Some(Err(why)) = weights.as_deref() {
            return Err(Fault::Nonlinear {
                target,
                at,
                why: why.clone(),
            });
        }
        let index = self.along.map_or(0, |(axis, _)| at[axis]);
        match &mut self.seen[index as usize] {
            Some(seen) if !seen.is_like(weights) => Err(Fault::Medium { target, at }),
            Some(_) => Ok(()),
            free => {
                *free = Some(Seen {
                    at,
                    weights: weights.clone(),
                });
                Ok(())
            }
        }
    }

    /// The media of the line, in the order of its points; none if the update does not act.
    pub fn layers(&self) -> Result<Vec<Layer>, Fault> {
        let backwards = self.along.is_some_and(|(_, backwards)| backwards);
        let mut all: Vec<(i64, &Seen)> = Vec::new();
        for (index, seen) in self.seen.iter().enumerate() {
            let point = if backwards {
                -(index as i64)
            } else {
                index as i64
            };
            all.extend(seen.iter().map(|seen| (point, seen)));
        }
        if backwards {
            all.reverse();
        }
        let mut layers: Vec<Layer> = Vec::new();
        for pair in all.windows(2) {
            let [(before, old), (point, new)] = [pair[0], pair[1]];
            if old.is_like(&new.weights) {
                continue;
            }
            let target = self.target;
            match (&old.weights, &new.weights) {
                (Some(_), Some(_)) if point > before + 1 => {
                    return Err(Fault::Unseen {
                        target,
                        at: [old.at, new.at],
                    });
                }
                (Some(weights), Some(_)) => layers.push(Layer {
                    until: point,
                    weights: weights.clone(),
                }),
                _ => return Err(Fault::Medium { target, at: new.at }),
            }
        }
        if let Some(weights) = all.last().and_then(|(_, last)| last.weights.clone()) {
            layers.push(Layer {
                until: i64::MAX,
                weights,
            });
        }
        Ok(layers)
    }
}
