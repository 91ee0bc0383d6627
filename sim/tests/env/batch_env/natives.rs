//! Pins: what a native function sees and when it is called, what it remembers; the same bits
//! for any threads, batch and shard, and after a snapshot; faults and mistakes.

use super::point_mass::{Batch, Out, SMALL, build, task};
use ostler_sim::EpisodeStats;
use ostler_sim::config::read_headers as read;
use ostler_sim::config::{AgentsConfig, Leave, TaskConfig};
use ostler_sim::env::BatchEnv;
use std::path::Path;

const HEADER: &str = r#"#pragma once
#include "parts/helper.cuh"

// All that expressions read, and two ways to get it.
OSTLER_NATIVE void view(const Env& env, float (&out)[16]) {
  const Vec3 pos = env.body_pos(BODY_ball), velocity = env.body_lin_vel(BODY_ball);
  const Quat turn = env.body_quat(BODY_cart);
  out[0] = env.qpos(QPOS_slider);
  out[1] = env.qvel(QVEL_slider);
  out[2] = pos.x;
  out[3] = pos.z;
  out[4] = velocity.x;
  out[5] = env.body_ang_vel(BODY_ball).z;
  out[6] = turn.w;
  out[7] = env.action(0);
  out[8] = env.last_action(1);
  out[9] = env.ctrl(ACTUATOR_servo);
  out[10] = env.command(COMMAND_goal + 1);
  out[11] = env.time();
  out[12] = env.step_dt();
  out[13] = (float)env.step();
  out[14] = env.contact_force(GEOM_ball);
  out[15] = env.actuator_force(ACTUATOR_push);
}

OSTLER_NATIVE void maths(const Env&, const float (&in)[2], float (&out)[13]) {
  const float x = in[0], y = in[1];
  out[0] = exp(x);
  out[1] = log(abs(y) + 1.0f);
  out[2] = sin(x) + cos(y);
  out[3] = tan(x);
  out[4] = atan2(y, x);
  out[5] = tanh(y);
  out[6] = sqrt(abs(x));
  out[7] = pow(abs(x) + 1.0f, y);
  out[8] = clamp(x, -0.5f, 0.5f);
  out[9] = min(x, y) + max(x, y);
  out[10] = floor(4.0f * x) + round(4.0f * y);
  out[11] = length(cross({x, y, 1.0f}, {1.0f, 2.0f, 3.0f}));
  out[12] = asin(clamp(x, -1.0f, 1.0f)) + acos(clamp(y, -1.0f, 1.0f));
}

// Calls of the episode, a sum of inputs, whether the episode begins.
OSTLER_NATIVE void counts(const Env& env, const float (&in)[2], float (&out)[3], float (&memory)[2]) {
  memory[0] += 1.0f;
  memory[1] += twice(in[0]) + in[1];
  out[0] = memory[0];
  out[1] = memory[1];
  out[2] = env.first() ? 1.0f : 0.0f;
}

OSTLER_NATIVE void chance(const Env& env, float* out) {
  out[0] = env.uniform(5);
  out[1] = env.normal(9);
  out[2] = env.uniform(5);
}

// A bad output, or a bad memory, as it is told.
OSTLER_NATIVE void breaks(const Env&, const float* in, float* out, float* memory) {
  out[0] = in[0] > 0.9f ? 1.0f / 0.0f - 1.0f / 0.0f : 0.0f;
  if (in[0] < -0.9f) memory[0] = 1.0f / 0.0f;
}
"#;
const HELPER: &str = "OSTLER_NATIVE float twice(float x) { return 2.0f * x; }\n";

const ACTIONS: &str = r#"
[[action]]
actuators = ["*"]
[[command]]
name = "goal"
range = [[-1, 1], [2, 3]]
resample_s = 0.06
"#;

fn files(folder: &Path) {
    std::fs::create_dir_all(folder.join("parts")).unwrap();
    std::fs::write(folder.join("own.cuh"), HEADER).unwrap();
    std::fs::write(folder.join("parts/helper.cuh"), HELPER).unwrap();
}

/// A task whose headers may be run.
fn allowed(text: &str) -> TaskConfig {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    let mut task = task(&format!("{ACTIONS}{text}"));
    let within = [folder.path().to_path_buf()];
    read(&mut task, folder.path(), &within, Leave::Run).unwrap_or_else(|e| panic!("{e}"));
    task
}

fn built(b: Batch, task: &TaskConfig) -> BatchEnv {
    build(b, task).unwrap_or_else(|e| panic!("{e}"))
}

fn act(n: usize, step: u32) -> Vec<f32> {
    let wave = |k: usize| ((7 * step as usize + 3 * k) % 11) as f32 / 10.0 - 0.5;
    (0..2 * n).map(wave).collect()
}

#[test]
fn a_function_sees_what_expressions_see() {
    let task = allowed(
        r#"
[let]
seen = "[qpos[0], qvel[0], pos(ball).x, height(ball), lin_vel(ball).x, ang_vel(ball).z, quat(cart).w, action[0], last_action[1], ctrl(servo), command.goal.y, time, step_dt, step_count, contact_force(ball), actuator_force(push)]"
x = "1 * qpos[0]"
y = "1 * qvel[0]"
known = "[exp(x), log(abs(y) + 1), sin(x) + cos(y), tan(x), atan2(y, x), tanh(y), sqrt(abs(x)), (abs(x) + 1)^y, clip(x, -0.5, 0.5), min(x, y) + max(x, y), floor(4 * x) + round(4 * y), norm(cross([x, y, 1], [1, 2, 3])), asin(clip(x, -1, 1)) + acos(clip(y, -1, 1))]"
[[native]]
name = "view"
file = "own.cuh"
outputs = 16
[[native]]
name = "maths"
file = "own.cuh"
inputs = ["1 * qpos[0]", "1 * qvel[0]"]
outputs = 13
[[observation]]
name = "same"
expr = "[native.view - 1 * seen, native.maths - known]"
[[reward]]
name = "same"
expr = "sum(abs(native.view - 1 * seen)) + sum(abs(native.maths - known))"
[[reset]]
target = "qpos"
uniform = [-0.3, 0.3]
[[reset]]
target = "qvel"
uniform = [-1, 1]
"#,
    );
    let b = Batch { n: 70, ..SMALL };
    let mut env = built(b, &task);
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, true);
    let moved = env.physics().state().qpos[0];
    assert!(moved != 0.0);
    for step in 0..12 {
        assert_eq!(out.policy, vec![0.0; 70 * 29], "{step}");
        out.step(&mut env, &act(70, step));
        assert_eq!(out.reward, vec![0.0; 70], "{step}");
        assert_eq!(out.final_policy.iter().filter(|x| **x != 7.0 && **x != 0.0).count(), 0);
    }
}

#[test]
fn a_function_remembers_from_call_to_call_and_begins_with_zeros() {
    let task = allowed(
        r#"
[[native]]
name = "counts"
file = "own.cuh"
inputs = ["action[0]", "state.steps"]
outputs = 3
memory = 2
[[state]]
name = "steps"
init = "0"
update = "state.steps + native.counts[0] - native.counts[0] + 1"
[[observation]]
name = "counts"
expr = "[native.counts, state.steps, previous(native.counts[0]), since(native.counts[0] == 1)]"
[[reward]]
name = "counts"
expr = "native.counts[0] + 100 * native.counts[1]"
"#,
    );
    let mut env = built(SMALL, &task);
    let mut out = Out::new(env.spec(), 3);
    out.reset(&mut env, false);
    let first = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0];
    for row in out.policy.chunks(6) {
        assert_eq!(row, first);
    }
    // By hand: calls that counted, the sum, the state of the task.
    let (mut calls, mut sum, mut steps) = (1.0f32, 0.0f32, 0.0f32);
    for step in 0..13 {
        let actions = act(3, step);
        out.step(&mut env, &actions);
        let ends = (step + 1) % SMALL.steps == 0;
        // Before rewards: the state is that before the step, and what is remembered, too.
        let (one, told) = (calls + 1.0, 2.0 * actions[0]);
        let reward = one + 100.0 * (sum + (told + steps));
        assert!((out.reward[0] - reward).abs() < 1e-4, "{step}: {} {reward}", out.reward[0]);
        // Before observations: the state after the step.
        steps += 1.0;
        sum += told + steps;
        let row = [one, sum, 0.0, steps, calls, 0.02 * (one - 1.0)];
        calls = one;
        // Of each episode that was cut short, in a place of its own.
        let last = 3 * 6 * (step / SMALL.steps) as usize;
        let shown = match ends {
            true => &out.final_policy[last..last + 6],
            false => &out.policy[..6],
        };
        let apart = shown.iter().zip(row).map(|(x, y)| (x - y).abs());
        assert!(apart.fold(0.0, f32::max) < 1e-5, "{step}: {shown:?} {row:?}");
        if ends {
            assert_eq!(out.policy[..6], first);
            (calls, sum, steps) = (1.0, 0.0, 0.0);
        }
    }
}

/// A task of everything, whose observations and rewards follow from functions.
fn mixed() -> TaskConfig {
    allowed(
        r#"
[[native]]
name = "chance"
file = "own.cuh"
outputs = 3
[[native]]
name = "counts"
file = "own.cuh"
inputs = ["action[0] + native.chance[1]", "0.1 * command.goal.x"]
outputs = 3
unit = ["-", "m", "-"]
memory = 2
[[observation]]
name = "all"
expr = "[native.chance, 1 * native.counts]"
noise = 0.01
[[reward]]
name = "all"
expr = "native.chance[0] + sum(1 * native.counts)"
[[termination]]
name = "lucky"
expr = "native.chance[0] > 0.95"
"#,
    )
}

/// The observations and rewards of some steps.
fn played(
    env: &mut BatchEnv,
    first: usize,
    all: usize,
    steps: std::ops::Range<u32>,
    begin: bool,
) -> Vec<Vec<u32>> {
    let n = env.spec().num_envs;
    let mut out = Out::new(env.spec(), 1);
    let mut rows = Vec::new();
    if begin {
        out.reset(env, true);
    }
    for step in steps {
        let actions = act(all, step)[2 * first..][..2 * n].to_vec();
        out.step(env, &actions);
        let numbers = out.policy.iter().chain(&out.reward).chain(&out.terminated);
        rows.push(numbers.map(|x| x.to_bits()).collect());
    }
    rows
}

#[test]
fn bits_depend_on_no_thread_block_shard_or_snapshot() {
    let task = mixed();
    let b = Batch { n: 150, steps: 9, ..SMALL };
    let mut whole = built(b, &task);
    let rows = played(&mut whole, 0, 150, 0..30, true);
    let mut threads = built(Batch { threads: 3, ..b }, &task);
    assert_eq!(rows, played(&mut threads, 0, 150, 0..30, true));
    // A part that begins in the midst of a block.
    let part = Batch { n: 40, first: 50, ..b };
    let mut part = built(part, &task);
    let own = played(&mut part, 50, 150, 0..30, true);
    let width = part.spec().obs.policy;
    for (all, own) in rows.iter().zip(&own) {
        assert_eq!(all[50 * width..90 * width], own[..40 * width]);
    }
    // Draws differ between environments and steps, and are the same within a step.
    let chance =
        |step: usize, env: usize| [0, 1, 2].map(|k| f32::from_bits(rows[step][env * width + k]));
    assert!((chance(3, 0)[0] - chance(3, 0)[2]).abs() < 0.05, "noise alone is between them");
    assert_ne!(chance(3, 0)[0], chance(4, 0)[0]);
    assert_ne!(chance(3, 0)[0], chance(3, 1)[0]);
    let mut going = built(b, &task);
    played(&mut going, 0, 150, 0..13, true);
    let mut bytes = Vec::new();
    going.capture(&mut bytes).unwrap();
    let mut other = built(b, &task);
    other.restore(&bytes).unwrap();
    assert_eq!(rows[13..], played(&mut other, 0, 150, 13..30, false)[..]);
    // A snapshot of other functions is refused.
    let mut changed = mixed();
    changed.native[0].checksum = Some("0".repeat(64));
    assert!(built(b, &changed).restore(&bytes).is_err());
}

#[test]
fn a_number_that_is_none_breaks_its_environment_and_is_counted_by_function() {
    let text = |more: &str| {
        allowed(&format!(
            r#"
[[native]]
name = "breaks"
file = "own.cuh"
inputs = ["action[0]"]
memory = 1
{more}
[[reward]]
name = "alive"
expr = "1"
"#
        ))
    };
    let seen = "[[observation]]\nname = \"x\"\nexpr = \"native.breaks > 2\"";
    let unseen = "[[observation]]\nname = \"x\"\nexpr = \"qpos\"\n[[termination]]\nname = \"never\"\nexpr = \"native.breaks > 2\"";
    for more in [seen, unseen] {
        let mut env = built(SMALL, &text(more));
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, false);
        out.step(&mut env, &[0.0, 0.0, 1.0, 0.0, -1.0, 0.0]);
        assert_eq!(out.valid, [1.0, 0.0, 0.0], "{more}");
        assert_eq!(out.reward, [1.0, 0.0, 0.0]);
        assert!(out.policy.iter().all(|x| x.is_finite()));
        let mut stats = EpisodeStats::with_room(env.spec()).unwrap();
        env.take_stats(&mut stats);
        let counted: Vec<(&str, u64)> = (env.spec().cause_names.iter().map(String::as_str))
            .zip(stats.causes.iter().copied())
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counted, [("nan/native/breaks", 1), ("inf/native/breaks", 1)]);
        // The new episodes are well.
        out.step(&mut env, &[0.0; 6]);
        assert_eq!(out.valid, [1.0; 3]);
    }
}

#[test]
fn of_several_agents_each_has_its_own() {
    let mut task = allowed(
        r#"
[[native]]
name = "{agent}_counts"
function = "counts"
file = "own.cuh"
inputs = ["action", "agent_index"]
outputs = 3
memory = 2
[[observation]]
name = "own"
expr = "[native.{agent}_counts, native.a_counts[1]]"
[[reward]]
name = "own"
expr = "native.{agent}_counts[1]"
"#,
    );
    task.action[0].actuators = vec!["{agent}".into()];
    task.agents = Some(AgentsConfig {
        names: vec!["push".into(), "servo".into()],
        ..AgentsConfig::default()
    });
    for term in &mut task.observation {
        term.expr = term.expr.replace("native.a_counts", "native.push_counts");
    }
    let mut env = built(SMALL, &task);
    let mut out = Out::new(env.spec(), 1);
    let rows = env.spec().rows();
    out.policy = vec![7.0; rows * 4];
    out.final_policy = vec![7.0; rows * 4];
    for x in [&mut out.reward, &mut out.terminated, &mut out.truncated, &mut out.valid] {
        *x = vec![7.0; rows];
    }
    out.final_slot = vec![7; rows];
    out.reset(&mut env, false);
    let agents = |rows: &[f32]| [rows[..4].to_vec(), rows[4..8].to_vec()];
    assert_eq!(agents(&out.policy), [[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]]);
    out.step(&mut env, &[0.25, 0.5, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(out.reward[..2], [0.5, 3.0]);
    assert_eq!(agents(&out.policy), [[2.0, 0.5, 0.0, 0.5], [2.0, 3.0, 0.0, 0.5]]);
    let names = &env.spec().reward_names;
    assert_eq!(names, &["push/own", "servo/own"]);
}

const REST: &str = r#"
[[observation]]
name = "x"
expr = "qpos"
[[reward]]
name = "alive"
expr = "1"
"#;

#[test]
fn nothing_is_compiled_or_run_without_leave() {
    let native = "[[native]]\nname = \"chance\"\nfile = \"own.cuh\"\noutputs = 3\n";
    let mut own = allowed(&format!("{native}{REST}"));
    own.reward[0].expr = "native.chance[0]".into();
    // As a configuration has it that nobody gave leave to.
    for code in [Default::default(), {
        let mut code = own.native_code.clone();
        code.leave = Leave::Refused;
        code
    }] {
        let mut task = own.clone();
        task.native_code = code;
        let error = build(SMALL, &task).unwrap_err().to_string();
        assert!(error.contains("task.native[0].file"), "{error}");
        assert!(error.contains("with all your rights"), "{error}");
        assert!(error.contains("--allow-native"), "{error}");
    }
    // Described, it has sizes and no numbers.
    own.native_code.leave = Leave::Describe;
    let mut env = built(SMALL, &own);
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    out.step(&mut env, &[0.0; 6]);
    assert_eq!(out.valid, [0.0; 3]);
    // A file cannot give leave.
    let text = format!("robot = \"\"\n{native}[native_code]\nleave = \"run\"\n");
    assert!(toml::from_str::<TaskConfig>(&text).is_err());
}

/// The error of a task with these terms.
fn refused(native: &str, header: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    std::fs::write(folder.path().join("bad.cuh"), header).unwrap();
    std::fs::create_dir(folder.path().join("folder.h")).unwrap();
    let mut task = task(&format!("{ACTIONS}{native}{REST}"));
    let within = [folder.path().to_path_buf()];
    match read(&mut task, folder.path(), &within, Leave::Run) {
        Err(e) => e.to_string(),
        Ok(()) => build(SMALL, &task).unwrap_err().to_string(),
    }
}

#[test]
fn mistakes_are_named_with_the_way_out() {
    let term = |rest: &str| format!("[[native]]\nname = \"f\"\n{rest}\n");
    let own = |rest: &str| term(&format!("file = \"own.cuh\"\nfunction = \"chance\"\n{rest}"));
    for (native, words) in [
        (term("file = \"none.cuh\""), "there is no file"),
        (term("file = \"own.toml\""), "is not the name of a header"),
        (term("file = \"../outside.cuh\""), "outside of the configuration's folder"),
        (term("file = \"/etc/x.h\""), "outside of the configuration's folder"),
        (term("file = \"folder.h\""), "it is a folder"),
        (term("file = \"own.cuh\""), "has no function called \"f\""),
        (term("file = \"own.cuh\"\nfunction = \"chanse\""), "did you mean \"chance\"?"),
        (own("outputs = 0"), "0 outputs"),
        (own("outputs = 5000"), "5000 outputs"),
        (own("memory = 5000"), "5000 numbers to remember"),
        (own("unit = \"parsec\""), "the unit \"parsec\" is not known"),
        (own("outputs = 3\nunit = [\"m\"]"), "1 units for 3 outputs"),
        (own("inputs = [\"pos(bal)\"]"), "did you mean \"ball\"?"),
        (own("inputs = [\"native.f\"]"), "native.f has no value here yet"),
        (own("inputs = [\"previous(native.f)\"]"), "begins with what a native function gives"),
        (own("checksum = \"00\""), "is not the file that the checksum is of"),
        (format!("{}{}", own(""), own("")), "the name \"f\" is used twice"),
        (own("").replace("\"f\"", "\"1f\""), "cannot be a native function's name"),
        (own("").replace("\"chance\"", "\"a b\""), "cannot be a function's name"),
        (own("inputs = [\"height({agent})\"]"), "is the world's, but mentions {agent}"),
    ] {
        let error = refused(&native, "");
        assert!(error.contains(words), "{native}: {error}");
        assert!(error.starts_with("task.native["), "{error}");
    }
}

#[test]
fn what_does_not_compile_is_shown_with_file_and_line() {
    let term = "[[native]]\nname = \"f\"\nfile = \"bad.cuh\"\ninputs = [\"qpos\"]\noutputs = 2\n";
    let f = "OSTLER_NATIVE void f(const Env& env, const float (&in)[9], float (&out)[2]) {";
    for (header, words) in [
        (format!("\n{f}\n  out[0] = speed;\n}}"), vec!["bad.cuh:3:12", "speed"]),
        (format!("{f}\n  out[0] = sinf(in[0]);\n}}"), vec!["bad.cuh:2:", "sinf"]),
        (
            format!("#include <math.h>\n{f}}}"),
            vec!["bad.cuh:1: #include <math.h>", "namespace ostler"],
        ),
        (format!("#include \"../x.h\"\n{f}}}"), vec!["leaves the header's folder"]),
        (format!("\n#include \"x.h\"\n{f}}}"), vec!["there is no file", "included at bad.cuh:2"]),
        (
            f.replace("in)[9]", "in)[8]") + "}",
            vec![
                "cannot be called",
                "declare it as OSTLER_NATIVE void f(const Env& env, const float (&in)[9], float (&out)[2])",
            ],
        ),
        (f.replace("float (&out)[2]", "float (&out)[3]") + "}", vec!["declare it as"]),
        (f.replace(" f(", " g(") + "} // f", vec!["declare it as"]),
    ] {
        let error = refused(term, &header);
        for word in words {
            assert!(error.contains(word), "{header}\n---\n{error}");
        }
    }
}

#[test]
fn two_headers_are_one_text_and_one_of_two_terms_is_shared() {
    let folder = tempfile::tempdir().unwrap();
    files(folder.path());
    // Both include the helper, by other ways.
    std::fs::write(
        folder.path().join("parts/more.cuh"),
        "#include \"helper.cuh\"\nOSTLER_NATIVE void more(const Env&, const float* in, float* out) { *out = twice(*in); }\n",
    )
    .unwrap();
    let native = r#"
[[native]]
name = "counts"
file = "own.cuh"
inputs = ["1", "2"]
outputs = 3
memory = 2
[[native]]
name = "again"
function = "counts"
file = "./own.cuh"
inputs = ["native.counts[1]", "0"]
outputs = 3
memory = 2
[[native]]
name = "more"
file = "parts/more.cuh"
inputs = ["native.again[1]"]
[[observation]]
name = "more"
expr = "[native.counts[1], native.again[1], native.more]"
"#;
    let mut task = task(&format!("{ACTIONS}{native}{REST}"));
    let within = [folder.path().to_path_buf()];
    read(&mut task, folder.path(), &within, Leave::Run).unwrap();
    assert_eq!(task.native[0].checksum, task.native[1].checksum);
    let mut env = built(SMALL, &task);
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    assert_eq!(out.policy[..3], [4.0, 8.0, 16.0]);
    let task = env.compiled();
    let when: Vec<[bool; 2]> = task.natives.functions.iter().map(|f| [f.judged, f.seen]).collect();
    assert_eq!(when, [[false, true]; 3], "no reward follows from them");
}
