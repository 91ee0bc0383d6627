//! The kernels' text in one piece.

/// Every header in `sim/kernels`.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/texts.rs"));

/// A file with the files it includes in their places, each once.
pub(super) fn expand(name: &str) -> String {
    let mut seen = Vec::new();
    let mut text = String::new();
    append(name, "", &mut seen, &mut text);
    text
}

/// The names and texts of the files in [`expand`]'s text, in order of their names.
pub(super) fn included(name: &str) -> Vec<(&'static str, &'static str)> {
    let mut seen = Vec::new();
    append(name, "", &mut seen, &mut String::new());
    FILES.iter().copied().filter(|(path, _)| seen.iter().any(|s| s == path)).collect()
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
        if let Some(included) =
            line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'))
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
