//! Warnings that a program silences, for warnings that need the values of files or a run.

use super::allow::block_of;
use super::codes::STILL_DRIVE;
use super::report::{Place, Silence};
use crate::analysis::StillDrive;
use crate::problem::Problem;
use torre_grammar::ast::ItemKind;
use torre_grammar::diag::{Code, Diagnostic};
use torre_grammar::source::Source;

/// The silences of a program, and places to which later warnings refer.
#[derive(Clone, Debug, Default)]
pub struct Silences {
    pub(super) list: Vec<Silence>,
    /// The blocks of the problem and of its schemes.
    pub(super) blocks: Vec<Place>,
    /// Where each incident field of the problem has its name.
    pub(super) incidents: Vec<Place>,
}

impl Silences {
    /// Whether the block of the problem, or of one of its schemes, allows warnings of a code.
    pub fn of_blocks(&self, code: Code) -> bool {
        let mut silences = self.list.iter();
        silences.any(|silence| self.blocks.iter().any(|block| silence.covers(code, block)))
    }

    /// The warning of a drive that stands still in part, unless it is not wanted.
    pub fn still_drive(&self, drive: &StillDrive, problem: &Problem) -> Option<Diagnostic> {
        let place = self.incidents.get(drive.incident)?;
        let is_allowed = (self.list.iter()).any(|silence| silence.covers(STILL_DRIVE, place));
        (!is_allowed).then(|| still_drive(drive, problem, place))
    }
}

/// The warning of a drive that stands still in part, at the name of its field.
pub(super) fn still_drive(drive: &StillDrive, problem: &Problem, place: &Place) -> Diagnostic {
    let [message, remedy] = drive.describe(problem);
    let label = "the wave is smaller than its drive";
    let warning = Diagnostic::warning(STILL_DRIVE, message);
    warning.at(&place.source, place.span, label).hint(remedy)
}

/// The block of a problem or of a scheme.
pub(super) fn block_of_item(source: &Source, item: &ItemKind) -> Option<Place> {
    let span = match item {
        ItemKind::Problem(problem) => block_of(&problem.body),
        ItemKind::Scheme(scheme) => block_of(&scheme.body),
        _ => None,
    };
    span.map(|span| Place::new(source, span))
}
