//! Runs whose time blocks are cut short by outputs.

use super::*;

/// Calls `of` with a planner for 512 x 512 x 256 cells and an output each `every` steps.
fn with_output<R>(every: Option<u64>, steps: u64, of: impl Fn(&DevicePlanner) -> R) -> R {
    let output = every.map_or(String::new(), |every| {
        format!("output slice E.z z = 3 every {every}\n")
    });
    let text = format!(
        "use std::maxwell::maxwell42
problem p {{
  scheme maxwell42
  domain 512 x 512 x 256
  {output}  steps {steps}
}}"
    );
    let source = Source::new("p.torre", text);
    let world = FileWorld::beside(Path::new("."));
    let resolved = load(&world, &source, &Default::default()).expect("a problem");
    let model = h200();
    let planner = DevicePlanner::new(&resolved.scheme, &resolved.problem, &model);
    of(&planner.expect("a planner"))
}

/// The best plan for towers of a size in time blocks of a height.
fn towers(planner: &DevicePlanner, [d, th]: [i64; 2]) -> DevicePlan {
    let [d, th] = [Size::of("D", &[d]), Size::of("TH", &[th])];
    let unit = template::tower_unit(&planner.planner.frame);
    let family = Template::Tiled(template::towers(d, unit, th));
    planner.best(&family).expect("towers").0
}

/// Outputs after each step, or few steps, cut time blocks short: they are as fast as low time blocks are.
#[test]
fn outputs_that_cut_time_blocks_short_slow_towers_down() {
    let rate = |size, every| {
        with_output(every, 960, |planner| {
            towers(planner, size).choice.prediction.rate
        })
    };
    let [high, low] = [16, 4].map(|th| rate([2, th], None));
    assert!(low < 0.9 * high, "{low:e} {high:e}");
    for th in [8, 12, 16] {
        let cut = rate([2, th], Some(4));
        assert!(cut < 1.001 * low, "{th}: {cut:e} {low:e}");
    }
    let whole = rate([2, 16], Some(32));
    assert!((whole / high - 1.0).abs() < 1e-9, "{whole:e} {high:e}");
    for (every, steps) in [(Some(1), 960), (None, 1)] {
        let all = |planner: &DevicePlanner| planner.choices(&Template::Auto).expect("choices");
        let all = with_output(every, steps, all);
        assert_eq!(all[0].name, "layerwise", "{:?}", &all[..2]);
    }
}

/// So are time blocks of windows and stripes, whose passes have fewer steps, too.
#[test]
fn outputs_that_cut_time_blocks_short_slow_windows_and_stripes_down() {
    let rates = |th, every| {
        with_output(every, 960, |planner| {
            let plan = towers(planner, [2, th]);
            let plan = plan.towers().expect("towers");
            let cells = planner.rate_in_flight(plan);
            let wanted = Wanted {
                available: 1 << 30,
                blocks: Some(2),
                cells,
                ..Wanted::default()
            };
            let window = planner.window(Some(plan), wanted).expect("a window");
            let over_files = Wanted {
                disk: Some(3e9),
                ..wanted
            };
            let files = planner.window(Some(plan), over_files).expect("a window");
            let wanted = Wanted {
                available: 1 << 40,
                blocks: None,
                ..wanted
            };
            let stripes = planner.stripes(Some(plan), 2, wanted).expect("stripes");
            let rates = [window.rate(), files.rate(), stripes.rate.cells];
            (cells, rates, window.copied)
        })
    };
    let (cells, [window, files, stripes], copied) = rates(16, None);
    let (few_cells, [few, few_files, few_stripes], few_copied) = rates(16, Some(4));
    let (low_cells, [low, low_files, _], low_copied) = rates(4, None);
    assert!(
        (few_cells / low_cells - 1.0).abs() < 1e-9,
        "{few_cells:e} {low_cells:e}"
    );
    assert!(low_cells < 0.9 * cells, "{low_cells:e} {cells:e}");
    // Passes have a quarter of the steps.
    assert!(
        few < 0.3 * window && few < 1.1 * low,
        "{few:e} {window:e} {low:e}"
    );
    assert!(
        few_files < 0.3 * files && few_files < 1.1 * low_files,
        "{few_files:e} {files:e}"
    );
    assert_eq!([few_copied, few_copied], [4 * copied, low_copied]);
    // Stripes have a pass for each output.
    assert!(few_stripes < 0.8 * stripes, "{few_stripes:e} {stripes:e}");
    let (each, [window, ..], _) = rates(16, Some(1));
    assert!(
        each < 0.5 * low_cells && window < 0.5 * few,
        "{each:e} {window:e}"
    );
}
