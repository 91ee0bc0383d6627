//! This machine's means for runs, missing parts, and the remedies.
//!
//! Reading order: [`examine`] -> [`Finding`] -> one module a subject: `host` (processor,
//! compiler, memory), `gpu`, `folders`, `wanted` (requirements of a configuration); by itself
//! [`kernels`] (GPU resources of programs).

mod finding;
mod folders;
mod gpu;
mod host;
pub mod kernels;
mod wanted;

pub use finding::{Finding, Verdict};
pub use wanted::Wanted;

/// Examines every part, for the `wanted` requirements.
pub fn examine(wanted: &Wanted) -> Vec<Finding> {
    let mut findings = vec![host::program(), host::libtorch()];
    findings.extend([host::processor(), host::compiler(), host::memory()]);
    findings.extend(gpu::findings(wanted));
    findings.extend(folders::findings(wanted));
    findings.extend(wanted.findings());
    findings
}
