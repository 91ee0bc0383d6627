//! Transmissions of actuators: joint, tendon, site, slider-crank, body.

use super::element::{Attr, Element, Fault, Read};
use super::names::find;
use super::value::wrong;
use crate::{Model, Transmission};

/// Ranges of joints and tendons as the file gives them, which need not be limits.
#[derive(Default)]
pub(super) struct Ranges {
    pub joints: Vec<[f64; 2]>,
    pub tendons: Vec<[f64; 2]>,
}

/// The part of the transmission that classes can give.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TransmissionSpec {
    crank_length: f64,
}

/// Attributes that name the transmission.
const TARGETS: [&str; 6] = ["joint", "jointinparent", "tendon", "cranksite", "site", "body"];

impl TransmissionSpec {
    /// Overwrites the values that the element sets.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.scalar("cranklength", &mut self.crank_length)?;
        Ok(())
    }

    /// The transmission, with its parts looked up in `model`.
    pub(crate) fn resolve(&self, e: &Element, model: &Model) -> Read<Transmission> {
        let mut given = TARGETS.iter().filter_map(|n| e.attr(n));
        let target = given.next().ok_or_else(|| {
            let targets = match e.name.as_str() {
                "adhesion" => "body=\"...\"",
                _ => "joint=\"...\", tendon=\"...\" or site=\"...\"",
            };
            Fault::new(e.at, format!("<{}> needs {targets}: what it drives", e.name))
        })?;
        if let Some(other) = given.next() {
            let why = format!("{} and {} are both given; keep one", target.name, other.name);
            return Err(Fault::new(other.at, why));
        }
        for (name, needs) in
            [("refsite", "site"), ("slidersite", "cranksite"), ("cranklength", "cranksite")]
        {
            if let Some(attr) = e.attr(name).filter(|_| target.name != needs) {
                let why = format!("{name} is for actuators with {needs}=\"...\"");
                return Err(Fault::new(attr.at, why));
            }
        }
        let site = |attr: &Attr| find(attr, "site", model.sites.iter().map(|s| s.name.as_str()));
        match target.name.as_str() {
            "tendon" => {
                let names = model.tendons.iter().map(|t| t.name.as_str());
                find(target, "tendon", names).map(Transmission::Tendon)
            }
            "body" => {
                let names = model.bodies.iter().map(|b| b.name.as_str());
                find(target, "body", names).map(Transmission::Body)
            }
            "site" => Ok(Transmission::Site {
                site: site(target)?,
                reference: e.attr("refsite").map(site).transpose()?,
            }),
            "cranksite" => {
                e.required("slidersite")?;
                let slider = e.attr("slidersite").map(site).transpose()?;
                if self.crank_length <= 0.0 {
                    return Err(match e.attr("cranklength") {
                        Some(attr) => wrong(attr, "must be positive [m]"),
                        None => Fault::new(e.at, "a slider-crank needs cranklength=\"...\" [m]"),
                    });
                }
                let crank = site(target)?;
                Ok(Transmission::SliderCrank {
                    crank,
                    slider: slider.unwrap_or(crank),
                    length: self.crank_length,
                })
            }
            kind => {
                let names = model.joints.iter().map(|j| j.name.as_str());
                let joint = find(target, "joint", names)?;
                // An axis of a slide or hinge is the same in both frames.
                Ok(if kind == "joint" || model.joints[joint].is_scalar() {
                    Transmission::Joint(joint)
                } else {
                    Transmission::JointInParent(joint)
                })
            }
        }
    }
}
