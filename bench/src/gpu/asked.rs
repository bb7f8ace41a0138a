//! Which towers and pyramids are measured.

use std::fmt;
use torre_compiler::patch;
use torre_compiler::tower::Order;

/// Towers to measure: `auto`, `every`, `WIDTH,HEIGHT` or `WIDTH,HEIGHT,STRIP,OVERLAP,HEAD_START,PARTITIONS`; or
/// pyramids: `WARPS,LINES,CELLS,BLOCKS,HEIGHT`, `,shared` where coefficients lie in shared memory, and `,again` where
/// rows have the same slots one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The schedules that the model expects to be fastest.
    Auto,
    /// All schedules that it looks at and the device can run.
    Every,
    These {
        /// The pitch of both faces in cells.
        width: i64,
        /// Steps of a time block.
        height: u64,
        /// Another order of towers than the usual one.
        order: Option<Order>,
    },
    Pyramids {
        shape: patch::Shape,
        /// Steps of a time block.
        height: u64,
    },
}

impl Asked {
    /// Pyramids of some shape.
    pub fn pyramids(text: &str) -> Option<Asked> {
        let (text, reuses_slots) = match text.strip_suffix(",again") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (numbers, coefs) = match text.strip_suffix(",shared") {
            Some(numbers) => (numbers, patch::CoefPlace::Shared),
            None => (text, patch::CoefPlace::Registers),
        };
        let numbers: Result<Vec<u32>, _> = numbers.split(',').map(|n| n.trim().parse()).collect();
        let numbers = numbers.ok()?;
        let all: Vec<i64> = numbers.iter().map(|n| (*n).into()).collect();
        // Warps, lines and cells; with three axes threads and cells along each.
        let (threads, patch, [blocks, height]) = match *all.as_slice() {
            [warps, lines, cells, blocks, height] => {
                let own = patch::Shape::of_lines(warps, [lines, cells], coefs);
                (own.threads, own.patch, [blocks, height])
            }
            [tx, ty, tz, px, py, pz, blocks, height] => {
                ([tx, ty, tz], [px, py, pz], [blocks, height])
            }
            _ => return None,
        };
        let shape = patch::Shape {
            threads,
            patch,
            coefs,
            reuses_slots,
            blocks: u32::try_from(blocks).ok()?,
        };
        let positive = all.iter().all(|n| *n > 0 && *n <= 1024);
        let possible = positive && shape.is_whole() && shape.warps() <= 32 && shape.count() <= 256;
        possible.then_some(Asked::Pyramids {
            shape,
            height: height as u64,
        })
    }

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
            [strip, overlap, head_start, partitions] if strip > 0 && partitions > 0 => {
                Some(Order {
                    width: i64::from(strip),
                    overlap: i64::from(overlap),
                    head_start,
                    partitions,
                })
            }
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
            Asked::Pyramids { shape, height } => {
                let [lines, _, cells] = shape.patch;
                let blocks = shape.blocks;
                let own = patch::Shape::of_lines(shape.warps(), [lines, cells], shape.coefs);
                match (own.threads, own.patch) == (shape.threads, shape.patch) {
                    true => write!(f, "{},{lines},{cells}", shape.warps())?,
                    false => {
                        let [tx, ty, tz] = shape.threads;
                        let [px, py, pz] = shape.patch;
                        write!(f, "{tx},{ty},{tz},{px},{py},{pz}")?;
                    }
                }
                write!(f, ",{blocks},{height}")?;
                match shape.coefs {
                    patch::CoefPlace::Registers => {}
                    patch::CoefPlace::Shared => f.write_str(",shared")?,
                }
                match shape.reuses_slots {
                    true => f.write_str(",again"),
                    false => Ok(()),
                }
            }
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
                        head_start,
                        partitions,
                    }) => write!(f, ",{width},{overlap},{head_start},{partitions}"),
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
    fn pyramids_are_five_numbers() {
        for right in [
            "8,8,4,1,8",
            "16,4,2,2,3,shared",
            "8,10,4,1,1,shared,again",
            "8,8,4,1,8,again",
        ] {
            let asked = Asked::pyramids(right).map(|a| a.to_string());
            assert_eq!(asked.as_deref(), Some(right));
        }
        for wrong in [
            "",
            "8,8,4,1",
            "8,8,4,1,8,2",
            "0,8,4,1,8",
            "33,8,4,1,8",
            "8,8,4,1,8,local",
            "8,8,4,1,8,again,shared",
        ] {
            assert_eq!(Asked::pyramids(wrong), None, "{wrong}");
        }
    }

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
