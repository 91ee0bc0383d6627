//! `[[task.contact]]` and `[task.option]`, written into the model.

use super::read::{Names, Parts};
use super::team::Team;
use crate::config::{
    ConeWord, ConfigError, ContactTerm, IntegratorWord, Iterations, OneOrMany, OptionTable,
    TaskConfig,
};
use ostler_lang::expr::Definitions;
use ostler_model::{Cone, Geom, Integrator, Model, Options, Solver};

/// Changes `model` as `cfg` says.
///
/// # Errors
/// A mistake in a term.
pub(super) fn apply(model: &mut Model, cfg: &TaskConfig, team: &Team) -> Result<(), ConfigError> {
    options(model, &cfg.option)?;
    if cfg.contact.is_empty() {
        return Ok(());
    }
    let before = model.clone();
    let defined = Definitions::new(&before, cfg, team.names())?;
    let (names, geoms) = (Names { defined: &defined, team, agent: None }, Parts::geoms(&before));
    for (t, term) in cfg.contact.iter().enumerate() {
        let path = format!("task.contact[{t}]");
        let key = format!("{path}.geoms");
        for g in names.parts(&term.geoms, &geoms, &key)?.all {
            change(&mut model.geoms[g], term, &path)?;
            if !model.changed_geoms.contains(&g) {
                model.changed_geoms.push(g);
            }
        }
    }
    Ok(())
}

/// Flags of the search for contacts of convex shapes.
const CONVEX: [&str; 2] = ["nativeccd", "multiccd"];

fn options(model: &mut Model, option: &OptionTable) -> Result<(), ConfigError> {
    let own = &mut model.options;
    if let Some(word) = option.integrator {
        own.integrator = match word {
            IntegratorWord::Euler => Integrator::Euler,
            IntegratorWord::Rk4 => Integrator::Rk4,
            IntegratorWord::Implicit => Integrator::Implicit,
            IntegratorWord::ImplicitFast => Integrator::ImplicitFast,
        };
    }
    if let Some(word) = option.cone {
        own.cone = match word {
            ConeWord::Pyramidal => Cone::Pyramidal,
            ConeWord::Elliptic => Cone::Elliptic,
        };
    }
    if let Some(ratio) = option.impratio {
        if !(ratio.is_finite() && ratio > 0.0) {
            let message = format!("{ratio} is no ratio");
            return Err(ConfigError::new("task.option.impratio", message).help("above 0, finite"));
        }
        own.impratio = ratio;
    }
    if let Some(asked) = option.iterations {
        iterations(own, asked)?;
    }
    own.noslip_iterations = option.noslip_iterations.unwrap_or(own.noslip_iterations);
    match option.nativeccd {
        None => {}
        Some(true) => own.flags.retain(|(f, _)| !CONVEX.contains(&f.as_str())),
        Some(false) => {
            let message = "the engines have MuJoCo's own search alone";
            let key = "task.option.nativeccd";
            return Err(ConfigError::new(key, message).help("true, or leave the key out"));
        }
    }
    Ok(())
}

/// The solver stops after as many as are asked for.
fn iterations(own: &mut Options, asked: Iterations) -> Result<(), ConfigError> {
    let refused = |message: String, help: &str| {
        Err(ConfigError::new("task.option.iterations", message).help(help))
    };
    match asked {
        Iterations::N(0) => {
            return refused("0 iterations solve nothing".into(), "1 or more, or \"file\"");
        }
        Iterations::N(n) => own.iterations = n,
        Iterations::File(_) if own.solver != Solver::Newton => {
            let solver = if own.solver == Solver::Cg { "CG" } else { "PGS" };
            let message = format!(
                "the robot's file has {} iterations of solver=\"{solver}\", the engine has MuJoCo's \
                 Newton alone",
                own.iterations
            );
            return refused(message, "a number of Newton's iterations, or leave the key out");
        }
        Iterations::File(_) if own.iterations == 0 => {
            return refused("the robot's file has iterations=\"0\"".into(), "1 or more");
        }
        Iterations::File(_) => {}
    }
    if own.flags.iter().any(|(flag, on)| flag == "warmstart" && !on) {
        let message = "the robot's file has the flag warmstart=\"disable\", and each time step \
                       begins with the acceleration of the last one here";
        return refused(message.into(), "leave the flag out, or the key");
    }
    own.stops_early = true;
    Ok(())
}

fn change(geom: &mut Geom, term: &ContactTerm, path: &str) -> Result<(), ConfigError> {
    let wrong = |key: &str, message: String, help: &str| {
        Err(ConfigError::new(format!("{path}.{key}"), message).help(help))
    };
    if let Some(condim) = term.condim {
        if ![1, 3, 4, 6].contains(&condim) {
            return wrong("condim", format!("there is no {condim}"), "1, 3, 4 or 6");
        }
        geom.condim = condim;
    }
    let help = "one number (sliding), or three (sliding, torsional, rolling), 0 or more";
    match &term.friction {
        None => {}
        Some(OneOrMany::One(slide)) => geom.friction[0] = *slide,
        Some(OneOrMany::Many(all)) if (1..=3).contains(&all.len()) => {
            geom.friction[..all.len()].copy_from_slice(all);
        }
        Some(OneOrMany::Many(all)) => {
            return wrong("friction", format!("{} numbers", all.len()), help);
        }
        Some(OneOrMany::Named(_)) => {
            return wrong("friction", "takes no patterns of names".into(), help);
        }
    }
    if let Some(bad) = geom.friction.iter().find(|f| !(f.is_finite() && **f >= 0.0)) {
        return wrong("friction", format!("{bad} is no friction"), help);
    }
    geom.priority = term.priority.unwrap_or(geom.priority);
    geom.contype = term.contype.unwrap_or(geom.contype);
    geom.conaffinity = term.conaffinity.unwrap_or(geom.conaffinity);
    if let Some(solref) = term.solref {
        let finite = solref.iter().all(|x| x.is_finite());
        if !finite || (solref[0] > 0.0) != (solref[1] > 0.0) {
            let help = "[0.02, 1.0]: seconds and a damping ratio; or both negative";
            return wrong("solref", format!("{solref:?}"), help);
        }
        geom.solref = solref;
    }
    if let Some(solimp) = &term.solimp {
        let finite = solimp.iter().all(|x| x.is_finite());
        if !finite || !(1..=5).contains(&solimp.len()) {
            let help = "up to five finite numbers, such as [0.9, 0.95, 0.001]";
            return wrong("solimp", format!("{solimp:?}"), help);
        }
        geom.solimp[..solimp.len()].copy_from_slice(solimp);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_engine::physics::native::lower::{LowerOptions, lower};
    use ostler_model::mjcf;

    #[test]
    fn iterations_are_the_files_or_a_number() {
        use crate::config::FileWord;
        let file = Some(Iterations::File(FileWord::File));
        let asked = |attributes: &str, iterations| {
            let text = format!("<mujoco><option {attributes}</option><worldbody/></mujoco>");
            let mut model = mjcf::parse("box.xml".as_ref(), text).unwrap();
            let option = OptionTable { iterations, ..OptionTable::default() };
            let done = options(&mut model, &option).map_err(|e| e.to_string());
            done.map(|()| (model.options.stops_early, model.options.iterations))
        };
        assert_eq!(asked("iterations='3'>", None), Ok((false, 3)));
        assert_eq!(asked("iterations='3'>", file), Ok((true, 3)));
        assert_eq!(asked(">", file), Ok((true, 100)));
        assert_eq!(asked("iterations='3' solver='CG'>", Some(Iterations::N(2))), Ok((true, 2)));
        for (attributes, iterations, why) in [
            ("iterations='3' solver='CG'>", file, "solver=\"CG\""),
            ("iterations='0'>", file, "iterations=\"0\""),
            (">", Some(Iterations::N(0)), "0 iterations"),
            ("><flag warmstart='disable'/>", file, "warmstart"),
        ] {
            let error = asked(attributes, iterations).unwrap_err();
            assert!(error.contains("task.option.iterations") && error.contains(why), "{error}");
        }
    }

    #[test]
    fn options_that_the_engines_lack_are_done_without() {
        let text = r#"<mujoco><option noslip_iterations="5"><flag nativeccd="disable"/></option>
            <worldbody><geom name="can" type="cylinder" size="1 1"/>
            <body><freejoint/><geom name="egg" type="ellipsoid" size="1 1 2"/></body></worldbody></mujoco>"#;
        let mut model = mjcf::parse("egg.xml".as_ref(), text.into()).unwrap();
        let refused = |model: &Model| lower(model, &LowerOptions::default()).unwrap_err();
        assert!(refused(&model).to_string().contains("nativeccd"));
        let mut option = OptionTable { nativeccd: Some(true), ..OptionTable::default() };
        for (noslip_iterations, sweeps) in [(None, 5), (Some(3), 3), (Some(0), 0)] {
            option.noslip_iterations = noslip_iterations;
            options(&mut model, &option).unwrap();
            assert_eq!(lower(&model, &LowerOptions::default()).unwrap().nslip, sweeps);
        }
        let wrong = OptionTable { nativeccd: Some(false), ..OptionTable::default() };
        assert!(options(&mut model, &wrong).is_err());
    }
}
