//! What a browser may ask for, and what it is told.

use serde::{Deserialize, Serialize};

/// A wish of somebody who looks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Wish {
    /// Stop, or go on.
    Pause {
        /// Stop.
        on: bool,
    },
    /// A new episode.
    Reset {},
    /// Simulated time over real time.
    Speed {
        /// 1: as in reality.
        factor: f64,
    },
    /// Give a command, or leave it to the task again.
    Command {
        /// Which of the task's.
        index: usize,
        /// Its components.
        values: Option<Vec<f32>>,
    },
    /// Change the velocity of a body.
    Push {
        /// The body.
        body: usize,
        /// Where (m, world).
        point: [f32; 3],
        /// By how much (m/s, world).
        change: [f32; 3],
    },
    /// Who acts.
    Agent {
        /// policy, zero, random.
        who: String,
    },
    /// Whose weights the policy has.
    Checkpoint {
        /// One of the names of the status.
        name: String,
    },
}

/// What a browser is told every second, and after each wish.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Status {
    /// Time stands still.
    pub paused: bool,
    /// Simulated time over real time.
    pub speed: f64,
    /// Who may act.
    pub agents: Vec<String>,
    /// Who acts.
    pub agent: String,
    /// Checkpoints that may be chosen.
    pub checkpoints: Vec<String>,
    /// The chosen one.
    pub checkpoint: String,
    /// What is seen, in words.
    pub shown: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_read_or_refused() {
        let read = |text: &str| serde_json::from_str::<Wish>(text);
        assert_eq!(read(r#"{"do":"pause","on":true}"#).unwrap(), Wish::Pause { on: true });
        assert_eq!(read(r#"{"do":"reset"}"#).unwrap(), Wish::Reset {});
        let command = read(r#"{"do":"command","index":0,"values":null}"#).unwrap();
        assert_eq!(command, Wish::Command { index: 0, values: None });
        for bad in [
            "",
            "{}",
            r#"{"do":"delete"}"#,
            r#"{"do":"speed","factor":"x"}"#,
            r#"{"do":"push","body":-1,"point":[0,0,0],"change":[0,0,0]}"#,
            r#"{"do":"push","body":1,"point":[0,0],"change":[0,0,0]}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
