//! Pins: every mistake says where in the text that the user wrote, and what would be right.

use super::arena::{SMALL, built, mistake, model, task};
use ostler_sim::config::{CommandTerm, ResetTerm, RewardTerm};
use ostler_sim::task::Task;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const GOOD: &str = r#"
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
"#;

#[test]
fn mistakes_name_their_path_and_a_remedy() {
    built(SMALL, GOOD);
    let term = |kind: &str, rest: &str| format!("{GOOD}\n[[task.{kind}]]\n{rest}\n");
    let replaced = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        GOOD.replace(from, to)
    };
    let agents = "names = [\"red\", \"blue\"]";
    for (text, path, part, help) in [
        (
            replaced(agents, "names = [\"red\"]"),
            "agents.names",
            "1 names; several agents are 2 to 64",
            "a task of one agent has no [agents]",
        ),
        (replaced(agents, "names = [\"red\", \"red\"]"), "agents.names[1]", "twice", ""),
        (
            term(
                "event",
                "name = \"{agent}_hit\"\nwhen = \"reset\"\nset = \"mass(red)\"\nrange = [0.5, 1]",
            ),
            "task.event[0].name",
            "\"{agent}_hit\" has {agent} in it",
            "made for each agent",
        ),
        (
            format!("{GOOD}\n[task.params]\n\"{{agent}}_far\" = 1.0\n"),
            "task.params.{agent}_far",
            "\"{agent}_far\" has {agent} in it",
            "made for each agent",
        ),
        (
            term(
                "command",
                "name = \"to\"\nkind = \"velocity\"\nlin_vel_x = [-1, 1]\nframe = \"{agent}\"",
            ),
            "task.command[0].name",
            "\"to\" would be every agent's",
            "name = \"{agent}_to\"",
        ),
        (
            replaced(agents, "names = [\"red\", \"b-lue\"]"),
            "agents.names[1]",
            "\"b-lue\" cannot be an agent's name",
            "letters, digits and _",
        ),
        (
            replaced(agents, "names = [\"red\", \"blue\"]\npolicies = [\"a\"]"),
            "agents.policies",
            "1 policies for 2 agents",
            "one name per agent",
        ),
        (
            replaced(agents, "names = [\"red\", \"blue\", \"pink\"]"),
            "task.action[0].actuators[0]",
            "no actuator fits \"pink_*\"",
            "",
        ),
        (
            replaced("[\"{agent}_*\"]", "[\"red_*\"]\nagents = [\"red\"]"),
            "task.action",
            "agent \"blue\" moves nothing",
            "[[task.action]]",
        ),
        (
            replaced("[\"{agent}_*\"]", "[\"*_x\"]"),
            "task.action[0].actuators",
            "already driven by task.action[0]",
            "{agent}",
        ),
        (
            replaced("pos({agent}).x\"", "pos({agent}).x\"\nagents = [\"red\"]"),
            "task.observation",
            "agent \"blue\" sees nothing",
            "",
        ),
        (
            term("observation", "name = \"y\"\nexpr = \"1\"\nagents = [\"bleu\"]"),
            "task.observation[1].agents[0]",
            "no agent called \"bleu\"",
            "did you mean \"blue\"?",
        ),
        (
            term("reward", "name = \"y\"\nexpr = \"1\"\nagents = []"),
            "task.reward[1].agents",
            "empty",
            "",
        ),
        (
            term("observation", "name = \"y\"\nexpr = \"[1, 2]\"\nagents = [\"blue\"]"),
            "agents.policies",
            "\"red\" and \"blue\" share a policy, but see 1 and 3 numbers",
            "separate",
        ),
        (
            term(
                "observation",
                "name = \"y\"\nexpr = \"1\"\nagents = [\"blue\"]\ngroup = \"critic\"",
            ),
            "agents.policies",
            "have critics that see 1 and 2 numbers",
            "separate",
        ),
        (
            replaced(
                "[\"{agent}_*\"]",
                "[\"red_*\"]\nagents = [\"red\"]\n[[task.action]]\nactuators = [\"blue_x\"]\nagents = [\"blue\"]",
            ),
            "agents.policies",
            "decide 2 numbers and 1 numbers",
            "separate",
        ),
        (
            replaced(
                "[\"{agent}_*\"]",
                "[\"red_x\"]\nagents = [\"red\"]\n[[task.action]]\nactuators = [\"blue_x\"]\nagents = [\"blue\"]\nkind = \"discrete\"\nchoices = [[0], [1]]",
            ),
            "task.action",
            "\"blue\" chooses, \"red\" decides continuous numbers",
            "all discrete or all continuous",
        ),
        (term("reward", "name = \"r\"\nexpr = \"2\""), "task.reward[1].name", "twice", ""),
        (
            term("termination", "name = \"t\"\nexpr = \"pos({agent}).x\""),
            "task.termination[0].expr",
            "true or false",
            "",
        ),
    ] {
        let e = mistake(&text);
        assert_eq!(e.path, path, "{e}\n{text}");
        assert!(e.message.contains(part), "{e}\n{text}");
        let found = e.help.unwrap_or_default();
        assert!(found.contains(help), "{found}\n{text}");
    }
    // Two kinds of terms of one name, each for its own.
    let two = format!(
        "{GOOD}\n[[task.observation]]\nname = \"y\"\nexpr = \"1\"\nagents = [\"red\"]\n\
         [[task.observation]]\nname = \"y\"\nexpr = \"time\"\nagents = [\"blue\"]\n"
    );
    built(SMALL, &two);
    // The keys are for several agents.
    let lonely = GOOD
        .replace("[agents]\nnames = [\"red\", \"blue\"]\n", "")
        .replace("{agent}", "red")
        .replace("expr = \"1\"", "expr = \"1\"\nagents = [\"red\"]");
    let e = mistake(&lonely);
    assert_eq!(e.path, "task.reward[0].agents");
    assert!(e.message.contains("no [agents]"), "{e}");
}

/// An expression with what must be underlined between « and », message, help.
#[test]
fn expressions_are_underlined_as_they_were_written() {
    let cases = [
        (
            "1 + pos(«{agent}_hat»).x",
            "no body, site or geom called \"red_hat\"",
            "the model has: world, red, blue",
        ),
        ("joint_pos(«\"the {agent} x\"») + pos({agent}).x", "no joint called \"the red x\"", ""),
        ("pos(«{agnet}»).x", "`{agnet}` stands for nothing", "did you mean {agent}?"),
        ("«{»1, 2}", "`{` has no meaning here", "group with"),
        ("sum(command.«{agent}_goal»)", "no command called \"red_goal\"", "pace"),
        ("height(a_«{other}»)", "`{other}` stands for nobody here", "inside others(...)"),
        ("sum(others(height(«{each}»)))", "`{each}` stands for nobody here", "inside each(...)"),
        (
            "sum(each(«others(height({other}))»))",
            "each(...) and others(...) cannot stand in one another",
            "side by side",
        ),
        ("sum(«each()»)", "`each` takes 1 argument, this is 0", "each(expr)"),
        ("«others»", "`others` needs its arguments", "others(expr)"),
        ("sum(«others(action)»)", "the same for every other agent", "{other} stands for"),
        ("sum(«each(height(red))»)", "the same for every agent", "{each} stands for"),
        ("sum(each(height(«{each}_»)))", "called \"red_\"", "did you mean"),
    ];
    for (marked, message, help) in cases {
        let start = marked.find('«').unwrap();
        let text = marked.replacen('«', "", 1);
        let end = text.find('»').unwrap();
        let text = text.replacen('»', "", 1);
        let escaped = text.replace('"', "\\\"");
        let file = format!(
            "{GOOD}\n[[task.command]]\nname = \"pace\"\nrange = [[0, 1]]\n\
             [[task.reward]]\nname = \"y\"\nexpr = \"{escaped}\"\n"
        );
        let e = mistake(&file);
        assert_eq!(e.path, "task.reward[1].expr", "{e}");
        assert!(e.message.contains(message), "{text}: {e}");
        assert!(e.help.clone().unwrap_or_default().contains(help), "{text}: {e}");
        assert_eq!(e.span, Some(start..end), "{text}: {e}");
    }
    // Where there is no agent.
    for (text, part) in [
        ("agent_index > 0", "`agent_index` has no meaning here"),
        ("sum(others(1)) > 0", "`others` has no meaning here"),
        ("sum(agent_id) > 0", "`agent_id` has no meaning here"),
    ] {
        let file = format!("{GOOD}\n[[task.termination]]\nname = \"y\"\nexpr = \"{text}\"\n");
        let e = mistake(&file);
        assert!(e.message.contains(part), "{e}");
        assert!(e.help.unwrap().contains("the world's"));
    }
    // Where there are no agents at all.
    let lonely = GOOD
        .replace("[agents]\nnames = [\"red\", \"blue\"]\n", "")
        .replace("[\"{agent}_*\"]", "[\"red_*\"]");
    let e = mistake(&lonely);
    assert_eq!((e.path.as_str(), e.span.clone()), ("task.observation[0].expr", Some(4..11)));
    assert!(e.message.contains("this one has no [agents]"), "{e}");
    for text in ["agent_index", "sum(agent_id)", "sum(each(1))", "sum(others(1))"] {
        let e = mistake(&lonely.replace("pos({agent}).x", text));
        assert!(e.message.contains("no [agents]"), "{e}");
    }
}

#[test]
fn reset_targets_are_underlined_as_they_were_written() {
    for (marked, message) in [
        ("joint_pos(«{agent}_z»)", "no hinge or slide joint fits \"red_z\""),
        ("«jiont_pos»({agent}_x)", "no reset target \"jiont_pos\""),
        ("lin_vel(«{agent}»)", "body \"red\" has no free joint"),
        ("yaw(«the_{agent}»)", "the_red"),
    ] {
        let start = marked.find('«').unwrap();
        let text = marked.replacen('«', "", 1);
        let end = text.find('»').unwrap();
        let text = text.replacen('»', "", 1);
        let file = format!("{GOOD}\n[[task.reset]]\ntarget = \"{text}\"\nuniform = [-1, 1]\n");
        let e = mistake(&file);
        assert_eq!(e.path, "task.reset[0].target");
        assert!(e.message.contains(message), "{e}");
        assert_eq!(e.span, Some(start..end), "{text}: {e}");
    }
}

/// Pieces of texts, good and bad.
const PIECES: [&str; 24] = [
    "{agent}",
    "{other}",
    "{each}",
    "{agnet}",
    "{",
    "}",
    "each(",
    "others(",
    "pos(",
    "joint_pos(",
    ")",
    ".x",
    "\"",
    "red",
    "_x",
    "agent_index",
    "agent_id",
    "action",
    "command.",
    " + ",
    "1",
    ", ",
    "é",
    "sum(",
];

proptest! {
    // The same texts every time.
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(7),
        ..ProptestConfig::with_cases(2000)
    })]

    /// For any text, an error can be shown within the text as it was written (this test found
    /// the wrong place of a target that begins with a blank).
    #[test]
    fn any_text_is_a_term_or_an_error_within_it(
        pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 1..9),
        kind in 0..4,
    ) {
        let text = pieces.concat();
        let mut cfg = task(GOOD);
        match kind {
            0 => cfg.reward.push(RewardTerm {
                name: "y".into(),
                expr: text.clone(),
                weight: 1.0,
                agents: None,
            }),
            1 => cfg.reset.push(ResetTerm {
                target: text.clone(),
                uniform: Some([-1.0, 1.0].into()),
                ..ResetTerm::default()
            }),
            2 => cfg.action[0].actuators = vec![text.clone()],
            _ => cfg.command.push(CommandTerm {
                name: text.clone(),
                range: vec![[0.0, 1.0]],
                ..CommandTerm::default()
            }),
        }
        if let Err(e) = Task::compile(&model(), &cfg, 0.02)
            && let Some(span) = e.span.clone()
        {
            prop_assert!(text.get(span).is_some(), "{e}: {:?}", e.span);
        }
    }
}
