use super::*;
use crate::config::{EnvConfig, SimConfig, TaskConfig};
use crate::env::EnvArgs;
use crate::env::on_device::program;
use bytemuck::Zeroable;
use std::path::Path;

/// The program of a shipped configuration.
fn shipped(name: &str) -> Program {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let text = std::fs::read_to_string(configs.join(name)).unwrap();
    let mut table: toml::Table = toml::from_str(&text).unwrap();
    let mut part = |key: &str| {
        let part = table.remove(key);
        part.unwrap_or(toml::Value::Table(toml::Table::new()))
    };
    let sim: SimConfig = part("sim").try_into().unwrap();
    let env: EnvConfig = part("env").try_into().unwrap();
    let task: TaskConfig = part("task").try_into().unwrap();
    let model = crate::model::mjcf::load(&configs.join(&task.robot)).unwrap();
    program(&model, &sim, &env, &task, false).unwrap()
}

/// The state of five million environments has more words than an `int` counts.
#[test]
fn words_beyond_two_to_the_31_are_copied() {
    let mut program = shipped("cartpole.toml");
    let copy = program.entries.iter().position(|e| e == "ostler_env_copy");
    program.text.push_str(
        r#"
extern "C" __attribute__((visibility("default"))) void number_of_a_thread(const void* args, long long, long long) {
  const EnvArgs& a = *(const EnvArgs*)args;
  *(long long*)a.to = ostler_thread(1u << 24, 128, 5);
}
"#,
    );
    program.entries.push("number_of_a_thread".into());
    let loaded = Host::default().loaded(&program).unwrap();
    let call = |entry: usize, args: &EnvArgs, first, end| {
        let args = std::ptr::from_ref(args).cast();
        // SAFETY: the entries take this struct; the buffers behind its pointers are below.
        unsafe { (loaded.entries[entry].get())(args, first, end) };
    };

    const EDGE: i64 = 1 << 31;
    let (from, mut to) = ([1_u32, 2, 3, 4], [0_u32; 4]);
    // The first of the four is word EDGE - 2 of what begins so far before it.
    let base = |at: *const u32| (at as Address).wrapping_sub(4 * (EDGE as u64 - 2));
    let args = EnvArgs {
        from: base(from.as_ptr()),
        to: base(to.as_mut_ptr()),
        words: EDGE + 1,
        ..EnvArgs::zeroed()
    };
    call(copy.unwrap(), &args, EDGE - 2, EDGE + 2);
    assert_eq!(std::hint::black_box(to), [1, 2, 3, 0]);

    // The index that a GPU's thread computes from its block and thread numbers.
    let mut number = 0_i64;
    let args = EnvArgs { to: std::ptr::from_mut(&mut number) as Address, ..EnvArgs::zeroed() };
    call(program.entries.len() - 1, &args, 0, 1);
    assert_eq!(std::hint::black_box(number), EDGE + 5);
}
