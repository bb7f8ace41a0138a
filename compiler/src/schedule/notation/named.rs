//! Schedules that have a name of their own.

use super::{PYRAMID_HEIGHTS, Reader, Result};
use crate::cone::Rational;
use crate::lattice::PerAxis;
use crate::schedule::template::{self, Size, Template};
use torre_grammar::ast;

impl Reader<'_> {
    /// A shape of the library, with all its axes.
    pub(super) fn named(&self, level: &ast::ScheduleLevel) -> Result<Template> {
        let name = &level.shape.name;
        let dimensions = self.scheme.grid.dimensions();
        let allowed: &[&str] = match (name.node.as_str(), dimensions) {
            ("layerwise" | "auto", _) => &[],
            ("torre", 3) => &["D", "W", "G", "TH", "Z"],
            ("diamond" | "skewed", 2) => &["P", "TH", "Z"],
            ("diamond", 1) => &["P", "TH"],
            ("pyramid", 1) => &["B", "TH"],
            ("pyramid", _) => &["B", "TH", "Z"],
            ("box", 1) => &["B"],
            ("box", _) => &["B", "Z"],
            ("torre" | "diamond" | "skewed", _) => {
                let count = ["no axes", "one axis", "two axes", "three axes"][dimensions.min(3)];
                let message = format!("`{}` is no shape for {count}", name.node);
                return Err(self.error(name.span, message, "this scheme needs another shape").hint(
                    "torre is for three axes, diamond for one or two, skewed for two; or write levels, as in `x: skewed(P = 32) height 16`",
                ));
            }
            _ => {
                let message = format!("there is no schedule `{}`", name.node);
                return Err(self.error(name.span, message, "unknown schedule").hint(
                    "layerwise, auto, torre, diamond, skewed, pyramid, box, the name of a schedule block, or levels such as `(x, y): diamond(D = 2) height 16`",
                ));
            }
        };
        let mut given: Vec<(String, Size)> = Vec::new();
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
            let size = self.size(&arg_name.node, &arg.value, arg_name.span)?;
            given.push((arg_name.node.clone(), size));
        }
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
        let take = |want: &str| {
            given
                .iter()
                .find(|(n, _)| n == want)
                .map(|(_, s)| s.clone())
        };
        let or = |want: &str, values: &[i64]| take(want).unwrap_or_else(|| Size::of(want, values));
        let heights = [4, 8, 16, 32];
        let any = given.is_empty();
        Ok(match (name.node.as_str(), dimensions) {
            ("layerwise", _) => Template::Layerwise,
            ("auto", _) => Template::Auto,
            ("torre", _) => {
                let width = match (take("D"), take("W")) {
                    (Some(_), Some(_)) => {
                        return Err(self.error(
                            name.span,
                            "both D and W are given",
                            "W = 2 s D: one of them is enough",
                        ));
                    }
                    (Some(d), None) => self.widths(d)?,
                    (None, Some(w)) => w,
                    (None, None) => or("W", &[4, 6, 8, 12, 16, 24]),
                };
                let groups: &[i64] = if any { &[1, 2, 3, 4, 6] } else { &[1] };
                let blocks: &[i64] = if any { &[0, 64, 128, 256] } else { &[0] };
                Template::Tiled(template::torre(
                    width,
                    or("G", groups),
                    or("TH", &heights),
                    or("Z", blocks),
                ))
            }
            ("pyramid", dimensions) => {
                for size in given.iter().map(|(_, size)| size) {
                    self.whole(size, name.span)?;
                }
                let bases: &[i64] = match dimensions {
                    1 => &[4096, 16384],
                    2 => &[32, 64, 128],
                    _ => &[16, 32, 64],
                };
                Template::Tiled(template::pyramid(
                    self.scheme,
                    or("B", bases),
                    or("TH", &PYRAMID_HEIGHTS),
                    or("Z", &[0]),
                ))
            }
            ("box", _) => {
                for size in given.iter().map(|(_, size)| size) {
                    self.whole(size, name.span)?;
                }
                Template::Tiled(template::boxes(
                    self.scheme,
                    or("B", &[8, 16, 32, 64]),
                    or("Z", &[0]),
                ))
            }
            ("diamond", 1) => Template::Tiled(template::line(
                or("P", &[1024, 4096, 16384]),
                or("TH", &[8, 32, 128]),
            )),
            (shape, _) => {
                let blocks: &[i64] = if any { &[0, 512, 1024] } else { &[0] };
                let make = if shape == "diamond" {
                    template::diamond
                } else {
                    template::skewed
                };
                Template::Tiled(make(
                    or("P", &[8, 16, 32, 64]),
                    or("TH", &heights),
                    or("Z", blocks),
                ))
            }
        })
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
