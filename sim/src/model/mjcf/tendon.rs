//! `<tendon>`: fixed tendons; spatial ones are read only where they exert no force.

use super::compiler::Compiler;
use super::joint::{SOLIMP, SOLREF, limit};
use super::source::{Element, Fault, Read};
use super::value::{LIMITED, Limited, wrong};
use crate::model::{Model, Tendon, TendonKind};

/// What the attributes of a tendon say.
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
    /// Overwrites what the element says.
    pub fn read(&mut self, e: &Element) -> Read<()> {
        e.keyword("limited", LIMITED, &mut self.limited)?;
        e.array("range", &mut self.range)?;
        e.keyword("actuatorfrclimited", LIMITED, &mut self.actfrc_limited)?;
        e.array("actuatorfrcrange", &mut self.actfrcrange)?;
        e.scalar("margin", &mut self.margin)?;
        for (name, to) in [
            ("stiffness", &mut self.stiffness),
            ("damping", &mut self.damping),
        ] {
            e.fill(name, 1, to)?;
            if let Some(attr) = e.attr(name)
                && to[1..] != [0.0; 2]
            {
                return Err(wrong(attr, "is a polynomial; only one number is supported"));
            }
        }
        e.scalar("frictionloss", &mut self.frictionloss)?;
        e.scalar("armature", &mut self.armature)?;
        for (name, value) in [
            ("frictionloss", self.frictionloss),
            ("armature", self.armature),
        ] {
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

    /// Refuses a spatial tendon that acts on the robot.
    pub fn check_idle(&self, e: &Element) -> Read<()> {
        let limited = match self.limited {
            Limited::No => false,
            Limited::Yes => true,
            Limited::Auto => self.range != [0.0; 2],
        };
        let acting = [
            ("stiffness", self.stiffness != [0.0; 3]),
            ("damping", self.damping != [0.0; 3]),
            ("frictionloss", self.frictionloss != 0.0),
            ("armature", self.armature != 0.0),
            ("range", limited),
        ];
        match acting.into_iter().find(|(_, acts)| *acts) {
            None => Ok(()),
            Some((name, _)) => Err(Fault::new(
                e.attr(name).map_or(e.at, |a| a.at),
                format!(
                    "{name} of a <spatial> tendon is not supported; spatial tendons that exert \
                     no force are accepted, others need a <fixed> tendon, or joint springs, \
                     dampers or limits instead"
                ),
            )),
        }
    }

    /// The fixed tendon; its lengths are still to be found: see `derive`.
    pub fn resolve(
        &self,
        e: &Element,
        compiler: &Compiler,
        name: String,
        model: &Model,
    ) -> Read<Tendon> {
        let mut joints = Vec::new();
        for part in &e.children {
            part.required("joint")?;
            part.required("coef")?;
            let mut coef = 0.0;
            part.scalar("coef", &mut coef)?;
            for attr in part.attrs.iter().filter(|a| a.name == "joint") {
                let names = model.joints.iter().map(|j| j.name.as_str());
                let joint = super::find(attr, "joint", names)?;
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
            kind: TendonKind::Fixed(joints),
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
