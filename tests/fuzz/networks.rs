//! Networks of actuators: ONNX and safetensors files.

use super::drive::Target;
use super::mutate::Corpus;
use super::text::root;
use ostler_sim::config::TaskConfig;
use ostler_sim::model::mjcf;
use ostler_sim::task;
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
    let mut names: Vec<_> = std::fs::read_dir(&kept)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    names.sort();
    let files = names.iter().map(|f| std::fs::read(f).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let robot = folder.path().join("wheel.xml");
    std::fs::write(&robot, WHEEL).unwrap();
    let data = "lstm_2_step.onnx.data";
    std::fs::copy(kept.join(data), folder.path().join(data)).unwrap();
    let model = Arc::new(mjcf::load(&robot).unwrap());
    let task = |file: &str, law: &str| -> TaskConfig {
        let history = if law == "mlp" {
            ", history = [0, 1, 3]"
        } else {
            ""
        };
        toml::from_str(&format!(
            "[[actuator]]\njoints = [\"hub\"]\nmodel = \"{law}\"\nnetwork = {{ file = \"{file}\"{history} }}\n"
        ))
        .unwrap()
    };
    let names = ["net.onnx", "net.safetensors"];
    let tasks: Vec<TaskConfig> = (names.iter())
        .flat_map(|file| ["mlp", "lstm"].map(|law| task(file, law)))
        .collect();
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
