//! Products of matrices whose factors are rounded to bfloat16, by AVX512-BF16.
//!
//! Factors are packed in pairs along the dimension that is summed over. An instruction adds the
//! products of 16 pairs to 16 sums, in float32: every sum is added up in one order, pair by pair,
//! whatever the sizes of the matrices and whoever computes it.
//!
//! Packing is apart from multiplying, so that what is a factor of several products is packed
//! once: weights once a minibatch, a block's rows for two products at a time. oneDNN's products,
//! which libtorch has, are no faster on blocks of 256 rows, round results to bfloat16 as well,
//! and add nothing to sums that are there.

mod layers;
#[cfg(test)]
mod tests;

pub use layers::{HalfSpace, HalfWeights};

use std::arch::x86_64::{
    __m256bh, __m256i, __m512, __m512bh, __m512i, _mm256_mask_storeu_epi16, _mm512_add_ps,
    _mm512_cvtepi32_epi16, _mm512_cvtepu16_epi32, _mm512_cvtneps_pbh, _mm512_dpbf16_ps,
    _mm512_loadu_si512, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_or_si512,
    _mm512_set1_epi32, _mm512_setzero_ps, _mm512_setzero_si512, _mm512_slli_epi32,
    _mm512_storeu_si512,
};
use std::mem::transmute;

/// Numbers in a vector.
const LANES: usize = 16;
/// Columns of a panel: two vectors.
const PANEL: usize = 2 * LANES;
/// Rows of a result that are computed together; a panel has whole groups of them.
const GROUP: usize = 8;

/// The processor multiplies numbers of bfloat16.
///
/// Invariant: there is one only where [`find`](Self::find) has found the instructions.
#[derive(Debug, Clone, Copy)]
pub struct Half(());

/// The left factor of a product, packed by [`Half::pack`].
#[derive(Debug, Clone, Copy)]
pub enum Left<'a> {
    /// A matrix as its rows.
    Rows(&'a [u32]),
    /// A matrix's transpose as its panels.
    Panels(&'a [u32]),
}

/// Pairs of numbers in a row of `width`.
fn pairs(width: usize) -> usize {
    width.div_ceil(2)
}

/// Room for a packed matrix's rows.
pub fn rows_len(rows: usize, width: usize) -> usize {
    rows.next_multiple_of(GROUP).saturating_mul(pairs(width))
}

/// Room for a packed matrix's panels.
pub fn panels_len(rows: usize, width: usize) -> usize {
    width.next_multiple_of(PANEL).saturating_mul(pairs(rows))
}

impl Half {
    /// Where the processor can.
    ///
    /// # Errors
    /// The instructions that the processor lacks.
    pub fn find() -> Result<Self, &'static str> {
        let sets = [
            ("AVX512F", std::is_x86_feature_detected!("avx512f")),
            ("AVX512BW", std::is_x86_feature_detected!("avx512bw")),
            ("AVX512VL", std::is_x86_feature_detected!("avx512vl")),
            ("AVX512-BF16", std::is_x86_feature_detected!("avx512bf16")),
        ];
        match sets.into_iter().find(|(_, there)| !there) {
            Some((lacking, _)) => Err(lacking),
            None => Ok(Self(())),
        }
    }

    /// Rounds a matrix `x [R,width]` and packs it as a product needs it: its rows in pairs along
    /// each ([`rows_len`]), and panels of pairs of rows ([`panels_len`]).
    ///
    /// # Panics
    /// There is no room, or a row is not whole.
    pub fn pack(self, x: &[f32], width: usize, rows: Option<&mut [u32]>, panels: &mut [u32]) {
        let count = whole_rows(x, width);
        assert!(panels.len() >= panels_len(count, width), "room for panels");
        assert!(rows.as_ref().is_none_or(|r| r.len() >= rows_len(count, width)), "room for rows");
        let rows = rows.map_or(std::ptr::null_mut(), <[u32]>::as_mut_ptr);
        // SAFETY: `Half`'s invariant; the sizes that the function counts on were compared.
        unsafe { pack(x.as_ptr(), count, width, rows, panels.as_mut_ptr()) }
    }

    /// The same of its transpose `[width,R]`, panels alone.
    ///
    /// # Panics
    /// There is no room, or a row is not whole.
    pub fn pack_transposed(self, x: &[f32], width: usize, panels: &mut [u32]) {
        let count = whole_rows(x, width);
        assert!(panels.len() >= panels_len(width, count), "room for panels");
        // SAFETY: `Half`'s invariant.
        unsafe { pack_transposed(x, width, panels) }
    }

    /// `to [m,n] = a [m,k] b [k,n]`, or with `add`: `to += a b`. `b` is packed in panels.
    ///
    /// # Panics
    /// A matrix has another size.
    pub fn product(self, to: &mut [f32], [m, n, k]: [usize; 3], a: Left<'_>, b: &[u32], add: bool) {
        assert_eq!(to.len(), m * n, "sizes of a product");
        assert!(b.len() >= panels_len(k, n), "a right factor");
        let there = match a {
            Left::Rows(a) => a.len() >= rows_len(m, k),
            Left::Panels(a) => a.len() >= panels_len(k, m),
        };
        assert!(there, "a left factor");
        // SAFETY: `Half`'s invariant; the sizes that the function counts on were compared, and
        // `to` is borrowed mutably, so that it overlaps neither factor.
        unsafe { product(to, [m, n, k], a, b, add) }
    }
}

/// How many rows `x` has.
fn whole_rows(x: &[f32], width: usize) -> usize {
    let rows = x.len() / width.max(1);
    assert_eq!(x.len(), rows * width, "rows of {width} numbers");
    rows
}

/// The first `n` lanes of a vector.
fn lanes(n: usize) -> u16 {
    if n >= LANES { u16::MAX } else { (1 << n) - 1 }
}

/// Numbers of bfloat16, each in the lower half of a word: rounded to the nearest, to the even one
/// of two; subnormal numbers to 0.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn rounded(x: __m512) -> __m512i {
    // SAFETY: both are 16 numbers of 16 bits, of which any bits are some.
    _mm512_cvtepu16_epi32(unsafe { transmute::<__m256bh, __m256i>(_mm512_cvtneps_pbh(x)) })
}

/// # Safety
/// `x` is `count` rows of `width` numbers; `rows`, if it is not null, and `panels` have room as
/// [`rows_len`] and [`panels_len`] say.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn pack(x: *const f32, count: usize, width: usize, rows: *mut u32, panels: *mut u32) {
    let stride = 2 * pairs(width);
    let of_panel = pairs(count) * PANEL;
    for pair in 0..pairs(count) {
        for j in (0..width).step_by(LANES) {
            // SAFETY: loads are of lanes within a row, of the second row only where there is
            // one; stores to rows are of lanes within the row filled up to a pair; those to
            // panels, which are whole vectors, of vector `j % PANEL` of panel `j / PANEL`.
            unsafe {
                let from = x.add(2 * pair * width + j);
                let there = lanes(width - j);
                let low = rounded(_mm512_maskz_loadu_ps(there, from));
                let second = 2 * pair + 1 < count;
                let high = match second {
                    true => rounded(_mm512_maskz_loadu_ps(there, from.add(width))),
                    false => _mm512_setzero_si512(),
                };
                if !rows.is_null() {
                    let to = rows.cast::<i16>().add(2 * pair * stride + j);
                    let filled = lanes(stride - j);
                    _mm256_mask_storeu_epi16(to, filled, _mm512_cvtepi32_epi16(low));
                    if second {
                        let high = _mm512_cvtepi32_epi16(high);
                        _mm256_mask_storeu_epi16(to.add(stride), filled, high);
                    }
                }
                let both = _mm512_or_si512(low, _mm512_slli_epi32::<16>(high));
                let to = panels.add(j / PANEL * of_panel + pair * PANEL + j % PANEL);
                _mm512_storeu_si512(to.cast(), both);
            }
        }
    }
}

/// [`Half::pack_transposed`]: pairs lie along a row of `x`, and go below each other.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
fn pack_transposed(x: &[f32], width: usize, panels: &mut [u32]) {
    let of_panel = pairs(width) * PANEL;
    for (r, row) in x.chunks_exact(width.max(1)).enumerate() {
        let column = &mut panels[r / PANEL * of_panel + r % PANEL..];
        for (i, numbers) in row.chunks(LANES).enumerate() {
            // SAFETY: lanes that are there.
            let x = unsafe { _mm512_maskz_loadu_ps(lanes(numbers.len()), numbers.as_ptr()) };
            // SAFETY: both are 32 bytes.
            let packed: [u32; LANES / 2] = unsafe { transmute(_mm512_cvtneps_pbh(x)) };
            let column = &mut column[i * LANES / 2 * PANEL..];
            for (p, packed) in packed[..pairs(numbers.len())].iter().enumerate() {
                column[p * PANEL] = *packed;
            }
        }
    }
}

/// # Safety
/// The sizes are those that [`Half::product`] compares.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn product(to: &mut [f32], [m, n, k]: [usize; 3], a: Left<'_>, b: &[u32], add: bool) {
    let pairs = pairs(k);
    for j in (0..n).step_by(PANEL) {
        let b = &b[j * pairs..];
        for i in (0..m).step_by(GROUP) {
            let (a, row, step) = match a {
                Left::Rows(a) => (&a[i * pairs..], pairs, 1),
                Left::Panels(a) => (&a[i / PANEL * PANEL * pairs + i % PANEL..], 1, PANEL),
            };
            let tile = Tile {
                a: a.as_ptr(),
                row,
                step,
                b: b.as_ptr(),
                pairs,
                rows: (m - i).min(GROUP),
                stride: n,
                add,
            };
            let to = to[i * n + j..].as_mut_ptr();
            // SAFETY: a group of rows of `a` and a panel of `b` are there, filled up; of `to`
            // so many rows and columns.
            unsafe {
                match n - j {
                    left @ ..=LANES => tile.run::<1>(to, lanes(left)),
                    left => tile.run::<2>(to, lanes(left - LANES)),
                }
            }
        }
    }
}

/// A piece of a result: up to [`GROUP`] rows and a panel's columns.
struct Tile {
    /// The first pair of the left factor's first row.
    a: *const u32,
    /// From one of its rows to the next.
    row: usize,
    /// From one of a row's pairs to the next.
    step: usize,
    /// A panel.
    b: *const u32,
    pairs: usize,
    /// Rows of the result that are there.
    rows: usize,
    /// From one of them to the next.
    stride: usize,
    add: bool,
}

impl Tile {
    /// `V` vectors of columns, the last of which has the lanes `last`.
    ///
    /// # Safety
    /// [`GROUP`] rows of `pairs` pairs can be read of `a`, so many vectors of `b`, and `to` has
    /// `rows` rows of those columns, `stride` apart.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
    unsafe fn run<const V: usize>(&self, to: *mut f32, last: u16) {
        let mut sums = [[_mm512_setzero_ps(); V]; GROUP];
        let (mut a, mut b) = (self.a, self.b);
        for _ in 0..self.pairs {
            // SAFETY: within the group of rows and the panel; any bits are 32 numbers of 16 bits.
            unsafe {
                let mut right = [transmute::<__m512i, __m512bh>(_mm512_setzero_si512()); V];
                for (v, right) in right.iter_mut().enumerate() {
                    let loaded = _mm512_loadu_si512(b.add(v * LANES).cast());
                    *right = transmute::<__m512i, __m512bh>(loaded);
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let left = _mm512_set1_epi32((*a.add(r * self.row)).cast_signed());
                    let left = transmute::<__m512i, __m512bh>(left);
                    for (sum, right) in sums.iter_mut().zip(right) {
                        *sum = _mm512_dpbf16_ps(*sum, left, right);
                    }
                }
            }
            a = a.wrapping_add(self.step);
            b = b.wrapping_add(PANEL);
        }
        for (r, sums) in sums.into_iter().enumerate().take(self.rows) {
            for (v, sum) in sums.into_iter().enumerate() {
                let mask = if v + 1 == V { last } else { u16::MAX };
                // SAFETY: rows and columns that are there.
                unsafe {
                    let to = to.add(r * self.stride + v * LANES);
                    let sum = match self.add {
                        true => _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, to)),
                        false => sum,
                    };
                    _mm512_mask_storeu_ps(to, mask, sum);
                }
            }
        }
    }
}
