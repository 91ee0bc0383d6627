//! Which numbers are possible: ranges that leave them are errors, normal draws that do are cut
//! off there, which is said with their share.

use super::compile::Compiler;
use crate::config::{ConfigError, Distribution, Operation};
use ostler_lang::draw::Draw;
use ostler_model::{Field, Varied};

/// Normal draws of which a smaller share is cut off are not worth a word.
const WORTH: f64 = 1e-4;

impl Compiler<'_> {
    /// A number after the event's operation on the robot's `own`.
    fn applied(&self, own: f64, x: f64) -> f64 {
        match self.term.operation {
            Operation::Abs => x,
            Operation::Add => own + x,
            Operation::Scale => own * x,
        }
    }

    /// Least and greatest number after the operation; none of normal draws and others without ends.
    fn reached(&self, chance: &Draw, own: f64) -> Option<[f64; 2]> {
        let ends = chance.ends();
        if !ends.iter().all(|x| x.is_finite()) {
            return None;
        }
        let [a, b] = ends.map(|x| self.applied(own, x));
        Some([a.min(b), a.max(b)])
    }

    /// Refuses ranges that leave what is possible; normal draws are cut off there.
    pub(super) fn possible(&self, chance: &Draw, own: f64, of: &str) -> Result<(), ConfigError> {
        let least = self.parsed.least;
        if !own.is_finite() && self.term.operation != Operation::Abs {
            return Err(self
                .error("operation", format!("{of} has no number to start from"))
                .help("operation = \"abs\""));
        }
        let Some([worst, most]) = self.reached(chance, own) else {
            return Ok(());
        };
        if most > f64::from(f32::MAX) || worst < f64::from(f32::MIN) {
            return Err(self
                .error(chance.key(), format!("the {of} could become infinite"))
                .help(format!("its own is {own}")));
        }
        if worst >= least * (1.0 - 1e-6) || worst >= least {
            return Ok(());
        }
        let limit = match () {
            () if least == 0.0 => "below 0".into(),
            () if worst <= 0.0 => "not above 0".into(),
            () => format!("below {least:e}, the least that is computed with"),
        };
        let worst = match worst.abs() < 1e-3 && worst != 0.0 {
            true => format!("{worst:.1e}"),
            false => format!("{worst:.3}"),
        };
        let why = format!("the {of} could become {worst}, which is {limit}");
        Err(self.error(chance.key(), why).help(match self.term.operation {
            Operation::Abs if least == 0.0 => "write numbers from 0 on".to_string(),
            Operation::Abs => format!("write numbers from {least:e} on"),
            _ => format!("its own is {own}"),
        }))
    }

    /// Refuses principal moments that no body has: each is at most the sum of the two others.
    /// `chances`: of the components that are drawn.
    pub(super) fn physical(
        &self,
        of: Varied,
        own: &[f64],
        chances: &[(usize, Draw)],
    ) -> Result<(), ConfigError> {
        if of.field != Field::Moments || own.len() != 3 {
            return Ok(());
        }
        let mut ends = [[own[0]; 2], [own[1]; 2], [own[2]; 2]];
        for (k, chance) in chances {
            match self.reached(chance, own[*k]) {
                Some(reached) => ends[*k] = reached,
                None => return Ok(()),
            }
        }
        let fails = |of: &[[f64; 2]; 3], k: usize| {
            let others = of[(k + 1) % 3][0] + of[(k + 2) % 3][0];
            of[k][1] > others * (1.0 + 1e-6)
        };
        // A file may have such a body already.
        let before = [[own[0]; 2], [own[1]; 2], [own[2]; 2]];
        let Some(k) = (0..3).find(|&k| fails(&ends, k) && !fails(&before, k)) else {
            return Ok(());
        };
        let others = ends[(k + 1) % 3][0] + ends[(k + 2) % 3][0];
        let why = format!(
            "the {} could become that of no body: moment [{k}] up to {:.4}, the sum of the two \
             others down to {others:.4}",
            self.named(of),
            ends[k][1],
        );
        Err(self.error(chances.first().map_or("range", |c| c.1.key()), why).help(
            "density(BODY) with operation = \"scale\" changes all moments in proportion; \
                 pseudo_inertia(BODY) gives inertias of bodies alone",
        ))
    }

    /// Says which draws are cut off, of the element and component with most of them, and
    /// factors of nothing. `all`: distributions, the robot's own numbers, elements.
    pub(super) fn notes(&mut self, all: &[(Draw, f64, String)]) {
        let least = self.parsed.least;
        let share = |(chance, own, _): &(Draw, f64, String)| self.cut(chance, *own);
        let worst = all.iter().map(|entry| (share(entry), entry));
        if let Some((cut, (_, _, of))) = worst.max_by(|a, b| a.0.total_cmp(&b.0))
            && cut >= WORTH
        {
            let (limit, becomes) = match least == 0.0 {
                true => ("below 0", "0".to_string()),
                false => ("not above 0", format!("{least:e}")),
            };
            self.warn(format!(
                "{:.2} % of the draws for the {of} are {limit}, which is not possible, and become {becomes}",
                100.0 * cut
            ));
        }
        let nothing: Vec<&String> = all
            .iter()
            .filter(|(_, own, _)| *own == 0.0 && self.term.operation == Operation::Scale)
            .map(|(_, _, of)| of)
            .collect();
        if let [first, rest @ ..] = &nothing[..] {
            let others = match rest.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            self.warn(format!(
                "the {first}{others} is 0 in the robot's file, and a factor changes nothing of it: \
                 operation = \"abs\" or \"add\" does"
            ));
        }
    }

    pub(super) fn warn(&mut self, what: String) {
        self.warnings.push(format!("event \"{}\": {what}", self.term.name));
    }

    /// Share of normal draws below the least possible number.
    fn cut(&self, chance: &Draw, own: f64) -> f64 {
        if chance.distribution != Distribution::Normal {
            return 0.0;
        }
        let [mean, std] = [chance.mean, chance.std].map(f64::from);
        let (mean, std) = match self.term.operation {
            Operation::Abs => (mean, std),
            Operation::Add => (own + mean, std),
            Operation::Scale => (own * mean, (own * std).abs()),
        };
        let least = self.parsed.least;
        match std > 0.0 {
            true => normal_below((least - mean) / std),
            false => f64::from(u8::from(mean < least)),
        }
    }
}

/// The normal distribution's share below z. Source: Abramowitz and Stegun, 26.2.17, to 7.5e-8.
fn normal_below(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let sum = series.iter().rev().fold(0.0, |s, c| (s + c) * t);
    let above = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if z > 0.0 { 1.0 - above } else { above }
}

#[cfg(test)]
mod tests {
    use super::normal_below;

    #[test]
    fn shares_of_the_normal_distribution() {
        for (z, share) in [(0.0, 0.5), (-1.959_964, 0.025), (1.281_552, 0.9), (-3.0, 0.001_349_898)]
        {
            assert!((normal_below(z) - share).abs() < 1e-6, "{z}");
        }
    }
}
