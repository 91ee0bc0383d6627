//! Where the constraint solver stops.

use crate::kernels::Solver;
use ostler_model::{Integrator, Model, Options, Solver as Asked};

/// How constraints are solved: the few time steps that need more iterations are counted
/// ([`super::NativePhysics::unsolved`]); smaller improvements of the scaled cost are rounding
/// errors in single precision.
pub(super) const SOLVER: Solver = Solver { iterations: 12, trials: 0, tolerance: 1e-8 };

/// How the constraints of a model are solved: to the end, or as its `<option>` says.
pub fn solver(options: &Options) -> Solver {
    // Kernels count one further.
    let whole = |n: u32| i32::try_from(n).unwrap_or(i32::MAX).min(i32::MAX - 1);
    match options.stops_early {
        false => SOLVER,
        true => Solver {
            iterations: whole(options.iterations),
            trials: whole(options.ls_iterations.max(1)),
            tolerance: options.tolerance.max(SOLVER.tolerance),
        },
    }
}

/// Newton's method is rarely done with fewer iterations than this, conjugate gradients with fewer
/// than that.
const FEW: u32 = 8;
const FEW_OF_CG: u32 = 30;

/// With a larger tolerance improvements stop that can be seen in single precision.
const COARSE: f64 = 1e-6;

/// With fewer trials of a step's length MuJoCo's are another's.
const TRIALS: u32 = 16;

/// A note on where MuJoCo's solver stops elsewhere than this one.
pub(super) fn solver_note(model: &Model) -> Option<String> {
    let o = &model.options;
    if o.stops_early {
        return stopped(model);
    }
    let few = o.iterations;
    let least = match o.solver {
        Asked::Newton => FEW,
        Asked::Cg => FEW_OF_CG,
        // Comes near the end, and rarely to it.
        Asked::Pgs => u32::MAX,
    };
    let searches = o.solver != Asked::Pgs;
    let early = [
        (o.solver == Asked::Pgs).then(|| "solver=\"PGS\"".to_string()),
        (o.solver == Asked::Cg && few < least).then(|| "solver=\"CG\"".to_string()),
        (few < least).then(|| format!("iterations=\"{few}\"")),
        (o.tolerance > COARSE).then(|| format!("tolerance=\"{}\"", o.tolerance)),
        (searches && o.ls_iterations < TRIALS)
            .then(|| format!("ls_iterations=\"{}\"", o.ls_iterations)),
    ];
    let early: Vec<String> = early.into_iter().flatten().collect();
    if early.is_empty() {
        return None;
    }
    let follows = match o.solver {
        Asked::Newton => "task.option.iterations = \"file\" follows it".to_string(),
        Asked::Cg | Asked::Pgs if few < FEW => format!(
            "the engine has MuJoCo's Newton alone, which task.option.iterations = {} stops earlier",
            few.max(1)
        ),
        Asked::Cg | Asked::Pgs => "the engine has MuJoCo's Newton alone".to_string(),
    };
    Some(format!(
        "the file's option {} is not followed: constraints are solved to the end here, where MuJoCo \
         stops before it. Contacts may differ from MuJoCo's with this file; \
         `ostler compare --as-written` shows by how much, and {follows}",
        early.join(" ")
    ))
}

/// A note on a solver that stops early, where MuJoCo's stops elsewhere.
fn stopped(model: &Model) -> Option<String> {
    let root = |mut body: usize| {
        while model.bodies[body].parent != 0 {
            body = model.bodies[body].parent;
        }
        body
    };
    let mut roots: Vec<usize> = model.joints.iter().map(|joint| root(joint.body)).collect();
    roots.sort_unstable();
    roots.dedup();
    let trials = model.options.ls_iterations;
    let why = [
        (model.options.integrator == Integrator::Rk4)
            .then(|| "a stage of RK4 begins with the stage before".to_string()),
        (trials < TRIALS).then(|| format!("ls_iterations=\"{trials}\" are few")),
        (roots.len() > 1).then(|| {
            format!("the file has {} robots or objects, which are solved together", roots.len())
        }),
    ];
    let why: Vec<String> = why.into_iter().flatten().collect();
    (!why.is_empty()).then(|| {
        format!(
            "a solver that stops early (task.option.iterations) may stop elsewhere than MuJoCo's: \
             {}; `ostler compare --as-written` shows by how much, and without the key constraints \
             are solved to the end",
            why.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::solver_note;
    use ostler_model::mjcf::parse;

    #[test]
    fn where_mujoco_stops_elsewhere_is_noted_with_the_reason() {
        let note = |option: &str, bodies: usize, early: bool| {
            let bodies: String = (0..bodies)
                .map(|k| {
                    format!(
                        "<body name=\"b{k}\"><freejoint/><geom size=\".1\"/>\
                         <body><joint/><geom size=\".1\"/></body></body>"
                    )
                })
                .collect();
            let text =
                format!("<mujoco><option {option}/><worldbody>{bodies}</worldbody></mujoco>");
            let mut model = parse("few.xml".as_ref(), text).unwrap();
            model.options.stops_early = early;
            solver_note(&model)
        };
        assert_eq!(note("", 1, false), None);
        assert!(note("iterations=\"2\"", 1, false).unwrap().contains("is not followed"));
        assert_eq!(note("iterations=\"2\"", 1, true), None);
        for (option, told) in [
            ("tolerance=\"1e-8\" ls_iterations=\"16\" iterations=\"8\"", ""),
            ("solver=\"CG\" iterations=\"30\" tolerance=\"1e-10\"", ""),
            ("tolerance=\"0.001\" ls_iterations=\"5\"", "tolerance=\"0.001\" ls_iterations=\"5\""),
            ("solver=\"CG\" iterations=\"10\"", "solver=\"CG\" iterations=\"10\""),
            // It has no search along a line.
            ("solver=\"PGS\" ls_iterations=\"5\"", "solver=\"PGS\" iterations=\"100\""),
        ] {
            let said = note(option, 1, false).unwrap_or_default();
            let told = if told.is_empty() { "" } else { &format!("option {told} is not") };
            assert_eq!((said.is_empty(), said.contains(told)), (told.is_empty(), true), "{said}");
        }
        let said = note("iterations=\"2\" integrator=\"RK4\" ls_iterations=\"4\"", 2, true);
        let said = said.unwrap();
        for part in ["stage of RK4", "ls_iterations=\"4\"", "2 robots or objects"] {
            assert!(said.contains(part), "{said}");
        }
        assert!(!note("integrator=\"RK4\"", 1, true).unwrap().contains("ls_iterations"));
    }
}
