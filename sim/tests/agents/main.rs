//! Several agents in one world.

#![allow(clippy::unwrap_used)]

mod arena;
mod by_hand;
mod ends;
mod layout;
mod mistakes;
mod pose;
mod snapshots;
