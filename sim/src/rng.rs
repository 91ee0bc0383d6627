//! Counter-based random numbers (Philox4x32-10).
//!
//! Every draw of a run comes from here, keyed by (run seed, stream, purpose,
//! step): nothing is advanced, so threads, order and batch do not matter.
//! Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

/// What a draw is for. Different purposes never share numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum Purpose {
    Reset = 1,
    Command = 2,
    ObservationNoise = 3,
    ActionNoise = 4,
    Permutation = 5,
    Initialisation = 6,
    EpisodeStart = 7,
    Randomisation = 8,
    Replay = 9,
}

/// Four 32-bit words for one (seed, stream, purpose, step, index).
///
/// `stream` is the global environment id (or 0), `step` a counter of the purpose's
/// own, `index` counts further blocks of four words within one step.
#[inline]
pub fn philox(seed: u64, stream: u32, purpose: Purpose, step: u64, index: u32) -> [u32; 4] {
    // step's upper half shares a word with the purpose: 2^56 steps are plenty.
    let counter = [
        index,
        stream,
        step as u32,
        ((step >> 32) as u32) << 8 | purpose as u32,
    ];
    philox_raw(counter, [seed as u32, (seed >> 32) as u32])
}

/// The bare generator: ten rounds over a counter with a key.
#[inline]
pub fn philox_raw(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            k = [
                k[0].wrapping_add(0x9E37_79B9),
                k[1].wrapping_add(0xBB67_AE85),
            ];
        }
        let p0 = u64::from(c[0]) * 0xD251_1F53;
        let p1 = u64::from(c[2]) * 0xCD9E_8D57;
        c = [
            (p1 >> 32) as u32 ^ c[1] ^ k[0],
            p1 as u32,
            (p0 >> 32) as u32 ^ c[3] ^ k[1],
            p0 as u32,
        ];
    }
    c
}

/// A word as a float in [0, 1), 24 bits.
#[inline]
pub fn unit(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Two words as two independent standard normal floats (Box-Muller).
#[inline]
pub fn normal_pair(a: u32, b: u32) -> (f32, f32) {
    // 1 - unit lies in (0, 1]: its logarithm is finite.
    let radius = (-2.0 * crate::math::ln(1.0 - unit(a))).sqrt();
    let (sin, cos) = crate::math::sin_cos(std::f32::consts::TAU * unit(b));
    (radius * cos, radius * sin)
}

#[cfg(test)]
mod tests {
    /// Known answers of the authors' Random123 distribution (`kat_vectors`).
    #[test]
    fn philox_equals_the_published_vectors() {
        // philox4x32 10 with counter and key all zero.
        let zero = super::philox_raw([0; 4], [0; 2]);
        assert_eq!(zero, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }
}
