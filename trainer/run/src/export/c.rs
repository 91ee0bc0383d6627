//! The whole policy as one header of C99, from what a robot measures to its controls.

use ostler_learn::learner::network::{Head, Layer, Network};
use ostler_learn::learner::normalizer::FARTHEST;
use ostler_learn::learner::policy::Activation;
use ostler_sim::task::deploy::{DeployedTerm, Measured, comment};
use std::fmt::Write as _;

/// The text of the header; names begin with `prefix`. `about`: lines for its first comment.
pub(crate) fn print(
    measured: &Measured<'_>,
    network: &Network,
    prefix: &str,
    about: &[String],
) -> String {
    let of = measured.deployment();
    let parts = measured.c(prefix);
    let p = prefix;
    // As it is written: two policies may differ in capitals alone.
    let guard = format!("{p}_POLICY_H");
    let about: Vec<String> = about.iter().map(|line| comment(line)).collect();
    let mut text = format!("/* {}\n", about.join("\n   "));
    let _ = write!(
        text,
        "\n   {p}_init(&state) once, and where an episode begins anew; then every {} s\n   \
         {p}_step(&state, &sensors, control). Nothing is allocated, nothing is global:\n   \
         one state for each robot. C99 and C++; needs libm. */\n\
         #ifndef {guard}\n#define {guard}\n\n#include <string.h>\n{}\n\
         #define {p}_NUM_TERMS {}\n#define {p}_NUM_OUTPUTS {}\n#define {p}_NUM_CONTROLS {}\n\
         #define {p}_PERIOD {:?}\n\n",
        of.step_dt,
        parts.runtime,
        of.inputs(),
        of.outputs.len(),
        of.controls.len(),
        of.step_dt,
    );
    text += &parts.sensors;
    let _ = write!(text, "\n/* What the policy remembers. */\ntypedef struct {{\n{}", parts.state);
    if network.state() > 0 {
        let _ = writeln!(
            text,
            "  float hidden[{}];     /* of the recurrent network */",
            network.state()
        );
    }
    let _ = writeln!(text, "}} {p}_state;\n");
    let _ = writeln!(
        text,
        "static inline void {p}_init({p}_state *m) {{\n  memset(m, 0, sizeof *m);\n}}\n",
    );
    text += &parts.functions;
    text.push('\n');
    numbers(&mut text, network, p);
    forward(&mut text, network, p);
    policy(&mut text, &of.terms, of.inputs(), of.width, of.looks_back(), p);
    let _ = write!(
        text,
        "/* One control step: from what is measured now to controls. */\n\
         static inline void {p}_step({p}_state *m, const {p}_sensors *s, float *control) {{\n  \
         float terms[{p}_NUM_TERMS];\n  {p}_observe(m, s, terms);\n  {p}_policy(m, terms, control);\n}}\n\
         #endif\n"
    );
    text
}

fn array(text: &mut String, name: &str, x: impl Iterator<Item = f32>) {
    let _ = write!(text, "static const float {name}[] = {{");
    for (i, x) in x.enumerate() {
        let _ = write!(text, "{}{x:?}f,", if i % 12 == 0 { "\n" } else { "" });
    }
    text.push_str("\n};\n");
}

/// Weights lie with a row of outputs for every input.
fn layer(text: &mut String, name: &str, l: &Layer) {
    let (i, o) = (l.inputs, l.outputs);
    let across = (0..i).flat_map(|x| (0..o).map(move |y| y * i + x));
    array(text, &format!("{name}_w"), across.map(|at| l.weight[at]));
    array(text, &format!("{name}_b"), l.bias.iter().copied());
}

fn numbers(text: &mut String, network: &Network, p: &str) {
    if let Some([shift, scale]) = &network.norm {
        array(text, &format!("{p}_shift"), shift.iter().copied());
        array(text, &format!("{p}_scale"), scale.iter().copied());
    }
    if let Some(gru) = &network.gru {
        layer(text, &format!("{p}_gru_x"), &gru.input);
        layer(text, &format!("{p}_gru_h"), &gru.hidden);
    }
    for (i, hidden) in network.hidden.iter().enumerate() {
        layer(text, &format!("{p}_{i}"), &hidden.layer);
        if let Some([gain, bias]) = &hidden.norm {
            array(text, &format!("{p}_{i}_gain"), gain.iter().copied());
            array(text, &format!("{p}_{i}_shift"), bias.iter().copied());
        }
    }
    layer(text, &format!("{p}_last"), &network.last);
}

/// `PREFIX_network`: the policy's row to its outputs.
fn forward(text: &mut String, network: &Network, p: &str) {
    let state = network.state();
    let seen = network.inputs() + state;
    let _ = writeln!(
        text,
        "\n/* The network: the policy's row to its outputs. */\n\
         static inline void {p}_network({p}_state *m, const float *row, float *output) {{\n  \
         float x[{seen}];\n  int k;\n  (void)m;"
    );
    let inputs = network.inputs();
    match &network.norm {
        Some(_) => {
            let _ = writeln!(
                text,
                "  for (k = 0; k < {inputs}; k++) x[k] = ostler_within((row[k] - {p}_shift[k]) * {p}_scale[k], -{FARTHEST:?}f, {FARTHEST:?}f);"
            );
        }
        None => {
            let _ = writeln!(text, "  for (k = 0; k < {inputs}; k++) x[k] = row[k];");
        }
    }
    if state > 0 {
        let gates = 3 * state;
        let _ = writeln!(
            text,
            "  {{\n    float a[{gates}], b[{gates}];\n    \
             ostler_dense({p}_gru_x_w, {p}_gru_x_b, {inputs}, {gates}, x, a);\n    \
             ostler_dense({p}_gru_h_w, {p}_gru_h_b, {state}, {gates}, m->hidden, b);\n    \
             for (k = 0; k < {state}; k++) {{\n      \
             const float reset = ostler_sigmoid(a[k] + b[k]), update = ostler_sigmoid(a[k + {state}] + b[k + {state}]);\n      \
             const float fresh = tanhf(a[k + {n}] + reset * b[k + {n}]);\n      \
             m->hidden[k] = fresh + update * (m->hidden[k] - fresh);\n      \
             x[{inputs} + k] = m->hidden[k];\n    }}\n  }}",
            n = 2 * state
        );
    }
    let function = match network.activation {
        Activation::Elu => "ostler_elu",
        Activation::Relu => "ostler_relu",
        Activation::Tanh => "ostler_tanh",
        Activation::Silu => "ostler_silu",
    };
    let (mut from, mut width) = ("x".to_string(), seen);
    for (i, hidden) in network.hidden.iter().enumerate() {
        let out = hidden.layer.outputs;
        let _ = writeln!(
            text,
            "  float y{i}[{out}];\n  ostler_dense({p}_{i}_w, {p}_{i}_b, {width}, {out}, {from}, y{i});"
        );
        if hidden.norm.is_some() {
            let _ =
                writeln!(text, "  ostler_layer_norm({p}_{i}_gain, {p}_{i}_shift, {out}, y{i});");
        }
        let _ = writeln!(text, "  {function}({out}, y{i});");
        if hidden.adds {
            let _ = writeln!(text, "  for (k = 0; k < {out}; k++) y{i}[k] += {from}[k];");
        }
        (from, width) = (format!("y{i}"), out);
    }
    let outputs = network.last.outputs;
    let dense = |to: &str| {
        format!("  ostler_dense({p}_last_w, {p}_last_b, {width}, {outputs}, {from}, {to});\n")
    };
    match &network.head {
        Head::Mean => *text += &dense("output"),
        Head::Squashed { bound } => {
            *text += &dense("output");
            for (k, bound) in bound.iter().enumerate() {
                let _ = writeln!(text, "  output[{k}] = {bound:?}f * tanhf(output[{k}]);");
            }
        }
        Head::Largest => {
            let _ = writeln!(text, "  {{\n    float each[{outputs}];\n    int best = 0;");
            *text += &dense("each");
            let _ = writeln!(
                text,
                "    for (k = 1; k < {outputs}; k++) if (each[k] > each[best]) best = k;\n    output[0] = (float)best;\n  }}"
            );
        }
    }
    text.push_str("}\n\n");
}

/// `PREFIX_policy`: observations of a control step to controls.
fn policy(
    text: &mut String,
    terms: &[DeployedTerm],
    inputs: usize,
    width: usize,
    looks_back: bool,
    p: &str,
) {
    let _ = writeln!(
        text,
        "/* Observations of one control step, before scaling, to controls. */\n\
         static inline void {p}_policy({p}_state *m, const float *terms, float *control) {{\n  \
         float seen[{inputs}], output[{p}_NUM_OUTPUTS];"
    );
    if !looks_back {
        let _ = writeln!(text, "  float row[{width}];");
    } else {
        text.push_str("  float *row = m->row;\n  int f;\n");
    }
    text.push_str("  int k;\n");
    let mut at = 0;
    for term in terms {
        let len = term.len;
        let same = term.scale.iter().all(|s| *s == term.scale[0]);
        if same {
            let _ = writeln!(
                text,
                "  for (k = 0; k < {len}; k++) seen[{at} + k] = terms[{at} + k] * {:?}f;",
                term.scale[0]
            );
        } else {
            for (i, scale) in term.scale.iter().enumerate() {
                let _ = writeln!(text, "  seen[{0}] = terms[{0}] * {scale:?}f;", at + i);
            }
        }
        if let Some(clip) = term.clip {
            // An open end is the greatest number.
            let [low, high] = clip.map(|end| end.clamp(f32::MIN, f32::MAX));
            let _ = writeln!(
                text,
                "  for (k = {at}; k < {}; k++) seen[k] = ostler_within(seen[k], {low:?}f, {high:?}f);",
                at + len
            );
        }
        let (first, newest, frames, stride) = (term.first, term.newest(), term.frames, term.stride);
        if frames > 1 {
            let _ = writeln!(
                text,
                "  for (f = 0; f < {}; f++)\n    for (k = 0; k < {len}; k++)\n      \
                 row[{first} + f * {stride} + k] = m->step == 0u ? seen[{at} + k] : row[{first} + (f + 1) * {stride} + k];",
                frames - 1
            );
        }
        let _ = writeln!(text, "  for (k = 0; k < {len}; k++) row[{newest} + k] = seen[{at} + k];");
        at += len;
    }
    let _ = writeln!(text, "  {p}_network(m, row, output);\n  {p}_act(m, output, control);\n}}\n");
}
