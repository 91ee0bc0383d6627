//! Generated models against MuJoCo; what differs is shrunk and printed.

use super::engine::{Findings, evaluate, gate};
use super::generator::generate;
use super::reference::mujoco;
use super::shrink::shrink;
use super::xml::Node;
use ostler_sim::model::mjcf;
use ostler_sim::physics::evaluate::Precision;
use ostler_sim::referee::mujoco::{MuJoCo, RefereeError};
use ostler_sim::referee::residual::{Table, compare};
use ostler_sim::referee::states::Reference;

const MODELS: u64 = 500;
const STATES: usize = 24;
/// Models that are shrunk and printed in full.
const SHRUNK: usize = 3;
/// Masses and shapes are random, so are condition numbers: times the gate of robots.
const SLACK: f64 = 10.0;

/// What came of a model.
enum Outcome {
    /// MuJoCo refuses it.
    Invalid(String),
    /// Ostler refuses it.
    Refused(String),
    /// Both know it.
    Compared(Box<Table>, Box<Table>),
}

fn judge(mujoco: &mut MuJoCo, node: &Node) -> Outcome {
    let path = mujoco.scratch("generated.xml");
    std::fs::write(&path, node.to_string()).unwrap();
    let file = mujoco.scratch("generated.npz");
    match mujoco.states(&path, &file, STATES, 5) {
        Ok(_) => {}
        Err(RefereeError::Refused(why)) => return Outcome::Invalid(why),
        Err(e) => panic!("{e}\n{node}"),
    }
    let model = match mjcf::load(&path) {
        Ok(model) => model,
        Err(e) => return Outcome::Refused(e.to_string()),
    };
    let answers = Reference::read(&file, &model).unwrap_or_else(|e| panic!("{e}"));
    let mut tables = Vec::new();
    for (label, precision) in super::engine::PRECISIONS {
        match evaluate(&model, precision, &answers.states.view()) {
            Ok(ours) => {
                let gate = gate(precision).scaled(SLACK);
                tables.push(Box::new(compare(&model, label, &ours, &answers, gate)));
            }
            Err(e) => return Outcome::Refused(e),
        }
    }
    let (single, double) = (tables.pop().unwrap(), tables.pop().unwrap());
    Outcome::Compared(double, single)
}

/// How a table differs, if it does: whether contacts are missing, whether numbers
/// are not finite. A model is shrunk as long as it differs in the same way.
fn manner(table: &Table) -> Option<(bool, bool)> {
    let manner = (table.same_ncon < table.states, table.qacc.max.is_infinite());
    (!table.beyond.is_empty()).then_some(manner)
}

#[test]
fn generated_models_mean_what_mujoco_says() {
    let Some(mut mujoco) = mujoco() else { return };
    let seeds = match std::env::var("OSTLER_GENERATED") {
        Ok(text) => {
            let seed: u64 = text.parse().expect("OSTLER_GENERATED is a seed");
            seed..seed + 1
        }
        Err(_) => 0..MODELS,
    };
    let all = seeds.end - seeds.start;
    let mut findings = Findings::default();
    let (mut invalid, mut shrunk) = (0, 0);
    let (mut double_max, mut single_max) = (Vec::new(), Vec::new());
    for seed in seeds {
        let node = generate(seed);
        let name = format!("generated {seed}");
        match judge(&mut mujoco, &node) {
            Outcome::Invalid(why) => {
                println!("{name} is no model: {why}");
                invalid += 1;
            }
            Outcome::Refused(why) => findings.add(&name, "refused", &[why]),
            Outcome::Compared(double, single) => {
                double_max.push(double.qacc.max);
                single_max.push(single.qacc.max);
                if double.beyond.is_empty() {
                    continue;
                }
                findings.add(&name, "f64", &double.beyond);
                println!("{name}\n{double}");
                if shrunk < SHRUNK {
                    shrunk += 1;
                    let kept = manner(&double);
                    let show = &mut |n: &Node| match judge(&mut mujoco, n) {
                        Outcome::Compared(double, _) => manner(&double) == kept,
                        _ => false,
                    };
                    let small = shrink(node, 600, show);
                    println!("the smallest that differs:\n{small}");
                    if let Outcome::Compared(double, _) = judge(&mut mujoco, &small) {
                        println!("{double}");
                    }
                }
            }
        }
    }
    for (label, precision, errors) in [
        ("f64", Precision::F64, double_max),
        ("f32", Precision::F32, single_max),
    ] {
        let q = ostler_sim::referee::residual::Quantiles::of(errors);
        println!(
            "largest error of a model, {label}: median {:.1e}, 99 % {:.1e}, max {:.1e} (gate of robots {:.0e})",
            q.median,
            q.p99,
            q.max,
            gate(precision).all
        );
    }
    println!("{all} models, {invalid} of them refused by MuJoCo");
    assert!(
        invalid * 10 <= all,
        "{invalid} of {all} models are no models"
    );
    findings.finish();
}
