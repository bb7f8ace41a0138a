//! Plane geometry for pictures: convex polygons, in floating point.

/// A point of a plane of positions and times, not of the page.
pub type Plane = [f64; 2];

/// The part of a convex polygon where `inside` is not negative (I. Sutherland, G. Hodgman, 1974).
pub fn cut(polygon: &[Plane], inside: impl Fn(Plane) -> f64) -> Vec<Plane> {
    let mut out = Vec::new();
    for (i, &a) in polygon.iter().enumerate() {
        let b = polygon[(i + 1) % polygon.len()];
        let (da, db) = (inside(a), inside(b));
        if da >= 0.0 {
            out.push(a);
        }
        if (da < 0.0) != (db < 0.0) && da != 0.0 {
            let t = da / (da - db);
            out.push([a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])]);
        }
    }
    out
}

pub fn area(polygon: &[Plane]) -> f64 {
    let mut sum = 0.0;
    for (i, a) in polygon.iter().enumerate() {
        let b = polygon[(i + 1) % polygon.len()];
        sum += a[0] * b[1] - b[0] * a[1];
    }
    0.5 * sum.abs()
}

/// The corners of the convex hull, counter-clockwise (A. Andrew's monotone chain, 1979).
pub fn hull(mut points: Vec<Plane>) -> Vec<Plane> {
    points.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    points.dedup();
    if points.len() < 3 {
        return points;
    }
    let right = |o: Plane, a: Plane, b: Plane| {
        (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]) <= 1e-12
    };
    let half = |points: &mut dyn Iterator<Item = Plane>| {
        let mut chain: Vec<Plane> = Vec::new();
        for p in points {
            while let [.., a, b] = chain[..] {
                if !right(a, b, p) {
                    break;
                }
                chain.pop();
            }
            chain.push(p);
        }
        chain.pop();
        chain
    };
    let mut out = half(&mut points.iter().copied());
    out.extend(half(&mut points.iter().rev().copied()));
    out
}
