//! Two batches of a task, of which the second goes through the first one's reflection.

use super::alike::{Columns, MOST};
use super::{ENVS, EnvError, Signed};
use crate::config::file::Simulation;
use crate::env::results::Results;
use crate::env::{BatchEnv, EnvSpec};
use crate::task::CommandSpec;
use ostler_base::rng::{Purpose, normal_pair, philox, unit};
use ostler_engine::physics::mirror::random_state;
use ostler_model::Model;
use ostler_model::mirror::{Mirror, Pairs};
use std::sync::Arc;

/// Steps that are compared.
const STEPS: usize = 40;
/// The same where signs of commands are tried out.
const TRIAL: usize = 12;
/// Commands of which any two are tried in each other's places.
const MOST_PAIRED: usize = 4;
/// Steps from one random state, and one command, to the next.
const EACH: usize = 8;

/// What both batches saw.
pub(super) struct Seen {
    pub policy: Columns,
    pub critic: Columns,
    /// Reward terms.
    pub rewards: Columns,
}

/// Two batches of [`ENVS`] environments.
pub(super) struct Pair<'a> {
    sides: [BatchEnv; 2],
    results: [Results; 2],
    mirror: &'a Mirror,
    action: &'a Signed,
    commands: Vec<CommandSpec>,
    /// Counts random states and commands.
    drawn: u32,
}

/// The number of a command's range at a share of it, 0..1.
fn at_share([low, high]: [f32; 2], share: f32) -> f32 {
    match (low == high, low == 0.0) {
        (true, true) => 2.0 * share - 1.0,
        (true, false) => low * (0.5 + share),
        (false, _) => low + share * (high - low),
    }
}

/// Whether two ranges of a command are one.
fn near(a: [f32; 2], b: [f32; 2]) -> bool {
    let size = (a[1] - a[0]).abs().max(1e-6);
    a.iter().zip(b).all(|(a, b)| *a == b || (a - b).abs() <= 1e-4 * size)
}

/// A range with its sign turned over.
fn turned([low, high]: [f32; 2]) -> [f32; 2] {
    [-high, -low]
}

/// The same with two blocks of as many entries in each other's places; none where the ranges of
/// entries are not each other's under a sign.
fn exchanged(
    plain: &Signed,
    [(first, ranges), (there, others)]: [(usize, &[[f32; 2]]); 2],
) -> Option<Signed> {
    if ranges.is_empty() || ranges.len() != others.len() {
        return None;
    }
    let mut made = plain.clone();
    for (k, (&[low, high], &other)) in ranges.iter().zip(others).enumerate() {
        let sign = match (near([low, high], other), near(turned([low, high]), other)) {
            (true, _) => 1.0,
            (false, true) => -1.0,
            (false, false) => return None,
        };
        made.0[first + k] = ((there + k) as u32, sign);
        made.0[there + k] = ((first + k) as u32, sign);
    }
    Some(made)
}

impl<'a> Pair<'a> {
    pub(super) fn new(
        config: &Simulation,
        models: [Arc<Model>; 2],
        mirror: &'a Mirror,
        action: &'a Signed,
    ) -> Result<Self, EnvError> {
        let [own, other] = models;
        let mut sides = [BatchEnv::of(config, own)?, BatchEnv::of(config, other)?];
        for side in &mut sides {
            side.set_noise(false);
            side.set_events(false);
        }
        let results = [(); 2].map(|()| Results::new(sides[0].spec()));
        let commands = sides[0].command_specs();
        Ok(Self { sides, results, mirror, action, commands, drawn: 0 })
    }

    pub(super) fn spec(&self) -> &EnvSpec {
        self.sides[0].spec()
    }

    /// The reflection of commands. That of a velocity is known; of other numbers the signs are
    /// taken with which observations and rewards have a reflection. Commands that are named for
    /// two sides change places; the halves of one, and others, do where that fits better.
    pub(super) fn commands(&mut self, pairs: &Pairs) -> Result<Signed, EnvError> {
        let axis = self.mirror.axis;
        let width = self.sides[0].task.commands.width();
        let mut plain = Signed((0..width as u32).map(|k| (k, 1.0)).collect());
        let mut known = vec![false; width];
        for course in &self.sides[0].task.commands.courses {
            for k in 0..3 {
                // Forwards and to the left are lengths, the turn is about z.
                let turned = if k < 2 { k == axis } else { axis != 2 };
                plain.0[course.first + k].1 = if turned { -1.0 } else { 1.0 };
                known[course.first + k] = true;
            }
        }
        let open: Vec<usize> = (0..width).filter(|k| !known[*k]).collect();
        if open.is_empty() {
            return Ok(plain);
        }
        let specs: Vec<&CommandSpec> = self
            .commands
            .iter()
            .filter(|c| !known.get(c.first).is_some_and(|known| *known))
            .collect();
        let mut named = plain.clone();
        for (i, own) in specs.iter().enumerate() {
            let partners = pairs.partners(&own.name);
            if let Some(other) = specs[i + 1..].iter().find(|c| partners.contains(&c.name)) {
                let both = [(own.first, &own.ranges[..]), (other.first, &other.ranges[..])];
                named = exchanged(&named, both).unwrap_or(named);
            }
        }
        let halves = specs.iter().filter_map(|own| {
            let (one, other) = own.ranges.split_at(own.ranges.len() / 2);
            exchanged(&plain, [(own.first, one), (own.first + one.len(), other)])
        });
        let halves: Vec<Signed> = halves.collect();
        // Names may say nothing of sides.
        let few = &specs[..specs.len().min(MOST_PAIRED)];
        let both =
            few.iter().enumerate().flat_map(|(i, a)| few[i + 1..].iter().map(move |b| (a, b)));
        let both = both.filter_map(|(a, b)| {
            exchanged(&plain, [(a.first, &a.ranges[..]), (b.first, &b.ranges[..])])
        });
        let both: Vec<Signed> = both.collect();
        let mut starts = vec![named, plain];
        starts.dedup();
        starts.extend(halves.into_iter().chain(both));
        let mut best: Option<(Signed, f64)> = None;
        for start in starts {
            let (found, least) = self.signs(start, &open)?;
            if best.as_ref().is_none_or(|(_, before)| least < 0.95 * before) {
                best = Some((found, least));
            }
            if best.as_ref().is_some_and(|(_, least)| *least < 0.01) {
                break;
            }
        }
        Ok(best.map(|(found, _)| found).unwrap_or_default())
    }

    /// Components of commands that are drawn from another range than their reflections, in words.
    pub(super) fn one_sided(&self, command: &Signed) -> Vec<String> {
        let all: Vec<[f32; 2]> = self.commands.iter().flat_map(|c| c.ranges.clone()).collect();
        let mut told = Vec::new();
        for spec in &self.commands {
            for ((k, own), &(index, sign)) in
                spec.ranges.iter().enumerate().zip(command.0.iter().skip(spec.first))
            {
                let Some(&other) = all.get(index as usize) else { continue };
                let other = if sign < 0.0 { turned(other) } else { other };
                if !near(*own, other) {
                    let ([a, b], [c, d], name) = (*own, other, &spec.name);
                    told.push(format!(
                        "\"{name}\": component {k} is drawn from {a} to {b}, reflected from {c} to {d}"
                    ));
                }
            }
        }
        told
    }

    /// Turns signs of the `open` entries over where that fits better, and how well the result does.
    fn signs(&mut self, mut signs: Signed, open: &[usize]) -> Result<(Signed, f64), EnvError> {
        let mut least = self.unlike(&signs)?;
        let singles = open.iter().filter(|k| signs.0[**k].0 as usize >= **k).map(|&k| k..k + 1);
        // Where observations would have a reflection with all signs of a command turned over,
        // rewards alone tell which is right.
        let wholes = self.commands.iter().filter(|c| open.contains(&c.first));
        let wholes = wholes.map(|c| c.first..c.first + c.ranges.len());
        for turned in singles.chain(wholes).collect::<Vec<_>>() {
            if least < 0.01 {
                break;
            }
            let before = signs.clone();
            for k in turned {
                let sign = -before.0[k].1;
                signs.0[k].1 = sign;
                signs.0[before.0[k].0 as usize].1 = sign;
            }
            let now = self.unlike(&signs)?;
            // Without an effect on anything a sign stays.
            match now < 0.95 * least {
                true => least = now,
                false => signs = before,
            }
        }
        Ok((signs, least))
    }

    /// How far rewards and observations are from having a reflection.
    fn unlike(&mut self, command: &Signed) -> Result<f64, EnvError> {
        // Signs are compared in the same states.
        let drawn = self.drawn;
        let seen = self.run(command, TRIAL)?;
        self.drawn = drawn;
        let table = &self.spec().obs_table.policy;
        let each = table.iter().map(|term| {
            let own = term.index..term.index + term.len;
            seen.policy.exchanged(own, MOST, &[]).map_or(1.0, |(_, share)| share)
        });
        Ok(seen.rewards.mean_apart() + each.sum::<f64>() / table.len().max(1) as f64)
    }

    /// What both batches see.
    pub(super) fn watch(&mut self, command: &Signed) -> Result<Seen, EnvError> {
        self.run(command, STEPS)
    }

    fn run(&mut self, command: &Signed, steps: usize) -> Result<Seen, EnvError> {
        let spec = self.spec().clone();
        let critic = spec.obs.critic.unwrap_or(0);
        let mut seen = Seen {
            policy: Columns::new(spec.obs.policy),
            critic: Columns::new(critic),
            rewards: Columns::new(spec.reward_names.len()),
        };
        // Values of earlier steps come from before the first command.
        let rows = spec.obs_table.policy.iter().chain(spec.obs_table.critic.iter().flatten());
        let settle = 4 + rows.map(|row| row.frames).max().unwrap_or(1);
        self.command(command);
        self.begin();
        for step in 0..settle + steps {
            if step % EACH == 0 {
                self.command(command);
                self.place();
            }
            self.reflect_states();
            let before = self.sums();
            self.step(step);
            let after = self.sums();
            for e in (0..ENVS).filter(|_| step >= settle) {
                let [a, b] = &self.results;
                if !(a.goes_on(e) && b.goes_on(e)) {
                    continue;
                }
                let row = |rows: &[f32], width: usize| rows[e * width..][..width].to_vec();
                let policy = [a, b].map(|r| row(&r.policy, spec.obs.policy));
                seen.policy.push(&policy[0], &policy[1]);
                let own = [a, b].map(|r| row(&r.critic, critic));
                seen.critic.push(&own[0], &own[1]);
                let gained = [0, 1].map(|side: usize| {
                    let each = after[side][e].iter().zip(&before[side][e]);
                    each.map(|(now, then)| now - then).collect::<Vec<f32>>()
                });
                seen.rewards.push(&gained[0], &gained[1]);
            }
        }
        Ok(seen)
    }

    /// Reward terms so far, of each environment.
    fn sums(&self) -> [Vec<Vec<f32>>; 2] {
        [0, 1].map(|side: usize| {
            (0..ENVS).map(|e| self.sides[side].reward_sums(e).collect()).collect()
        })
    }

    /// New episodes: the second batch starts in the reflections of the first one's starts.
    fn begin(&mut self) {
        let [own, other] = &mut self.sides;
        let [results, reflected] = &mut self.results;
        own.reset(false, &mut results.out().obs);
        let (mut qpos, mut qvel) = (Vec::new(), Vec::new());
        states(own, self.mirror, &mut qpos, &mut qvel);
        let mut stand = own.live.episodes.stand.clone();
        let n = ENVS * self.mirror.axis;
        stand.iter_mut().skip(n).take(ENVS).for_each(|x| *x = -*x);
        other.begin_at(&qpos, &qvel, &stand, &mut reflected.out().obs);
    }

    /// Other random commands. One that has no room yet, because a curriculum widens it or a run
    /// fixes it, gets some: its sign would have no effect.
    fn command(&mut self, signs: &Signed) {
        self.drawn += 1;
        let number = self.drawn;
        let draw = |k: usize| {
            let word = philox(2, number, Purpose::Custom, 0, k as u32)[0];
            unit(word)
        };
        let ranges = self.commands.iter().flat_map(|c| &c.ranges);
        let own: Vec<f32> =
            ranges.enumerate().map(|(k, range)| at_share(*range, draw(k))).collect();
        let mut reflected = own.clone();
        signs.reflect(&own, &mut reflected);
        for (side, values) in self.sides.iter_mut().zip([own, reflected]) {
            for (k, command) in self.commands.iter().enumerate() {
                side.hold_command(k, Some(&values[command.first..][..command.ranges.len()]));
            }
        }
    }

    /// Puts the first batch into other random states.
    fn place(&mut self) {
        let own = &mut self.sides[0];
        let (model, about) = (Arc::clone(&own.model), own.task.pose.qpos.clone());
        for e in 0..ENVS {
            let pose = random_state(&model, &about, self.drawn * ENVS as u32 + e as u32);
            if let Some(state) = own.physics.state_mut() {
                let columns = state.qpos.iter_mut().skip(e).step_by(ENVS);
                columns.zip(&pose.qpos).for_each(|(to, x)| *to = *x as f32);
                let columns = state.qvel.iter_mut().skip(e).step_by(ENVS);
                columns.zip(&pose.qvel).for_each(|(to, x)| *to = *x as f32);
            }
        }
    }

    /// Puts the second batch into the reflections of the first one's states: what rounding and
    /// contacts have driven apart comes together again.
    fn reflect_states(&mut self) {
        let [own, other] = &mut self.sides;
        let (mut qpos, mut qvel) = (Vec::new(), Vec::new());
        states(own, self.mirror, &mut qpos, &mut qvel);
        if let Some(state) = other.physics.state_mut() {
            state.qpos.copy_from_slice(&qpos);
            state.qvel.copy_from_slice(&qvel);
        }
    }

    /// A step with random actions and their reflections.
    fn step(&mut self, step: usize) {
        let width = self.action.0.len();
        let clips = self.sides[0].task.actions.clip.clone();
        let (mut own, mut reflected) = (vec![0.0; ENVS * width], vec![0.0; ENVS * width]);
        for e in 0..ENVS {
            let row = &mut own[e * width..][..width];
            for (k, (x, [low, high])) in row.iter_mut().zip(&clips).enumerate() {
                let words = philox(3, e as u32, Purpose::Custom, step as u64, k as u32);
                *x = (0.7 * normal_pair(words[0], words[1]).0).max(*low).min(*high);
            }
            self.action.reflect(row, &mut reflected[e * width..][..width]);
        }
        let sides = self.sides.iter_mut().zip(&mut self.results);
        for ((side, results), actions) in sides.zip([own, reflected]) {
            side.begin_rollout();
            side.step(&actions, &mut results.out());
        }
    }
}

/// The reflections of a batch's states `[nq][N]`, `[nv][N]`.
fn states(env: &BatchEnv, mirror: &Mirror, qpos: &mut Vec<f32>, qvel: &mut Vec<f32>) {
    let (model, state) = (&env.model, env.physics.state());
    qpos.resize(state.qpos.len(), 0.0);
    qvel.resize(state.qvel.len(), 0.0);
    let column = |rows: &[f32], e: usize| -> Vec<f64> {
        rows.iter().skip(e).step_by(ENVS).map(|x| f64::from(*x)).collect()
    };
    let (mut q, mut v) = (vec![0.0; model.nq], vec![0.0; model.nv]);
    for e in 0..ENVS {
        mirror.qpos(model, &column(&state.qpos, e), &mut q);
        mirror.qvel(model, &column(&state.qvel, e), &mut v);
        for (rows, numbers) in [(&mut *qpos, &q), (&mut *qvel, &v)] {
            let own = rows.iter_mut().skip(e).step_by(ENVS);
            own.zip(numbers).for_each(|(to, x)| *to = *x as f32);
        }
    }
}
