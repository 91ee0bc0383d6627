//! CRC32C of transitions, several at a time.
//!
//! The processor's instruction gives a result after three cycles and takes another every
//! cycle: one short row after the other would leave it idle for most of the time.

/// Of the row number (u64, little-endian) and the words, of four rows of the same length
/// that begin with number `first`.
pub fn of_rows(rows: [&[u32]; 4], first: u64) -> [u32; 4] {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.2") {
        // SAFETY: the processor has the instruction, as was asked just now.
        return unsafe { interleaved(rows, first) };
    }
    let mut number = first;
    rows.map(|row| {
        let check = of_row(row, number);
        number += 1;
        check
    })
}

/// The same of one row.
pub fn of_row(words: &[u32], number: u64) -> u32 {
    let seed = crc32c::crc32c(&number.to_le_bytes());
    crc32c::crc32c_append(seed, bytemuck::cast_slice(words))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse4.2")]
fn interleaved(rows: [&[u32]; 4], first: u64) -> [u32; 4] {
    use std::arch::x86_64::{_mm_crc32_u32, _mm_crc32_u64};
    let len = rows[0].len();
    let mut states = [u64::from(u32::MAX); 4];
    for (state, number) in states.iter_mut().zip(first..) {
        *state = _mm_crc32_u64(*state, number);
    }
    // All of one length, so that no access has to be checked.
    let [a, b, c, d] = rows.map(|row| row[..len].as_chunks::<2>());
    for (((a, b), c), d) in a.0.iter().zip(b.0).zip(c.0).zip(d.0) {
        for (state, &[low, high]) in states.iter_mut().zip([a, b, c, d]) {
            *state = _mm_crc32_u64(*state, u64::from(high) << 32 | u64::from(low));
        }
    }
    for (state, rest) in states.iter_mut().zip([a.1, b.1, c.1, d.1]) {
        for &word in rest {
            *state = u64::from(_mm_crc32_u32(*state as u32, word));
        }
    }
    states.map(|state| !(state as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_at_once_are_as_one_by_one() {
        for len in [0, 1, 2, 3, 8, 115] {
            let row =
                |k: u32| (0..len).map(|i: u32| i.wrapping_mul(2_654_435_761) ^ k << 7).collect();
            let rows: [Vec<u32>; 4] = [row(0), row(1), row(2), row(3)];
            let [a, b, c, d] = [0, 1, 2, 3].map(|i: usize| rows[i].as_slice());
            let first = u64::MAX / 3;
            let alone = [0, 1, 2, 3].map(|i: usize| of_row(&rows[i], first + i as u64));
            assert_eq!(of_rows([a, b, c, d], first), alone, "{len}");
        }
    }
}
