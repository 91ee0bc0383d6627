//! Random numbers, as text where a model wants them.

/// Random numbers: splitmix64 (Steele, Lea, Flood 2014).
pub struct Dice {
    state: u64,
    /// Whether impedances have powers that are not whole: of a model, which has dozens.
    pub fractions: bool,
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        let mut dice = Self { state: seed, fractions: false };
        // Mixed once: the streams of neighbouring seeds would be one stream, shifted.
        dice.state = dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// In a range, with three decimals.
    pub fn real(&mut self, low: f64, high: f64) -> f64 {
        ((low + (high - low) * self.unit()) * 1e3).round() / 1e3
    }

    pub fn reals(&mut self, ranges: &[[f64; 2]]) -> String {
        let all: Vec<String> =
            ranges.iter().map(|[low, high]| self.real(*low, *high).to_string()).collect();
        all.join(" ")
    }

    pub fn vector(&mut self, reach: f64) -> String {
        self.reals(&[[-reach, reach]; 3])
    }

    /// An axis that is not zero.
    pub fn axis(&mut self) -> String {
        match self.below(4) {
            0 => "1 0 0".into(),
            1 => "0 1 0".into(),
            2 => "0 0 1".into(),
            _ => format!("{} 0.3", self.reals(&[[-1.0, 1.0]; 2])),
        }
    }

    pub fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}
