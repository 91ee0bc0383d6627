//! Names that were mistyped, and the name that was probably meant.

/// Longer names are nobody's typing; comparing two takes the product of their lengths.
const LONGEST: usize = 256;
/// Least likeness, 0 to 1, that is worth offering.
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
        .filter(|(score, _)| *score >= LIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, c)| c)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn offers_the_near_name_and_nothing_far() {
        assert_eq!(nearest("torzo", ["foot", "torso"]), Some("torso"));
        assert_eq!(nearest("xyz", ["foot", "torso"]), None);
    }

    /// Compared, these would take hours.
    #[test]
    fn names_that_nobody_types_are_not_compared() {
        let [long, longer] = [1_000_000, 1_000_001].map(|n| "x".repeat(n));
        assert_eq!(nearest(&long, [longer.as_str(), "torso"]), None);
        assert_eq!(nearest("torzo", [longer.as_str(), "torso"]), Some("torso"));
    }
}
