//! Which towers are measured.

use std::fmt;
use torre_compiler::tower::Order;

/// Towers to measure: `auto`, `every`, `WIDTH,HEIGHT` or `WIDTH,HEIGHT,STRIP,OVERLAP,LEAD,PARTITIONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Those that the model expects to be fastest.
    Auto,
    /// All that it looks at and the device can run.
    Every,
    These {
        /// The pitch of both faces in cells.
        width: i64,
        /// Steps of a time block.
        height: u64,
        /// Another order of towers than the usual one.
        order: Option<Order>,
    },
}

impl Asked {
    pub fn parse(text: &str) -> Option<Asked> {
        match text {
            "auto" => return Some(Asked::Auto),
            "every" => return Some(Asked::Every),
            _ => {}
        }
        let numbers: Result<Vec<u32>, _> = text.split(',').map(|n| n.trim().parse()).collect();
        let numbers = numbers.ok()?;
        let (&[width, height], order) = numbers.split_first_chunk()?;
        let order = match *order {
            [] => None,
            [strip, overlap, lead, partitions] if strip > 0 && partitions > 0 => Some(Order {
                width: i64::from(strip),
                overlap: i64::from(overlap),
                lead,
                partitions,
            }),
            _ => return None,
        };
        (width > 0 && height > 0).then_some(Asked::These {
            width: i64::from(width),
            height: u64::from(height),
            order,
        })
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Asked::Auto => f.write_str("auto"),
            Asked::Every => f.write_str("every"),
            Asked::These {
                width,
                height,
                order,
            } => {
                write!(f, "{width},{height}")?;
                match order {
                    Some(Order {
                        width,
                        overlap,
                        lead,
                        partitions,
                    }) => write!(f, ",{width},{overlap},{lead},{partitions}"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn towers_are_two_or_six_numbers() {
        for right in ["auto", "every", "6,32", "6,32,16,0,1,2"] {
            let asked = Asked::parse(right).map(|a| a.to_string());
            assert_eq!(asked.as_deref(), Some(right));
        }
        for wrong in [
            "",
            "6",
            "6,32,16",
            "6,32,16,8",
            "6,32,16,8,0",
            "0,32,16,8,0,1",
            "6,0",
            "6,32,0,8,0,1",
            "6,32,-1,8,0,1",
            "6,32,16,8,0,0",
            "a,1,1,1,0,1",
            "6,32,16,8,0,1,1",
        ] {
            assert_eq!(Asked::parse(wrong), None, "{wrong}");
        }
    }
}
