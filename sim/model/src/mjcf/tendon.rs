//! `<tendon>`: fixed and spatial tendons.

use super::compiler::Compiler;
use super::element::{At, Element, Fault, Read};
use super::joint::{SOLIMP, SOLREF, limit};
use super::names::find;
use super::value::{LIMITED, Limited, wrong};
use crate::arms::winds;
use crate::{Model, PathPart, Tendon, TendonKind};

/// Attributes of a tendon.
#[derive(Debug, Clone)]
pub(super) struct TendonSpec {
    limited: Limited,
    range: [f64; 2],
    actfrc_limited: Limited,
    actfrcrange: [f64; 2],
    margin: f64,
    stiffness: [f64; 3],
    damping: [f64; 3],
    frictionloss: f64,
    armature: f64,
    springlength: [f64; 2],
    solref_limit: [f64; 2],
    solimp_limit: [f64; 5],
    solref_friction: [f64; 2],
    solimp_friction: [f64; 5],
}

impl Default for TendonSpec {
    fn default() -> Self {
        Self {
            limited: Limited::Auto,
            range: [0.0; 2],
            actfrc_limited: Limited::Auto,
            actfrcrange: [0.0; 2],
            margin: 0.0,
            stiffness: [0.0; 3],
            damping: [0.0; 3],
            frictionloss: 0.0,
            armature: 0.0,
            springlength: [-1.0; 2],
            solref_limit: SOLREF,
            solimp_limit: SOLIMP,
            solref_friction: SOLREF,
            solimp_friction: SOLIMP,
        }
    }
}

impl TendonSpec {
    /// Overwrites the values that the element sets.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.keyword("limited", LIMITED, &mut self.limited)?;
        e.ends("range", &mut self.range)?;
        e.keyword("actuatorfrclimited", LIMITED, &mut self.actfrc_limited)?;
        e.ends("actuatorfrcrange", &mut self.actfrcrange)?;
        e.scalar("margin", &mut self.margin)?;
        for (name, to) in [("stiffness", &mut self.stiffness), ("damping", &mut self.damping)] {
            e.fill(name, 1, to)?;
            if let Some(attr) = e.attr(name)
                && to[1..] != [0.0; 2]
            {
                return Err(wrong(attr, "is a polynomial; only one number is supported"));
            }
        }
        e.scalar("frictionloss", &mut self.frictionloss)?;
        e.scalar("armature", &mut self.armature)?;
        for (name, value) in [("frictionloss", self.frictionloss), ("armature", self.armature)] {
            if let Some(attr) = e.attr(name).filter(|_| value < 0.0) {
                return Err(wrong(attr, "cannot be negative"));
            }
        }
        if e.fill("springlength", 1, &mut self.springlength)?
            && e.numbers("springlength")?.is_some_and(|v| v.len() == 1)
        {
            self.springlength[1] = self.springlength[0];
        }
        e.fill("solreflimit", 1, &mut self.solref_limit)?;
        e.fill("solimplimit", 1, &mut self.solimp_limit)?;
        e.fill("solreffriction", 1, &mut self.solref_friction)?;
        e.fill("solimpfriction", 1, &mut self.solimp_friction)?;
        Ok(())
    }

    /// The range as it stands in the file (m), whether it is a limit or not.
    pub(crate) fn given_range(&self) -> [f64; 2] {
        self.range
    }

    /// The tendon; its lengths are still to be found: see `derive`.
    pub(crate) fn resolve(
        &self,
        e: &Element,
        compiler: &Compiler,
        name: String,
        model: &Model,
    ) -> Read<Tendon> {
        let kind = if e.name == "fixed" {
            fixed(e, model)?
        } else {
            let wound = e.children.iter().find(|part| part.name == "geom");
            if let Some(part) = wound.filter(|_| self.armature > 0.0) {
                let why = "armature of a tendon that winds around a geom is not supported, in \
                           MuJoCo neither; give the joints armature";
                return Err(Fault::new(part.at, why));
            }
            spatial(e, model)?
        };
        if self.springlength[0] > self.springlength[1] {
            return Err(Fault::new(
                e.attr("springlength").map_or(e.at, |a| a.value_at(0)),
                "springlength: the first cannot be larger",
            ));
        }
        let actfrcrange = limit(
            e,
            compiler,
            "actuatorfrclimited",
            "actuatorfrcrange",
            self.actfrc_limited,
            self.actfrcrange,
        )?;
        if let Some([low, high]) = actfrcrange
            && (low > 0.0 || high < 0.0)
        {
            return Err(Fault::new(
                e.attr("actuatorfrcrange").map_or(e.at, |a| a.value_at(0)),
                "actuatorfrcrange has to contain 0",
            ));
        }
        Ok(Tendon {
            name,
            kind,
            range: limit(e, compiler, "limited", "range", self.limited, self.range)?,
            actfrcrange,
            margin: self.margin,
            stiffness: self.stiffness[0],
            damping: self.damping[0],
            frictionloss: self.frictionloss,
            armature: self.armature,
            springlength: self.springlength,
            length0: 0.0,
            solref_limit: self.solref_limit,
            solimp_limit: self.solimp_limit,
            solref_friction: self.solref_friction,
            solimp_friction: self.solimp_friction,
        })
    }
}

/// Joints and their coefficients.
fn fixed(e: &Element, model: &Model) -> Read<TendonKind> {
    let mut joints = Vec::new();
    for part in &e.children {
        part.required("joint")?;
        part.required("coef")?;
        let mut coef = 0.0;
        part.scalar("coef", &mut coef)?;
        for attr in part.attrs.iter().filter(|a| a.name == "joint") {
            let names = model.joints.iter().map(|j| j.name.as_str());
            let joint = find(attr, "joint", names)?;
            if !model.joints[joint].is_scalar() {
                return Err(wrong(
                    attr,
                    "is a ball or free joint; a tendon adds hinge and slide joints",
                ));
            }
            if joints.iter().any(|(j, _)| *j == joint) {
                return Err(wrong(attr, "is there twice; add the coefficients up"));
            }
            joints.push((joint, coef));
        }
    }
    if joints.is_empty() {
        return Err(Fault::new(
            e.at,
            "a <fixed> tendon needs at least one <joint joint=\"...\" coef=\"...\"/>",
        ));
    }
    Ok(TendonKind::Fixed(joints))
}

/// The path of a string, with MuJoCo's rules of order.
fn spatial(e: &Element, model: &Model) -> Read<TendonKind> {
    let sites = || model.sites.iter().map(|s| s.name.as_str());
    let mut path = Vec::new();
    let attr = |part: &Element, name: &str| part.required(name).map(|_| ());
    for part in &e.children {
        let read = match part.name.as_str() {
            "site" => {
                attr(part, "site")?;
                let named = part.attr("site").map(|a| find(a, "site", sites()));
                named.transpose()?.map(PathPart::Site)
            }
            "geom" => {
                attr(part, "geom")?;
                let names = model.geoms.iter().map(|g| g.name.as_str());
                let geom = match part.attr("geom") {
                    Some(a) => {
                        let geom = find(a, "geom", names)?;
                        if winds(&model.geoms[geom]).is_none() {
                            return Err(wrong(a, "is neither a sphere nor a cylinder"));
                        }
                        Some(geom)
                    }
                    None => None,
                };
                let side = part.attr("sidesite").map(|a| find(a, "site", sites()));
                let side = side.transpose()?;
                geom.map(|geom| PathPart::Geom { geom, side })
            }
            _ => {
                attr(part, "divisor")?;
                let mut divisor = 1.0;
                part.scalar("divisor", &mut divisor)?;
                if let Some(a) = part.attr("divisor").filter(|_| divisor <= 0.0) {
                    return Err(wrong(a, "must be positive"));
                }
                Some(PathPart::Pulley(divisor))
            }
        };
        path.extend(read.map(|r| (part.at, r)));
    }
    check_path(e, &path)?;
    Ok(TendonKind::Spatial(path.into_iter().map(|p| p.1).collect()))
}

fn check_path(e: &Element, path: &[(At, PathPart)]) -> Read<()> {
    use PathPart::{Geom, Pulley, Site};
    if path.len() < 2 {
        let why = "a <spatial> tendon needs at least two <site site=\"...\"/>";
        return Err(Fault::new(e.at, why));
    }
    for (i, (at, part)) in path.iter().enumerate() {
        let before = i.checked_sub(1).map(|k| path[k].1);
        let after = path.get(i + 1).map(|p| p.1);
        let apart = |x: Option<PathPart>| matches!(x, None | Some(Pulley(_)));
        let site = |x: Option<PathPart>| matches!(x, Some(Site(_)));
        let why = match part {
            Pulley(_) if matches!(before, Some(Pulley(_))) => "two pulleys in a row",
            Pulley(_) if after.is_none() => "a pulley cannot be the last",
            Site(_) if apart(before) && apart(after) => {
                "a site needs another site before or after it on the same branch"
            }
            Site(s) if after == Some(Site(*s)) => "the same site twice in a row",
            Geom { .. } if !(site(before) && site(after)) => {
                "a geom needs a site before it and after it"
            }
            _ => continue,
        };
        return Err(Fault::new(*at, why));
    }
    Ok(())
}
