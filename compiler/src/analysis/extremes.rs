//! Coefficients with the largest absolute values that they have at several places, at once.

use super::boxes::Boxes;
use super::cells::{Place, Site, setting};
use super::forms::{Form, Forms};
use super::parts::{Part, Parts};
use super::step::Setting;
use crate::scheme::Scheme;
use crate::statics::Files;

/// For each part of a scheme with sites, and each set of updates that act and of branches that are taken there, the
/// largest coefficients.
pub fn extremes_of_sites(
    scheme: &Scheme,
    files: &dyn Files,
    sites: &[Site],
) -> Vec<(Part, Setting)> {
    let parts = Parts::new(scheme);
    let mut found: Vec<(Part, Vec<Site>)> = Vec::new();
    for site in sites {
        let part = site.part.within(&parts);
        match found.iter_mut().find(|(own, _)| *own == part) {
            Some((_, sites)) => sites.push(site.clone()),
            None => found.push((part, vec![site.clone()])),
        }
    }
    let extremes = found.into_iter().flat_map(|(part, sites)| {
        let own = part.scheme(scheme);
        let place = |site: &Site| Place {
            cell: site.cell,
            setting: setting(&own, files, site.cell),
        };
        let places: Vec<Place> = sites.iter().map(place).collect();
        let bounds = Boxes::new(&own, files);
        let extremes = extreme_settings(&Forms::new(&bounds, 0), &places);
        let of_scheme = |place: Place| Setting {
            coefs: place.setting.coefs,
            active: setting(scheme, files, place.cell).active,
        };
        let extremes = extremes.into_iter().map(of_scheme);
        extremes
            .map(move |setting| (part.clone(), setting))
            .collect::<Vec<_>>()
    });
    extremes.collect()
}

/// For each set of updates that act, and of branches that are taken, at some of the places: all coefficients at their
/// largest absolute values. Coefficients on which conditions depend have the values of these places, others the values
/// of all places where the same updates act. The cells are such places.
pub fn extreme_settings(forms: &Forms, places: &[Place]) -> Vec<Place> {
    let mut extremes: Vec<(Form, Place)> = Vec::new();
    for place in places {
        let form = forms.form(&place.setting);
        if !extremes.iter().any(|(own, _)| *own == form) {
            extremes.push((form, place.clone()));
        }
    }
    for place in places {
        let form = forms.form(&place.setting);
        for (own, Place { setting, .. }) in &mut extremes {
            if setting.active != place.setting.active {
                continue;
            }
            let coefs = setting.coefs.iter_mut().zip(&place.setting.coefs);
            for (number, (e, c)) in coefs.enumerate() {
                let counts = *own == form || !forms.is_condition(number);
                if counts && c.abs() > e.abs() {
                    *e = *c;
                }
            }
        }
    }
    extremes.into_iter().map(|(_, place)| place).collect()
}
