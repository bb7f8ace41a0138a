//! The places whose coefficients decide: where they are extreme.
//!
//! Coefficients are expressions of the place, so their extremes are found by halving boxes of cells, of which the
//! ranges of the expressions ([`crate::host_range`]) leave few: no array has to be filled, and no small body is missed
//! between samples. Where statements are confined to regions, each region has extremes of its own, and so has each
//! combination of statements and branches ([`super::forms`]).

use super::boxes::Boxes;
use super::cells::{Cell, Place, Site, of_waves, setting};
use super::cost::{self, Cost, Patience};
use super::extremes::extreme_settings;
use super::forms::{Form, Forms};
use super::parts::{Part, Parts};
use super::search::{Extent, Search};
use super::step::{NoStep, SLOTS, Setting, Step};
use super::thin::{Decided, decide};
use super::zones::{ZONES, Zone, zones};
use crate::host::HostExpr;
use crate::lattice::{Axis, Interval, Region};
use crate::scheme::{ComponentId, Scheme};
use crate::statics::Files;
use std::collections::BTreeSet;

/// Boxes that are looked at for the extreme of a coefficient, and of a step's vigour, which takes longer.
const BOXES: usize = 1000;
const VIGOUR_BOXES: usize = 1000;
/// Coefficients whose extremes are looked for in that number of boxes; of more, each in fewer boxes, and in
/// `LEAST_BOXES` at least.
const COEFS: usize = 24;
const LEAST_BOXES: usize = 64;

/// The places that decide.
#[derive(Clone, Debug, PartialEq)]
pub struct Places {
    /// With different settings for each part of the scheme, the most vigorous first.
    pub list: Vec<Site>,
    /// How many settings of the scheme they have.
    pub settings: usize,
    /// Per set of updates and branches that act together somewhere: every coefficient at its largest absolute value in
    /// that zone, whether or not these values occur at one place. Empty where one place has them all.
    pub combined: Vec<Setting>,
    /// Regions too thin for waves in them to mean anything: their bounds along an axis.
    pub thin: Vec<(Axis, Interval)>,
    /// Components whose updates are not linear, and on which no other value depends.
    pub aside: Vec<ComponentId>,
    /// Whether all combinations of updates and branches that act together somewhere are known.
    pub is_complete: bool,
    /// Coefficients that vary, and whose extremes were not looked for.
    pub unsearched: usize,
    /// The work of looking for these.
    pub work: u64,
}

/// The places that decide about a scheme.
pub fn places(scheme: &Scheme, files: &dyn Files, patience: Patience) -> Result<Places, NoStep> {
    places_of(scheme, files, zones, patience)
}

/// The places that decide in some boxes.
pub fn places_in(
    scheme: &Scheme,
    files: &dyn Files,
    boxes: &[Region],
    patience: Patience,
) -> Result<Places, NoStep> {
    let within = |scheme: &Scheme| {
        let zones = zones(scheme);
        let parts = zones.iter().flat_map(|zone| {
            let within = boxes.iter().map(|own| {
                let parts = zone.iter().map(|part| own.intersect(*part));
                parts.filter(|part| !part.is_empty()).collect::<Zone>()
            });
            within.filter(|zone| !zone.is_empty())
        });
        parts.collect()
    };
    places_of(scheme, files, within, patience)
}

/// A part of a scheme to be looked at.
struct Task {
    part: Part,
    /// With the updates of the part alone.
    scheme: Scheme,
    /// Whether its values depend on themselves, and may grow.
    is_cyclic: bool,
}

fn tasks(scheme: &Scheme) -> Vec<Task> {
    let task = |part: Part, is_cyclic| Task {
        scheme: part.scheme(scheme),
        part,
        is_cyclic,
    };
    let Parts { cyclic, driven } = Parts::new(scheme);
    match cyclic.is_empty() {
        true => vec![task(Part::whole(scheme), true)],
        false => {
            let cyclic = cyclic.into_iter().map(|part| task(part, true));
            let driven = Some(driven).filter(|part| part.values(scheme) > 0);
            let driven = driven.map(|part| task(part, false));
            cyclic.chain(driven).collect()
        }
    }
}

fn places_of(
    scheme: &Scheme,
    files: &dyn Files,
    zones: impl Fn(&Scheme) -> Vec<Zone>,
    patience: Patience,
) -> Result<Places, NoStep> {
    let cost = Cost::new(scheme);
    cost.allow(patience)?;
    let slots = Part::whole(scheme).values(scheme);
    if slots > SLOTS {
        return Err(NoStep::TooLarge { slots });
    }
    let tasks = tasks(scheme);
    let varying: usize = tasks.iter().map(|task| varying(&task.scheme)).sum();
    let count = tasks.len();
    let mut gathered = Gathered::new(scheme);
    for (number, task) in tasks.iter().enumerate() {
        // Parts whose forms are soon found leave their share to others.
        let left = cost::forms(patience).saturating_sub(gathered.all.work);
        let zones = zones(&task.scheme);
        let extent = extent(task.part.values(scheme), zones.len(), varying);
        let faces = match cost.is_small() && task.is_cyclic {
            true => Faces::Both,
            false => Faces::Lower,
        };
        let bounds = Boxes::new(&task.scheme, files);
        let forms = Forms::new(&bounds, left / (count - number) as u64);
        let search = Search::new(&task.scheme, &task.part, &bounds, forms, extent);
        let found = found(&search, zones, faces);
        gathered.add(task, &search, found)?;
    }
    let (mut all, combined) = gathered.places();
    cost.allow_media(scheme, &all.list, &combined, patience)?;
    all.settings = settings(scheme, files, &all.list);
    Ok(all)
}

/// How far to search a part with some values and zones, where that many coefficients vary in all parts.
fn extent(values: usize, zones: usize, varying: usize) -> Extent {
    let per_zone = (BOXES * ZONES / zones.max(ZONES)).max(8);
    let coef_boxes = COEFS * per_zone / varying.max(1);
    let coef_boxes = coef_boxes.clamp(LEAST_BOXES.min(per_zone), per_zone);
    Extent {
        boxes: cost::boxes(values, zones, VIGOUR_BOXES),
        coefs: COEFS * per_zone / coef_boxes,
        coef_boxes,
    }
}

/// The places of the parts that were searched so far.
struct Gathered<'a> {
    /// The whole scheme.
    scheme: &'a Scheme,
    /// But for the list, the settings and the components aside.
    all: Places,
    /// The list, with the vigour of each step.
    ranked: Vec<(f64, Site)>,
    aside: BTreeSet<ComponentId>,
    /// By combined setting its part.
    combined: Vec<Part>,
}

impl<'a> Gathered<'a> {
    fn new(scheme: &'a Scheme) -> Self {
        Self {
            scheme,
            all: Places {
                list: Vec::new(),
                settings: 0,
                combined: Vec::new(),
                thin: Vec::new(),
                aside: Vec::new(),
                is_complete: true,
                unsearched: 0,
                work: 0,
            },
            ranked: Vec::new(),
            aside: BTreeSet::new(),
            combined: Vec::new(),
        }
    }

    /// Adds the places of a part.
    fn add(&mut self, task: &Task, search: &Search, found: Found) -> Result<(), NoStep> {
        self.all.work += search.forms.work();
        self.all.is_complete &= found.is_complete;
        self.all.unsearched += found.unsearched;
        self.add_steps(task, search, &found.places)?;
        if task.is_cyclic {
            let parts = found.combined.iter().map(|_| task.part.clone());
            self.combined.extend(parts);
            self.all.combined.extend(found.combined);
            self.all.thin.extend(found.thin);
        }
        Ok(())
    }

    /// Ranks the steps at the places of a part. Places of a few cells whose steps are not linear are left out, unless
    /// all places are.
    fn add_steps(&mut self, task: &Task, search: &Search, places: &[Place]) -> Result<(), NoStep> {
        let mut left_out = Vec::new();
        for place in places {
            let step = match step_at(self.scheme, search.files, place, &task.part) {
                Ok(step) => step,
                // The first error is the answer: a step that cannot be analysed at one place cannot be analysed, unless
                // that is one of a few cells.
                Err(error) => match search.thinner_than(place, self.scheme.reach()) {
                    Some(thin) if matches!(error, NoStep::Nonlinear(_)) => {
                        left_out.push((thin, error));
                        continue;
                    }
                    _ => return Err(error),
                },
            };
            self.aside.extend(step.aside().iter().copied());
            if task.is_cyclic {
                let site = Site {
                    cell: place.cell,
                    part: task.part.clone(),
                };
                self.ranked.push((step.vigour(), site));
            }
        }
        let is_left_out = left_out.len() == places.len();
        for (thin, error) in left_out {
            if is_left_out {
                return Err(error);
            }
            self.all.thin.push(thin);
        }
        Ok(())
    }

    /// All of them but for how many settings they have, the most vigorous first; and the parts of combined settings.
    fn places(self) -> (Places, Vec<Part>) {
        let Self {
            mut all,
            mut ranked,
            aside,
            combined,
            ..
        } = self;
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        all.list = ranked.into_iter().map(|(_, site)| site).collect();
        all.aside = aside.into_iter().collect();
        let mut seen = Vec::new();
        all.thin.retain(|part| {
            let is_new = !seen.contains(part);
            seen.push(*part);
            is_new
        });
        (all, combined)
    }
}

/// How many coefficients of waves are no constants.
fn varying(scheme: &Scheme) -> usize {
    let coefs = scheme.coefs.iter().zip(of_waves(scheme));
    let varies = |e: &HostExpr| matches!(e, HostExpr::Coordinate(..) | HostExpr::File { .. });
    let varying = coefs.filter(|(coef, used)| *used && coef.value.any(&mut |e| varies(e)));
    varying.count()
}

/// The step of a part at a place. Of several parts with updates that are not linear, all of these updates are named.
fn step_at(scheme: &Scheme, files: &dyn Files, place: &Place, part: &Part) -> Result<Step, NoStep> {
    let own = setting(scheme, files, place.cell);
    Step::of_part(scheme, &own, part).map_err(|error| match Step::new(scheme, &own) {
        Err(all @ NoStep::Nonlinear(_)) => all,
        _ => error,
    })
}

/// How many different settings some sites have.
fn settings(scheme: &Scheme, files: &dyn Files, sites: &[Site]) -> usize {
    let mut seen = BTreeSet::new();
    let mut settings: Vec<Setting> = Vec::new();
    for site in sites {
        let Cell { index, upper } = site.cell;
        if seen.insert((index.0, upper.0)) {
            let own = setting(scheme, files, site.cell);
            if !settings.contains(&own) {
                settings.push(own);
            }
        }
    }
    settings.len()
}

/// The faces of a cell that are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Faces {
    Lower,
    Both,
}

/// The places of a part.
struct Found {
    places: Vec<Place>,
    combined: Vec<Setting>,
    thin: Vec<(Axis, Interval)>,
    is_complete: bool,
    unsearched: usize,
}

/// Places with different settings, each in a medium of such cells if one is known.
#[derive(Default)]
struct List {
    places: Vec<Place>,
    /// By place whether it is in no medium.
    is_thin: Vec<bool>,
}

impl List {
    fn add(&mut self, search: &Search, place: Place) {
        let is_thin = || search.thinnest(&place).is_some();
        let mut settings = self.places.iter().map(|own| &own.setting);
        match settings.position(|own| *own == place.setting) {
            Some(known) => {
                if self.is_thin[known] && self.places[known].cell != place.cell && !is_thin() {
                    self.places[known] = place;
                    self.is_thin[known] = false;
                }
            }
            None => {
                self.is_thin.push(is_thin());
                self.places.push(place);
            }
        }
    }
}

fn found(search: &Search, zones: Vec<Zone>, with_faces: Faces) -> Found {
    let mut found = List::default();
    let mut combined: Vec<Place> = Vec::new();
    let mut seams: Vec<Place> = Vec::new();
    let mut is_complete = true;
    let mut unsearched = 0;
    let count = zones.len();
    for (number, zone) in zones.into_iter().enumerate() {
        let first = found.places.len();
        // Zones whose forms are soon found leave their share to others.
        let share = search.forms.share(count - number);
        let extremes = search.extremes(&zone, share);
        is_complete &= extremes.has_all_forms;
        unsearched = unsearched.max(extremes.unsearched);
        for at in extremes.cells {
            let own = Place {
                cell: at.into(),
                setting: search.setting(at),
            };
            let mut alike = None;
            if with_faces == Faces::Both {
                let beside = search.most_vigorous_beside(&own);
                alike = beside.alike;
                seams.extend(beside.mixed);
            }
            for place in std::iter::once(own).chain(alike) {
                found.add(search, place);
            }
        }
        combined.extend(extreme_settings(&search.forms, &found.places[first..]));
    }
    // Coefficients and updates of a few cells only are no medium for waves, unless there is nothing else.
    let List {
        places: mut found,
        is_thin,
    } = found;
    let (mut thick, mut dropped) = (Vec::new(), Vec::new());
    for (place, is_thin) in found.iter().zip(is_thin) {
        match is_thin {
            true => dropped.push(place.clone()),
            false => thick.push(place.clone()),
        }
    }
    let mut thin = Vec::new();
    if !thick.is_empty() {
        let Decided {
            grows,
            left,
            is_known,
        } = decide(search, &thick, dropped, seams);
        is_complete &= is_known;
        for part in left.iter().filter_map(|place| search.thinnest(place)) {
            if !thin.contains(&part) {
                thin.push(part);
            }
        }
        let forms: BTreeSet<Form> = thick
            .iter()
            .map(|p| search.forms.form(&p.setting))
            .collect();
        combined.retain(|c| forms.contains(&search.forms.form(&c.setting)));
        found = thick;
        found.extend(grows);
    }
    let combined = combined.into_iter().map(|place| place.setting);
    Found {
        combined: combined
            .filter(|c| found.iter().all(|p| p.setting != *c))
            .collect(),
        places: found,
        thin,
        is_complete,
        unsearched,
    }
}
