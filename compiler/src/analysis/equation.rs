//! Growth that the equations have themselves: of a laser's medium, of waves in a shear flow, of patterns.
//!
//! Von Neumann's condition for convergence is |G| <= 1 + C dt with one C for all small steps and cells (P. D. Lax and
//! R. D. Richtmyer, Comm. Pure Appl. Math. 9 (1956) 267-293). So growth is that of the equations where its rate per unit
//! of time, ln|G| / dt, tends to a limit as steps, and then steps and cells, get smaller. The growth of a step that is
//! too long ends with shorter steps; that of a method that is not centred in time falls with them; that of differences
//! that do not fit, or of equations without a solution that depends on their start values, rises with smaller cells.

use super::dispersion::{Lattice, Resolve};
use super::stability::{Stability, stability};
use super::zone::Effort;
use crate::scheme::Scheme;
use crate::statics::Files;

/// ln of the growth per step up to which a step resolves it.
const RESOLVED: f64 = 0.2;
/// The greatest relative difference of the rate to that of a step of a quarter: methods of first order have this much.
const OF_STEPS: f64 = 0.25;
/// The same for half a step and a quarter.
const OF_SHORTER: f64 = 0.1;
/// The same for cells of half the size: growth like the root of the wave number is 0.41 off.
const OF_CELLS: f64 = 0.3;

/// The rate per unit of time at which waves grow, if that is the rate of the equations; `found` has waves that grow.
pub fn growth_of_equations(
    found: &Stability,
    scheme: &Scheme,
    files: &dyn Files,
    resolve: Resolve<'_>,
) -> Option<f64> {
    let grid = &scheme.grid;
    if found.worst.rate > RESOLVED {
        return None;
    }
    let mut rate = |steps: f64, cells: f64| {
        let lattice = Lattice {
            dt: grid.dt / steps,
            spacing: grid.spacing.map(|h| h / cells),
        };
        let finer = resolve(&lattice)?;
        let found = stability(&finer, files, &Effort::QUICK).ok()?;
        Some(found.worst.rate / lattice.dt)
    };
    let near = |a: f64, b: f64, most: f64| b > 0.0 && (a - b).abs() <= most * b;
    let (half, quarter) = (rate(2.0, 1.0)?, rate(4.0, 1.0)?);
    if !near(found.worst.rate / grid.dt, quarter, OF_STEPS) || !near(half, quarter, OF_SHORTER) {
        return None;
    }
    // Steps that fourth derivatives allow.
    let finer = rate(16.0, 2.0)?;
    near(finer, quarter, OF_CELLS).then_some(quarter)
}
