//! What tests of several packages share, through `#[path]`.

pub mod referee;
pub mod script;
