//! Pins: a control step allocates nothing, nor does keeping what came of it.

use super::point_mass::{Batch, Out, build, task};
use crate::support::count::of_thread;
use ostler_sim::EpisodeStats;

#[test]
fn stepping_resetting_keeping_and_taking_statistics_allocate_nothing() {
    let text = r#"
[[action]]
actuators = ["*"]
kind = "normalized"
[[command]]
name = "goal"
range = [[-1.0, 1.0]]
resample_s = 0.04
[[observation]]
name = "state"
expr = "concat(qpos, qvel, command.goal)"
noise = 0.1
[[observation]]
name = "secret"
expr = "last_action"
group = "critic"
[[reward]]
name = "near"
expr = "exp(-norm2(joint_pos(slider) - command.goal) / 1.0) - 0.1 * sum(action^2)"
[[termination]]
name = "far"
expr = "abs(joint_pos(slider)) > 0.01"
[[reset]]
target = "qpos"
normal = 0.01
"#;
    let batch = Batch { n: 150, threads: 1, seed: 1, first: 0, steps: 6 };
    let mut env = build(batch, &task(text)).unwrap();
    let mut out = Out::new(env.spec(), 4);
    let mut stats = EpisodeStats::default();
    let mut actions = vec![0.5; 300];
    out.reset(&mut env, true);
    env.take_stats(&mut stats);
    out.step(&mut env, &actions);
    let mut kept = Vec::new();
    env.capture(&mut kept).unwrap();
    let mut episodes = 0;
    let count = of_thread(|| {
        for step in 0..100 {
            actions[step] = f32::NAN;
            out.step(&mut env, &actions);
            actions[step] = -0.5;
            env.begin_rollout();
            env.take_stats(&mut stats);
            episodes += stats.episodes;
            kept.clear();
            env.capture(&mut kept).unwrap();
            env.restore(&kept).unwrap();
        }
    });
    assert_eq!(count, 0);
    assert!(episodes > 1000);
}
