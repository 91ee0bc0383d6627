//! How several agents of a world fare against each other, for `ostler eval`.

use ostler_sim::env::EnvSpec;
use std::fmt::Write as _;

/// Returns of every agent, episode by episode.
#[derive(Debug, Default)]
pub(crate) struct Contest {
    /// The agents; none without `[agents]`, and nothing is counted then.
    names: Vec<String>,
    /// Rewards since the episode began `[N*M]`.
    sums: Vec<f64>,
    /// Of the episodes that count: one return after the other for every agent.
    returns: Vec<f64>,
}

/// Results of the episodes for one agent.
#[derive(Debug, PartialEq)]
pub(crate) struct Standing<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its mean return.
    pub mean: f64,
    /// In which share of the episodes no other agent had a higher return; where several
    /// share the highest, none of them did.
    pub best: f64,
}

impl Contest {
    /// Nothing counted yet.
    pub(crate) fn new(spec: &EnvSpec) -> Self {
        let rows = spec.num_envs * spec.agents.len();
        Self {
            names: spec.agents.iter().map(|a| a.name.clone()).collect(),
            sums: vec![0.0; rows],
            returns: Vec::new(),
        }
    }

    /// A step's rewards `[N*M]`.
    pub(crate) fn add(&mut self, rewards: &[f32]) {
        let each = self.sums.iter_mut().zip(rewards);
        each.for_each(|(sum, r)| *sum += f64::from(*r));
    }

    /// The episode of environment `e` is over; `counts`: it is one of those judged.
    pub(crate) fn end(&mut self, e: usize, counts: bool) {
        let m = self.names.len();
        if let Some(own) = self.sums.get_mut(e * m..(e + 1) * m) {
            if counts {
                self.returns.extend_from_slice(own);
            }
            own.fill(0.0);
        }
    }

    /// How every agent fared.
    pub(crate) fn standings(&self) -> Vec<Standing<'_>> {
        let m = self.names.len().max(1);
        let episodes = (self.returns.len() / m) as f64;
        let of_one = |(i, name)| {
            let each = self.returns.chunks_exact(m);
            let sum: f64 = each.clone().map(|own| own[i]).sum();
            let best = each.filter(|own| {
                let mut others = own.iter().enumerate().filter(|(j, _)| *j != i);
                others.all(|(_, r)| own[i] > *r)
            });
            Standing { name, mean: sum / episodes, best: best.count() as f64 / episodes }
        };
        let names = self.names.iter().map(String::as_str);
        names.enumerate().map(of_one).collect()
    }

    /// A line for every agent, each with a line break in front.
    pub(crate) fn lines(&self) -> String {
        let mut text = String::new();
        for s in self.standings() {
            let _ = write!(
                text,
                "\n  {}: mean return {:.2}, the best in {:.1} % of the episodes",
                s.name,
                s.mean,
                100.0 * s.best
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contest() -> Contest {
        Contest { names: vec!["a".into(), "b".into()], sums: vec![0.0; 4], returns: Vec::new() }
    }

    #[test]
    fn episodes_are_counted_for_every_agent() {
        let mut c = contest();
        c.add(&[1.0, 2.0, 3.0, 3.0]);
        c.end(0, true);
        c.add(&[5.0, 1.0, 1.0, 1.0]);
        // World 0: 1:2, then 5:1; world 1: 4:4, which nobody wins.
        c.end(0, true);
        c.end(1, true);
        c.add(&[9.0; 4]);
        c.end(0, false);
        let [a, b] = &c.standings()[..] else { panic!() };
        assert_eq!((a.name, a.mean, a.best), ("a", 10.0 / 3.0, 1.0 / 3.0));
        assert_eq!((b.name, b.mean, b.best), ("b", 7.0 / 3.0, 1.0 / 3.0));
    }

    #[test]
    fn without_agents_nothing_is_said() {
        let mut c = Contest::default();
        c.add(&[1.0]);
        c.end(0, true);
        assert_eq!(c.lines(), "");
    }
}
