//! Which device a run gets, for any answer of a machine.

use super::{Config, CudaSync, Gpus, Override, parse};
use crate::torch::cuda::driver::Version;
use crate::torch::cuda::{Found, NoCuda};
use ostler_sim::config::SimDevice;
use std::path::Path;

/// The configuration as it is with a machine's answer about GPUs, and what was noted.
fn on(set: &[&str], earlier: Option<&Config>, gpus: Gpus<'_>) -> Result<(Config, String), String> {
    let set: Vec<_> = set.iter().map(|s| Override::set(*s)).collect();
    let loaded = parse("[task]\nrobot='a.xml'", Path::new("a/c.toml"), &set);
    let mut c = loaded.map_err(|e| e.to_string())?.config;
    let notes = c.resolve(earlier, gpus).map_err(|e| e.to_string())?.notes;
    Ok((c, notes.join("\n")))
}

fn one_gpu(index: usize) -> Result<Found, NoCuda> {
    let none = NoCuda::OutOfRange {
        index,
        count: 1,
        visible: None,
    };
    let found = Found {
        index,
        name: "NVIDIA Test".into(),
        capability: (9, 0),
        driver: Version {
            major: 13,
            minor: 0,
        },
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
    let (c, said) = on(&[], None, Gpus::Ask(&one_gpu)).unwrap();
    assert_eq!((c.device.as_str(), c.gpu()), ("cuda:0", Some(0)));
    assert_eq!(c.sim.device, SimDevice::Cuda);
    assert!(said.contains("\"auto\" is cuda:0, NVIDIA Test"), "{said}");

    let (c, said) = on(&[], None, Gpus::Ask(&no_gpu)).unwrap();
    assert_eq!((c.device.as_str(), c.gpu()), ("cpu", None));
    assert_eq!(c.sim.device, SimDevice::Cpu);
    assert!(
        said.contains("\"auto\" is cpu: no GPU is visible"),
        "{said}"
    );
}

#[test]
fn a_gpu_that_is_not_there_is_refused_with_the_way_out() {
    let refused = |set| on(set, None, Gpus::Ask(&one_gpu)).unwrap_err();
    let e = refused(&["device=cuda:3"]);
    for words in ["\"cuda:3\"", "1 is visible", "--device cpu"] {
        assert!(e.contains(words), "{e}");
    }
    let e = on(&["sim.device=cuda"], None, Gpus::Ask(&no_gpu)).unwrap_err();
    for words in ["sim.device", "no GPU is visible", "sim.device=auto"] {
        assert!(e.contains(words), "{e}");
    }
    let (c, _) = on(&["device=cuda"], None, Gpus::Ask(&one_gpu)).unwrap();
    assert_eq!(c.device, "cuda:0", "the number is recorded");
}

#[test]
fn the_processor_asks_for_no_gpu() {
    let (c, said) = on(&["device=cpu"], None, Gpus::Ask(&nobody)).unwrap();
    assert_eq!((c.sim.device, said.as_str()), (SimDevice::Cpu, ""));
    for device in ["auto", "cpu", "cuda:7"] {
        on(&[&format!("device={device}")], None, Gpus::Trust).unwrap();
    }
}

#[test]
fn a_run_that_goes_on_stays_on_its_device() {
    let (earlier, _) = on(&["device=cuda:0"], None, Gpus::Ask(&one_gpu)).unwrap();
    let (c, _) = on(&[], Some(&earlier), Gpus::Ask(&one_gpu)).unwrap();
    assert_eq!(
        (c.device.as_str(), c.sim.device),
        ("cuda:0", SimDevice::Cuda)
    );
    let e = on(&[], Some(&earlier), Gpus::Ask(&no_gpu)).unwrap_err();
    assert!(e.contains("\"cuda:0\" cannot be used"), "{e}");

    let (earlier, _) = on(&["device=cpu"], None, Gpus::Ask(&nobody)).unwrap();
    let (c, _) = on(&[], Some(&earlier), Gpus::Ask(&nobody)).unwrap();
    assert_eq!(c.device, "cpu", "a GPU that has come since changes nothing");
}

#[test]
fn physics_follow_the_device_where_the_engine_can() {
    let gpu = |set: &[&str]| on(set, None, Gpus::Ask(&one_gpu)).map(|(c, _)| c.sim.device);
    let cpu = Ok(SimDevice::Cpu);
    assert_eq!(gpu(&["device=cuda:0", "sim.backend=rapier"]), cpu);
    assert_eq!(gpu(&["device=cuda:0", "sim.device=cpu"]), cpu);
    assert_eq!(gpu(&["device=cuda:0"]), Ok(SimDevice::Cuda));
    for (set, words) in [
        (
            &["device=cuda:0", "sim.backend=rapier", "sim.device=cuda"][..],
            "rapier computes on the processor only",
        ),
        (
            &["device=cpu", "sim.device=cuda"],
            "device = \"cpu\" has none",
        ),
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
    let (_, said) = on(&wait, None, Gpus::Ask(&nobody)).unwrap();
    let words = "cuda_sync = \"event\" has no meaning";
    assert!(said.contains(words), "{said}");
    let wait = ["device=cuda:0", "collector.cuda_sync=device"];
    let (c, said) = on(&wait, None, Gpus::Ask(&one_gpu)).unwrap();
    assert_eq!(
        (c.collector.cuda_sync, said.as_str()),
        (CudaSync::Device, "")
    );
}
