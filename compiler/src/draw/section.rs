//! Space along one axis against time: the past of a value, its cone, and the tiles.

use super::shape::{Plane, area, cut};
use super::{Cones, Cut, Group, MOST_TILES, Overlap, groups, names, tiles};
use crate::cone::{Dependence, Kind, Rational, axis_form, past};
use crate::lattice::{Axis, HalfIndex, PerAxis, Position};
use crate::scheme::{ComponentId, Scheme};
use crate::svg::{Frame, GREY, INK, Label, Mark, PALETTE, Svg, TILE, fill, pale, stroke};
use std::collections::BTreeSet;

/// The contents of a section.
#[derive(Clone, Debug)]
pub struct Section {
    /// The value whose past is drawn: the newest one after `steps` steps, at cell index 0.
    pub component: ComponentId,
    pub axis: Axis,
    pub steps: u32,
    /// How many stages after the value the picture shows.
    pub later: u32,
    /// The tiling that is laid over it, if any; cut at the place of the value along the other axes.
    pub cuts: Vec<Cut>,
    /// Overlapped tiles instead.
    pub overlap: Option<Overlap>,
    /// The whole tile that holds the value is drawn with the past of all that it computes, instead of the past of the
    /// value.
    pub whole: bool,
    /// A dependence that ends at the value, drawn as an arrow of its own: one that a face of the tiling cuts against
    /// the order.
    pub stressed: Option<Dependence>,
}

/// The colour of dependences against the order.
const WRONG: &str = "#c1121f";

/// The section as an SVG document. Past values are projected along the other axes.
pub fn section(scheme: &Scheme, cones: &Cones, view: &Section) -> String {
    let picture = Picture::new(scheme, cones, view);
    let frame = &picture.frame;
    let [wide, high] = frame.size;
    let extras = usize::from(view.is_tiled()) + usize::from(view.stressed.is_some());
    let legend_rows = picture.groups.len() + 2 + extras;
    let legend = frame.corner[1] + high + 62.0;
    let height = legend + 21.0 * legend_rows.div_ceil(2) as f64 + 10.0;
    let mut svg = Svg::new(wide + 64.0 + 76.0, height);
    frame.clip(&mut svg);
    picture.draw_tiles(&mut svg);
    picture.draw_cone(&mut svg);
    picture.draw_steps(&mut svg);
    picture.draw_reads(&mut svg);
    picture.draw_values(&mut svg);
    picture.stress(&mut svg);
    svg.unclip();
    frame.border(&mut svg);
    let name = scheme.grid.axis_name(view.axis);
    frame.bottom_axis(&mut svg, &format!("{name} / cells"));
    frame.left_axis(&mut svg, "stage");
    picture.label_steps(&mut svg);
    draw_legend(&mut svg, scheme, cones, view, legend, wide);
    let subject = match picture.tile {
        Some(_) => "a tile".to_owned(),
        None => scheme.component(view.component).name.clone(),
    };
    svg.finish(&format!(
        "{subject} of {} and its past along {name}",
        scheme.name
    ))
}

impl Section {
    fn is_tiled(&self) -> bool {
        !self.cuts.is_empty() || self.overlap.is_some()
    }
}

/// A section and its place on the page.
struct Picture<'a> {
    scheme: &'a Scheme,
    cones: &'a Cones,
    view: &'a Section,
    home: Position,
    /// Of a step.
    stages: i64,
    groups: Vec<Group>,
    /// The whole tile, if that is drawn.
    tile: Option<Tile>,
    /// The value or the tile, and all that it depends on.
    marked: BTreeSet<Event>,
    /// The last stage of these, and of the picture.
    top: i64,
    end: i64,
    /// The first and the last place, in whole cells.
    sides: [f64; 2],
    frame: Frame,
}

impl<'a> Picture<'a> {
    fn new(scheme: &'a Scheme, cones: &'a Cones, view: &'a Section) -> Picture<'a> {
        let axis = view.axis;
        let home = scheme.component(view.component).position;
        let tile = (view.whole && view.is_tiled()).then(|| Tile::of(scheme, cones, view));
        let (marked, top, reach) = match &tile {
            Some(tile) => (tile.past.clone(), tile.top, tile.reach()),
            None => {
                let past = past(scheme, cones, view.component, view.steps);
                let marked: BTreeSet<Event> = past
                    .events
                    .iter()
                    .map(|e| (e.time, e.component, (home[axis] + e.space[axis]).0))
                    .collect();
                let reach = marked.iter().map(|&(_, _, h)| h.abs()).max().unwrap_or(0);
                let top = past.events.last().map_or(0, |e| e.time);
                (marked, top, [-reach, reach])
            }
        };
        let end = top + i64::from(view.later);
        let sides = [
            (HalfIndex(reach[0]).as_f64() - 2.0).floor(),
            (HalfIndex(reach[1]).as_f64() + 2.0).ceil(),
        ];
        let cells = sides[1] - sides[0] + 0.6;
        let scale = (44.0f64).min(720.0 / cells);
        let row = (46.0f64).min(520.0 / (end + 1) as f64);
        let frame = Frame {
            corner: [64.0, 24.0],
            size: [cells * scale, (end + 1) as f64 * row],
            x: [sides[0] - 0.3, sides[1] + 0.3],
            y: [-0.5, end as f64 + 0.5],
        };
        Picture {
            scheme,
            cones,
            view,
            home,
            stages: i64::from(cones.stages.max(1)),
            groups: groups(scheme, |c| scheme.component(c).position[axis]),
            tile,
            marked,
            top,
            end,
            sides,
            frame,
        }
    }

    /// Where an event lies on the page, by its place in half cells and its stage.
    fn at(&self, h: i64, time: i64) -> [f64; 2] {
        self.frame.place(HalfIndex(h).as_f64(), time as f64)
    }

    /// The place of the value in half cells.
    fn apex(&self) -> i64 {
        self.home[self.view.axis].0
    }

    fn draw_tiles(&self, svg: &mut Svg) {
        let Picture { view, frame, .. } = self;
        let seen = match &self.tile {
            Some(_) => i64::from(view.steps) * self.stages - 1,
            None => self.top,
        };
        draw_tiles(svg, frame, view, self.home.map(HalfIndex::as_f64), seen);
        if let Some(overlap) = &view.overlap {
            let held = view.whole.then(|| overlap.time_block(self.top));
            draw_overlap(svg, frame, overlap, held);
        }
    }

    /// The area within the slopes below the value or the tile.
    fn draw_cone(&self, svg: &mut Svg) {
        let Picture { view, frame, .. } = self;
        let down = self.cones.slope(axis_form(view.axis, 1)).as_f64();
        let up = self.cones.slope(axis_form(view.axis, -1)).as_f64();
        if let Some(tile) = &self.tile {
            tile.draw_cone(svg, frame, [down, up]);
            return;
        }
        let (apex, top) = (self.home[view.axis].as_f64(), self.top as f64);
        let foot = top + 0.5;
        let corners = [
            frame.place(apex, top),
            frame.place(apex - down * foot, -0.5),
            frame.place(apex + up * foot, -0.5),
        ];
        let blue = if view.is_tiled() { 0.16 } else { 0.28 };
        svg.polygon(&corners, fill(PALETTE[5]).opacity(blue));
        for edge in [corners[1], corners[2]] {
            svg.line(corners[0], edge, stroke(PALETTE[0], 1.5).dashed("6 4"));
        }
    }

    /// The last step that the picture shows apart; -1 where steps are stages.
    fn last_step(&self) -> i64 {
        match self.stages > 1 {
            true => self.end / self.stages,
            false => -1,
        }
    }

    fn draw_steps(&self, svg: &mut Svg) {
        let [left, _] = self.frame.corner;
        for step in 1..=self.last_step() {
            let y = self.frame.place(0.0, (step * self.stages) as f64 - 0.5)[1];
            let style = stroke(GREY, 0.7).dashed("1 3");
            svg.line([left, y], [left + self.frame.size[0], y], style);
        }
    }

    fn label_steps(&self, svg: &mut Svg) {
        let right = self.frame.corner[0] + self.frame.size[0];
        for step in 0..=self.last_step() {
            let first = step * self.stages;
            let ends = [first, (first + self.stages - 1).min(self.end)];
            let middle = ends.map(|k| k as f64).iter().sum::<f64>() / 2.0;
            let [_, y] = self.frame.place(0.0, middle);
            let label = Label {
                size: 12.0,
                colour: GREY,
                ..Label::default()
            };
            svg.text([right + 10.0, y + 4.0], &format!("step {step}"), label);
        }
    }

    /// The reads of the value itself.
    fn draw_reads(&self, svg: &mut Svg) {
        if self.tile.is_some() {
            return;
        }
        let (apex, top, axis) = (self.apex(), self.top, self.view.axis);
        let reads = self.cones.dependences.iter().filter(|d| {
            d.kind == Kind::Flow && d.to.component == self.view.component && d.is_local()
        });
        let stage = top.rem_euclid(self.stages);
        let arrows: BTreeSet<(i64, i64)> = reads
            .filter(|d| i64::from(d.to.stage.0) == stage && d.stages <= top)
            .map(|d| (apex - d.space[axis].0, top - d.stages))
            .collect();
        for (h, time) in arrows {
            let (from, to) = (self.at(h, time), self.at(apex, top));
            let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
            let length = dx.hypot(dy).max(1.0);
            let short = |p: [f64; 2], by: f64| [p[0] + by * dx / length, p[1] + by * dy / length];
            svg.arrow(short(from, 6.0), short(to, -9.0), INK, 1.0);
        }
    }

    /// All values of the picture; marked ones are large.
    fn draw_values(&self, svg: &mut Svg) {
        let (scheme, axis) = (self.scheme, self.view.axis);
        for group in &self.groups {
            let (colour, mark) = (colour(group.stage), mark(scheme, group.components[0], axis));
            let parity = scheme.component(group.components[0]).position[axis].0;
            let [first, last] = self.sides.map(|side| 2 * side as i64);
            for time in (i64::from(group.stage)..=self.end).step_by(self.stages as usize) {
                for h in (first..=last).filter(|h| h.rem_euclid(2) == parity) {
                    let inside = |&c: &ComponentId| self.marked.contains(&(time, c, h));
                    if group.components.iter().any(inside) {
                        let style = fill(colour).outline("#ffffff", 0.8);
                        svg.mark(mark, self.at(h, time), 4.4, style);
                    } else {
                        let pale = pale(colour, 0.45);
                        let style = fill("#ffffff").outline(&pale, 1.0);
                        svg.mark(mark, self.at(h, time), 2.4, style);
                    }
                }
            }
        }
    }

    /// The dependence that is stressed, and the value whose past is drawn.
    fn stress(&self, svg: &mut Svg) {
        let apex = self.apex();
        if let Some(d) = &self.view.stressed {
            // The last event at the stage where the dependence ends.
            let later = self.top - (self.top - i64::from(d.to.stage.0)).rem_euclid(self.stages);
            let from = self.at(apex - d.space[self.view.axis].0, later - d.stages);
            svg.arrow(from, self.at(apex, later), WRONG, 2.6);
        }
        if self.tile.is_none() {
            let ring = self.at(apex, self.top);
            svg.mark(Mark::Circle, ring, 8.5, stroke(INK, 1.6));
        }
    }
}

/// The update of a component at a time, in stages, at a place along the axis, in half cells.
type Event = (i64, ComponentId, i64);

/// Half cells to either side of a value in which its tile is looked for.
const FAR: i64 = 400;

/// A whole tile.
struct Tile {
    events: BTreeSet<Event>,
    /// These and all that they depend on.
    past: BTreeSet<Event>,
    /// The last stage of the tile.
    top: i64,
}

impl Tile {
    /// The tile that holds the value of a section.
    fn of(scheme: &Scheme, cones: &Cones, view: &Section) -> Self {
        let stages = i64::from(cones.stages.max(1));
        let apex = i64::from(view.steps) * stages - 1;
        let home = scheme.component(view.component).position;
        let numbers = |h: i64, time: i64| -> Vec<Option<i64>> {
            let mut place = home;
            place[view.axis] = HalfIndex(h);
            view.cuts.iter().map(|cut| cut.tile(place, time)).collect()
        };
        let own = numbers(home[view.axis].0, apex);
        let holds = |h: i64, time: i64| match &view.overlap {
            Some(overlap) => overlap.holds(h, time, apex),
            None => numbers(h, time) == own,
        };
        let mut events = BTreeSet::new();
        for (number, stage) in scheme.stages.iter().enumerate() {
            for target in stage.updates.iter().map(|u| u.target) {
                let parity = scheme.component(target).position[view.axis].0;
                for time in (number as i64..=apex + FAR).step_by(stages as usize) {
                    let places = (-FAR..=FAR).filter(|h| h.rem_euclid(2) == parity);
                    let inside = places.filter(|&h| holds(h, time));
                    events.extend(inside.map(|h| (time, target, h)));
                }
            }
        }
        let reads: Vec<_> = cones
            .dependences
            .iter()
            .filter(|d| d.kind == Kind::Flow && d.is_local())
            .collect();
        let mut past = events.clone();
        let mut open: Vec<Event> = events.iter().copied().collect();
        while let Some((time, component, h)) = open.pop() {
            for d in &reads {
                let stage = time.rem_euclid(stages);
                if d.to.component != component || i64::from(d.to.stage.0) != stage {
                    continue;
                }
                let before = (time - d.stages, d.from.component, h - d.space[view.axis].0);
                if before.0 >= 0 && past.insert(before) {
                    open.push(before);
                }
            }
        }
        let top = events.last().map_or(apex, |event| event.0);
        Self { events, past, top }
    }

    /// The first and the last place of the tile, in half cells.
    fn reach(&self) -> [i64; 2] {
        let places = || self.events.iter().map(|event| event.2);
        [places().min().unwrap_or(0), places().max().unwrap_or(0)]
    }

    /// Draws the area within the slopes below the tile.
    fn draw_cone(&self, svg: &mut Svg, frame: &Frame, [down, up]: [f64; 2]) {
        let mut sides = [Vec::new(), Vec::new()];
        for time in (-1..=self.top).rev() {
            // Below the first stage, to the end of the picture.
            let at = if time < 0 { -0.5 } else { time as f64 };
            let above = self.events.range((time, ComponentId(0), i64::MIN)..);
            let ends = above.fold([f64::MAX, f64::MIN], |[low, high], &(later, _, h)| {
                let (place, ago) = (HalfIndex(h).as_f64(), later as f64 - at);
                [
                    f64::min(low, place - down * ago),
                    f64::max(high, place + up * ago),
                ]
            });
            for (side, end) in sides.iter_mut().zip(ends) {
                side.push(frame.place(end, at));
            }
        }
        let [left, right] = sides;
        let outline: Vec<_> = left.iter().chain(right.iter().rev()).copied().collect();
        svg.polygon(&outline, fill(PALETTE[5]).opacity(0.16));
        for side in [left, right] {
            svg.polyline(&side, stroke(PALETTE[0], 1.5).dashed("6 4"));
        }
    }
}

fn colour(stage: u32) -> &'static str {
    [PALETTE[0], PALETTE[1], PALETTE[2], PALETTE[3]][stage as usize % 4]
}

/// Whole positions are circles, halves are squares.
fn mark(scheme: &Scheme, component: ComponentId, axis: Axis) -> Mark {
    if scheme.component(component).position[axis].is_half() {
        Mark::Square
    } else {
        Mark::Circle
    }
}

/// The tiles that the frame shows, the one with the value stressed.
fn draw_tiles(svg: &mut Svg, frame: &Frame, view: &Section, home: PerAxis<f64>, top: i64) {
    let even = view.cuts.iter().all(Cut::is_even);
    let value = |cut: &Cut, p: Plane| {
        let mut at = home;
        at[view.axis] = p[0];
        // Faces that make steps do so between stages.
        let flat = even || cut.face.form.0 == [0; 3];
        cut.at(at, if flat { p[1] } else { (p[1] + 0.5).floor() })
    };
    let ([left, right], [bottom, high]) = (frame.x, frame.y);
    let rows = if even {
        vec![[bottom, high]]
    } else {
        let stages = bottom.ceil() as i64..=high.floor() as i64;
        stages
            .map(|k| [k as f64 - 0.499, k as f64 + 0.499])
            .collect()
    };
    let corners = |[lo, hi]: [f64; 2]| vec![[left, lo], [right, lo], [right, hi], [left, hi]];
    // Each tile: its polygon, and the sum of its numbers.
    let mut found: Vec<_> = rows.into_iter().map(|row| (corners(row), 0i64)).collect();
    for by in &view.cuts {
        let mut parts = Vec::new();
        for (polygon, sum) in &found {
            for n in tiles(polygon.iter().map(|&p| value(by, p))) {
                let above = cut(polygon, |p| value(by, p) - n as f64);
                let part = cut(&above, |p| (n + 1) as f64 - value(by, p));
                if area(&part) > 1e-9 {
                    parts.push((part, sum + n));
                }
            }
        }
        found = parts;
    }
    if view.cuts.is_empty() {
        return;
    }
    let numbers =
        |p: Plane| -> Vec<f64> { view.cuts.iter().map(|c| value(c, p).floor()).collect() };
    let apex = numbers([home[view.axis], top as f64]);
    for (polygon, sum) in &found {
        let count = polygon.len() as f64;
        let middle = [0, 1].map(|i| polygon.iter().map(|p| p[i]).sum::<f64>() / count);
        let points: Vec<_> = polygon.iter().map(|p| frame.place(p[0], p[1])).collect();
        let tint = if numbers(middle) == apex {
            fill(TILE)
        } else if sum.rem_euclid(2) == 0 {
            fill("#ffffff")
        } else {
            fill("#f3f4f6")
        };
        svg.polygon(&points, tint.outline("#b9a05a", 1.1));
    }
}

/// The overlapped tiles that the frame shows, the ones with cell 0 stressed, of one time block if it is `held`. The
/// values of a cell lie at its index and half a cell on.
fn draw_overlap(svg: &mut Svg, frame: &Frame, overlap: &Overlap, held: Option<i64>) {
    let ([left, right], [bottom, high]) = (frame.x, frame.y);
    let height = overlap.stages.len().max(1) as i64;
    let base = overlap.base.max(1);
    let shown = (left.floor() as i64).div_euclid(base)..=(right.ceil() as i64).div_euclid(base);
    let time_blocks =
        (bottom.ceil() as i64).div_euclid(height)..=(high.floor() as i64).div_euclid(height);
    let others = shown
        .take(2 * MOST_TILES as usize)
        .filter(|&tile| tile != 0);
    for tile in others.chain([0]) {
        for time_block in time_blocks.clone() {
            let rows = || overlap.stages.iter().enumerate();
            let row = |number: usize| (time_block * height) as f64 + number as f64;
            let side = |place: &dyn Fn(&[i64; 2]) -> i64| {
                rows()
                    .flat_map(|(number, beyond)| {
                        let at = place(beyond) as f64 - 0.25;
                        [[at, row(number) - 0.5], [at, row(number) + 0.5]]
                    })
                    .collect::<Vec<Plane>>()
            };
            let mut outline = side(&|[below, _]| tile * base - below);
            outline.extend(side(&|[_, above]| (tile + 1) * base + above).iter().rev());
            let points: Vec<_> = outline.iter().map(|p| frame.place(p[0], p[1])).collect();
            let stressed = tile == 0 && held.is_none_or(|held| held == time_block);
            if stressed {
                svg.polygon(&points, fill(TILE).opacity(0.75));
            }
            svg.polygon(&points, stroke("#b9a05a", if stressed { 1.6 } else { 0.8 }));
        }
    }
}

fn draw_legend(svg: &mut Svg, scheme: &Scheme, cones: &Cones, view: &Section, top: f64, wide: f64) {
    let axis = view.axis;
    let mut row = 0;
    let mut next = || {
        let (column, line) = (row % 2, row / 2);
        row += 1;
        [
            72.0 + f64::from(column) * (wide / 2.0).max(250.0),
            top + 21.0 * f64::from(line),
        ]
    };
    for group in groups(scheme, |c| scheme.component(c).position[axis]) {
        let [x, y] = next();
        let colour = colour(group.stage);
        let mark = mark(scheme, group.components[0], axis);
        svg.mark(mark, [x, y - 4.5], 4.4, fill(colour));
        let text = format!(
            "{}, stage {}",
            names(scheme, &group.components),
            group.stage
        );
        svg.text([x + 14.0, y], &text, Label::default());
    }
    let [x, y] = next();
    svg.mark(
        Mark::Circle,
        [x, y - 4.5],
        2.6,
        fill("#ffffff").outline(GREY, 1.0),
    );
    let name = match view.whole {
        true => "the tile",
        false => &scheme.component(view.component).name,
    };
    svg.text(
        [x + 14.0, y],
        &format!("does not influence {name}"),
        Label::default(),
    );
    let [x, y] = next();
    let corner = [x - 8.0, y - 11.0];
    svg.rect(corner, [16.0, 12.0], fill(PALETTE[5]).opacity(0.28));
    svg.line(
        corner,
        [x + 8.0, y - 11.0],
        stroke(PALETTE[0], 1.5).dashed("4 3"),
    );
    let [down, up] = cones.slopes()[axis];
    let unit = |s: Rational| if s == Rational::ONE { "cell" } else { "cells" };
    let slopes = if down == up {
        format!("{up} {}", unit(up))
    } else {
        format!("{up} and {down} {}", unit(down))
    };
    svg.text(
        [x + 14.0, y],
        &format!("cone: {slopes} per stage"),
        Label::default(),
    );
    if !view.cuts.is_empty() || view.overlap.is_some() {
        let [x, y] = next();
        svg.rect(
            [x - 8.0, y - 11.0],
            [16.0, 12.0],
            fill(TILE).outline("#b9a05a", 1.1),
        );
        let text = match view.whole {
            true => format!("one tile of {}", scheme.name),
            false => format!("tile of {name}"),
        };
        svg.text([x + 14.0, y], &text, Label::default());
    }
    if view.stressed.is_some() {
        let [x, y] = next();
        svg.arrow([x - 9.0, y - 4.5], [x + 9.0, y - 4.5], WRONG, 2.6);
        let text = "a dependence that the tiles run against";
        svg.text([x + 14.0, y], text, Label::default());
    }
}
