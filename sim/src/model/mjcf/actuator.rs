//! `<motor>`, `<position>`, `<velocity>`, `<damper>`, `<general>`.

use super::compiler::Compiler;
use super::joint::limit;
use super::source::{Element, Fault, Read};
use super::value::{Keywords, LIMITED, Limited, wrong};
use crate::model::{Actuator, Dynamics, Joint, JointKind, Transmission};

/// Parameters of gain and bias in MuJoCo; three are used by what is supported.
const PARAMETERS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    None,
    Fixed,
    Affine,
    Unsupported,
}

const GAIN: Keywords<Form> = &[
    ("fixed", Form::Fixed),
    ("affine", Form::Affine),
    ("muscle", Form::Unsupported),
    ("dcmotor", Form::Unsupported),
    ("so3", Form::Unsupported),
    ("pid", Form::Unsupported),
    ("user", Form::Unsupported),
];
const BIAS: Keywords<Form> = &[
    ("none", Form::None),
    ("affine", Form::Affine),
    ("muscle", Form::Unsupported),
    ("dcmotor", Form::Unsupported),
    ("so3", Form::Unsupported),
    ("user", Form::Unsupported),
];
const DYNAMICS: Keywords<bool> = &[
    ("none", true),
    ("integrator", false),
    ("filter", false),
    ("filterexact", false),
    ("muscle", false),
    ("dcmotor", false),
    ("pid", false),
    ("user", false),
];

/// Elements this file reads.
pub(super) const ELEMENTS: [&str; 5] = ["motor", "position", "velocity", "damper", "general"];

/// What the attributes of an actuator say. As in MuJoCo all kinds share one set
/// of defaults per class: `<default><position kp="5"/>` also reaches `<general>`.
#[derive(Debug, Clone)]
pub(super) struct ActuatorSpec {
    gear: [f64; 6],
    ctrl_limited: Limited,
    ctrlrange: [f64; 2],
    force_limited: Limited,
    forcerange: [f64; 2],
    inherit_range: f64,
    gain_form: Form,
    bias_form: Form,
    gain: [f64; PARAMETERS],
    bias: [f64; PARAMETERS],
}

impl Default for ActuatorSpec {
    fn default() -> Self {
        let mut gain = [0.0; PARAMETERS];
        gain[0] = 1.0;
        Self {
            gear: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            ctrl_limited: Limited::Auto,
            ctrlrange: [0.0; 2],
            force_limited: Limited::Auto,
            forcerange: [0.0; 2],
            inherit_range: 0.0,
            gain_form: Form::Fixed,
            bias_form: Form::None,
            gain,
            bias: [0.0; PARAMETERS],
        }
    }
}

impl ActuatorSpec {
    /// Overwrites what the element says; its name sets gain and bias as MuJoCo's
    /// shortcuts do.
    pub fn read(&mut self, e: &Element) -> Read<()> {
        e.fill("gear", 1, &mut self.gear)?;
        e.keyword("ctrllimited", LIMITED, &mut self.ctrl_limited)?;
        e.array("ctrlrange", &mut self.ctrlrange)?;
        e.keyword("forcelimited", LIMITED, &mut self.force_limited)?;
        e.array("forcerange", &mut self.forcerange)?;
        match e.name.as_str() {
            "motor" => {
                self.gain[0] = 1.0;
                (self.gain_form, self.bias_form) = (Form::Fixed, Form::None);
            }
            "position" => self.read_position(e)?,
            "velocity" => {
                let mut kv = self.gain[0];
                e.scalar("kv", &mut kv)?;
                self.gain[0] = kv;
                self.bias = [0.0; PARAMETERS];
                self.bias[2] = -kv;
                (self.gain_form, self.bias_form) = (Form::Fixed, Form::Affine);
            }
            "damper" => {
                let mut kv = match self.gain_form {
                    Form::Affine => -self.gain[2],
                    _ => 0.0,
                };
                e.scalar("kv", &mut kv)?;
                not_negative(e, "kv", kv)?;
                self.gain = [0.0; PARAMETERS];
                self.gain[2] = -kv;
                self.ctrl_limited = Limited::Yes;
                (self.gain_form, self.bias_form) = (Form::Affine, Form::None);
                if self.ctrlrange.iter().any(|c| *c < 0.0) {
                    return Err(Fault::new(
                        e.attr("ctrlrange").map_or(e.at, |a| a.value_at(0)),
                        "a damper's ctrlrange cannot be negative",
                    ));
                }
            }
            _ => self.read_general(e)?,
        }
        Ok(())
    }

    fn read_position(&mut self, e: &Element) -> Read<()> {
        let mut kp = self.gain[0];
        e.scalar("kp", &mut kp)?;
        self.gain[0] = kp;
        self.bias[1] = -kp;
        let mut kv = 0.0;
        if e.scalar("kv", &mut kv)? {
            not_negative(e, "kv", kv)?;
            self.bias[2] = -kv;
        }
        e.scalar("inheritrange", &mut self.inherit_range)?;
        (self.gain_form, self.bias_form) = (Form::Fixed, Form::Affine);
        Ok(())
    }

    fn read_general(&mut self, e: &Element) -> Read<()> {
        let mut plain = true;
        e.keyword("dyntype", DYNAMICS, &mut plain)?;
        if let (false, Some(attr)) = (plain, e.attr("dyntype")) {
            return Err(wrong(
                attr,
                "is not supported: actuators with their own state; use dyntype=\"none\"",
            ));
        }
        e.keyword("gaintype", GAIN, &mut self.gain_form)?;
        e.keyword("biastype", BIAS, &mut self.bias_form)?;
        for (name, form) in [("gaintype", self.gain_form), ("biastype", self.bias_form)] {
            if let (Form::Unsupported, Some(attr)) = (form, e.attr(name)) {
                return Err(wrong(attr, "is not supported; use fixed, affine or none"));
            }
        }
        e.fill("gainprm", 1, &mut self.gain)?;
        e.fill("biasprm", 1, &mut self.bias)?;
        Ok(())
    }

    /// The actuator, with its joint looked up among `joints`.
    pub fn resolve(
        &self,
        e: &Element,
        compiler: &Compiler,
        name: String,
        joints: &[Joint],
    ) -> Read<Actuator> {
        let attr = e
            .attr("joint")
            .or_else(|| e.attr("jointinparent"))
            .ok_or_else(|| {
                Fault::new(
                    e.at,
                    format!("<{}> needs joint=\"...\", the joint it drives", e.name),
                )
            })?;
        let joint = super::find(attr, "joint", joints.iter().map(|j| j.name.as_str()))?;
        let target = &joints[joint];
        if !matches!(target.kind, JointKind::Hinge | JointKind::Slide) {
            return Err(Fault::new(
                attr.value_at(0),
                format!(
                    "\"{}\" is a ball or free joint; actuators drive hinge and slide joints",
                    target.name
                ),
            ));
        }
        // MuJoCo reads a positive velocity coefficient of a servo as a damping ratio.
        let servo = self.gain_form == Form::Fixed
            && self.bias_form == Form::Affine
            && self.gain[0] == -self.bias[1];
        if servo && self.bias[2] > 0.0 {
            return Err(Fault::new(
                e.attr("biasprm").map_or(e.at, |a| a.value_at(0)),
                "a damping ratio (positive third biasprm of a servo) is not supported; write kv \
                 or a negative biasprm",
            ));
        }
        let mut ctrlrange = self.ctrlrange;
        if servo && self.inherit_range > 0.0 {
            let at = e.attr("inheritrange").map_or(e.at, |a| a.at);
            if ctrlrange != [0.0; 2] {
                return Err(Fault::new(
                    at,
                    "ctrlrange and inheritrange are both given; keep one",
                ));
            }
            let [low, high] = target.range.ok_or_else(|| {
                let why = format!("inheritrange: joint \"{}\" has no range", target.name);
                Fault::new(at, why)
            })?;
            let (mean, radius) = (0.5 * (low + high), 0.5 * (high - low) * self.inherit_range);
            ctrlrange = [mean - radius, mean + radius];
        }
        let affine = |form, p: [f64; PARAMETERS]| match form {
            Form::Affine => [p[0], p[1], p[2]],
            Form::Fixed => [p[0], 0.0, 0.0],
            _ => [0.0; 3],
        };
        Ok(Actuator {
            name,
            element: ELEMENTS
                .into_iter()
                .find(|n| *n == e.name)
                .unwrap_or("general"),
            transmission: Transmission::Joint(joint),
            gear: self.gear,
            ctrlrange: limit(
                e,
                compiler,
                "ctrllimited",
                "ctrlrange",
                self.ctrl_limited,
                ctrlrange,
            )?,
            forcerange: limit(
                e,
                compiler,
                "forcelimited",
                "forcerange",
                self.force_limited,
                self.forcerange,
            )?,
            gain: affine(self.gain_form, self.gain),
            bias: affine(self.bias_form, self.bias),
            dynamics: Dynamics::None,
            dynprm: [1.0, 0.0, 0.0],
            actrange: None,
            actearly: false,
            act_adr: None,
        })
    }
}

fn not_negative(e: &Element, name: &str, value: f64) -> Read<()> {
    match e.attr(name) {
        Some(attr) if value < 0.0 => Err(wrong(attr, "cannot be negative")),
        _ => Ok(()),
    }
}
