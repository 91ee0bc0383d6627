//! Layers and the optimiser: tensor operations on buffers that live for the whole run.

pub(in crate::learner) mod activation;
pub mod adam;
pub mod device;
pub mod gru;
pub mod host;
pub mod init;
pub mod layer;
pub mod norm;
pub mod params;
pub(crate) mod shared;

pub use adam::{Adam, HostAdam};
pub use gru::Gru;
pub use layer::{Linear, Trunk, TrunkConfig, TrunkSpace};
pub use norm::LayerNorm;
pub use params::{Layout, Params};
