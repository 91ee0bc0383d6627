//! A packed soft constraint, evaluated as MuJoCo's documentation says
//! (Modeling, "Solver parameters").

use ostler_sim::physics::native::tables::soft;

/// One packed constraint.
#[derive(Debug, Clone, Copy)]
pub struct Soft<'a>(&'a [f64]);

/// Constraint `k` of a table.
pub fn packed(table: &[f64], k: usize) -> Soft<'_> {
    Soft(&table[k * soft::LEN..(k + 1) * soft::LEN])
}

impl Soft<'_> {
    pub fn k(self) -> f64 {
        self.0[soft::K]
    }

    pub fn b(self) -> f64 {
        self.0[soft::B]
    }

    pub fn margin(self) -> f64 {
        self.0[soft::MARGIN]
    }

    /// Impedance at position `pos`.
    pub fn impedance(self, pos: f64) -> f64 {
        let s = self.0;
        let x = (pos - self.margin()).abs() * s[soft::IW];
        let p = s[soft::POWER];
        let y = if x >= 1.0 {
            1.0
        } else if x <= s[soft::MID] {
            s[soft::MID] * (s[soft::LA] * x).powf(p)
        } else {
            1.0 - (1.0 - s[soft::MID]) * (s[soft::HB] * (1.0 - x)).powf(p)
        };
        s[soft::D0] + y * (s[soft::DW] - s[soft::D0])
    }

    /// R at position `pos`.
    pub fn regularisation(self, pos: f64) -> f64 {
        let imp = self.impedance(pos);
        ((1.0 - imp) / imp * self.0[soft::DIAG]).max(1e-15)
    }
}
