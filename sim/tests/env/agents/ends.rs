//! Pins: rewards of teams and of single agents, their limits, and worlds that break because of
//! one agent.

use super::arena::{Out, SMALL, built};
use ostler_sim::EpisodeStats;
use ostler_sim::env::{Injection, Value, What, When, Which};

const TASK: &str = r#"
[agents]
names = ["red", "blue"]
[task]
robot = ""
[[task.action]]
actuators = ["{agent}_*"]
[[task.observation]]
name = "x"
expr = "[pos({agent}).x, log(1 - 10 * action[0])]"
[[task.reward]]
name = "win"
expr = "agent_index == 0 ? 3 : -3"
[[task.reward]]
name = "team"
expr = "0.25 + 0 * time"
[[task.reward]]
name = "share"
expr = "1 / (1 - others(height({other})) * 0 - 4 * action[1])"
[task.rewards]
clip = [-2, 8]
max_abs = 20
"#;

fn taken(env: &mut ostler_sim::BatchEnv) -> EpisodeStats {
    let mut stats = EpisodeStats::with_room(env.spec()).unwrap();
    env.take_stats(&mut stats);
    stats
}

#[test]
fn each_agents_sum_is_limited_by_itself() {
    let text = TASK.replace("others(height({other})) * 0", "0");
    let end = "[[task.termination]]\nname = \"end\"\nexpr = \"step_count >= 2\"";
    let mut env = built(SMALL, &format!("{text}\n{end}"));
    let mut out = Out::new(env.spec());
    out.reset(&mut env, false);
    out.step(&mut env, &[0.0; 12]);
    // 3 + 0.25 + 1; -3 + 0.25 + 1 = -1.75.
    assert_eq!(out.reward, [4.25, -1.75].repeat(3));
    // Red: 1 / (1 + 4) = 0.2; blue: -3 + 0.25 + 0.2 is clipped.
    out.step(&mut env, &[0.0, -1.0].repeat(6));
    assert_eq!(out.reward, [3.45, -2.0].repeat(3));
    // One of an episode's two of blue.
    let stats = taken(&mut env);
    assert_eq!((stats.episodes, &stats.rewards_clipped[..]), (3, &[0, 3][..]));
    assert_eq!(stats.most_clipped(), Some((1, 0.5)));
}

#[test]
fn what_breaks_one_agent_breaks_its_world_and_is_named() {
    // Blue's share is infinite in world 0; beyond the limit in world 1 for red; its
    // observation is no number in world 2.
    let text = TASK.replace("others(height({other})) * 0", "0");
    let mut env = built(SMALL, &text);
    let mut out = Out::new(env.spec());
    out.reset(&mut env, false);
    let mut a = vec![0.0; 12];
    a[3] = 0.25;
    a[5] = 0.245;
    a[10] = 0.5;
    out.step(&mut env, &a);
    assert_eq!(out.valid, [0.0; 6]);
    assert_eq!(out.reward, [0.0; 6]);
    let stats = taken(&mut env);
    let names: Vec<&str> =
        stats.breaks.iter().map(|b| env.spec().cause_names[b.cause as usize].as_str()).collect();
    assert_eq!(
        names,
        ["inf/reward/blue/share", "bound/reward/red/share", "nan/observation/blue/x"]
    );
    assert!(out.policy.iter().all(|x| x.is_finite()));
}

#[test]
fn faults_on_purpose_count_through_the_agents() {
    let inject = |what: What| {
        let mut env = built(SMALL, TASK);
        let mut out = Out::new(env.spec());
        let fault = Injection { when: When::At(2), env: Which::One(1), what, value: Value::Nan };
        env.inject(vec![fault]).unwrap();
        out.reset(&mut env, false);
        for _ in 0..3 {
            out.step(&mut env, &[0.0; 12]);
        }
        let stats = taken(&mut env);
        assert_eq!(stats.broken(), 1, "{what:?}");
        assert_eq!((stats.breaks[0].env, stats.breaks[0].step), (1, 1));
        env.spec().cause_names[stats.breaks[0].cause as usize].clone()
    };
    assert_eq!(inject(What::Action(0)), "nan/action/red_x");
    assert_eq!(inject(What::Action(2)), "nan/action/blue_x");
    assert_eq!(inject(What::Observation(1)), "nan/observation/red/x");
    assert_eq!(inject(What::Observation(2)), "nan/observation/blue/x");
    assert_eq!(inject(What::Reward), "nan/reward/sum_of_terms");
    let mut env = built(SMALL, TASK);
    let beyond = |what: What| Injection {
        when: When::At(1),
        env: Which::Share(1.0),
        what,
        value: Value::Nan,
    };
    for what in [What::Action(4), What::Observation(4)] {
        let refused = env.inject(vec![beyond(what)]).unwrap_err().to_string();
        assert!(refused.contains("there is no 4 among 4"), "{refused}");
    }
}
