//! What was found of one thing, and how well it is.

use serde::Serialize;

/// How well something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Trainings run; slower, or elsewhere than they could.
    Warning,
    /// The configuration will not run.
    Problem,
}

impl Verdict {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "PROBLEM",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The part that was examined.
    pub subject: &'static str,
    /// How well it is.
    pub verdict: Verdict,
    /// The finding, in one line.
    pub found: String,
    /// The remedy; none where all is well.
    pub remedy: Option<String>,
}

impl Finding {
    pub(super) fn ok(subject: &'static str, found: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Ok, found: found.into(), remedy: None }
    }

    /// Something is missing: a problem where it is `needed`.
    pub(super) fn lack(
        subject: &'static str,
        needed: bool,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            subject,
            verdict: if needed { Verdict::Problem } else { Verdict::Warning },
            found: found.into(),
            remedy: Some(remedy.into()),
        }
    }
}
