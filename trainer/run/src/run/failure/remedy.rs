//! The usual remedy for a cause, with the settings that are in force.

use ostler_learn::config::Config;
use ostler_sim::Model;
use ostler_sim::model::Integrator;

/// One sentence for a cause such as `nan/joint/knee`.
pub fn remedy(cause: &str, model: &Model, config: &Config) -> String {
    let mut parts = cause.splitn(3, '/');
    let (kind, place, name) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let dt = config.sim.dt;
    match (kind, place) {
        (_, "joint") => {
            let of = model.joints.iter().position(|j| j.name == name);
            let now = of.map_or(String::new(), |i| joint(model, i));
            let implicit = match of.is_some_and(|j| is_damped_explicitly(model, j)) {
                true => {
                    " task.option.integrator = \"implicitfast\" (the damping of its actuator is explicit now),"
                }
                false => "",
            };
            format!(
                "joint {name}{now}: a smaller time step (sim.dt, now {dt} s),{implicit} more armature or damping at the joint, a range for it, weaker actuators (gear, ctrlrange), a heavier body; if the motion is wanted, [[sim.limit]] for this joint, or sim.max_speed (now {}) and sim.max_position (now {}) for all",
                config.sim.max_speed, config.sim.max_position
            )
        }
        (_, "body") => format!(
            "body {name}: a smaller time step (sim.dt, now {dt} s), softer contacts (solref), no overlap at the reset; if the motion is wanted, sim.max_speed (now {}) and sim.max_position (now {})",
            config.sim.max_speed, config.sim.max_position
        ),
        ("nan", "observation") if name.is_empty() => "an observation of these environments is not finite: they divide by zero, or overflow".into(),
        ("nan", "reward") if name.is_empty() => "a reward of these environments is not finite: they divide by zero, or overflow".into(),
        (_, "action") => format!(
            "the policy's outputs are not finite: {}, actor.obs_normalization = true, observations with clip; with weights that are finite look at the observations",
            config.runner.algorithm.slower()
        ),
        (_, "control" | "activation") => format!(
            "actuator {name}: limits for its control (ctrlrange, or clip at [[task.action]]), gains that fit the time step ({dt} s)"
        ),
        (_, "native") => format!(
            "native function {name}: what it gives or remembers is not a finite number: look for a division by zero, a root or logarithm of what can be negative, and for inputs that are not finite themselves; what it remembers grows where nothing bounds it"
        ),
        ("bound", "reward") => format!(
            "reward term {name}: a smaller weight, or bounds in its expression, as in clip(x, -10, 10); task.rewards.max_abs is the bound"
        ),
        (_, "reward") => format!(
            "reward term {name}: its expression divides by zero, takes a root or logarithm of what can be negative, or overflows: max(x, 1e-6), clip(x, -10, 10)"
        ),
        (_, "observation" | "critic_observation") => format!(
            "observation {name}: its expression divides by zero, takes a root or logarithm of what can be negative, or overflows: max(x, 1e-6), clip = [-10, 10]"
        ),
        ("python", "raised") => "an environment raised: log.txt in this folder has its traceback".into(),
        ("python", "process") => "a Python ended or hung: run the environment alone to see why; gymnasium.timeout_s is how long a step may take".into(),
        ("start", _) => "the start of an episode cannot be simulated or observed: [[task.reset]] puts bodies into one another or beyond limits, or an observation is no number there (1 / time, log(x) of what begins at 0)".into(),
        ("engine", _) => "the physics engine gave up: log.txt in this folder has its message; please report it with this folder".into(),
        _ => "look at the replay of this folder".into(),
    }
}

/// Whether the integrator takes the damping of a joint's actuator from the state in which a
/// step begins: much of it is unstable then.
fn is_damped_explicitly(model: &Model, joint: usize) -> bool {
    let explicit = matches!(model.options.integrator, Integrator::Euler | Integrator::Rk4);
    let mut own = model.actuators.iter().filter(|a| a.joint() == Some(joint));
    explicit && own.any(|a| a.bias[2] < 0.0)
}

/// Armature and damping as the model has them.
fn joint(model: &Model, i: usize) -> String {
    let j = &model.joints[i];
    format!(" (armature {}, damping {})", j.armature, j.damping)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sim::model::mjcf;

    #[test]
    fn each_cause_names_its_part_and_the_settings_in_force() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../configs/robots/cartpole.xml");
        let model = mjcf::load(&path).unwrap();
        let mut config = Config::default();
        config.sim.dt = 0.02;
        for (cause, words) in [
            ("nan/joint/hinge", ["joint hinge", "now 0.02 s"]),
            ("speed/joint/slider", ["armature", "sim.max_speed (now 1000)"]),
            ("inf/reward/forward", ["reward term forward", "zero"]),
            ("nan/action/slide", ["ppo.learning_rate", "clip"]),
            ("start/unusable", ["task.reset", "1 / time"]),
        ] {
            let text = remedy(cause, &model, &config);
            for word in words {
                assert!(text.contains(word), "{cause}: {text}");
            }
        }
    }

    /// A published arm's fingers fly apart under a position servo's explicit damping.
    #[test]
    fn explicit_damping_of_an_actuator_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("finger.xml");
        for (integrator, kv, named) in [
            ("Euler", "2", true),
            ("RK4", "2", true),
            ("implicitfast", "2", false),
            ("Euler", "0", false),
        ] {
            let text = format!(
                r#"<mujoco><option integrator="{integrator}"/><worldbody><body><joint name="j"/><geom size="0.01"/></body></worldbody>
                <actuator><position joint="j" kp="40" kv="{kv}"/></actuator></mujoco>"#
            );
            std::fs::write(&file, text).unwrap();
            let model = mjcf::load(&file).unwrap();
            let text = remedy("speed/joint/j", &model, &Config::default());
            assert_eq!(text.contains("implicitfast"), named, "{integrator}: {text}");
        }
    }
}
