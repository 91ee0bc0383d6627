//! A compiled task and its robot as the tables that kernels read: `OSTLER_TABLES` of
//! `kernels/state.h`.

use super::Task;
use super::action::{Actions, Law};
use super::command::{Commands, When};
use super::event::Events;
use super::metrics;
use super::observe::{Observations, Observed, Sight, Spot};
use super::score::Score;
use crate::spaces::ActionSpace;
use ostler_engine::kernels::{self, NOWHERE};
use ostler_engine::state::{Sizes, Tables};
use ostler_lang::draw::{Draw, noise_row, row};
use ostler_lang::expr::History;
use ostler_model::{Delay, Model};

impl Task {
    /// Sizes of the task's tables and of environments with this robot, whose control steps are
    /// `decimation` physics steps.
    pub(crate) fn sizes(&self, model: &Model, decimation: usize) -> Sizes {
        let [nobs, ncritic] = self.observations.world();
        let (actions, score, seen) = (&self.actions, &self.score, &self.observations);
        let padding = &seen.padding;
        let late = || actions.late.iter();
        let places = || seen.terms.iter().flat_map(|t| t.places().map(move |(_, p, s)| (t, p, s)));
        let mut sizes = Sizes {
            nagent: self.team.count(),
            naction: self.actions.outputs(),
            nraw: self.actions.raw_width(),
            ncommand: self.commands.width(),
            ndraw: self.draws().count(),
            noption: self.draws().map(|draw| draw.map_or(0, |d| d.choices.len())).sum(),
            ncourse: self.commands.courses.len(),
            ntimer: self.commands.timers.len(),
            nresample: self.commands.ended.len(),
            nfunction: self.natives.functions.len(),
            nnative: self.natives.outputs(),
            nkept: self.natives.kept(),
            nhistory: self.history.width(),
            nobs,
            ncritic,
            nreward: score.rewards.len(),
            nend: score.termination_names().len(),
            ndrive: actions.held.len() + actions.drives.len(),
            nchoice: actions.drives.iter().map(|d| d.law.choices()).sum(),
            nplace: self.reset.operations.len(),
            nquat: self.reset.quaternions.len(),
            nstart: self.reset.exprs.len(),
            nstartvalue: self.reset.widest(),
            nuntil: self.start.conditions.len(),
            nrandom: self.start.random.len(),
            nclipped: score.clip.map_or(0, |_| self.team.count()),
            nshare: score.rewards.iter().map(|r| r.term.agents.len()).sum(),
            nterm: score.terminations.len(),
            nmetric: self.metrics.len(),
            nseen: seen.terms.len(),
            nentry: seen.terms.iter().map(|t| t.scale.len()).sum(),
            nsink: places().count(),
            nsized: places().map(|(_, _, s)| s.sizes.len()).sum(),
            nbias: seen.terms.iter().map(|t| t.biases().map(|(_, n)| n).sum::<usize>()).sum(),
            nlag: actions.late.len()
                + places().filter(|(_, _, s)| s.lag.is_some()).count()
                + model.redrawn().len(),
            nredrawn: model.redrawn().len(),
            nsteplag: model.redrawn().len().saturating_mul(decimation),
            ndelayed: late().map(|(o, lag)| lag.most as usize * o.len()).sum::<usize>()
                + places().map(|(t, _, s)| s.delayed(t.len())).sum::<usize>(),
            nlate: late().map(|(outputs, _)| outputs.len()).sum(),
            nincrement: self.actions.drives.iter().filter(|d| d.law.adds_to_control()).count(),
            nkeep: places().filter(|(_, _, sight)| sight.is_kept()).count(),
            npad: padding.policy.len() + padding.critic.as_ref().map_or(0, Vec::len),
            ncell: self.history.cells().len(),
            nground: usize::from(model.terrain.is_some()),
            ntile: model.terrain.as_ref().map_or(0, |t| t.origins.len()),
            nevent: self.events.events.len(),
            ndrawn: self.events.events.iter().map(|e| e.drawn.len()).sum(),
            nshown: self.events.shown_base().len(),
            ..Sizes::of(model)
        };
        self.ground.size(&mut sizes);
        self.reference.size(&mut sizes);
        sizes
    }

    /// All draws by distributions, in the order of their rows (`kernels/env/draw.cuh`).
    fn draws(&self) -> impl Iterator<Item = Option<&Draw>> {
        let terms = || self.observations.terms.iter();
        let noise = terms().flat_map(|t| t.places().map(|(_, _, sight)| sight.noise.as_ref()));
        let biases = terms().flat_map(Observed::biases);
        let events = self.events.events.iter().flat_map(|e| &e.drawn);
        (self.commands.components.iter().map(|c| c.draw.as_ref()))
            .chain(self.reset.operations.iter().map(|op| op.draw.as_ref()))
            .chain(self.start.random.iter().map(Some))
            .chain(noise)
            .chain(biases.flat_map(|(draw, n)| std::iter::repeat_n(Some(draw), n)))
            .chain(events.map(|d| Some(&d.draw)))
    }

    /// Its numbers and the robot's, with a control step of `step_dt` (s) and `max_steps` of
    /// them until the time-out.
    pub(crate) fn tables(&self, model: &Model, step_dt: f64, max_steps: u32) -> Tables {
        let mut t = Tables {
            max_steps: vec![max_steps],
            step_dt: vec![step_dt as f32],
            ..Tables::of(model)
        };
        actions(&mut t, &self.actions);
        commands(&mut t, &self.commands);
        self.reset.enter(&mut t);
        t.until_reads = vec![self.start.reads];
        t.most_tries = vec![self.start.tries];
        self.start.random.iter().for_each(|draw| row(&mut t, Some(draw)));
        score(&mut t, &self.score);
        let over = self.metrics.terms.iter().map(|m| metrics::number(m.over));
        t.metric_over = over.collect();
        let biases = observations(&mut t, &self.observations);
        let held = self.actions.held.len();
        for (d, drive) in self.actions.drives.iter().enumerate() {
            if let Some(encoder) = drive.encoder {
                let first = biases[encoder.observation];
                t.drive_encoder[held + d] = first.saturating_add(encoder.component as u32);
                t.drive_gear[held + d] = encoder.gear;
            }
        }
        redrawn(&mut t, model);
        self.ground.enter(&mut t, model);
        self.reference.enter(&mut t);
        fill_history(&mut t, &self.history);
        events(&mut t, &self.events);
        t
    }
}

fn actions(t: &mut Tables, actions: &Actions) {
    let discrete = matches!(actions.space, ActionSpace::Discrete(_));
    t.discrete = vec![u32::from(discrete)];
    t.raw = actions.raw.iter().map(|&at| at as u32).collect();
    t.clip_low = actions.clip.iter().map(|c| c[0]).collect();
    t.clip_high = actions.clip.iter().map(|c| c[1]).collect();
    for (outputs, lag) in &actions.late {
        let lag = add_lag(t, *lag, outputs.len());
        for (place, output) in outputs.clone().enumerate() {
            t.late_output.push(output as u32);
            t.late_lag.push(lag);
            t.late_place.push(place as u32);
            t.late_size.push(outputs.len() as u32);
        }
    }
    for &(actuator, control) in &actions.held {
        add_control(t, kernels::DRIVE_HELD, actuator, 0, [control; 2], [0.0, control]);
    }
    for drive in &actions.drives {
        let (u, output, limits) = (drive.actuator, drive.output, drive.ctrlrange);
        match &drive.law {
            Law::Affine { scale, offset, .. } => {
                add_control(t, kernels::DRIVE_AFFINE, u, output, limits, [*scale, *offset]);
            }
            Law::Added { scale, offset, to } => {
                let law = match to.control {
                    true => kernels::DRIVE_INCREMENT,
                    false => kernels::DRIVE_RELATIVE,
                };
                let before = t.drive_law.iter().filter(|&&l| l == kernels::DRIVE_INCREMENT).count();
                let d = add_control(t, law, u, output, limits, [*scale, *offset]);
                if to.control {
                    t.drive_encoder[d] = before as u32;
                }
                t.drive_choice[d] = to.qpos.map_or(NOWHERE, |row| row as u32);
                t.drive_gear[d] = to.gear;
            }
            Law::Choice(controls) | Law::Binary(controls) => {
                let law = match drive.law {
                    Law::Binary(_) => kernels::DRIVE_BINARY,
                    _ => kernels::DRIVE_CHOICE,
                };
                let d = add_control(t, law, u, output, limits, [0.0; 2]);
                t.drive_choice[d] = t.choice.len() as u32;
                t.choice.extend(controls);
            }
        }
    }
}

impl Law {
    /// Whether the output is added to the control of the step before.
    fn adds_to_control(&self) -> bool {
        matches!(self, Self::Added { to, .. } if to.control)
    }

    /// Entries in the table of choices.
    fn choices(&self) -> usize {
        match self {
            Self::Choice(controls) | Self::Binary(controls) => controls.len(),
            Self::Affine { .. } | Self::Added { .. } => 0,
        }
    }
}

/// A control more; returns its place.
fn add_control(
    t: &mut Tables,
    law: u32,
    actuator: usize,
    output: usize,
    [low, high]: [f32; 2],
    [scale, offset]: [f32; 2],
) -> usize {
    let late = match law {
        kernels::DRIVE_HELD => None,
        _ => t.late_output.iter().position(|o| *o as usize == output),
    };
    for (column, number) in [
        (&mut t.drive_late, late.map_or(NOWHERE, |at| at as u32)),
        (&mut t.drive_law, law),
        (&mut t.drive_actuator, actuator as u32),
        (&mut t.drive_output, output as u32),
        (&mut t.drive_choice, 0),
        (&mut t.drive_encoder, NOWHERE),
    ] {
        column.push(number);
    }
    for (column, number) in [
        (&mut t.drive_low, low),
        (&mut t.drive_high, high),
        (&mut t.drive_scale, scale),
        (&mut t.drive_offset, offset),
        (&mut t.drive_gear, 0.0),
    ] {
        column.push(number);
    }
    t.drive_law.len() - 1
}

fn commands(t: &mut Tables, commands: &Commands) {
    for c in &commands.components {
        let (interval, timer) = match c.when {
            When::Every(steps) => (steps, NOWHERE),
            When::Timer(timer) => (0, timer as u32),
        };
        row(t, c.draw.as_ref());
        t.command_first.push(c.first as u32);
        t.command_timer.push(timer);
        t.command_interval.push(interval);
    }
    t.resample_timer.extend(commands.ended.iter().map(|&timer| timer as u32));
    for [low, high] in &commands.timers {
        t.timer_low.push(*low);
        t.timer_high.push(*high);
    }
    for course in &commands.courses {
        t.course_first.push(course.first as u32);
        t.course_body.push(course.body as u32);
        t.course_low.extend(course.ranges.map(|r| r[0]));
        t.course_high.extend(course.ranges.map(|r| r[1]));
        t.course_share.extend(course.shares);
        t.course_stiffness.push(course.stiffness);
        t.course_dead.push(course.deadband);
    }
}

fn score(t: &mut Tables, score: &Score) {
    for term in &score.rewards {
        t.weight.push(term.weight);
        t.share_agent.extend(term.term.agents.iter().map(|&m| m as u32));
        t.share_end.push(t.share_agent.len() as u32);
    }
    t.reward_limit = vec![score.max_abs];
    let [low, high] = score.clip.unwrap_or([f32::NEG_INFINITY, f32::INFINITY]);
    (t.reward_low, t.reward_high) = (vec![low], vec![high]);
    let truncates = score.terminations.iter().map(|e| u32::from(e.truncate));
    t.truncates = truncates.collect();
}

/// Returns the first bias of each term as policies see it, or [`NOWHERE`].
fn observations(t: &mut Tables, observations: &Observations) -> Vec<u32> {
    let mut first = Vec::with_capacity(observations.terms.len());
    for term in &observations.terms {
        let [low, high] = term.clip.unwrap_or([f32::NEG_INFINITY, f32::INFINITY]);
        t.entry_scale.extend(&term.scale);
        t.seen_end.push(t.entry_scale.len() as u32);
        t.seen_low.push(low);
        t.seen_high.push(high);
        let mut biases = [NOWHERE; 2];
        for (critic, spot, sight) in term.places() {
            if let (true, NOWHERE) = (sight.bias.is_some(), biases[usize::from(critic)]) {
                biases[usize::from(critic)] = t.bias_once.len() as u32;
                t.bias_once.extend(std::iter::repeat_n(u32::from(sight.bias_once), term.len()));
            }
            sink(t, critic, spot, sight, biases[usize::from(critic)]);
            if sight.is_kept() {
                keep(t, critic, spot, sight, term.len());
            }
        }
        t.sink_end.push(t.sink_at.len() as u32);
        first.push(biases[0]);
    }
    for (draw, len) in observations.terms.iter().flat_map(Observed::biases) {
        (0..len).for_each(|_| row(t, Some(draw)));
    }
    let padding = &observations.padding;
    let policy = padding.policy.iter().map(|gap| (0, gap));
    let critic = padding.critic.iter().flatten().map(|gap| (1, gap));
    for (critic, gap) in policy.chain(critic) {
        t.pad_critic.push(critic);
        t.pad_from.push(gap.start as u32);
        t.pad_to.push(gap.end as u32);
    }
    first
}

impl Observed {
    /// All its places in rows: in a critics' row or a policies', where, and how it is seen.
    pub(super) fn places(&self) -> impl Iterator<Item = (bool, Spot, &Sight)> {
        let policy = self.policy_at.iter().map(|&spot| (false, spot));
        let critic = self.critic_at.iter().map(|&spot| (true, spot));
        let sight = |critic| if critic { &self.critic } else { &self.policy };
        let all = critic.chain(policy);
        all.filter_map(move |(critic, spot)| Some((critic, spot, sight(critic).as_ref()?)))
    }

    /// Draws that are added to it for an episode, each for as many numbers, the critics' first.
    fn biases(&self) -> impl Iterator<Item = (&Draw, usize)> {
        let critic = self.critic.as_ref().filter(|_| !self.critic_at.is_empty());
        let policy = self.policy.as_ref().filter(|_| self.policy_at.is_some());
        let all = critic.into_iter().chain(policy);
        all.filter_map(|sight| Some((sight.bias.as_ref()?, self.len())))
    }
}

impl Sight {
    /// Numbers on their way into a row.
    fn delayed(&self, len: usize) -> usize {
        self.lag.map_or(0, |lag| lag.most as usize * len)
    }

    /// Whether the row has more than the present value, or an earlier one.
    fn is_kept(&self) -> bool {
        self.lag.is_some() || self.frames > 1
    }
}

/// A place of a term.
fn sink(t: &mut Tables, critic: bool, spot: Spot, sight: &Sight, bias: u32) {
    noise_row(t, sight.noise.as_ref());
    t.sink_critic.push(u32::from(critic));
    t.sink_at.push(spot.newest() as u32);
    t.sink_bias.push(bias);
    t.sink_size.push(if sight.sizes.is_empty() { NOWHERE } else { t.noise_size.len() as u32 });
    t.noise_size.extend(&sight.sizes);
}

/// A place that is seen late, or with earlier values.
fn keep(t: &mut Tables, critic: bool, spot: Spot, sight: &Sight, len: usize) {
    let lag = sight.lag.map_or(NOWHERE, |lag| add_lag(t, lag, len));
    t.keep_critic.push(u32::from(critic));
    t.keep_at.push(spot.newest() as u32);
    t.keep_size.push(len as u32);
    t.keep_frames.push(spot.frames as u32);
    t.keep_stride.push(spot.stride as u32);
    t.keep_lag.push(lag);
}

/// A delay of `len` numbers; returns its place.
fn add_lag(t: &mut Tables, lag: Delay, len: usize) -> u32 {
    let first = t.lag_end.last().copied().unwrap_or(0);
    t.lag_low.push(lag.least);
    t.lag_high.push(lag.most);
    t.lag_redraw.push(lag.redraw);
    t.lag_hold.push(lag.hold);
    t.lag_end.push(first + lag.most * len as u32);
    t.lag_low.len() as u32 - 1
}

/// Delays of actuators that are drawn anew within an episode.
fn redrawn(t: &mut Tables, model: &Model) {
    for motor in model.redrawn() {
        let own = add_lag(t, motor.delay, 0);
        t.redrawn_lag.push(own);
    }
}

fn fill_history(t: &mut Tables, history: &History) {
    t.cell_native = history.of_natives().into_iter().map(u32::from).collect();
    for cell in history.cells() {
        t.cell_end.push(cell.rows().end as u32);
        t.cell_state.push(u32::from(cell.kind().is_state()));
    }
}

fn events(t: &mut Tables, events: &Events) {
    t.varied_base.clone_from(&events.base);
    let places = events.places();
    t.drawn_shown = places.map(|p| p.map_or(NOWHERE, |p| p as u32)).collect();
    t.shown_base = events.shown_base();
    for event in &events.events {
        t.event_when.push(event.when as u32);
        t.event_form.push(event.form as u32);
        t.event_low.push(event.interval[0]);
        t.event_high.push(event.interval[1]);
        t.event_hold_low.push(event.hold[0]);
        t.event_hold_high.push(event.hold[1]);
        t.event_quat.push(event.quat.map_or(NOWHERE, |q| q as u32));
        t.event_dof.push(event.dof.map_or(NOWHERE, |d| d as u32));
        for drawn in &event.drawn {
            row(t, Some(&drawn.draw));
            t.drawn_row.push(drawn.row as u32);
            t.drawn_operation.push(drawn.operation as u32);
            t.drawn_least.push(drawn.possible[0]);
            t.drawn_most.push(drawn.possible[1]);
            t.drawn_word.push(drawn.word);
        }
        t.event_end.push(t.drawn_row.len() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{
        self, AgentsConfig, CriticCopy, DelaySteps, ObservationGroup, OneOrMany, ResetTerm,
        TaskConfig,
    };
    use ostler_engine::state::TABLES;
    use ostler_model::mjcf;
    use std::path::Path;

    /// Every table has entries.
    fn everywhere(task: &mut TaskConfig) {
        let more = "[[command]]\nname = \"more\"\ndistribution = \"choice\"\nchoices = [[1, 2], [3, 4]]\nresample_s = [0.1, 0.2]";
        let more: TaskConfig = toml::from_str(&format!("robot = \"\"\n{more}")).unwrap();
        task.command.extend(more.command);
        task.reset.push(ResetTerm {
            target: "qvel".into(),
            choice: Vec::new(),
            normal: Some(OneOrMany::One(0.1)),
            ..ResetTerm::default()
        });
        for term in &mut task.action {
            term.delay = Some(config::Delay::Steps(DelaySteps::Range([0, 2])));
        }
        for term in &mut task.observation {
            term.bias = Some(0.1.into());
            term.delay = Some(config::Delay::Steps(DelaySteps::Fixed(3)));
            term.history = Some(2);
            if term.group == ObservationGroup::Policy {
                term.critic = Some(CriticCopy {
                    bias: Some(0.1.into()),
                    delay: term.delay.clone(),
                    ..CriticCopy::default()
                });
            }
        }
    }

    /// A kernel reads as many entries as the sizes say.
    #[test]
    fn tables_are_as_long_as_their_sizes_say() {
        #[derive(serde::Deserialize)]
        struct Run {
            task: TaskConfig,
            #[serde(default)]
            agents: Option<AgentsConfig>,
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs");
        for name in ["cartpole", "quadruped", "half_cheetah_legs", "ant_sumo", "spread"] {
            let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
            let run = toml::from_str::<Run>(&text).unwrap();
            let mut task = run.task;
            if name != "cartpole" {
                everywhere(&mut task);
            }
            task.agents = run.agents;
            let model = mjcf::load(&folder.join(&task.robot)).unwrap();
            let task = Task::compile(&model, &task, 0.02).unwrap();
            let sizes = task.sizes(&model, 4);
            let tables = task.tables(&model, 0.02, 500);
            for (len, (table, factor, size, ..)) in tables.lengths().into_iter().zip(TABLES) {
                let mut named = sizes.named().chain([("one", 1)]);
                let wants = factor * named.find(|(name, _)| *name == size).unwrap().1;
                assert_eq!(len, wants, "{name}: {table} [{size}]");
            }
            let bytes: usize = tables.lengths().iter().sum::<usize>() * 4;
            assert_eq!(tables.bytes().len(), bytes);
        }
    }
}
