//! Environments that were saved or kept, of both engines.

use super::drive::Target;
use super::mutate::Corpus;
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
    let (mut obs, mut critic) = (
        zeros(env.spec().obs.policy),
        env.spec().obs.critic.map(zeros),
    );
    let (mut a, mut b, mut c, mut d) = (zeros(1), zeros(1), zeros(1), zeros(1));
    let mut slot = vec![0; n];
    let actions = zeros(env.spec().action.width());
    env.begin_rollout();
    for _ in 0..steps {
        let none = critic.is_some();
        env.step(
            &actions,
            &mut StepOut {
                obs: Groups {
                    policy: &mut obs,
                    critic: critic.as_deref_mut(),
                },
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

/// First bytes of the engines' parts.
const ENGINES: [&[u8]; 2] = [b"OSTNAT02", b"OSTRAP03"];

fn is_rapier(word: &[u8]) -> bool {
    word == ENGINES[1] || word == b"OSTRAPK3"
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let sum = blake3::hash(&bytes);
    bytes.extend_from_slice(sum.as_bytes());
    bytes
}

/// Where the engine's part begins, and which engine.
fn engine(blob: &[u8]) -> Option<(usize, usize)> {
    let at = |magic: &[u8]| blob.windows(8).position(|w| w == magic);
    (0..2).find_map(|i| Some((at(ENGINES[i])?, i)))
}

/// A saved blob without its checksums and the length of the engine's part.
fn bare(blob: &[u8]) -> Vec<u8> {
    let (at, _) = engine(blob).unwrap();
    [&blob[..at - 8], &blob[at..blob.len() - 64]].concat()
}

/// The reverse of [`bare`].
pub fn seal(bare: &[u8]) -> Option<Vec<u8>> {
    let (at, _) = engine(bare)?;
    let inner = sealed(bare[at..].to_vec());
    let len = (inner.len() as u64).to_le_bytes();
    Some(sealed([&bare[..at], &len, &inner].concat()))
}

fn built(backend: Backend) -> BatchEnv {
    let mut c = parse(super::common::TASK, Path::new("pole.toml"), &[])
        .unwrap()
        .config;
    c.sim.backend = backend;
    c.env.num_envs = N;
    let robot = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots/cartpole.xml");
    let model = Arc::new(ostler_sim::model::mjcf::load(&robot).unwrap());
    BatchEnv::new(model, &c.sim, &c.env, &c.task, 1).unwrap()
}

pub fn environments() -> Target {
    let mut both = [Backend::Native, Backend::Rapier].map(built);
    let mut files = Vec::new();
    let (mut pristine, mut rapier) = (Vec::new(), Vec::new());
    for env in &mut both {
        let width = env.spec().obs.policy;
        let mut rows = vec![0.0; N * width];
        env.reset(
            true,
            &mut Groups {
                policy: &mut rows,
                critic: None,
            },
        );
        step(env, 5);
        let (mut saved, mut kept) = (Vec::new(), Vec::new());
        env.save(&mut saved).unwrap();
        env.keep(&mut kept).unwrap();
        assert_eq!(seal(&bare(&saved)).unwrap(), saved);
        files.extend([bare(&saved), saved, kept.clone()]);
        for file in &files[files.len() - 3..] {
            let at = file.windows(8).position(is_rapier);
            rapier.extend(at.map(|at| file[at..].to_vec()));
        }
        pristine.push(kept);
    }
    let corpus = Corpus {
        files,
        words: Vec::new(),
        text: false,
    };
    Target {
        corpus,
        read: Box::new(move |bytes| {
            let mut good = false;
            let resealed = seal(bytes);
            let magic = bytes.windows(8).any(is_rapier);
            let which = usize::from(magic);
            let env = &mut both[which];
            let mut rows = vec![0.0; N * env.spec().obs.policy];
            // Rapier's own structures are taken at their word once the checksum agrees:
            // with damage in them there is nothing to do but to see it refused.
            let whole = !magic || rapier.iter().any(|worlds| bytes.ends_with(worlds));
            let resealed = resealed.filter(|_| whole);
            for blob in [Some(bytes), resealed.as_deref()].into_iter().flatten() {
                for how in 0..if whole { 3 } else { 1 } {
                    let taken = match how {
                        0 => env.restore(blob).is_ok(),
                        1 => env.revert(blob).is_ok(),
                        _ => {
                            let mut obs = Groups {
                                policy: &mut rows[..],
                                critic: None,
                            };
                            env.adopt(blob, true, &mut obs).is_ok()
                        }
                    };
                    if taken {
                        good = true;
                        step(env, 2);
                        env.take_stats(&mut ostler_sim::EpisodeStats::default());
                        env.revert(&pristine[which]).unwrap();
                    }
                }
            }
            good
        }),
    }
}
