//! The keys, and the kind of value that each takes.
//!
//! The schema is a configuration in which everything is set once: defaults, one
//! element in every list of tables, a value for every option. Its literals name
//! every field, so that a new key cannot be forgotten here.

use super::error::{self, Diagnostic};
use super::foreign;
use super::source::{Entry, Node, Sources, Value};
use super::{BackOffConfig, Config, FaultConfig, curriculum};
use ostler_collector::replay::{ReplayConfig, TransformConfig, TransformKind};
use ostler_sim::config::{
    ActionKind, ActionTerm, ActuatorModel, ActuatorTerm, AgentsConfig, BaseConfig, BiasWhen,
    CommandKind, CommandTerm, Conditions, ConeWord, ContactTerm, CriticCopy, Delay, DelayConfig,
    DelaySteps, Distribution, EventDistribution, EventRange, EventTerm, EventTime, FloorConfig,
    FloorTable, GroupOptions, HalfOrRange, Heading, HeightConfig, InputOrder, IntegratorWord,
    JointLimit, MetricTerm, NativeCode, NativeTerm, NativeUnit, NetworkConfig, NoiseKind,
    ObservationGroup, ObservationTerm, OneOrMany, Operation, OptionTable, Over, PseudoRange,
    Ranges, Resample, ResetTerm, RewardOptions, RewardTerm, SimConfig, Span, Spread, SpreadConfig,
    Stack, StartConfig, StateTerm, TaskConfig, TerminationTerm,
};
use ostler_sim::model::Activation;
use ostler_sim::names::nearest;
use std::collections::BTreeMap;
use toml::Value as Schema;

/// The key that stands for any key of a free-form table.
pub(crate) const ANY: &str = "*";

fn exemplar() -> Config {
    let number = || OneOrMany::One(0.0);
    let ranges = || Ranges::Named([(ANY.to_string(), [0.0, 0.0])].into());
    let named = || OneOrMany::Named([(ANY.to_string(), 0.0)].into());
    let range = [0.0, 0.0];
    let text = String::new;
    // The longest forms; the others are in `special`.
    let spread = || {
        Spread::Named(SpreadConfig {
            uniform: Some(HalfOrRange::Half(0.0)),
            normal: Some(0.0),
            when: Some(BiasWhen::Reset),
        })
    };
    let delay = || {
        Delay::Table(DelayConfig {
            steps: DelaySteps::Fixed(0),
            redraw: 0,
            hold: 0.0,
        })
    };
    Config {
        agents: Some(AgentsConfig {
            names: vec![text()],
            ..AgentsConfig::default()
        }),
        task: TaskConfig {
            robot: text(),
            robot_folder: Some(text()),
            floor: Some(FloorConfig::Table(FloorTable::default())),
            base: Some(BaseConfig::Free),
            start_height: Some(HeightConfig::At(0.0)),
            balance_inertia: true,
            default_pose: Some(text()),
            params: BTreeMap::from([(ANY.to_string(), 0.0)]),
            names: BTreeMap::from([(ANY.to_string(), vec![text()])]),
            lets: BTreeMap::from([(ANY.to_string(), text())]),
            state: vec![StateTerm {
                name: text(),
                unit: Some(text()),
                init: text(),
                update: text(),
            }],
            metric: vec![MetricTerm {
                name: text(),
                expr: text(),
                unit: Some(text()),
                over: Over::default(),
                agents: Some(vec![text()]),
            }],
            contact: vec![ContactTerm {
                geoms: vec![text()],
                condim: Some(0),
                friction: Some(OneOrMany::Many(vec![0.0])),
                priority: Some(0),
                solref: Some(range),
                solimp: Some(vec![0.0]),
                contype: Some(0),
                conaffinity: Some(0),
            }],
            option: OptionTable {
                integrator: Some(IntegratorWord::Euler),
                cone: Some(ConeWord::Elliptic),
                impratio: Some(0.0),
            },
            actuator: vec![ActuatorTerm {
                joints: vec![text()],
                model: ActuatorModel::default(),
                stiffness: Some(named()),
                damping: Some(named()),
                effort_limit: Some(named()),
                saturation_effort: Some(named()),
                velocity_limit: Some(named()),
                armature: Some(named()),
                friction: Some(named()),
                delay: Some(delay()),
                network: Some(NetworkConfig {
                    file: text(),
                    activation: Some(Activation::default()),
                    history: Some(vec![0]),
                    order: Some(InputOrder::default()),
                    position_scale: 0.0,
                    velocity_scale: 0.0,
                    effort_scale: 0.0,
                }),
            }],
            native: vec![NativeTerm {
                name: text(),
                file: text(),
                function: Some(text()),
                inputs: vec![text()],
                outputs: 1,
                // The longest form; the other is in `special`.
                unit: Some(NativeUnit::Each(vec![text()])),
                memory: 1,
                checksum: Some(text()),
            }],
            action: vec![ActionTerm {
                actuators: vec![text()],
                kind: ActionKind::default(),
                scale: named(),
                offset: named(),
                clip: Some(ranges()),
                choices: vec![vec![0.0]],
                stiffness: Some(named()),
                damping: Some(named()),
                delay: Some(delay()),
                encoders: Some(text()),
                agents: Some(vec![text()]),
            }],
            command: vec![CommandTerm {
                name: text(),
                // Defaults are left out of what is written.
                kind: CommandKind::Velocity,
                range: vec![range],
                distribution: Distribution::Normal,
                mean: vec![0.0],
                std: vec![0.0],
                probability: vec![0.0],
                choices: vec![vec![0.0]],
                weights: vec![0.0],
                unit: text(),
                resample_s: Resample::Every(0.0),
                frame: Some(text()),
                lin_vel_x: Some(range),
                lin_vel_y: Some(range),
                ang_vel_z: Some(range),
                heading: Some(Heading::default()),
                standing: 1.0,
                forward: 1.0,
                world: 1.0,
                deadband: 1.0,
            }],
            observation: vec![ObservationTerm {
                name: text(),
                expr: text(),
                group: ObservationGroup::default(),
                scale: number(),
                clip: Some(range),
                noise: spread(),
                // The default is left out of what is written.
                noise_kind: NoiseKind::Normal,
                bias: Some(spread()),
                delay: Some(delay()),
                history: Some(0),
                critic: Some(CriticCopy {
                    seen: true,
                    noise: Some(spread()),
                    bias: Some(spread()),
                    delay: Some(delay()),
                    history: Some(0),
                }),
                agents: Some(vec![text()]),
            }],
            observations: BTreeMap::from([(
                ANY.to_string(),
                GroupOptions {
                    history: Some(0),
                    stack: Stack::Term,
                },
            )]),
            reward: vec![RewardTerm {
                name: text(),
                expr: text(),
                weight: 0.0,
                agents: Some(vec![text()]),
            }],
            termination: vec![TerminationTerm {
                name: text(),
                expr: text(),
                truncate: false,
            }],
            reset: vec![ResetTerm {
                target: text(),
                uniform: Some(ranges()),
                log_uniform: Some(ranges()),
                normal: Some(named()),
                scale: Some(ranges()),
                value: Some(named()),
                expr: Some(text()),
                choice: vec![vec![0.0]],
                within_limits: Some(0.0),
            }],
            start: Some(StartConfig {
                until: Conditions::One(text()),
                tries: 1,
            }),
            event: vec![EventTerm {
                name: text(),
                when: EventTime::Startup,
                interval_s: Some(Span::One(0.0)),
                set: text(),
                operation: Operation::Add,
                distribution: EventDistribution::Normal,
                // The longest form; the others are in `special`.
                range: Some(EventRange::Pseudo(PseudoRange {
                    alpha: Some(range),
                    d: Some(range),
                    s: Some(range),
                    t: Some(range),
                })),
                mean: Some(number()),
                std: Some(number()),
                choices: vec![0.0],
                shared: true,
                duration_s: Some(Span::One(0.0)),
            }],
            rewards: RewardOptions {
                scale_by_dt: false,
                clip: Some(range),
                max_abs: Some(0.0),
            },
            agents: None,
            native_code: NativeCode::default(),
        },
        sim: SimConfig {
            limit: vec![JointLimit {
                joints: vec![text()],
                max_speed: Some(0.0),
                max_position: Some(0.0),
            }],
            ..SimConfig::default()
        },
        replay: ReplayConfig {
            transform: vec![TransformConfig {
                fields: vec![text()],
                scale: Some(0.0),
                clip: Some(0.0),
                noise: Some(0.0),
                noise_kind: Some(NoiseKind::Normal),
                ..TransformConfig::new(TransformKind::Noise)
            }],
            ..ReplayConfig::default()
        },
        curriculum: vec![curriculum::Schedule {
            key: text(),
            over: text(),
            points: vec![range],
            steps: false,
            ratchet: true,
        }],
        back_off: BackOffConfig {
            changes: vec![[0, 0]],
            ..BackOffConfig::default()
        },
        fault: FaultConfig {
            inject: vec![text()],
        },
        ..Config::default()
    }
}

/// Keys that take more than one kind of value.
fn special(path: &str) -> Option<Kind> {
    match path {
        "sim.threads" | "learner.threads" | "collector.workers" | "runner.eval_episodes" => {
            Some(Kind::Auto)
        }
        "runner.eval_interval" => Some(Kind::AutoOrNone),
        "task.start_height" => Some(Kind::Height),
        "task.floor.friction"
        | "task.contact.friction"
        | "task.observation.scale"
        | "task.event.mean"
        | "task.event.std"
        | "task.event.interval_s"
        | "task.event.duration_s" => Some(Kind::NumberOrList),
        "agents.policies" => Some(Kind::Policies),
        "task.start.until" => Some(Kind::Texts),
        "task.native.unit" => Some(Kind::Units),
        _ => None,
    }
}

/// Shorter forms of a value, beside the one that the exemplar has.
fn shorter(path: &str) -> &'static [Form] {
    match path {
        "task.observation.noise"
        | "task.observation.bias"
        | "task.observation.critic.noise"
        | "task.observation.critic.bias"
        | "task.observation.noise.uniform"
        | "task.observation.bias.uniform"
        | "task.observation.critic.noise.uniform"
        | "task.observation.critic.bias.uniform" => &[Form::Number, Form::Pair],
        "task.action.scale"
        | "task.action.offset"
        | "task.action.stiffness"
        | "task.action.damping"
        | "task.actuator.stiffness"
        | "task.actuator.damping"
        | "task.actuator.effort_limit"
        | "task.actuator.saturation_effort"
        | "task.actuator.velocity_limit"
        | "task.actuator.armature"
        | "task.actuator.friction"
        | "task.reset.normal"
        | "task.reset.value" => &[Form::Number, Form::Numbers],
        "task.command.resample_s" => &[Form::Pair],
        "task.action.clip"
        | "task.reset.uniform"
        | "task.reset.log_uniform"
        | "task.reset.scale" => &[Form::Pair, Form::Pairs],
        "task.action.delay"
        | "task.actuator.delay"
        | "task.actuator.delay.steps"
        | "task.action.delay.steps"
        | "task.observation.delay"
        | "task.observation.critic.delay"
        | "task.observation.delay.steps"
        | "task.observation.critic.delay.steps" => &[Form::Whole, Form::WholePair],
        _ => &[],
    }
}

/// A form of a value.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Number,
    Numbers,
    Pair,
    Pairs,
    Whole,
    WholePair,
}

impl Form {
    fn fits(self, node: &Node) -> bool {
        let number = |n: &Node| match n.value {
            Value::Int(_) => true,
            Value::Float(x) => x.is_finite(),
            _ => false,
        };
        let whole = |n: &Node| matches!(n.value, Value::Int(i) if u32::try_from(i).is_ok());
        let list = |fits: &dyn Fn(&Node) -> bool, len: Option<usize>| match &node.value {
            Value::Array(items) => items.iter().all(fits) && len.is_none_or(|n| n == items.len()),
            _ => false,
        };
        match self {
            Self::Number => number(node),
            Self::Whole => whole(node),
            Self::Numbers => list(&number, None),
            Self::Pair => list(&number, Some(2)),
            Self::Pairs => list(&|n| Self::Pair.fits(n), None),
            Self::WholePair => list(&whole, Some(2)),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Number => "a finite number",
            Self::Numbers => "a list of such",
            Self::Pair => "a range [low, high]",
            Self::Pairs => "a list of such",
            Self::Whole => "a whole number from 0 on",
            Self::WholePair => "a range [least, most] of whole numbers from 0 on",
        }
    }

    /// The kind of the exemplar's form.
    fn of(schema: &Schema) -> &'static str {
        match schema {
            Schema::Float(_) => "a number",
            Schema::Integer(_) => "a whole number",
            Schema::Boolean(_) => "true or false",
            Schema::String(_) => "text in quotes",
            Schema::Array(_) => "a list",
            _ => "a table",
        }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Auto,
    AutoOrNone,
    NumberOrList,
    Ranges,
    Height,
    Policies,
    Texts,
    Units,
}

/// Compares the tree with the schema; returns every unknown key and every value of
/// a wrong kind, up to some more than are shown.
pub fn check(root: &Node, sources: &Sources) -> Vec<Diagnostic> {
    check_as(&exemplar(), foreign::recognise, root, sources)
}

/// [`check`] against any exemplar; `recognise` knows other programs' names of a key.
pub fn check_as(
    exemplar: &impl serde::Serialize,
    recognise: fn(&str) -> Option<String>,
    root: &Node,
    sources: &Sources,
) -> Vec<Diagnostic> {
    let Ok(schema) = Schema::try_from(exemplar) else {
        // Only what cannot be written at all gets here; serde then judges alone.
        return Vec::new();
    };
    let mut walk = Walk {
        sources,
        schema: &schema,
        recognise,
        found: Vec::new(),
    };
    walk.node(root, &schema, "");
    walk.found
}

struct Walk<'a> {
    sources: &'a Sources,
    schema: &'a Schema,
    recognise: fn(&str) -> Option<String>,
    found: Vec<Diagnostic>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, schema: &Schema, path: &str) {
        // One more than are shown, so that it is known that there are more.
        if self.found.len() > error::MOST {
            return;
        }
        if let Some(kind) = special(path) {
            return self.special(node, kind, path);
        }
        if path == "task.event.range" && !matches!(node.value, Value::Table(_)) {
            return self.special(node, Kind::Ranges, path);
        }
        let shorter = shorter(path);
        if !shorter.is_empty() {
            let plain = matches!(schema, Schema::Float(_)) && Form::Number.fits(node);
            if plain || shorter.iter().any(|form| form.fits(node)) {
                return;
            }
            // Else a mistake within the table is named there.
            if !matches!((schema, &node.value), (Schema::Table(_), Value::Table(_))) {
                let mut forms: Vec<&str> = shorter.iter().map(|form| form.words()).collect();
                match schema {
                    Schema::Table(_) => forms.push("a table"),
                    Schema::Float(_) if !shorter.contains(&Form::Number) => {
                        forms.insert(0, Form::Number.words());
                    }
                    _ => {}
                }
                let last = forms.pop().unwrap_or_default();
                let forms = match forms.is_empty() {
                    true => last.to_string(),
                    false => format!("{} or {last}", forms.join(", ")),
                };
                let kind = node.value.kind();
                return self.wrong(node, format!("{path} takes {forms}, this is {kind}"));
            }
        }
        match (schema, &node.value) {
            (Schema::Table(known), Value::Table(entries)) => {
                for entry in entries {
                    if self.found.len() > error::MOST {
                        return;
                    }
                    let at = if path.is_empty() {
                        entry.key.clone()
                    } else {
                        format!("{path}.{}", entry.key)
                    };
                    match known.get(&entry.key).or_else(|| known.get(ANY)) {
                        Some(inner) => self.node(&entry.node, inner, &at),
                        None => self.unknown(entry, known, path),
                    }
                }
            }
            (Schema::Array(inner), Value::Array(items)) => {
                if let Some(inner) = inner.first() {
                    for item in items {
                        self.node(item, inner, path);
                    }
                }
            }
            (Schema::Array(inner), Value::Table(_))
                if matches!(inner.first(), Some(Schema::Table(_))) =>
            {
                self.wrong(
                    node,
                    format!("{path} is a list of tables, write [[{path}]]"),
                );
            }
            (Schema::Float(_), Value::Float(x)) if x.is_nan() => {
                self.wrong(node, format!("{path} cannot be nan"));
            }
            (Schema::Float(_), Value::Float(x)) if x.is_infinite() && !path.ends_with("clip") => {
                self.wrong(node, format!("{path} has to be finite"));
            }
            (Schema::Float(_), Value::Int(_) | Value::Float(_))
            | (Schema::Integer(_), Value::Int(_))
            | (Schema::Boolean(_), Value::Bool(_))
            | (Schema::String(_), Value::Str(_)) => {}
            // A floor without numbers of its own.
            (Schema::Table(_), Value::Bool(_)) if path == "task.floor" => {}
            (expected, found) => {
                let expected = match path {
                    "task.floor" => "true, false or a table",
                    _ => Form::of(expected),
                };
                let kind = found.kind();
                self.wrong(node, format!("{path} takes {expected}, this is {kind}"));
            }
        }
    }

    fn special(&mut self, node: &Node, kind: Kind, path: &str) {
        let number = |n: &Node| match n.value {
            Value::Int(_) => true,
            Value::Float(x) => x.is_finite(),
            _ => false,
        };
        let (fits, expected) = match kind {
            Kind::Auto => (
                match &node.value {
                    Value::Int(i) => *i >= 1,
                    Value::Str(s) => s == "auto",
                    _ => false,
                },
                "\"auto\" or a whole number, 1 or more",
            ),
            Kind::AutoOrNone => (
                match &node.value {
                    Value::Int(i) => *i >= 0,
                    Value::Str(s) => s == "auto",
                    _ => false,
                },
                "\"auto\" or a whole number, 0 for none",
            ),
            Kind::NumberOrList => (
                match &node.value {
                    Value::Array(items) => items.iter().all(number),
                    _ => number(node),
                },
                "a finite number or a list of such",
            ),
            Kind::Ranges => (
                match &node.value {
                    Value::Array(items) if items.iter().all(number) => items.len() == 2,
                    Value::Array(items) => items.iter().all(|n| match &n.value {
                        Value::Array(pair) => pair.len() == 2 && pair.iter().all(number),
                        _ => false,
                    }),
                    _ => false,
                },
                "[low, high], a list of such, or a table of such",
            ),
            Kind::Height => (
                matches!(&node.value, Value::Str(s) if s == "auto") || number(node),
                "\"auto\" or a finite number (m)",
            ),
            Kind::Policies => (
                match &node.value {
                    Value::Str(s) => s == "shared" || s == "separate",
                    Value::Array(items) => items.iter().all(|n| matches!(n.value, Value::Str(_))),
                    _ => false,
                },
                "\"shared\", \"separate\" or a list with a policy's name for each agent",
            ),
            Kind::Texts | Kind::Units => (
                match &node.value {
                    Value::Str(_) => true,
                    Value::Array(items) => items.iter().all(|n| matches!(n.value, Value::Str(_))),
                    _ => false,
                },
                match kind {
                    Kind::Units => "a unit such as \"m/s\", or a list with a unit for each output",
                    _ => "text in quotes, or a list of such",
                },
            ),
        };
        if !fits {
            let kind = node.value.kind();
            self.wrong(node, format!("{path} takes {expected}, this is {kind}"));
        }
    }

    fn wrong(&mut self, node: &Node, message: String) {
        self.found
            .push(Diagnostic::at(self.sources, &node.origin, message));
    }

    fn unknown(&mut self, entry: &Entry, known: &toml::Table, path: &str) {
        let key = &entry.key;
        let place = if path.is_empty() {
            String::new()
        } else {
            format!(" in [{path}]")
        };
        let message = format!("unknown key \"{key}\"{place}");
        let join = |k: &str| {
            if path.is_empty() {
                k.to_string()
            } else {
                format!("{path}.{k}")
            }
        };
        let help = (self.recognise)(key)
            .or_else(|| {
                let elsewhere = find(self.schema, key, "")?;
                Some(format!("did you mean {elsewhere}?"))
            })
            .or_else(|| {
                let near = nearest(key, known.keys().map(String::as_str))?;
                Some(format!("did you mean {}?", join(near)))
            })
            .unwrap_or_else(|| {
                let keys: Vec<&str> = known.keys().map(String::as_str).collect();
                format!("allowed: {}", keys.join(", "))
            });
        self.found
            .push(Diagnostic::at(self.sources, &entry.key_origin, message).help(help));
    }
}

/// Where a key of exactly this name lives, outside of lists.
fn find(schema: &Schema, key: &str, path: &str) -> Option<String> {
    let table = schema.as_table()?;
    let join = |k: &str| {
        if path.is_empty() {
            k.to_string()
        } else {
            format!("{path}.{k}")
        }
    };
    if table.contains_key(key) && !path.is_empty() {
        return Some(join(key));
    }
    table.iter().find_map(|(k, v)| find(v, key, &join(k)))
}

/// Whether `path` (without indices) is a key.
#[cfg(test)]
pub fn has(path: &str) -> bool {
    let schema = Schema::try_from(exemplar()).unwrap();
    let mut node = &schema;
    for part in path.split('.') {
        match node.get(part) {
            Some(n) => node = n,
            None => return false,
        }
    }
    true
}
