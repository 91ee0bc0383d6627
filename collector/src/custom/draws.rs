//! Random numbers for one environment.

use ostler_sim::rng::{Purpose, normal_pair, philox, unit};

/// Random numbers of one reset or step: a function of the seed, the environment and how many
/// of its resets and steps there were, so that neither threads nor the size of the batch
/// change them, and nothing has to be saved.
#[derive(Debug)]
pub struct Draws {
    seed: u64,
    env: u32,
    moment: u64,
    index: u32,
}

impl Draws {
    pub(super) fn new(seed: u64, env: u32, moment: u64) -> Self {
        Self { seed, env, moment, index: 0 }
    }

    /// The next 128 random bits.
    pub fn words(&mut self) -> [u32; 4] {
        let index = self.index;
        self.index += 1;
        philox(self.seed, self.env, Purpose::Custom, self.moment, index)
    }

    /// A number in `low..high`.
    pub fn uniform(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * unit(self.words()[0])
    }

    /// A standard normal number.
    pub fn normal(&mut self) -> f32 {
        let [a, b, ..] = self.words();
        normal_pair(a, b).0
    }

    /// A whole number in `0..n`; 0 for `n = 0`.
    pub fn below(&mut self, n: u32) -> u32 {
        let [word, ..] = self.words();
        // The high half of the product, Lemire 2019; its bias is below n / 2^32.
        ((u64::from(word) * u64::from(n)) >> 32) as u32
    }
}
