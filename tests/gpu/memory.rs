//! Memory on the device: none is asked for after the first rollouts, and where there is
//! none that is an error.

use crate::place::{Rows, figure, gpu, place, task};
use ostler_collector::device::TorchMemory;
use ostler_collector::{Collector, CudaSync};
use ostler_sim::device::{DeviceError, Memory};
use ostler_trainer::torch::device_memory;
use tch::{Kind, Tensor};

#[test]
fn collecting_asks_for_no_memory_after_the_first_rollouts() {
    let Some(place) = gpu() else { return };
    let cuda = place.cuda.as_ref().unwrap();
    let mut t = task(&place, "ant", place.pick(4096, 16));
    let mut c = t.collector(&place, 16, CudaSync::Off);
    let mut collect = |rounds: usize| {
        for _ in 0..rounds {
            c.collect(&mut t.policy).unwrap();
        }
    };
    collect(3);
    let tch::Device::Cuda(index) = place.torch else { unreachable!("place::gpu gives a GPU") };
    let held = || {
        let free = cuda.free_memory().unwrap().0;
        (device_memory(index).unwrap(), free)
    };
    let before = held();
    collect(20);
    assert_eq!(before, held());
    figure("memory.reserved_mib", before.0.reserved as f64 / 1048576.0);
}

#[test]
fn too_much_is_an_error_and_the_environments_go_on() {
    let place = place();
    let t = task(&place, "cartpole", 32);
    let memory = TorchMemory(place.torch);
    let mut env = t.on_device(&place, &memory);
    let rows = Rows::new(&place, &env);
    env.reset(true, rows.obs()).unwrap();
    env.begin_rollout(None).unwrap();
    rows.step(&mut env);
    for _ in 0..3 {
        let error = memory.zeroed("too much", 1 << 45).unwrap_err();
        assert_eq!(error.bytes, 1 << 45);
        let error = Tensor::f_empty([1 << 44], (Kind::Float, place.torch)).unwrap_err();
        assert!(ostler_collector::memory::out_of_memory(&error).is_some(), "{error}");
        rows.step(&mut env);
    }
    // Pinned memory is the host's; asked for by the driver.
    if place.cuda.is_some() {
        let error = place.device.staging("too much", 1 << 45).unwrap_err();
        assert!(matches!(error, DeviceError::Memory(_)), "{error}");
        rows.step(&mut env);
    }
    let valid: f64 = rows.flags[2].sum(Kind::Double).double_value(&[]);
    assert_eq!(valid, 32.0);
}
