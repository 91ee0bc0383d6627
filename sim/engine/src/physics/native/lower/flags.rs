//! `option/flag`: features that are switched off.

use super::error::LowerError;

/// Parts of the dynamics that flags can switch off; all are on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flags {
    pub equality: bool,
    pub frictionloss: bool,
    pub limit: bool,
    pub contact: bool,
    pub spring: bool,
    pub damper: bool,
    pub gravity: bool,
    pub clampctrl: bool,
    pub filterparent: bool,
    pub actuation: bool,
    pub refsafe: bool,
    pub eulerdamp: bool,
    pub multiccd: bool,
    pub nativeccd: bool,
}

/// Flags that change how MuJoCo computes, or what it reports, but not the dynamics.
const WITHOUT_EFFECT: [&str; 8] =
    ["warmstart", "sensor", "midphase", "autoreset", "island", "energy", "fwdinv", "invdiscrete"];

impl Flags {
    /// With springs and dampers both off MuJoCo computes no passive force at all.
    pub(crate) fn passive(&self) -> bool {
        self.spring || self.damper
    }

    /// Reads the flags that are at other than their default.
    pub(crate) fn new(set: &[(String, bool)]) -> Result<Self, LowerError> {
        let mut flags = Self {
            equality: true,
            frictionloss: true,
            limit: true,
            contact: true,
            spring: true,
            damper: true,
            gravity: true,
            clampctrl: true,
            filterparent: true,
            actuation: true,
            refsafe: true,
            eulerdamp: true,
            multiccd: true,
            nativeccd: true,
        };
        for (name, value) in set {
            match name.as_str() {
                "constraint" => {
                    (flags.equality, flags.frictionloss) = (*value, *value);
                    (flags.limit, flags.contact) = (*value, *value);
                }
                // Older versions of MuJoCo had one flag for both.
                "passive" => (flags.spring, flags.damper) = (*value, *value),
                "equality" => flags.equality = *value,
                "frictionloss" => flags.frictionloss = *value,
                "limit" => flags.limit = *value,
                "contact" => flags.contact = *value,
                "spring" => flags.spring = *value,
                "damper" => flags.damper = *value,
                "gravity" => flags.gravity = *value,
                "clampctrl" => flags.clampctrl = *value,
                "filterparent" => flags.filterparent = *value,
                "actuation" => flags.actuation = *value,
                "refsafe" => flags.refsafe = *value,
                "eulerdamp" => flags.eulerdamp = *value,
                "multiccd" => flags.multiccd = *value,
                "nativeccd" => flags.nativeccd = *value,
                name if WITHOUT_EFFECT.contains(&name) => {}
                name => {
                    let word = if *value { "enable" } else { "disable" };
                    return Err(LowerError::new(
                        format!("option/flag {name}=\"{word}\""),
                        "leave the flag out",
                    ));
                }
            }
        }
        Ok(flags)
    }
}
