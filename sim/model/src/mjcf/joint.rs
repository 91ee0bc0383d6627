//! `<joint>` and `<freejoint>`.

use super::compiler::Compiler;
use super::element::{Element, Fault, Read};
use super::value::{BOOL, Keywords, LIMITED, Limited, wrong};
use crate::rotation::{Pose, normalized, rotate};
use crate::{Joint, JointKind, Vec3};

const KIND: Keywords<JointKind> = &[
    ("free", JointKind::Free),
    ("ball", JointKind::Ball),
    ("slide", JointKind::Slide),
    ("hinge", JointKind::Hinge),
];

/// MuJoCo's default `solref` and `solimp`.
pub(super) const SOLREF: [f64; 2] = [0.02, 1.0];
pub(super) const SOLIMP: [f64; 5] = [0.9, 0.95, 0.001, 0.5, 2.0];

/// Attributes of a joint, before `<compiler>` gives them meaning.
#[derive(Debug, Clone)]
pub(super) struct JointSpec {
    kind: JointKind,
    pos: Vec3,
    axis: Vec3,
    reference: f64,
    springref: f64,
    limited: Limited,
    range: [f64; 2],
    actfrc_limited: Limited,
    actfrcrange: [f64; 2],
    damping: [f64; 3],
    stiffness: [f64; 3],
    armature: f64,
    frictionloss: f64,
    gravcomp: bool,
    margin: f64,
    springdamper: [f64; 2],
    solref_limit: [f64; 2],
    solimp_limit: [f64; 5],
    solref_friction: [f64; 2],
    solimp_friction: [f64; 5],
}

impl Default for JointSpec {
    fn default() -> Self {
        Self {
            kind: JointKind::Hinge,
            pos: [0.0; 3],
            axis: [0.0, 0.0, 1.0],
            reference: 0.0,
            springref: 0.0,
            limited: Limited::Auto,
            range: [0.0; 2],
            actfrc_limited: Limited::Auto,
            actfrcrange: [0.0; 2],
            damping: [0.0; 3],
            stiffness: [0.0; 3],
            armature: 0.0,
            frictionloss: 0.0,
            gravcomp: false,
            margin: 0.0,
            springdamper: [0.0; 2],
            solref_limit: SOLREF,
            solimp_limit: SOLIMP,
            solref_friction: SOLREF,
            solimp_friction: SOLIMP,
        }
    }
}

impl JointSpec {
    /// The attributes that `<freejoint>` implies: no defaults reach it.
    pub(crate) fn free() -> Self {
        Self { kind: JointKind::Free, limited: Limited::No, ..Self::default() }
    }

    /// Time constant and damping ratio, if the file gives them.
    pub(crate) fn springdamper(&self) -> Option<[f64; 2]> {
        (self.springdamper != [0.0; 2]).then_some(self.springdamper)
    }

    /// Overwrites the values that the element sets.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.keyword("type", KIND, &mut self.kind)?;
        e.array("pos", &mut self.pos)?;
        e.array("axis", &mut self.axis)?;
        e.scalar("ref", &mut self.reference)?;
        e.scalar("springref", &mut self.springref)?;
        e.keyword("limited", LIMITED, &mut self.limited)?;
        e.ends("range", &mut self.range)?;
        e.keyword("actuatorfrclimited", LIMITED, &mut self.actfrc_limited)?;
        e.ends("actuatorfrcrange", &mut self.actfrcrange)?;
        e.fill("damping", 1, &mut self.damping)?;
        e.fill("stiffness", 1, &mut self.stiffness)?;
        e.scalar("armature", &mut self.armature)?;
        e.scalar("frictionloss", &mut self.frictionloss)?;
        e.keyword("actuatorgravcomp", BOOL, &mut self.gravcomp)?;
        e.scalar("margin", &mut self.margin)?;
        e.array("springdamper", &mut self.springdamper)?;
        e.fill("solreflimit", 1, &mut self.solref_limit)?;
        e.fill("solimplimit", 1, &mut self.solimp_limit)?;
        e.fill("solreffriction", 1, &mut self.solref_friction)?;
        e.fill("solimpfriction", 1, &mut self.solimp_friction)?;
        for name in ["armature", "frictionloss"] {
            if let Some(attr) = e.attr(name)
                && attr.value.trim_start().starts_with('-')
            {
                return Err(wrong(attr, "cannot be negative"));
            }
        }
        Ok(())
    }

    pub(crate) fn kind(&self) -> JointKind {
        self.kind
    }

    /// The range as it stands in the file ((m) or (rad)), whether it is a limit or not.
    pub(crate) fn given_range(&self, compiler: &Compiler) -> [f64; 2] {
        match self.kind {
            JointKind::Slide => self.range,
            _ => self.range.map(|x| compiler.radians(x)),
        }
    }

    /// The joint in its body's frame; addresses are given later.
    pub(crate) fn resolve(
        &self,
        e: &Element,
        frame: Pose,
        compiler: &Compiler,
        name: String,
        body: usize,
    ) -> Read<Joint> {
        let at = |attr: &str| e.attr(attr).map_or(e.at, |a| a.value_at(0));
        for (attr, poly) in [("damping", self.damping), ("stiffness", self.stiffness)] {
            if poly[1..] != [0.0; 2] {
                let why =
                    format!("a polynomial {attr} is not supported; give its first coefficient");
                return Err(Fault::new(at(attr), why));
            }
        }
        if self.springdamper != [0.0; 2] && self.springdamper.iter().any(|x| *x <= 0.0) {
            return Err(Fault::new(
                at("springdamper"),
                "springdamper: time constant [s] and damping ratio must both be positive",
            ));
        }
        let single = matches!(self.kind, JointKind::Hinge | JointKind::Slide);
        let axis = if single {
            let axis = normalized(self.axis)
                .ok_or_else(|| Fault::new(at("axis"), "axis has no direction (zero)"))?;
            normalized(rotate(frame.quat, axis)).unwrap_or(axis)
        } else {
            [0.0, 0.0, 1.0]
        };
        let angular = self.kind != JointKind::Slide;
        let unit = |x: f64| if angular { compiler.radians(x) } else { x };
        let mut limited = self.limited;
        let mut actfrc_limited = self.actfrc_limited;
        if self.kind == JointKind::Free {
            limited = Limited::No;
        }
        if !single {
            actfrc_limited = Limited::No;
        }
        let range = limit(e, compiler, "limited", "range", limited, self.range)?;
        if let (JointKind::Ball, Some([low, _])) = (self.kind, range)
            && low != 0.0
        {
            return Err(Fault::new(
                at("range"),
                "a ball joint's range starts at 0, for example \"0 45\"",
            ));
        }
        Ok(Joint {
            name,
            kind: self.kind,
            body,
            pos: if self.kind == JointKind::Free { [0.0; 3] } else { frame.point(self.pos) },
            axis,
            reference: if self.kind == JointKind::Hinge {
                unit(self.reference)
            } else {
                self.reference
            },
            range: range.map(|r| r.map(unit)),
            damping: self.damping[0],
            stiffness: self.stiffness[0],
            springref: if self.kind == JointKind::Hinge {
                unit(self.springref)
            } else {
                self.springref
            },
            armature: self.armature,
            frictionloss: self.frictionloss,
            actfrcrange: limit(
                e,
                compiler,
                "actuatorfrclimited",
                "actuatorfrcrange",
                actfrc_limited,
                self.actfrcrange,
            )?,
            actuator_gravcomp: self.gravcomp,
            margin: self.margin,
            solref_limit: self.solref_limit,
            solimp_limit: self.solimp_limit,
            solref_friction: self.solref_friction,
            solimp_friction: self.solimp_friction,
            qpos_adr: 0,
            dof_adr: 0,
        })
    }
}

/// Where a range without an end ends: MuJoCo's largest number (`mjMAXVAL`).
const FAR: f64 = 1e10;

/// A range, if it applies: `auto` means "if a range is given", and without
/// `autolimits` a range alone is a mistake. An end may be infinite.
pub(super) fn limit(
    e: &Element,
    compiler: &Compiler,
    limited_attr: &str,
    range_attr: &str,
    limited: Limited,
    range: [f64; 2],
) -> Read<Option<[f64; 2]>> {
    let at = e.attr(range_attr).map_or(e.at, |a| a.value_at(0));
    let given = range != [0.0; 2];
    match limited {
        Limited::No => return Ok(None),
        Limited::Auto if !given => return Ok(None),
        Limited::Auto if !compiler.autolimits => {
            return Err(Fault::new(
                at,
                format!(
                    "{range_attr} without {limited_attr}, while compiler/autolimits is off; \
                     write {limited_attr}=\"true\" or \"false\""
                ),
            ));
        }
        _ => {}
    }
    if range[0] >= range[1] {
        return Err(Fault::new(
            at,
            format!("{range_attr} \"{} {}\": the first must be smaller", range[0], range[1]),
        ));
    }
    let ends = range.iter().any(|x| x.is_finite());
    Ok(ends.then(|| range.map(|x| x.clamp(-FAR, FAR))))
}
