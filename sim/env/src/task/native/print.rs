//! The C++ of a task's native functions: names of the robot's parts, the headers, and the calls.

use super::{Native, Natives};
use crate::config::Header;
use crate::config::{Included, beside, included};
use ostler_model::Model;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// Functions of C's mathematics whose last bits differ between processors and GPUs.
const INEXACT: &str = "expf exp2f expm1f logf log2f log10f log1pf powf sinf cosf tanf asinf \
    acosf atanf atan2f sinhf coshf tanhf cbrtf hypotf erff tgammaf lgammaf rand random drand48";

/// The text between the view (`kernels/env/native.cuh`) and the environments. `commands`: names
/// and sizes.
pub(super) fn section(
    model: &Model,
    commands: &[(String, usize, String)],
    natives: &Natives,
    headers: &[Arc<Header>],
) -> String {
    let mut text = names(model, commands);
    if natives.runs() {
        let _ = writeln!(
            text,
            "#ifndef __CUDACC__\n#pragma GCC poison {INEXACT}\n#endif\n\
             namespace user {{\nusing namespace ostler;"
        );
        let mut seen: Vec<&str> = Vec::new();
        for header in headers {
            if let Some((name, _)) = header.files.first() {
                expand(header, name, &mut seen, &mut text);
            }
        }
        let _ = writeln!(text, "#line 1 \"native functions\"\n}}");
    }
    for (k, native) in natives.functions.iter().enumerate() {
        call(native, k, natives.runs(), &mut text);
    }
    let _ = writeln!(text, "#line 1 \"task\"");
    text
}

/// The file `name` of a header with what it includes in the places, each text once.
fn expand<'a>(header: &'a Header, name: &str, seen: &mut Vec<&'a str>, text: &mut String) {
    let Some((name, body)) = header.files.iter().find(|(known, _)| known == name) else {
        return;
    };
    // Not by name: two headers may include files of one name.
    if seen.contains(&body.as_str()) {
        return;
    }
    seen.push(body);
    let _ = writeln!(text, "#line 1 \"{name}\"");
    for (number, line) in body.lines().enumerate() {
        let other = match included(line) {
            Some(Included::Own(other)) => beside(name, other),
            _ => None,
        };
        if let Some(other) = other {
            expand(header, &other, seen, text);
            let _ = writeln!(text, "#line {} \"{name}\"", number + 2);
        } else if line.trim() == "#pragma once" {
            text.push('\n');
        } else {
            text.push_str(line);
            text.push('\n');
        }
    }
}

/// Places of the robot's parts and of commands, by name.
fn names(model: &Model, commands: &[(String, usize, String)]) -> String {
    let mut all: Vec<(String, usize)> = Vec::new();
    let mut add = |kind: &str, name: &str, place: usize| {
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let name: String = name.chars().map(word).collect();
        all.push((format!("{kind}_{name}"), place));
    };
    for (i, body) in model.bodies.iter().enumerate() {
        add("BODY", &body.name, i);
    }
    for joint in &model.joints {
        add("QPOS", &joint.name, joint.qpos_adr);
        add("QVEL", &joint.name, joint.dof_adr);
    }
    for (i, geom) in model.geoms.iter().enumerate() {
        add("GEOM", &geom.name, i);
    }
    for (i, actuator) in model.actuators.iter().enumerate() {
        add("ACTUATOR", &actuator.name, i);
    }
    let mut first = 0;
    for (name, width, _) in commands {
        add("COMMAND", name, first);
        first += width;
    }
    // Of names that become one none is meant.
    let mut count: HashMap<&str, usize> = HashMap::new();
    for (name, _) in &all {
        *count.entry(name).or_default() += 1;
    }
    let mut text = String::from("namespace ostler {\nenum : int {\n  PARTS = 0,\n");
    for (name, place) in all.iter().filter(|(name, _)| count[name.as_str()] == 1) {
        let _ = writeln!(text, "  {name} = {place},");
    }
    text + "};\n}\n"
}

/// `native_K(a, e, stage, in)`: calls a function for an environment; NaN where its code may
/// not be compiled.
fn call(native: &Native, k: usize, runs: bool, text: &mut String) {
    let (outputs, memory, width) = (native.row.units.len(), native.memory.len(), native.width());
    let mut arguments = String::from("env");
    if width > 0 {
        arguments += ", in";
    }
    arguments += ", out";
    if memory > 0 {
        arguments += ", memory";
    }
    let body = match runs {
        true => format!("user::{}({arguments});", native.function),
        false => format!("for (int i = 0; i < {outputs}; i++) out[i] = OSTLER_NAN;"),
    };
    let _ = writeln!(
        text,
        "#line 1 \"task.native[{}].function\"\n\
         OSTLER_FN void native_{k}(const EnvArgs& a, long e, unsigned stage, const float (&in)[{}]) {{ \
         (void)in; call_native<{outputs}, {memory}>(a, e, {k}u, stage, {}, {}, \
         [&](const ostler::Env& env, float (&out)[{outputs}], float (&memory)[{}]) OSTLER_INLINE {{ \
         (void)env, (void)memory; {body} }}); }}",
        native.row.index,
        width.max(1),
        native.row.first,
        native.memory.start,
        memory.max(1),
    );
}
