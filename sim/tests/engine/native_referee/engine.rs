//! The engine under test, and what it is allowed.

use super::pending::pending;
use crate::support::share;
use ostler_sim::Model;
use ostler_sim::physics::evaluate::{Evaluation, Precision, States};
use ostler_sim::physics::native::generate::physics_hash;
use ostler_sim::physics::native::lower::{LowerOptions, lower};
use ostler_sim::physics::native::{EvalOptions, Evaluator};
use ostler_sim::referee::residual::{Gate, Table, compare};
use ostler_sim::referee::states::Reference;
use std::path::{Path, PathBuf};

pub const PRECISIONS: [(&str, Precision); 2] = [("f64", Precision::F64), ("f32", Precision::F32)];

/// States of which the share beyond a gate says something.
const MANY: usize = 1000;

/// The native engine at given states.
pub fn evaluate(
    model: &Model,
    precision: Precision,
    states: &States<'_>,
) -> Result<Evaluation, String> {
    evaluator(model, precision)?.evaluate(states, None).map_err(|e| e.to_string())
}

/// The same for many calls.
pub fn evaluator(model: &Model, precision: Precision) -> Result<Evaluator<'_>, String> {
    Evaluator::new(model, &EvalOptions::default(), precision).map_err(|e| e.to_string())
}

/// The gate, times `TOL_SCALE`.
pub fn gate(precision: Precision) -> Gate {
    let factor = match std::env::var("TOL_SCALE") {
        Ok(text) => text.parse().expect("TOL_SCALE is a number"),
        Err(_) => 1.0,
    };
    Gate::of(precision).scaled(factor)
}

/// Compares an engine's answers, or says why there are none.
pub fn table(
    model: &Model,
    label: &str,
    precision: Precision,
    ours: Result<Evaluation, String>,
    reference: &Reference,
) -> Result<Table, String> {
    let gate = gate(precision);
    // One state of 1,000 may be beyond `most`: a share of the states is too small to count
    // these. In part 99 % are held to it, and every state to `all` as ever.
    if precision == Precision::F32 && !share::in_full() && reference.states.count >= MANY {
        let wide = Gate { most: gate.all, ..gate };
        let mut table = compare(model, label, &ours?, reference, wide);
        for (what, q) in [("qacc", &table.qacc), ("next state", &table.next)] {
            if q.p99 > gate.most {
                let text = format!("{what}: 99 % {:.1e} (allowed {:.0e})", q.p99, gate.most);
                table.beyond.push(text);
            }
        }
        return Ok(table);
    }
    Ok(compare(model, label, &ours?, reference, gate))
}

/// Differences from MuJoCo, over several models.
#[derive(Default)]
pub struct Findings {
    different: Vec<String>,
    known: Vec<String>,
    features: bool,
}

impl Findings {
    /// For models of one feature each, which are no robots: as they are without changed
    /// fields, single precision holds every state of theirs to `all`, and not 999 of 1,000 to
    /// `most`. They are made to be extreme (a link of a hundredth of another's mass, a joint
    /// without damping or armature near the edge of what a rod reaches), and many rest: the
    /// largest acceleration is then below 1, the forces that cancel in it are of hundreds.
    pub fn of_features() -> Self {
        Self { features: true, ..Self::default() }
    }

    /// Compares one model in both precisions, prints the tables.
    pub fn check(&mut self, name: &str, model: &Model, reference: &Reference) {
        let before = self.different.len() + self.known.len();
        for (label, precision) in PRECISIONS {
            let ours = evaluate(model, precision, &reference.states.view());
            let table = if self.features && precision == Precision::F32 {
                let gate = gate(precision);
                let wide = Gate { most: gate.all, ..gate };
                ours.map(|ours| compare(model, label, &ours, reference, wide))
            } else {
                table(model, label, precision, ours, reference)
            };
            self.judge(name, table, label, reference);
        }
        if before == self.different.len() + self.known.len()
            && let Some(why) = pending(name)
        {
            println!("{name} is pending ({why}) and agrees: take it off the list");
        }
    }

    /// Takes in a comparison, prints its table.
    pub fn judge(
        &mut self,
        name: &str,
        table: Result<Table, String>,
        label: &str,
        reference: &Reference,
    ) {
        assert!(reference.states.count > 0, "{name}: no states");
        match table {
            Ok(table) => {
                println!("{name}\n{table}");
                self.add(name, label, &table.beyond);
            }
            Err(error) => self.add(name, label, &[error]),
        }
    }

    pub fn add(&mut self, name: &str, label: &str, beyond: &[String]) {
        let list = match pending(name) {
            Some(_) => &mut self.known,
            None => &mut self.different,
        };
        list.extend(beyond.iter().map(|b| format!("{name}, {label}: {b}")));
    }

    /// Fails where anything differed that is not known to.
    #[track_caller]
    pub fn finish(self) {
        if !self.known.is_empty() {
            println!("{} known differences:\n{}", self.known.len(), self.known.join("\n"));
        }
        assert!(
            self.different.is_empty(),
            "{} differences:\n{}",
            self.different.len(),
            self.different.join("\n")
        );
    }
}

/// Whether this model is to be compared: always but in a full run of what was proved before. Its
/// proof hangs on its files, which MuJoCo reads, and on what the kernels know of it.
pub fn due(name: &str, model: &Model) -> bool {
    share::due(name, &model_hash(model))
}

/// The hash of a model's files and of its physics.
pub fn model_hash(model: &Model) -> String {
    let mut hash = blake3::Hasher::new();
    for source in &model.sources {
        hash.update(&std::fs::read(source).unwrap());
    }
    match lower(model, &LowerOptions::default()) {
        Ok(plan) => hash.update(physics_hash(&plan).as_bytes()),
        Err(refused) => hash.update(refused.what.as_bytes()),
    };
    hash.finalize().to_hex()[..16].to_owned()
}

/// A folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The MJCF files of a folder, in order, by their stems.
pub fn files(folder: &str) -> Vec<(String, PathBuf)> {
    let mut all: Vec<(String, PathBuf)> = std::fs::read_dir(repository(folder))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "xml"))
        .map(|p| (p.file_stem().unwrap().to_str().unwrap().to_string(), p))
        .collect();
    all.sort();
    assert!(!all.is_empty(), "{folder} is empty");
    all
}
