//! `<option>` and its flags.

use super::element::{Element, Fault, Read};
use super::value::Keywords;
use crate::{Cone, Integrator, Options, Solver};

const INTEGRATOR: Keywords<Integrator> = &[
    ("Euler", Integrator::Euler),
    ("RK4", Integrator::Rk4),
    ("implicit", Integrator::Implicit),
    ("implicitfast", Integrator::ImplicitFast),
];
const CONE: Keywords<Cone> = &[("pyramidal", Cone::Pyramidal), ("elliptic", Cone::Elliptic)];
const SOLVER: Keywords<Solver> =
    &[("PGS", Solver::Pgs), ("CG", Solver::Cg), ("Newton", Solver::Newton)];
const ENABLE: Keywords<bool> = &[("enable", true), ("disable", false)];

/// Flags that are on unless the file says otherwise.
const ON: &str = "constraint equality frictionloss limit contact spring damper gravity clampctrl \
                  warmstart filterparent actuation refsafe sensor midphase eulerdamp autoreset \
                  nativeccd island multiccd";
/// Flags that are off unless the file says otherwise and may be set: they only
/// report, or change nothing but rounding.
const OFF: &str = "energy fwdinv invdiscrete diagexact";
/// Flags that change the dynamics in ways that are not supported.
const UNSUPPORTED: &str = "override speculative ipc";

impl Default for Options {
    /// MuJoCo's own.
    fn default() -> Self {
        Self {
            timestep: 0.002,
            gravity: [0.0, 0.0, -9.81],
            density: 0.0,
            viscosity: 0.0,
            wind: [0.0; 3],
            magnetic: [0.0, -0.5, 0.0],
            impratio: 1.0,
            integrator: Integrator::Euler,
            cone: Cone::Pyramidal,
            solver: Solver::Newton,
            iterations: 100,
            stops_early: false,
            tolerance: 1e-8,
            ls_iterations: 50,
            ls_tolerance: 0.01,
            ccd_iterations: 35,
            ccd_tolerance: 1e-6,
            noslip_iterations: 0,
            noslip_tolerance: 1e-6,
            disabled_actuators: 0,
            flags: Vec::new(),
        }
    }
}

/// Reads one `<option>`; later ones overwrite earlier ones.
pub(super) fn read(o: &mut Options, e: &Element) -> Read<()> {
    e.scalar("timestep", &mut o.timestep)?;
    e.array("gravity", &mut o.gravity)?;
    e.scalar("density", &mut o.density)?;
    e.scalar("viscosity", &mut o.viscosity)?;
    e.array("wind", &mut o.wind)?;
    e.array("magnetic", &mut o.magnetic)?;
    e.scalar("impratio", &mut o.impratio)?;
    e.keyword("integrator", INTEGRATOR, &mut o.integrator)?;
    e.keyword("cone", CONE, &mut o.cone)?;
    e.keyword("solver", SOLVER, &mut o.solver)?;
    e.unsigned("iterations", &mut o.iterations)?;
    e.scalar("tolerance", &mut o.tolerance)?;
    e.unsigned("ls_iterations", &mut o.ls_iterations)?;
    e.scalar("ls_tolerance", &mut o.ls_tolerance)?;
    e.unsigned("ccd_iterations", &mut o.ccd_iterations)?;
    e.scalar("ccd_tolerance", &mut o.ccd_tolerance)?;
    e.unsigned("noslip_iterations", &mut o.noslip_iterations)?;
    e.scalar("noslip_tolerance", &mut o.noslip_tolerance)?;
    if let Some(groups) = e.numbers("actuatorgroupdisable")? {
        for group in groups {
            if group.fract() != 0.0 || !(0.0..=30.0).contains(&group) {
                let why = format!("actuatorgroupdisable: groups are 0 .. 30, not {group}");
                return Err(at_value(e, "actuatorgroupdisable", why));
            }
            o.disabled_actuators |= 1 << group as u32;
        }
    }
    positive(e, "timestep", o.timestep, "the physics needs time to pass, for example 0.002")?;
    positive(e, "impratio", o.impratio, "MuJoCo's default is 1")?;
    for (name, value) in [("density", o.density), ("viscosity", o.viscosity)] {
        if value < 0.0 {
            return Err(at_value(e, name, format!("{name} {value} cannot be negative")));
        }
    }
    for flags in e.children_named("flag") {
        // Bodies never sleep: see the schema.
        for attr in flags.attrs.iter().filter(|a| a.name != "sleep") {
            let name = attr.name.as_str();
            let listed = |list: &str| list.split_ascii_whitespace().any(|f| f == name);
            let default = listed(ON);
            let mut value = default;
            flags.keyword(name, ENABLE, &mut value)?;
            if value && listed(UNSUPPORTED) {
                return Err(Fault::new(
                    attr.at,
                    format!("flag {name}=\"enable\" is not supported; leave it out"),
                ));
            }
            o.flags.retain(|(f, _)| f != name);
            if value != default {
                o.flags.push((name.to_string(), value));
            }
        }
    }
    Ok(())
}

/// All names of flags, for the schema.
pub(super) const FLAGS: [&str; 3] = [ON, OFF, UNSUPPORTED];

fn positive(e: &Element, name: &str, value: f64, hint: &str) -> Read<()> {
    if value > 0.0 {
        return Ok(());
    }
    Err(at_value(e, name, format!("{name} {value} must be positive: {hint}")))
}

fn at_value(e: &Element, name: &str, message: String) -> Fault {
    Fault::new(e.attr(name).map_or(e.at, |a| a.value_at(0)), message)
}
