//! The learner's kernels compile for GPUs, without one.

use crate::support::nvrtc::nvrtc_folder;
use ostler_sim::device::cuda::compile::Compiler;
use ostler_sim::device::cuda::nvrtc::Nvrtc;
use ostler_trainer::learner::device_program;

#[test]
fn all_entries_compile_for_gpus_without_a_spill() {
    let Some(folder) = nvrtc_folder() else { return };
    let compiler = Compiler::without_cache(Nvrtc::in_folder(&folder).unwrap());
    for architecture in ["sm_80", "sm_89", "sm_90", "sm_120"] {
        let compiled = compiler.compile(&device_program(), architecture).unwrap();
        assert_eq!(compiled.needs.len(), device_program().entries.len());
        for entry in &compiled.needs {
            println!("{architecture}: {entry:?}, {:.1} s", compiled.seconds);
            let needs = &entry.needs;
            assert_eq!((needs.spill_stores, needs.spill_loads), (0, 0), "{entry:?}");
            // As many as let a multiprocessor have 8 blocks of 128.
            assert!(needs.registers <= 64, "{entry:?}");
        }
    }
}
