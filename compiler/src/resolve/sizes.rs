//! Warnings about cell sizes and time steps that have other names than the ones that count.

use super::codes;
use super::derive::{Declared, SchemeText};
use super::resolver::Resolver;
use super::value::Scope;
use crate::lattice::PerAxis;
use torre_grammar::ast::{Name, SchemeStmt};
use torre_grammar::diag::Diagnostic;

impl Resolver<'_> {
    /// Warns where differences take cells of size 1, or time a step of 1, for want of a parameter, and the scheme has
    /// something that looks like it.
    pub fn warn_of_sizes(&mut self, text: &SchemeText) {
        let names = numbers(text);
        let axes = self.frame.axes.clone();
        let list: Vec<&str> = axes.iter().map(|(n, _)| n.as_str()).collect();
        let unsized_with = |used: &PerAxis<bool>| {
            let unsized_axes = axes.iter().filter(|(_, a)| self.frame.unsized_axes[*a]);
            let found = unsized_axes.filter(|(_, a)| used[*a]);
            found.map(|(n, _)| n.as_str()).collect::<Vec<&str>>()
        };
        let differences = unsized_with(&self.frame.differences);
        let coordinates = unsized_with(&self.frame.coordinates);
        let look_alike =
            |is: fn(&str, &[&str]) -> bool| names.iter().find(|(_, n)| is(&n.node, &list));
        // A depth may be called `h` where nothing is divided by a cell size.
        let found = match (differences.first(), coordinates.first()) {
            (Some(first), _) => {
                look_alike(is_cell_size).map(|n| (n, first, "differences", &differences))
            }
            (None, Some(first)) => {
                look_alike(is_size_along).map(|n| (n, first, "coordinates", &coordinates))
            }
            (None, None) => None,
        };
        if let Some(((scope, name), first, subject, along)) = found {
            let along = along.join(", ");
            let message = format!(
                "{subject} along {along} take cells of size 1, but `{}` looks like a cell size",
                name.node
            );
            let hint = format!(
                "the cell size is the parameter `h`, or `h{first}` along {first}: `param h = ...`; differences are \
                 divided by it, and coordinates count in it"
            );
            let mut sized = axes.iter().filter(|(_, a)| !self.frame.unsized_axes[*a]);
            let label = match sized.find(|(axis, _)| name.node == format!("h{axis}")) {
                Some((axis, _)) => format!("is the cell size along {axis} alone"),
                None => "is not the cell size".to_string(),
            };
            self.report.push(
                Diagnostic::warning(codes::CELLS_OF_SIZE_1, message)
                    .at(&scope.source, name.span, label)
                    .hint(hint),
            );
        }
        if self.frame.no_step
            && let Some((scope, name)) = names.iter().find(|(_, n)| is_step(&n.node))
        {
            let message = format!(
                "the time step is 1, but `{}` looks like a time step",
                name.node
            );
            self.report.push(
                Diagnostic::warning(codes::STEP_OF_1, message)
                    .at(&scope.source, name.span, "is not the time step")
                    .hint("the time step is the parameter `dt`: `param dt = ...`; times of sources and results \
                           count by it"),
            );
        }
    }
}

/// The parameters, constants and coefficients of a scheme and of its bases, each with the scope of its declaration.
fn numbers(text: &SchemeText) -> Vec<(&Scope, &Name)> {
    let declarations = text.body.iter();
    declarations
        .filter_map(|Declared { scope, stmt, .. }| match stmt {
            SchemeStmt::Param { name, .. } | SchemeStmt::Const { name, .. } => {
                Some((&**scope, name))
            }
            SchemeStmt::Coef(coef) => Some((&**scope, &coef.name)),
            _ => None,
        })
        .collect()
}

/// A name in small letters without `_`.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| *c != '_');
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

fn is_cell_size(name: &str, axes: &[&str]) -> bool {
    let whole = ["h", "dh", "ds", "dl", "delta", "spacing"];
    whole.contains(&plain(name).as_str()) || is_size_along(name, axes)
}

/// Whether a name speaks of cells, or of an axis.
fn is_size_along(name: &str, axes: &[&str]) -> bool {
    const ENDINGS: [&str; 4] = ["size", "step", "spacing", "width"];
    let name = plain(name);
    let of_axis = axes.iter().any(|axis| {
        let axis = plain(axis);
        ["d", "h", "delta", "spacing"]
            .iter()
            .any(|start| name == format!("{start}{axis}"))
    });
    let spoken = ["cell", "grid", "mesh", "lattice"].iter().any(|start| {
        name.strip_prefix(start)
            .is_some_and(|end| ENDINGS.contains(&end))
    });
    of_axis || spoken
}

fn is_step(name: &str) -> bool {
    let name = plain(name);
    [
        "dt", "tau", "dtau", "deltat", "timestep", "tstep", "steptime",
    ]
    .contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sizes_are_known() {
        let axes = ["x", "y"];
        for name in [
            "dx",
            "dy",
            "DX",
            "delta_x",
            "h_x",
            "hx",
            "h",
            "spacing",
            "cell_size",
            "GridSpacing",
        ] {
            assert!(is_cell_size(name, &axes), "{name}");
        }
        for name in [
            "dz", "c", "rho", "dt", "d", "cells", "x0", "width", "order", "kx", "sizes",
        ] {
            assert!(!is_cell_size(name, &axes), "{name}");
        }
        for name in ["dt", "tau", "Delta_t", "time_step", "DT"] {
            assert!(is_step(name), "{name}");
        }
        for name in ["t0", "step", "steps", "duration", "dx", "taup"] {
            assert!(!is_step(name), "{name}");
        }
    }
}
