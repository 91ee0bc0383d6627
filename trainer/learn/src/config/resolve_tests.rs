//! Which device a run gets, for any answer of a machine.

use super::{Config, CudaSync, Gpus, Machine, Override, parse};
use ostler_machine::torch::cuda::driver::Version;
use ostler_machine::torch::cuda::{Found, NoCuda};
use ostler_sim::config::SimDevice;
use ostler_sim::device::cuda::Unavailable;
use std::path::Path;

/// The configuration as it is with a machine's answer about GPUs, and what was noted.
fn on(set: &[&str], earlier: Option<&Config>, gpus: Gpus<'_>) -> Result<(Config, String), String> {
    let set: Vec<_> = set.iter().map(|s| Override::set(*s)).collect();
    let loaded = parse("[task]\nrobot='a.xml'", Path::new("a/c.toml"), &set);
    let mut c = loaded.map_err(|e| e.to_string())?.config;
    let notes = c.resolve(earlier, gpus).map_err(|e| e.to_string())?.notes;
    Ok((c, notes.join("\n")))
}

/// A machine with a compiler; its GPU by a function.
struct With(fn(usize) -> Result<Found, NoCuda>);

impl Machine for With {
    fn gpu(&self, index: usize) -> Result<Found, NoCuda> {
        (self.0)(index)
    }

    fn compiler(&self, _: &Found) -> Result<(), Unavailable> {
        Ok(())
    }
}

/// A GPU, and nothing to compile for it.
struct Uncompiled;

impl Machine for Uncompiled {
    fn gpu(&self, index: usize) -> Result<Found, NoCuda> {
        one_gpu(index)
    }

    fn compiler(&self, gpu: &Found) -> Result<(), Unavailable> {
        Err(Unavailable::NoDevice { visible: Some(gpu.name.clone()) })
    }
}

fn one_gpu(index: usize) -> Result<Found, NoCuda> {
    let none = NoCuda::OutOfRange { index, count: 1, visible: None };
    let found = Found {
        index,
        name: "NVIDIA Test".into(),
        capability: (9, 0),
        driver: Version { major: 13, minor: 0 },
    };
    if index == 0 { Ok(found) } else { Err(none) }
}

fn no_gpu(_: usize) -> Result<Found, NoCuda> {
    Err(NoCuda::NoneVisible { hidden: None })
}

fn nobody(_: usize) -> Result<Found, NoCuda> {
    panic!("asked for a GPU that the configuration does not want")
}

#[test]
fn auto_is_the_gpu_that_is_there_or_the_processor_and_says_which() {
    let (c, said) = on(&[], None, Gpus::Ask(&With(one_gpu))).unwrap();
    assert_eq!((c.device.as_str(), c.gpu()), ("cuda:0", Some(0)));
    assert_eq!(c.sim.device, SimDevice::Cuda);
    assert!(said.contains("\"auto\" is cuda:0, NVIDIA Test"), "{said}");

    let (c, said) = on(&[], None, Gpus::Ask(&With(no_gpu))).unwrap();
    assert_eq!((c.device.as_str(), c.gpu()), ("cpu", None));
    assert_eq!(c.sim.device, SimDevice::Cpu);
    assert!(said.contains("\"auto\" is cpu: no GPU is visible"), "{said}");
}

#[test]
fn a_gpu_that_is_not_there_is_refused_with_the_way_out() {
    let refused = |set| on(set, None, Gpus::Ask(&With(one_gpu))).unwrap_err();
    let e = refused(&["device=cuda:3"]);
    for words in ["\"cuda:3\"", "1 is visible", "--device cpu"] {
        assert!(e.contains(words), "{e}");
    }
    let e = on(&["sim.device=cuda"], None, Gpus::Ask(&With(no_gpu))).unwrap_err();
    for words in ["sim.device", "no GPU is visible", "sim.device=auto"] {
        assert!(e.contains(words), "{e}");
    }
    let (c, _) = on(&["device=cuda"], None, Gpus::Ask(&With(one_gpu))).unwrap();
    assert_eq!(c.device, "cuda:0", "the number is recorded");
}

#[test]
fn the_processor_asks_for_no_gpu() {
    let (c, said) = on(&["device=cpu"], None, Gpus::Ask(&With(nobody))).unwrap();
    assert_eq!((c.sim.device, said.as_str()), (SimDevice::Cpu, ""));
    for device in ["auto", "cpu", "cuda:7"] {
        on(&[&format!("device={device}")], None, Gpus::Trust).unwrap();
    }
}

#[test]
fn a_run_that_goes_on_stays_on_its_device() {
    let (earlier, _) = on(&["device=cuda:0"], None, Gpus::Ask(&With(one_gpu))).unwrap();
    let (c, _) = on(&[], Some(&earlier), Gpus::Ask(&With(one_gpu))).unwrap();
    assert_eq!((c.device.as_str(), c.sim.device), ("cuda:0", SimDevice::Cuda));
    let e = on(&[], Some(&earlier), Gpus::Ask(&With(no_gpu))).unwrap_err();
    assert!(e.contains("\"cuda:0\" cannot be used"), "{e}");

    let (earlier, _) = on(&["device=cpu"], None, Gpus::Ask(&With(nobody))).unwrap();
    let (c, _) = on(&[], Some(&earlier), Gpus::Ask(&With(nobody))).unwrap();
    assert_eq!(c.device, "cpu", "a GPU that has come since changes nothing");
}

#[test]
fn physics_follow_the_device_where_the_engine_can() {
    let gpu = |set: &[&str]| on(set, None, Gpus::Ask(&With(one_gpu))).map(|(c, _)| c.sim.device);
    let cpu = Ok(SimDevice::Cpu);
    assert_eq!(gpu(&["device=cuda:0", "sim.backend=rapier"]), cpu);
    assert_eq!(gpu(&["device=cuda:0", "sim.device=cpu"]), cpu);
    assert_eq!(gpu(&["device=cuda:0"]), Ok(SimDevice::Cuda));
    for (set, words) in [
        (
            &["device=cuda:0", "sim.backend=rapier", "sim.device=cuda"][..],
            "rapier computes on the processor only",
        ),
        (&["device=cpu", "sim.device=cuda"], "device = \"cpu\" has none"),
        (&["sim.device=gpu"], "sim.device"),
        (&["collector.cuda_sync=on"], "collector.cuda_sync"),
    ] {
        let e = gpu(set).unwrap_err();
        assert!(e.contains(words), "{words:?} not in {e}");
    }
}

#[test]
fn a_wait_for_a_gpu_that_is_not_there_is_noted() {
    let wait = ["device=cpu", "collector.cuda_sync=event"];
    let (_, said) = on(&wait, None, Gpus::Ask(&With(nobody))).unwrap();
    let words = "cuda_sync = \"event\" has no meaning";
    assert!(said.contains(words), "{said}");
    let wait = ["device=cuda:0", "collector.cuda_sync=device"];
    let (c, said) = on(&wait, None, Gpus::Ask(&With(one_gpu))).unwrap();
    assert_eq!(c.collector.cuda_sync, CudaSync::Device);
    assert!(!said.contains("no meaning"), "{said}");
}

#[test]
fn f2_the_log_says_which_wait_is_in_force() {
    for (mode, words) in [
        ("off", "cuda_sync is \"off\": the host waits for the GPU once per rollout"),
        ("event", "cuda_sync is \"event\": the host waits for an event in every"),
        ("device", "cuda_sync is \"device\": the host waits for the whole GPU in"),
    ] {
        let set = format!("collector.cuda_sync={mode}");
        for device in ["device=auto", "device=cuda:0"] {
            let (_, said) = on(&[device, &set], None, Gpus::Ask(&With(one_gpu))).unwrap();
            assert!(said.contains(words), "{said}");
        }
    }
    let (_, said) = on(&["device=cpu"], None, Gpus::Ask(&With(nobody))).unwrap();
    assert_eq!(said, "");
}

#[test]
fn without_a_compiler_auto_is_the_processor_and_a_named_gpu_is_refused() {
    let on = |set: &[&str]| on(set, None, Gpus::Ask(&Uncompiled));
    let (c, said) = on(&[]).unwrap();
    assert_eq!((c.device.as_str(), c.sim.device), ("cpu", SimDevice::Cpu));
    let words = "\"auto\" is cpu: NVIDIA Test is here, but no NVIDIA GPU";
    assert!(said.contains(words), "{said}");
    // Wherever the physics is: the learner needs it, too.
    for set in ["sim.device=cpu", "sim.backend=rapier"] {
        let (c, _) = on(&[set]).unwrap();
        assert_eq!((c.device.as_str(), c.sim.device), ("cpu", SimDevice::Cpu));
    }
    let e = on(&["device=cuda:0", "sim.device=cpu"]).unwrap_err();
    let words = ["\"cuda:0\" cannot be used", "no NVIDIA GPU", "--device cpu"];
    assert!(words.iter().all(|w| e.contains(w)), "{e}");
    let e = on(&["sim.device=cuda"]).unwrap_err();
    assert!(e.contains("NVIDIA Test is here, but"), "{e}");
}

#[test]
fn threads_do_not_collect_from_environments_on_a_gpu() {
    for set in [&["collector.kind=async"][..], &["collector.kind=async", "sim.device=auto"]] {
        let e = on(set, None, Gpus::Ask(&With(one_gpu))).unwrap_err();
        assert!(e.contains("\"async\" cannot be used"), "{e}");
    }
    let set = ["collector.kind=async", "sim.device=cpu"];
    on(&set, None, Gpus::Ask(&With(one_gpu))).unwrap();
}
