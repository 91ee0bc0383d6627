//! Events and actuators of generated tasks: sound ones, and others where anything may be
//! anywhere.

use super::generate::Dice;
use crate::config::{
    ActuatorTerm, Distribution, EventRange, EventTerm, EventTime, OneOrMany, Operation,
    PseudoRange, Span, TaskConfig,
};
use safetensors::tensor::{Dtype, TensorView};
use std::path::Path;

/// What a sound event changes: parts, an operation that is possible, ranges for it. Of quantities
/// that share numbers each has the same letter.
const SOUND: [(char, &str, Operation, [f64; 2]); 27] = {
    use Operation::{Abs, Add, Scale};
    [
        ('f', "friction(foot_*)[0]", Abs, [0.3, 1.5]),
        ('f', "friction(*)", Scale, [0.5, 1.5]),
        ('f', "friction(belly, back)[1:3]", Add, [0.0, 0.1]),
        ('i', "mass(torso)", Add, [-1.0, 3.0]),
        ('i', "mass(*)", Scale, [0.5, 1.5]),
        ('i', "inertia(torso)", Scale, [0.9, 1.1]),
        ('i', "density(foot_*)", Scale, [0.5, 1.5]),
        ('i', "pseudo_inertia(torso, foot_1)", Abs, [-0.1, 0.2]),
        ('c', "com(foot_2)", Add, [-0.02, 0.02]),
        ('c', "com(tail-tip)[0]", Abs, [0.01, 0.02]),
        ('a', "armature(hip_*)", Abs, [0.01, 0.1]),
        ('d', "damping(*)", Add, [0.1, 0.5]),
        ('d', "damping(rail)", Scale, [0.5, 1.5]),
        ('l', "frictionloss(hip_1, rail)", Abs, [0.1, 0.2]),
        ('s', "stiffness(*)", Abs, [1.0, 4.0]),
        ('o', "joint_offset(*)", Add, [-0.05, 0.05]),
        ('k', "kp(motor_*)", Scale, [0.8, 1.2]),
        ('m', "kd(motor_1)", Add, [0.1, 0.2]),
        ('p', "gain(motor_*)", Scale, [0.8, 1.2]),
        ('t', "strength(motor_*)", Scale, [0.8, 1.2]),
        ('e', "effort_limit(*)", Abs, [1.0, 20.0]),
        ('g', "gravity", Add, [-1.0, 1.0]),
        ('g', "gravity[2]", Scale, [0.5, 1.1]),
        ('v', "vel(torso)", Add, [-0.5, 0.5]),
        ('w', "force(torso)[0:2]", Abs, [-5.0, 5.0]),
        ('w', "torque(foot_*)", Abs, [-0.5, 0.5]),
        ('w', "wrench(torso)", Add, [-2.0, 2.0]),
    ]
};

const WHENS: [EventTime; 3] = [EventTime::Startup, EventTime::Reset, EventTime::Interval];

/// Names that the actuators' networks have in the robot's folder.
pub const NETWORKS: [&str; 2] = ["mlp.safetensors", "lstm.safetensors"];

/// Adds up to four events to a task, and actuators to some. Returns the names of the events that
/// have numbers.
pub fn vary(cfg: &mut TaskConfig, d: &mut Dice, wild: bool) -> Vec<String> {
    if d.chance(50) {
        actuators(cfg, d, wild);
    }
    // kp and kd are those of servos: of the actuators that the task makes. Others are motors.
    let servos =
        (cfg.actuator.iter()).any(|a| a.network.is_none() && a.joints.iter().any(|j| j == "hip_*"));
    let mut taken = Vec::new();
    for i in 0..d.below(5) {
        let (letter, set, operation, range) = SOUND[d.below(SOUND.len())];
        // Strength is that of gains.
        let gains = |letter| "kmpt".contains(letter);
        let twice = |of: &char| {
            *of == letter || (gains(*of) && gains(letter) && [*of, letter].contains(&'t'))
        };
        if taken.iter().any(twice)
            || ("km".contains(letter) && !servos)
            || (letter == 'p' && !cfg.actuator.is_empty())
        {
            continue;
        }
        taken.push(letter);
        let mut event = sound(d, &format!("e{i}"), set, operation, range);
        if wild && d.chance(60) {
            spoil(d, &mut event);
        }
        cfg.event.push(event);
    }
    cfg.event.iter().map(|e| e.name.clone()).collect()
}

/// A sound event.
fn sound(d: &mut Dice, name: &str, set: &str, operation: Operation, range: [f64; 2]) -> EventTerm {
    let velocity = set.starts_with("vel");
    let when = WHENS[usize::from(velocity) + d.below(3 - usize::from(velocity))];
    let interval = when == EventTime::Interval;
    let force = ["force", "torque", "wrench"].iter().any(|f| set.starts_with(f));
    let mut event = EventTerm {
        name: name.into(),
        when,
        interval_s: interval.then(|| match d.chance(50) {
            true => Span::One(0.05),
            false => Span::Range([0.02, 0.09]),
        }),
        set: set.into(),
        operation,
        distribution: Distribution::Uniform,
        range: Some(EventRange::One(range)),
        mean: None,
        std: None,
        probability: None,
        choices: Vec::new(),
        weights: Vec::new(),
        shared: d.chance(30),
        duration_s: (force && when != EventTime::Startup && d.chance(60))
            .then_some(Span::Range([0.02, 0.05])),
    };
    if set.starts_with("pseudo") {
        let some = |d: &mut Dice| d.chance(70).then_some(range);
        event.range = Some(EventRange::Pseudo(PseudoRange {
            alpha: some(d),
            d: some(d),
            s: some(d),
            t: d.chance(50).then_some([-0.01, 0.01]),
        }));
        return event;
    }
    match d.below(4) {
        1 if range[0] > 0.0 => event.distribution = Distribution::LogUniform,
        2 => {
            event.distribution = Distribution::Normal;
            event.range = None;
            event.mean = Some(OneOrMany::One(0.5 * (range[0] + range[1])));
            event.std = Some(OneOrMany::One(0.2 * (range[1] - range[0])));
        }
        3 => {
            event.distribution = Distribution::Choice;
            event.range = None;
            event.choices = range.to_vec();
        }
        _ => {}
    }
    event
}

/// Puts something else in the place of one of its keys, or of several.
fn spoil(d: &mut Dice, event: &mut EventTerm) {
    let number = |d: &mut Dice| {
        [0.0, -1.0, 1.0, 1e-30, 1e30, 1e300, f64::NAN, f64::INFINITY, -0.5, 7.0][d.below(10)]
    };
    for _ in 0..1 + d.below(3) {
        match d.below(10) {
            0 => event.name = d.one(&["", "e0", "a b", "e-1", "é", "norm"]).into(),
            1 => event.when = WHENS[d.below(3)],
            2 => {
                let (a, b) = (number(d), number(d));
                event.interval_s = Some(Span::Range([a, b]));
            }
            3 => {
                let quantity = d.one(&[
                    "mass",
                    "com",
                    "inertia",
                    "density",
                    "pseudo_inertia",
                    "friction",
                    "armature",
                    "damping",
                    "kp",
                    "kd",
                    "gain",
                    "effort_limit",
                    "gravity",
                    "vel",
                    "force",
                    "joint_offset",
                    "mas",
                    "",
                    "wrench",
                ]);
                let part = d.one(&[
                    "",
                    "(torso)",
                    "(*)",
                    "(foot_*)",
                    "(root)",
                    "(motor_1)",
                    "(world)",
                    "(",
                    "()",
                    "(a, b",
                    "(hip_1,)",
                    "(floor)",
                    "(\"tail-tip\")",
                    "(é*)",
                ]);
                let index =
                    d.one(&["", "", "[0]", "[9]", "[0:2]", "[2:1]", "[", "]", "[-1]", "[é]"]);
                event.set = format!("{quantity}{part}{index}");
            }
            4 => event.operation = [Operation::Abs, Operation::Add, Operation::Scale][d.below(3)],
            5 => {
                event.distribution = [
                    Distribution::Uniform,
                    Distribution::LogUniform,
                    Distribution::Normal,
                    Distribution::Choice,
                ][d.below(4)];
            }
            6 => {
                let (a, b) = (number(d), number(d));
                event.range = match d.below(4) {
                    0 => None,
                    1 => Some(EventRange::One([a, b])),
                    2 => Some(EventRange::Each(vec![[a, b]; d.below(7)])),
                    _ => Some(EventRange::Pseudo(PseudoRange {
                        alpha: Some([a, b]),
                        ..PseudoRange::default()
                    })),
                };
            }
            7 => {
                let x = number(d);
                event.mean = Some(match d.chance(70) {
                    true => OneOrMany::One(x),
                    false => OneOrMany::Many(vec![x; d.below(4)]),
                });
                let x = number(d);
                event.std = Some(OneOrMany::One(x));
            }
            8 => {
                let count = d.below(4);
                event.choices = (0..count).map(|_| number(d)).collect();
            }
            _ => {
                let x = number(d);
                event.duration_s = Some(Span::One(x));
            }
        }
    }
}

/// Actuators of all laws.
fn actuators(cfg: &mut TaskConfig, d: &mut Dice, wild: bool) {
    let laws = [
        "model = \"pd\"\nstiffness = 20.0\ndamping = 0.5",
        "model = \"dc_motor\"\nstiffness = 20.0\ndamping = 0.5\nsaturation_effort = 8.0\nvelocity_limit = 20.0",
        "model = \"mlp\"\neffort_limit = 5.0\n[network]\nfile = \"mlp.safetensors\"\nhistory = [0, 1, 3]\nactivation = \"elu\"",
        "model = \"lstm\"\nsaturation_effort = 8.0\nvelocity_limit = 20.0\n[network]\nfile = \"lstm.safetensors\"",
    ];
    let slips = [
        "stiffness = -1.0",
        "model = \"mlp\"",
        "model = \"pd\"\n[network]\nfile = \"mlp.safetensors\"",
        "model = \"lstm\"\n[network]\nfile = \"mlp.safetensors\"",
        "model = \"mlp\"\n[network]\nfile = \"lstm.safetensors\"",
        "model = \"mlp\"\n[network]\nfile = \"../mlp.safetensors\"",
        "model = \"mlp\"\n[network]\nfile = \"mlp.safetensors\"\nhistory = [0, 4000000000]",
        "model = \"dc_motor\"\nstiffness = 20.0",
        "stiffness = 20.0\ndamping = { \"hip_*\" = 1.0 }",
        "stiffness = { \"zzz*\" = 1.0 }",
        "stiffness = nan",
    ];
    for joints in [&["hip_*"][..], &["rail"]] {
        if d.chance(30) {
            continue;
        }
        let law = match wild && d.chance(40) {
            true => d.one(&slips),
            false => d.one(&laws),
        };
        let (head, network) = law.split_once("[network]").unwrap_or((law, ""));
        let late = d.one(&["", "delay = 2\n", "delay = [0, 3]\n", "armature = 0.02\n"]);
        let network = match network {
            "" => String::new(),
            text => format!("[network]{text}"),
        };
        let text = format!("joints = {joints:?}\n{late}{head}\n{network}");
        let term: ActuatorTerm = toml::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        cfg.actuator.push(term);
    }
    if wild && d.chance(10) {
        let again = cfg.actuator.first().cloned();
        cfg.actuator.extend(again);
    }
}

/// Writes the networks of the actuators into a folder.
pub fn write_networks(folder: &Path) {
    let shapes: [&[(&str, [usize; 2])]; 2] = [
        &[("0.weight", [16, 6]), ("2.weight", [1, 16])],
        &[("weight_ih_l0", [32, 2]), ("weight_hh_l0", [32, 8]), ("out.weight", [1, 8])],
    ];
    for (name, tensors) in NETWORKS.into_iter().zip(shapes) {
        let numbers = |count: usize| -> Vec<u8> {
            let each = (0..count).map(|i| ((i * 37 % 101) as f32 - 50.0) / 120.0);
            each.flat_map(f32::to_le_bytes).collect()
        };
        let data: Vec<_> = tensors
            .iter()
            .map(|(name, shape)| (*name, shape.to_vec(), numbers(shape[0] * shape[1])))
            .collect();
        let views = data.iter().map(|(name, shape, bytes)| {
            (*name, TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
        });
        let bytes = safetensors::serialize(views, None).unwrap();
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}
