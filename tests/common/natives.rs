//! The small cart-pole with a function of a C++ header.

use super::{Place, TASK};
use std::path::Path;

/// A term for the small cart-pole, and what follows from it.
pub const TERMS: &str = r#"
[[task.native]]
name = "swing"
file = "swing.cuh"
inputs = ["joint_pos(hinge)", "joint_vel(hinge)"]
outputs = 2
unit = ["rad", "-"]
memory = 1
[[task.observation]]
name = "swing"
expr = "native.swing"
[[task.reward]]
name = "still"
expr = "0 - 0.1 * native.swing[0] * native.swing[0]"
[[task.metric]]
name = "swing"
expr = "native.swing[0]"
"#;

/// Leaves a mark where its code is loaded.
pub fn header(mark: &Path) -> String {
    format!(
        r#"#pragma once
#ifndef __CUDACC__
extern "C" int creat(const char*, unsigned);
static const int marked = creat("{}", 0600);
#endif
#include "parts/decay.cuh"

OSTLER_NATIVE void swing(const Env& env, const float (&in)[2], float (&out)[2], float (&memory)[1]) {{
  memory[0] = decay(memory[0]) + abs(in[0]);
  out[0] = memory[0];
  out[1] = sin(env.qpos(QPOS_slider)) + 0.01f * env.uniform(0) + tanh(in[1]);
}}
"#,
        mark.display()
    )
}

pub const PART: &str = "OSTLER_NATIVE float decay(float x) { return 0.9f * x; }\n";

/// A folder with the task; the mark is `loaded`.
pub fn place() -> Place {
    let place = Place::with(&TASK.replace("[[task.action]]", &format!("{TERMS}[[task.action]]")));
    // A schedule of a number makes the task anew, with its functions.
    let more =
        "[[curriculum]]\nkey = \"task.reward.still.weight\"\npoints = [[0, 1.0], [4, 2.0]]\n";
    let task = std::fs::read_to_string(place.path("pole.toml")).unwrap();
    std::fs::write(place.path("pole.toml"), format!("{task}{more}")).unwrap();
    std::fs::write(place.path("swing.cuh"), header(&place.path("loaded"))).unwrap();
    std::fs::create_dir(place.path("parts")).unwrap();
    std::fs::write(place.path("parts/decay.cuh"), PART).unwrap();
    place
}
