//! Which names belong together: left and right.

use super::MirrorError;
use crate::Model;

/// Words of one side and of the other.
const SIDES: [[&str; 2]; 3] = [["left", "right"], ["Left", "Right"], ["LEFT", "RIGHT"]];

/// The same as whole parts of a name: `L_hip`, `FR_foot`, `hl_knee`.
const TOKENS: [[&str; 2]; 8] = [
    ["l", "r"],
    ["fl", "fr"],
    ["rl", "rr"],
    ["hl", "hr"],
    ["bl", "br"],
    ["ml", "mr"],
    ["lf", "rf"],
    ["lh", "rh"],
];

/// Names of the two sides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pairs(Vec<[String; 2]>);

impl Pairs {
    /// By patterns of the one side and of the other, whose first `*` stand for the same text, and so on:
    /// `left_*` and `right_*`. None: left and right as people write them.
    pub fn new(patterns: Vec<[String; 2]>) -> Self {
        Self(patterns)
    }

    pub(super) fn are_given(&self) -> bool {
        !self.0.is_empty()
    }

    /// Names that the counterpart of this name may have; none of a name without a side.
    pub fn partners(&self, name: &str) -> Vec<String> {
        if self.are_given() {
            let both = self.0.iter().flat_map(|[a, b]| [(a, b), (b, a)]);
            return both.filter_map(|(from, to)| moved(name, from, to)).collect();
        }
        let mut all = Vec::new();
        for [left, right] in SIDES {
            for (from, to) in [(left, right), (right, left)] {
                if name.contains(from) && !name.contains(to) {
                    all.push(name.replace(from, to));
                }
            }
        }
        let tokens = tokens(name);
        for (i, token) in tokens.iter().enumerate() {
            let lower = token.to_ascii_lowercase();
            let both = TOKENS.iter().flat_map(|[a, b]| [(a, b), (b, a)]);
            for (_, to) in both.filter(|(from, _)| **from == lower) {
                let cased = |(c, like): (char, char)| match like.is_ascii_uppercase() {
                    true => c.to_ascii_uppercase(),
                    false => c,
                };
                let swapped: String = to.chars().zip(token.chars()).map(cased).collect();
                let parts = tokens.iter().enumerate();
                let parts = parts.map(|(k, t)| if k == i { swapped.as_str() } else { t });
                all.push(parts.collect());
            }
        }
        all
    }

    /// Refuses patterns that fit nothing or one side only.
    pub(super) fn check(&self, model: &Model) -> Result<(), MirrorError> {
        let bodies: Vec<&str> = model.bodies.iter().map(|b| b.name.as_str()).collect();
        let joints: Vec<&str> = model.joints.iter().map(|j| j.name.as_str()).collect();
        let actuators: Vec<&str> = model.actuators.iter().map(|a| a.name.as_str()).collect();
        for (pattern, other) in self.0.iter().flat_map(|[a, b]| [(a, b), (b, a)]) {
            let stars = |pattern: &str| pattern.matches('*').count();
            if stars(pattern) != stars(other) {
                return Err(MirrorError::Stars([pattern.clone(), other.clone()]));
            }
            let mut used = false;
            for names in [&bodies, &joints, &actuators] {
                for name in names {
                    let Some(wanted) = moved(name, pattern, other) else { continue };
                    used = true;
                    if !names.contains(&wanted.as_str()) {
                        let (name, pattern) = (name.to_string(), pattern.clone());
                        return Err(MirrorError::HalfPattern { name, pattern, wanted });
                    }
                }
            }
            if !used {
                return Err(MirrorError::Unused(pattern.clone()));
            }
        }
        Ok(())
    }
}

/// A name that fits the pattern `from`, written by the pattern `to`, which has as many `*`.
fn moved(name: &str, from: &str, to: &str) -> Option<String> {
    let mut fixed = from.split('*');
    let mut rest = name.strip_prefix(fixed.next()?)?;
    let fixed: Vec<&str> = fixed.collect();
    let mut between = Vec::with_capacity(fixed.len());
    for (k, part) in fixed.iter().enumerate() {
        let at = match k + 1 == fixed.len() {
            true => rest.strip_suffix(part)?.len(),
            false => rest.find(part)?,
        };
        between.push(&rest[..at]);
        rest = &rest[at + part.len()..];
    }
    if !rest.is_empty() {
        return None;
    }
    let mut texts = between.into_iter();
    let mut written = String::new();
    for (k, part) in to.split('*').enumerate() {
        if k > 0 {
            written += texts.next()?;
        }
        written += part;
    }
    Some(written)
}

/// The parts of a name: runs of letters of one word, and what lies between them.
fn tokens(name: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = name.char_indices().collect();
    let mut cuts = vec![0];
    for pair in chars.windows(2) {
        let [(_, a), (at, b)] = [pair[0], pair[1]];
        let begins =
            a.is_alphabetic() != b.is_alphabetic() || (a.is_lowercase() && b.is_uppercase());
        if begins {
            cuts.push(at);
        }
    }
    cuts.push(name.len());
    cuts.windows(2).map(|w| &name[w[0]..w[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_other_side() {
        let pairs = Pairs::default();
        for (name, other) in [
            ("left_hip_pitch", "right_hip_pitch"),
            ("LeftFoot", "RightFoot"),
            ("FL_thigh", "FR_thigh"),
            ("knee_l", "knee_r"),
            ("RR_calf_joint", "RL_calf_joint"),
            ("legL2", "legR2"),
        ] {
            assert!(pairs.partners(name).contains(&other.into()), "{name}");
            assert!(pairs.partners(other).contains(&name.into()), "{other}");
        }
        for name in ["trunk", "floor", "roll", "shoulder"] {
            assert_eq!(pairs.partners(name), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn patterns_say_the_same_of_both_sides() {
        let pairs = Pairs::new(vec![["port_*".into(), "star_*".into()]]);
        assert_eq!(pairs.partners("port_knee"), ["star_knee"]);
        assert_eq!(pairs.partners("star_knee"), ["port_knee"]);
        assert_eq!(pairs.partners("left_knee"), Vec::<String>::new());
        let pairs = Pairs::new(vec![["*_izq_*".into(), "*_der_*".into()]]);
        assert_eq!(pairs.partners("front_izq_hip"), ["front_der_hip"]);
        assert_eq!(pairs.partners("front_der_izq_hip"), ["front_der_der_hip", "front_izq_izq_hip"]);
        assert_eq!(pairs.partners("front_izq"), Vec::<String>::new());
        let pairs = Pairs::new(vec![["port".into(), "star".into()]]);
        assert_eq!(pairs.partners("port"), ["star"]);
        assert_eq!(pairs.partners("ports"), Vec::<String>::new());
    }
}
