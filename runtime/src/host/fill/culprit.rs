//! The file whose value keeps a start value from being finite.

use super::{Fill, Stored};
use torre_compiler::host::{HostExpr, HostPoint};
use torre_compiler::lattice::PerAxis;
use torre_compiler::problem::StaticValue;
use torre_compiler::real::Real;
use torre_compiler::scheme::FileId;
use torre_compiler::statics::{GridPoint, start_of};

impl<T: Real> Fill<'_, T> {
    /// The path of the first file whose value there is not finite in this precision, if there is one.
    pub(super) fn culprit(&self, of: Stored, at: PerAxis<i64>) -> Option<String> {
        let scheme = self.scheme;
        let is_finite = |value: f64| T::from_f64(value).to_f64().is_finite();
        let point = |position| GridPoint {
            scheme,
            files: self.files,
            position,
            at,
            time: 0.0,
        };
        let read_by = |expr: &HostExpr, point: GridPoint<'_>| {
            let mut found: Option<FileId> = None;
            expr.any(&mut |e| match e {
                HostExpr::File { file, offset } if !is_finite(point.file(*file, *offset)) => {
                    found = Some(*file);
                    true
                }
                _ => false,
            });
            found
        };
        let file = match of {
            Stored::Coef(id) => {
                let coef = &scheme.coefs[id.index()];
                read_by(&coef.value, point(coef.position))
            }
            Stored::Initial(id, age) => {
                let start = start_of(scheme, self.problem, id, age)?;
                match &start.init.value {
                    StaticValue::Expr(e) => read_by(e, point(scheme.component(id).position)),
                    StaticValue::File(file) => Some(*file),
                }
            }
        };
        file.map(|file| scheme.files[file.index()].path.clone())
    }
}
