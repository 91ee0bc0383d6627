//! Pins: environments that do not fit are an error, and fewer of them are built in the
//! same process.

use crate::support::alone;
use ostler_sim::BatchEnv;
use ostler_sim::config::{Auto, Backend, EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::EnvError;
use ostler_sim::model::{Model, mjcf};
use ostler_sim::physics::SnapshotError;
use std::path::Path;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

/// Lets this process have `more` bytes of data beyond what it has; all that the system
/// allows without.
fn limit(more: Option<u64>) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split_whitespace().nth(5).unwrap().parse().unwrap();
    let mut rlimit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads and sets a limit through a struct of this function.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_DATA, &raw mut rlimit), 0);
        rlimit.rlim_cur = more.map_or(rlimit.rlim_max, |more| pages * 4096 + more);
        assert_eq!(libc::setrlimit(libc::RLIMIT_DATA, &raw const rlimit), 0);
    }
}

fn build(model: &Arc<Model>, backend: Backend, num_envs: usize) -> Result<BatchEnv, EnvError> {
    let task = r#"
observation = [{ name = "q", expr = "concat(qpos, qvel)" }]
reward = [{ name = "alive", expr = "1" }]
action = [{ actuators = ["*"] }]
"#;
    let task: TaskConfig = toml::from_str(task).unwrap();
    let sim = SimConfig {
        backend,
        specialize: Specialize::Off,
        threads: Auto::N(1),
        ..SimConfig::default()
    };
    let env = EnvConfig { num_envs, ..EnvConfig::default() };
    BatchEnv::new(Arc::clone(model), &sim, &env, &task, 1)
}

#[test]
fn environments_that_do_not_fit_are_errors_and_fewer_fit() {
    // The limit holds for the whole process.
    if !alone::here("out_of_memory::environments_that_do_not_fit_are_errors_and_fewer_fit", &[]) {
        return;
    }
    // Large buffers go back to the system when they are dropped, so that what was free
    // once does not hide that nothing is left.
    // SAFETY: sets an option of the allocator, before other threads use it.
    assert_eq!(unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20) }, 1);
    let robots = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots");
    let model = Arc::new(mjcf::load(&robots.join("ant.xml")).unwrap());
    for (backend, many, few) in
        [(Backend::Native, 1 << 17, 1 << 12), (Backend::Rapier, 1 << 11, 1 << 7)]
    {
        limit(Some(64 * MIB));
        for n in [many, many / 2] {
            let error = build(&model, backend, n).unwrap_err();
            let memory = error.out_of_memory().expect("a lack of memory");
            assert!(memory.bytes > 0, "{error}");
            assert!(error.to_string().contains("env.num_envs"), "{error}");
        }
        let env = build(&model, backend, few).unwrap();
        // Neither is there room for a copy of it.
        limit(Some(0));
        let mut kept = Vec::new();
        let error = env.capture(&mut kept).unwrap_err();
        assert!(matches!(error, SnapshotError::Memory(_)), "{error}");
        limit(None);
        kept.clear();
        env.capture(&mut kept).unwrap();
        let mut fewer = build(&model, backend, few / 2).unwrap();
        let mut obs = vec![0.0; few / 2 * fewer.spec().obs.policy];
        let mut obs = ostler_sim::Groups { policy: obs.as_mut_slice(), critic: None };
        assert_eq!(fewer.restore_range(&kept, false, &mut obs).unwrap(), few / 2);
    }
}
