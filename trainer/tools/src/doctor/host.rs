//! The program itself, the processor, its compiler, the memory.

use super::finding::Finding;
use crate::regress::machine::processor as model;
use ostler_machine::memory::{Level, MemoryConfig, Sources};
use ostler_machine::torch::cuda::libtorch::LibtorchFolder;
use ostler_run::log::progress::bytes;

use ostler_sim::physics::native::InstructionSet;
use ostler_sim::physics::native::specialize::Compiler;
use ostler_sim::physics::pool::Pool;

pub(crate) fn program() -> Finding {
    let version = env!("CARGO_PKG_VERSION");
    match cfg!(debug_assertions) {
        false => Finding::ok("ostler", format!("{version}, release build")),
        true => Finding::lack(
            "ostler",
            false,
            format!("{version}, debug build"),
            "runs are faster with `cargo run --bin train`, or after `cargo build --release`",
        ),
    }
}

pub(crate) fn libtorch() -> Finding {
    let place = LibtorchFolder::of_this_process();
    let part = match (place.has_cuda(), place.built_for()) {
        (Ok(()), Some(cuda)) => format!("with a part for CUDA {cuda}"),
        (Ok(()), None) => "with a part for CUDA".to_string(),
        (Err(_), _) => "for the processor only".to_string(),
    };
    let (version, folder) = (ostler_machine::torch::version(), place.0.display());
    Finding::ok("libtorch", format!("{version} in {folder}, {part}"))
}

pub(crate) fn processor() -> Finding {
    let usable = Pool::available();
    let all = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let all = all.lines().filter(|l| l.starts_with("processor")).count();
    let cores = match usable < all {
        true => format!("{usable} of {all} cores may be used"),
        false => format!("{usable} cores"),
    };
    let set = InstructionSet::detect();
    let found = format!("{}, {cores}, {}", model(), set.name());
    match set {
        InstructionSet::Portable => Finding::lack(
            "processor",
            false,
            found,
            "without AVX2 and FMA four environments are computed at a time, not eight or sixteen; a virtual machine can be given its processor's own instructions",
        ),
        InstructionSet::Avx2 | InstructionSet::Avx512 => Finding::ok("processor", found),
    }
}

pub(crate) fn compiler() -> Finding {
    match Compiler::find(&|name| std::env::var_os(name)) {
        Ok(c) => Finding::ok("compiler", format!("{} ({})", c.path.display(), c.version)),
        Err(e) => Finding::lack(
            "compiler",
            false,
            e.to_string(),
            "robots get no kernel of their own without a C++17 compiler: install g++, or name one in OSTLER_CXX",
        ),
    }
}

pub(crate) fn memory() -> Finding {
    let sample = Sources::host(None).sample();
    let Some(tightest) = sample.tightest() else {
        let found = "the system does not say how much there is";
        let remedy = "mount /proc; without it runs do not notice when memory runs short";
        return Finding::lack("memory", false, found, remedy);
    };
    let found = format!(
        "{} free of {}, the limit of {}",
        bytes(tightest.left()),
        bytes(tightest.limit),
        tightest.source.name()
    );
    match tightest.level(&MemoryConfig::default(), Level::Calm) {
        Level::Calm => Finding::ok("memory", found),
        Level::Warn | Level::Act => Finding::lack(
            "memory",
            false,
            found,
            "a run begins with few environments or backs off soon: end other programs, or raise the limit",
        ),
    }
}
