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
    ActionKind, ActionTerm, AgentsConfig, CommandTerm, JointLimit, NoiseKind, ObservationGroup,
    ObservationTerm, OneOrMany, ResetTerm, RewardOptions, RewardTerm, SimConfig, TaskConfig,
    TerminationTerm,
};
use ostler_sim::names::nearest;
use std::collections::BTreeMap;
use toml::Value as Schema;

/// The key that stands for any key of a free-form table.
pub(crate) const ANY: &str = "*";

fn exemplar() -> Config {
    let number = || OneOrMany::One(0.0);
    let range = [0.0, 0.0];
    let text = String::new;
    Config {
        agents: Some(AgentsConfig {
            names: vec![text()],
            ..AgentsConfig::default()
        }),
        task: TaskConfig {
            robot: text(),
            robot_folder: Some(text()),
            default_pose: Some(text()),
            params: BTreeMap::from([(ANY.to_string(), 0.0)]),
            action: vec![ActionTerm {
                actuators: vec![text()],
                kind: ActionKind::default(),
                scale: number(),
                offset: number(),
                clip: Some(range),
                choices: vec![vec![0.0]],
                stiffness: Some(0.0),
                damping: Some(0.0),
                agents: Some(vec![text()]),
            }],
            command: vec![CommandTerm {
                name: text(),
                range: vec![range],
                unit: text(),
                resample_s: 0.0,
            }],
            observation: vec![ObservationTerm {
                name: text(),
                expr: text(),
                group: ObservationGroup::default(),
                scale: number(),
                clip: Some(range),
                noise: 0.0,
                // The default is left out of what is written.
                noise_kind: NoiseKind::Normal,
                agents: Some(vec![text()]),
            }],
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
                uniform: Some(range),
                normal: Some(0.0),
                value: Some(number()),
            }],
            rewards: RewardOptions {
                scale_by_dt: false,
                clip: Some(range),
                max_abs: Some(0.0),
            },
            agents: None,
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
        "task.action.scale"
        | "task.action.offset"
        | "task.observation.scale"
        | "task.reset.value" => Some(Kind::NumberOrList),
        "agents.policies" => Some(Kind::Policies),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Auto,
    AutoOrNone,
    NumberOrList,
    Policies,
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
            (expected, found) => {
                let expected = match expected {
                    Schema::Float(_) => "a number",
                    Schema::Integer(_) => "a whole number",
                    Schema::Boolean(_) => "true or false",
                    Schema::String(_) => "text in quotes",
                    Schema::Array(_) => "a list",
                    _ => "a table",
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
            Kind::Policies => (
                match &node.value {
                    Value::Str(s) => s == "shared" || s == "separate",
                    Value::Array(items) => items.iter().all(|n| matches!(n.value, Value::Str(_))),
                    _ => false,
                },
                "\"shared\", \"separate\" or a list with a policy's name for each agent",
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
