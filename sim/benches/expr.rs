//! Evaluation speed of tasks' expressions: environments per second on one core.
//! Run with `cargo bench -p ostler-sim --bench expr`.

use divan::{Bencher, counter::ItemsCount};
use ostler_sim::model::mjcf;
use ostler_sim::physics::State;
use ostler_sim::task::expr::{
    BLOCK, Buffers, Definitions, EventNumbers, HistoryBuilder, Program, Readings, Scope, Scratch,
};
use std::path::PathBuf;

/// Typical terms of a quadruped's task.
const TERMS: &[&str] = &[
    "[0.25 * ang_vel_body(trunk), projected_gravity(trunk)]",
    "[joint_pos_rel(), 0.05 * joint_vel(), last_action]",
    "exp(-norm2(command.xy - lin_vel_body(trunk).xy) / 0.25)",
    "sum(abs(actuator_force() * joint_vel()))",
    "upright(trunk) < 0.5 or contact(trunk)",
    "com",
    "tanh(joint_vel() / 10)",
    "roll(trunk)^2 + pitch(trunk)^2",
];

fn main() {
    divan::main();
}

#[divan::bench(args = TERMS)]
fn eval(bencher: Bencher, text: &str) {
    const N: usize = 4096;
    let robot = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs/robots/quadruped.xml");
    let model = mjcf::load(&robot).expect("the quadruped");
    let commands = [("velocity".to_string(), 3, "m/s".to_string())];
    let history = HistoryBuilder::default();
    let readings = Readings::default();
    let scope = Scope {
        model: &model,
        pose: &model.qpos0,
        commands: &commands,
        params: &[],
        action_width: 12,
        agents: None,
        history: &history,
        readings: &readings,
        events: &EventNumbers::default(),
        defined: Definitions::none(),
        start: None,
    };
    let program = Program::compile(text, &scope).expect("the term");
    let mut state = State::new(&model, N).expect("memory");
    // Ordinary numbers: zeros could take shorter ways through a function.
    for buffer in [&mut state.qpos, &mut state.qvel, &mut state.body_lin_vel, &mut state.body_quat]
    {
        for (i, x) in buffer.iter_mut().enumerate() {
            *x = (i as f32 * 0.37).sin();
        }
    }
    let (action, command, step) = (vec![0.3; 12 * N], vec![0.5; 3 * N], vec![17; N]);
    let mut scratch = Scratch::default();
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        for first in (0..N).step_by(BLOCK) {
            let inputs = Buffers {
                state: &state,
                ctrl: &action,
                action: &action,
                last_action: &action,
                history: &[],
                shown: &[],
                command: &command,
                random: &[],
                native: &[],
                scan: &[],
                stand: &[],
                motion: &[],
                terrain: None,
                params: &[],
                step: &step,
                step_dt: 0.02,
                max_steps: 1000,
            }
            .block(first, BLOCK);
            divan::black_box(program.eval(&inputs, &mut scratch));
        }
    });
}

#[divan::bench(args = TERMS)]
fn compile(bencher: Bencher, text: &str) {
    let robot = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs/robots/quadruped.xml");
    let model = mjcf::load(&robot).expect("the quadruped");
    let commands = [("velocity".to_string(), 3, "m/s".to_string())];
    let history = HistoryBuilder::default();
    let readings = Readings::default();
    let scope = Scope {
        model: &model,
        pose: &model.qpos0,
        commands: &commands,
        params: &[],
        action_width: 12,
        agents: None,
        history: &history,
        readings: &readings,
        events: &EventNumbers::default(),
        defined: Definitions::none(),
        start: None,
    };
    bencher.bench_local(|| Program::compile(divan::black_box(text), &scope));
}
