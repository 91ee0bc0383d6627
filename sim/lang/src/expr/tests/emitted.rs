//! Expressions as C++ give the numbers of the interpreter, bit for bit.

use super::fixture::{ACTIONS, MAX_STEPS, STEP_DT, World};
use crate::expr::dag::{Dag, Id, Seen, Source};
use crate::expr::ops::Op;
use crate::expr::{Program, Type, literal, program};
use bytemuck::Zeroable;
use ostler_base::math;
use ostler_base::rng::philox_raw;
use ostler_engine::device::host::Host;
use ostler_engine::device::{Address, Device, Program as Text};
use ostler_engine::kernels::EnvArgs;
use ostler_engine::physics::native::generate::env_prelude;
use ostler_engine::physics::{StepArgs, ground};
use ostler_engine::state::{EpisodeAddresses, StepBufferAddresses};
use std::fmt::Write;

/// Draws for tests: a stream of words.
struct Draw(u32);

impl Draw {
    fn word(&mut self) -> u32 {
        self.0 += 1;
        philox_raw([self.0, 0, 0, 77], [5, 6])[0]
    }

    fn below(&mut self, n: usize) -> usize {
        self.word() as usize % n
    }
}

/// Every operation.
const OPS: [Op; 34] = {
    use Op::*;
    [
        Neg,
        Abs,
        Sqrt,
        Exp,
        Ln,
        Sin,
        Cos,
        Tan,
        Asin,
        Acos,
        Tanh,
        Floor,
        Round,
        Sign,
        Finite,
        Not,
        Add,
        Sub,
        Mul,
        Div,
        Min,
        Max,
        Pow,
        Atan2,
        Lt,
        Le,
        Eq,
        And,
        Or,
        Select,
        Add,
        GroundHeight,
        GroundSlopeX,
        GroundSlopeY,
    ]
};

/// A graph of `nodes` operations on everything that can be read.
fn random(draw: &mut Draw, world: &World, nodes: usize) -> Program {
    let n = world.state.num_envs;
    let rows = |b: &[f32]| b.len() / n;
    let s = &world.state;
    let seen = Seen::ALL.map(|c| (Source::World(c), rows(s.seen(c))));
    let others = [
        (Source::Ctrl, rows(&world.ctrl)),
        (Source::Action, rows(&world.action)),
        (Source::LastAction, rows(&world.last_action)),
        (Source::History, rows(&world.memory)),
        (Source::Shown, rows(&world.shown)),
        (Source::Command, rows(&world.command)),
        (Source::Random, rows(&world.random)),
        (Source::Scan, rows(&world.scan)),
        (Source::Stand, rows(&world.stand)),
        (Source::Motion, rows(&world.motion)),
        (Source::Param, world.param.len()),
        (Source::Step, 1),
        (Source::StepDt, 1),
        (Source::MaxSteps, 1),
    ];
    let mut sources = [&seen[..], &others].concat();
    // A column that this world has not.
    sources.retain(|(_, rows)| *rows > 0);
    let mut dag = Dag::default();
    let mut known: Vec<Id> = Vec::new();
    for _ in 0..4 {
        let (source, rows) = sources[draw.below(sources.len())];
        known.push(dag.load(source, draw.below(rows)));
        let exponent = draw.below(9) as i32 - 4;
        let x = (f64::from(draw.word()) / f64::from(u32::MAX) - 0.5) * 10_f64.powi(exponent);
        known.push(dag.constant(x));
    }
    for _ in 0..nodes {
        let op = OPS[draw.below(OPS.len())];
        let mut pick = || known[draw.below(known.len())];
        let id = match op.arity() {
            1 => dag.one(op, pick()),
            2 => {
                let (a, b) = (pick(), pick());
                dag.two(op, a, b)
            }
            _ => {
                let (a, b, c) = (pick(), pick(), pick());
                dag.select(a, b, c)
            }
        };
        known.push(id);
    }
    let outputs = &known[known.len() - 3..];
    Program {
        of_agent: false,
        ty: Type::Num { len: outputs.len(), unit: "any".into() },
        units: Vec::new(),
        truth: false,
        quat: false,
        elements: Vec::new(),
        shared: Vec::new(),
        code: program::generate(&dag, outputs).unwrap(),
    }
}

/// The expressions as one program: thread `e` writes all their components to row `e`.
fn text(programs: &[Program], world: &World) -> (Text, usize) {
    let mut text = env_prelude();
    let _ = writeln!(
        text,
        "struct TaskTime {{ static constexpr float step_dt = {}; static constexpr unsigned max_steps = {MAX_STEPS}u; }};",
        literal(STEP_DT)
    );
    let (mut calls, mut at) = (String::new(), 0);
    for (i, program) in programs.iter().enumerate() {
        let body = program.code().emit(|k| literal(world.param[k]));
        let _ = writeln!(
            text,
            "__attribute__((noinline)) void term_{i}(const EnvArgs& a, int e, float* out) {{\n  (void)a, (void)e;\n{body}}}"
        );
        let _ = writeln!(calls, "    term_{i}(a, e, row + {at});");
        at += program.ty().len();
    }
    let _ = writeln!(
        text,
        "}}\nextern \"C\" __attribute__((visibility(\"default\"))) void terms(const void* args, long long first, long long end) {{
  const EnvArgs& a = *(const EnvArgs*)args;
  for (int e = first; e < end; e++) {{\n    float* row = a.obs + (long)e * {at};\n{calls}  }}\n}}"
    );
    let program = Text { text, places: Vec::new(), entries: vec!["terms".into()] };
    (program, at)
}

fn address<T>(x: &[T]) -> Address {
    x.as_ptr() as Address
}

/// Results of the C++ `[N][components]`.
fn compiled(programs: &[Program], world: &World) -> Vec<f32> {
    let (text, width) = text(programs, world);
    let n = world.state.num_envs;
    let mut out = vec![0.0_f32; n * width];
    let s = &world.state;
    let args = EnvArgs {
        physics: StepArgs {
            world: s.addresses(),
            ground: ground(world.model.terrain.as_deref()),
            ..StepArgs::zeroed()
        },
        n: n as i32,
        buffers: StepBufferAddresses {
            ctrl: address(&world.ctrl),
            start_random: address(&world.random),
            scan: address(&world.scan),
            motion_now: address(&world.motion),
            ..StepBufferAddresses::zeroed()
        },
        episode: EpisodeAddresses {
            action: address(&world.action),
            last_action: address(&world.last_action),
            history: address(&world.memory),
            shown: address(&world.shown),
            command: address(&world.command),
            age: address(&world.step),
            stand: address(&world.stand),
            ..EpisodeAddresses::zeroed()
        },
        obs: out.as_mut_ptr() as Address,
        ..EnvArgs::zeroed()
    };
    let kernels = Host::default().load(&text).unwrap();
    // SAFETY: the entry takes `EnvArgs`; the buffers live and are as large as it writes.
    unsafe { kernels.launch(0, n, bytemuck::bytes_of(&args)) }.unwrap();
    out
}

/// The same bits, or no number in both.
fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

fn compare(programs: &[Program], world: &World) {
    let got = compiled(programs, world);
    let width = got.len() / world.state.num_envs;
    let mut at = 0;
    for (i, program) in programs.iter().enumerate() {
        for (e, row) in world.run(program, 64).iter().enumerate() {
            for (k, want) in row.iter().enumerate() {
                let got = got[e * width + at + k];
                assert!(
                    same(got, *want),
                    "expression {i}, environment {e}, component {k}: {got:e} ({:#x}), not {want:e} ({:#x})\n{}",
                    got.to_bits(),
                    want.to_bits(),
                    program.code().emit(|k| literal(world.param[k])),
                );
            }
        }
        at += program.ty().len();
    }
}

/// Numbers that are often treated wrongly.
const SPECIAL: [f32; 12] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    1e-42,
    -1e-40,
    f32::MAX,
    f32::MIN,
    0.5,
    -0.5,
    1.0,
];

#[test]
fn thousands_of_random_expressions_have_the_interpreters_bits() {
    let mut draw = Draw(0);
    let mut world = World::new(40, 9);
    // Half of the environments are well, the others are not.
    let n = 40;
    let s = &mut world.state;
    for buffer in [&mut s.qpos, &mut s.qvel, &mut s.body_lin_vel, &mut world.action] {
        for (i, x) in buffer.iter_mut().enumerate() {
            if i % n >= n / 2 && draw.below(3) == 0 {
                *x = SPECIAL[draw.below(SPECIAL.len())];
            }
        }
    }
    let programs: Vec<Program> = (0..2000).map(|i| random(&mut draw, &world, 4 + i % 24)).collect();
    compare(&programs, &world);
}

#[test]
fn the_languages_own_functions_have_the_interpreters_bits() {
    let world = World::new(70, 4);
    let texts = [
        "[exp(-norm2(lin_vel(torso))/4), tanh(qvel/3), com, roll(torso), sin(9*qpos)]",
        "[wrap_angle(qvel[3:]), (2+action)^1.3, quat(imu), time, ctrl]",
        "[pitch(torso), yaw(torso), height(imu), distance(imu, foot_1), gravity]",
        "[contact(foot_1), command.twist, command.heading, param.target, last_action]",
        "clip(action, -param.width, param.width / 2)",
        "action[0] > 0 and not (qvel[1] > 0.1) or between(qpos[2], -1, 1)",
    ];
    let programs: Vec<Program> =
        texts.iter().map(|t| world.compile(t).unwrap_or_else(|e| panic!("{t}: {e}"))).collect();
    const { assert!(ACTIONS > 2) };
    compare(&programs, &world);
}

/// One function of one argument, in Rust and by its name in C++.
type One = (&'static str, fn(f32) -> f32);

#[test]
fn elementary_functions_have_the_same_bits_all_over() {
    const ONE: [One; 8] = [
        ("exp_", math::exp),
        ("ln_", math::ln),
        ("sin_", math::sin),
        ("cos_", math::cos),
        ("tan_", math::tan),
        ("tanh_", math::tanh),
        ("asin_", math::asin),
        ("acos_", math::acos),
    ];
    // Every 1009th number there is.
    const STRIDE: u32 = 1009;
    let count = (u32::MAX / STRIDE) as usize;
    let mut text = env_prelude();
    text.push_str("}\n");
    for (name, _) in ONE {
        let _ = writeln!(
            text,
            "extern \"C\" __attribute__((visibility(\"default\"))) void all_{name}(const void* args, long long first, long long end) {{
  const EnvArgs& a = *(const EnvArgs*)args;
  for (int i = first; i < end; i++) a.obs[i] = {name}(of_bits((unsigned)i * {STRIDE}u));\n}}"
        );
    }
    for name in ["pow_", "atan2_of"] {
        let _ = writeln!(
            text,
            "extern \"C\" __attribute__((visibility(\"default\"))) void all_{name}(const void* args, long long first, long long end) {{
  const EnvArgs& a = *(const EnvArgs*)args;
  for (int i = first; i < end; i++) a.obs[i] = {name}(a.actions[2 * i], a.actions[2 * i + 1]);\n}}"
        );
    }
    let entries = ONE.iter().map(|(name, _)| *name).chain(["pow_", "atan2_of"]);
    let program = Text {
        text,
        places: Vec::new(),
        entries: entries.map(|name| format!("all_{name}")).collect(),
    };
    let kernels = Host::default().load(&program).unwrap();
    let mut out = vec![0.0_f32; count];
    let mut draw = Draw(1 << 20);
    let pairs: Vec<f32> = (0..2 * 400_000)
        .map(|i| match i % 5 {
            0 => SPECIAL[draw.below(SPECIAL.len())],
            1 | 2 => f32::from_bits(draw.word()),
            _ => (draw.below(41) as f32 - 20.0) / 4.0,
        })
        .collect();
    let args =
        EnvArgs { obs: out.as_mut_ptr() as Address, actions: address(&pairs), ..EnvArgs::zeroed() };
    let run = |entry: usize, threads: usize| -> Vec<f32> {
        // SAFETY: the entries take `EnvArgs` and write `threads` numbers to `obs`.
        unsafe { kernels.launch(entry, threads, bytemuck::bytes_of(&args)) }.unwrap();
        out[..threads].to_vec()
    };
    for (entry, (name, f)) in ONE.iter().enumerate() {
        for (i, got) in run(entry, count).into_iter().enumerate() {
            let x = f32::from_bits(i as u32 * STRIDE);
            let want = f(x);
            assert!(same(got, want), "{name}({x:e}) = {got:e}, not {want:e}");
        }
    }
    let two: [fn(f32, f32) -> f32; 2] = [math::pow, math::atan2];
    for (entry, f) in (ONE.len()..).zip(two) {
        for (got, xy) in run(entry, pairs.len() / 2).into_iter().zip(pairs.chunks(2)) {
            let want = f(xy[0], xy[1]);
            assert!(same(got, want), "{entry}: {xy:?} -> {got:e}, not {want:e}");
        }
    }
}
