//! Lists of parts and named expressions: the numbers of what they stand for, written out.

use super::fixture::World;
use crate::config::TaskConfig;
use crate::expr::{Definitions, LetRow, Program, Scope, Type};

const TASK: &str = r#"
[names]
foot = ["foot_1", "foot_2"]
leg = ["1", "2"]
hips = ["hip_*"]
limb = ["tail-tip", "foot_*"]
torso = ["foot_1"]
[let]
moving = "norm(command.twist.xy) + abs(1 * command.heading) > 0.05"
lift = "each(foot, height({foot}) - ground)"
ground = "0.25 * height(torso)"
gap = "pos({foot}) - pos(torso)"
"near(error2, std)" = "exp(-mean(error2) / std^2)"
"speed(part)" = "norm(lin_vel(part)) + 0 * height({part})"
"twice(f)" = "[speed(f), near([1, 2], f_2)]"
f_2 = "2"
"gx(a, b)" = "(pos(a) - pos(torso)).x + (pos(b) - pos(torso)).x"
"all_of(list)" = "each(list, height({foot}))"
held = "previous(contact(foot_1))"
unused = "height({limb})"
"#;

pub fn task(text: &str) -> TaskConfig {
    toml::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Does `f` with the names that `task` defines.
pub fn within<R>(world: &World, task: &TaskConfig, f: impl FnOnce(&Scope<'_>) -> R) -> R {
    let defined = Definitions::new(&world.model, task, &[]).unwrap_or_else(|e| panic!("{e}"));
    f(&Scope { defined: &defined, ..world.scope() })
}

#[test]
fn definitions_are_what_they_stand_for() {
    let world = World::new(70, 5);
    let task = task(TASK);
    for (text, written_out) in [
        ("each(foot, height({foot}))", "height([foot_1, foot_2])"),
        ("each(foot, height(\"{foot}\"))", "height([foot_1, foot_2])"),
        ("each(leg, pos(foot_{leg}))", "[pos(foot_1), pos(foot_2)]"),
        ("each(hips, joint_vel({hips}))", "joint_vel([hip_1, hip_2])"),
        ("joint_pos(hips)", "joint_pos([hip_1, hip_2])"),
        ("height(limb)", "height([\"tail-tip\", foot_1, foot_2])"),
        ("each(limb, height({limb}))", "height([\"tail-tip\", foot_1, foot_2])"),
        ("each(foot, height(geom({foot})))", "height([geom(foot_1), geom(foot_2)])"),
        ("height(geom(foot))", "height([geom(foot_1), geom(foot_2)])"),
        ("gx(geom(foot_1), torso)", "(pos(geom(foot_1)) - pos(torso)).x"),
        ("height([foot, torso])", "height([foot_1, foot_2, torso])"),
        // The robot's own part is meant where a list has its name.
        ("height(torso)", "pos(torso).z"),
        ("each(torso, height({torso}))", "pos(foot_1).z"),
        (
            "each(foot, each(leg, distance({foot}, foot_{leg})))",
            "[distance(foot_1, foot_1), distance(foot_1, foot_2), distance(foot_2, foot_1), distance(foot_2, foot_2)]",
        ),
        ("moving", "norm(command.twist.xy) + abs(1 * command.heading) > 0.05"),
        ("lift", "[height(foot_1) - 0.25 * height(torso), height(foot_2) - 0.25 * height(torso)]"),
        ("each(foot, gap.x)", "[(pos(foot_1) - pos(torso)).x, (pos(foot_2) - pos(torso)).x]"),
        (
            "each(foot, gap.x + each(foot, gap.x))",
            "[gx(foot_1, foot_1), gx(foot_1, foot_2), gx(foot_2, foot_1), gx(foot_2, foot_2)]",
        ),
        ("near([3, 4] * action[0], 5)", "exp(-mean([3, 4] * action[0]) / 5^2)"),
        (
            "near(each(foot, norm2(gap)) * 1, param.width)",
            "exp(-mean([norm2(pos(foot_1) - pos(torso)) * 1, norm2(pos(foot_2) - pos(torso)) * 1]) / param.width^2)",
        ),
        ("speed(torso)", "norm(lin_vel(torso)) + 0 * height(torso)"),
        ("speed(\"tail-tip\")", "norm(lin_vel(\"tail-tip\")) + 0 * height(\"tail-tip\")"),
        (
            "each(foot, speed({foot}))",
            "[norm(lin_vel(foot_1)) + 0 * height(foot_1), norm(lin_vel(foot_2)) + 0 * height(foot_2)]",
        ),
        ("twice(foot_1)", "[norm(lin_vel(foot_1)) + 0 * height(foot_1), exp(-1.5 / 2^2)]"),
        ("all_of(foot)", "height([foot_1, foot_2])"),
    ] {
        within(&world, &task, |scope| {
            let of = |text: &str| {
                let program = Program::compile(text, scope);
                let program = program.unwrap_or_else(|e| panic!("{text}: {e}"));
                let rows = world.run(&program, 64);
                let bits = |row: &Vec<f32>| row.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                rows.iter().map(bits).collect::<Vec<_>>()
            };
            assert_eq!(of(text), of(written_out), "{text}");
        });
    }
}

#[test]
fn what_is_shared_is_computed_once() {
    let world = World::new(1, 1);
    within(&world, &task(TASK), |scope| {
        let steps = |text: &str| Program::compile(text, scope).unwrap().steps();
        assert_eq!(steps("moving and moving"), steps("moving") + 1);
        // Named or written out: the same operations.
        assert_eq!(steps("lift"), steps("each(foot, height({foot}) - 0.25 * height(torso))"));
    });
    // One value of one step before, however often its name is used.
    within(&world, &task(TASK), |scope| {
        Program::compile("[held, held]", scope).unwrap();
        Program::compile("held and previous(contact(foot_1))", scope).unwrap();
    });
    assert_eq!(world.history.clone().finish().width(), 1);
}

#[test]
fn what_is_defined_is_listed_with_its_type() {
    let world = World::new(1, 1);
    let task = task(TASK);
    let rows =
        within(&world, &task, |scope| scope.defined.rows(std::slice::from_ref(scope)).unwrap());
    let row = |key: &str| rows.iter().find(|r| r.key == key).unwrap();
    assert_eq!(row("moving").ty, Some(Type::Bool));
    let metres = |len| Type::Num { len, unit: "m".into() };
    assert_eq!(row("lift").ty, Some(metres(2)));
    let gap = row("gap");
    assert_eq!((&gap.ty, &gap.inside), (&Some(metres(3)), &vec!["foot".to_string()]));
    let unused = row("unused");
    assert_eq!((&unused.ty, &unused.inside[..]), (&Some(metres(1)), &["limb".to_string()][..]));
    assert_eq!(row("near(error2, std)").ty, None);
    // Looking at them remembers nothing.
    assert_eq!(world.history.clone().finish().width(), 0);
    assert_eq!(rows.len(), 12);
}

/// Few words that mean much: refused, or fast, and never more than a thread's stack.
#[test]
fn definitions_that_grow_are_bounded() {
    let world = World::new(1, 1);
    let chain = |n: usize, step: &dyn Fn(usize) -> String| {
        let mut text = "[names]\nlong = [".to_string();
        text += &(0..1000).map(|i| format!("\"p{i}\",")).collect::<String>();
        text += "]\n[let]\na0 = \"time\"\n";
        text += "\"f0(x)\" = \"x\"\n";
        for i in 1..n {
            text += &step(i);
        }
        task(&text)
    };
    let doubling = chain(60, &|i: usize| format!("a{i} = \"a{0} + a{0}\"\n", i - 1));
    within(&world, &doubling, |scope| {
        assert_eq!(Program::compile("a59", scope).unwrap().ty().len(), 1);
    });
    for (n, step, use_it) in [
        (
            60,
            (&|i: usize| format!("\"f{i}(x)\" = \"f{0}(x) + f{0}(x)\"\n", i - 1))
                as &dyn Fn(usize) -> String,
            "f59(time)",
        ),
        (60, &|i: usize| format!("\"f{i}(x)\" = \"f{0}([x, x])\"\n", i - 1), "f59(time)"),
        (60, &|i: usize| format!("a{i} = \"[a{0}, a{0}]\"\n", i - 1), "a59"),
        (6, &|i: usize| format!("\"f{i}(x)\" = \"sum(each(long, f{}(x)))\"\n", i - 1), "f5(time)"),
        (2, &|_| String::new(), "sum(each(long, sum(each(long, sum(each(long, time))))))"),
    ] {
        let task = chain(n, step);
        let began = std::time::Instant::now();
        let error = within(&world, &task, |scope| Program::compile(use_it, scope).unwrap_err());
        assert!(!error.message.is_empty());
        assert!(began.elapsed().as_secs() < 20, "{use_it}: {error}");
    }
    // Deeply nested by their names, in every way that the checker descends.
    for step in [
        (&|i: usize| format!("a{i} = \"-abs(max(a{} + 1, 2))\"\n", i - 1))
            as &dyn Fn(usize) -> String,
        &|i: usize| format!("a{i} = \"1 + (true ? [a{}][0] : 2)\"\n", i - 1),
        &|i: usize| format!("a{i} = \"previous(since(a{} > 0)) / step_dt\"\n", i - 1),
        &|i: usize| format!("a{i} = \"f0(f0(a{}))\"\n", i - 1),
    ] {
        let task = chain(2000, step);
        let error = within(&world, &task, |scope| Program::compile("a1999", scope).unwrap_err());
        assert!(error.message.contains("nested too deeply"), "{error}");
    }
    let rows: Vec<LetRow> = within(&world, &task("[let]\na = \"1\""), |s| {
        s.defined.rows(std::slice::from_ref(s)).unwrap()
    });
    assert_eq!(rows.len(), 1);
}
