//! Whether MuJoCo reads the same robot in a file: everything that crosses to it goes by number,
//! so the names behind the numbers have to be the same, in the same order.

use ostler_model::{JointKind, Model};
use serde_json::Value;

/// What a body may differ in, relative to its mass: meshes are measured by either program.
const MASS: f64 = 1e-3;

/// MuJoCo's numbers of geoms: it counts those that are only seen, too.
pub(super) fn known(model: &Model) -> Vec<usize> {
    (0..model.geoms.len() + model.skipped.len())
        .filter(|g| model.skipped.binary_search(g).is_err())
        .collect()
}

/// Compares the answer of `opened` (`tests/referee/mujoco_worlds.py`, `named`) with the model.
///
/// # Errors
/// The first difference, in words.
pub fn check(model: &Model, theirs: &Value) -> Result<(), String> {
    let seen = model.geoms.len() + model.skipped.len();
    for (what, count) in [
        ("nq", model.nq),
        ("nv", model.nv),
        ("nu", model.nu()),
        ("nbody", model.bodies.len()),
        ("njnt", model.joints.len()),
        ("ngeom", seen),
        ("neq", model.equalities.len()),
        ("ntendon", model.tendons.len()),
        ("nsensor", model.sensors.len()),
    ] {
        if theirs[what].as_u64() != Some(count as u64) {
            return Err(format!("{what} is {}; here it is {count}", theirs[what]));
        }
    }
    let body = |b: usize| model.bodies[b].name.as_str();
    let joint = |j: usize| model.joints[j].name.as_str();
    for (i, b) in model.bodies.iter().enumerate() {
        let row = &theirs["bodies"][i];
        same("body", i, &b.name, &row[0])?;
        same("the parent of body", i, body(b.parent), &theirs["bodies"][index(&row[1])][0])?;
        let mass = row[2].as_f64().unwrap_or(f64::NAN);
        let close = (mass - b.mass).abs() <= MASS * b.mass.max(1e-9);
        // The world's means nothing.
        if i > 0 && !close {
            let name = &b.name;
            return Err(format!("body \"{name}\" weighs {mass} kg; here it is {} kg", b.mass));
        }
    }
    for (i, j) in model.joints.iter().enumerate() {
        let row = &theirs["joints"][i];
        same("joint", i, &j.name, &row[0])?;
        let kind = match j.kind {
            JointKind::Free => 0,
            JointKind::Ball => 1,
            JointKind::Slide => 2,
            JointKind::Hinge => 3,
        };
        if [index(&row[1]), index(&row[2])] != [kind, j.body] {
            let name = &j.name;
            return Err(format!("joint \"{name}\" is of another kind or on another body"));
        }
    }
    for (g, i) in model.geoms.iter().zip(known(model)) {
        let row = &theirs["geoms"][i];
        same("geom", i, &g.name, &row[0])?;
        if index(&row[1]) != g.body {
            return Err(format!("geom \"{}\" is on another body", g.name));
        }
    }
    for (i, a) in model.actuators.iter().enumerate() {
        let row = &theirs["actuators"][i];
        same("actuator", i, &a.name, &row[0])?;
        if let Some(own) = a.joint()
            && index(&row[1]) != own
        {
            let (name, own) = (&a.name, joint(own));
            return Err(format!("actuator \"{name}\" does not act on joint \"{own}\""));
        }
    }
    for (i, s) in model.sensors.iter().enumerate() {
        same("sensor", i, &s.name, &theirs["sensors"][i])?;
    }
    for (i, t) in model.tendons.iter().enumerate() {
        same("tendon", i, &t.name, &theirs["tendons"][i])?;
    }
    Ok(())
}

fn index(value: &Value) -> usize {
    value.as_u64().map_or(usize::MAX, |x| x as usize)
}

/// What the file leaves without a name has a made-up one here alone.
fn same(what: &str, i: usize, ours: &str, theirs: &Value) -> Result<(), String> {
    match theirs.as_str() {
        Some("") => Ok(()),
        // A name is one line here.
        Some(name) if name.replace(['\n', '\r'], " ") == ours => Ok(()),
        _ => Err(format!("{what} {i} is called {theirs}; here it is \"{ours}\"")),
    }
}
