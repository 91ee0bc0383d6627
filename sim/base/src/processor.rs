//! What this processor has. The launcher, which knows nothing else of this crate, asks the same.

/// The widest instruction set that kernels are compiled for and this processor has: also the
/// name of the feature that compiles them.
pub fn widest() -> &'static str {
    let fma = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
    let wide = fma
        && std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vl");
    match (wide, fma) {
        (true, _) => "avx512",
        (_, true) => "avx2",
        _ => "portable",
    }
}
