//! The message for each mistake in a configuration.

use super::*;
use ostler_sim::config::{ConfigError, file};
use proptest::prelude::*;
use std::path::Path;

const GOOD: &str = r#"
name = "t"
[env]
num_envs = 8
[task]
robot = "robots/a.xml"
params = { height = 1, mass = 2.5 }
[[task.action]]
actuators = ["*"]
scale = 2
[[task.observation]]
name = "q"
expr = "qpos"
scale = [1, 2.5]
[[task.reward]]
name = "alive"
expr = "1"
[[task.reward]]
name = "forward"
expr = '''
lin_vel(torso).x
  + bad'''
weight = 2
"#;

fn read(text: &str) -> Result<Loaded, ConfigErrors> {
    parse(text, Path::new("a/c.toml"), &[])
}

fn with(set: &[&str]) -> Result<Loaded, ConfigErrors> {
    let set: Vec<_> = set.iter().map(|s| Override::set(*s)).collect();
    parse(GOOD, Path::new("a/c.toml"), &set)
}

fn message(text: &str) -> String {
    read(text).map(|l| l.config).unwrap_err().to_string()
}

fn refused(set: &str) -> String {
    with(&[set]).map(|l| l.config).unwrap_err().to_string()
}

#[test]
fn values_arrive_and_a_whole_number_serves_as_a_number() {
    let c = read(GOOD).unwrap().config;
    assert_eq!(c.env.num_envs, 8);
    assert_eq!(c.task.params["height"], 1.0);
    assert_eq!(c.task.reward[1].weight, 2.0);
    assert_eq!(c.task.reward[0].weight, 1.0, "default");
    assert_eq!(read(GOOD).unwrap().robot(), Path::new("a/robots/a.xml"));
}

#[test]
fn the_name_is_the_files_stem_unless_given() {
    let c = read("[task]\nrobot='a.xml'").unwrap().config;
    assert_eq!(c.name, "c");
}

/// Each mistake is looked up in the text: were all of them, this would take minutes, and
/// were the line quoted with each, 100 GB.
#[test]
fn of_very_many_mistakes_the_first_hundred_are_shown() {
    let keys: Vec<String> = (0..200_000).map(|i| format!("k{i:06} = 1")).collect();
    for (text, place) in [
        (format!("[log]\n{}\n", keys.join("\n")), "c.toml:101:1: "),
        (format!("log = {{ {} }}\n", keys.join(", ")), "c.toml:1:1296: "),
    ] {
        let errors = parse(&text, Path::new("c.toml"), &[]).unwrap_err();
        assert_eq!(errors.0.len(), 101);
        let shown = errors.to_string();
        assert!(shown.len() < 100_000, "{} bytes", shown.len());
        assert!(shown.contains(&format!("{place}unknown key \"k000099\"")), "{shown}");
        assert!(!shown.contains("key \"k000100\""), "{shown}");
        assert!(shown.ends_with("there are more mistakes than these 100"), "{shown}");
    }
}

#[test]
fn all_unknown_keys_come_at_once_each_with_its_place() {
    let text = "[env]\nnum_actors = 4\nnum_env = 3\n[[task.reward]]\nname='a'\nexpr='1'\nwieght = 2\n[physics]\nx = 1\n";
    let m = message(text);
    for expected in [
        "a/c.toml:2:1: unknown key \"num_actors\" in [env]",
        "  2 | num_actors = 4\n    | ^^^^^^^^^^\n  num_actors is called env.num_envs here",
        "a/c.toml:3:1: unknown key \"num_env\" in [env]",
        "did you mean env.num_envs?",
        "a/c.toml:7:1: unknown key \"wieght\" in [task.reward]",
        "did you mean task.reward.weight?",
        "unknown key \"physics\"",
    ] {
        assert!(m.contains(expected), "{expected:?} not in\n{m}");
    }
    assert_eq!(m.matches("error: ").count(), 3, "{m}");
}

#[test]
fn a_key_in_the_wrong_table_names_the_right_one() {
    let m = message("[ppo]\nmax_iterations = 3\n");
    assert!(m.contains("did you mean runner.max_iterations?"), "{m}");
}

#[test]
fn wrong_kinds_say_what_is_allowed() {
    for (text, expected) in [
        (
            "[env]\nnum_envs = 2.1",
            "a/c.toml:2:12: env.num_envs takes \"auto\" or a whole number from 0 on, this is 2.1",
        ),
        (
            "[env]\nnum_envs = -1",
            "a/c.toml:2:12: env.num_envs takes \"auto\" or a whole number from 0 on, this is -1",
        ),
        (
            "[actor]\nactivation = 'eluu'",
            "a/c.toml:2:14: actor.activation: \"eluu\" is not known here, allowed: \"elu\", \"relu\", \"tanh\", \"silu\"; did you mean \"elu\"?",
        ),
        (
            "[[replay.transform]]\nkind = 'half'",
            "\"half\" is gone: observations are kept in single precision; a larger buffer lies in a file, replay.storage = \"memmap\"",
        ),
        (
            "[sim]\nthreads = 'all'",
            "a/c.toml:2:11: sim.threads takes \"auto\" or a whole number, 1 or more, this is the text \"all\"",
        ),
        (
            "[task]\nparams = { a = 'x' }",
            "a/c.toml:2:16: task.params.a takes a number, this is the text \"x\"",
        ),
        ("[task.reward]\nname = 'x'", "task.reward is a list of tables, write [[task.reward]]"),
        ("[[task.reward]]\nexpr = '1'", "the key \"name\" is missing"),
        ("[ppo]\ngamma = nan", "a/c.toml:2:9: ppo.gamma cannot be nan"),
        (
            "[task.terrain]\nkinds = [{ kind = 'stairs', step_height = [nan, 0.1] }]",
            "cannot be nan",
        ),
        ("[[task.reset]]\ntarget = 'qpos'\nuniform = [0, inf]", "uniform has to be finite"),
        ("[ppo]\ngamma = inf", "ppo.gamma has to be finite"),
        ("[task.params]\np = nan", "a/c.toml:2:5: task.params.p cannot be nan"),
        (
            "[[task.actuator]]\njoints = ['*']\neffort_limit = { '*' = nan }",
            "a/c.toml:3:24: task.actuator.effort_limit.* cannot be nan",
        ),
        (
            "[[task.actuator]]\njoints = ['*']\nstiffness = inf",
            "a/c.toml:3:13: task.actuator.stiffness has to be finite",
        ),
        ("[sim]\nmax_speed = -inf", "sim.max_speed: -inf cannot be used"),
        (
            "[env]\nepisode_length_s = inf",
            "env.episode_length_s has to be finite; for never write a time that is not reached, such as 1e6",
        ),
        // A value cannot end a line of what is printed.
        ("[sim]\nbackend = \"a\\n::error::b\"", "sim.backend: \"a\\u000a::error::b\" is not known"),
        (
            "[actor]\nhidden_dims = [1, 'a']",
            "a/c.toml:2:19: actor.hidden_dims takes a whole number",
        ),
        ("seed = 99999999999999999999", "a/c.toml:1:8: this whole number does not fit in 64 bits"),
        ("[env\nnum_envs = 2", "a/c.toml:1:"),
        ("seed = 1\nseed = 2", "a/c.toml:2:1: not valid TOML: seed is given twice"),
        (
            "[[task.reward]]\nname = 'a'\n[ task.reward ] # one more\nname = 'b'",
            "not valid TOML: [task.reward] stands beside [[task.reward]]: an entry of a list has",
        ),
        ("[env]\n[task]\n[env]", "not valid TOML: env is given twice"),
        ("name = '../x'\n[task]\nrobot='a'", "a/c.toml:1:8: name: \"../x\" cannot name a folder"),
        ("seed = 1979-05-27", "seed takes a whole number, this is a date or time"),
    ] {
        let m = message(text);
        assert!(m.contains(expected), "{expected:?} not in\n{m}");
    }
}

#[test]
fn impossible_values_come_at_once_and_so_do_missing_keys() {
    let m = message(
        "[sim]\nspecialize = 'never'\n[env]\ndecimation = -1\n[[task.event]]\nname = 'e'\nwhen = 'now'\nset = 'x'\nrange = [1, 2, 3]",
    );
    for expected in [
        "sim.specialize: \"never\" is not known here, allowed: \"auto\", \"wait\", \"off\"",
        "env.decimation: a whole number from 0 on is expected, this is -1",
        "task.event[0].when: \"now\" is not known here",
        "task.event.range takes a range [low, high], a list of such or a table, this is a list",
    ] {
        assert!(m.contains(expected), "{expected:?} not in\n{m}");
    }
    assert_eq!(m.matches("error: ").count(), 3, "{m}");
    let m = message("[[task.reset]]\nuniform = [0, 1]\n[[task.observation]]\nname = 'o'");
    for expected in [
        "a/c.toml:1:1: task.reset: the key \"target\" is missing",
        "a/c.toml:3:1: task.observation: the key \"expr\" is missing",
    ] {
        assert!(m.contains(expected), "{expected:?} not in\n{m}");
    }
}

#[test]
fn the_number_of_environments_may_be_auto() {
    let auto = |set: &[&str]| {
        let overrides: Vec<Override> = set.iter().map(|s| Override::set(*s)).collect();
        let text = "[env]\nnum_envs = 'auto'\n[task]\nrobot = 'a'";
        parse(text, Path::new("a/c.toml"), &overrides).unwrap()
    };
    assert!(auto(&[]).auto_envs);
    let number = auto(&["env.num_envs=48"]);
    assert!(!number.auto_envs && number.config.env.num_envs == 48);
    assert!(auto(&["env.num_envs=auto"]).auto_envs);
    let m = message("[env]\nnum_envs = 'automatic'");
    assert!(m.contains("env.num_envs takes \"auto\" or a whole number"), "{m}");
}

#[test]
fn impossible_sizes_name_line_and_limit() {
    for (text, expected) in [
        ("[env]\nnum_envs = 0", "a/c.toml:2:12: env.num_envs: 0 environments"),
        ("[sim]\ndt = -0.1", "a/c.toml:2:6: sim.dt: a time step of -0.1 s"),
        (
            "[env]\nnum_envs=2\n[runner]\nnum_steps_per_env=3\n[ppo]\nnum_mini_batches = 7\n[task]\nrobot='a'",
            "a/c.toml:6:20: ppo.num_mini_batches: 7 minibatches of only 6 samples",
        ),
        ("[runner]\nmax_iterations = 0", "a/c.toml:2:18: runner.max_iterations: 0 cannot be used"),
        ("device = 'gpu'", "a/c.toml:1:10: device: \"gpu\" is not a device"),
        ("[actor]\nhidden_dims=[8, 0]", "a/c.toml:2:17: actor.hidden_dims[1]: 0 is not"),
        ("seed = 1", "no robot is given"),
    ] {
        let m = message(text);
        assert!(m.contains(expected), "{expected:?} not in\n{m}");
    }
}

#[test]
fn a_span_inside_a_multi_line_expression_becomes_its_line_and_column() {
    let loaded = read(GOOD).unwrap();
    let expr = &loaded.config.task.reward[1].expr;
    let at = expr.find("bad").unwrap();
    let mut e = ConfigError::new("task.reward[1].expr", "no such name");
    e.span = Some(at..at + 3);
    let d = loaded.places.explain(&e);
    let line = GOOD.lines().position(|l| l.contains("bad")).unwrap() + 1;
    assert_eq!(d.position, Some((line, 5)));
    assert!(d.to_string().contains("|   + bad'''\n     |     ^^^"), "{d}");
}

#[test]
fn an_error_in_an_override_says_so_and_points_into_it() {
    let loaded = with(&["task.reward.forward.expr=1 + bad"]).unwrap();
    let mut e = ConfigError::new("task.reward[1].expr", "no such name");
    e.span = Some(4..7);
    let d = loaded.places.explain(&e).to_string();
    assert!(
        d.contains("--set: task.reward[1].expr: no such name\n   | task.reward.forward.expr=1 + bad\n   |                              ^^^"),
        "{d}"
    );
}

#[test]
fn overrides_reach_tables_lists_and_elements_by_name() {
    let c = with(&[
        "env.num_envs=16",
        "task.reward.forward.weight=3",
        "task.reward[0].weight = 4.5",
        "task.observation.0.scale=[1]",
        "sim.rapier.solver_iterations=2",
        "sim.threads=4",
        "ppo.schedule=fixed",
        "task.params.height=7",
    ])
    .unwrap()
    .config;
    assert_eq!(c.env.num_envs, 16);
    assert_eq!(c.task.reward[1].weight, 3.0);
    assert_eq!(c.task.reward[0].weight, 4.5);
    assert_eq!(c.sim.rapier.solver_iterations, 2);
    assert_eq!(c.sim.threads, ostler_sim::config::Auto::N(4));
    assert_eq!(c.ppo.schedule, crate::learner::ppo::Schedule::Fixed);
    assert_eq!(c.task.params["height"], 7.0);
}

#[test]
fn wrong_overrides_are_explained() {
    for (set, expected) in [
        ("env.num_env=3", "--set: unknown key \"num_env\" in [env]"),
        ("num_envs=3", "did you mean env.num_envs?"),
        // Its own table first, though ppo.gamma is as near; then what is longer there; then others.
        ("sac.gama=0.9", "did you mean sac.gamma?"),
        ("ppo.clip=0.1", "did you mean ppo.clip_param?"),
        ("runner.gamma=0.9", "did you mean ppo.gamma?"),
        ("env.num_envs", "not of the form section.key=value"),
        ("env..num_envs=1", "has an empty part"),
        (
            "env.num_envs=many",
            "takes \"auto\" or a whole number from 0 on, this is the text \"many\"",
        ),
        (
            "task.reward.forwrad.weight=1",
            "no element \"forwrad\"\n   | task.reward.forwrad.weight=1\n   |             ^^^^^^^\n  did you mean \"forward\"?",
        ),
        ("env.num_envs.x=1", "env.num_envs is 8, it has no \"x\""),
        ("env.num_envs=0", "--set: env.num_envs: 0 environments"),
        ("=1", "has an empty part"),
    ] {
        let m = refused(set);
        assert!(m.contains(expected), "{expected:?} not in\n{m}");
    }
}

#[test]
fn every_foreign_name_leads_to_a_key_that_exists() {
    for ours in foreign::ours() {
        // Of either table of the learners with a replay buffer.
        for table in ["sac", "td3"].iter().take(1 + usize::from(ours.starts_with('.'))) {
            let ours = if ours.starts_with('.') { format!("{table}{ours}") } else { ours.into() };
            assert!(schema::keys().has(&ours), "{ours}");
        }
    }
}

/// A name means another key in the tables of SAC and TD3 than elsewhere.
#[test]
fn foreign_names_are_those_of_the_table_that_they_stand_in() {
    for (table, name, said) in [
        ("sac", "ent_coef", "sac.init_alpha"),
        ("ppo", "ent_coef", "ppo.entropy_coef"),
        ("td3", "policy_delay", "td3.policy_frequency"),
        ("sac", "gradient_steps", "sac.num_updates"),
        ("td3", "gradient_steps", "td3.num_updates"),
        ("td3", "buffer_size", "replay.capacity"),
        ("sac", "num_actors", "env.num_envs"),
        ("sac", "total_timesteps", "runner.max_iterations"),
    ] {
        let found = foreign::recognise(table, name).unwrap_or_default();
        assert!(found.contains(&format!("is called {said} here")), "{table}.{name}: {found}");
    }
    assert_eq!(foreign::recognise("td3", "clip_range"), None);
}

#[test]
fn what_is_written_reads_back_as_the_same_configuration() {
    let mut loaded = with(&["task.action[0].clip=[-1,1]"]).unwrap();
    loaded.config.resolve(None, Gpus::Trust).unwrap();
    let text = toml::to_string(&loaded.config).unwrap();
    let again = read(&text).unwrap().config;
    assert_eq!(again, loaded.config);
}

#[test]
fn a_key_of_an_earlier_build_says_what_replaces_it() {
    for key in ["reward_scale", "reward_clip"] {
        let message = message(&format!("[replay]\n{key} = 2.0\n"));
        assert!(message.contains("it is gone: [[replay.transform]] with kind"), "{message}");
    }
    for message in [
        message("[learner]\npath = 'reference'\n"),
        with(&["learner.path=fast"]).unwrap_err().to_string(),
    ] {
        assert!(message.contains("unknown key \"path\" in [learner]"), "{message}");
        let expected = "it is gone: PPO takes gradients in one way";
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn a_learner_without_products_of_bfloat16_refuses_them() {
    let bf16 = "learner.precision=bf16";
    assert!(with(&[bf16]).is_ok());
    for algorithm in ["sac", "td3", "ars"] {
        let algorithm = format!("runner.algorithm={algorithm}");
        let message = with(&[bf16, &algorithm]).unwrap_err().to_string();
        let expected = "learns with products in float32";
        assert!(message.contains("learner.precision") && message.contains(expected), "{message}");
    }
}

#[test]
fn a_learner_without_a_reward_for_what_is_new_refuses_it() {
    let weight = "ppo.rnd.weight=0.5";
    assert!(with(&[weight]).is_ok());
    for algorithm in ["sac", "td3", "ars"] {
        let algorithm = format!("runner.algorithm={algorithm}");
        let message = with(&[weight, &algorithm]).unwrap_err().to_string();
        assert!(message.contains("learns from the task's own rewards alone"), "{message}");
    }
}

#[test]
fn a_prior_of_motions_is_for_one_robot_that_learns_on_policy() {
    let on = r#"amp.observations=["joint_pos"]"#;
    assert!(with(&[on]).unwrap().config.amp.is_on());
    for algorithm in ["sac", "td3", "ars"] {
        let algorithm = format!("runner.algorithm={algorithm}");
        let message = with(&[on, &algorithm]).unwrap_err().to_string();
        assert!(message.contains("learns from the task's own rewards alone"), "{message}");
        assert!(message.contains("amp.observations"), "{message}");
    }
    let message = with(&[on, "amp.steps=1"]).unwrap_err().to_string();
    assert!(message.contains("amp.steps") && message.contains("from 2 to 16"), "{message}");
    let twice = r#"amp.observations=["a", "a"]"#;
    let message = with(&[twice]).unwrap_err().to_string();
    assert!(message.contains("amp.observations[1]") && message.contains("already"), "{message}");
}

#[test]
fn small_networks_get_one_thread_unless_asked_otherwise() {
    let threads = |set: &[&str]| {
        let mut c = with(set).unwrap().config;
        c.resolve(None, Gpus::Trust).unwrap();
        c.learner_threads()
    };
    let small = ["actor.hidden_dims=[64,64]", "critic.hidden_dims=[64,64]"];
    assert_eq!(threads(&small), 1);
    assert_eq!(threads(&["learner.threads=2"]), 2);
    let cores = ostler_sim::physics::pool::Pool::available();
    assert_eq!(threads(&["env.num_envs=65536"]), cores.min(8));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_text_is_read_or_refused(text in "[ -~\\n\\t\"'é\\[\\]=]{0,200}") {
        if let Err(e) = read(&text) {
            prop_assert!(!e.to_string().is_empty());
        }
    }

    #[test]
    fn a_damaged_configuration_is_read_or_refused(
        at in 0usize..GOOD.len(), cut in 0usize..12, put in "[ -~\\n]{0,6}"
    ) {
        // GOOD is ASCII: every byte is a boundary.
        let end = (at + cut).min(GOOD.len());
        let text = format!("{}{put}{}", &GOOD[..at], &GOOD[end..]);
        if let Err(e) = read(&text) {
            prop_assert!(!e.to_string().is_empty());
        }
    }

    #[test]
    fn any_override_is_applied_or_refused(set in "[a-z.\\[\\]0-9 ]{0,30}=?[ -~]{0,20}") {
        if let Err(e) = with(&[&set]) {
            prop_assert!(e.to_string().contains("--set"), "{}", e);
        }
    }

    #[test]
    fn spans_from_anywhere_never_panic(
        path in "[a-z.\\[\\]0-9]{0,30}", start in 0usize..99, len in 0usize..9
    ) {
        let loaded = read(GOOD).unwrap();
        for path in [path.as_str(), "task.reward[1].expr", "task.robot"] {
            let mut e = ConfigError::new(path, "m");
            e.span = Some(start..start + len);
            prop_assert!(loaded.places.explain(&e).to_string().contains('m'));
        }
    }
}

#[test]
fn a_simulation_of_its_own_knows_which_tables_are_not_its() {
    let own = file::Keys::of::<file::Simulation>();
    let whole = schema::keys().table(schema::keys().root()).unwrap().keys().map(String::as_str);
    let mut others: Vec<&str> = whole.filter(|key| !own.has(key)).collect();
    others.sort_unstable();
    let mut listed = file::ELSEWHERE.to_vec();
    listed.sort_unstable();
    assert_eq!(listed, others, "ELSEWHERE of sim/lang/src/config/file/simulation.rs");
}
