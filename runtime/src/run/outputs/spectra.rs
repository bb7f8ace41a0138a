//! Spectra of outputs: an array for each, and pictures of their moduli.

use super::{Outputs, plane_shape, series};
use crate::output::FileError;
use crate::output::npy::{self, ComplexReader};
use crate::run::spectra::Spectra;
use crate::simulation::{Simulation, Value};
use torre_compiler::problem::{Output, Problem};
use torre_compiler::scheme::Scheme;

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
            let base = series(output);
            let name = format!("{base}.npy");
            let numbers = (0..spectrum.shape[0]).flat_map(|f| spectrum.at(f));
            npy::write_complex(&self.folder.place(&name)?, &spectrum.shape, numbers)?;
            self.note(&name);
            let moduli = |f: usize| Ok(spectrum.at(f).map(|[re, im]| re.hypot(im)).collect());
            self.show_spectrum(scheme, output, moduli)?;
        }
        Ok(())
    }

    /// Draws all spectra again whose arrays are there.
    pub(super) fn draw_spectra(&self, scheme: &Scheme, problem: &Problem) -> Result<(), FileError> {
        for (_, output, spectrum) in problem.spectra() {
            let path = self.folder.join(format!("{}.npy", series(output)));
            if !path.is_file() {
                continue;
            }
            let mut shape = vec![spectrum.frequencies.len()];
            shape.extend(plane_shape(scheme, output.kind, output.region));
            let mut reader = ComplexReader::open(&path, &shape)?;
            self.show_spectrum(scheme, output, |frequency| reader.moduli(frequency))?;
        }
        Ok(())
    }

    fn show_spectrum(
        &self,
        scheme: &Scheme,
        output: &Output,
        moduli: impl FnMut(usize) -> Result<Vec<f64>, FileError>,
    ) -> Result<(), FileError> {
        let gallery = self.gallery.borrow();
        for name in gallery.show_spectrum(scheme, output, &series(output), moduli)? {
            self.note(&name);
        }
        Ok(())
    }
}
