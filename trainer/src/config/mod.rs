//! The run's TOML: read, checked, resolved.
