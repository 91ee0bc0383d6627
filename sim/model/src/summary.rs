//! A model in words and tables, for `ostler check`.

use super::{
    Actuator, Dynamics, EffortLimit, Joint, JointKind, Model, Motor, MotorLaw, Muscle, Transmission,
};
use std::fmt::Write as _;

impl JointKind {
    /// Unit of the joint's positions: `[m]`, `[rad]`, or the units of a free or ball
    /// joint's numbers are.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Free => "[m, quaternion]",
            Self::Ball => "[quaternion]",
            Self::Slide => "[m]",
            Self::Hinge => "[rad]",
        }
    }

    /// Unit of a position that is one number: none of others.
    pub fn scalar_unit(self) -> Option<&'static str> {
        match self {
            Self::Slide => Some("m"),
            Self::Hinge => Some("rad"),
            Self::Free | Self::Ball => None,
        }
    }

    /// Unit of the joint's velocities.
    pub fn velocity_unit(self) -> &'static str {
        match self {
            Self::Free => "[m/s, rad/s]",
            Self::Slide => "[m/s]",
            Self::Ball | Self::Hinge => "[rad/s]",
        }
    }

    /// Unit of an actuator's force or torque on the joint.
    pub fn force_unit(self) -> &'static str {
        match self {
            Self::Free => "[N, N m]",
            Self::Slide => "[N]",
            Self::Ball | Self::Hinge => "[N m]",
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Ball => "ball",
            Self::Slide => "slide",
            Self::Hinge => "hinge",
        }
    }
}

impl Model {
    /// Sum of the bodies' masses (kg).
    pub fn total_mass(&self) -> f64 {
        self.bodies.iter().map(|b| b.mass).sum()
    }

    /// Transmission of an actuator, in words: `joint knee`.
    pub fn target(&self, actuator: &Actuator) -> String {
        match actuator.transmission {
            Transmission::Joint(j) | Transmission::JointInParent(j) => {
                format!("joint {}", self.joints[j].name)
            }
            Transmission::Tendon(t) => format!("tendon {}", self.tendons[t].name),
            Transmission::Site { site, .. } => format!("site {}", self.sites[site].name),
            Transmission::SliderCrank { crank, .. } => format!("crank {}", self.sites[crank].name),
            Transmission::Body(b) => format!("body {}", self.bodies[b].name),
        }
    }

    /// The model for human readers: sizes, bodies, joints, actuators, keyframes and the ignored
    /// features, one line each.
    pub fn summary(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_summary(&mut out);
        out
    }

    fn write_summary(&self, out: &mut String) -> std::fmt::Result {
        let o = &self.options;
        writeln!(
            out,
            "{}: {}, {}, {}, {}; nq {}, nv {}, nu {}",
            self.name,
            count(self.bodies.len() - 1, "body", "bodies"),
            count(self.joints.len(), "joint", "joints"),
            count(self.geoms.len(), "geom", "geoms"),
            count(self.nu(), "actuator", "actuators"),
            self.nq,
            self.nv,
            self.nu(),
        )?;
        let [x, y, z] = o.gravity;
        writeln!(
            out,
            "mass {} kg, time step {} s, {:?} integrator, gravity {x} {y} {z} m/s^2",
            short(self.total_mass()),
            o.timestep,
            o.integrator,
        )?;

        writeln!(out, "\nbodies")?;
        let width = width(self.bodies.iter().map(|b| b.name.as_str()));
        for b in self.bodies.iter().skip(1) {
            let parent = &self.bodies[b.parent].name;
            let how = if b.joints.is_empty() { "fixed to" } else { "moves on" };
            writeln!(out, "  {:width$}  {:>8} kg  {how} {parent}", b.name, short(b.mass))?;
        }

        let width = self::width(self.joints.iter().map(|j| j.name.as_str()));
        if !self.joints.is_empty() {
            writeln!(out, "\njoints")?;
        }
        for j in &self.joints {
            writeln!(
                out,
                "  {:width$}  {:5}  {}  qpos {}  {}",
                j.name,
                j.kind.word(),
                j.range_text(),
                span(j.qpos_adr, j.kind.nq()),
                j.kind.unit(),
            )?;
        }

        let width = self::width(self.actuators.iter().map(|a| a.name.as_str()));
        if !self.actuators.is_empty() {
            writeln!(out, "\nactuators")?;
        }
        for a in &self.actuators {
            let unit = a.joint().map_or("", |j| self.joints[j].kind.force_unit());
            writeln!(
                out,
                "  {:width$}  {} on {}: {}",
                a.name,
                a.element,
                self.target(a),
                a.law(unit)
            )?;
        }

        let parts = [
            (self.tendons.len(), "tendon", "tendons"),
            (self.equalities.len(), "equality", "equalities"),
            (self.meshes.len(), "mesh", "meshes"),
            (self.hfields.len(), "height field", "height fields"),
        ];
        for (n, one, many) in parts.into_iter().filter(|(n, ..)| *n > 0) {
            writeln!(out, "\n{}", count(n, one, many))?;
        }
        if !self.keyframes.is_empty() {
            let names: Vec<_> = self.keyframes.iter().map(|k| k.name.as_str()).collect();
            writeln!(out, "\nkeyframes: {}", names.join(", "))?;
        }
        if !self.added.is_empty() {
            writeln!(out, "\nadded by the task, not in the file")?;
            for line in &self.added {
                writeln!(out, "  {line}")?;
            }
        }
        if !self.ignored.is_empty() {
            writeln!(out, "\nignored, without effect on the dynamics")?;
            for line in self.ignored_lines() {
                writeln!(out, "  {line}")?;
            }
        }
        Ok(())
    }
}

impl Joint {
    fn range_text(&self) -> String {
        match self.range {
            Some([low, high]) => format!("{:>7} .. {:<7}", short(low), short(high)),
            None => format!("{:18}", "not limited"),
        }
    }
}

impl Actuator {
    /// The force law in words; `unit` is the force's, in brackets.
    pub fn law(&self, unit: &str) -> String {
        let mut text = String::new();
        if let Some(motor) = &self.motor {
            motor.tell(&mut text, unit);
            if motor.law != MotorLaw::MuJoCo {
                return text;
            }
            text.push_str("; ");
        }
        let polynomial = |c: [f64; 3]| {
            let terms: Vec<_> = c
                .into_iter()
                .zip(["", " length", " velocity"])
                .filter(|(c, _)| *c != 0.0)
                .map(|(c, of)| format!("{}{of}", short(c)))
                .collect();
            if terms.is_empty() { "0".to_string() } else { terms.join(" + ") }
        };
        let input = match self.dynamics {
            Dynamics::None => "control",
            Dynamics::Integrator => "integral of control",
            Dynamics::Filter | Dynamics::FilterExact => "filtered control",
            Dynamics::Muscle => "muscle activation",
            Dynamics::Current => "control, as far as its current follows,",
        };
        let [kp, ..] = self.gain;
        let [_, length, kd] = self.bias;
        if let Some(muscle) = &self.muscle {
            let _ = write!(text, "{}", muscle.words());
        } else if kp != 0.0 && self.gain == [kp, 0.0, 0.0] && self.bias == [0.0, -kp, kd] {
            let of = if self.joint().is_some() { "position" } else { "length" };
            let _ = write!(text, "{} ({input} - {of}) - {} velocity", short(-length), short(-kd));
        } else {
            let _ = write!(text, "({}) {input}", polynomial(self.gain));
            if self.bias != [0.0; 3] {
                let _ = write!(text, " + {}", polynomial(self.bias));
            }
        }
        if let Some([low, high]) = self.forcerange {
            let _ = write!(text, ", within {} .. {}", short(low), short(high));
        }
        // Those of a site or a ball joint have several.
        let last = self.gear.iter().rposition(|g| *g != 0.0).unwrap_or(0);
        let gear: Vec<String> = self.gear[..=last].iter().map(|g| short(*g)).collect();
        let _ = write!(text, ", gear {}", gear.join(" "));
        if !unit.is_empty() {
            let _ = write!(text, " -> {unit}");
        }
        match self.ctrlrange {
            Some([low, high]) => {
                let _ = write!(text, "; control {} .. {}", short(low), short(high));
            }
            None => text.push_str("; control not limited"),
        }
        text
    }
}

impl Muscle {
    /// How strong it is, and over which lengths.
    fn words(&self) -> String {
        let [shortest, longest] = self.lengthrange.map(short);
        // MuJoCo, "Muscle actuators": a negative force stands for scale / acc0.
        let force = |g: &[f64; 9]| short(if g[2] < 0.0 { g[3] / self.acc0 } else { g[2] });
        let strength = match (&self.gain, &self.bias) {
            (Some(gain), Some(_)) => format!("{} times activation, and passive", force(gain)),
            (Some(gain), None) => format!("{} times activation", force(gain)),
            (None, Some(bias)) => format!("passive, of {}", force(bias)),
            (None, None) => "no force".into(),
        };
        format!("muscle: peak force {strength}, over lengths {shortest} .. {longest}")
    }
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Columns for names; longer ones stick out. (Text formatted wider than 65535 panics.)
fn width<'a>(names: impl Iterator<Item = &'a str>) -> usize {
    const MOST: usize = 80;
    let longest = names.map(|n| n.chars().count()).max();
    longest.unwrap_or(0).min(MOST)
}

fn span(start: usize, n: usize) -> String {
    if n == 1 { format!("{start}") } else { format!("{start}..{}", start + n - 1) }
}

impl Motor {
    /// Its law and delay.
    fn tell(&self, text: &mut String, unit: &str) {
        match &self.law {
            MotorLaw::MuJoCo => {}
            MotorLaw::Pd { stiffness, damping, limit } => {
                let [kp, kd] = [stiffness, damping].map(|k| short(*k));
                let _ = write!(text, "{kp} (control - position) - {kd} velocity");
                limit.tell(text);
                let _ = write!(text, " -> {unit}");
            }
            MotorLaw::Network { network, limit } => {
                let _ = write!(text, "network {network} of errors and velocities");
                limit.tell(text);
                let _ = write!(text, " -> {unit}");
            }
        }
        let steps = match [self.delay.least, self.delay.most] {
            [0, 0] => return,
            [a, b] if a == b => a.to_string(),
            [a, b] => format!("{a} to {b}"),
        };
        if self.law != MotorLaw::MuJoCo {
            text.push_str("; ");
        }
        let _ = write!(text, "delay {steps} physics steps{}", self.delay.drawn());
    }
}

impl EffortLimit {
    fn tell(&self, text: &mut String) {
        if self.effort.is_finite() {
            let _ = write!(text, ", within {} .. {}", short(-self.effort), short(self.effort));
        }
        if let Some([stall, speed]) = self.fall {
            let _ = write!(text, ", {} at rest and 0 at a speed of {}", short(stall), short(speed));
        }
    }
}

/// Four significant digits, without trailing zeros.
pub fn short(x: f64) -> String {
    if x == 0.0 || !x.is_finite() {
        return format!("{}", x + 0.0);
    }
    let digits = 3 - x.abs().log10().floor() as i32;
    if !(0..=9).contains(&digits) {
        return format!("{x:.3e}");
    }
    let text = format!("{x:.*}", digits as usize);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn names_of_any_length_are_shown() {
        let long = "x".repeat(70_000);
        let text = format!(
            "<mujoco><worldbody><body name=\"{long}\"><joint name=\"{long}\"/><geom size=\"1\"/></body></worldbody></mujoco>"
        );
        let model = crate::mjcf::parse(Path::new("r.xml"), text).unwrap();
        assert!(model.summary().contains(&long));
    }

    #[test]
    fn numbers_are_short() {
        for (x, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (15.82001, "15.82"),
            (-2.6179938, "-2.618"),
            (100.0, "100"),
            (0.5, "0.5"),
            (1e-9, "1.000e-9"),
            (123456.0, "1.235e5"),
        ] {
            assert_eq!(short(x), text);
        }
    }

    #[test]
    fn summary_names_every_part_with_its_units() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/robots/cartpole.xml");
        let text = crate::mjcf::load(&path).unwrap().summary();
        for part in [
            "cartpole: 2 bodies, 2 joints, 3 geoms, 1 actuator; nq 2, nv 2, nu 1",
            "mass 15.49 kg, time step 0.02 s, Rk4 integrator",
            "moves on cart",
            "slider  slide       -1 .. 1        qpos 0  [m]",
            "-1.571 .. 1.571    qpos 1  [rad]",
            "slide  motor on joint slider: (1) control, gear 100 -> [N]; control -3 .. 3",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains("ignored"), "{text}");
    }

    /// A rotor's thrust and torque at a site; a joint's first number alone.
    #[test]
    fn a_gear_has_as_many_numbers_as_it_needs() {
        let text = r#"<mujoco><worldbody><body><freejoint/><geom size=".1"/><site name="s"/></body>
            </worldbody><actuator><motor name="up" site="s" gear="0 0 1"/>
            <motor name="spin" site="s" gear="0 0 0 0 0 -0.01"/></actuator></mujoco>"#;
        let model = crate::mjcf::parse(Path::new("a.xml"), text.to_string()).unwrap();
        let said = model.summary();
        for gear in ["control, gear 0 0 1;", "control, gear 0 0 0 0 0 -0.01;"] {
            assert!(said.contains(gear), "{said}");
        }
    }

    #[test]
    fn repeated_ignored_entries_are_grouped() {
        let text = "<mujoco><worldbody><light/><light/><light/><light/></worldbody></mujoco>";
        let model = crate::mjcf::parse(Path::new("a.xml"), text.to_string()).unwrap();
        let text = model.summary();
        let line = "<light> (4) at a.xml:1:20, a.xml:1:28, a.xml:1:36 and 1 more: only for drawing";
        assert!(text.contains(line), "{text}");
    }
}
