//! Reflections of tasks that prefer a side where random states do not show it: contacts that never
//! happen, events, rewards without a weight yet, delays, clips, commands of two hands.

use ostler_sim::config::Leave;
use ostler_sim::config::file::{Simulation, load_simulation};
use ostler_sim::env::mirror::{Reflection, Sides};
use ostler_sim::model::mirror::Pairs;
use ostler_sim::model::{Model, mjcf};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A trunk with two arms of two joints each, whose hands touch nothing; hinges about x turn the
/// other way on the other side.
fn robot(sides: [&str; 2], free: bool) -> Arc<Model> {
    let arm = |side: &str, y: f64| {
        format!(
            r#"<body name="{side}_arm" pos="0 {y} 0.2"><joint name="{side}_lift" axis="0 1 0" range="-60 60"/>
            <joint name="{side}_out" axis="1 0 0" range="-30 30"/>
            <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/>
            <geom name="{side}_hand" pos="0.35 0 0" size="0.04" mass="0.2"/>
            <site name="{side}_palm" pos="0.35 0 0" size="0.05"/></body>"#
        )
    };
    let drive = |side: &str| {
        format!(
            r#"<position name="{side}_lift" joint="{side}_lift" kp="20" kv="2"/>
            <position name="{side}_out" joint="{side}_out" kp="20" kv="2"/>"#
        )
    };
    let touch = |side: &str| format!(r#"<touch name="{side}_feel" site="{side}_palm"/>"#);
    let [a, b] = sides;
    let text = format!(
        r#"<mujoco><option timestep="0.004"/><default><joint damping="0.5" armature="0.01"/></default>
        <worldbody><geom type="plane" size="0 0 1"/>
        <body name="trunk" pos="0 0 1">{}<geom type="box" size="0.15 0.1 0.2" mass="10"/>{}{}</body>
        </worldbody><actuator>{}{}</actuator><sensor>{}{}</sensor></mujoco>"#,
        if free { "<freejoint/>" } else { "" },
        arm(a, 0.25),
        arm(b, -0.25),
        drive(a),
        drive(b),
        touch(a),
        touch(b),
    );
    Arc::new(mjcf::parse(Path::new("arms.xml"), text).unwrap())
}

/// A task of such a robot: `more` with SIDE_A and SIDE_B for the names of the two sides.
fn task(sides: [&str; 2], more: &str) -> Simulation {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../configs"));
    let mut config =
        load_simulation(&folder.join("quadruped.toml"), &[], Leave::Refused).unwrap().config;
    let base = r#"
        robot = "arms.xml"
        [[observation]]
        name = "q"
        expr = "joint_pos_rel"
        [[reward]]
        name = "still"
        expr = "-norm2(joint_vel)"
    "#;
    let action = r#"
        [[action]]
        actuators = ["*"]
        kind = "position"
        scale = 0.4
    "#;
    let action = if more.contains("[[action]]") { "" } else { action };
    let text =
        format!("{base}{action}{more}").replace("SIDE_A", sides[0]).replace("SIDE_B", sides[1]);
    config.task = toml::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    config.env.decimation = 5;
    config
}

fn pairs(sides: [&str; 2]) -> Pairs {
    match sides {
        ["left", "right"] => Pairs::default(),
        [a, b] => Pairs::new(vec![[format!("{a}_*"), format!("{b}_*")]]),
    }
}

fn find(sides: [&str; 2], free: bool, more: &str) -> Result<(Reflection, String), String> {
    let model = robot(sides, free);
    let own = Sides { axis: 1, pairs: pairs(sides), ..Sides::default() };
    let found = Reflection::find(&task(sides, more), Arc::clone(&model), &own);
    let found = found.map_err(|e| e.to_string())?;
    let lines = found.lines(&model).join("\n");
    Ok((found, lines))
}

const NAMES: [[&str; 2]; 2] = [["left", "right"], ["one", "two"]];

fn last(found: &Reflection, len: usize) -> Vec<(i64, f32)> {
    let first = found.policy.0.len() - len;
    found.policy.0[first..].iter().map(|e| (i64::from(e.0) - first as i64, e.1)).collect()
}

#[test]
fn contacts_that_never_happen_change_places_by_their_names() {
    for sides in NAMES {
        let more = r#"
            [[observation]]
            name = "touched"
            expr = "[contact([SIDE_A_hand, SIDE_B_hand]), contact_force(SIDE_B_hand, trunk) > 5, contact_force(SIDE_A_hand, trunk) > 5, sensor(SIDE_A_feel), sensor(SIDE_B_feel), 0.25]"
            history = 2
            [[observation]]
            name = "pushed"
            expr = "[net_contact_force(SIDE_A_hand), net_contact_force(SIDE_B_hand)]"
        "#;
        let (found, lines) = find(sides, false, more).unwrap();
        let swapped = [1, 0, 3, 2, 5, 4, 6].map(|k| (k, 1.0));
        let later = swapped.map(|(k, sign)| (k + 7, sign));
        let twice: Vec<(i64, f32)> = swapped.into_iter().chain(later).collect();
        assert_eq!(last(&found, 20)[..14], twice, "{sides:?}");
        let forces: Vec<(i64, f32)> =
            [(3, 1.0), (4, -1.0), (5, 1.0), (0, 1.0), (1, -1.0), (2, 1.0)].to_vec();
        assert_eq!(last(&found, 6), forces, "{sides:?}");
        assert!(!lines.contains("observation"), "{lines}");
    }
    // One hand alone has no counterpart; where it is not read what it would be stays open.
    let touched = |expr: &str| {
        let more = format!("[[observation]]\nname = \"touched\"\nexpr = \"{expr}\"");
        find(NAMES[0], false, &more)
    };
    let (_, lines) = touched("contact_force(left_hand, trunk)").unwrap();
    assert!(lines.contains("observation \"touched\": component 0 stayed the same"), "{lines}");
    for one in ["contact(left_hand)", "contact([left_hand, right_hand]) * [1, 2]"] {
        let why = touched(one).unwrap_err();
        assert!(why.contains("\"touched\"") && why.contains("has no counterpart"), "{why}");
    }
}

#[test]
fn events_that_prefer_a_side_have_their_names() {
    let event = |name: &str, when: &str, set: &str, more: &str| {
        format!("[[event]]\nname = \"{name}\"\nwhen = \"{when}\"\nset = \"{set}\"\n{more}\n")
    };
    let push = |ranges: &str| {
        event(
            "push",
            "interval",
            "vel(trunk)",
            &format!("interval_s = 1\noperation = \"add\"\nrange = {ranges}"),
        )
    };
    let even = [
        push("[[-0.1, 0.3], [-0.2, 0.2], [0, 0.1], [-0.1, 0.1], [0, 0.2], [-1, 1]]"),
        event("slip", "startup", "friction(*_hand)[0]", "range = [0.1, 2]"),
        event(
            "load",
            "reset",
            "com(trunk)",
            "operation = \"add\"\nrange = [[0, 0.02], [-0.01, 0.01], [0, 0]]",
        ),
        event(
            "arms",
            "reset",
            "com(*_arm)",
            "operation = \"add\"\nrange = [[0, 0.02], [-0.01, 0.01], [0, 0]]",
        ),
        event(
            "body",
            "reset",
            "pseudo_inertia(trunk)",
            "range = { alpha = [0, 0.1], t = [-0.02, 0.02] }",
        ),
        event("gains", "reset", "kp(*)", "operation = \"scale\"\nrange = [0.8, 1.1]"),
        event("zero", "reset", "joint_offset(*_out)", "operation = \"add\"\nrange = [-0.1, 0.1]"),
        event(
            "wind",
            "reset",
            "force(trunk)",
            "distribution = \"normal\"\nmean = [3, 0, 0]\nstd = [1, 1, 1]",
        ),
    ];
    for sides in NAMES {
        for one in &even {
            let (_, lines) = find(sides, true, one).unwrap();
            assert!(!lines.contains("event"), "{lines}");
        }
    }
    for (one, name) in [
        (push("[[0, 0], [0.1, 0.5], [0, 0], [0, 0], [0, 0], [0, 0]]"), "push"),
        (push("[[0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0.1, 0.4]]"), "push"),
        (push("[[0, 0], [0, 0], [0, 0], [0.1, 0.4], [0, 0], [0, 0]]"), "push"),
        (event("slip", "startup", "friction(left_hand)[0]", "range = [0.1, 2]"), "slip"),
        (
            event("mass", "startup", "mass(right_arm)", "operation = \"add\"\nrange = [0, 1]"),
            "mass",
        ),
        (event("load", "reset", "com(trunk)[1]", "operation = \"add\"\nrange = [0, 0.02]"), "load"),
        (
            event(
                "arms",
                "reset",
                "com(*_arm)[1]",
                "shared = true\noperation = \"add\"\nrange = [-0.02, 0.02]",
            ),
            "arms",
        ),
        (
            event("gains", "reset", "kp(left_*)", "operation = \"scale\"\nrange = [0.8, 1.1]"),
            "gains",
        ),
        (
            event(
                "wind",
                "reset",
                "force(trunk)",
                "distribution = \"normal\"\nmean = [0, 2, 0]\nstd = [1, 1, 1]",
            ),
            "wind",
        ),
    ] {
        let (found, lines) = find(NAMES[0], true, &one).unwrap();
        assert_eq!(found.events.len(), 1, "{one}");
        assert!(lines.contains(&format!("note: event \"{name}\" (")), "{lines}");
    }
}

#[test]
fn commands_of_one_side_are_told() {
    let twist = |x: &str, y: &str| {
        format!(
            "[[command]]\nname = \"twist\"\nkind = \"velocity\"\nlin_vel_x = {x}\nlin_vel_y = {y}\n\
             ang_vel_z = [-1, 1]\n[[observation]]\nname = \"wish\"\nexpr = \"command.twist\""
        )
    };
    let drift = |range: &str| {
        format!(
            "[[command]]\nname = \"drift\"\nrange = [{range}]\nunit = \"m/s\"\n\
             [[observation]]\nname = \"wish\"\nexpr = \"command.drift - lin_vel(trunk).y\""
        )
    };
    for even in [twist("[0, 1]", "[-0.5, 0.5]"), drift("[-0.2, 0.2]")] {
        let (found, lines) = find(NAMES[0], true, &even).unwrap();
        assert!(found.commands.is_empty() && !lines.contains("note: command"), "{lines}");
    }
    for (one, of) in [
        (twist("[0, 1]", "[0.1, 0.5]"), "\"twist\": component 1"),
        (drift("[0.1, 0.5]"), "\"drift\": component 0"),
    ] {
        let (found, lines) = find(NAMES[0], true, &one).unwrap();
        assert_eq!(found.commands.len(), 1, "{lines}");
        let said = format!(
            "note: command {of} is drawn from 0.1 to 0.5, reflected from -0.5 to -0.1: reflected"
        );
        assert!(lines.contains(&said), "{lines}");
    }
}

#[test]
fn numbers_of_events_are_reflected_where_they_are_seen() {
    let events = r#"
        [[event]]
        name = "push"
        when = "interval"
        interval_s = 1
        set = "vel(trunk)"
        operation = "add"
        range = [-0.3, 0.3]
        [[event]]
        name = "slip"
        when = "startup"
        set = "friction(*_hand)[0]"
        range = [0.1, 2]
        [[event]]
        name = "load"
        when = "reset"
        set = "com(trunk)"
        operation = "add"
        range = [-0.02, 0.02]
        [[observation]]
        name = "drawn"
        expr = "[event.push, event.slip, event.load, com_offset(trunk), friction(SIDE_B_hand)[0], friction(SIDE_A_hand)[0]]"
    "#;
    for sides in NAMES {
        let (found, lines) = find(sides, true, events).unwrap();
        let signs =
            [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0, 1.0];
        let places = [0, 1, 2, 3, 4, 5, 7, 6, 8, 9, 10, 11, 12, 13, 15, 14];
        let wanted: Vec<(i64, f32)> = places.into_iter().zip(signs).collect();
        assert_eq!(last(&found, 16), wanted, "{sides:?}");
        assert!(!lines.contains("note"), "{lines}");
    }
    let one = "[[event]]\nname = \"slip\"\nwhen = \"startup\"\nset = \"friction(left_hand)[0]\"\nrange = [0.1, 2]
        [[observation]]\nname = \"drawn\"\nexpr = \"event.slip\"";
    let why = find(NAMES[0], true, one).unwrap_err();
    assert!(why.contains("the event \"slip\" draws nothing for the other side"), "{why}");
}

#[test]
fn rewards_that_differ_a_little_or_have_no_weight_are_said() {
    let reward = |weight: f64, share: f64| {
        format!(
            "[[reward]]\nname = \"lean\"\nweight = {weight}\nexpr = \"norm2(joint_vel) + {share} * joint_vel(SIDE_A_lift)\""
        )
    };
    let none = find(NAMES[0], false, &reward(1.0, 0.0)).unwrap().1;
    assert!(!none.contains("lean"), "{none}");
    let (found, lines) = find(NAMES[0], false, &reward(1.0, 0.2)).unwrap();
    assert!(found.rewards[0].1 > 0.01 && found.rewards[0].1 < 0.2, "{:?}", found.rewards);
    assert!(
        lines.contains("note: \"lean\" of [[task.reward]] differs in reflected states by"),
        "{lines}"
    );
    let why = find(NAMES[0], false, &reward(1.0, 9.0)).unwrap_err();
    assert!(why.contains("\"lean\" of [[task.reward]] is not the same"), "{why}");
    // Nobody learns from it: `[[curriculum]]` gives it its weight.
    let (_, lines) = find(NAMES[0], false, &reward(0.0, 9.0)).unwrap();
    assert!(lines.contains("\"lean\" of [[task.reward]], whose weight is 0, differs"), "{lines}");
}

#[test]
fn delays_and_clips_are_those_of_both_sides() {
    let action = |side: &str, more: &str| {
        format!(
            "[[action]]\nactuators = [\"{side}_*\"]\nkind = \"position\"\nscale = 0.4\n{more}\n"
        )
    };
    let both = |a: &str, b: &str| action("SIDE_A", a) + &action("SIDE_B", b);
    let out = |a: &str, b: &str| {
        let one = |side: &str, clip: &str| {
            format!("clip = {{ {side}_lift = [-1, 2], {side}_out = {clip} }}")
        };
        both(&one("SIDE_A", a), &one("SIDE_B", b))
    };
    for sides in NAMES {
        for same in [
            both("delay = 2", "delay = { steps = 2 }"),
            both("delay = 0", ""),
            out("[-1, 0.5]", "[-0.5, 1]"),
        ] {
            let found = find(sides, false, &same);
            assert!(found.is_ok(), "{same} {found:?}");
        }
        for (other, words) in [
            (both("delay = 2", ""), "arrive by different delays"),
            (both("delay = [0, 2]", "delay = 2"), "arrive by different delays"),
            (out("[-1, 0.5]", "[-1, 0.5]"), "clipped to"),
            (both("clip = [-1, 2]", ""), "clipped to"),
        ] {
            let why = find(sides, false, &other).unwrap_err();
            assert!(
                why.contains(words) && why.contains(sides[0]) && why.contains(sides[1]),
                "{why}"
            );
        }
    }
    let motor = |side: &str, delay: usize| {
        format!(
            "[[actuator]]\njoints = [\"{side}_*\"]\nmodel = \"pd\"\nstiffness = 20\ndamping = 1\ndelay = {delay}\n"
        )
    };
    let late = |a, b| find(NAMES[0], false, &(motor("left", a) + &motor("right", b)));
    assert!(late(3, 3).is_ok(), "{:?}", late(3, 3));
    let why = late(3, 0).unwrap_err();
    assert!(
        why.contains("controls of \"left_lift\" and \"right_lift\" arrive by different"),
        "{why}"
    );
}

#[test]
fn commands_of_two_hands_change_places() {
    let reach = |a: &str, b: &str| {
        format!("exp(-norm(pos(SIDE_A_palm) - {a})/0.3) + exp(-norm(pos(SIDE_B_palm) - {b})/0.3)")
    };
    let seen = |expr: &str, reward: &str| {
        format!(
            "[[observation]]\nname = \"goal\"\nexpr = \"{expr}\"\n[[reward]]\nname = \"reach\"\nexpr = \"{reward}\"\n"
        )
    };
    let range = |name: &str, right: &str| {
        format!(
            "[[command]]\nname = \"{name}\"\nrange = [[0.1, 0.4], {right}, [0.9, 1.4]]\nunit = \"m\"\n"
        )
    };
    let wanted: Vec<(u32, f32)> =
        [(3, 1.0), (4, -1.0), (5, 1.0), (0, 1.0), (1, -1.0), (2, 1.0)].to_vec();
    for sides in NAMES {
        for (a, b) in [("SIDE_A_goal", "SIDE_B_goal"), ("gl", "gr")] {
            let two = range(a, "[0.1, 0.4]")
                + &range(b, "[-0.4, -0.1]")
                + &seen(
                    &format!("[command.{a}, command.{b}]"),
                    &reach(&format!("command.{a}"), &format!("command.{b}")),
                );
            let (found, _) = find(sides, false, &two).unwrap();
            assert_eq!(found.command.0, wanted, "{sides:?}");
            assert_eq!(
                found.policy.0[4..].iter().map(|e| (e.0 - 4, e.1)).collect::<Vec<_>>(),
                wanted
            );
        }
        // Halves of one command.
        let one = "[[command]]\nname = \"goals\"\nrange = [[0.1, 0.4], [-0.4, 0.4], [0.9, 1.4], [0.1, 0.4], [-0.4, 0.4], [0.9, 1.4]]\nunit = \"m\"\n".to_owned()
            + &seen("command.goals", &reach("command.goals[0:3]", "command.goals[3:6]"));
        let (found, _) = find(sides, false, &one).unwrap();
        assert_eq!(found.command.0, wanted, "{sides:?}");
    }
    // Ranges that are not each other's cannot change places.
    let two = range("left_goal", "[0.1, 0.4]")
        + &range("right_goal", "[-0.3, 0.1]")
        + &seen(
            "[command.left_goal, command.right_goal]",
            &reach("command.left_goal", "command.right_goal"),
        );
    let why = find(NAMES[0], false, &two).unwrap_err();
    assert!(why.contains("\"reach\" of [[task.reward]] is not the same"), "{why}");
}
