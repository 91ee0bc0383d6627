//! Which term stands where in whose rows.

use super::{Observations, Seen, Term};
use crate::env::{Groups, ObsRow};
use crate::task::team::Team;
use std::ops::Range;

impl Observations {
    /// Finds the places of all terms.
    pub(super) fn lay_out(mut terms: Vec<Term>, team: &Team) -> Self {
        let count = team.count();
        let with_critic = team.is_centralized() || terms.iter().any(Term::is_privileged);
        // Terms of the agent's rows, in order: its own policy terms first.
        let of = |terms: &[Term], agent: usize, privileged: bool| -> Vec<usize> {
            let own = terms.iter().enumerate();
            own.filter(|(_, t)| t.agent == agent && t.is_privileged() == privileged)
                .map(|(i, _)| i)
                .collect()
        };
        let mut agents = Vec::with_capacity(count);
        let mut rows = Vec::with_capacity(count);
        for agent in 0..count {
            let policy = of(&terms, agent, false);
            let mut critic = policy.clone();
            if team.is_centralized() {
                for &other in team.others(agent) {
                    critic.extend(of(&terms, other, false));
                }
            }
            critic.extend(of(&terms, agent, true));
            let table = |row: &[usize]| -> (usize, Vec<ObsRow>) {
                let (mut at, mut table) = (0, Vec::new());
                for term in row.iter().map(|&i| &terms[i]) {
                    let name = match term.agent == agent {
                        true => term.name.clone(),
                        false => team.prefixed(term.agent, &term.name),
                    };
                    table.push(term.row(at, name));
                    at += term.len();
                }
                (at, table)
            };
            let (width, rows_of_policy) = table(&policy);
            let of_critic = with_critic.then(|| table(&critic));
            agents.push(Seen {
                width: Groups {
                    policy: width,
                    critic: of_critic.as_ref().map(|c| c.0),
                },
                table: Groups {
                    policy: rows_of_policy,
                    critic: of_critic.map(|c| c.1),
                },
            });
            rows.push((policy, critic));
        }
        let widest = |of: fn(&Seen) -> usize| agents.iter().map(of).max().unwrap_or(0);
        let width = Groups {
            policy: widest(|a| a.width.policy),
            critic: with_critic.then(|| widest(|a| a.width.critic.unwrap_or(0))),
        };
        let mut padding = Groups {
            policy: Vec::new(),
            critic: width.critic.map(|_| Vec::new()),
        };
        let pad = |into: &mut Vec<Range<usize>>, agent: usize, own: usize, row: usize| {
            if own < row {
                into.push(agent * row + own..(agent + 1) * row);
            }
        };
        for (agent, (policy, critic)) in rows.into_iter().enumerate() {
            let mut at = agent * width.policy;
            for i in policy {
                // Privileged terms stay without a place.
                terms[i].policy_at = Some(at);
                at += terms[i].len();
            }
            pad(
                &mut padding.policy,
                agent,
                agents[agent].width.policy,
                width.policy,
            );
            let (Some(row), Some(into)) = (width.critic, &mut padding.critic) else {
                continue;
            };
            let mut at = agent * row;
            for i in critic {
                terms[i].critic_at.push(at);
                at += terms[i].len();
            }
            pad(into, agent, at - agent * row, row);
        }
        Self {
            terms,
            width,
            agents,
            padding,
        }
    }
}
