//! Lines whose ends have to be deep, as losses reflect their waves.

use super::{Layer, Line};
use crate::scheme::{ComponentId, Precision, Scheme};

impl Line {
    /// Whether losses reflect waves that are as long as an end. Fields of one version each that drive each other by
    /// first differences have no such waves, and neither has a component that makes waves alone. Waves with a cutoff
    /// frequency change their impedance by a loss, and all others have the second derivative in one update: see
    /// [`super::ends`].
    pub(super) fn needs_deep_ends(&self, scheme: &Scheme) -> bool {
        let mut ids = scheme.component_ids();
        let is_wave_of_several = |id: ComponentId| {
            let older = self.slot(id, 1)..self.slots_of(id).end;
            let mut own = self.rows.iter().flatten().filter(|row| row.target == id);
            let reads = own.any(|row| row.taps().any(|tap| older.contains(&tap.slot)));
            reads && self.waves_alone(scheme, id).is_none()
        };
        self.has_local_terms(scheme.precision)
            || self.has_second_differences(scheme)
            || ids.any(is_wave_of_several)
    }

    /// Whether an update has a second difference: of another component, or of the only version of its own, as diffusion
    /// has. Its weights have the sum 0, and so have their products with the distances.
    fn has_second_differences(&self, scheme: &Scheme) -> bool {
        let rounding = rounding_of(scheme.precision);
        let is_second = |target: ComponentId, layer: &Layer, id: ComponentId| {
            let from = self.stagger(scheme, id) - self.stagger(scheme, target);
            let slots = self.slots_of(id);
            let own = layer.taps.iter().filter(|tap| slots.contains(&tap.slot));
            let mut moments = [[0.0; 2]; 2];
            for tap in own {
                let distance = tap.shift as f64 + from;
                let products = [distance, distance * distance].map(|by| tap.weight * by);
                for ([sum, size], product) in moments.iter_mut().zip(products) {
                    *sum += product;
                    *size += product.abs();
                }
            }
            let [first, second] = moments.map(|[sum, size]| sum.abs() > rounding * size);
            !first && second
        };
        let components = || (0..self.first.len()).map(|id| ComponentId(id as u32));
        let mut rows = self.rows.iter().flatten();
        rows.any(|row| {
            let mut layers = row.layers.iter();
            let any = |layer: &Layer| components().any(|id| is_second(row.target, layer, id));
            layers.any(any) && self.waves_alone(scheme, row.target).is_none()
        })
    }

    /// Whether values that are the same everywhere do not stay as they are.
    fn has_local_terms(&self, precision: Precision) -> bool {
        let rounding = rounding_of(precision);
        let changes = |[sum, size]: [f64; 2], stays: f64| (sum - stays).abs() > rounding * size;
        let any = |target: ComponentId, layer: &Layer| {
            let mut all = (0..self.first.len()).map(|id| ComponentId(id as u32));
            all.any(|id| {
                let stays = if id == target { 1.0 } else { 0.0 };
                changes(self.weight_of(layer, id), stays)
            })
        };
        let mut rows = self.rows.iter().flatten();
        rows.any(|row| row.layers.iter().any(|layer| any(row.target, layer)))
    }

    /// The sum of the weights of a component's values in an update, and that of their magnitudes.
    fn weight_of(&self, layer: &Layer, id: ComponentId) -> [f64; 2] {
        let slots = self.slots_of(id);
        let own = layer.taps.iter().filter(|tap| slots.contains(&tap.slot));
        own.fold([0.0, 0.0], |[sum, size], tap| {
            [sum + tap.weight, size + tap.weight.abs()]
        })
    }
}

/// The error of sums of weights relative to their size, as weights are rounded to the precision of the scheme.
fn rounding_of(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 1e-6,
        Precision::F64 => 1e-9,
    }
}
