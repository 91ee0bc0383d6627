//! Pins: a row is what the task says with the names written out; worlds move as those of
//! one agent that decides for all.

use super::arena::{Batch, Out, SLOTS, SMALL, actions, built};

const NAMES: [&str; 3] = ["red", "blue", "green"];

/// Three agents and everything that may differ between them.
const TASK: &str = r#"
[agents]
names = ["red", "blue", "green"]

[task]
robot = ""
params = { gain_red = 1.5, gain_blue = -0.5, gain_green = 2 }
[[task.action]]
actuators = ["{agent}_*"]
clip = [-0.8, 0.9]
[[task.command]]
name = "{agent}_goal"
range = [[-1, 1], [0, 2]]
resample_s = 0.1
unit = "m"
[[task.command]]
name = "pace"
range = [[0, 1]]
[[task.observation]]
name = "own"
expr = "[pos({agent}).xy, joint_vel([{agent}_x, \"{agent}_y\"]), pos(\"{agent}/nose\").x]"
[[task.observation]]
name = "goal"
expr = "command.{agent}_goal - pos({agent}).xy"
scale = [2, -1]
clip = [-1.5, 1.5]
[[task.observation]]
name = "team"
expr = "[others(pos({other}) - pos({agent})), min(each(height({each}))), command.pace]"
[[task.observation]]
name = "who"
expr = "[agent_index, agent_id, param.gain_{agent}, action, last_action]"
[[task.reward]]
name = "near"
expr = "exp(-norm2(pos({agent}).xy - command.{agent}_goal) / 1)"
weight = 0.7
[[task.reward]]
name = "ball"
expr = "height(ball) / 1"
weight = 0.1
[[task.reward]]
name = "effort"
expr = "norm2(action_rate)"
weight = -0.05
[[task.termination]]
name = "lost"
expr = "norm(pos({agent}).xy) > 2.25"
[[task.termination]]
name = "low"
expr = "height(ball) < 4.3"
truncate = true
[[task.reset]]
target = "qpos"
uniform = [-0.2, 0.2]
[[task.reset]]
target = "joint_vel(\"{agent}_*\")"
normal = 0.3
"#;

/// The same for one agent that decides for all, and sees and gets what `m` does. Names are
/// written out here by hand, in the order that the page promises.
fn alone(m: usize) -> String {
    let me = NAMES[m];
    let (second, third) = (NAMES[(m + 1) % 3], NAMES[(m + 2) % 3]);
    let one_hot = ["1, 0, 0", "0, 1, 0", "0, 0, 1"][m];
    let own = format!("[{}:{}]", 2 * m, 2 * m + 2);
    let mut text = String::from(
        r#"
[task]
robot = ""
params = { gain_red = 1.5, gain_blue = -0.5, gain_green = 2 }
"#,
    );
    for name in NAMES {
        text += &format!(
            "[[task.action]]\nactuators = [\"{name}_x\", \"{name}_y\"]\nclip = [-0.8, 0.9]\n"
        );
    }
    for name in NAMES {
        text += &format!(
            "[[task.command]]\nname = \"{name}_goal\"\nrange = [[-1, 1], [0, 2]]\nresample_s = 0.1\nunit = \"m\"\n"
        );
    }
    text += "[[task.command]]\nname = \"pace\"\nrange = [[0, 1]]\n";
    text += &format!(
        r#"
[[task.observation]]
name = "own"
expr = "[pos({me}).x, pos({me}).y, joint_vel({me}_x), joint_vel({me}_y), pos(\"{me}/nose\").x]"
[[task.observation]]
name = "goal"
expr = "command.{me}_goal - pos({me}).xy"
scale = [2, -1]
clip = [-1.5, 1.5]
[[task.observation]]
name = "team"
expr = "[pos({second}) - pos({me}), pos({third}) - pos({me}), min([height(red), height(blue), height(green)]), command.pace]"
[[task.observation]]
name = "who"
expr = "[{m}, {one_hot}, param.gain_{me}, action{own}, last_action{own}]"
[[task.reward]]
name = "near"
expr = "exp(-norm2(pos({me}).xy - command.{me}_goal) / 1)"
weight = 0.7
[[task.reward]]
name = "ball"
expr = "height(ball) / 1"
weight = 0.1
[[task.reward]]
name = "effort"
expr = "norm2((action - last_action){own})"
weight = -0.05
"#
    );
    for name in NAMES {
        text += &format!(
            "[[task.termination]]\nname = \"lost/{name}\"\nexpr = \"norm(pos({name}).xy) > 2.25\"\n"
        );
    }
    text += r#"
[[task.termination]]
name = "low"
expr = "height(ball) < 4.3"
truncate = true
[[task.reset]]
target = "qpos"
uniform = [-0.2, 0.2]
"#;
    for name in NAMES {
        text +=
            &format!("[[task.reset]]\ntarget = \"joint_vel(\\\"{name}_*\\\")\"\nnormal = 0.3\n");
    }
    text
}

#[test]
fn rows_are_those_of_tasks_with_the_names_written_out() {
    let b = Batch { n: 70, threads: 2, ..SMALL };
    let mut env = built(b, TASK);
    let spec = env.spec().clone();
    assert_eq!((spec.rows(), spec.agents_per_env()), (210, 3));
    let mut out = Out::new(&spec);
    out.reset(&mut env, true);
    let mut single: Vec<_> = (0..3)
        .map(|m| {
            let mut env = built(b, &alone(m));
            let mut out = Out::new(env.spec());
            out.reset(&mut env, true);
            (env, out)
        })
        .collect();
    let (mut ends, mut late) = (0, 0);
    for t in 0..60 {
        let a = actions(0, b.n, 6, t);
        out.step(&mut env, &a);
        for (m, (one, seen)) in single.iter_mut().enumerate() {
            seen.step(one, &a);
            assert_eq!(one.spec().obs, spec.agents[m].obs);
            for e in 0..b.n {
                let r = 3 * e + m;
                assert_eq!(out.row(&spec, r), seen.row(one.spec(), e), "{t}: {m} of {e}");
                let of = |o: &Out, r: usize| {
                    let ends = (o.terminated[r], o.truncated[r], o.valid[r]);
                    (o.reward[r].to_bits(), ends, o.final_slot[r])
                };
                assert_eq!(of(&out, r), of(seen, e), "{t}: {m} of {e}");
                if let Ok(slot) = usize::try_from(out.final_slot[r])
                    && slot < SLOTS
                {
                    late += 1;
                    let wide = spec.obs.policy;
                    let mine = &out.final_policy[(slot * 210 + r) * wide..][..wide];
                    let theirs = &seen.final_policy[(slot * 70 + e) * wide..][..wide];
                    assert_eq!(mine, theirs);
                }
                ends += u32::from(out.terminated[r] != 0.0);
            }
            let (a, b) = (env.physics().state(), one.physics().state());
            assert!(a.qpos == b.qpos && a.qvel == b.qvel, "worlds at {t}");
        }
    }
    assert!(ends > 0 && late > 0, "{ends} ends, {late} last observations");

    // The counted episodes.
    let mut stats = ostler_sim::EpisodeStats::with_room(&spec).unwrap();
    env.take_stats(&mut stats);
    assert_eq!(
        spec.reward_names,
        [
            "red/near",
            "blue/near",
            "green/near",
            "ball",
            "red/effort",
            "blue/effort",
            "green/effort"
        ]
    );
    assert_eq!(spec.termination_names, ["time_out", "lost/red", "lost/blue", "lost/green", "low"]);
    let mut mean = 0.0;
    for (m, (one, _)) in single.iter_mut().enumerate() {
        let mut own = ostler_sim::EpisodeStats::with_room(one.spec()).unwrap();
        one.take_stats(&mut own);
        assert!(own.episodes > 20);
        assert_eq!(stats.episodes, own.episodes);
        assert_eq!(stats.terminations, own.terminations);
        assert_eq!(stats.agent_return_sums[m], own.return_sum);
        let sums = [m, 3, 4 + m].map(|k| stats.reward_sums[k]);
        assert_eq!(sums, own.reward_sums[..]);
        mean += own.return_sum / 3.0;
    }
    assert!((stats.return_sum - mean).abs() < 1e-6 * mean.abs());
    let listed: f64 = stats.finished.iter().map(|f| f64::from(f.ret)).sum();
    assert!(stats.finished.len() as u64 == stats.episodes.min(100) && listed != 0.0);
}

#[test]
fn noise_differs_between_agents_and_critics_see_none() {
    let text = r#"
[agents]
names = ["red", "blue"]
centralized_critic = true
[task]
robot = ""
[[task.action]]
actuators = ["{agent}_*"]
[[task.observation]]
name = "still"
expr = "[1, 1, 1]"
noise = 0.5
[[task.reward]]
name = "r"
expr = "1"
"#;
    let mut env = built(SMALL, text);
    let mut out = Out::new(env.spec());
    out.reset(&mut env, false);
    let spec = env.spec();
    assert_eq!(spec.obs.critic, Some(6));
    for e in 0..3 {
        let (a, b) = (out.row(spec, 2 * e), out.row(spec, 2 * e + 1));
        assert!(a.iter().zip(b).all(|(x, y)| x != y), "{a:?} {b:?}");
        assert!(a.iter().chain(b).all(|x| (0.5..=1.5).contains(x)));
        assert_eq!(out.critic_row(spec, 2 * e), [1.0; 6]);
    }
}
