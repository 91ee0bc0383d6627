//! What an actuator makes of its control: dynamics, gain and bias, and where an element takes
//! them from.
//!
//! MuJoCo 4 keeps these apart by element. `<position>` starts from the nearest class around it
//! whose last actuator is a `<position>`, or a `<general>` with a gain of the same form; without
//! one it starts anew. `<general>` starts from the nearest class whatever its actuator is. (MuJoCo's
//! XML reference, default/motor; details found by trial. `sim/tests/engine/mjcf_referee/laws.rs`
//! compares pairs of classes with MuJoCo.)

use super::super::element::{Element, Fault, Read};
use super::super::value::{BOOL, Keywords, wrong};
use crate::Dynamics;

/// Parameters of dynamics, gain and bias in MuJoCo; nine are used by what is
/// supported.
pub(super) const PARAMETERS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
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

/// MuJoCo's dynamics, gain and bias of one of its shortcuts.
fn forms(element: &str) -> (Dynamics, Form, Form) {
    match element {
        "position" | "velocity" => (Dynamics::None, Form::Fixed, Form::Affine),
        "intvelocity" => (Dynamics::Integrator, Form::Fixed, Form::Affine),
        "damper" => (Dynamics::None, Form::Affine, Form::None),
        "cylinder" => (Dynamics::Filter, Form::Fixed, Form::Affine),
        "muscle" => (Dynamics::Muscle, Form::Muscle, Form::Muscle),
        "dcmotor" => (Dynamics::Current, Form::DcMotor, Form::DcMotor),
        _ => (Dynamics::None, Form::Fixed, Form::None),
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Law {
    /// The element that gave it; empty: none.
    element: String,
    pub(super) dynamics: Dynamics,
    pub(super) gain_form: Form,
    pub(super) bias_form: Form,
    pub(super) dynprm: [f64; PARAMETERS],
    pub(super) gain: [f64; PARAMETERS],
    pub(super) bias: [f64; PARAMETERS],
    pub(super) act_early: bool,
    pub(super) inherit_range: f64,
}

/// A one, then zeros.
fn one() -> [f64; PARAMETERS] {
    std::array::from_fn(|i| f64::from(u8::from(i == 0)))
}

impl Default for Law {
    fn default() -> Self {
        Self {
            element: String::new(),
            dynamics: Dynamics::None,
            gain_form: Form::Fixed,
            bias_form: Form::None,
            dynprm: one(),
            gain: one(),
            bias: [0.0; PARAMETERS],
            act_early: false,
            inherit_range: 0.0,
        }
    }
}

/// The laws of the classes around one, outermost first: of each element the nearest, of
/// `<general>` the nearest of each form.
#[derive(Debug, Clone, Default)]
pub(super) struct Around(Vec<Law>);

impl Around {
    /// The class whose law is `own` has others inside it, which begin with none.
    pub(super) fn enclose(&mut self, own: &mut Law) {
        let own = std::mem::take(own);
        if own.element.is_empty() {
            return;
        }
        let general = own.element == "general";
        self.0
            .retain(|law| law.element != own.element || general && law.gain_form != own.gain_form);
        self.0.push(own);
    }

    /// What an element of this name starts from, in a class whose law is `own`.
    pub(super) fn begin(&self, own: &Law, name: &str) -> Law {
        let (dynamics, gain_form, bias_form) = forms(name);
        let general = name == "general";
        let all = std::iter::once(own).chain(self.0.iter().rev());
        let found = all.filter(|law| !law.element.is_empty()).find(|law| {
            general || law.element == name || law.element == "general" && law.gain_form == gain_form
        });
        let mut law = found.cloned().unwrap_or_default();
        if !general {
            let exact = law.dynamics == Dynamics::FilterExact;
            let anew = found.is_none();
            (law.gain_form, law.bias_form, law.dynamics) = (gain_form, bias_form, dynamics);
            law.act_early = name == "dcmotor";
            match name {
                "position" if exact => law.dynamics = Dynamics::FilterExact,
                "cylinder" | "muscle" => {}
                "dcmotor" if anew => {
                    let none = [0.0; PARAMETERS];
                    (law.gain, law.bias, law.dynprm) = (none, none, none);
                }
                "dcmotor" => {}
                "motor" => (law.gain, law.bias, law.dynprm) = (one(), [0.0; PARAMETERS], one()),
                _ => law.dynprm = one(),
            }
        }
        law.element = name.to_string();
        law
    }
}

impl Law {
    /// True if it has a number of its own in the state.
    pub(super) fn has_state(&self) -> bool {
        match self.gain_form {
            Form::DcMotor => self.dynprm[0] > 0.0,
            _ => self.dynamics != Dynamics::None,
        }
    }

    /// A servo whose stiffness is its gain: MuJoCo reads a positive third bias as a
    /// damping ratio.
    pub(super) fn is_servo(&self) -> bool {
        self.gain[0] == -self.bias[1]
    }

    /// A gain of one number.
    fn gain_alone(&mut self, gain: f64) {
        self.gain = [0.0; PARAMETERS];
        self.gain[0] = gain;
    }

    pub(super) fn read_servo(&mut self, e: &Element) -> Read<()> {
        let mut kp = self.gain[0];
        e.scalar("kp", &mut kp)?;
        self.gain_alone(kp);
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
            if self.dynamics != Dynamics::Integrator {
                let still = timeconst == 0.0;
                self.dynamics = if still { Dynamics::None } else { Dynamics::FilterExact };
            }
        }
        e.scalar("inheritrange", &mut self.inherit_range)?;
        Ok(())
    }

    pub(super) fn read_velocity(&mut self, e: &Element) -> Read<()> {
        let mut kv = self.gain[0];
        e.scalar("kv", &mut kv)?;
        self.gain_alone(kv);
        self.bias = [0.0; PARAMETERS];
        self.bias[2] = -kv;
        Ok(())
    }

    pub(super) fn read_damper(&mut self, e: &Element) -> Read<()> {
        // What starts anew has no damping.
        let mut kv = -self.gain[2];
        e.scalar("kv", &mut kv)?;
        not_negative(e, "kv", kv)?;
        (self.gain, self.bias) = ([0.0; PARAMETERS], [0.0; PARAMETERS]);
        self.gain[2] = -kv;
        Ok(())
    }

    pub(super) fn read_cylinder(&mut self, e: &Element) -> Read<()> {
        e.scalar("timeconst", &mut self.dynprm[0])?;
        e.fill("bias", 3, &mut self.bias[..3])?;
        let mut area = self.gain[0];
        e.scalar("area", &mut area)?;
        let mut diameter = 0.0;
        if e.scalar("diameter", &mut diameter)? && diameter >= 0.0 {
            area = std::f64::consts::FRAC_PI_4 * diameter * diameter;
        }
        self.gain_alone(area);
        Ok(())
    }

    pub(super) fn read_adhesion(&mut self, e: &Element) -> Read<()> {
        let mut gain = self.gain[0];
        e.scalar("gain", &mut gain)?;
        not_negative(e, "gain", gain)?;
        self.gain_alone(gain);
        self.bias = [0.0; PARAMETERS];
        Ok(())
    }

    pub(super) fn read_general(&mut self, e: &Element) -> Read<()> {
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
        e.scalar("inheritrange", &mut self.inherit_range)?;
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
}

fn not_negative(e: &Element, name: &str, value: f64) -> Read<()> {
    match e.attr(name) {
        Some(attr) if value < 0.0 => Err(wrong(attr, "cannot be negative")),
        _ => Ok(()),
    }
}
