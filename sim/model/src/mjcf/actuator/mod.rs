//! `<motor>`, `<position>`, `<velocity>`, `<intvelocity>`, `<damper>`, `<cylinder>`,
//! `<muscle>`, `<adhesion>`, `<dcmotor>`, `<general>`.

mod law;

use self::law::{Around, Form, Law, PARAMETERS};
use super::compiler::Compiler;
use super::dcmotor;
use super::element::{Element, Fault, Read};
use super::joint::limit;
use super::muscle;
use super::transmission::{Ranges, TransmissionSpec};
use super::value::{LIMITED, Limited};
use crate::{Actuator, Dynamics, Given, Model, Transmission};

/// Elements this file reads.
pub(super) const ELEMENTS: [&str; 10] = [
    "motor",
    "position",
    "velocity",
    "intvelocity",
    "damper",
    "cylinder",
    "muscle",
    "adhesion",
    "dcmotor",
    "general",
];

/// The attributes of an actuator. As in MuJoCo all kinds share one set of defaults per class, but
/// for what they make of a control ([`law`]): `<default><position kp="5" gear="2"/>` reaches
/// `<general>` whole, and `<motor>` with its gear alone.
#[derive(Debug, Clone)]
pub(super) struct ActuatorSpec {
    gear: [f64; 6],
    ctrl_limited: Limited,
    ctrlrange: [f64; 2],
    force_limited: Limited,
    forcerange: [f64; 2],
    act_limited: Limited,
    actrange: [f64; 2],
    /// What it makes of its control.
    law: Law,
    /// The same of the classes around this one.
    around: Around,
    length_range: [f64; 2],
    /// What a DC motor's control is; empty: MuJoCo's default.
    input: String,
    group: i32,
    /// Coefficients of the velocity, its square and its cube, and an inertia, both of its joint
    /// or tendon.
    damping: [f64; 3],
    armature: f64,
    transmission: TransmissionSpec,
}

impl Default for ActuatorSpec {
    fn default() -> Self {
        Self {
            gear: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            ctrl_limited: Limited::Auto,
            ctrlrange: [0.0; 2],
            force_limited: Limited::Auto,
            forcerange: [0.0; 2],
            act_limited: Limited::Auto,
            actrange: [0.0; 2],
            law: Law::default(),
            around: Around::default(),
            length_range: [0.0; 2],
            input: String::new(),
            group: 0,
            damping: [0.0; 3],
            armature: 0.0,
            transmission: TransmissionSpec::default(),
        }
    }
}

/// What an actuator adds to the damping and armature of its joint or tendon.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reflected {
    on: Transmission,
    damping: f64,
    armature: f64,
}

impl Reflected {
    /// Adds the armature.
    pub(crate) fn add_armature(&self, model: &mut Model) {
        if let Some((_, armature)) = felt_by(self.on, model) {
            *armature += self.armature;
        }
    }

    /// Adds the damping, once the joints have their own.
    pub(crate) fn add_damping(&self, model: &mut Model) {
        if let Some((damping, _)) = felt_by(self.on, model) {
            *damping += self.damping;
        }
    }
}

/// Damping and armature of the joint or tendon that an actuator acts on.
fn felt_by(on: Transmission, model: &mut Model) -> Option<(&mut f64, &mut f64)> {
    match on {
        Transmission::Joint(j) | Transmission::JointInParent(j) => {
            let joint = &mut model.joints[j];
            Some((&mut joint.damping, &mut joint.armature))
        }
        Transmission::Tendon(t) => {
            let tendon = &mut model.tendons[t];
            Some((&mut tendon.damping, &mut tendon.armature))
        }
        _ => None,
    }
}

impl ActuatorSpec {
    /// True if it has a number of its own in the state.
    pub(crate) fn has_state(&self) -> bool {
        self.law.has_state()
    }

    /// Overwrites the values that the element sets; its name sets gain and bias as MuJoCo's
    /// shortcuts do.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.fill("gear", 1, &mut self.gear)?;
        e.keyword("ctrllimited", LIMITED, &mut self.ctrl_limited)?;
        e.ends("ctrlrange", &mut self.ctrlrange)?;
        e.keyword("forcelimited", LIMITED, &mut self.force_limited)?;
        e.ends("forcerange", &mut self.forcerange)?;
        e.keyword("actlimited", LIMITED, &mut self.act_limited)?;
        e.ends("actrange", &mut self.actrange)?;
        e.array("lengthrange", &mut self.length_range)?;
        e.integer("group", &mut self.group)?;
        if let Some(text) = e.text("input") {
            self.input = text.trim().to_string();
        }
        e.fill("damping", 1, &mut self.damping)?;
        e.scalar("armature", &mut self.armature)?;
        self.transmission.read(e)?;
        self.law = self.around.begin(&self.law, &e.name);
        let law = &mut self.law;
        match e.name.as_str() {
            "motor" => {}
            "position" | "intvelocity" => {
                law.read_servo(e)?;
                let (name, range) = match e.name.as_str() {
                    "position" => ("ctrlrange", &mut self.ctrlrange),
                    _ => ("actrange", &mut self.actrange),
                };
                // What the element says itself ends what its class has of the other.
                match (e.attr("inheritrange").is_some(), e.attr(name).is_some()) {
                    (true, false) if law.inherit_range > 0.0 => *range = [0.0; 2],
                    (false, true) if *range != [0.0; 2] => law.inherit_range = 0.0,
                    _ if law.inherit_range > 0.0 && *range != [0.0; 2] => {
                        return Err(two_ranges(e, name));
                    }
                    _ => {}
                }
            }
            "velocity" => law.read_velocity(e)?,
            "damper" | "adhesion" => {
                match e.name.as_str() {
                    "damper" => law.read_damper(e)?,
                    _ => law.read_adhesion(e)?,
                }
                self.ctrl_limited = Limited::Yes;
                if self.ctrlrange.iter().any(|c| *c < 0.0) {
                    return Err(Fault::new(
                        e.attr("ctrlrange").map_or(e.at, |a| a.value_at(0)),
                        format!("the ctrlrange of <{}> cannot be negative", e.name),
                    ));
                }
            }
            "cylinder" => law.read_cylinder(e)?,
            "muscle" => {
                muscle::read(e, &mut law.dynprm, &mut law.gain)?;
                law.bias[..9].copy_from_slice(&law.gain[..9]);
            }
            "dcmotor" => self.read_motor(e)?,
            _ => law.read_general(e)?,
        }
        Ok(())
    }

    /// What classes inside this one start from.
    pub(crate) fn enclose(&mut self) {
        self.around.enclose(&mut self.law);
    }

    fn read_motor(&mut self, e: &Element) -> Read<()> {
        let mut range = None;
        let parameters = dcmotor::Parameters {
            gain: &mut self.law.gain,
            bias: &mut self.law.bias,
            dynamics: &mut self.law.dynprm,
            forcerange: &mut range,
        };
        dcmotor::read(e, self.damping[0], parameters)?;
        if let Some(range) = range {
            (self.forcerange, self.force_limited) = (range, Limited::Yes);
        }
        self.act_limited = Limited::No;
        Ok(())
    }

    /// The range of the servo's setpoint, from that of its transmission, which need not be a
    /// limit.
    fn inherit(
        &mut self,
        e: &Element,
        target: Transmission,
        model: &Model,
        ranges: &Ranges,
    ) -> Read<()> {
        let law = &self.law;
        let servo = law.gain_form == Form::Fixed && law.bias_form == Form::Affine;
        if !servo || !law.is_servo() || law.inherit_range <= 0.0 {
            return Ok(());
        }
        let at = e.attr("inheritrange").map_or(e.at, |a| a.at);
        let range = match target {
            Transmission::Joint(j) if model.joints[j].is_scalar() => ranges.joints[j],
            Transmission::Tendon(t) => ranges.tendons[t],
            _ => {
                let why = "inheritrange needs a hinge or slide joint, or a tendon";
                return Err(Fault::new(at, why));
            }
        };
        let [low, high] = range;
        if !(low < high && low.is_finite() && high.is_finite()) {
            let why = "inheritrange: what the actuator acts on has no range; give it one, or this \
                       actuator a ctrlrange";
            return Err(Fault::new(at, why));
        }
        let (mean, radius) = (0.5 * (low + high), 0.5 * (high - low) * self.law.inherit_range);
        let range = [mean - radius, mean + radius];
        match self.law.dynamics {
            Dynamics::None | Dynamics::FilterExact => self.ctrlrange = range,
            Dynamics::Integrator => self.actrange = range,
            Dynamics::Filter | Dynamics::Muscle | Dynamics::Current => {
                let why = "inheritrange is for position and intvelocity actuators";
                return Err(Fault::new(at, why));
            }
        }
        Ok(())
    }

    /// The actuator's own damping and armature as what it acts on feels them: times the gear's
    /// square (MuJoCo, `mj_actuatorDamping`).
    pub(crate) fn reflected(&self, e: &Element, of: &Actuator) -> Read<Reflected> {
        let at = |name: &str| e.attr(name).map_or(e.at, |a| a.value_at(0));
        if self.damping[1..] != [0.0; 2] {
            let why = "a polynomial damping is not supported; give its first coefficient";
            return Err(Fault::new(at("damping"), why));
        }
        let square = of.gear[0] * of.gear[0];
        let on = of.transmission;
        let (damping, armature) = (square * self.damping[0], square * self.armature);
        for (name, value) in [("damping", damping), ("armature", armature)] {
            let fits = matches!(
                on,
                Transmission::Joint(_) | Transmission::JointInParent(_) | Transmission::Tendon(_)
            );
            if value != 0.0 && !fits {
                let why = format!("{name} of an actuator needs a joint or a tendon");
                return Err(Fault::new(at(name), why));
            }
        }
        Ok(Reflected { on, damping, armature })
    }

    /// The DC motor that its parameters describe, if they do.
    fn motor(
        &self,
        e: &Element,
        transmission: Transmission,
        model: &Model,
    ) -> Read<Option<dcmotor::Affine>> {
        let parts = [
            self.law.gain_form == Form::DcMotor,
            self.law.bias_form == Form::DcMotor,
            self.law.dynamics == Dynamics::Current,
        ];
        if parts == [false; 3] {
            return Ok(None);
        }
        if parts != [true; 3] || !dampable(transmission, model) {
            let why = "a DC motor has gaintype, biastype and dyntype dcmotor, and drives a hinge or \
                       slide joint or a tendon";
            return Err(Fault::new(e.at, why));
        }
        dcmotor::resolve(e, &self.input, &self.law.gain, &self.law.bias, &self.law.dynprm).map(Some)
    }

    /// What acts on a body has a force that does not depend on velocity: its moment arms are
    /// known after all other forces.
    fn check_body(&self, e: &Element, transmission: Transmission) -> Read<()> {
        let plain = |form, p: [f64; PARAMETERS]| match form {
            Form::Affine => p[2] == 0.0,
            Form::None | Form::Fixed => true,
            Form::Muscle | Form::DcMotor | Form::Unsupported => false,
        };
        let plain =
            plain(self.law.gain_form, self.law.gain) && plain(self.law.bias_form, self.law.bias);
        match (transmission, e.attr("body")) {
            (Transmission::Body(_), Some(attr)) if !plain => {
                let why = "an actuator on a body has gaintype fixed and biastype none: a muscle, \
                           or a gain or bias by velocity, acts on a joint or tendon";
                Err(Fault::new(attr.at, why))
            }
            (Transmission::Body(_), _) => Ok(()),
            _ if e.name == "adhesion" => {
                Err(Fault::new(e.at, "<adhesion> acts on bodies: give body=\"...\" alone"))
            }
            _ => Ok(()),
        }
    }

    /// The actuator, with its transmission looked up in `model`. A damping ratio is
    /// still a positive `bias[2]`: see `derive`.
    pub(crate) fn resolve(
        &mut self,
        e: &Element,
        compiler: &Compiler,
        name: String,
        model: &Model,
        ranges: &Ranges,
    ) -> Read<Actuator> {
        let transmission = self.transmission.resolve(e, model)?;
        self.inherit(e, transmission, model, ranges)?;
        if self.law.is_servo() && self.law.bias[2] > 0.0 && !dampable(transmission, model) {
            return Err(Fault::new(
                e.attr("dampratio").or(e.attr("biasprm")).map_or(e.at, |a| a.value_at(0)),
                "a damping ratio (dampratio, or a positive third biasprm of a servo) is \
                 supported on hinge and slide joints and tendons; write kv or a negative biasprm",
            ));
        }
        self.check_body(e, transmission)?;
        let motor = self.motor(e, transmission, model)?;
        let affine = |form, p: [f64; PARAMETERS]| match form {
            Form::Affine => [p[0], p[1], p[2]],
            Form::Fixed => [p[0], 0.0, 0.0],
            _ => [0.0; 3],
        };
        let actrange =
            limit(e, compiler, "actlimited", "actrange", self.act_limited, self.actrange)?;
        if actrange.is_some() && self.law.dynamics == Dynamics::None {
            return Err(Fault::new(
                e.attr("actrange").map_or(e.at, |a| a.at),
                "actrange is for actuators with a state; this one has dyntype=\"none\"",
            ));
        }
        let curve = |form, p: [f64; PARAMETERS]| (form == Form::Muscle).then(|| first_nine(p));
        let curves =
            [curve(self.law.gain_form, self.law.gain), curve(self.law.bias_form, self.law.bias)];
        let muscle = muscle::resolve(e, compiler, curves, self.length_range, transmission, model)?;
        let off = (0..=30).contains(&self.group)
            && model.options.disabled_actuators & (1 << self.group) != 0;
        let acting = |x: [f64; 3]| if off { [0.0; 3] } else { x };
        Ok(Actuator {
            name,
            element: ELEMENTS.into_iter().find(|n| *n == e.name).unwrap_or("general"),
            transmission,
            gear: self.gear,
            ctrlrange: limit(
                e,
                compiler,
                "ctrllimited",
                "ctrlrange",
                self.ctrl_limited,
                self.ctrlrange,
            )?,
            forcerange: limit(
                e,
                compiler,
                "forcelimited",
                "forcerange",
                self.force_limited,
                self.forcerange,
            )?,
            gain: acting(
                motor.as_ref().map_or(affine(self.law.gain_form, self.law.gain), |m| m.gain),
            ),
            bias: acting(
                motor.as_ref().map_or(affine(self.law.bias_form, self.law.bias), |m| m.bias),
            ),
            muscle: muscle.filter(|_| !off),
            enabled: !off,
            dynamics: if self.has_state() { self.law.dynamics } else { Dynamics::None },
            dynprm: match motor.as_ref().map(|m| m.current) {
                Some(Some([time, constant])) => [time, constant, 0.0],
                _ => [self.law.dynprm[0], self.law.dynprm[1], self.law.dynprm[2]],
            },
            actrange,
            actearly: self.law.act_early,
            motor: None,
            given: Given::File,
            act_adr: self.has_state().then_some(model.na),
        })
    }
}

fn first_nine(p: [f64; PARAMETERS]) -> [f64; 9] {
    std::array::from_fn(|i| p[i])
}

/// A damping ratio has a meaning that is read here.
fn dampable(transmission: Transmission, model: &Model) -> bool {
    match transmission {
        Transmission::Joint(j) => model.joints[j].is_scalar(),
        Transmission::Tendon(_) => true,
        _ => false,
    }
}

fn two_ranges(e: &Element, name: &str) -> Fault {
    let at = e.attr("inheritrange").map_or(e.at, |a| a.at);
    Fault::new(at, format!("{name} and inheritrange both give a range; keep one"))
}
