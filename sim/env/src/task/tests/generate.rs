//! Generated tasks with lists, named expressions, states and metrics: half are sound, of the
//! others anything may be anywhere.

use super::vary::vary;
use crate::config::{
    ActionTerm, AgentsConfig, Conditions, MetricTerm, ObservationTerm, Over, ResetTerm, RewardTerm,
    StartConfig, StateTerm, TaskConfig, TerminationTerm,
};
use ostler_base::rng::philox_raw;

/// Draws for one task.
pub struct Dice {
    key: u32,
    count: u32,
    /// Anything may be anywhere; else what is written is sound.
    wild: bool,
}

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.count += 1;
        philox_raw([self.count, 0, 0, 9], [self.key, 3])[0] as usize % n
    }

    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// What a task has, for texts that may mention it.
#[derive(Default)]
struct Known {
    lists: Vec<String>,
    values: Vec<String>,
    functions: Vec<(String, usize)>,
    states: Vec<String>,
    events: Vec<String>,
    /// Parameters of the function whose text is written.
    parameters: Vec<String>,
    /// Lists that stand around the text.
    inside: Vec<String>,
}

const PARTS: [&str; 9] =
    ["torso", "foot_1", "foot_2", "\"foot_*\"", "\"tail-tip\"", "imu", "belly", "foot_{n}", "trso"];

/// A sound number: what may have several components is summed, and has any unit.
fn sound(d: &mut Dice, k: &mut Known, deep: usize) -> String {
    if deep == 0 || d.chance(15) {
        let part = match k.inside.iter().find(|l| ["foot", "limb"].contains(&l.as_str())) {
            Some(list) if d.chance(70) => format!("\"{{{list}}}\""),
            _ => d.one(&["torso", "foot_1", "\"foot_*\"", "\"tail-tip\"", "imu"]).to_string(),
        };
        let all = match k.lists.iter().any(|l| l == "limb") {
            true => "limb".to_string(),
            false => part.clone(),
        };
        return match d.below(10) {
            0 => format!("{}", d.below(40) as f64 / 8.0),
            1 if !k.values.is_empty() => sum_of(&k.values[d.below(k.values.len())]),
            2 | 3 if !k.states.is_empty() => {
                let name = &k.states[d.below(k.states.len())];
                sum_of(&format!("state.{name}"))
            }
            4 if !k.parameters.is_empty() => pick(d, &k.parameters, ""),
            5 if !k.events.is_empty() => {
                let event = &k.events[d.below(k.events.len())];
                let numbers = sum_of(&format!("event.{event}"));
                let own = [
                    "mass",
                    "sum(damping)",
                    "norm(com_offset(torso))",
                    "friction(foot_1)[0]",
                    "sum(1 * inertia(torso))",
                    "norm(projected_gravity(torso))",
                    "height(torso)",
                ];
                format!("(1 * ({} + 1 * {}))", numbers, d.one(&own))
            }
            5 => "(1 * time)".into(),
            6 => "action[0]".into(),
            7 => format!("sum(1 * height({all}))"),
            8 => format!("norm(1 * lin_vel({part}))"),
            _ => touching(d),
        };
    }
    let next = deep - 1;
    match d.below(10) {
        0 | 1 => format!(
            "({} {} {})",
            sound(d, k, next),
            d.one(&["+", "-", "*", "/"]),
            sound(d, k, next)
        ),
        2 => format!(
            "{}({})",
            d.one(&["abs", "sum", "norm", "std", "1 * argmax", "1 * tanh"]),
            sound(d, k, next)
        ),
        3 => format!(
            "{}({}, {})",
            d.one(&["max", "min", "dot"]),
            sound(d, k, next),
            sound(d, k, next)
        ),
        4 => {
            format!("({} > 0.5 ? {} : {})", sound(d, k, next), sound(d, k, next), sound(d, k, next))
        }
        5 => format!("(1 * previous({}))", sound(d, k, next)),
        6 => format!("(1 * since({} > 1))", sound(d, k, next)),
        7 | 8 if !k.lists.is_empty() => {
            let list = pick(d, &k.lists, "");
            k.inside.push(list.clone());
            let text = format!("sum(each({list}, {}))", sound(d, k, next));
            k.inside.pop();
            text
        }
        9 if !k.functions.is_empty() => {
            let (name, count) = k.functions[d.below(k.functions.len())].clone();
            let args: Vec<String> = (0..count).map(|_| sound(d, k, next)).collect();
            format!("{name}({})", args.join(", "))
        }
        _ => sound(d, k, next),
    }
}

/// The sum of a value that may be of every entry of a list.
fn sum_of(name: &str) -> String {
    match name.split_once('{').and_then(|(_, rest)| rest.split_once('}')) {
        Some((list, _)) => format!("sum(each({list}, 1 * {name}))"),
        None => format!("sum(1 * {name})"),
    }
}

fn pick(d: &mut Dice, of: &[String], or: &str) -> String {
    match of.is_empty() {
        true => or.to_string(),
        false => of[d.below(of.len())].clone(),
    }
}

fn part(d: &mut Dice, k: &Known) -> String {
    match d.below(8) {
        0 => pick(d, &k.lists, "torso"),
        1 | 2 if !k.inside.is_empty() => format!("{{{}}}", pick(d, &k.inside, "")),
        3 => format!("\"{{{}}}\"", pick(d, &k.lists, "agent")),
        4 => format!("{{{}}}", pick(d, &k.parameters, "agent")),
        _ => d.one(&PARTS).to_string(),
    }
}

/// A number or vector, mostly sound.
fn number(d: &mut Dice, k: &mut Known, deep: usize) -> String {
    if !d.wild {
        return sound(d, k, deep);
    }
    if deep == 0 || d.chance(20) {
        return match d.below(12) {
            0 => format!("{}", d.below(40) as f64 / 8.0),
            1 => pick(d, &k.values, "1"),
            2 => format!("state.{}", pick(d, &k.states, "s0")),
            3 => pick(d, &k.parameters, "2"),
            4 => "time".into(),
            5 => "action".into(),
            6 => format!("height({})", part(d, k)),
            7 => format!("1 * lin_vel({}).xy", part(d, k)),
            8 => format!("quat_6d(quat({}))", part(d, k)),
            9 => "qpos[7:]".into(),
            10 => format!("state.{{{}}}_s", pick(d, &k.lists, "agent")),
            _ => d
                .one(&[
                    "qvel",
                    "event.e0",
                    "event",
                    "kp",
                    "{agent}",
                    "[1, 2]",
                    "joint_pos(hips)",
                    "foot",
                    "state",
                    "1e30",
                ])
                .into(),
        };
    }
    let next = deep - 1;
    match d.below(14) {
        0 | 1 => format!(
            "({} {} {})",
            number(d, k, next),
            d.one(&["+", "-", "*", "/"]),
            number(d, k, next)
        ),
        2 => format!(
            "{}({})",
            d.one(&["abs", "sum", "mean", "norm", "norm2", "std", "argmax", "exp"]),
            number(d, k, next)
        ),
        3 => format!(
            "{}({}, {})",
            d.one(&["max", "min", "exp_kernel", "dot"]),
            number(d, k, next),
            number(d, k, next)
        ),
        4 => format!("({} ? {} : {})", truth(d, k, next), number(d, k, next), number(d, k, next)),
        5 => format!("previous({})", number(d, k, next)),
        6 => format!("since({})", truth(d, k, next)),
        7 | 8 => {
            let list = pick(d, &k.lists, "foot");
            k.inside.push(list.clone());
            let text = format!("each({list}, {})", number(d, k, next));
            k.inside.pop();
            text
        }
        9 | 10 => match k.functions.is_empty() {
            true => number(d, k, next),
            false => {
                let (name, count) = k.functions[d.below(k.functions.len())].clone();
                let args: Vec<String> = (0..count)
                    .map(|_| match d.chance(30) {
                        true => part(d, k),
                        false => number(d, k, next),
                    })
                    .collect();
                format!("{name}({})", args.join(", "))
            }
        },
        11 => format!("[{}, {}]", number(d, k, next), number(d, k, next)),
        12 => format!(
            "({}){}",
            number(d, k, next),
            d.one(&["[0]", ".x", "[-1]", "[1:]", ".yx", "[:2]"])
        ),
        _ => format!(
            "tolerance({}, 0, 1, 0.5, {})",
            number(d, k, next),
            d.one(&["linear", "cosine", "linaer", "1"])
        ),
    }
}

/// A number that contacts give.
fn touching(d: &mut Dice) -> String {
    let of = d.one(&["foot_1", "\"foot_*\"", "belly", "subtree(torso)"]);
    let with = d.one(&["floor", "\"*\"", "subtree(foot_1)", "[belly, floor]"]);
    match d.below(9) {
        0 | 1 => format!("sum(contact({of}))"),
        5 => format!("sum(1 * contact_time({of}, {with}) - 1 * air_time({of}))"),
        6 => format!("sum(latest(1 * net_contact_force({of}, {with})))"),
        7 => format!("sum(latest(contact({of})))"),
        2 => format!("sum(1 * contact_force({of}, {with}))"),
        3 => format!("norm(1 * contact_pos({of}, {with}))"),
        4 => format!("sum(contact_normal({of}))"),
        _ => format!("sum(substeps(contact_force({of}, {with}) > 2))"),
    }
}

fn truth(d: &mut Dice, k: &mut Known, deep: usize) -> String {
    if !d.wild {
        return format!("({} > {})", sound(d, k, deep), sound(d, k, 0));
    }
    match d.below(6) {
        0 | 1 => format!("{} > {}", number(d, k, deep), number(d, k, 0)),
        2 => format!("contact({})", part(d, k)),
        3 => format!("any({} < 1)", number(d, k, deep)),
        4 => format!("not ({} >= 0)", number(d, k, deep)),
        _ => pick(d, &k.values, "true"),
    }
}

/// A sound number of a start, in any unit.
fn drawn(d: &mut Dice, k: &Known, deep: usize) -> String {
    if deep == 0 || d.chance(30) {
        return match d.below(9) {
            0 => format!("uniform({}, 1)", -(d.below(9) as f64)),
            1 => "normal(0.1, 0.5)".into(),
            2 => "log_uniform(0.5, 2)".into(),
            3 => "choice(0, 1, uniform(2, 3))".into(),
            4 => "sum(1 * random_quat)".into(),
            5 => "norm(1 * lin_vel(foot_1))".into(),
            6 => "sum(1 * joint_pos())".into(),
            7 if k.lists.iter().any(|l| l == "foot") => {
                "sum(each(foot, 1 * height({foot}) + uniform(0, 1)))".into()
            }
            _ => "sum(1 * pos(torso))".into(),
        };
    }
    let next = deep - 1;
    match d.below(4) {
        0 => format!("(bernoulli(0.4) ? {} : {})", drawn(d, k, next), drawn(d, k, next)),
        1 => format!("{}({})", d.one(&["abs", "tanh", "sum"]), drawn(d, k, next)),
        _ => format!("({} {} {})", drawn(d, k, next), d.one(&["+", "-", "*"]), drawn(d, k, next)),
    }
}

/// Starts with expressions and conditions.
fn starts(d: &mut Dice, k: &mut Known, cfg: &mut TaskConfig, wild: bool) {
    cfg.lets.insert("chance".into(), drawn(d, k, 1));
    for _ in 0..d.below(4) {
        let target = d.one(&[
            "qpos",
            "qvel",
            "pos(torso)",
            "lin_vel(torso)",
            "yaw(torso)",
            "rpy(torso)",
            "quat(torso)",
            "joint_pos(*)",
            "joint_vel(hip_*)",
        ]);
        let expr = match wild && d.chance(30) {
            true => number(d, k, 2),
            false => format!("1 * ({} + chance)", drawn(d, k, 2)),
        };
        cfg.reset.push(ResetTerm {
            target: target.into(),
            expr: Some(expr),
            ..ResetTerm::default()
        });
    }
    if d.chance(50) {
        let conditions = (0..1 + d.below(2)).map(|_| format!("{} > chance", drawn(d, k, 2)));
        cfg.start = Some(StartConfig {
            until: Conditions::All(conditions.collect()),
            tries: 1 + d.below(4) as u32,
        });
    }
}

/// A task, most of whose parts are sound.
pub fn task(key: u32) -> TaskConfig {
    let d = &mut Dice { key, count: 0, wild: false };
    // Half are sound, some of them but for a mistake here or there.
    let wild = key % 2 == 1;
    let slips = key % 4 == 2;
    d.wild = wild;
    let mut cfg = TaskConfig::default();
    let mut k = Known { events: vary(&mut cfg, d, wild), ..Known::default() };
    for i in 0..d.below(4) {
        let name = match !wild || d.chance(90) {
            true => ["foot", "n", "hips", "limb"][i],
            false => d.one(&["norm", "torso", "agent", "", "a-b"]),
        };
        let entries = match name {
            "foot" => &["foot_1", "foot_2"][..],
            "n" => &["1", "2"],
            "hips" => &["hip_*"],
            _ if !wild => &["torso", "tail-tip", "foot_*"],
            _ => &["torso", "tail-tip", "foot_*", "zzz*", ""],
        };
        let count = if !wild || d.chance(80) { entries.len().min(3) } else { d.below(5) };
        let written = (0..count).map(|i| entries[i % entries.len()].to_string());
        cfg.names.insert(name.into(), written.collect());
        k.lists.push(name.into());
    }
    let states = d.below(4);
    for i in 0..states {
        let name = match (d.below(6), k.lists.first()) {
            (0, Some(list)) => format!("{{{list}}}_s"),
            (1, _) if wild => "{agent}_s".to_string(),
            _ => format!("s{i}"),
        };
        k.states.push(name);
    }
    for i in 0..d.below(6) {
        let (name, parameters) = match d.chance(35) {
            true => (format!("f{i}"), 1 + d.below(2)),
            false => (format!("v{i}"), 0),
        };
        k.parameters = (0..parameters).map(|p| format!("p{p}")).collect();
        // Now and then it comes before what it uses, or in a circle.
        let early = wild && d.chance(10);
        let list = pick(d, &k.lists, "foot");
        if wild && d.chance(20) {
            k.inside.push(list);
        }
        d.wild = wild || (slips && d.chance(5));
        let mut text = match d.chance(70) {
            true => number(d, &mut k, 3),
            false => truth(d, &mut k, 2),
        };
        for p in &k.parameters {
            if !text.contains(p.as_str()) {
                text = format!("{text} + 0 * {p}");
            }
        }
        k.inside.clear();
        let shown = match parameters {
            0 => name.clone(),
            _ => format!("{name}({})", k.parameters.join(", ")),
        };
        if early {
            text = format!("{text} + v{}", d.below(6));
        }
        k.parameters.clear();
        cfg.lets.insert(shown, text);
        match parameters {
            0 => k.values.push(name),
            n => k.functions.push((name, n)),
        }
    }
    for name in k.states.clone() {
        d.wild = wild || (slips && d.chance(5));
        let condition = d.chance(20);
        let state = StateTerm {
            unit: (wild && d.chance(20)).then(|| d.one(&["m", "s", "-", "mile"]).into()),
            init: match condition {
                true => "false".into(),
                false if !wild => d.one(&["0", "1.5", "1 * height(torso)"]).into(),
                false => {
                    d.one(&["0", "[0, 0]", "height(torso)", "time", "state.s0 + 1", "foot"]).into()
                }
            },
            update: match condition {
                true => truth(d, &mut k, 2),
                false => number(d, &mut k, 3),
            },
            name,
        };
        cfg.state.push(state);
    }
    d.wild = wild || (slips && d.chance(5));
    cfg.action.push(ActionTerm {
        actuators: vec!["*".into()],
        ..toml::from_str("actuators = []").unwrap()
    });
    let observation = |expr: String| ObservationTerm {
        name: "o".into(),
        expr,
        ..toml::from_str("name = \"\"\nexpr = \"\"").unwrap()
    };
    cfg.observation.push(observation(number(d, &mut k, 3)));
    let reward: RewardTerm = toml::from_str("name = \"r\"\nexpr = \"\"").unwrap();
    cfg.reward.push(RewardTerm { expr: format!("sum({})", number(d, &mut k, 3)), ..reward });
    cfg.termination.push(TerminationTerm {
        name: "t".into(),
        expr: format!("any({})", truth(d, &mut k, 2)),
        truncate: false,
    });
    for i in 0..d.below(3) {
        let over = [Over::Mean, Over::Last, Over::Max, Over::Min, Over::Sum, Over::Any][d.below(6)];
        cfg.metric.push(MetricTerm {
            name: format!("m{i}"),
            expr: match over {
                Over::Any => format!("any({})", truth(d, &mut k, 2)),
                _ => format!("norm({})", number(d, &mut k, 2)),
            },
            unit: None,
            over,
            agents: None,
        });
    }
    if wild && d.chance(10) {
        cfg.agents = Some(AgentsConfig {
            names: vec!["torso".into(), "imu".into()],
            ..AgentsConfig::default()
        });
        cfg.action = ["motor_1", "motor_2"]
            .iter()
            .zip(["torso", "imu"])
            .map(|(motor, agent)| ActionTerm {
                actuators: vec![(*motor).into()],
                agents: Some(vec![agent.into()]),
                ..toml::from_str("actuators = []").unwrap()
            })
            .collect();
    }
    starts(d, &mut k, &mut cfg, wild);
    cfg
}
