//! Schedules that have a name of their own.

use super::{PYRAMID_HEIGHTS, Reader, Result};
use crate::cone::Rational;
use crate::lattice::PerAxis;
use crate::schedule::template::{self, Size, Template};
use torre_grammar::ast;

/// The sizes that are given, by their names.
struct Given(Vec<Size>);

impl Given {
    fn size(&self, name: &str) -> Option<Size> {
        self.0.iter().find(|size| size.name == name).cloned()
    }

    /// A size, or values to choose from.
    fn size_or(&self, name: &str, values: &[i64]) -> Size {
        self.size(name).unwrap_or_else(|| Size::of(name, values))
    }

    /// A size, or its first value where other sizes are given, or values to choose from.
    fn size_or_first(&self, name: &str, values: &[i64]) -> Size {
        let chosen = match self.0.is_empty() {
            true => values,
            false => &values[..1],
        };
        self.size_or(name, chosen)
    }
}

/// Steps that time blocks try.
const HEIGHTS: [i64; 4] = [4, 8, 16, 32];

impl Reader<'_> {
    /// A shape of the library, with all its axes.
    pub(super) fn named(&self, level: &ast::ScheduleLevel) -> Result<Template> {
        self.once(level)?;
        let name = &level.shape.name;
        let dimensions = self.scheme.grid.dimensions();
        let given = self.given(level, self.sizes_of(name, dimensions)?)?;
        if let Some(clause) = level.clauses.first() {
            let span = match clause {
                ast::ScheduleClause::Lean { axis, .. } => axis.span,
                ast::ScheduleClause::Word { word, .. } => word.span,
            };
            return Err(self
                .error(
                    span,
                    format!("`{}` takes no clauses", name.node),
                    "not here",
                )
                .hint("sizes go into the parentheses, as in `torre(D = 2, TH = 64)`"));
        }
        let template = match (name.node.as_str(), dimensions) {
            ("layerwise", _) => return Ok(Template::Layerwise),
            ("auto", _) => return Ok(Template::Auto),
            ("torre", _) => template::torre(
                self.width(name, &given)?,
                given.size_or_first("G", &[1, 2, 3, 4, 6]),
                given.size_or("TH", &HEIGHTS),
                given.size_or_first("Z", &[0, 64, 128, 256]),
            ),
            ("pyramid", dimensions) => {
                self.all_whole(name, &given)?;
                let bases: &[i64] = match dimensions {
                    1 => &[4096, 16384],
                    2 => &[32, 64, 128],
                    _ => &[16, 32, 64],
                };
                template::pyramid(
                    self.scheme,
                    given.size_or("B", bases),
                    given.size_or("TH", &PYRAMID_HEIGHTS),
                    given.size_or("Z", &[0]),
                )
            }
            ("box", _) => {
                self.all_whole(name, &given)?;
                template::boxes(
                    self.scheme,
                    given.size_or("B", &[8, 16, 32, 64]),
                    given.size_or("Z", &[0]),
                )
            }
            ("diamond", 1) => template::line(
                given.size_or("P", &[1024, 4096, 16384]),
                given.size_or("TH", &[8, 32, 128]),
            ),
            (shape, _) => {
                let make = match shape {
                    "diamond" => template::diamond,
                    _ => template::skewed,
                };
                make(
                    given.size_or("P", &[8, 16, 32, 64]),
                    given.size_or("TH", &HEIGHTS),
                    given.size_or_first("Z", &[0, 512, 1024]),
                )
            }
        };
        Ok(Template::Tiled(template))
    }

    /// The names of the sizes that a shape has.
    fn sizes_of(&self, name: &ast::Name, dimensions: usize) -> Result<&'static [&'static str]> {
        match (name.node.as_str(), dimensions) {
            ("layerwise" | "auto", _) => Ok(&[]),
            ("torre", 3) => Ok(&["D", "W", "G", "TH", "Z"]),
            ("diamond" | "skewed", 2) => Ok(&["P", "TH", "Z"]),
            ("diamond", 1) => Ok(&["P", "TH"]),
            ("pyramid", 1) => Ok(&["B", "TH"]),
            ("pyramid", _) => Ok(&["B", "TH", "Z"]),
            ("box", 1) => Ok(&["B"]),
            ("box", _) => Ok(&["B", "Z"]),
            ("torre" | "diamond" | "skewed", _) => {
                let count = ["no axes", "one axis", "two axes", "three axes"][dimensions.min(3)];
                let message = format!("`{}` is no shape for {count}", name.node);
                Err(self.error(name.span, message, "this scheme needs another shape").hint(
                    "torre is for three axes, diamond for one or two, skewed for two; or write levels, as in `x: \
                     skewed(P = 32) height 16`",
                ))
            }
            _ => {
                let message = format!("there is no schedule `{}`", name.node);
                Err(self.error(name.span, message, "unknown schedule").hint(
                    "layerwise, auto, torre, diamond, skewed, pyramid, box, the name of a schedule block, or levels \
                     such as `(x, y): diamond(D = 2) height 16`",
                ))
            }
        }
    }

    /// The sizes that are given, all of them with names that are allowed.
    fn given(&self, level: &ast::ScheduleLevel, allowed: &[&str]) -> Result<Given> {
        let name = &level.shape.name;
        let mut given = Vec::new();
        for arg in &level.shape.args {
            let Some(arg_name) = &arg.name else {
                return Err(self.error(
                    name.span,
                    "sizes need their names",
                    "as in `torre(D = 2, TH = 64)`",
                ));
            };
            if !allowed.contains(&arg_name.node.as_str()) {
                let message = format!("`{}` has no size `{}`", name.node, arg_name.node);
                return Err(self
                    .error(arg_name.span, message, "unknown size")
                    .hint(format!("its sizes are {}", allowed.join(", "))));
            }
            let size = match arg_name.node.as_str() {
                "TH" => self.steps("TH", &arg.value, arg_name.span)?,
                other => self.size(other, &arg.value, arg_name.span)?,
            };
            given.push(size);
        }
        Ok(Given(given))
    }

    fn all_whole(&self, name: &ast::Name, given: &Given) -> Result<()> {
        let mut sizes = given.0.iter();
        sizes.try_for_each(|size| self.whole(size, name.span))
    }

    /// The width of towers.
    fn width(&self, name: &ast::Name, given: &Given) -> Result<Size> {
        match (given.size("D"), given.size("W")) {
            (Some(_), Some(_)) => Err(self.error(
                name.span,
                "both D and W are given",
                "W = 2 s D: one of them is enough",
            )),
            (Some(d), None) => self.widths(d),
            (None, Some(width)) => Ok(width),
            (None, None) => Ok(given.size_or("W", &[4, 6, 8, 12, 16, 24])),
        }
    }

    /// Widths 2 s D for given D, with s the slope of x + y.
    fn widths(&self, d: Size) -> Result<Size> {
        let slope = self.frame.slope(PerAxis([1, 1, 0]));
        let values = d
            .values
            .iter()
            .map(|d| *d * slope * Rational::whole(2))
            .collect();
        Ok(Size {
            name: "W".to_string(),
            values,
            is_given: d.is_given,
        })
    }
}
