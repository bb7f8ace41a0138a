//! Spectra of outputs: an array for each, and pictures of their moduli.

use super::{Outputs, series};
use crate::output::{FileError, npy};
use crate::run::spectra::Spectra;
use crate::simulation::{Simulation, Value};

impl Outputs {
    /// Writes all spectra.
    pub(super) fn spectra<T: Value>(
        &self,
        simulation: &dyn Simulation<T>,
        spectra: &Spectra,
    ) -> Result<(), FileError> {
        let (scheme, problem) = (simulation.scheme(), simulation.problem());
        for (number, output, _) in problem.spectra() {
            let Some(spectrum) = spectra.of(scheme, problem, number) else {
                continue;
            };
            self.check_claim()?;
            let base = series(output);
            let name = format!("{base}.npy");
            let numbers = (0..spectrum.shape[0]).flat_map(|f| spectrum.at(f));
            npy::write_complex(&self.folder.join(&name), &spectrum.shape, numbers)?;
            self.note(&name);
            let moduli = |f: usize| spectrum.at(f).map(|[re, im]| re.hypot(im)).collect();
            let gallery = self.gallery.borrow();
            for name in gallery.show_spectrum(scheme, output, &base, moduli)? {
                self.note(&name);
            }
        }
        Ok(())
    }
}
