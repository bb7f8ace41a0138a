use super::*;
use crate::host::{HostBinary, HostUnary};
use crate::lattice::{HalfIndex, Position};
use crate::scheme::{Boundary, Precision};
use crate::statics::NoFiles;
use crate::testing::maxwell;

fn coordinate(axis: Axis, by: HalfIndex) -> HostExpr {
    HostExpr::Coordinate(axis, by)
}

fn binary(op: HostBinary, a: HostExpr, b: HostExpr) -> HostExpr {
    HostExpr::Binary(op, Box::new(a), Box::new(b))
}

fn unary(op: HostUnary, a: HostExpr) -> HostExpr {
    HostExpr::Unary(op, Box::new(a))
}

/// Sums and products of functions of one axis, conditions, and signs of zeros, in rows of an open and of a periodic
/// axis: the bits of each index, whether all parts, some or none have room,
/// of whole rows and of pieces of them.
#[test]
fn rows_have_the_bits_of_their_indices() {
    let z = |by| coordinate(Axis::INNER, by);
    let sine = |axis, by| unary(HostUnary::Sin, coordinate(axis, by));
    let x = || sine(Axis::OUTER, HalfIndex::HALF);
    let product = binary(
        HostBinary::Mul,
        x(),
        sine(Axis::INNER, HalfIndex::default()),
    );
    let mean = binary(
        HostBinary::Add,
        binary(HostBinary::Mul, x(), sine(Axis::INNER, HalfIndex::HALF)),
        product.clone(),
    );
    let signs = binary(
        HostBinary::Atan2,
        binary(
            HostBinary::Mul,
            z(HalfIndex::default()),
            HostExpr::Number(-0.0),
        ),
        binary(
            HostBinary::Add,
            x(),
            binary(
                HostBinary::Mul,
                z(HalfIndex::default()),
                HostExpr::Number(0.0),
            ),
        ),
    );
    let low = binary(HostBinary::Lt, z(HalfIndex::HALF), HostExpr::Number(3.0));
    let choice = HostExpr::If(
        Box::new(low),
        Box::new(mean.clone()),
        Box::new(unary(HostUnary::Sqrt, sine(Axis::INNER, HalfIndex::HALF))),
    );
    let inner = unary(HostUnary::Exp, sine(Axis::INNER, HalfIndex::HALF));
    let mixed = unary(
        HostUnary::Cos,
        binary(HostBinary::Mul, z(HalfIndex::HALF), x()),
    );
    for boundary in [Boundary::Pec, Boundary::Periodic] {
        let mut scheme = maxwell(2, Precision::F64, [6, 5, 9]);
        scheme.grid.boundary[Axis::INNER] = [boundary; 2];
        let cells = Interval::new(1, 9);
        let len = cells.len() as usize;
        let point = |x, y, z| GridPoint {
            scheme: &scheme,
            files: &NoFiles,
            position: Position::default(),
            at: PerAxis([x, y, z]),
            time: 0.5,
        };
        for (expr, parts) in [
            (&product, 1),
            (&mean, 2),
            (&signs, 2),
            (&choice, 4),
            (&inner, 1),
            (&mixed, 0),
        ] {
            for room in [0, len, 100 * len] {
                let mut left = room;
                let rows = RowExpr::new(expr, &point(0, 0, 0), cells, &mut left);
                let kept = rows.kept.of_part.len();
                assert_eq!(kept, parts.min(room / len), "{expr:?}");
                assert_eq!(left, room - kept * len);
                for (x, y) in [(0, 0), (2, 1), (5, 4)] {
                    let bits = |value: f64| value.to_bits();
                    for part in [cells, Interval::new(1, 4), Interval::new(4, 9)] {
                        let found = rows.eval(&point(x, y, 0), part).into_iter().map(bits);
                        let one_by_one = part.lo..part.hi;
                        let one_by_one = one_by_one.map(|z| bits(expr.eval(&point(x, y, z))));
                        assert!(found.eq(one_by_one), "{boundary:?} {expr:?}");
                    }
                }
            }
        }
    }
}
