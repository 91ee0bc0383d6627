// Found where libtorch's own header is not, through CPLUS_INCLUDE_PATH of `.cargo/config.toml`:
// the compiler stops with this line.
#include "libtorch is not here, `cargo xtask libtorch` fetches it (cargo run --bin train does so itself)"
