//! A picture of a tile: its warps and patches, its base, and where values are right after each step.

use super::{PatchProgram, creep};
use crate::lattice::Axis;
use crate::layout::Layout;
use crate::scheme::Scheme;
use crate::svg::{FAINT, Frame, GREY, INK, Label, PALETTE, Svg, TILE, TILE_EDGE, fill, stroke};

/// Cells around the tile that the picture shows.
const AROUND: f64 = 7.0;
/// Pixels of a cell.
const CELL: f64 = 5.4;

/// Along an axis from a cell to one behind the last, relative to the base.
type Span = [f64; 2];

/// The tile of a program with two axes as an SVG document, in cells from the first cell of its base. Boundaries are
/// interior ones: no end of the grid is near.
pub fn picture(scheme: &Scheme, layout: &Layout, program: &PatchProgram) -> String {
    let [outer, inner] = [0, 2].map(|n| &program.along[n]);
    let [lines, _, cells] = program.shape.tile();
    let span = |first: i64, length: i64| [first as f64, (first + length) as f64];
    let tile = [span(-outer.halo[0], lines), span(-inner.halo[0], cells)];
    let base = [span(0, outer.base), span(0, inner.base)];
    let wide = |[lo, hi]: Span| [lo - AROUND, hi + AROUND];
    let (x, y) = (wide(tile[1]), wide(tile[0]));
    let frame = Frame {
        corner: [64.0, 16.0],
        size: [(x[1] - x[0]) * CELL, (y[1] - y[0]) * CELL],
        x,
        y,
    };
    let bottom = frame.corner[1] + frame.size[1];
    let mut svg = Svg::new(frame.size[0] + 84.0, bottom + 112.0);
    let corner = |[rows, columns]: [Span; 2]| frame.place(columns[0], rows[1]);
    let size = |[rows, columns]: [Span; 2]| [columns, rows].map(|[lo, hi]: Span| (hi - lo) * CELL);
    frame.clip(&mut svg);
    let [height, _, length] = program.shape.patch;
    for warp in (0..program.shape.warps()).filter(|warp| warp % 2 == 0) {
        let rows = span(-outer.halo[0] + warp * height, height);
        let band = [rows, tile[1]];
        svg.rect(corner(band), size(band), fill("#eef3f8"));
    }
    for column in 0..=cells / length {
        let at = tile[1][0] + (column * length) as f64;
        let ends = tile[0].map(|row| frame.place(at, row));
        svg.line(ends[0], ends[1], stroke(FAINT, 0.7));
    }
    for row in 0..=lines / height {
        let at = tile[0][0] + (row * height) as f64;
        let ends = tile[1].map(|column| frame.place(column, at));
        svg.line(ends[0], ends[1], stroke(FAINT, 0.7));
    }
    svg.rect(corner(base), size(base), fill(TILE).opacity(0.75));
    for [up, right] in [
        [0, 1],
        [0, -1],
        [1, 0],
        [-1, 0],
        [1, 1],
        [1, -1],
        [-1, 1],
        [-1, -1],
    ] {
        let beside = [
            span(up * outer.base, outer.base),
            span(right * inner.base, inner.base),
        ];
        svg.rect(
            corner(beside),
            size(beside),
            stroke(GREY, 1.0).dashed("5 4"),
        );
    }
    let right_after = |steps: u64| {
        [(Axis::OUTER, tile[0]), (Axis::INNER, tile[1])].map(|(axis, [lo, hi])| {
            let [below, above] = creep(scheme, layout, axis, steps);
            [lo + below as f64, hi - above as f64]
        })
    };
    for steps in 1..program.height {
        let region = right_after(steps);
        svg.rect(corner(region), size(region), stroke(PALETTE[0], 0.8));
    }
    let patch = [
        span(-outer.halo[0] + program.shape.warps() / 2 * height, height),
        span(-inner.halo[0] + 10 * length, length),
    ];
    svg.rect(corner(patch), size(patch), fill(PALETTE[1]));
    svg.rect(corner(base), size(base), stroke(TILE_EDGE, 1.8));
    svg.rect(corner(tile), size(tile), stroke(INK, 1.4));
    svg.unclip();
    frame.border(&mut svg);
    let name = |axis| format!("{} / cells", scheme.grid.axis_name(axis));
    frame.bottom_axis(&mut svg, &name(Axis::INNER));
    frame.left_axis(&mut svg, &name(Axis::OUTER));
    let entries = [
        (fill(TILE).outline(TILE_EDGE, 1.8), "base"),
        (stroke(INK, 1.4), "tile, with its halo"),
        (
            stroke(GREY, 1.0).dashed("5 4"),
            "bases of the tiles beside it",
        ),
        (fill("#eef3f8").outline(FAINT, 0.7), "every second warp"),
        (fill(PALETTE[1]), "the patch of a thread"),
        (
            stroke(PALETTE[0], 0.8),
            "right values end here after 1, 2, 3 ... steps",
        ),
    ];
    for (n, (style, text)) in entries.into_iter().enumerate() {
        let at = [
            64.0 + 220.0 * (n % 3) as f64,
            bottom + 66.0 + 24.0 * (n / 3) as f64,
        ];
        svg.rect([at[0], at[1] - 10.0], [16.0, 12.0], style);
        svg.text([at[0] + 24.0, at[1]], text, Label::default());
    }
    svg.finish(&format!(
        "A tile of pyramids of {}, {} steps high",
        scheme.name, program.height
    ))
}
