//! Generated models against MuJoCo; a model that differs is shrunk and printed.

use super::engine::{Findings, PRECISIONS, evaluate, gate, model_hash};
use super::generator::{MODELS, generate};
use super::pending::{known_model, known_refusal};
use super::reference::{mujoco, try_reference};
use super::shrink::shrink;
use super::xml::Node;
use crate::support::share;
use ostler_sim::model::mjcf;
use ostler_sim::physics::evaluate::Precision;
use ostler_sim::referee::mujoco::{MuJoCo, RefereeError};
use ostler_sim::referee::residual::{Gate, Quantiles, Table, compare, errors};
use std::collections::BTreeMap;

const STATES: usize = 24;
/// Models with the other tests.
const SHARE: usize = 40;
/// Models that are shrunk and printed in full.
const SHRUNK: usize = 1;
/// Masses and shapes are random, so are condition numbers: times the gate of robots.
const SLACK: f64 = 10.0;

/// The outcome of a generated model.
enum Outcome {
    /// MuJoCo refuses it.
    Invalid(String),
    /// Ostler refuses it.
    Refused(String),
    /// Both know it: the table in double precision; in single how many states are far
    /// off, and the largest error.
    Compared(Box<Table>, usize, f64),
}

fn judge(mujoco: &mut MuJoCo, node: &Node) -> Outcome {
    let path = mujoco.scratch("generated.xml");
    std::fs::write(&path, node.to_string()).unwrap();
    let model = match mjcf::load(&path) {
        Ok(model) => model,
        // MuJoCo's answer does not matter here.
        Err(e) => return Outcome::Refused(e.to_string()),
    };
    let mut answers = match try_reference(mujoco, &path, &model, STATES, 5) {
        Ok(answers) => answers,
        Err(RefereeError::Refused(why)) => return Outcome::Invalid(why),
        Err(e) => panic!("{e}\n{node}"),
    };
    // Shapes overlap deeply here: MuJoCo's search may end at a depth that is not the least
    // (by up to 3e-4 m, measured along both normals), or at the other of two as deep.
    answers.choice.clone_from(&answers.iterative_next);
    let states = answers.states.view();
    let double = match evaluate(&model, Precision::F64, &states) {
        Ok(ours) => ours,
        Err(e) => return Outcome::Refused(e),
    };
    // Of 24 states a few; the shares hold for all models together.
    let gate_of = |precision| Gate { excused: 0.125, choice: 0.5, ..gate(precision).scaled(SLACK) };
    let table = compare(&model, "f64", &double, &answers, gate_of(Precision::F64));
    let single = match evaluate(&model, Precision::F32, &states) {
        Ok(ours) => ours,
        Err(e) => return Outcome::Refused(e),
    };
    let (qacc, next) = errors(&model, &single, &answers);
    let all = gate_of(Precision::F32).all;
    let far = qacc.iter().zip(&next).filter(|(a, b)| a.max(**b) > all);
    let largest = qacc.iter().copied().fold(0.0, f64::max);
    Outcome::Compared(Box::new(table), far.count(), largest)
}

/// How a table differs, if it does: whether contacts are missing, whether numbers are
/// not finite. A model is shrunk as long as it differs in the same way.
fn manner(table: &Table) -> Option<(bool, bool)> {
    let manner = (table.same_ncon < table.states, table.qacc.max.is_infinite());
    (!table.beyond.is_empty()).then_some(manner)
}

/// The hash of all models.
fn hash() -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("generated.xml");
    let mut hash = blake3::Hasher::new();
    for seed in 0..MODELS {
        let text = generate(seed).to_string();
        hash.update(text.as_bytes());
        std::fs::write(&path, text).unwrap();
        if let Ok(model) = mjcf::load(&path) {
            hash.update(model_hash(&model).as_bytes());
        }
    }
    hash.finalize().to_hex()[..16].to_owned()
}

#[test]
fn generated_models_mean_what_mujoco_says() {
    let Some(mut mujoco) = mujoco() else { return };
    let seeds = match std::env::var("OSTLER_GENERATED") {
        Ok(text) => {
            let seed: u64 = text.parse().expect("OSTLER_GENERATED is a seed");
            seed..seed + 1
        }
        // Their shares are judged together: all are due where one is.
        Err(_) if !share::due("all", &hash()) => return,
        Err(_) => 0..share::of(MODELS as usize, "models", SHARE) as u64,
    };
    let all = seeds.end - seeds.start;
    let mut findings = Findings::default();
    let (mut invalid, mut shrunk) = (0, 0);
    let mut refused = BTreeMap::<&str, u64>::new();
    let mut largest = [Vec::new(), Vec::new()];
    let (mut states, mut excused, mut searched) = (0, 0, 0);
    let (mut choices, mut chosen, mut far) = (0, 0, 0);
    let mut different = 0;
    for seed in seeds {
        let node = generate(seed);
        let name = format!("generated {seed}");
        let (table, off, single) = match judge(&mut mujoco, &node) {
            Outcome::Invalid(why) => {
                println!("{name} is no model: {why}");
                invalid += 1;
                continue;
            }
            Outcome::Refused(why) => {
                match known_refusal(&why) {
                    Some(part) => *refused.entry(part).or_default() += 1,
                    None => findings.add(&name, "refused", &[why]),
                }
                continue;
            }
            Outcome::Compared(table, off, single) => (table, off, single),
        };
        largest[0].push(table.qacc.max);
        largest[1].push(single);
        states += table.states;
        excused += table.excused;
        searched += table.searched;
        let known = known_model(&node.to_string());
        if known.is_none() {
            choices += table.choices;
            chosen += table.chosen;
        }
        let Some(kept) = manner(&table) else {
            far += off;
            continue;
        };
        if let Some(why) = known {
            println!("{name} is known to differ: {why}");
            different += 1;
            continue;
        }
        findings.add(&name, &table.label, &table.beyond);
        println!("{name}\n{table}");
        if shrunk < SHRUNK {
            shrunk += 1;
            let show = &mut |n: &Node| match judge(&mut mujoco, n) {
                Outcome::Compared(table, ..) => manner(&table) == Some(kept),
                _ => false,
            };
            let small = shrink(node, 300, show);
            println!("the smallest that differs:\n{small}");
            if let Outcome::Compared(table, ..) = judge(&mut mujoco, &small) {
                println!("{table}");
            }
        }
    }
    for ((label, precision), errors) in PRECISIONS.into_iter().zip(largest) {
        let q = Quantiles::of(errors);
        println!(
            "largest error of a model, {label}: median {:.1e}, 99 % {:.1e}, max {:.1e} (gate of robots {:.0e})",
            q.median,
            q.p99,
            q.max,
            gate(precision).all
        );
    }
    let known: u64 = refused.values().sum();
    println!(
        "{all} models, {invalid} of them refused by MuJoCo, {known} here; of {states} states {excused} excused, {searched} within MuJoCo's search"
    );
    println!("another contact chosen in {chosen} of {choices} states in which MuJoCo chooses");
    println!("{far} of {states} states far off in single precision");
    for (part, count) in &refused {
        println!("  {count} refused here: {part}");
    }
    println!("{different} models differ as is known");
    assert!(
        (invalid + known + different) * 3 <= all.max(3),
        "{invalid} of {all} models are no models, {known} are refused, {different} differ as known"
    );
    assert!(excused as f64 <= 0.005 * states as f64, "{excused} of {states} states are excused");
    assert!(
        chosen as f64 <= 0.01 * choices as f64,
        "another contact chosen in {chosen} of {choices} states"
    );
    // Condition numbers are random, up to 1e7: single precision cannot follow them all.
    assert!(
        far as f64 <= 0.01 * states as f64,
        "{far} of {states} states are far off in single precision"
    );
    findings.finish();
}
