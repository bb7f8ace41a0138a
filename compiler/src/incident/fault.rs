//! Why a field cannot come in.

use crate::analysis::Nonlinear;
use crate::lattice::{Axis, PerAxis};
use crate::scheme::{ComponentId, Scheme, ZoneId};

/// A fault of an incident field or one of its boxes.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The box has no faces.
    NoFaces,
    /// It is nearer to an end of zeros than updates reach.
    ZeroEnd { axis: Axis, upper: bool },
    /// It does not reach a mirror, and is nearer to it than updates read.
    MirrorEnd { axis: Axis, upper: bool },
    /// It neither spans a periodic axis nor keeps away from its ends.
    RingEnd { axis: Axis },
    /// The wave does not go straight along a periodic axis that the box spans.
    AroundRing { axis: Axis },
    /// The wave does not go along a mirror that the box reaches.
    IntoMirror { axis: Axis, upper: bool },
    /// The wave has a component that is odd about a mirror that the box reaches.
    OddAtMirror {
        axis: Axis,
        upper: bool,
        component: ComponentId,
    },
    /// A face lies in a zone such as a layer, or nearer to it than updates reach.
    Zone { zone: ZoneId },
    /// An update of the target that reads across a face is not linear there.
    Nonlinear {
        target: ComponentId,
        at: PerAxis<i64>,
        why: Nonlinear,
    },
    /// The target is updated in another way than elsewhere outside of the faces, or at the same place along the wave.
    Medium {
        target: ComponentId,
        at: PerAxis<i64>,
    },
    /// The medium along the wave is another one at two places, between which no face shows where it changes.
    Unseen {
        target: ComponentId,
        at: [PerAxis<i64>; 2],
    },
    /// The line of the wave would be too long.
    TooLong { points: i128 },
    /// The faces have too many places.
    TooLarge { places: u64 },
    /// An update reads a component across a face for which no field is given.
    NotGiven { component: ComponentId },
    /// An update reads a version across a face that has no time.
    NoTime { component: ComponentId },
}

/// A fault of an incident field's box.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// Index into the problem's incident fields.
    pub incident: usize,
    /// Index into the field's boxes.
    pub total: usize,
    pub fault: Fault,
}

impl Fault {
    /// The message for people.
    pub fn describe(&self, scheme: &Scheme) -> String {
        let grid = &scheme.grid;
        let axis_name = |axis: Axis| grid.axis_name(axis).to_string();
        let side = |upper: bool| if upper { "upper" } else { "lower" };
        let name = |id: ComponentId| scheme.component(id).name.clone();
        let cell = |at: PerAxis<i64>| {
            let at: Vec<String> = grid.present().map(|a| at[a].to_string()).collect();
            at.join(", ")
        };
        match self {
            Fault::NoFaces => "a box of total fields that is the whole domain has no faces".into(),
            Fault::ZeroEnd { axis, upper } => format!(
                "the box is too near to the {} end of `{}`, which is `zero`",
                side(*upper),
                axis_name(*axis)
            ),
            Fault::MirrorEnd { axis, upper } => format!(
                "the box is too near to the {} side of `{}`, a mirror, which it does not reach",
                side(*upper),
                axis_name(*axis)
            ),
            Fault::RingEnd { axis } => format!(
                "along the periodic axis `{}` a box is the whole axis, or keeps away from its ends",
                axis_name(*axis)
            ),
            Fault::AroundRing { axis } => format!(
                "the box spans the periodic axis `{0}`, and the wave does not go straight along `{0}`",
                axis_name(*axis)
            ),
            Fault::IntoMirror { axis, upper } => format!(
                "the box reaches the {} side of `{}`, a mirror, and the wave does not go along it",
                side(*upper),
                axis_name(*axis)
            ),
            Fault::OddAtMirror {
                axis,
                upper,
                component,
            } => format!(
                "the wave has `{}`, which is odd about the {} side of `{}` that the box reaches",
                name(*component),
                side(*upper),
                axis_name(*axis)
            ),
            Fault::Zone { zone } => format!(
                "a face of the box lies in `{}`, or nearer to it than updates reach",
                scheme.zone(*zone).name
            ),
            Fault::Nonlinear { target, at, why } => format!(
                "the update of `{}` at ({}), which reads across a face, has {}",
                name(*target),
                cell(*at),
                why.operation.describe()
            ),
            Fault::Medium { target, at } => format!(
                "the medium outside of the faces is not the same everywhere: `{}` is updated in another way at ({})",
                name(*target),
                cell(*at)
            ),
            Fault::Unseen { target, at: [a, b] } => format!(
                "the medium along the wave changes between ({}) and ({}), by the updates of `{}`, and the box has no \
                 faces \
                 there that show where",
                cell(*a),
                cell(*b),
                name(*target)
            ),
            Fault::TooLong { points } => {
                format!("the line of the plane wave would have {points} points")
            }
            Fault::TooLarge { places } => format!("the faces have {places} places"),
            Fault::NotGiven { component } => format!(
                "the incident field does not say what `{}` is, which is read across faces",
                name(*component)
            ),
            Fault::NoTime { component } => format!(
                "`{}` is read across faces between two of its updates in a step, where it has no time",
                name(*component)
            ),
        }
    }

    /// A remedy.
    pub fn hint(&self) -> &'static str {
        match self {
            Fault::NoFaces => "let it end within the domain along some axis",
            Fault::ZeroEnd { .. } => {
                "leave some cells between them, or make the end a mirror or a layer"
            }
            Fault::MirrorEnd { .. } => {
                "leave some cells between them, or let a wave that goes along the mirror reach it"
            }
            Fault::RingEnd { .. } => "leave the axis out, or end the box some cells before",
            Fault::AroundRing { .. } | Fault::IntoMirror { .. } => {
                "let the direction be 0 along this axis, or end the box before"
            }
            Fault::OddAtMirror { .. } => {
                "choose the other mirror, or another polarisation, or end the box before"
            }
            Fault::Zone { .. } => "leave some cells between them",
            Fault::Nonlinear { .. } => {
                "let the medium be linear at the faces: it may be anything farther inside"
            }
            Fault::Medium { .. } => {
                "a plane wave goes through one medium, or along an axis through layers of media across it: let others \
                 lie in \
                 the box, away from its faces"
            }
            Fault::Unseen { .. } => {
                "let the box have faces across another axis, or let the medium be the same at both of its faces"
            }
            Fault::TooLong { .. } => "choose a direction of smaller numbers",
            Fault::TooLarge { .. } => "choose a smaller box",
            Fault::NotGiven { .. } => {
                "add a line for it to the incident field; `0` is a field, too"
            }
            Fault::NoTime { .. } => "drive a plane wave, which has all versions",
        }
    }
}
