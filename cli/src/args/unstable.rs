//! The option `--allow-unstable`, for each command that looks at the step.

use clap::builder::{BoolValueParser, TypedValueParser};

/// The treatment of a calculation with an unstable step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstable {
    Refused,
    Allowed,
}

/// A flag that allows an unstable step.
pub(super) fn unstable() -> impl TypedValueParser<Value = Unstable> {
    BoolValueParser::new().map(|allowed| match allowed {
        true => Unstable::Allowed,
        false => Unstable::Refused,
    })
}

#[cfg(test)]
mod tests {
    use super::Unstable;
    use crate::args::{Cli, Command};
    use clap::Parser;

    fn unstable(line: &str) -> Option<Unstable> {
        let words = line.split_whitespace();
        let cli = Cli::try_parse_from(std::iter::once("torre").chain(words)).ok()?;
        match cli.command {
            Command::Check(args) => Some(args.unstable),
            Command::Run(args) => Some(args.unstable),
            Command::Build(args) => Some(args.unstable),
            _ => None,
        }
    }

    #[test]
    fn each_command_that_refuses_a_step_allows_it() {
        for command in ["check a.torre", "run a.torre", "build a.torre -o b"] {
            assert_eq!(unstable(command), Some(Unstable::Refused), "{command}");
            let allowed = format!("{command} --allow-unstable");
            assert_eq!(unstable(&allowed), Some(Unstable::Allowed), "{command}");
            assert_eq!(unstable(&format!("{allowed}=true")), None);
        }
    }
}
