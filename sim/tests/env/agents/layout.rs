//! Pins: padding, agents that share a policy, the contents and places of a centralised critic's
//! observations.

use super::arena::{Out, SMALL, build, built, mistake, task};
use ostler_sim::env::ActionSpace;

/// Agents of different sizes.
const UNEQUAL: &str = r#"
[agents]
names = ["red", "blue"]
policies = "separate"
[task]
robot = ""
[[task.action]]
actuators = ["red_*"]
agents = ["red"]
[[task.action]]
actuators = ["blue_x"]
agents = ["blue"]
[[task.observation]]
name = "own"
expr = "pos({agent})"
[[task.observation]]
name = "index"
expr = "agent_index + 4"
agents = ["red"]
[[task.observation]]
name = "secret"
expr = "[agent_id, 9, 9, 9]"
group = "critic"
agents = ["blue"]
[[task.reward]]
name = "out"
expr = "action[0]"
[[task.reward]]
name = "extra"
expr = "2"
agents = ["blue"]
[[task.reset]]
target = "joint_pos(\"*_x\")"
uniform = [-0.1, 0.1]
"#;

#[test]
fn narrow_agents_are_padded() {
    let mut env = built(SMALL, UNEQUAL);
    let spec = env.spec().clone();
    let of = |m: usize| {
        let a = &spec.agents[m];
        (a.name.as_str(), a.policy, a.obs.policy, a.obs.critic, a.action)
    };
    assert_eq!(of(0), ("red", 0, 4, Some(4), ActionSpace::Continuous(2)));
    assert_eq!(of(1), ("blue", 1, 3, Some(8), ActionSpace::Continuous(1)));
    assert_eq!(spec.policy_names, ["red", "blue"]);
    assert_eq!((spec.obs.policy, spec.obs.critic), (4, Some(8)));
    assert_eq!(spec.action, ActionSpace::Continuous(2));
    assert_eq!(spec.reward_names, ["red/out", "blue/out", "extra"]);

    let mut out = Out::new(&spec);
    out.reset(&mut env, false);
    let mut bits = Vec::new();
    for padding in [0.5, f32::NAN, f32::INFINITY] {
        let mut env = built(SMALL, UNEQUAL);
        let mut out = Out::new(&spec);
        out.reset(&mut env, false);
        // The second output of blue's rows is nobody's.
        let a: Vec<f32> = (0..3).flat_map(|_| [0.25, -0.5, 0.75, padding]).collect();
        out.step(&mut env, &a);
        assert_eq!(out.valid, [1.0; 6]);
        assert_eq!(out.reward, [0.25, 2.75].repeat(3));
        for e in 0..3 {
            let (red, blue) = (out.row(&spec, 2 * e), out.row(&spec, 2 * e + 1));
            assert_eq!((red[3], blue[3]), (4.0, 0.0));
            assert_eq!(out.critic_row(&spec, 2 * e)[..4], *red);
            assert_eq!(out.critic_row(&spec, 2 * e)[4..], [0.0; 4]);
            let critic = out.critic_row(&spec, 2 * e + 1);
            assert_eq!((&critic[..3], &critic[3..]), (&blue[..3], &[0.0, 1.0, 9.0, 9.0, 9.0][..]));
        }
        bits.push(out.bits(3, 0));
    }
    assert!(bits[0] == bits[1] && bits[1] == bits[2]);
}

#[test]
fn a_centralised_critic_sees_own_then_partners_then_the_rest() {
    let text = |policies: &str| {
        format!(
            r#"
[agents]
names = ["red", "blue", "green"]
policies = {policies}
centralized_critic = true
[task]
robot = ""
[[task.action]]
actuators = ["{{agent}}_x"]
[[task.observation]]
name = "me"
expr = "agent_index"
[[task.observation]]
name = "more"
expr = "[agent_index + 10, agent_index + 20]"
[[task.observation]]
name = "secret"
expr = "100 + agent_index"
group = "critic"
[[task.observation]]
name = "partners"
expr = "others(height({{other}}))"
group = "critic"
[[task.reward]]
name = "r"
expr = "1"
"#
        )
    };
    for (policies, orders, of) in [
        ("\"shared\"", [[0, 1, 2], [1, 2, 0], [2, 0, 1]], [0, 0, 0]),
        ("\"separate\"", [[0, 1, 2], [1, 0, 2], [2, 0, 1]], [0, 1, 2]),
        ("[\"a\", \"b\", \"a\"]", [[0, 2, 1], [1, 0, 2], [2, 0, 1]], [0, 1, 0]),
    ] {
        let mut env = built(SMALL, &text(policies));
        let spec = env.spec().clone();
        assert_eq!(spec.obs.critic, Some(12));
        let mut out = Out::new(&spec);
        out.reset(&mut env, false);
        for (m, order) in orders.iter().enumerate() {
            let mut expected: Vec<f32> = Vec::new();
            for &i in order {
                let i = i as f32;
                expected.extend([i, i + 10.0, i + 20.0]);
            }
            expected.extend([100.0 + m as f32]);
            for e in 0..3 {
                let row = out.critic_row(&spec, 3 * e + m);
                assert_eq!(row[..10], expected[..], "{policies}, {m}");
                assert_eq!(out.row(&spec, 3 * e + m), &row[..3]);
            }
            assert_eq!(spec.agents[m].policy, of[m]);
            let names = ["red", "blue", "green"];
            let table = spec.agents[m].obs_table.critic.as_ref().unwrap();
            let found: Vec<&str> = table.iter().map(|r| r.name.as_str()).collect();
            let [_, second, third] = order.map(|i| names[i]);
            let expected = [
                "me".to_string(),
                "more".into(),
                format!("{second}/me"),
                format!("{second}/more"),
                format!("{third}/me"),
                format!("{third}/more"),
                "secret".into(),
                "partners".into(),
            ];
            assert_eq!(found, expected);
            assert_eq!(table[6].index, 9);
        }
    }
}

#[test]
fn choices_are_each_agents_own() {
    let text = r#"
[agents]
names = ["red", "blue"]
policies = "separate"
[task]
robot = ""
[[task.action]]
actuators = ["red_*"]
kind = "discrete"
choices = [[-1, 0], [0, 1], [1, 1]]
agents = ["red"]
[[task.action]]
actuators = ["blue_x"]
kind = "discrete"
choices = [[-0.5], [0.5]]
agents = ["blue"]
[[task.observation]]
name = "ctrl"
expr = "[ctrl(\"{agent}_x\"), action]"
[[task.reward]]
name = "r"
expr = "1"
"#;
    let mut env = built(SMALL, text);
    let spec = env.spec().clone();
    assert_eq!(spec.action, ActionSpace::Discrete(3));
    assert_eq!(spec.agents[1].action, ActionSpace::Discrete(2));
    let mut out = Out::new(&spec);
    out.reset(&mut env, false);
    // Two is a choice of red's alone: blue's last is taken.
    out.step(&mut env, &[2.0, 0.0, 0.0, 1.0, 1.0, 2.0]);
    assert_eq!(out.policy, [1.0, 2.0, -0.5, 0.0, -1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 0.5, 1.0]);
    let causes = &spec.cause_names;
    assert!(causes.contains(&"nan/action/blue/choice".to_string()));
}

#[test]
fn terms_of_the_world_see_all_outputs() {
    let text = r#"
[agents]
names = ["red", "blue"]
[task]
robot = ""
[[task.action]]
actuators = ["{agent}_*"]
[[task.observation]]
name = "x"
expr = "pos({agent}).x"
[[task.reward]]
name = "r"
expr = "1"
[[task.termination]]
name = "all"
expr = "action[3] > 0.5 and sum(action) > 1 and any(each(pos({each}).x < 5))"
[[task.termination]]
name = "own"
expr = "action[1] < -0.5 and pos({agent}).x < 5"
"#;
    let mut env = built(SMALL, text);
    let mut out = Out::new(env.spec());
    out.reset(&mut env, false);
    let mut a = vec![0.0; 12];
    a[..4].copy_from_slice(&[0.5, 0.0, 0.0, 0.75]);
    // Red's second output, then blue's.
    a[5] = -0.75;
    a[11] = -0.75;
    out.step(&mut env, &a);
    assert_eq!(out.terminated, [1.0; 6]);
    let mut stats = ostler_sim::EpisodeStats::with_room(env.spec()).unwrap();
    env.take_stats(&mut stats);
    assert_eq!(env.spec().termination_names, ["time_out", "all", "own/red", "own/blue"]);
    assert_eq!(stats.terminations, [0, 1, 1, 1]);
}

#[test]
fn a_curriculum_changes_numbers_and_not_agents() {
    let mut cfg = task(UNEQUAL);
    let mut env = build(SMALL, &cfg).unwrap();
    cfg.reward[1].weight = 5.0;
    env.set_task(&cfg).unwrap();
    let mut out = Out::new(env.spec());
    out.reset(&mut env, false);
    out.step(&mut env, &[0.0; 12]);
    assert_eq!(out.reward, [0.0, 10.0].repeat(3));
    cfg.agents = None;
    let refused = env.set_task(&cfg).unwrap_err().to_string();
    assert!(refused.contains("agents"), "{refused}");
}

#[test]
fn the_pages_example_is_a_task() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/task-agents.md");
    let page = std::fs::read_to_string(page).unwrap();
    let example = page
        .split("```toml\n")
        .find(|block| block.starts_with("[agents]"))
        .and_then(|block| block.split("```").next())
        .unwrap();
    let env = built(SMALL, example);
    let spec = env.spec();
    assert_eq!((spec.obs.policy, spec.obs.critic), (11, Some(22)));
    assert_eq!(spec.reward_names, ["closest", "red/effort", "blue/effort"]);
    let ends = ["time_out", "fallen/red", "fallen/blue"];
    assert_eq!(spec.termination_names, ends);
}

/// Unequal agents, a group that all have and one that only one has.
const GROUPS: &str = r#"
[[task.observation]]
name = "known"
expr = "[pos({agent}).x, 40 + agent_index]"
group = "teacher"
[[task.observation]]
name = "own"
expr = "7"
group = "teacher"
agents = ["red"]
[[task.observation]]
name = "other"
expr = "50 + agent_index"
group = "expert"
agents = ["blue"]
"#;

#[test]
fn groups_stand_behind_what_critics_see_at_the_same_columns_for_all_agents() {
    let text = format!("{UNEQUAL}{GROUPS}");
    let mut env = built(SMALL, &text);
    let spec = env.spec().clone();
    assert_eq!((spec.obs.critic, spec.critic), (Some(8 + 3 + 1), Some(8)));
    let own: Vec<_> = spec.agents.iter().map(|a| (a.critic, a.obs.critic)).collect();
    assert_eq!(own, [(Some(4), Some(12)), (Some(8), Some(12))]);
    let groups = spec.groups.iter();
    let groups: Vec<_> = groups.map(|g| (g.name.as_str(), g.first, g.width)).collect();
    assert_eq!(groups, [("teacher", 8, 3), ("expert", 11, 1)]);
    let names: Vec<_> = spec.groups[0].table.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["known", "own"]);
    assert!(spec.group("teachers").is_none());

    // All else is as it is without groups.
    let mut without = built(SMALL, UNEQUAL);
    let (mut out, mut plain) = (Out::new(&spec), Out::new(without.spec()));
    out.reset(&mut env, false);
    plain.reset(&mut without, false);
    let plain_spec = without.spec().clone();
    assert_eq!((plain_spec.obs.critic, plain_spec.critic), (Some(8), Some(8)));
    for step in 0..3 {
        for r in 0..6 {
            assert_eq!(out.row(&spec, r), plain.row(&plain_spec, r));
            let row = out.critic_row(&spec, r);
            assert_eq!(row[..8], *plain.critic_row(&plain_spec, r));
            let x = out.row(&spec, r)[0];
            let groups = match r % 2 {
                0 => [x, 40.0, 7.0, 0.0],
                _ => [x, 41.0, 0.0, 51.0],
            };
            assert_eq!(row[8..], groups, "step {step}, row {r}");
        }
        let a = [0.25, -0.5, 0.75, 0.1].repeat(3);
        out.step(&mut env, &a);
        plain.step(&mut without, &a);
    }
}

#[test]
fn a_group_alone_gives_the_critic_nothing_of_its_own() {
    let text = r#"
[task]
robot = ""
[[task.action]]
actuators = ["red_x"]
[[task.observation]]
name = "own"
expr = "joint_pos(red_x)"
[[task.observation]]
name = "all"
expr = "[1, 2, 3]"
group = "teacher"
[[task.reward]]
name = "r"
expr = "1"
"#;
    let mut env = built(SMALL, text);
    let spec = env.spec().clone();
    assert_eq!((spec.critic, spec.obs.critic), (None, Some(3)));
    assert_eq!(spec.obs_table.critic, None);
    let mut out = Out::new(&spec);
    out.reset(&mut env, false);
    assert_eq!(out.critic_row(&spec, 1), [1.0, 2.0, 3.0]);
}

#[test]
fn names_of_groups_are_words_and_noise_is_not_negative() {
    let task_of = |group: &str, noise: &str| {
        format!(
            r#"
[task]
robot = ""
[[task.action]]
actuators = ["red_x"]
[[task.observation]]
name = "own"
expr = "joint_pos(red_x)"
[[task.observation]]
name = "all"
expr = "1"
group = "{group}"
noise = {noise}
"#
        )
    };
    for (group, noise, path) in [
        ("two words", "0", "task.observation[1].group"),
        ("", "0", "task.observation[1].group"),
        ("teacher", "-0.1", "task.observation[1].noise"),
    ] {
        let e = mistake(&task_of(group, noise));
        assert_eq!(e.path, path, "{e}");
    }
}
