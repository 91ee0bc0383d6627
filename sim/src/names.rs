//! Names that were mistyped, and the name that was probably meant.

/// The candidate nearest to `given`, if one is near enough to be worth offering.
pub fn nearest<'a>(given: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|c| {
            (
                strsim::normalized_damerau_levenshtein(&given.to_lowercase(), &c.to_lowercase()),
                c,
            )
        })
        .filter(|(score, _)| *score >= 0.5)
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
}
