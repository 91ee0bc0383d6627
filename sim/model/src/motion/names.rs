//! Names of a file's columns and those of the robot.

use super::error::MotionError;
use ostler_base::names::nearest;

/// What the names are of, for messages: `("joint", "joint_names")`.
#[derive(Clone, Copy)]
pub(super) struct Of<'a> {
    pub(super) kind: &'a str,
    pub(super) place: &'a str,
}

impl Of<'_> {
    /// No name may stand there twice.
    pub(super) fn once(self, names: &[String]) -> Result<(), MotionError> {
        let mut sorted: Vec<&String> = names.iter().collect();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(()),
            Some(pair) => Err(MotionError::new(
                format!("{}, {} {}", self.place, self.kind, pair[0]),
                "the name stands there twice",
                "name every column once",
            )),
        }
    }

    /// For every name of the robot the column of that name. None may be missing, none may be
    /// there that the robot has not.
    pub(super) fn columns(
        self,
        names: &[String],
        robot: &[&str],
    ) -> Result<Vec<usize>, MotionError> {
        self.once(names)?;
        let Self { kind, place } = self;
        if let Some(name) = names.iter().find(|n| !robot.contains(&n.as_str())) {
            let free = robot.iter().copied().filter(|r| !names.iter().any(|n| n == r));
            let help = match nearest(name, free) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None if robot.is_empty() => format!("the robot has no {kind}s"),
                None => format!(
                    "leave its column out, or take the robot that the file is of; this one has: {}",
                    robot.join(", ")
                ),
            };
            return Err(MotionError::new(
                format!("{place}, {kind} {name}"),
                format!("the robot has no {kind} of that name"),
                help,
            ));
        }
        let at = |name: &str| names.iter().position(|n| n == name);
        robot
            .iter()
            .map(|name| {
                at(name).ok_or_else(|| {
                    MotionError::new(
                        format!("{place}, {kind} {name}"),
                        format!("the robot has this {kind}, and the file has it not"),
                        format!("the file needs a column for each of: {}", robot.join(", ")),
                    )
                })
            })
            .collect()
    }
}
