//! `<motor>`, `<position>`, `<velocity>`, `<intvelocity>`, `<damper>`, `<cylinder>`,
//! `<muscle>`, `<adhesion>`, `<dcmotor>`, `<general>`.

use super::compiler::Compiler;
use super::dcmotor;
use super::element::{Element, Fault, Read};
use super::joint::limit;
use super::muscle;
use super::transmission::{Ranges, TransmissionSpec};
use super::value::{BOOL, Keywords, LIMITED, Limited, wrong};
use crate::{Actuator, Dynamics, Given, Model, Transmission};

/// Parameters of dynamics, gain and bias in MuJoCo; nine are used by what is
/// supported.
const PARAMETERS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    None,
    Fixed,
    Affine,
    Muscle,
    DcMotor,
    Unsupported,
}

const GAIN: Keywords<Form> = &[
    ("fixed", Form::Fixed),
    ("affine", Form::Affine),
    ("muscle", Form::Muscle),
    ("dcmotor", Form::DcMotor),
    ("so3", Form::Unsupported),
    ("pid", Form::Unsupported),
    ("user", Form::Unsupported),
];
const BIAS: Keywords<Form> = &[
    ("none", Form::None),
    ("affine", Form::Affine),
    ("muscle", Form::Muscle),
    ("dcmotor", Form::DcMotor),
    ("so3", Form::Unsupported),
    ("user", Form::Unsupported),
];
const DYNAMICS: Keywords<Option<Dynamics>> = &[
    ("none", Some(Dynamics::None)),
    ("integrator", Some(Dynamics::Integrator)),
    ("filter", Some(Dynamics::Filter)),
    ("filterexact", Some(Dynamics::FilterExact)),
    ("muscle", Some(Dynamics::Muscle)),
    ("dcmotor", Some(Dynamics::Current)),
    ("pid", None),
    ("user", None),
];

/// What a control is called in MuJoCo 4. It writes them into the files that it saves; of the
/// actuators here, which have one control each, they change nothing.
const INPUTS: Keywords<bool> = &[
    ("", true),
    ("pos", true),
    ("vel", true),
    ("pressure", true),
    ("expmap", true),
    ("quat", true),
    ("ff", false),
    ("voltage", false),
    ("none", false),
];

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

/// The attributes of an actuator. As in MuJoCo all kinds share one set
/// of defaults per class: `<default><position kp="5"/>` also reaches `<general>`.
#[derive(Debug, Clone)]
pub(super) struct ActuatorSpec {
    gear: [f64; 6],
    ctrl_limited: Limited,
    ctrlrange: [f64; 2],
    force_limited: Limited,
    forcerange: [f64; 2],
    act_limited: Limited,
    actrange: [f64; 2],
    act_early: bool,
    inherit_range: f64,
    dynamics: Dynamics,
    gain_form: Form,
    bias_form: Form,
    dynprm: [f64; PARAMETERS],
    gain: [f64; PARAMETERS],
    bias: [f64; PARAMETERS],
    length_range: [f64; 2],
    /// What a DC motor's control is; empty: MuJoCo's default.
    input: String,
    group: i32,
    /// Coefficients of the velocity, its square and its cube, and an inertia, both of its joint
    /// or tendon.
    damping: [f64; 3],
    armature: f64,
    transmission: TransmissionSpec,
    /// The last of MuJoCo's shortcuts that set this; empty: none.
    shortcut: String,
}

impl Default for ActuatorSpec {
    fn default() -> Self {
        let mut gain = [0.0; PARAMETERS];
        gain[0] = 1.0;
        let dynprm = gain;
        Self {
            gear: [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            ctrl_limited: Limited::Auto,
            ctrlrange: [0.0; 2],
            force_limited: Limited::Auto,
            forcerange: [0.0; 2],
            act_limited: Limited::Auto,
            actrange: [0.0; 2],
            act_early: false,
            inherit_range: 0.0,
            dynamics: Dynamics::None,
            gain_form: Form::Fixed,
            bias_form: Form::None,
            dynprm,
            gain,
            bias: [0.0; PARAMETERS],
            length_range: [0.0; 2],
            input: String::new(),
            group: 0,
            damping: [0.0; 3],
            armature: 0.0,
            transmission: TransmissionSpec::default(),
            shortcut: String::new(),
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
        match self.gain_form {
            Form::DcMotor => self.dynprm[0] > 0.0,
            _ => self.dynamics != Dynamics::None,
        }
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
        self.begin(&e.name);
        match e.name.as_str() {
            "motor" => {
                self.gain[0] = 1.0;
                self.forms(Dynamics::None, Form::Fixed, Form::None);
            }
            "position" => self.read_servo(e)?,
            "intvelocity" => {
                self.read_servo(e)?;
                self.dynamics = Dynamics::Integrator;
                if self.inherit_range > 0.0 && self.actrange != [0.0; 2] {
                    return Err(two_ranges(e, "actrange"));
                }
            }
            "velocity" => {
                let mut kv = self.gain[0];
                e.scalar("kv", &mut kv)?;
                self.gain[0] = kv;
                self.bias = [0.0; PARAMETERS];
                self.bias[2] = -kv;
                self.forms(Dynamics::None, Form::Fixed, Form::Affine);
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
                self.forms(Dynamics::None, Form::Affine, Form::None);
                if self.ctrlrange.iter().any(|c| *c < 0.0) {
                    return Err(Fault::new(
                        e.attr("ctrlrange").map_or(e.at, |a| a.value_at(0)),
                        "a damper's ctrlrange cannot be negative",
                    ));
                }
            }
            "cylinder" => {
                e.scalar("timeconst", &mut self.dynprm[0])?;
                e.fill("bias", 3, &mut self.bias[..3])?;
                e.scalar("area", &mut self.gain[0])?;
                let mut diameter = 0.0;
                if e.scalar("diameter", &mut diameter)? && diameter >= 0.0 {
                    self.gain[0] = std::f64::consts::FRAC_PI_4 * diameter * diameter;
                }
                self.forms(Dynamics::Filter, Form::Fixed, Form::Affine);
            }
            "muscle" => {
                muscle::read(e, &mut self.dynprm, &mut self.gain)?;
                self.bias[..9].copy_from_slice(&self.gain[..9]);
                self.forms(Dynamics::Muscle, Form::Muscle, Form::Muscle);
            }
            "dcmotor" => self.read_motor(e)?,
            "adhesion" => {
                e.scalar("gain", &mut self.gain[0])?;
                not_negative(e, "gain", self.gain[0])?;
                self.ctrl_limited = Limited::Yes;
                self.forms(self.dynamics, Form::Fixed, Form::None);
                if self.ctrlrange.iter().any(|c| *c < 0.0) {
                    return Err(Fault::new(
                        e.attr("ctrlrange").map_or(e.at, |a| a.value_at(0)),
                        "the ctrlrange of adhesion cannot be negative",
                    ));
                }
            }
            _ => self.read_general(e)?,
        }
        Ok(())
    }

    /// A shortcut takes its parameters from the class only where the class has them from
    /// the same shortcut, or from a `<general>` of the plain form; else it starts anew
    /// (MuJoCo 4; found by trial).
    fn begin(&mut self, name: &str) {
        if name == "general" || self.shortcut == name {
            return;
        }
        let plain = self.gain_form == Form::Fixed && self.dynamics == Dynamics::None;
        if !self.shortcut.is_empty() || !plain || name == "muscle" {
            let fresh = Self::default();
            (self.dynprm, self.gain, self.bias) = (fresh.dynprm, fresh.gain, fresh.bias);
            (self.dynamics, self.gain_form) = (fresh.dynamics, fresh.gain_form);
        }
        self.shortcut = name.to_string();
    }

    fn forms(&mut self, dynamics: Dynamics, gain: Form, bias: Form) {
        (self.dynamics, self.gain_form, self.bias_form) = (dynamics, gain, bias);
    }

    fn read_servo(&mut self, e: &Element) -> Read<()> {
        let mut kp = self.gain[0];
        e.scalar("kp", &mut kp)?;
        self.gain[0] = kp;
        self.bias[..2].copy_from_slice(&[0.0, -kp]);
        let (mut kv, mut ratio, mut timeconst) = (0.0, 0.0, 0.0);
        if e.scalar("kv", &mut kv)? {
            not_negative(e, "kv", kv)?;
            self.bias[2] = -kv;
        }
        if e.scalar("dampratio", &mut ratio)? {
            not_negative(e, "dampratio", ratio)?;
            if e.attr("kv").is_some() {
                let at = e.attr("dampratio").map_or(e.at, |a| a.at);
                return Err(Fault::new(at, "kv and dampratio both damp; keep one"));
            }
            // Positive until the robot's inertia turns it into damping.
            self.bias[2] = ratio;
        }
        if e.scalar("timeconst", &mut timeconst)? {
            not_negative(e, "timeconst", timeconst)?;
            self.dynprm[0] = timeconst;
            self.dynamics = if timeconst == 0.0 { Dynamics::None } else { Dynamics::FilterExact };
        }
        e.scalar("inheritrange", &mut self.inherit_range)?;
        if self.inherit_range > 0.0 && self.ctrlrange != [0.0; 2] {
            return Err(two_ranges(e, "ctrlrange"));
        }
        (self.gain_form, self.bias_form) = (Form::Fixed, Form::Affine);
        Ok(())
    }

    fn read_motor(&mut self, e: &Element) -> Read<()> {
        if self.gain_form != Form::DcMotor {
            let none = [0.0; PARAMETERS];
            (self.gain, self.bias, self.dynprm) = (none, none, none);
        }
        let mut range = None;
        let parameters = dcmotor::Parameters {
            gain: &mut self.gain,
            bias: &mut self.bias,
            dynamics: &mut self.dynprm,
            forcerange: &mut range,
        };
        dcmotor::read(e, self.damping[0], parameters)?;
        if let Some(range) = range {
            (self.forcerange, self.force_limited) = (range, Limited::Yes);
        }
        (self.act_limited, self.act_early) = (Limited::No, true);
        self.forms(Dynamics::Current, Form::DcMotor, Form::DcMotor);
        Ok(())
    }

    fn read_general(&mut self, e: &Element) -> Read<()> {
        let mut dynamics = Some(self.dynamics);
        e.keyword("dyntype", DYNAMICS, &mut dynamics)?;
        match (dynamics, e.attr("dyntype")) {
            (Some(dynamics), _) => self.dynamics = dynamics,
            (None, Some(attr)) => {
                let why = "is not supported; use none, integrator, filter, filterexact or muscle";
                return Err(wrong(attr, why));
            }
            (None, None) => {}
        }
        e.keyword("gaintype", GAIN, &mut self.gain_form)?;
        e.keyword("biastype", BIAS, &mut self.bias_form)?;
        for (name, form) in [("gaintype", self.gain_form), ("biastype", self.bias_form)] {
            if let (Form::Unsupported, Some(attr)) = (form, e.attr(name)) {
                return Err(wrong(attr, "is not supported; use fixed, affine, muscle or none"));
            }
        }
        e.fill("dynprm", 1, &mut self.dynprm)?;
        e.fill("gainprm", 1, &mut self.gain)?;
        e.fill("biasprm", 1, &mut self.bias)?;
        e.keyword("actearly", BOOL, &mut self.act_early)?;
        let mut single = true;
        if self.gain_form != Form::DcMotor {
            e.keyword("input", INPUTS, &mut single)?;
        }
        if let (false, Some(attr)) = (single, e.attr("input")) {
            return Err(wrong(attr, "is for pid and dcmotor actuators"));
        }
        let mut width = -1;
        e.integer("actdim", &mut width)?;
        if let Some(attr) = e.attr("actdim")
            && width >= 0
            && width != i32::from(self.has_state())
        {
            return Err(wrong(
                attr,
                "contradicts dyntype: an actuator has one activation, with dyntype=\"none\" none",
            ));
        }
        Ok(())
    }

    /// A servo whose stiffness is its gain: MuJoCo reads a positive third bias as a
    /// damping ratio.
    fn is_servo(&self) -> bool {
        self.gain[0] == -self.bias[1]
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
        let servo =
            self.gain_form == Form::Fixed && self.bias_form == Form::Affine && self.is_servo();
        if !servo || self.inherit_range <= 0.0 {
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
        let (mean, radius) = (0.5 * (low + high), 0.5 * (high - low) * self.inherit_range);
        let range = [mean - radius, mean + radius];
        match self.dynamics {
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
            self.gain_form == Form::DcMotor,
            self.bias_form == Form::DcMotor,
            self.dynamics == Dynamics::Current,
        ];
        if parts == [false; 3] {
            return Ok(None);
        }
        if parts != [true; 3] || !dampable(transmission, model) {
            let why = "a DC motor has gaintype, biastype and dyntype dcmotor, and drives a hinge or \
                       slide joint or a tendon";
            return Err(Fault::new(e.at, why));
        }
        dcmotor::resolve(e, &self.input, &self.gain, &self.bias, &self.dynprm).map(Some)
    }

    /// What acts on a body has a force that does not depend on velocity: its moment arms are
    /// known after all other forces.
    fn check_body(&self, e: &Element, transmission: Transmission) -> Read<()> {
        let plain = |form, p: [f64; PARAMETERS]| match form {
            Form::Affine => p[2] == 0.0,
            Form::None | Form::Fixed => true,
            Form::Muscle | Form::DcMotor | Form::Unsupported => false,
        };
        let plain = plain(self.gain_form, self.gain) && plain(self.bias_form, self.bias);
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
        if self.is_servo() && self.bias[2] > 0.0 && !dampable(transmission, model) {
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
        if actrange.is_some() && self.dynamics == Dynamics::None {
            return Err(Fault::new(
                e.attr("actrange").map_or(e.at, |a| a.at),
                "actrange is for actuators with a state; this one has dyntype=\"none\"",
            ));
        }
        let curve = |form, p: [f64; PARAMETERS]| (form == Form::Muscle).then(|| first_nine(p));
        let curves = [curve(self.gain_form, self.gain), curve(self.bias_form, self.bias)];
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
            gain: acting(motor.as_ref().map_or(affine(self.gain_form, self.gain), |m| m.gain)),
            bias: acting(motor.as_ref().map_or(affine(self.bias_form, self.bias), |m| m.bias)),
            muscle: muscle.filter(|_| !off),
            enabled: !off,
            dynamics: if self.has_state() { self.dynamics } else { Dynamics::None },
            dynprm: match motor.as_ref().map(|m| m.current) {
                Some(Some([time, constant])) => [time, constant, 0.0],
                _ => [self.dynprm[0], self.dynprm[1], self.dynprm[2]],
            },
            actrange,
            actearly: self.act_early,
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

fn not_negative(e: &Element, name: &str, value: f64) -> Read<()> {
    match e.attr(name) {
        Some(attr) if value < 0.0 => Err(wrong(attr, "cannot be negative")),
        _ => Ok(()),
    }
}
