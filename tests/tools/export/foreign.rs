//! ONNX files of other programs: they act as onnxruntime says, or are refused by name.

use crate::common::{Place, TASK};
use crate::support::referee::referee_python;
use ostler_run::readers::actions;
use serde_json::Value;
use std::process::Command;

#[test]
fn files_of_other_programs_act_as_onnxruntime_says_or_are_refused_by_name() {
    let Some(python) = referee_python() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = crate::common::root().join("tests/referee/foreign_onnx.py");
    let out = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    let rows = |value: &Value| -> Vec<Vec<f32>> { serde_json::from_value(value.clone()).unwrap() };
    let obs = rows(&told["obs"]);
    let acts = |name: &str| {
        let file = folder.path().join(format!("{name}.onnx"));
        actions(&std::fs::read(file).unwrap(), &obs)
    };
    let run = told["run"].as_object().unwrap();
    assert!(run.len() > 25, "{}", run.len());
    for (name, wanted) in run {
        let (ours, theirs) = (acts(name).unwrap_or_else(|e| panic!("{name}: {e}")), rows(wanted));
        let theirs = theirs.concat();
        let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5 * b.abs().max(1.0);
        let same = ours.len() == theirs.len() && ours.iter().zip(&theirs).all(near);
        assert!(same, "{name}: {ours:?}, onnxruntime's {theirs:?}");
    }
    for name in told["refused"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        let why = acts(name).expect_err(name);
        for word in name.split(' ') {
            assert!(why.contains(word), "{name}: {why}");
        }
        // Not libtorch's list of calls.
        assert!(!why.contains('\n') && !why.contains("Internal"), "{name}: {why}");
    }
}

#[test]
fn a_file_that_cannot_act_is_refused_before_anything_runs() {
    let Some(python) = referee_python() else {
        return;
    };
    let place = Place::with(TASK);
    let script = r#"
import numpy, onnx
from onnx import TensorProto, helper, numpy_helper
def save(name, w, names=None, more=()):
    value = lambda name, n: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", n])
    nodes = [helper.make_node("MatMul", ["obs", "w"], ["actions"]), *more]
    graph = helper.make_graph(nodes, "g", [value("obs", 4)], [value("actions", w.shape[1])],
        [numpy_helper.from_array(w.astype(numpy.float32), "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    if names:
        helper.set_model_props(model, {"action_names": names})
    onnx.save(model, name)
save("tall.onnx", numpy.zeros((5, 1)))
save("wide.onnx", numpy.zeros((4, 2)))
save("other.onnx", numpy.zeros((4, 1)), "knee")
"#;
    let out = Command::new(python).arg("-c").arg(script).current_dir(place.path(".")).output();
    let out = out.unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let eval = |file| ["eval", "pole.toml", "--policy", file, "--episodes", "2"];
    for (file, part) in [
        ("tall.onnx", "cannot be used: node MatMul of \"actions\": mat1 and mat2"),
        ("wide.onnx", "cannot be used: it gives actions of shape"),
    ] {
        let why = place.fails(2, &eval(file));
        assert!(why.contains(part) && !why.contains("Internal"), "{why}");
    }
    // Another robot's, perhaps: it acts, and its names are said.
    let out = place.run(&eval("other.onnx"));
    let said = crate::common::text(&out);
    assert!(out.status.success() && said.contains("its actions are knee;"), "{said}");
}
