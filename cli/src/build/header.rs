//! The C header of a built calculation: it takes memory, fills it, steps the scheme layerwise with the kernels of the
//! object, and gives access to values. It computes the same as `torre run`, with the same bits.

use super::expr::{Expressions, Parts, number, triple};
use super::names::{comment, refuse_clashes};
use super::{arithmetic, calls, tables};
use crate::report::domain;
use std::fmt::{Result, Write};
use std::sync::Arc;
use torre_compiler::ghost::{ComponentGhosts, Fold};
use torre_compiler::kernel::{KernelSet, RowKernel, row_region, stage_boxes};
use torre_compiler::lattice::{Axis, Interval, PerAxis, Position, Region};
use torre_compiler::problem::{Init, Problem, Source, StaticValue};
use torre_compiler::scheme::{CoefId, ComponentId, FileId, Precision, Scheme, StageId};
use torre_compiler::statics::{Start, start_of};
use torre_compiler::table::Table;

/// Lets a function leave its files alone.
const UNUSED: &str = "  (void)files;\n";

/// The input of a header.
pub struct Header<'a> {
    pub scheme: &'a Scheme,
    pub problem: &'a Problem,
    pub tables: Vec<Arc<Table>>,
    pub set: &'a KernelSet,
    /// The prefix of all names; a C identifier.
    pub prefix: &'a str,
    /// The name of each component, behind the prefix.
    pub components: Vec<String>,
    /// The target of the object.
    pub target: &'a str,
    /// The mark of the build, in the names of kernels in the object: no object of another build has them.
    pub build: String,
}

impl Header<'_> {
    /// The text of the header.
    pub fn print(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> Result {
        // No definition of the header has this name, and each build has another one.
        let guard = format!("TORRE_HEADER_{}_{}", self.problem.name, self.build);
        self.opening(out, &guard)?;
        calls::declare(self, out)?;
        self.tables(out)?;
        self.access(out)?;
        arithmetic::print(out, self.prefix, self.scheme)?;
        tables::print(out, self.prefix, &self.tables)?;
        self.ghosts(out)?;
        self.initial(out)?;
        for stage in self.scheme.stage_ids() {
            self.sources(out, stage)?;
        }
        self.steps(out)?;
        writeln!(
            out,
            "#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {guard} */"
        )
    }

    fn opening(&self, out: &mut String, guard: &str) -> Result {
        let p = self.prefix;
        let real = match self.scheme.precision {
            Precision::F32 => "float",
            Precision::F64 => "double",
        };
        let domain: Vec<String> = domain(self.scheme).iter().map(i64::to_string).collect();
        writeln!(
            out,
            "/* The problem `{}` with the scheme `{}`: {} cells, {} steps, {}, for {}.\n\
             \x20  Made by torre {}. Link with the object beside this file and with -lm.\n\n\
             \x20  {p} run;\n\
             \x20  if ({p}_init(&run{})) return 1;\n\
             \x20  {p}_run(&run, {p}_STEPS{});\n\
             \x20  ... {p}_get(&run, {p}_{}, x, y, z) ...\n\
             \x20  {p}_free(&run); */",
            self.problem.name,
            self.scheme.name,
            domain.join(" x "),
            self.problem.steps,
            self.scheme.precision,
            self.target,
            env!("CARGO_PKG_VERSION"),
            match self.scheme.files.is_empty() {
                true => "",
                false => ", files",
            },
            self.files_argument(),
            self.components[0],
        )?;
        writeln!(out, "#ifndef {guard}\n#define {guard}\n")?;
        let kernels = self.set.kernels.iter().map(ToString::to_string);
        let sources = (0..self.problem.sources.len()).map(|n| format!("source{n}"));
        let tables = (0..self.tables.len()).map(|n| format!("table{n}"));
        let names = self.components.iter().cloned().chain(kernels);
        refuse_clashes(
            p,
            &self.problem.name,
            names.chain(sources).chain(tables),
            out,
        )?;
        writeln!(
            out,
            "#include <math.h>\n#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n"
        )?;
        writeln!(out, "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n")?;
        writeln!(out, "typedef {real} {p}_real;\n")?;
        writeln!(
            out,
            "/* A calculation: its values in one array, the memory that it lies in, and the steps done. */\n\
             typedef struct {{ {p}_real *values; void *memory; uint64_t steps; }} {p};\n"
        )
    }

    /// The name of a kernel in C.
    pub fn function(&self, kernel: &RowKernel) -> String {
        format!("{}_{kernel}", self.prefix)
    }

    /// The prefix of the object's symbols.
    pub fn symbols(&self) -> String {
        format!("{}_{}", self.prefix, self.build)
    }

    /// The name of a kernel in the object.
    pub fn symbol(&self, kernel: &RowKernel) -> String {
        format!("{}_{kernel}", self.symbols())
    }

    fn tables(&self, out: &mut String) -> Result {
        let (p, scheme, layout) = (self.prefix, self.scheme, &self.set.layout);
        writeln!(out, "/* Components, by number. */\nenum {{")?;
        for (name, id) in self.components.iter().zip(scheme.component_ids()) {
            writeln!(out, "  {p}_{name} = {},", id.0)?;
        }
        writeln!(out, "  {p}_COMPONENTS = {}\n}};\n", scheme.components.len())?;
        writeln!(out, "#define {p}_STEPS UINT64_C({})", self.problem.steps)?;
        writeln!(out, "#define {p}_ELEMENTS INT64_C({})", layout.elements)?;
        writeln!(out, "#define {p}_ORIGIN INT64_C({})", layout.origin)?;
        writeln!(out, "#define {p}_ROW_STRIDE INT64_C({})", layout.row_stride)?;
        for (axis, name) in Axis::ALL.into_iter().zip(["X", "Y", "Z"]) {
            writeln!(
                out,
                "#define {p}_STRIDE_{name} INT64_C({})",
                layout.stride[axis]
            )?;
        }
        let rows = |f: &dyn Fn(ComponentId) -> String| {
            let all: Vec<String> = scheme.component_ids().map(f).collect();
            all.join(", ")
        };
        writeln!(
            out,
            "\n/* Per component: cell indices that are stored along x, y, z; the first of its rows in a group; the \
             versions that are kept;\n\
             \x20  the updates in a step. Absent axes have one index: two axes are x and z, one is z. */"
        )?;
        let n = scheme.components.len();
        writeln!(
            out,
            "static const int64_t {p}_extent[{n}][3] = {{{}}};",
            rows(&|id| triple(scheme.extent(id).map(|i| i.hi)))
        )?;
        writeln!(
            out,
            "static const int64_t {p}_first_row[{n}] = {{{}}};",
            rows(&|id| layout.row(id, 0).0.to_string())
        )?;
        writeln!(
            out,
            "static const uint64_t {p}_time_levels[{n}] = {{{}}};",
            rows(&|id| scheme.component(id).time_levels.to_string())
        )?;
        writeln!(
            out,
            "static const uint64_t {p}_updates[{n}] = {{{}}};\n",
            rows(&|id| scheme.updates_per_step(id).to_string())
        )
    }

    fn access(&self, out: &mut String) -> Result {
        let p = self.prefix;
        write!(
            out,
            "/* The values of a row of the group (x, y). */\n\
             static inline {p}_real *{p}_row(const {p} *self, int64_t row, int64_t x, int64_t y) {{\n\
             \x20 return self->values + {p}_ORIGIN + x * {p}_STRIDE_X + y * {p}_STRIDE_Y + row * {p}_ROW_STRIDE;\n\
             }}\n\n\
             /* The row of the newest version of a component. */\n\
             static inline int64_t {p}_newest(const {p} *self, int component) {{\n\
             \x20 uint64_t version = self->steps * {p}_updates[component];\n\
             \x20 return {p}_first_row[component] + (int64_t)(version % {p}_time_levels[component]);\n\
             }}\n\n\
             /* The newest value of a component at a cell index within its extent. */\n\
             static inline {p}_real {p}_get(const {p} *self, int component, int64_t x, int64_t y, int64_t z) {{\n\
             \x20 return {p}_row(self, {p}_newest(self, component), x, y)[z];\n\
             }}\n\n"
        )
    }

    /// Copies of values beyond the ends of the domain.
    fn ghosts(&self, out: &mut String) -> Result {
        let (p, scheme, layout) = (self.prefix, self.scheme, &self.set.layout);
        let pairs = |f: &dyn Fn(Axis) -> [i64; 2]| {
            let all: Vec<String> = Axis::ALL
                .iter()
                .map(|&a| format!("{{{}, {}}}", f(a)[0], f(a)[1]))
                .collect();
            all.join(", ")
        };
        let held = pairs(&|a| {
            let held = layout.visible(a);
            [held.lo, held.hi]
        });
        let per_component = |f: &dyn Fn(ComponentId) -> String| {
            let all: Vec<String> = scheme.component_ids().map(f).collect();
            all.join(", ")
        };
        let position = |id: ComponentId| scheme.component(id).position;
        writeln!(
            out,
            "/* The ghosts of index i along an axis: other indices, beyond the ends, where its value appears, some \
             with the other sign.\n\
             \x20  Per component, axis and end: sign, by, negated. The value at i appears again at sign * i + by; \
             nowhere if sign is 0.\n\
             \x20  Indices that the array holds along x, y, z, half-open: larger components and ghosts are in it. */\n\
             static const int64_t {p}_held[3][2] = {{{held}}};\n\
             static const int64_t {p}_live[{count}][3] = {{{live}}}; /* values below are 0 */\n\
             static inline int {p}_list(int axis, int component, int64_t i, int64_t index[2], int negated[2]) {{\n\
             \x20 static const int64_t folds[{count}][3][2][3] = {{{folds}}};\n\
             \x20 int64_t extent = {p}_extent[component][axis];\n\
             \x20 const int64_t *held = {p}_held[axis];\n\
             \x20 int found = 0;\n\
             \x20 for (int end = 0; end < 2; ++end) {{\n\
             \x20   const int64_t *fold = folds[component][axis][end];\n\
             \x20   int64_t j = fold[0] * i + fold[1];\n\
             \x20   if (fold[0] == 0 || (j >= 0 && j < extent) || j < held[0] || j >= held[1]) continue;\n\
             \x20   index[found] = j;\n\
             \x20   negated[found++] = (int)fold[2];\n\
             \x20 }}\n\
             \x20 return found;\n\
             }}\n",
            count = scheme.components.len(),
            folds = per_component(&|id| {
                let PerAxis(axes) = ComponentGhosts::new(scheme, id).0;
                braces(axes.map(|ghosts| braces(ghosts.folds().map(fold))))
            }),
            live = per_component(&|id| triple(scheme.grid.live(position(id)).map(|i| i.lo))),
        )?;
        writeln!(
            out,
            "/* Brings the ghosts of a box of a row's values up to date; values that the boundary holds are 0. */\n\
             static inline void {p}_ghosts({p} *self, int component, int64_t row,\n\
             \x20   int64_t x0, int64_t x1, int64_t y0, int64_t y1, int64_t z0, int64_t z1) {{\n\
             \x20 const int64_t *live = {p}_live[component];\n\
             \x20 int64_t below = -{p}_held[2][0], extent = {p}_extent[component][2];\n\
             \x20 int64_t above = {p}_held[2][1] - extent;\n\
             \x20 int64_t margin = (below > above ? below : above) + 1; /* values farther inside have no ghosts */\n\
             \x20 for (int64_t x = x0; x < x1; ++x) {{\n\
             \x20   int64_t xs[3], ys[3], zs[2];\n\
             \x20   int xn[3], yn[3], zn[2];\n\
             \x20   int nx = {p}_list(0, component, x, xs + 1, xn + 1) + 1;\n\
             \x20   xs[0] = x; xn[0] = 0;\n\
             \x20   for (int64_t y = y0; y < y1; ++y) {{\n\
             \x20     {p}_real *w = {p}_row(self, row, x, y);\n\
             \x20     int ny = {p}_list(1, component, y, ys + 1, yn + 1) + 1;\n\
             \x20     ys[0] = y; yn[0] = 0;\n\
             \x20     int64_t zeros = x < live[0] || y < live[1] ? z1 : live[2] < z1 ? live[2] : z1;\n\
             \x20     for (int64_t z = z0; z < zeros; ++z) w[z] = 0;\n\
             \x20     for (int i = 0; i < nx; ++i) for (int j = 0; j < ny; ++j) {{\n\
             \x20       {p}_real *v = {p}_row(self, row, xs[i], ys[j]);\n\
             \x20       int negated = xn[i] != yn[j];\n\
             \x20       if (i + j > 0) for (int64_t z = z0; z < z1; ++z) v[z] = negated ? -w[z] : w[z];\n\
             \x20       for (int64_t z = z0; z < z1; ++z) {{\n\
             \x20         if (z >= margin && z < extent - margin) z = extent - margin;\n\
             \x20         if (z >= z1) break;\n\
             \x20         int nz = {p}_list(2, component, z, zs, zn);\n\
             \x20         for (int k = 0; k < nz; ++k) v[zs[k]] = (negated != zn[k]) ? -w[z] : w[z];\n\
             \x20       }}\n\
             \x20       for (int64_t z = z0; z < zeros; ++z) v[z] = 0;\n\
             \x20     }}\n\
             \x20   }}\n\
             \x20 }}\n\
             }}\n"
        )?;
        write!(
            out,
            "/* Sets the newest value of a component at a cell index within its extent, and its ghosts.\n\
             \x20  A value that the boundary holds at 0 stays 0. */\n\
             static inline void {p}_set({p} *self, int component, int64_t x, int64_t y, int64_t z, {p}_real value) {{\n\
             \x20 const int64_t *live = {p}_live[component];\n\
             \x20 if (x < live[0] || y < live[1] || z < live[2]) value = 0;\n\
             \x20 {p}_row(self, {p}_newest(self, component), x, y)[z] = value;\n\
             \x20 {p}_ghosts(self, component, {p}_newest(self, component), x, x + 1, y, y + 1, z, z + 1);\n\
             }}\n\n"
        )
    }

    fn expressions(&self, position: Position) -> Expressions<'_> {
        Expressions {
            prefix: self.prefix,
            stagger: position,
            ring: PerAxis::from_fn(|a| {
                let grid = &self.scheme.grid;
                grid.is_periodic(a).then_some(2 * grid.cells[a])
            }),
            spacing: self.scheme.grid.spacing,
            tables: &self.tables,
        }
    }

    fn initial(&self, out: &mut String) -> Result {
        let (p, scheme) = (self.prefix, self.scheme);
        let (files, unused) = match scheme.files.is_empty() {
            true => ("", ""),
            false => (", const double *const *files", UNUSED),
        };
        let threshold = number(scheme.precision.flush_threshold());
        write!(
            out,
            "/* A start value: rounded; 0 if it is tiny. */\n\
             static inline {p}_real {p}_start(double value) {{\n\
             \x20 {p}_real rounded = ({p}_real)value;\n\
             \x20 return -{threshold} < rounded && rounded < {threshold} ? 0 : rounded;\n\
             }}\n\n\
             /* Takes memory and fills it with coefficients and start values; 0 on success, -1 if there is not enough \
             memory. */\n\
             static inline int {p}_init({p} *self{files}) {{\n\
{unused}\
             \x20 size_t bytes = (size_t){p}_ELEMENTS * sizeof({p}_real);\n\
             \x20 self->steps = 0;\n\
             \x20 self->values = 0;\n\
             \x20 self->memory = malloc(bytes + 4095);\n\
             \x20 if (!self->memory) return -1;\n\
             \x20 self->values = ({p}_real *)(((uintptr_t)self->memory + 4095) / 4096 * 4096);\n\
             \x20 memset(self->values, 0, bytes);\n"
        )?;
        let layout = &self.set.layout;
        for (coef, id) in scheme.coefs.iter().zip((0..).map(CoefId)) {
            let mut parts = Parts::default();
            let value = self
                .expressions(coef.position)
                .print(&coef.value, &mut parts);
            let mut region = scheme.grid.extent(coef.position);
            writeln!(out, "  /* {} */", comment(&coef.name))?;
            let place = match coef.only_axis {
                None => self.place(layout.coef_row(id).0),
                Some(axis) => {
                    for other in Axis::ALL.into_iter().filter(|other| *other != axis) {
                        region[other] = Interval::new(0, 1);
                    }
                    let first = layout.axis_coef_element(axis, id, 0);
                    let stride = layout.axis_coefs[axis].stride;
                    let index = ["x", "y", "z"][axis.index()];
                    format!("self->values[INT64_C({first}) + {index} * {stride}]")
                }
            };
            self.fill(
                out,
                region,
                parts,
                &format!("{place} = ({p}_real){value};"),
                0.0,
            )?;
        }
        for id in scheme.component_ids() {
            let component = scheme.component(id);
            for age in 0..component.time_levels {
                let time_levels = u64::from(component.time_levels);
                let row = self.set.layout.row(id, time_levels - u64::from(age));
                let region = scheme.grid.live(component.position);
                writeln!(out, "  /* {} */", comment(&component.name))?;
                if let Some(Start { init, time }) = start_of(scheme, self.problem, id, age) {
                    let mut parts = Parts::default();
                    let value = self.initial_value(init, component.position, &mut parts);
                    let place = self.place(row.0);
                    let set = format!("{place} = ({p}_real){p}_start({value});");
                    self.fill(out, region, parts, &set, time)?;
                }
                // Of zeros, too: an odd ghost of 0 is -0.
                let mut rows = region;
                rows[Axis::INNER] = scheme.extent(id)[Axis::INNER];
                writeln!(out, "  {}", self.ghosts_call(id, row.0, rows))?;
            }
        }
        write!(
            out,
            "\x20 return 0;\n}}\n\n\
             /* Gives the memory back. */\n\
             static inline void {p}_free({p} *self) {{ free(self->memory); self->memory = 0; self->values = 0; }}\n\n"
        )
    }

    fn initial_value(&self, init: &Init, position: Position, parts: &mut Parts) -> String {
        match &init.value {
            StaticValue::Expr(e) => self.expressions(position).print(e, parts),
            StaticValue::File(FileId(file)) => {
                format!("{}_file(files, {file}, x, y, z)", self.prefix)
            }
        }
    }

    /// The value of a row at x, y and z, in C.
    fn place(&self, row: u32) -> String {
        format!("{}_row(self, {row}, x, y)[z]", self.prefix)
    }

    /// Loops over a statement in C that sets a value, with the parts of its expression.
    fn fill(
        &self,
        out: &mut String,
        region: Region,
        mut parts: Parts,
        statement: &str,
        time: f64,
    ) -> Result {
        writeln!(
            out,
            "  {{\n    volatile double start = {};\n    const double t = start;\n    (void)t;",
            number(time)
        )?;
        self.loops(out, region)?;
        match parts.take() {
            named if named.is_empty() => writeln!(out, "      {statement}\n  }}"),
            named => writeln!(out, "    {{\n{named}      {statement}\n    }}\n  }}"),
        }
    }

    /// The heads of three loops over a region.
    fn loops(&self, out: &mut String, region: Region) -> Result {
        for (name, range) in ["x", "y", "z"].iter().zip(region.0) {
            let (lo, hi) = (range.lo, range.hi);
            writeln!(
                out,
                "    for (int64_t {name} = {lo}; {name} < {hi}; ++{name})"
            )?;
        }
        Ok(())
    }

    /// The code of sources after a stage.
    fn sources(&self, out: &mut String, stage: StageId) -> Result {
        for (i, source) in self.problem.sources.iter().enumerate() {
            if source.stage == stage {
                self.source(out, i, source)?;
            }
        }
        Ok(())
    }

    fn source(&self, out: &mut String, index: usize, source: &Source) -> Result {
        let (p, scheme) = (self.prefix, self.scheme);
        let component = scheme.component(source.component);
        let c = self.expressions(component.position);
        let files = self.files_parameter();
        let unused = if files.is_empty() { "" } else { UNUSED };
        write!(
            out,
            "/* A source on {name}: acts on `row` of step `steps`, from 0. */\n\
             static inline void {p}_source{index}({p} *self, int64_t row{files}) {{\n\
             \x20 const double t = {p}_mul((double)(self->steps + 1) - {offset}, {dt});\n\
             \x20 (void)t;\n{unused}",
            name = comment(&component.name),
            offset = number(component.time.as_f64()),
            dt = number(scheme.grid.dt),
        )?;
        self.loops(out, source.region)?;
        writeln!(out, "    {{")?;
        let mut parts = Parts::default();
        if let Some(condition) = &source.condition {
            let value = c.print(condition, &mut parts);
            let named = parts.take();
            writeln!(out, "{named}      if ({value} == 0.0) continue;")?;
        }
        let profile = c.print(&source.profile, &mut parts);
        let wave = c.print(&source.wave, &mut parts);
        writeln!(
            out,
            "{}      {p}_real *v = {p}_row(self, row, x, y) + z;\n\
             \x20     *v = {}({p}_real){p}_mul({profile}, {wave});\n    }}\n}}\n",
            parts.take(),
            if source.replaces { "" } else { "*v + " },
        )
    }

    /// Sources may read files, so stepping has to pass them on.
    fn files_parameter(&self) -> &'static str {
        match self.sources_read_files() {
            true => ", const double *const *files",
            false => "",
        }
    }

    /// The files in calls of functions that step.
    fn files_argument(&self) -> &'static str {
        match self.sources_read_files() {
            true => ", files",
            false => "",
        }
    }

    fn sources_read_files(&self) -> bool {
        let mut file = |e: &torre_compiler::host::HostExpr| {
            matches!(e, torre_compiler::host::HostExpr::File { .. })
        };
        self.problem.sources.iter().any(|s| {
            s.profile.any(&mut file)
                || s.wave.any(&mut file)
                || s.condition.as_ref().is_some_and(|c| c.any(&mut file))
        })
    }

    fn steps(&self, out: &mut String) -> Result {
        let (p, scheme) = (self.prefix, self.scheme);
        let (parameter, argument) = (self.files_parameter(), self.files_argument());
        writeln!(
            out,
            "/* One step: each stage over the whole grid, then the next. */\n\
             static inline void {p}_step({p} *self{parameter}) {{\n\
             \x20 switch (self->steps % {}) {{",
            scheme.phases()
        )?;
        for phase in 0..scheme.phases() {
            writeln!(out, "  case {phase}:")?;
            for stage in scheme.stage_ids() {
                for block in stage_boxes(scheme, stage) {
                    calls::print(self, out, stage, phase, &block)?;
                }
                self.finish_stage(out, stage, phase, argument)?;
            }
            writeln!(out, "    break;")?;
        }
        write!(
            out,
            "\x20 }}\n\x20 self->steps += 1;\n}}\n\n\
             /* Runs some steps. */\n\
             static inline void {p}_run({p} *self, uint64_t steps{parameter}) {{\n\
             \x20 for (uint64_t i = 0; i < steps; ++i) {p}_step(self{argument});\n}}\n\n"
        )
    }

    /// Sources, then ghosts, of the values that a stage has computed.
    fn finish_stage(&self, out: &mut String, stage: StageId, phase: u32, argument: &str) -> Result {
        let (p, scheme) = (self.prefix, self.scheme);
        let row = |id| self.set.layout.target_row(scheme, stage, phase, id).0;
        for (i, source) in self.problem.sources.iter().enumerate() {
            if source.stage == stage {
                let row = row(source.component);
                writeln!(out, "    {p}_source{i}(self, {row}{argument});")?;
            }
        }
        for update in &scheme.stages[stage.index()].updates {
            let id = update.target;
            let call = self.ghosts_call(id, row(id), row_region(scheme, update));
            writeln!(out, "    {call}")?;
        }
        Ok(())
    }

    fn ghosts_call(&self, id: ComponentId, row: u32, region: Region) -> String {
        let [x, y, z] = region.0;
        format!(
            "{}_ghosts(self, {}, {row}, {}, {}, {}, {}, {}, {});",
            self.prefix, id.0, x.lo, x.hi, y.lo, y.hi, z.lo, z.hi
        )
    }
}

/// Sign, by, negated.
fn fold(fold: Option<Fold>) -> String {
    let fold = fold.map(|fold| [fold.sign, fold.by, i64::from(fold.negated)]);
    braces(fold.unwrap_or_default().map(|n| n.to_string()))
}

fn braces<const N: usize>(values: [String; N]) -> String {
    format!("{{{}}}", values.join(", "))
}
