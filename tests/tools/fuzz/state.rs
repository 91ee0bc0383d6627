//! Captured environments, of both engines.

use super::drive::Target;
use super::mutate::Corpus;
use crate::common::root;
use ostler_sim::config::Backend;
use ostler_sim::{BatchEnv, Groups, StepOut};
use ostler_trainer::config::parse;
use std::path::Path;
use std::sync::Arc;

/// How many environments there are.
const N: usize = 3;

/// Steps environments without looking at what comes out.
pub fn step(env: &mut BatchEnv, steps: usize) {
    let n = env.spec().rows();
    let zeros = |k: usize| vec![0.0_f32; n * k];
    let (mut obs, mut critic) = (zeros(env.spec().obs.policy), env.spec().obs.critic.map(zeros));
    let (mut a, mut b, mut c, mut d) = (zeros(1), zeros(1), zeros(1), zeros(1));
    let mut slot = vec![0; n];
    let actions = zeros(env.spec().action.width());
    env.begin_rollout();
    for _ in 0..steps {
        let none = critic.is_some();
        env.step(
            &actions,
            &mut StepOut {
                obs: Groups { policy: &mut obs, critic: critic.as_deref_mut() },
                reward: &mut a,
                terminated: &mut b,
                truncated: &mut c,
                valid: &mut d,
                final_obs: Groups {
                    policy: &mut [],
                    critic: none.then_some(&mut [] as &mut [f32]),
                },
                final_slot: &mut slot,
            },
        );
    }
}

fn built(backend: Backend) -> BatchEnv {
    let mut c = parse(crate::common::TASK, Path::new("pole.toml"), &[]).unwrap().config;
    c.sim.backend = backend;
    c.env.num_envs = N;
    let robot = root().join("configs/robots/cartpole.xml");
    let model = Arc::new(ostler_sim::model::mjcf::load(&robot).unwrap());
    BatchEnv::new(model, &c.sim, &c.env, &c.task, 1).unwrap()
}

pub fn environments() -> Target {
    let mut both = [Backend::Native, Backend::Rapier].map(built);
    let mut files = Vec::new();
    let mut pristine = Vec::new();
    for env in &mut both {
        let width = env.spec().obs.policy;
        let mut rows = vec![0.0; N * width];
        env.reset(true, &mut Groups { policy: &mut rows, critic: None });
        step(env, 5);
        let mut captured = Vec::new();
        env.capture(&mut captured).unwrap();
        files.push(captured.clone());
        pristine.push(captured);
    }
    let corpus = Corpus { files, words: Vec::new(), text: false };
    Target {
        corpus,
        read: Box::new(move |bytes| {
            let mut good = false;
            let rapier = bytes.windows(6).any(|w| w == b"rapier");
            let which = usize::from(rapier);
            let env = &mut both[which];
            // Rapier's own structures are taken at their word, for which a file's checksum
            // stands: worlds of others than these are read, but not stepped.
            let steps = !rapier || bytes == pristine[which];
            let mut rows = vec![0.0; N * env.spec().obs.policy];
            for range in [false, true] {
                let mut obs = Groups { policy: &mut rows[..], critic: None };
                let taken = match range {
                    false => env.restore(bytes).is_ok(),
                    true => env.restore_range(bytes, true, &mut obs).is_ok(),
                };
                if taken {
                    good = true;
                    if steps {
                        step(env, 2);
                    }
                    env.take_stats(&mut ostler_sim::EpisodeStats::default());
                    env.restore(&pristine[which]).unwrap();
                }
            }
            good
        }),
    }
}
