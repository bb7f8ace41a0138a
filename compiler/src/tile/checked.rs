//! Tile programs that may be executed.

use super::TileProgram;
use super::lower::in_integers;
use super::verify::verify;
use crate::schedule::{Frame, Illegal, Tiling, check_tiling};
use crate::scheme::Scheme;
use std::fmt;
use std::ops::Deref;

/// A program that was checked before it is executed.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked<P>(P);

/// Why a tiling has no tile program.
#[derive(Clone, Debug, PartialEq)]
pub enum NoTiles {
    /// The tiling is not legal.
    Illegal(Illegal),
    /// The program breaks a rule of tile programs: a defect of the compiler.
    Fault(String),
}

impl fmt::Display for NoTiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTiles::Illegal(illegal) => write!(f, "{illegal:?}"),
            NoTiles::Fault(fault) => f.write_str(fault),
        }
    }
}

/// The tile program of a tiling, if the tiling is legal in the frame; the rules of tile programs are checked.
pub fn lower(
    scheme: &Scheme,
    frame: &Frame,
    tiling: &Tiling,
) -> Result<Checked<TileProgram>, NoTiles> {
    check_tiling(frame, tiling).map_err(NoTiles::Illegal)?;
    let program = in_integers(scheme, frame, tiling);
    verify(scheme, &program).map_err(NoTiles::Fault)?;
    Ok(Checked(program))
}

impl<P> Checked<P> {
    pub fn into_inner(self) -> P {
        self.0
    }
}

impl<P> Deref for Checked<P> {
    type Target = P;

    fn deref(&self) -> &P {
        &self.0
    }
}
