//! Messages for mistakes: the underlined text, the message and the help.

use super::fixture::World;

/// Expression with the span that must be underlined between « and », message, help.
const ERRORS: &[(&str, &str, &str)] = &[
    // Names.
    ("lin_vel(«torzo»).x", "no body, site or geom called \"torzo\"", "did you mean \"torso\"?"),
    ("joint_pos(«\"hop_*\"»)", "no joint fits the pattern \"hop_*\"", "did you mean \"hip_2\"?"),
    (
        "lin_vel(«hip_1»)",
        "`lin_vel` takes a body, site or geom, \"hip_1\" is a joint",
        "it moves the body \"foot_1\"; the joint's own speed is joint_vel(hip_1)",
    ),
    (
        "joint_pos(«foot_1»)",
        "`joint_pos` takes a joint, \"foot_1\" is a body",
        "it moves by the joint \"hip_1\"",
    ),
    (
        "joint_vel(«root»)",
        "`joint_vel` takes hinge and slide joints, \"root\" is a free joint",
        "its body has pos(torso), quat(torso), lin_vel(torso), ang_vel(torso)",
    ),
    (
        "joint_vel(«motor_1»)",
        "`joint_vel` takes a joint, \"motor_1\" is an actuator",
        "it drives the joint \"hip_1\"",
    ),
    ("«sensor(wrist)»", "the sensor \"wrist\" cannot be read: <user> is not supported", ""),
    (
        "«sensor([imu_gyro, lost])»",
        "the sensor \"lost\" cannot be read: frames of a camera are not supported",
        "",
    ),
    ("sensor(«imu»)", "`sensor` takes a sensor, \"imu\" is a site", ""),
    (
        "contact_force(foot_1, foot_2, «belly»)",
        "`contact_force` takes 1 to 2 arguments, this is 3",
        "write contact_force(name[, with]); several names are a list: contact_force([a, b, c])",
    ),
    ("height(site(«foot_1»))", "`height` takes a site, \"foot_1\" is a body", ""),
    (
        "joint_pos(«body(foot_1)»)",
        "`joint_pos` takes a joint, this is a body",
        "write joint_pos(...)",
    ),
    (
        "height(«geom(foot_1, foot_2)»)",
        "`geom` takes 1 argument, this is 2",
        "write geom(name); several are a list: geom([a, b])",
    ),
    ("«geom»(foot_1)", "`geom` is a name, not a value", "pos(geom(NAME)), for example"),
    (
        "«subtree(torso)»",
        "`subtree` is a name, not a value",
        "contact_force(subtree(BODY), floor), for example",
    ),
    (
        "contact(subtree(«belly»))",
        "`contact` takes a body, \"belly\" is a geom",
        "it belongs to the body \"torso\"",
    ),
    (
        "substeps(«height(torso) > 1»)",
        "`substeps` counts contacts alone",
        "substeps(contact_force(A, B) > 10), or substeps(contact(A, B))",
    ),
    (
        "substeps(«contact_force(belly) > param.width»)",
        "`substeps` compares with a number that is written here",
        "parameters, commands and the state can change",
    ),
    (
        "latest(«height(torso)»)",
        "`latest` is of contacts, and this reads none",
        "all else is of the last physics step as it is",
    ),
    (
        "substeps(«latest(contact_force(belly)) > 2»)",
        "`substeps` counts contacts alone",
        "substeps(contact_force(A, B) > 10), or substeps(contact(A, B))",
    ),
    (
        "substeps(«contact_force(belly)»)",
        "`substeps` takes a condition, this is a number",
        "compare it, such as `> 0`",
    ),
    (
        "contact(«imu»)",
        "`contact` takes a body or geom, \"imu\" is a site",
        "it belongs to the body \"torso\"",
    ),
    (
        "pos(«tail-tip»)",
        "`pos` takes the name of a body, site or geom",
        "this name needs quotes: \"tail-tip\"",
    ),
    (
        "pos(«qpos[0]»)",
        "`pos` takes the name of a body, site or geom",
        "write pos(name, ...), with a name or a pattern such as \"foot_*\"",
    ),
    ("distance(torso, «\"foot_*\"»)", "`distance` takes one name, this is 2", ""),
    (
        "norm(«torso»)",
        "`torso` is a body, not a value",
        "write pos(torso), lin_vel(torso) or another function of it",
    ),
    ("norm(«\"hip_1\"»)", "a quoted name is not a value", "write joint_pos(\"hip_1\")"),
    ("2 * «qpoz»", "unknown name `qpoz`", "did you mean qpos?"),
    ("«twist».x", "unknown name `twist`", "the command is written command.twist"),
    ("«target» + 1", "unknown name `target`", "the parameter is written param.target"),
    ("command.«twiste»", "no command called \"twiste\"", "did you mean command.twist?"),
    ("param.«tarqet»", "no parameter called \"tarqet\"", "did you mean param.target?"),
    ("«param»", "which parameter?", "write param.NAME; there are: target, width"),
    // Functions.
    ("«nrom»(qvel)", "unknown function `nrom`", "did you mean norm(v)?"),
    ("«clip(qvel, 1)»", "`clip` takes 3 arguments, this is 2", "write clip(x, lo, hi)"),
    ("abs(1, «2», 3)", "`abs` takes 1 argument, this is 3", "write abs(x)"),
    ("«lin_vel()»", "`lin_vel` takes 1 or more arguments, this is 0", "write lin_vel(name, ...)"),
    ("«lin_vel»", "`lin_vel` needs its arguments", "write lin_vel(name, ...)"),
    (
        "«tolerance(1)»",
        "`tolerance` takes 3 to 6 arguments, this is 1",
        "write tolerance(x, lo, hi[, margin[, shape[, value_at_margin]]])",
    ),
    ("tolerance(time, 0, 1, 2, «linaer»)", "no shape is called `linaer`", "did you mean linear?"),
    (
        "tolerance(time, 0, 1, 2, «1»)",
        "`tolerance` takes a word here",
        "write tolerance(x, lo, hi[, margin[, shape[, value_at_margin]]])",
    ),
    (
        "tolerance(time, 0, 1, 2, gaussian, «0»)",
        "the value at the margin is a constant between 0 and 1",
        "such as 0.1",
    ),
    ("tolerance(time, 0, 1, «-2»)", "the margin -2 is negative", ""),
    (
        "tolerance(time, «1», 0)",
        "nothing is at least 1 and at most 0",
        "the smaller bound comes first: 0, 1",
    ),
    (
        "clip(time, «1», -1)",
        "nothing is at least 1 and at most -1",
        "the smaller bound comes first: -1, 1",
    ),
    (
        "quat_axis_angle([0, 0, 1], «time»)",
        "`quat_axis_angle` takes an angle here, this is in [s]",
        "angles are in rad",
    ),
    (
        "«activation(motor_1)»",
        "actuator `motor_1` has no activation: its force follows its control",
        "write ctrl(ACTUATOR) or actuator_force(ACTUATOR)",
    ),
    ("state.«peak»", "no state called \"peak\"", "this task has no [[task.state]]"),
    // Sizes.
    ("«command.xy - lin_vel(torso)»", "`-` on vectors of 2 and 3", "cut the longer one with .xy"),
    (
        "«qpos + qvel»",
        "`+` on vectors of 10 and 9",
        "both sides need one length, or one of them a single number",
    ),
    (
        "rotate(«qvel», gravity)",
        "`rotate` takes a quaternion here, this is a vector of 9",
        "write rotate(q, v)",
    ),
    (
        "cross(«command.xy», gravity)",
        "`cross` takes a vector of 3 here, this is a vector of 2",
        "write cross(a, b)",
    ),
    ("«dot(qvel, 1)»", "`dot` of vectors of 9 and 1", "both need one length"),
    ("action«[3]»", "there is no component 3", "the components of a vector of 3 are [0] to [2]"),
    ("action«[2:1]»", "this slice is empty", "[2:1] of 3 components; the end is not included"),
    ("qpos.«x»", "`.x` of a vector of 10", "write [0] to [9], or a slice such as [2:5]"),
    ("time.«x»", "`.x` of a number", "it is a number already"),
    ("command.twist.«w»", "a vector of 3 has no .w", "it has .x .y .z"),
    (
        "action.«foo»",
        "`.foo` is not a component",
        "components are .x .y .z .w and runs of them such as .xy; others [0], [2:5]",
    ),
    ("1 + «time / (2 - 2)»", "divides by zero", "the result is never a number that can be used"),
    // Units.
    (
        "«height(torso) + joint_pos(hip_1)»",
        "adds [m] to [rad]",
        "multiply one by a constant to say how they compare",
    ),
    (
        "«time - height(torso)»",
        "subtracts [m] from [s]",
        "multiply one by a constant to say how they compare",
    ),
    (
        "«height(torso) > lin_vel(torso).x»",
        "compares [m] with [m/s]",
        "multiply one by a constant to say how they compare",
    ),
    (
        "«qpos[7:] + joint_vel()»",
        "adds [rad] to [rad/s] in component 0",
        "multiply one by a constant to say how they compare",
    ),
    (
        "«max(time, mass)»",
        "`max` of [s] and [kg]",
        "multiply one by a constant to say how they compare",
    ),
    (
        "contact(belly) ? «time : mass»",
        "chooses between [s] and [kg]",
        "multiply one by a constant to say how they compare",
    ),
    (
        "exp(«-height(torso)»)",
        "`exp` takes a pure number, this is in [m]",
        "divide by a constant that says the scale",
    ),
    (
        "2 ^ «time»",
        "an exponent in [s]",
        "exponents are pure numbers; divide by a constant of that unit",
    ),
    (
        "«time ^ action[0]»",
        "raises [s] to a power that is not a constant",
        "divide the base by a constant of that unit",
    ),
    // Conditions.
    (
        "«time» and contact(belly)",
        "`and` takes a condition, this is a number",
        "compare it, such as `> 0`",
    ),
    ("not «action»", "`not` takes a condition, this is a vector of 3", "compare it, such as `> 0`"),
    ("if(«time», 1, 2)", "`if` takes a condition, this is a number", "compare it, such as `> 0`"),
    (
        "exp(«time > 1»)",
        "`exp` takes a number, this is a condition",
        "if(condition, 1, 0) makes a number of it; `not` reverses it",
    ),
    (
        "«contact(belly)» > 0",
        "`>` compares numbers, this is a condition",
        "a condition needs no comparison: write it alone, or with `not` in front",
    ),
    (
        "0.2 < height(torso) «<» 1",
        "comparisons cannot be chained",
        "write between(x, low, high), or join two comparisons with `and`",
    ),
    // Form.
    ("«»", "the expression is empty", ""),
    ("1 +«»", "the expression ends too early", "a value is missing here"),
    ("norm«(»qvel", "this call is not closed", "add `)`"),
    ("«(»1 + 2", "this bracket is not closed", "add `)`"),
    ("1 + 2«)»", "this bracket closes nothing", ""),
    ("1 «2»", "expected an operator or the end, found the number 2", ""),
    ("abs(1 «2»)", "expected `,` or `)`, found the number 2", ""),
    (
        "pos(pinch «site»)",
        "expected `,` or `)`, found `site`",
        "a name with a blank stands in quotes, \"pinch site\"; the word for its kind is left out",
    ),
    ("joint_pos(«all»)", "no joint called \"all\"", "\"*\" means all of them"),
    (
        "1 «if» time > 1 else 0",
        "expected an operator or the end, found `if`",
        "a choice is written condition ? a : b, or if(condition, a, b)",
    ),
    (
        "abs(1 «if» time > 1 else 0)",
        "expected `,` or `)`, found `if`",
        "a choice is written condition ? a : b, or if(condition, a, b)",
    ),
    (
        "exp_kernel(qvel, std«=»0.5)",
        "arguments have no names here",
        "they go by place: exp_kernel(x, 0.5)",
    ),
    (
        "exp_kernel(qvel, «0»)",
        "a standard deviation of 0",
        "exp_kernel is 0.37 at an error of `std`: give it the error that is still good",
    ),
    ("«2x» + 1", "`2x` is not a number", "for a product write 2 * x"),
    ("«1e99»", "1e99 is too large", "numbers are 32-bit floats, at most 3.4e38"),
    ("pos(«\"torso»", "this quoted name does not end", "close it with \""),
    (
        "action[«0.5»]",
        "0.5 is not an index",
        "an index is a whole number; the first component is [0]",
    ),
    (
        "action[«time»]",
        "expected a whole number, found `time`",
        "an index is written [2], a slice [1:3], [2:] or [:2]",
    ),
    ("1 «$» 2", "`$` has no meaning here", ""),
    // Habits from elsewhere.
    ("qvel«**»2", "`**` is not an operator", "write a^b"),
    ("«np.exp»(1)", "functions have no module in front", "write exp(...)"),
    ("«np.clip»(1, 2, 3)", "functions have no module in front", "write clip(...)"),
    ("«torch.where»(1)", "functions have no module in front", "write if(condition, a, b)"),
    ("«lin_vel(torso).norm»()", "values have no methods", "put the value inside: norm(...)"),
    (
        "2 * «not»(1 > 0)",
        "unknown function `not`",
        "`not` binds loosely, as in Python: write (not ...) in brackets",
    ),
    (
        "2 * not «time»",
        "expected an operator or the end, found `time`",
        "`not` binds loosely, as in Python: write (not ...) in brackets",
    ),
    (
        "joint_pos(kn*«)»",
        "expected a value, found `)`",
        "a pattern stands in quotes: joint_pos(\"*_knee\")",
    ),
    ("«pow»(2, 3)", "unknown function `pow`", "write a^b"),
    (
        "norm(«base_lin_vel»)",
        "unknown name `base_lin_vel`",
        "write lin_vel_body(BODY), with the name of the robot's base",
    ),
    ("sum(«dof_pos»^2)", "unknown name `dof_pos`", "write joint_pos()"),
    (
        "«root_pos»[2]",
        "unknown name `root_pos`",
        "write pos(BODY), with the name of the robot's base",
    ),
    (
        "time == 1 and 1 «=» 2",
        "`=` is not an operator",
        "compare with `==`; to name a value, make it a `task.params` entry",
    ),
    ("time > 1 «&» true", "`&` is not an operator", "write `and`"),
    (
        "«[time, log(-1)]»",
        "this is no number (NaN) in every state",
        "0 / 0, a logarithm or a root of a negative number?",
    ),
];

#[test]
fn each_mistake_is_underlined_and_explained() {
    let world = World::new(1, 1);
    let mut wrong = String::new();
    for &(marked, message, help) in ERRORS {
        let start = marked.find('«').unwrap();
        let end = marked.find('»').unwrap() - '«'.len_utf8();
        let text = marked.replace(['«', '»'], "");
        let found = match world.compile(&text) {
            Ok(p) => format!("is {:?}", p.ty()),
            Err(e) => {
                let help_found = e.help.clone().unwrap_or_default();
                if e.span == (start..end) && e.message == message && help_found == help {
                    continue;
                }
                format!("{:?} {} ({help_found})", text.get(e.span.clone()), e.message)
            }
        };
        wrong += &format!("{marked}\n  expected {message} ({help})\n  found {found}\n");
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn sizes_are_limited_and_said() {
    let world = World::new(1, 1);
    let fails = |text: String| world.compile(&text).unwrap_err().to_string();
    let deep = format!("{}1{}", "(".repeat(5000), ")".repeat(3000));
    assert!(fails(deep).contains("nested too deeply (at most 64 levels"));
    assert!(fails("-".repeat(5000) + "1").contains("nested too deeply"));
    assert!(fails("1^".repeat(3000) + "1").contains("nested too deeply"));
    assert!(fails("not ".repeat(2000) + "true").contains("nested too deeply"));
    assert!(fails("true?1:".repeat(1000) + "1").contains("nested too deeply"));
    assert!(fails("abs(".repeat(2000)).contains("nested too deeply"));
    assert!(fails(" ".repeat(9000)).contains("has 9000 bytes (at most 8192"));
    let twice = (0..12).fold("qpos".to_string(), |v, _| format!("[{v}, {v}]"));
    let short = twice.len() < 8192;
    assert!(!short || fails(twice).contains("components"), "doubling");
    let many =
        format!("[{}]", (0..450).map(|i| format!("qpos*{i}.5")).collect::<Vec<_>>().join(","));
    assert!(fails(many).contains("components (at most 4096)"));
    // Long chains are no nesting.
    assert!(world.compile(&("1+time-".repeat(1000) + "time")).is_ok());
}

#[test]
fn the_deepest_expression_fits_a_small_stack() {
    let text = format!("{}1{}", "-((1+2*(".repeat(15), ")))".repeat(15));
    std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(move || {
            let world = World::new(1, 1);
            assert!(world.compile(&text).is_ok());
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn a_command_needs_a_unit_that_can_be_read() {
    let mut world = World::new(1, 1);
    world.commands[0].2 = "furlong".into();
    let e = world.compile("time + command.heading").unwrap_err();
    assert_eq!(e.span, 7..14);
    assert_eq!(e.message, "the command \"twist\" has the unknown unit \"furlong\"");
}
