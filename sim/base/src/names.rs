//! Names: mistyped ones and what was probably meant, patterns and what fits them.

use crate::ConfigError;

/// Longer names are nobody's typing; comparing two takes the product of their lengths.
const LONGEST: usize = 256;
/// More likeness than this, 0 to 1, is worth offering.
const LIKE: f64 = 0.5;

/// The candidate nearest to `given`, if one is near enough to be worth offering.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if given.len() > LONGEST {
        return None;
    }
    candidates
        .into_iter()
        .filter(|c| c.len() <= LONGEST)
        .map(|c| {
            (strsim::normalized_damerau_levenshtein(&given.to_lowercase(), &c.to_lowercase()), c)
        })
        .filter(|(score, _)| *score > LIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

/// What to say of a name or pattern that fits none of `candidates`: what was meant, if that can be
/// told.
pub fn meant<'a>(pattern: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const REGULAR: [&str; 8] = [".*", "|", "^", "$", "(", "[", "\\", "+"];
    if REGULAR.iter().any(|sign| pattern.contains(sign)) {
        let only = "only * is a pattern, for any characters; a list of names or patterns stands for | \
                    and [...]";
        return Some(only.into());
    }
    if pattern.eq_ignore_ascii_case("all") {
        return Some("\"*\" means all of them".into());
    }
    nearest(pattern, candidates).map(|near| format!("did you mean \"{near}\"?"))
}

/// Does `name` fit `pattern`, where `*` stands for any characters?
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The names of `a, "b*"` or `[a, "b*"]`, without quotes.
pub fn listed(text: &str) -> Vec<&str> {
    let list = text.trim();
    let inner = list.strip_prefix('[').and_then(|l| l.strip_suffix(']'));
    let names = inner.unwrap_or(list).split(',');
    let names = names.map(|n| n.trim().trim_matches(['"', '\'']));
    names.filter(|n| !n.is_empty()).collect()
}

/// `hip, knee and 7 more`: at most `shown` of them by name.
pub fn few<S: AsRef<str>>(names: &[S], shown: usize) -> String {
    let first = &names[..names.len().min(shown)];
    let text = first.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len() - first.len() {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Indices of the elements that fit `pattern`, in the model's order.
///
/// # Errors
/// None does; the help names the nearest.
pub fn select<'a>(
    pattern: &str,
    kind: &str,
    elements: impl Iterator<Item = (usize, &'a str)> + Clone,
    path: &str,
) -> Result<Vec<usize>, ConfigError> {
    let found: Vec<usize> =
        elements.clone().filter(|(_, n)| matches(pattern, n)).map(|(i, _)| i).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let all: Vec<&str> = elements.map(|(_, n)| n).collect();
    let help = match meant(pattern, all.iter().copied()) {
        Some(help) => help,
        None if all.is_empty() && kind == "actuator" => {
            "the robot's file has no actuators: [[task.actuator]] with joints = [\"*\"], \
             stiffness and damping gives its joints some"
                .into()
        }
        None if all.is_empty() => format!("the robot has no {kind}s"),
        None => format!("the robot has: {}", all.join(", ")),
    };
    Err(ConfigError::new(path, format!("no {kind} fits \"{pattern}\"")).help(help))
}

#[cfg(test)]
mod tests {
    use super::{few, listed, meant, nearest};

    #[test]
    fn lists_of_names_are_read() {
        assert_eq!(listed("[a, \"b c\",d ]"), ["a", "b c", "d"]);
        assert_eq!(listed(" a, 'b*' "), ["a", "b*"]);
        assert_eq!(listed("[]"), [""; 0]);
        assert_eq!(listed("a"), ["a"]);
    }

    #[test]
    fn a_regular_expression_is_told_from_a_name() {
        let feet = ["left_foot1_collision", "right_foot1_collision"];
        for pattern in ["^(left|right)_foot[1-7]_collision$", ".*_foot1_collision"] {
            let help = meant(pattern, feet).unwrap();
            assert!(help.starts_with("only * is a pattern"), "{help}");
        }
        assert_eq!(
            meant("left_foot_colision", feet).unwrap(),
            "did you mean \"left_foot1_collision\"?"
        );
    }

    #[test]
    fn offers_the_near_name_and_nothing_far() {
        assert_eq!(nearest("torzo", ["foot", "torso"]), Some("torso"));
        assert_eq!(nearest("xyz", ["foot", "torso"]), None);
    }

    #[test]
    fn some_names_stand_for_many() {
        assert_eq!(few(&["a", "b"], 2), "a, b");
        assert_eq!(few(&["a", "b", "c", "d"], 2), "a, b and 2 more");
        assert_eq!(few::<&str>(&[], 2), "");
    }

    /// Compared, these would take hours.
    #[test]
    fn names_that_nobody_types_are_not_compared() {
        let [long, longer] = [1_000_000, 1_000_001].map(|n| "x".repeat(n));
        assert_eq!(nearest(&long, [longer.as_str(), "torso"]), None);
        assert_eq!(nearest("torzo", [longer.as_str(), "torso"]), Some("torso"));
    }
}
