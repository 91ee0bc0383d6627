//! The kernels' text in one piece.

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../../kernels/", $name)))),*]
    };
}

/// Every file that `kernel.cuh` and `env/all.cuh` reach.
const FILES: [(&str, &str); 64] = files! {
    "actuator.cuh" "tendon.cuh" "wrap.cuh" "api.h" "cone.cuh" "contact.cuh" "fluid.cuh"
    "forces.cuh" "general.cuh" "hooks.cuh" "implicit.cuh" "integrate.cuh"
    "kernel.cuh" "lanes.cuh" "meter.cuh" "newton.cuh" "planar.cuh" "rows.cuh" "scalar.cuh" "smooth.cuh"
    "soft.cuh" "space.cuh" "state.h" "step.cuh" "tables.cuh" "tree.cuh" "work.cuh" "collide/all.cuh"
    "collide/box_box.cuh" "collide/capsule_box.cuh" "collide/convex.cuh"
    "collide/elsewhere.cuh" "collide/epa.cuh" "collide/feature.cuh" "collide/field.cuh"
    "collide/gjk.cuh" "collide/pair.cuh" "collide/patch.cuh" "collide/plane.cuh"
    "collide/primitives.cuh" "collide/round.cuh" "collide/simplex.cuh" "collide/solid.cuh"
    "collide/support.cuh" "collide/vector.cuh" "env/act.cuh" "env/all.cuh" "env/args.cuh"
    "env/block.cuh" "env/command.cuh" "env/entries.cuh" "env/env.cuh" "env/flag.cuh"
    "env/frames.cuh" "env/history.cuh" "env/judge.cuh" "env/math.cuh" "env/observe.cuh"
    "env/ops.cuh" "env/phases.cuh" "env/place.cuh" "env/rng.cuh" "env/start.cuh" "env/terms.cuh"
};

/// A file with the files it includes in their places, each once.
pub(super) fn expand(name: &str) -> String {
    let mut seen = Vec::new();
    let mut text = String::new();
    append(name, "", &mut seen, &mut text);
    text
}

fn append(name: &str, folder: &str, seen: &mut Vec<String>, text: &mut String) {
    let path = format!("{folder}{name}");
    let Some((path, body)) = FILES.iter().find(|(known, _)| *known == path) else {
        // Left for the compiler to report; a test holds that there is none.
        text.push_str(&format!("#include \"{path}\"\n"));
        return;
    };
    if seen.iter().any(|s| s == path) {
        return;
    }
    seen.push((*path).to_string());
    let folder = path.rfind('/').map_or("", |at| &path[..=at]);
    for line in body.lines() {
        if let Some(included) = line
            .strip_prefix("#include \"")
            .and_then(|rest| rest.strip_suffix('"'))
        {
            append(included, folder, seen, text);
        } else if line.trim() != "#pragma once" {
            text.push_str(line);
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn nothing_is_left_to_include() {
        let text = expand("kernel.cuh");
        assert!(!text.contains("#include \""), "{text}");
        assert!(text.contains("control_step"));
        assert_eq!(text.matches("struct ConeCost {").count(), 1);
    }
}
