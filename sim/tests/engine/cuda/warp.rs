//! One warp an environment: a prototype of the solver (`warp_newton.cu`), which no program has.
//! It is compiled by NVIDIA's compiler, executed by the pretend GPU under both schedules, and
//! compared with MuJoCo's accelerations; what its warps execute is counted (docs/gpu.md).

use super::fake::Fake;
use super::work::{block, read};
use crate::support::nvrtc::nvrtc_folder;
use crate::support::referee::{peers, referee_python};
use ostler_sim::device::cuda::Cuda;
use ostler_sim::device::cuda::compile::Compiler;
use ostler_sim::device::cuda::nvrtc::Nvrtc;
use ostler_sim::device::transfer::Reader;
use ostler_sim::device::{Device, Program};
use std::path::{Path, PathBuf};
use std::process::Command;

const COUNT: usize = 100;
/// Bytes of shared memory of a block, of which a multiprocessor has 227 KiB.
const SHARED: u32 = 30 * 1024;
/// Of an environment's solve: warp instructions by the pretend GPU's table of costs.
const INSTRUCTIONS: f64 = 28_000.0;

#[repr(C)]
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
struct Args {
    problems: u64,
    out: u64,
    count: i32,
    tolerance: f32,
}

/// Of the Go1: the program's text, and the paths of problems and answers without their endings.
fn go1(folder: &Path) -> Option<(String, PathBuf)> {
    let robot = peers()?.join("mjlab/asset_zoo/robots/unitree_go1/xmls/go1.xml");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/referee/solver_problems.py");
    let out = folder.join("go1");
    let mut python = Command::new(referee_python()?);
    let said = python.arg(script).arg(robot).arg(COUNT.to_string()).arg(&out).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let sizes: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let mut text = String::new();
    for (name, size) in sizes.as_object().unwrap() {
        text += &format!("#define {} {size}\n", name.to_uppercase());
    }
    Some((text + include_str!("warp_newton.cu"), out))
}

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|b| f32::from_ne_bytes(*b)).collect()
}

fn floats(path: &Path) -> Vec<f32> {
    numbers(&std::fs::read(path).unwrap())
}

#[test]
#[ignore = "only run by another test"]
fn solves() {
    let out = PathBuf::from(std::env::var("TEST_PROBLEMS").unwrap());
    let (problems, answers) =
        (floats(&out.with_extension("in")), floats(&out.with_extension("qacc")));
    let cuda = Cuda::open(0).unwrap();
    let text = std::env::var("TEST_PROGRAM").unwrap();
    let program = Program { text, places: Vec::new(), entries: vec!["newton".into()] };
    let kernels = cuda.load(&program).unwrap();
    let dofs = answers.len() / COUNT;
    let bytes = 4 * COUNT * (dofs + 1);
    let (given, found) = (block(&cuda, 4 * problems.len()), block(&cuda, bytes));
    let args = Args {
        problems: given.address(),
        out: found.address(),
        count: COUNT as i32,
        tolerance: 1e-6,
    };
    // SAFETY: the blocks are as long as the problems and the answers of all warps.
    unsafe {
        cuda.upload(bytemuck::cast_slice(&problems), given.address()).unwrap();
        kernels.launch(0, 32 * COUNT, bytemuck::bytes_of(&args)).unwrap();
    }
    let reader = read(Reader::new(cuda.staging("numbers", bytes).unwrap()), &found).unwrap();
    let all: Vec<f32> = numbers(reader.bytes());
    let (mut off, mut iterations) = (Vec::new(), 0.0);
    for (found, answer) in all.chunks(dofs + 1).zip(answers.chunks(dofs)) {
        let scale = answer.iter().fold(1.0_f32, |most, x| most.max(x.abs()));
        let each = found.iter().zip(answer).map(|(a, b)| (a - b).abs() / scale);
        off.push(each.fold(0.0, f32::max));
        iterations += found[dofs] / COUNT as f32;
    }
    off.sort_by(f32::total_cmp);
    println!(
        "median {:.1e}, most {:.1e}, {iterations:.2} iterations",
        off[COUNT / 2],
        off[COUNT - 1]
    );
    assert!(off[COUNT / 2] < 2e-6 && off[COUNT - 1] < 2e-4, "{off:?}");
}

#[test]
fn a_warp_solves_what_mujoco_solves() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(nvrtc), Some((text, problems))) = (nvrtc_folder(), go1(folder.path())) else {
        return;
    };
    let program = Program { text, places: Vec::new(), entries: vec!["newton".into()] };
    let compiler = Compiler::without_cache(Nvrtc::in_folder(&nvrtc).unwrap());
    let needs = compiler.compile(&program, "sm_90").unwrap().needs[0].needs;
    println!("{needs:?}");
    assert!(needs.stack == 0 && needs.shared <= SHARED, "{needs:?}");
    let counts = folder.path().join("counts");
    for schedule in ["alone", "lockstep"] {
        let Some(fake) = Fake::of("warp::solves") else { return };
        // The same code for both; the counts are those of lanes that go together.
        let _ = std::fs::remove_file(&counts);
        let fake = fake.with_ptx(&nvrtc).env("TEST_PROBLEMS", &problems);
        let fake = fake.env("OSTLER_CACHE", folder.path().join("cache"));
        let fake = fake.env("FAKE_COUNTS", &counts).env("FAKE_SCHEDULE", schedule);
        let (said, _) = fake.env("TEST_PROGRAM", &program.text).run();
        let line = said.lines().find(|l| l.contains("iterations")).unwrap();
        println!("{schedule}: {line}");
    }
    let counts: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(counts).unwrap()).unwrap();
    let of = |name: &str| counts[name].as_f64().unwrap();
    let each = of("warp") / COUNT as f64;
    println!("{each:.0} warp instructions, {:.0} % of lanes", of("lanes") / of("warp") / 0.32);
    assert!(each < INSTRUCTIONS && of("local_loads") == 0.0, "{counts}");
}
