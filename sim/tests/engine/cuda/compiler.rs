//! Programs compiled for GPUs.

use super::work::fill;
use crate::support::nvrtc::nvrtc_folder;
use ostler_sim::device::cuda::compile::Compiler;
use ostler_sim::device::cuda::nvrtc::Nvrtc;
use ostler_sim::device::{DeviceError, Program, SourceRange};

fn compiler() -> Option<Compiler> {
    let nvrtc = Nvrtc::in_folder(&nvrtc_folder()?).unwrap();
    Some(Compiler::without_cache(nvrtc))
}

#[test]
fn a_program_becomes_code_and_its_needs_are_known() {
    let Some(compiler) = compiler() else { return };
    for architecture in ["sm_80", "sm_90", "sm_120"] {
        assert!(compiler.nvrtc().knows(architecture));
        let compiled = compiler.compile(&fill(), architecture).unwrap();
        assert_eq!(compiled.cubin[..4], *b"\x7fELF");
        assert_eq!(compiled.architecture, architecture);
        let [fill] = &compiled.needs[..] else { panic!("{:?}", compiled.needs) };
        assert_eq!(fill.entry, "fill");
        let needs = fill.needs;
        assert!((4..64).contains(&needs.registers), "{needs:?}");
        assert_eq!((needs.stack, needs.spill_stores, needs.shared), (0, 0, 0));
    }
}

#[test]
fn each_entry_has_needs_of_its_own() {
    let Some(compiler) = compiler() else { return };
    let program = Program {
        text: r#"
extern "C" __global__ void small(int* a) { a[0] = 1; }
extern "C" __global__ void large(int* a) {
  __shared__ int s[256];
  int local[100];
  for (int i = 0; i < 100; ++i) local[i] = a[i] * i;
  s[threadIdx.x] = local[a[0]];
  __syncthreads();
  a[threadIdx.x] = s[255 - threadIdx.x] + local[a[1]];
}
"#
        .into(),
        places: Vec::new(),
        entries: vec!["large".into(), "small".into()],
    };
    let compiled = compiler.compile(&program, "sm_90").unwrap();
    let names: Vec<_> = compiled.needs.iter().map(|n| n.entry.as_str()).collect();
    assert_eq!(names, ["large", "small"]);
    let [large, small] = [compiled.needs[0].needs, compiled.needs[1].needs];
    assert!(large.stack >= 400 && large.shared == 1024, "{large:?}");
    assert!(small.stack == 0 && small.shared == 0, "{small:?}");
    assert!(small.registers < large.registers);
    // An entry that the text lacks.
    let mut program = program;
    program.entries.push("missing".into());
    let error = compiler.compile(&program, "sm_90").unwrap_err();
    assert!(matches!(&error, DeviceError::Defect(e) if e.contains("missing")), "{error}");
}

#[test]
fn an_error_names_the_part_of_the_user_s_file() {
    let Some(compiler) = compiler() else { return };
    let program = Program {
        text: r#"
extern "C" __global__ void step(float* out) {
#line 1 "task.reward[0].expr"
  out[0] = 1.0f + 2.0f;
#line 1 "task.reward[1].expr"
  out[1] = speed + 2.0f;
#line 7 "program.cu"
}
"#
        .into(),
        places: [("task.reward[0].expr", "1 + 2"), ("task.reward[1].expr", "speed + 2")]
            .map(|(name, text)| SourceRange {
                name: name.into(),
                key: name.into(),
                text: text.into(),
            })
            .into(),
        entries: vec!["step".into()],
    };
    let error = compiler.compile(&program, "sm_90").unwrap_err();
    let text = error.to_string();
    let DeviceError::Compile(error) = error else { panic!("{text}") };
    let place = ("task.reward[1].expr".to_owned(), "speed + 2".to_owned());
    assert_eq!(error.place, Some(place));
    assert_eq!(error.target, "sm_90");
    assert!(error.message.contains("\"speed\" is undefined"), "{text}");
    assert!(error.log.contains("1 error detected"), "{}", error.log);
    assert!(text.contains("in task.reward[1].expr = \"speed + 2\""), "{text}");
}

#[test]
fn devices_get_the_nearest_code_that_they_run() {
    let Some(compiler) = compiler() else { return };
    let nvrtc = compiler.nvrtc();
    let of = |capability| nvrtc.architecture("a GPU", capability);
    assert_eq!(of((8, 0)).unwrap(), "sm_80");
    assert_eq!(of((9, 0)).unwrap(), "sm_90");
    assert_eq!(of((12, 0)).unwrap(), "sm_120");
    // One that is not known yet runs code of its kind.
    assert_eq!(of((8, 9)).unwrap(), "sm_89");
    assert_eq!(of((9, 9)).unwrap(), "sm_90");
    let error = of((99, 0)).unwrap_err().to_string();
    assert!(error.contains("sm_990") && error.contains("a newer one"), "{error}");
    let error = of((3, 5)).unwrap_err().to_string();
    assert!(error.contains("sm_35") && error.contains("an older one"), "{error}");
}

#[test]
fn several_threads_compile_at_once() {
    let Some(compiler) = compiler() else { return };
    std::thread::scope(|scope| {
        let threads = ["sm_80", "sm_90", "sm_89"]
            .map(|a| scope.spawn(|| compiler.compile(&fill(), a).unwrap()));
        for thread in threads {
            let compiled = thread.join().unwrap();
            let alone = compiler.compile(&fill(), &compiled.architecture).unwrap();
            assert_eq!(compiled.cubin, alone.cubin);
        }
    });
}
