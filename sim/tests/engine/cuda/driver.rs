//! The driver's calls, against a library that stands in for it: every reason why there is
//! no GPU is told from the others, and what is started is done in order.

use super::fake::Fake;
use super::work::{self, Args, block, fill, read};
use crate::support::nvrtc::nvrtc_folder;
use ostler_sim::device::cuda::{Cuda, Unavailable};
use ostler_sim::device::transfer::Reader;
use ostler_sim::device::{Block, Device, DeviceError, Kernels, Memory};
use std::sync::Arc;

/// The message with which `Cuda::open` refuses, in a process of its own.
fn refusal(fake: Fake) -> String {
    let (text, _) = fake.run();
    let (_, reason) = text.split_once("REASON ").expect("a reason");
    reason.lines().next().unwrap().to_owned()
}

#[test]
#[ignore = "only run by another test"]
fn says_why() {
    let ordinal = std::env::var("TEST_ORDINAL").map_or(0, |n| n.parse().unwrap());
    let maps = || std::fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps().contains("libcuda"), "mapped before it was asked for");
    let error = Cuda::open(ordinal).unwrap_err();
    let mapped = !matches!(error, Unavailable::NoDriver { .. });
    assert_eq!(maps().contains("libcuda"), mapped);
    let told = DeviceError::from(error.clone()).to_string();
    assert_eq!(told, error.to_string());
    // One word of the variant, then the message.
    let variant = format!("{error:?}");
    let variant = variant.split([' ', '{']).next().unwrap();
    println!("REASON {variant}: {error}");
}

/// A scenario, its environment variables, the reason and the message.
type Case = (&'static [(&'static str, &'static str)], &'static str, &'static [&'static str]);

#[test]
fn every_reason_is_told_from_the_others() {
    let cases: [Case; 12] = [
        (&[("FAKE_VERSION", "11040")], "DriverTooOld", &["CUDA 11.4", "12.0", "driver 525"]),
        (&[("FAKE_FAIL", "cuInit=100")], "NoDevice", &["nvidia-smi -L"]),
        (&[("FAKE_DEVICES", "0")], "NoDevice", &["/dev/nvidia0"]),
        (
            &[("FAKE_FAIL", "cuInit=100"), ("CUDA_VISIBLE_DEVICES", "")],
            "NoDevice",
            &["CUDA_VISIBLE_DEVICES=\"\" hides all", "unset it"],
        ),
        (
            &[("FAKE_DEVICES", "0"), ("CUDA_VISIBLE_DEVICES", "-1")],
            "NoDevice",
            &["CUDA_VISIBLE_DEVICES=\"-1\" hides all"],
        ),
        (
            &[("FAKE_DEVICES", "0"), ("CUDA_VISIBLE_DEVICES", "9")],
            "NoDevice",
            &["none with CUDA_VISIBLE_DEVICES=\"9\""],
        ),
        (&[("TEST_ORDINAL", "5")], "OrdinalOutOfRange", &["no cuda:5", "2 GPUs", "last is cuda:1"]),
        (
            &[("TEST_ORDINAL", "1"), ("FAKE_DEVICES", "1"), ("CUDA_VISIBLE_DEVICES", "3")],
            "OrdinalOutOfRange",
            &["1 GPU,", "CUDA_VISIBLE_DEVICES=3"],
        ),
        (
            &[("FAKE_FAIL", "cuInit=803")],
            "Refused",
            &["CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)", "restart"],
        ),
        (
            &[("FAKE_FAIL", "cuDevicePrimaryCtxRetain=2")],
            "Refused",
            &["cuda:0", "CUDA_ERROR_OUT_OF_MEMORY", "other processes"],
        ),
        (&[("FAKE_FAIL", "cuDriverGetVersion=34")], "Stub", &["lib64/stubs", "LD_LIBRARY_PATH"]),
        (
            &[("OSTLER_NVRTC", "/nonexistent")],
            "NamedNvrtc",
            &["OSTLER_NVRTC=/nonexistent", "libnvrtc.so"],
        ),
    ];
    for (environment, variant, says) in cases {
        let Some(mut fake) = Fake::new("says_why") else {
            return;
        };
        for (name, value) in environment {
            fake = fake.env(name, value);
        }
        let reason = refusal(fake);
        let (found, message) = reason.split_once(": ").unwrap();
        assert_eq!(found, variant, "{reason}");
        for part in says {
            assert!(message.contains(part), "{message} lacks {part}");
        }
    }
}

#[test]
fn a_library_that_lacks_a_function_is_refused_before_it_is_called() {
    let Some(fake) = Fake::new("says_why") else {
        return;
    };
    let reason = refusal(fake.incomplete());
    assert!(reason.starts_with("Incomplete"), "{reason}");
    assert!(reason.contains("cuMemHostAlloc"), "{reason}");
}

#[test]
fn a_compiler_newer_than_the_driver_is_refused() {
    let (Some(folder), Some(fake)) = (nvrtc_folder(), Fake::new("says_why")) else {
        return;
    };
    // The referees' compiler is one of CUDA 13.
    let fake = fake.env("OSTLER_NVRTC", folder).env("FAKE_VERSION", "12040");
    let reason = refusal(fake);
    assert!(reason.starts_with("NvrtcTooNew"), "{reason}");
    for part in ["NVRTC 13.", "CUDA 12.4", "NVRTC of CUDA 12"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn without_a_driver_there_is_a_reason_with_a_remedy() {
    let Some(fake) = Fake::new("says_why") else {
        return;
    };
    let reason = refusal(fake.without_driver());
    assert!(reason.starts_with("NoDriver"), "{reason}");
    for part in ["libcuda.so.1", "install NVIDIA's driver", "--gpus all"] {
        assert!(reason.contains(part), "{reason}");
    }
}

/// A scenario with a compiler.
fn scenario(name: &str) -> Option<Fake> {
    let folder = nvrtc_folder()?;
    Some(Fake::new(name)?.env("OSTLER_NVRTC", folder))
}

fn cuda() -> Arc<Cuda> {
    Cuda::open(1).unwrap()
}

#[test]
fn what_is_started_is_done_in_order() {
    let Some(fake) = scenario("works") else {
        return;
    };
    let (_, log) = fake.run();
    // Threads spread over the device: 1000 are 32 blocks on 132 multiprocessors.
    assert!(log.contains(&"cuLaunchKernel 32 x 32".to_owned()), "{log:?}");
    let count = |name: &str| log.iter().filter(|l| l.starts_with(name)).count();
    // Once each: in `synchronize`, which is asked for once.
    assert_eq!(count("cuCtxSynchronize"), 1);
    assert_eq!(count("cuDevicePrimaryCtxRetain"), 1);
    assert_eq!(count("cuDevicePrimaryCtxRelease"), 1);
    assert_eq!(count("cuEventCreate"), count("cuEventDestroy"));
    assert_eq!(count("cuMemAlloc"), count("cuMemFree_v2"));
    assert_eq!(count("cuMemHostAlloc"), count("cuMemFreeHost"));
    // A copy to the host is followed by its mark, and that is what is waited for.
    for (at, _) in log.iter().enumerate().filter(|(_, l)| l.starts_with("cuMemcpyDtoH")) {
        assert_eq!(log[at + 1], "cuEventRecord");
        assert_eq!(log[at + 2], "cuEventSynchronize");
    }
}

#[test]
#[ignore = "only run by another test"]
fn works() {
    let cuda = cuda();
    assert_eq!(cuda.name(), "Fake GPU (cuda:1, sm_90)");
    let (free, total) = cuda.free_memory().unwrap();
    let held = block(&cuda, 1 << 20);
    assert_eq!(cuda.free_memory().unwrap(), (free - (1 << 20), total));
    drop(held);
    assert_eq!(cuda.free_memory().unwrap(), (free, total));
    work::launches_and_copies_keep_their_order(&cuda);
    work::uploads_are_independent_of_what_becomes_of_their_bytes(&cuda);
    work::arguments_of_another_length_are_refused(&cuda);
    // A second load takes the code from the cache.
    let again = cuda.kernels(&fill()).unwrap();
    assert_eq!(again.needs()[0].entry, "fill");
    // A stack for each of the 2048 threads of all 132 multiprocessors.
    assert_eq!(cuda.local_memory(&fill()).unwrap(), 0);
    let deep = work::deep();
    let stack = cuda.kernels(&deep).unwrap().needs()[0].needs.stack;
    assert!(stack >= 4000, "{stack}");
    let local = cuda.local_memory(&deep).unwrap();
    assert_eq!(local, u64::from(stack) * 132 * 2048);
}

/// Fills a block of 16 numbers.
fn launch(kernels: &dyn Kernels, there: &Block) -> Result<(), DeviceError> {
    let args = Args { out: there.address(), n: 16, value: 3 };
    // SAFETY: the block has 16 numbers.
    unsafe { kernels.launch(0, 16, bytemuck::bytes_of(&args)) }
}

#[test]
fn out_of_memory_is_told_and_survived() {
    let Some(fake) = scenario("runs_out_of_memory") else {
        return;
    };
    fake.env("FAKE_FAIL", "cuMemHostAlloc@1=2;cuMemAlloc_v2@2=2;cuLaunchKernel@1=2").run();
}

#[test]
#[ignore = "only run by another test"]
fn runs_out_of_memory() {
    let cuda = cuda();
    let there = block(&cuda, 64);
    let error = cuda.memory().zeroed("rollouts", 1 << 40).unwrap_err();
    assert_eq!((error.what.as_str(), error.bytes), ("rollouts", 1 << 40));
    let error = cuda.staging("statistics", 64).unwrap_err();
    let memory = error.out_of_memory().expect("memory");
    assert_eq!(memory.bytes, 64);
    assert!(memory.what.contains("statistics"), "{error}");
    let kernels = cuda.load(&fill()).unwrap();
    let launch = || launch(&*kernels, &there);
    let error = launch().unwrap_err();
    assert!(error.out_of_memory().is_some(), "{error}");
    assert!(error.to_string().contains("`fill`"), "{error}");
    // It goes on.
    launch().unwrap();
    let reader = Reader::new(cuda.staging("statistics", 64).unwrap());
    let reader = read(reader, &there).unwrap();
    let expected: Vec<u32> = (3..19).collect();
    assert_eq!(work::numbers(reader.bytes()), expected);
}

#[test]
fn a_program_stays_until_what_was_launched_from_it_is_done() {
    let Some(fake) = scenario("unloads_a_program") else {
        return;
    };
    let (_, log) = fake.run();
    let at = |call: &str| log.iter().rposition(|l| l.starts_with(call)).unwrap();
    let unload = at("cuModuleUnload");
    assert!(at("cuLaunchKernel") < unload, "{log:?}");
    assert_eq!(log[unload - 2], "cuEventRecord", "{log:?}");
    assert_eq!(log[unload - 1], "cuEventSynchronize", "{log:?}");
}

#[test]
#[ignore = "only run by others"]
fn unloads_a_program() {
    let cuda = cuda();
    let there = block(&cuda, 64);
    let kernels = cuda.load(&fill()).unwrap();
    launch(&*kernels, &there).unwrap();
    drop(kernels);
    let reader = Reader::new(cuda.staging("numbers", 64).unwrap());
    let reader = read(reader, &there).unwrap();
    let expected: Vec<u32> = (3..19).collect();
    assert_eq!(work::numbers(reader.bytes()), expected);
}

#[test]
fn a_lost_device_says_so_in_every_call_and_ends_in_order() {
    let Some(fake) = scenario("loses_the_device") else {
        return;
    };
    fake.env("FAKE_FAIL", "cuLaunchKernel@2=700").run();
}

#[test]
#[ignore = "only run by another test"]
fn loses_the_device() {
    let cuda = cuda();
    let there = block(&cuda, 64);
    let reader = Reader::new(cuda.staging("numbers", 64).unwrap());
    let kernels = cuda.load(&fill()).unwrap();
    let launch = || launch(&*kernels, &there);
    launch().unwrap();
    let flight = {
        // SAFETY: the block is as long as the reader.
        unsafe { reader.begin(there.address()) }.unwrap()
    };
    let errors = [
        launch().unwrap_err(),
        launch().unwrap_err(),
        // The data on its way never lands: there is nothing to read.
        flight.wait().unwrap_err(),
        cuda.fence().unwrap_err(),
        cuda.synchronize().unwrap_err(),
        cuda.staging("more", 64).unwrap_err(),
        // SAFETY: the block is longer.
        unsafe { cuda.upload(&[1], there.address()) }.unwrap_err(),
    ];
    for error in errors {
        assert!(error.out_of_memory().is_none());
        let text = error.to_string();
        for part in [
            "CUDA error: CUDA_ERROR_ILLEGAL_ADDRESS (700) from cu",
            "an illegal memory access was encountered",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
