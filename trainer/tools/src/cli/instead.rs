//! `--instead blue=zero`: somebody else acts for one of several agents.

use ostler_run::run::RunError;
use ostler_sim::env::EnvSpec;
use ostler_sim::names::nearest;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Who acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// Zeros.
    Zero,
    /// Uniform in -1..1.
    Random,
    /// The policy of another run, or of one of its checkpoints.
    Run(PathBuf),
    /// A policy that was exported.
    File(PathBuf),
}

/// One agent, and who acts for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instead {
    /// The agent's name.
    pub agent: String,
    /// Who acts for it.
    pub who: Who,
}

/// Whether a name is that of an exported policy.
pub(crate) fn is_policy_file(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "onnx" || e == "pt")
}

impl FromStr for Instead {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (agent, who) = text
            .split_once('=')
            .filter(|(agent, who)| !agent.is_empty() && !who.is_empty())
            .ok_or("write AGENT=zero, AGENT=random or AGENT=RUN")?;
        Ok(Self {
            agent: agent.to_string(),
            who: match who {
                "zero" => Who::Zero,
                "random" => Who::Random,
                file if is_policy_file(file.as_ref()) => Who::File(file.into()),
                run => Who::Run(run.into()),
            },
        })
    }
}

impl Instead {
    /// The agent's place among those of an environment.
    ///
    /// # Errors
    /// There is none of that name.
    pub(crate) fn place(&self, spec: &EnvSpec) -> Result<usize, RunError> {
        let names = || spec.agents.iter().map(|a| a.name.as_str());
        if let Some(place) = names().position(|n| n == self.agent) {
            return Ok(place);
        }
        let help = match nearest(&self.agent, names()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if spec.agents.is_empty() => "the task has no [agents]".to_string(),
            None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
        };
        Err(RunError::Usage(format!("--instead: no agent called \"{}\"; {help}", self.agent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_and_who_acts_for_it() {
        let read = |text: &str| text.parse::<Instead>();
        assert_eq!(read("a=zero").unwrap().who, Who::Zero);
        assert_eq!(read("a=random").unwrap().who, Who::Random);
        let run = read("blue=runs/x=y/latest").unwrap();
        assert_eq!((run.agent.as_str(), run.who), ("blue", Who::Run("runs/x=y/latest".into())));
        assert_eq!(read("a=b.onnx").unwrap().who, Who::File("b.onnx".into()));
        for wrong in ["", "a", "a=", "=zero"] {
            assert!(read(wrong).unwrap_err().contains("AGENT=RUN"), "{wrong}");
        }
    }
}
