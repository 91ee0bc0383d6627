//! What a robot's file says without effect, in words.

use super::{Ignored, Model};
use std::collections::HashMap;
use std::fmt::Write as _;

impl Model {
    /// What is ignored, a line a kind: `<camera> (4) at a.xml:2:5, a.xml:9:3 and 2 more: why`.
    pub fn ignored_lines(&self) -> Vec<String> {
        const SHOWN: usize = 3;
        let mut numbers: HashMap<(String, &str), usize> = HashMap::new();
        let mut groups: Vec<Vec<&Ignored>> = Vec::new();
        for entry in &self.ignored {
            let number = numbers.entry((entry.kind(), &entry.why));
            let number = *number.or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[number].push(entry);
        }
        let line = |group: &Vec<&Ignored>| {
            let places: Vec<_> = group.iter().map(|i| i.place.as_str()).collect();
            let mut at = places[..places.len().min(SHOWN)].join(", ");
            if places.len() > SHOWN {
                let _ = write!(at, " and {} more", places.len() - SHOWN);
            }
            let what = match group[..] {
                [one] => one.what.clone(),
                _ => format!("{} ({})", group[0].kind(), group.len()),
            };
            format!("{what} at {at}: {}", group[0].why)
        };
        groups.iter().map(line).collect()
    }
}

impl Ignored {
    /// What it is without its name or value: `<camera>`, `geom/rgba`.
    fn kind(&self) -> String {
        let Some((kind, _)) = self.what.split_once('"') else {
            return self.what.clone();
        };
        let kind = kind.trim_end_matches(['=', ' ']);
        match kind.split_once(' ') {
            Some((element, _)) if kind.starts_with('<') && !kind.contains('>') => {
                format!("{element}>")
            }
            _ => kind.to_string(),
        }
    }
}
