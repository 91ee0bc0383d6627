//! A fixed piece of work that tells how fast the machine is at this moment.
//!
//! A run takes turns with it (`meter`): anything that slows the machine down slows
//! both, and the quotient stays. It has nothing in common with the tested code: no other
//! module, no crate, the same operations on the same numbers for ever. A change of it
//! changes every quotient, so it needs another [`VERSION`], and baselines of another
//! version do not count.
//!
//! A round is three parts that together resemble a run: a dense product (networks,
//! physics: arithmetic within the caches), a long sum of scaled vectors (optimisers,
//! rollouts: memory) and sorting (everything else: branches). On a busy machine the time
//! of a run followed these three best; that of dependent look-ups in a large table
//! varied more than the run's did, and is left out.

use std::time::Duration;

/// The version of a round and of how it is measured.
pub const VERSION: u32 = 2;

/// Rows and columns of the dense product.
const SIDE: usize = 96;
/// Dense products of a round.
const PRODUCTS: usize = 3;
/// Numbers of each of the two vectors: 1 MiB.
const LENGTH: usize = 1 << 18;
/// Times the sum is taken in a round.
const SUMS: usize = 4;
/// Numbers that are sorted at once.
const RUN: usize = 64;
/// Times that is done in a round.
const RUNS: usize = 600;

/// The work's memory, some 2.1 MiB.
#[derive(Debug)]
pub struct Yardstick {
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
    x: Vec<f32>,
    y: Vec<f32>,
    seed: u32,
}

impl Default for Yardstick {
    fn default() -> Self {
        Self::new()
    }
}

impl Yardstick {
    /// Fills the memory.
    pub fn new() -> Self {
        let mut seed = 0x2545_f491;
        let mut random = |n: usize| -> Vec<f32> {
            let unit = |s: &mut u32| (next(s) >> 8) as f32 / (1 << 24) as f32 - 0.5;
            (0..n).map(|_| unit(&mut seed)).collect()
        };
        let (a, b) = (random(SIDE * SIDE), random(SIDE * SIDE));
        let (x, y) = (random(LENGTH), random(LENGTH));
        Self { a, b, c: vec![0.0; SIDE * SIDE], x, y, seed }
    }

    /// One round. Returns a number that all of it went into, so that none can be left out.
    pub fn round(&mut self) -> f32 {
        for _ in 0..PRODUCTS {
            self.product();
        }
        for _ in 0..SUMS {
            self.scaled_sum();
        }
        let sorted = self.sort();
        std::hint::black_box(self.c[0] + self.y[0] + sorted)
    }

    /// Rounds until this thread has had `least` of a processor's time; how many, and the
    /// time that they took (s).
    pub fn rounds(&mut self, least: Duration) -> (u32, f64) {
        let start = thread_time();
        let mut rounds = 0;
        loop {
            self.round();
            rounds += 1;
            let took = thread_time() - start;
            if took >= least.as_secs_f64() {
                return (rounds, took);
            }
        }
    }

    fn product(&mut self) {
        let rows = self.c.chunks_exact_mut(SIDE).zip(self.a.chunks_exact(SIDE));
        for (c, a) in rows {
            c.fill(0.0);
            for (&a, b) in a.iter().zip(self.b.chunks_exact(SIDE)) {
                for (c, &b) in c.iter_mut().zip(b) {
                    *c += a * b;
                }
            }
        }
    }

    fn scaled_sum(&mut self) {
        // Bounded: old values fade as fast as new ones come.
        for (y, &x) in self.y.iter_mut().zip(&self.x) {
            *y = 0.75 * *y + 0.25 * x;
        }
    }

    fn sort(&mut self) -> f32 {
        let mut sum = 0;
        for _ in 0..RUNS {
            let mut run = [0_u32; RUN];
            run.fill_with(|| next(&mut self.seed));
            for i in 1..RUN {
                let mut k = i;
                while k > 0 && run[k - 1] > run[k] {
                    run.swap(k - 1, k);
                    k -= 1;
                }
            }
            sum ^= run[RUN / 2];
        }
        (sum >> 8) as f32
    }
}

/// Marsaglia's xorshift of 32 bits.
fn next(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

/// Processor time of this thread so far (s).
fn thread_time() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_is_the_same_work() {
        let (mut one, mut other) = (Yardstick::new(), Yardstick::new());
        let rounds: Vec<f32> = (0..5).map(|_| one.round()).collect();
        let again: Vec<f32> = (0..5).map(|_| other.round()).collect();
        assert_eq!(rounds, again);
        assert!(one.c.iter().chain(&one.y).all(|v| v.is_finite()));
    }

    #[test]
    fn rounds_take_the_time_that_was_asked_for() {
        let (rounds, took) = Yardstick::new().rounds(Duration::from_millis(20));
        assert!(rounds >= 1 && took >= 0.02, "{rounds} in {took} s");
    }
}
