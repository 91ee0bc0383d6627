//! Keys of `[task]` for what a robot's file lacks.

use super::{ConfigError, OneOrMany, TaskConfig};
use ostler_model::edit::{Base, Edits, Floor, Height};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `task.floor`: `true`, or a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FloorConfig {
    /// With MuJoCo's friction, at z = 0.
    Wanted(bool),
    /// With numbers of its own.
    Table(FloorTable),
}

/// `[task.floor]`: an infinite plane, unless the robot's file has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FloorTable {
    /// Its z (m).
    pub height: f64,
    /// Sliding friction; or sliding, torsional (m) and rolling (m) friction. In a contact the
    /// larger one of the two geoms counts.
    pub friction: OneOrMany,
}

impl Default for FloorTable {
    fn default() -> Self {
        Self { height: 0.0, friction: OneOrMany::One(Floor::default().friction[0]) }
    }
}

/// `task.base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BaseConfig {
    /// The robot's root has a free joint, whether or not the file gives it one.
    Free,
    /// It has none.
    Fixed,
}

/// `task.start_height`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "\"auto\" or a finite number (m)")]
pub enum HeightConfig {
    /// `"auto"`: the robot's lowest shape stands on the floor.
    Auto(super::AutoWord),
    /// In the world (m).
    At(f64),
}

impl TaskConfig {
    /// What the task adds to the robot's file.
    ///
    /// # Errors
    /// A number is not finite or negative where it must not be, or there are too many.
    pub fn edits(&self) -> Result<Edits, ConfigError> {
        let floor = match &self.floor {
            None | Some(FloorConfig::Wanted(false)) => None,
            Some(FloorConfig::Wanted(true)) => Some(Floor::default()),
            Some(FloorConfig::Table(table)) => Some(table.floor()?),
        };
        let height = match self.start_height {
            None => None,
            Some(HeightConfig::Auto(_)) => Some(Height::OnFloor),
            Some(HeightConfig::At(z)) if z.is_finite() => Some(Height::At(z)),
            Some(HeightConfig::At(z)) => {
                let message = format!("{z} is no height");
                return Err(ConfigError::new("task.start_height", message)
                    .help("\"auto\", or a finite number (m)"));
            }
        };
        let base = self.base.map(|base| match base {
            BaseConfig::Free => Base::Free,
            BaseConfig::Fixed => Base::Fixed,
        });
        Ok(Edits { floor, base, height, balance: self.balance_inertia })
    }
}

impl FloorTable {
    fn floor(&self) -> Result<Floor, ConfigError> {
        if !self.height.is_finite() {
            let message = format!("{} is no height", self.height);
            return Err(ConfigError::new("task.floor.height", message).help("a finite number (m)"));
        }
        let mut friction = Floor::default().friction;
        match &self.friction {
            OneOrMany::One(slide) => friction[0] = *slide,
            OneOrMany::Many(all) => match all[..] {
                [slide] => friction[0] = slide,
                [slide, spin, roll] => friction = [slide, spin, roll],
                _ => {
                    let message = format!("{} numbers", all.len());
                    return Err(ConfigError::new("task.floor.friction", message)
                        .help("one (sliding), or three (sliding, torsional, rolling)"));
                }
            },
            OneOrMany::Named(_) => {
                return Err(ConfigError::new("task.floor.friction", "takes no patterns of names")
                    .help("one (sliding), or three (sliding, torsional, rolling)"));
            }
        }
        if let Some(bad) = friction.iter().find(|f| !(f.is_finite() && **f >= 0.0)) {
            let message = format!("{bad} is no friction");
            return Err(ConfigError::new("task.floor.friction", message).help("0 or more, finite"));
        }
        Ok(Floor { height: self.height, friction })
    }
}
