//! The frequencies of a spectrum.

use super::codes;
use super::report::{Outcome, Place, short};
use super::resolver::Resolver;
use super::results::Recorded;
use crate::problem::Spectrum;
use torre_grammar::ast::{Arg, Expr, ExprKind};

/// Frequencies of one spectrum.
const FREQUENCIES: i64 = 4_096;
/// The word for frequencies at equal distances.
const EQUAL_DISTANCES: &str = "linspace";

impl Resolver<'_> {
    /// The spectrum of an output: at one frequency, at those of a list `[f1, f2]`, or at `linspace(from, to, number)`.
    pub fn spectrum(&mut self, recorded: &Recorded<'_>, frequencies: &Expr) -> Outcome<Spectrum> {
        let scope = recorded.scope;
        let list = match &frequencies.node {
            ExprKind::List(list) => {
                let list = list.iter().map(|f| self.frequency(recorded, f));
                list.collect::<Outcome<Vec<f64>>>()?
            }
            ExprKind::Call { callee, args } if is_named(callee, EQUAL_DISTANCES) => {
                self.equal_distances(recorded, args, &scope.place(frequencies.span))?
            }
            _ => vec![self.frequency(recorded, frequencies)?],
        };
        self.check_number(list.len() as i64, &scope.place(frequencies.span))?;
        Ok(Spectrum { frequencies: list })
    }

    /// Refuses a number of frequencies that a spectrum cannot have.
    fn check_number(&mut self, number: i64, place: &Place) -> Outcome<()> {
        if (1..=FREQUENCIES).contains(&number) {
            return Ok(());
        }
        let message = format!("a spectrum has from 1 to {FREQUENCIES} frequencies");
        let mut d = self.error(codes::SPECTRUM, message, place);
        d.labels[0].text = format!("this makes {number}");
        self.fail(d)
    }

    /// `linspace(from, to, number)`: both ends are among them.
    fn equal_distances(
        &mut self,
        recorded: &Recorded<'_>,
        args: &[Arg],
        place: &Place,
    ) -> Outcome<Vec<f64>> {
        let [from, to, number] = args else {
            let message = format!(
                "`{EQUAL_DISTANCES}` takes the first and the last frequency, and their number"
            );
            let d = self.error(codes::ARGUMENTS, message, place).hint(format!(
                "`{EQUAL_DISTANCES}(0.01, 0.03, 21)` is 0.01, 0.011, ..., 0.03"
            ));
            return self.fail(d);
        };
        if let Some(name) = args.iter().find_map(|arg| arg.name.as_ref()) {
            let message = format!("`{EQUAL_DISTANCES}` has no parameter `{}`", name.node);
            let d = self.error(codes::ARGUMENTS, message, &recorded.scope.place(name.span));
            return self.fail(d);
        }
        let from = self.frequency(recorded, &from.value);
        let to = self.frequency(recorded, &to.value);
        let place = recorded.scope.place(number.value.span);
        let number = self.integer(recorded.scope, &number.value)?;
        let (from, to) = (from?, to?);
        self.check_number(number, &place)?;
        let step = (to - from) / (number - 1) as f64;
        let one = |n: i64| match n {
            0 => from,
            n if n == number - 1 => to,
            n => from + step * n as f64,
        };
        Ok((0..number).map(one).collect())
    }

    /// A frequency: at most half of the rate at which values are taken.
    fn frequency(&mut self, recorded: &Recorded<'_>, e: &Expr) -> Outcome<f64> {
        let f = self.number(recorded.scope, e)?;
        let interval = recorded.every as f64 * self.frame.dt;
        let highest = 0.5 / interval;
        if f.abs() <= highest {
            return Ok(f);
        }
        let place = recorded.scope.place(e.span);
        let message = match f.is_finite() {
            true => format!(
                "values at intervals of {} cannot tell frequencies above {} from lower ones",
                short(interval),
                short(highest)
            ),
            false => "a frequency is a finite number".to_owned(),
        };
        let mut d = self.error(codes::SPECTRUM, message, &place);
        d.labels[0].text = format!("this is {}", short(f));
        let most = (0.5 / (f.abs() * self.frame.dt)).floor();
        if most >= 1.0 && most < recorded.every as f64 {
            d.hint = Some(format!(
                "frequencies are in cycles per unit of time; take values more often: at most `every {most}`"
            ));
        } else if f.is_finite() {
            d.hint = Some("frequencies are in cycles per unit of time, not in radians".to_owned());
        }
        self.fail(d)
    }
}

fn is_named(callee: &Expr, word: &str) -> bool {
    matches!(&callee.node, ExprKind::Name(name) if name == word)
}
