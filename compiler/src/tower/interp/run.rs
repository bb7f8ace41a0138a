//! Time blocks: towers side by side, in an order that the rules for waiting allow.

use super::boundary::Boundary;
use super::interior::{Copies, Interior};
use super::line::Line;
use super::state::{Registers, Tower};
use super::volume::{Injected, Recorded, VolumeAt};
use super::{Launch, TowerInterp};
use crate::injection::inject;
use crate::lattice::PerAxis;
use crate::real::Real;
use crate::tower::block::Lines;
use crate::tower::points::TaskStage;
use crate::tower::tasks::TaskList;
use std::collections::{BTreeMap, VecDeque};

/// A worker: it runs towers, one after the other.
struct Worker<T> {
    /// Tasks that it takes.
    queue: usize,
    shared: Vec<Line<T>>,
    tower: Option<Tower<T>>,
}

/// The towers of a launch.
struct Running<'t> {
    list: &'t TaskList,
    launch: Launch,
    /// Stages that each task has done, from the start of the time block on; `i64::MAX` when it is over.
    progress: Vec<i64>,
    queues: Vec<VecDeque<usize>>,
    head_start: i64,
}

impl<T: Real> TowerInterp<'_, T> {
    /// Runs a time block of `steps` steps with `workers` workers for each work queue; `pick` chooses below a number.
    /// Gives the records in no order; an error where the program is wrong.
    pub fn time_block(
        &mut self,
        list: &TaskList,
        steps: u64,
        head_start: u32,
        injected: &Injected<'_>,
        workers: usize,
        mut pick: impl FnMut(usize) -> usize,
    ) -> Result<Vec<Recorded<T>>, String> {
        let stages = steps * self.scheme.stages.len() as u64;
        let z_blocks = match &self.program.block.lines {
            Lines::ZBlocks(z_blocks) => {
                let all = z_blocks.of(stages).ok_or("z blocks lean too much")?;
                all.into_iter().map(Some).collect()
            }
            _ => vec![None],
        };
        self.forget_inner_ghosts();
        let mut records = Vec::new();
        for z_block in z_blocks {
            let mut progress = vec![0; list.tasks.len()];
            for (number, counts) in list.launches.iter().enumerate() {
                let mut first = list.of_launch(number).start;
                let queue = |count: &usize| {
                    let tasks = first..first + count;
                    first += count;
                    tasks.collect()
                };
                let running = Running {
                    list,
                    launch: Launch { z_block },
                    progress,
                    queues: counts.iter().map(queue).collect(),
                    head_start: head_start.into(),
                };
                progress = self.launch(running, injected, workers, &mut pick, &mut records)?;
            }
        }
        self.make_inner_ghosts();
        Ok(records)
    }

    fn launch(
        &mut self,
        mut running: Running<'_>,
        injected: &Injected<'_>,
        workers: usize,
        pick: &mut impl FnMut(usize) -> usize,
        records: &mut Vec<Recorded<T>>,
    ) -> Result<Vec<i64>, String> {
        let zeros = self.line().filled(T::from_f64(0.0));
        let queues = 0..running.queues.len();
        let queues = queues.flat_map(|queue| std::iter::repeat_n(queue, workers));
        let mut workers: Vec<Worker<T>> = queues
            .map(|queue| Worker {
                queue,
                shared: vec![zeros.clone(); self.program.block.shared_rows],
                tower: None,
            })
            .collect();
        loop {
            for worker in workers.iter_mut().filter(|w| w.tower.is_none()) {
                worker.tower = self.take(&mut running, worker.queue);
            }
            if workers.iter().all(|w| w.tower.is_none()) {
                return Ok(running.progress);
            }
            let able = |w: &Worker<T>| w.tower.as_ref().is_some_and(|t| running.may_go_on(t, self));
            let able: Vec<usize> = (0..workers.len()).filter(|n| able(&workers[*n])).collect();
            if able.is_empty() {
                return Err("all towers wait for each other".to_owned());
            }
            let worker = &mut workers[able[pick(able.len())]];
            self.stage(&mut running, worker, injected, pick, records)?;
        }
    }

    fn take(&self, running: &mut Running<'_>, queue: usize) -> Option<Tower<T>> {
        let task = running.queues[queue].pop_front()?;
        let first = running.list.tasks[task].placement.periods.start as i64;
        let next = first * self.program.per_period() as i64;
        Some(Tower {
            task,
            next,
            registers: Registers::new(),
            under_way: Vec::new(),
            begun: None,
            waves: BTreeMap::new(),
        })
    }

    /// A worker's tower does its next stage.
    fn stage(
        &mut self,
        running: &mut Running<'_>,
        worker: &mut Worker<T>,
        injected: &Injected<'_>,
        pick: &mut impl FnMut(usize) -> usize,
        records: &mut Vec<Recorded<T>>,
    ) -> Result<(), String> {
        let Some(tower) = &mut worker.tower else {
            return Ok(());
        };
        let per_period = self.program.per_period() as i64;
        let placement = &running.list.tasks[tower.task].placement;
        let period = (tower.next / per_period) as u64;
        let stage = (tower.next % per_period) as usize;
        let step = tower.next as u64 / self.scheme.stages.len() as u64;
        let volumes = VolumeAt {
            injected,
            step,
            real: std::marker::PhantomData,
        };
        let launch = running.launch;
        let copies = match pick(2) {
            0 => Copies::Early,
            _ => Copies::Late,
        };
        if placement.interior.contains(&period) {
            let number = tower.next + 1;
            let ready = running.neighbours_have_done(tower.task, number);
            let of = Interior {
                launch,
                placement,
                period,
                stage,
                copies: if ready { copies } else { Copies::Late },
            };
            if period == placement.interior.start && stage == 0 {
                self.begin(of, tower, &mut worker.shared);
            }
            self.interior(of, tower, &mut worker.shared, &volumes)?;
            if period + 1 == placement.interior.end && stage as i64 + 1 == per_period {
                self.end(of, tower)?;
            }
            let next = Interior {
                period: number as u64 / per_period as u64,
                stage: (number % per_period) as usize,
                ..of
            };
            if placement.interior.contains(&next.period) && pick(2) == 0 {
                let volumes = VolumeAt {
                    step: number as u64 / self.scheme.stages.len() as u64,
                    ..volumes
                };
                self.begin_stage(next, tower, &mut worker.shared, &volumes)?;
            }
        } else {
            let of = Boundary {
                launch,
                placement,
                period,
                stage,
            };
            self.boundary(of, &volumes)?;
            let at = TaskStage {
                task: tower.task,
                period,
                stage,
            };
            self.act_on_points(at, launch, injected, step, records)?;
        }
        tower.next += 1;
        running.progress[tower.task] = tower.next;
        if tower.next == placement.periods.end as i64 * per_period {
            running.progress[tower.task] = i64::MAX;
            worker.tower = None;
        }
        Ok(())
    }

    /// Injections and receivers of a stage of a boundary period.
    fn act_on_points(
        &mut self,
        at: TaskStage,
        launch: Launch,
        injected: &Injected<'_>,
        step: u64,
        records: &mut Vec<Recorded<T>>,
    ) -> Result<(), String> {
        let number = at.period as i64 * self.program.per_period() as i64 + at.stage as i64;
        let lanes = self.lanes(launch);
        let active = lanes.active(number, number).intersect(lanes.present());
        for phased in injected.points.stages.get(&at).into_iter().flatten() {
            let row = &injected.points.rows[phased.row];
            let id = self.scheme.stages[row.stage.index()].updates[row.update].target;
            let of = self
                .layout
                .target_row(self.scheme, row.stage, phased.phase, id);
            let cells = row.cells.iter().map(|(z, cell)| (z - row.first, cell));
            for (z, cell) in cells.filter(|(z, _)| active.contains(*z)) {
                let place = PerAxis([row.at.x, row.at.y, z]);
                let element = self.layout.element(of, place) as usize;
                let name = &self.scheme.component(id).name;
                let value = self.memory[element];
                let mut value = value.ok_or_else(|| format!("{name} at {place:?} is unknown"))?;
                for (profile, wave) in &cell.injections {
                    value = inject(value, *profile, (injected.wave)(step, *wave));
                }
                if !cell.injections.is_empty() {
                    for (to, negated) in self.ghosts[id.index()].of_cell(place) {
                        let to = self.layout.element(of, to) as usize;
                        self.memory[to] = Some(if negated { value.neg() } else { value });
                    }
                }
                for receiver in &cell.records {
                    records.push(Recorded {
                        step,
                        receiver: *receiver,
                        value,
                    });
                }
            }
        }
        Ok(())
    }
}

impl Running<'_> {
    fn neighbours_have_done(&self, task: usize, stages: i64) -> bool {
        let task = &self.list.tasks[task];
        let more = i64::from(task.is_narrow());
        let mut neighbours = task.neighbours.iter().flatten();
        neighbours.all(|n| self.progress[*n] >= stages + more)
    }

    /// Whether a tower may begin its next stage.
    fn may_go_on<T: Real>(&self, tower: &Tower<T>, interp: &TowerInterp<'_, T>) -> bool {
        let placement = &self.list.tasks[tower.task].placement;
        let per_period = interp.program.per_period() as i64;
        let first = placement.periods.start as i64 * per_period;
        let last = placement.periods.end as i64 * per_period - 1;
        let head_start = if tower.next == first {
            self.head_start
        } else {
            0
        };
        self.neighbours_have_done(tower.task, (tower.next + head_start).min(last))
    }
}
