//! `[task.terrain]`: what the ground is made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[task.terrain]`: tiles of ground, in levels from the easiest to the hardest (along x) and
/// columns of kinds (along y).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TerrainPlan {
    /// Side of a tile (m), a whole number of cells.
    pub tile: f64,
    /// Side of a cell (m), the finest detail there is.
    pub cell: f64,
    /// Tiles along x; the first is the easiest.
    pub levels: usize,
    /// Tiles along y, dealt to the kinds by their shares.
    pub columns: usize,
    /// Of the random numbers of the ground. The same seed gives the same ground.
    pub seed: u64,
    /// What the tiles are, in the order of their columns.
    pub kinds: Vec<KindPlan>,
    /// Levels, from 0 on, on which environments begin: [least, greatest]. All of them without
    /// it; the lower half where `up` and `down` say how to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_level: Option<[usize; 2]>,
    /// A condition on the last state of an episode: the environment's next one begins a level
    /// higher; beyond the highest level on any of them. The environment stays in its column.
    /// Without `up` and `down` every episode begins on a tile of its own, drawn evenly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<String>,
    /// A condition likewise: a level lower, down to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<String>,
}

impl Default for TerrainPlan {
    fn default() -> Self {
        Self {
            tile: 8.0,
            cell: 0.1,
            levels: 10,
            columns: 20,
            seed: 0,
            kinds: Vec::new(),
            start_level: None,
            up: None,
            down: None,
        }
    }
}

/// `[[task.terrain.kinds]]`: a kind of tiles. Lengths along the ground become whole numbers of
/// cells. Keys that a kind does not take are refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KindPlan {
    /// What it is.
    pub kind: KindWord,
    /// Part of the columns, from 0 to 1. All kinds have one and the sum is 1, or none has and
    /// they get the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Width (m) of the level strip along the tile's edge. `stairs`: 1; `rough`, `wave`,
    /// `slope`, `boxes`, `stones`: 0.2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub border: Option<f64>,
    /// Side (m) of the level square in the middle, where episodes begin. `stairs`: 3; `boxes`:
    /// 1; `slope`, `stones`, `gap`, `rails`, `pit`: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<f64>,
    /// `slope`, `stairs`: `true` goes down to the platform. `false` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inverted: Option<bool>,
    /// `rough`: least height (m); 0.02.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_low: Option<LevelRange>,
    /// `rough`: greatest height (m); 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_high: Option<LevelRange>,
    /// `rough`: heights (m) are whole numbers of these above the least one; 0.02.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_step: Option<f64>,
    /// `rough`: distance (m) of the points whose heights are drawn; cubic splines lie between
    /// them. A cell by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub downsampled_scale: Option<f64>,
    /// `wave`: greatest height (m) of the sum of a wave along x and one along y; [0, 0.2].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amplitude: Option<LevelRange>,
    /// `wave`: whole waves within the border; 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waves: Option<u32>,
    /// `slope`: rise over run towards the platform, along the tile's axes; [0, 0.7].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slope: Option<LevelRange>,
    /// `stairs`: height (m) of a step; [0, 0.2].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_height: Option<LevelRange>,
    /// `stairs`: depth (m) of a step; 0.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_width: Option<f64>,
    /// `boxes`: columns are this much (m) lower or higher than the ground at most; the platform
    /// is this high. [0, 0.3].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_height: Option<LevelRange>,
    /// `boxes`: side (m) of a column; 0.4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_width: Option<f64>,
    /// `stones`: stones are this much (m) lower or higher than the ground at most; [0, 0.1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stone_height: Option<LevelRange>,
    /// `stones`: side (m) of a stone; [0.8, 0.4].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stone_width: Option<LevelRange>,
    /// `stones`: distance (m) between stones; [0.1, 0.4].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stone_distance: Option<LevelRange>,
    /// `gap`: width (m) of the gap around the platform; [0.1, 0.8].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_width: Option<LevelRange>,
    /// `rails`: height (m) of the two rails around the platform; [0.05, 0.2].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail_height: Option<LevelRange>,
    /// `rails`: thickness (m) of the rails; 0.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rail_thickness: Option<LevelRange>,
    /// How deep (m) it goes. `stones`, `gap`: 2; `pit`: [0.05, 0.3].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<LevelRange>,
    /// `file`: a grey PNG picture seen from above, y upwards; or a NumPy file (.npy) of heights
    /// (m), `[y][x]`. It is stretched over the tile, from edge to edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// `file`: height (m) of white in a picture, black is at 0; 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<LevelRange>,
}

impl KindPlan {
    /// A kind with the numbers it has by default.
    pub fn new(kind: KindWord) -> Self {
        Self {
            kind,
            share: None,
            border: None,
            platform: None,
            inverted: None,
            noise_low: None,
            noise_high: None,
            noise_step: None,
            downsampled_scale: None,
            amplitude: None,
            waves: None,
            slope: None,
            step_height: None,
            step_width: None,
            grid_height: None,
            grid_width: None,
            stone_height: None,
            stone_width: None,
            stone_distance: None,
            gap_width: None,
            rail_height: None,
            rail_thickness: None,
            depth: None,
            file: None,
            height: None,
        }
    }
}

/// A kind of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindWord {
    /// Level ground.
    Flat,
    /// Random heights.
    Rough,
    /// A wave along x and one along y.
    Wave,
    /// A pyramid up (or down) to a platform.
    Slope,
    /// Steps up (or down) to a platform.
    Stairs,
    /// Square columns of random heights.
    Boxes,
    /// Stepping stones over a hole.
    Stones,
    /// A platform with a gap around it.
    Gap,
    /// A platform with two rails around it.
    Rails,
    /// A platform in a pit with walls.
    Pit,
    /// Heights of a file.
    File,
}

impl KindWord {
    /// As it is written in a plan.
    pub fn word(self) -> &'static str {
        match self {
            Self::Flat => "flat",
            Self::Rough => "rough",
            Self::Wave => "wave",
            Self::Slope => "slope",
            Self::Stairs => "stairs",
            Self::Boxes => "boxes",
            Self::Stones => "stones",
            Self::Gap => "gap",
            Self::Rails => "rails",
            Self::Pit => "pit",
            Self::File => "file",
        }
    }
}

/// A number, or one that changes with the level: evenly from the easiest to the hardest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a number or a pair [easiest, hardest]")]
#[schemars(title = "a number or [easiest, hardest]")]
pub enum LevelRange {
    /// The same at all levels.
    One(f64),
    /// At the easiest and at the hardest level.
    Range([f64; 2]),
}

impl LevelRange {
    /// At the easiest and at the hardest level.
    pub fn ends(self) -> [f64; 2] {
        match self {
            Self::One(x) => [x, x],
            Self::Range(ends) => ends,
        }
    }
}
