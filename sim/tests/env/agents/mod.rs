//! Several agents in one world.

mod arena;
mod by_hand;
mod ends;
mod layout;
mod mistakes;
mod pose;
mod snapshots;
