//! Networks of actuators: ONNX and safetensors files.

use super::drive::Target;
use super::mutate::Corpus;
use crate::common::{Place, TASK, root};
use ostler_sim::config::TaskConfig;
use ostler_sim::model::mjcf;
use ostler_sim::task;
use ostler_trainer::readers;
use std::sync::Arc;

/// Operators and names that a graph may have.
const WORDS: [&str; 14] = [
    "Gemm",
    "MatMul",
    "Add",
    "Mul",
    "Div",
    "LSTM",
    "Relu",
    "Elu",
    "Transpose",
    "Reshape",
    "Gather",
    "Slice",
    "Identity",
    "Constant",
];

const WHEEL: &str = r#"<mujoco><worldbody><body><joint name="hub" axis="0 0 1"/>
  <inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/></body></worldbody></mujoco>"#;

/// Exports of PyTorch and their weights, damaged, read as either kind of file.
pub fn networks() -> Target {
    let kept = root().join("tests/fixtures/onnx");
    let mut names: Vec<_> = std::fs::read_dir(&kept).unwrap().map(|f| f.unwrap().path()).collect();
    names.sort();
    let files = names.iter().map(|f| std::fs::read(f).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let robot = folder.path().join("wheel.xml");
    std::fs::write(&robot, WHEEL).unwrap();
    let data = "lstm_2_step.onnx.data";
    std::fs::copy(kept.join(data), folder.path().join(data)).unwrap();
    let model = Arc::new(mjcf::load(&robot).unwrap());
    let task = |file: &str, law: &str| -> TaskConfig {
        let history = if law == "mlp" { ", history = [0, 1, 3]" } else { "" };
        toml::from_str(&format!(
            "[[actuator]]\njoints = [\"hub\"]\nmodel = \"{law}\"\nnetwork = {{ file = \"{file}\"{history} }}\n"
        ))
        .unwrap()
    };
    let names = ["net.onnx", "net.safetensors"];
    let tasks: Vec<TaskConfig> =
        (names.iter()).flat_map(|file| ["mlp", "lstm"].map(|law| task(file, law))).collect();
    Target {
        corpus: Corpus {
            files,
            words: WORDS.iter().map(|w| w.as_bytes().to_vec()).collect(),
            text: false,
        },
        read: Box::new(move |bytes| {
            let mut good = false;
            for name in names {
                std::fs::write(folder.path().join(name), bytes).unwrap();
            }
            for task in &tasks {
                match task::robot(&model, task) {
                    Ok(made) => good |= made.networks.len() == 1,
                    Err(e) => assert!(!e.to_string().is_empty()),
                }
            }
            good
        }),
    }
}

/// Operators of exported policies.
const OPERATORS: [&str; 16] = [
    "Gemm",
    "MatMul",
    "Add",
    "Mul",
    "Div",
    "Gather",
    "Reshape",
    "Concat",
    "Where",
    "Clip",
    "ArgMax",
    "LayerNormalization",
    "Unsqueeze",
    "Squeeze",
    "Cast",
    "actions",
];

/// Exported policies, damaged, which act.
pub fn policy() -> Target {
    let place = Place::with(&TASK.replace("expr = \"qvel\"", "expr = \"qvel\"\nhistory = 3"));
    let plain: &[&str] = &[];
    let kinds = [
        plain,
        &["actor.rnn_type=gru", "actor.rnn_hidden_dim=8"],
        &["actor.layer_norm=true", "actor.activation=tanh"],
    ];
    let files = kinds.iter().enumerate().map(|(i, more)| {
        let run = format!("run{i}");
        place.train(&run, 1, more);
        place.ok(&["export", &run, "--format", "onnx", "--out", &run, "--name", "p"]);
        std::fs::read(place.path(&run).join("p.onnx")).unwrap()
    });
    Target {
        corpus: Corpus {
            files: files.collect(),
            words: OPERATORS.iter().map(|w| w.as_bytes().to_vec()).collect(),
            text: false,
        },
        read: Box::new(move |bytes| match readers::policy(bytes) {
            Ok(numbers) => numbers > 0,
            Err(e) => {
                assert!(!e.is_empty());
                false
            }
        }),
    }
}
