//! Foreign text in the C of a deployment: whatever it is, it adds nothing and names are kept apart.

use super::*;
use crate::config::TaskConfig;
use crate::test_support::hostile::{MARK, texts};
use crate::test_support::need::Need;
use ostler_model::mjcf;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Sensors of a robot, each an observation.
const SENSORS: usize = 400;
const JOINTS: usize = 16;
const COMMANDS: usize = 16;
/// Foreign texts of a header: a robot's names, and names, expressions and units of its task.
const FOREIGN: usize =
    SENSORS + 2 * (JOINTS + 1) + 3 * (SENSORS + COMMANDS + 2) + 2 * COMMANDS + 2 * JOINTS;

fn robot() -> Model {
    let mut text = String::from(
        "<mujoco><worldbody><body name='base'><freejoint/><geom size='0.1'/><site name='s'/>\n",
    );
    for i in 0..JOINTS {
        let _ = writeln!(text, "<body name='b{i}'><joint name='j{i}'/><geom size='0.1'/></body>");
    }
    text += "</body></worldbody><actuator>\n";
    for i in 0..JOINTS {
        let _ = writeln!(text, "<position name='u{i}' joint='j{i}' kp='1'/>");
    }
    text += "</actuator><sensor>\n";
    for i in 0..SENSORS {
        let _ = writeln!(text, "<touch name='t{i}' site='s'/>");
    }
    text += "</sensor></mujoco>";
    mjcf::parse(Path::new("robot.xml"), text).unwrap()
}

fn task() -> TaskConfig {
    let mut text = String::from("robot = \"\"\n[[action]]\nactuators = [\"*\"]\n");
    for i in 0..COMMANDS {
        let _ = write!(
            text,
            "[[command]]\nname = \"c{i}\"\nrange = [[0.0, 1.0]]\n[[observation]]\nname = \"c{i}\"\nexpr = \"command.c{i}\"\n"
        );
    }
    for i in 0..SENSORS {
        let _ = write!(text, "[[observation]]\nname = \"t{i}\"\nexpr = \"sensor(t{i})\"\n");
    }
    text += "[[observation]]\nname = \"joints\"\nexpr = \"joint_pos\"\n\
             [[observation]]\nname = \"up\"\nexpr = \"[up(base).z, up(b0).z]\"\n\
             [[reward]]\nname = \"r\"\nexpr = \"1\"\n";
    toml::from_str(&text).unwrap()
}

/// A header whose names, expressions and units are `foreign`.
fn header(task: &Task, model: &Model, foreign: &mut impl Iterator<Item = String>) -> String {
    let mut model = model.clone();
    let mut give = |name: &mut String| *name = foreign.next().unwrap();
    model.sensors.iter_mut().for_each(|s| give(&mut s.name));
    model.joints.iter_mut().for_each(|j| give(&mut j.name));
    model.bodies[1..].iter_mut().for_each(|b| give(&mut b.name));
    let mut of = Deployment::new(task, &model, None, 0.02, 100).unwrap();
    for term in &mut of.terms {
        give(&mut term.name);
        give(&mut term.expr);
        give(&mut term.unit);
    }
    for command in &mut of.commands {
        give(&mut command.name);
        give(&mut command.unit);
    }
    for control in &mut of.controls {
        give(&mut control.name);
        give(&mut control.joint.as_mut().unwrap().name);
    }
    let parts = of.measured(&[]).unwrap().c("p");
    format!(
        "#include <string.h>\n{}\n{}\ntypedef struct {{\n{}}} p_state;\n{}",
        parts.runtime, parts.sensors, parts.state, parts.functions
    )
}

/// Measures 1, 2, 3, ... by the names of a header's fields, in order, and returns how many of the
/// observations are something else.
fn program(header: &str) -> String {
    let fields = header.lines().filter_map(|l| l.strip_prefix("  float "));
    let fields = fields.take_while(|l| !l.starts_with("action"));
    let mut text = String::from(
        "#include \"p.h\"\nint main(void) {\n  p_sensors s;\n  p_state m;\n  float terms[2000];\n  \
         int k, wrong = 0;\n  memset(&s, 0, sizeof s);\n  memset(&m, 0, sizeof m);\n",
    );
    let mut scalars = 0;
    for field in fields {
        if let Some(name) = field.strip_suffix("[1];") {
            scalars += 1;
            let _ = writeln!(text, "  s.{name}[0] = {scalars}.0f;");
        }
    }
    assert_eq!(scalars, COMMANDS + SENSORS);
    // Sensors are measured first, commands are observed first.
    let _ = write!(
        text,
        "  p_observe(&m, &s, terms);\n  \
         for (k = 0; k < {COMMANDS}; k++) wrong += terms[k] != (float)({SENSORS} + k + 1);\n  \
         for (k = 0; k < {SENSORS}; k++) wrong += terms[{COMMANDS} + k] != (float)(k + 1);\n  \
         p_act(&m, terms, terms);\n  return wrong > 0;\n}}\n"
    );
    text
}

#[test]
fn ten_thousand_hostile_names_add_nothing_to_c_and_are_read_back() {
    let compilers: Vec<&str> = ["gcc", "clang"]
        .into_iter()
        .filter(|c| Command::new(c).arg("--version").output().is_ok())
        .collect();
    let found = match compilers.is_empty() {
        true => Err("neither gcc nor clang"),
        false => Ok(()),
    };
    if Need::Compiler.or_skip(found).is_none() {
        return;
    }
    let model = robot();
    let task = Task::compile(&model, &task(), 0.02).unwrap();
    let headers = 10_000_usize.div_ceil(FOREIGN);
    let mut foreign = texts(headers * FOREIGN, 41).into_iter();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for k in 0..headers {
        let header = header(&task, &model, &mut foreign);
        std::fs::write(path("p.h"), &header).unwrap();
        std::fs::write(path("p.c"), program(&header)).unwrap();
        for compiler in &compilers {
            let out = Command::new(compiler)
                .args(["-std=c99", "-trigraphs", "-pedantic", "-Wall", "-Wextra"])
                .args(["-Wcomment", "-Werror", "p.c", "-o", "p", "-lm"])
                .current_dir(folder.path())
                .output()
                .unwrap();
            let err = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success(), "{compiler}, header {k}: {err}");
            let status = Command::new(path("p")).status().unwrap();
            assert!(status.success(), "{compiler}, header {k}: {status}");
            let symbols = Command::new("nm").arg(path("p")).output().unwrap();
            let symbols = String::from_utf8_lossy(&symbols.stdout);
            assert!(symbols.contains(" main\n"), "{symbols}");
            assert!(!symbols.contains(MARK), "{compiler}, header {k}: {symbols}");
        }
    }
    assert_eq!(foreign.next(), None);
}

#[test]
fn a_comment_keeps_its_text_and_its_end() {
    for (text, plain) in [
        ("joint_pos(a) * 2 / 3 ?", "joint_pos(a) * 2 / 3 ?"),
        ("größe 机", "größe 机"),
        ("*/ /*/ **//", "* / / * / ** //"),
        ("*\\\n/", "*  /"),
        ("*??/\n/", "*? ?/ /"),
        ("???/", "? ? ?/"),
        ("a\u{2028}\u{202e}\0\u{200b}b", "a    b"),
    ] {
        assert_eq!(comment(text), plain, "{text:?}");
    }
    for text in texts(10_000, 7) {
        let plain = comment(&text);
        assert!(!plain.contains(['\n', '\r', '\\', '\0']), "{text:?}");
        for mark in ["*/", "/*", "??"] {
            assert!(!plain.contains(mark), "{text:?}");
        }
    }
}

#[test]
fn an_identifier_is_one_whatever_the_name() {
    for text in texts(10_000, 8) {
        let name = identifier(&text);
        assert!(name.starts_with(|c: char| c.is_ascii_alphabetic()), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        assert!((1..=65).contains(&name.len()), "{name}");
    }
}
