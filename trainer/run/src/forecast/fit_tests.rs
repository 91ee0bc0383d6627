use super::on_gpu::{LIBRARIES, MOST_ON_GPU};
use super::*;
use crate::PRECISION;
use ostler_machine::memory::Told;
use ostler_sim::device::host::Host;
use ostler_sim::device::transfer::Staging;
use ostler_sim::device::{Address, Device, DeviceError, Kernels, Program, Traffic};

const MIB: u64 = 1 << 20;

#[test]
fn the_largest_friendly_number_that_fits_is_taken() {
    let bytes = |n: usize| 1000 + 10 * n as u64;
    let fit = |room| on_host(room, bytes);
    let of = |room| (fit(room).num_envs, fit(room).above);
    assert_eq!(of(Some(1000 + 10 * 100)), (96, Some(128)));
    assert_eq!(fit(Some(2000)).takes[0].above, Some(2280));
    assert_eq!(of(Some(1000 + 10 * 96)).0, 96);
    assert_eq!(of(Some(1000 + 10 * 95)).0, 64);
    assert_eq!(of(Some(1000 + 10 * 48)).0, 48);
    assert_eq!(of(None), (MOST, None));
    assert_eq!(of(Some(u64::MAX)), (MOST, None));
    // Nothing fits: one is tried all the same.
    assert_eq!(of(Some(0)).0, 1);
}

#[test]
fn the_reason_is_said() {
    let take = |of| Demand { of, bytes: 5 * MIB, above: Some(7 * MIB), room: Some(6 * MIB) };
    let fit = Fit { num_envs: 96, takes: vec![take("")], above: Some(128), measured: true };
    assert_eq!(
        fit.to_string(),
        "env.num_envs \"auto\" is 96, which takes 5 MiB (measured); 128 would take 7 MiB, 6 MiB may be taken"
    );
    let both = Fit { takes: vec![take(" of the GPU"), take(" of the host")], ..fit.clone() };
    assert!(
        both.to_string()
            .ends_with("7 MiB of the GPU and 7 MiB of the host, 6 MiB of the GPU and 6 MiB of the host may be taken"),
        "{both}"
    );
    let most = Fit { above: None, ..fit };
    assert!(most.to_string().ends_with("more would not make training faster"));
}

/// A GPU that nothing is computed on: its driver sets so much aside for threads.
#[derive(Debug, Default)]
struct Stacks(u64, Host);

impl Device for Stacks {
    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { self.1.copy(from, to, bytes) }
    }

    fn name(&self) -> String {
        "a GPU with stacks".into()
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn Kernels>, DeviceError> {
        self.1.load(program)
    }

    fn staging(&self, what: &str, bytes: usize) -> Result<Box<dyn Staging>, DeviceError> {
        self.1.staging(what, bytes)
    }

    unsafe fn upload(&self, from: &[u8], to: Address) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        unsafe { self.1.upload(from, to) }
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.1.synchronize()
    }

    fn local_memory(&self, program: &Program) -> Result<u64, DeviceError> {
        assert!(program.text.contains("ostler_env_step"), "the run's own");
        Ok(self.0)
    }

    fn traffic(&self) -> Traffic {
        self.1.traffic()
    }
}

/// A shipped configuration for a GPU, as a run that computes on one has it.
fn on_gpu(name: &str, more: &[(&str, &str)]) -> (Loaded, Arc<Model>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../configs/{name}.toml"));
    let own = [("device", "cuda:0"), ("env.num_envs", "64")];
    let all = own.iter().chain(more);
    let overrides: Vec<_> = all.map(|(k, v)| Override::flag("--set", k, v)).collect();
    let (loaded, model, _) = plan(&path, &overrides, None, Gpus::Trust).unwrap();
    assert_eq!(loaded.config.gpu(), Some(0));
    (loaded, model)
}

/// A machine with so many MiB free on its GPU and on its host, of which the driver takes
/// `local` for threads.
fn machine(gpu: u64, host: u64, local: u64) -> Machine {
    let told = Told { host: Some(host * MIB), device: Some(gpu * MIB) };
    let stacks = Stacks(local * MIB, Host::default());
    Machine::stand_in(Some(Arc::new(stacks))).with(told)
}

#[test]
fn on_a_gpu_the_gpus_memory_decides_and_what_its_driver_takes_counts() {
    let _alone = PRECISION.lock();
    let (loaded, model) = on_gpu("cartpole", &[]);
    let fit = |gpu, host, local| {
        let machine = machine(gpu, host, local);
        estimated(&machine, &loaded, &model).unwrap()
    };
    let n = |gpu, host, local| fit(gpu, host, local).num_envs;
    const PLENTY: u64 = 1 << 20;
    // A cap of its own, above a processor's.
    assert_eq!(n(PLENTY, PLENTY, 0), MOST_ON_GPU);
    let most = fit(PLENTY, PLENTY, 0).to_string();
    assert!(most.contains("of the GPU and"), "{most}");
    // The GPU's memory decides ...
    let some = n(2048, PLENTY, 0);
    assert!((1024..MOST_ON_GPU).contains(&some), "{some}");
    assert!(n(4096, PLENTY, 0) > some);
    // ... less what the driver takes: as if there were so much less, head-room aside.
    let kept = 1.0 - loaded.config.memory.head_room;
    let as_if = (2048.0 + 1024.0 / kept).ceil() as u64;
    assert_eq!(n(as_if, PLENTY, 1024), some);
    assert!(n(2048, PLENTY, 1024) < some);
    let said = fit(2048, PLENTY, 1024).to_string();
    assert!(said.contains("1844 MiB of the GPU"), "{said}");
    // The host's other buffers have to fit there.
    assert!(n(PLENTY, 16, 0) < 4096);
    // The estimated number takes as much as is said, and no more than is there.
    let fit = fit(2048, PLENTY, 512);
    let gpu = &fit.takes[0];
    assert!(gpu.bytes <= gpu.room.unwrap() && gpu.above.unwrap() > gpu.room.unwrap());
    assert!(gpu.bytes > (512 * MIB) + LIBRARIES, "{fit}");
}

#[test]
fn on_a_gpu_the_estimate_is_said_with_what_is_free_there() {
    let _alone = PRECISION.lock();
    let (loaded, model) = on_gpu("cartpole", &[]);
    let said = |gpu| foreseen_on(&machine(gpu, 9000, 700), &loaded, &model).unwrap();
    let enough = said(5000);
    for part in [
        "memory: with 64 environments about ",
        "MiB of the GPU (700 of them for the environments' threads, 5000 are free) and ",
        "MiB of the host (9000 are free), estimated",
    ] {
        assert!(enough.contains(part), "{enough}");
    }
    assert!(!enough.contains("do not fit"), "{enough}");
    assert!(said(800).contains("do not fit"), "{enough}");
    // Without room for the stacks fewer environments would not help.
    let refused = foreseen_on(&machine(600, 9000, 700), &loaded, &model).unwrap_err();
    let text = refused.to_string();
    for part in ["needs 700 MiB of the GPU for the stacks", "600 MiB are free", "sim.device=cpu"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_memory_of_the_past_takes_its_part_of_a_gpu() {
    let _alone = PRECISION.lock();
    let n = |storage: &str| {
        let more = [
            ("runner.algorithm", "sac"),
            ("replay.storage", storage),
            ("replay.capacity", "6000000"),
        ];
        let (loaded, model) = on_gpu("cartpole", &more);
        let machine = machine(1000, 1 << 20, 0);
        estimated(&machine, &loaded, &model).unwrap().num_envs
    };
    // 6 M transitions do not fit into a quarter: "auto" has the newest there.
    assert!(n("device") < n("auto"));
    assert!(n("auto") <= n("host"));
}
