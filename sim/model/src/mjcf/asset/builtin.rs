//! Textures that MuJoCo draws itself (`builtin`, `mark`), pixel by pixel as its compiler does.
//!
//! Source: MuJoCo 3.12, `src/user/user_objects.cc`, `mjCTexture::Builtin2D` and `BuiltinCube`.

use std::f64::consts::FRAC_PI_2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    None,
    Gradient,
    Checker,
    Flat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    None,
    Edge,
    Cross,
    Random,
}

/// Looks of a texture without a file.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    pub builtin: Builtin,
    pub rgb1: [f64; 3],
    pub rgb2: [f64; 3],
    pub mark: Mark,
    pub markrgb: [f64; 3],
    /// Share of the pixels that `Mark::Random` marks.
    pub random: f64,
}

type Pixel = [u8; 3];

/// A colour as bytes; MuJoCo cuts off.
pub(super) fn bytes(rgb: [f64; 3]) -> Pixel {
    rgb.map(|c| (255.0 * c) as u8)
}

/// Red, green and blue of one square or rectangle.
struct Side<'a> {
    width: usize,
    pixels: &'a mut [u8],
}

impl Side<'_> {
    fn height(&self) -> usize {
        self.pixels.len() / (3 * self.width)
    }

    /// Sets every pixel by its column and row.
    fn fill(&mut self, colour: impl Fn(usize, usize) -> Pixel) {
        let width = self.width;
        for (i, pixel) in self.pixels.chunks_exact_mut(3).enumerate() {
            pixel.copy_from_slice(&colour(i % width, i / width));
        }
    }

    fn checks(&mut self, one: Pixel, two: Pixel) {
        let (w, h) = (self.width, self.height());
        self.fill(|c, r| match (c < w / 2) == (r < h / 2) {
            true => one,
            false => two,
        });
    }

    fn mark(&mut self, mark: Mark, colour: Pixel) {
        let (w, h) = (self.width, self.height());
        let marked = |c, r| match mark {
            Mark::Edge => c == 0 || c == w - 1 || r == 0 || r == h - 1,
            Mark::Cross => c == w / 2 || r == h / 2,
            Mark::None | Mark::Random => false,
        };
        for (i, pixel) in self.pixels.chunks_exact_mut(3).enumerate() {
            if marked(i % w, i / w) {
                pixel.copy_from_slice(&colour);
            }
        }
    }
}

impl Pattern {
    /// A picture, `[height][width][3]`; both at least 1.
    pub(crate) fn flat(&self, width: usize, height: usize) -> Vec<u8> {
        let mut data = vec![0; 3 * width * height];
        let pixels = &mut data[..];
        let mut side = Side { width, pixels };
        match self.builtin {
            Builtin::None => {}
            Builtin::Flat => side.fill(|_, _| bytes(self.rgb1)),
            Builtin::Checker => side.checks(bytes(self.rgb1), bytes(self.rgb2)),
            Builtin::Gradient => side.fill(|c, r| {
                let [x, y] = [at(c, width), -at(r, height)];
                mixed(self.rgb2, self.rgb1, 2.0 * (x * x + y * y).sqrt() - 1.0)
            }),
        }
        side.mark(self.mark, bytes(self.markrgb));
        self.dots(&mut data);
        data
    }

    /// Six sides of a cube, one below the other, `[6][width][width][3]`.
    pub(crate) fn cube(&self, width: usize) -> Vec<u8> {
        let square = 3 * width * width;
        let mut data = vec![0; 6 * square];
        for (k, pixels) in data.chunks_exact_mut(square).enumerate() {
            let mut side = Side { width, pixels };
            let [one, two] = [bytes(self.rgb1), bytes(self.rgb2)];
            match self.builtin {
                Builtin::None => {}
                // Below is -y, the fourth.
                Builtin::Flat => side.fill(|_, _| if k == 3 { two } else { one }),
                Builtin::Checker if k < 4 => side.checks(one, two),
                Builtin::Checker => side.checks(two, one),
                Builtin::Gradient => side.fill(|c, r| {
                    let [x, y] = [at(c, width), -at(r, width)];
                    let long = (1.0 + x * x + y * y).sqrt();
                    let up = 1.0 - (1.0 / long).acos() / FRAC_PI_2;
                    let height = match k {
                        2 => up,
                        3 => -up,
                        _ => (y / long).asin() / FRAC_PI_2,
                    };
                    mixed(self.rgb1, self.rgb2, height)
                }),
            }
            side.mark(self.mark, bytes(self.markrgb));
        }
        self.dots(&mut data);
        data
    }

    fn dots(&self, data: &mut [u8]) {
        if self.mark != Mark::Random || self.random <= 0.0 {
            return;
        }
        let mut twister = Twister::new(42);
        for pixel in data.chunks_exact_mut(3) {
            if twister.unit() < self.random {
                pixel.copy_from_slice(&bytes(self.markrgb));
            }
        }
    }
}

/// The place of pixel `i` of `n`, -1 to 1. One pixel is nowhere, which ends in black.
fn at(i: usize, n: usize) -> f64 {
    2.0 * i as f64 / (n as f64 - 1.0) - 1.0
}

/// Between two colours, along a sigmoid of `place`, from -1 (`two`) to 1 (`one`).
fn mixed(one: [f64; 3], two: [f64; 3], place: f64) -> Pixel {
    let correction = 1.0 / 2.0_f64.sqrt();
    let share = 0.5 * (1.0 + place / (1.0 + place * place).sqrt() / correction);
    let share = share.clamp(0.0, 1.0);
    bytes([0, 1, 2].map(|i| share * one[i] + (1.0 - share) * two[i]))
}

/// The random numbers of C++'s `std::mt19937_64`, which MuJoCo's dots come from.
///
/// Source: T. Nishimura, "Tables of 64-bit Mersenne Twisters", 2000.
struct Twister {
    state: [u64; 312],
    next: usize,
}

impl Twister {
    fn new(seed: u64) -> Self {
        let mut state = [seed; 312];
        for i in 1..312 {
            let last = state[i - 1];
            let mixed = (last ^ (last >> 62)).wrapping_mul(6_364_136_223_846_793_005);
            state[i] = mixed.wrapping_add(i as u64);
        }
        Self { state, next: 312 }
    }

    fn draw(&mut self) -> u64 {
        if self.next == 312 {
            for i in 0..312 {
                let low = self.state[(i + 1) % 312] & 0x7FFF_FFFF;
                let x = (self.state[i] & !0x7FFF_FFFF) | low;
                let twist = if x & 1 == 1 { 0xB502_6F5A_A966_19E9 } else { 0 };
                self.state[i] = self.state[(i + 156) % 312] ^ (x >> 1) ^ twist;
            }
            self.next = 0;
        }
        let mut x = self.state[self.next];
        self.next += 1;
        x ^= (x >> 29) & 0x5555_5555_5555_5555;
        x ^= (x << 17) & 0x71D6_7FFF_EDA6_0000;
        x ^= (x << 37) & 0xFFF7_EEE0_0000_0000;
        x ^ (x >> 43)
    }

    /// A number in 0..1.
    fn unit(&mut self) -> f64 {
        let x = self.draw() as f64 / 18_446_744_073_709_551_616.0;
        x.min(1.0 - f64::EPSILON / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 10,000th number, which the C++ standard gives for its default seed.
    #[test]
    fn the_twister_is_that_of_the_standard() {
        let mut twister = Twister::new(5489);
        let last = (0..10_000).map(|_| twister.draw()).last();
        assert_eq!(last, Some(9_981_545_732_273_789_042));
    }
}
