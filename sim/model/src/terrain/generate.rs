//! Ground from a plan.

use super::Terrain;
use super::checked::{self, Checked, Key, Kind, short};
use super::file::Samples;
use super::kinds::{Draws, Notes, Surface, Tile};
use super::plan::{KindWord, TerrainPlan};
use crate::Vec3;
use ostler_base::ConfigError;

/// Half the side (m) of the square over which episodes begin, where there is no platform.
const START: f64 = 1.0;

impl Terrain {
    /// Ground of a plan, and notes of what was rounded or clipped, a line each. `read` gives a
    /// file's content or says why not.
    ///
    /// # Errors
    /// A number that cannot be used, with its place in the plan; a file that cannot be read.
    pub fn generate(
        plan: &TerrainPlan,
        read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        let checked = checked::check(plan)?;
        let files = checked.kinds.iter().map(|kind| samples(plan, kind, read));
        let files: Vec<Option<Samples>> = files.collect::<Result<_, _>>()?;
        let Checked { cells, kinds, columns } = checked;
        let mut terrain = Self {
            levels: plan.levels,
            columns: plan.columns,
            cells,
            cell: plan.cell,
            heights: Vec::with_capacity(plan.levels * plan.columns * (cells + 1) * (cells + 1)),
            origins: Vec::with_capacity(plan.levels * plan.columns),
            kinds: kinds.iter().map(|kind| kind.name.clone()).collect(),
            column_kinds: columns,
            range: [0.0; 2],
            roof: super::Roof::default(),
        };
        let mut notes = Notes::default();
        for level in 0..plan.levels {
            for column in 0..plan.columns {
                let kind = terrain.column_kinds[column];
                let tile = Tile {
                    kind: &kinds[kind],
                    samples: files[kind].as_ref(),
                    n: cells,
                    cell: plan.cell,
                    difficulty: level as f64 / (plan.levels - 1).max(1) as f64,
                    draws: Draws::new(plan.seed, kind, level, column),
                    notes: &mut notes,
                };
                let surface = tile.make();
                let origin = terrain.origin(level, column, &surface);
                terrain.origins.push(origin);
                terrain.lay(&surface);
            }
        }
        Ok((terrain, notes.lines))
    }

    /// Appends a tile's heights, with what their lowest bits say.
    fn lay(&mut self, surface: &Surface) {
        let n = self.cells;
        for (r, c) in (0..=n).flat_map(|r| (0..=n).map(move |c| (r, c))) {
            let height = match surface {
                Surface::Level(cells) => cells[r.min(n - 1) * n + c.min(n - 1)],
                Surface::Triangles(corners) => corners[r * (n + 1) + c],
            };
            let [least, greatest] = self.range;
            self.range = [least.min(height), greatest.max(height)];
            let bits = (height as f32).to_bits() & !1;
            let level = matches!(surface, Surface::Level(_)) && r < n && c < n;
            self.heights.push(f32::from_bits(bits | u32::from(level)));
        }
    }

    /// The middle of a tile, on its platform; without one as high as the ground is near it.
    fn origin(&self, level: usize, column: usize, surface: &Surface) -> Vec3 {
        let n = self.cells;
        let z = match surface {
            Surface::Level(cells) => cells[n / 2 * n + n / 2],
            Surface::Triangles(corners) => {
                let reach = ((START / self.cell).round() as usize).min(n / 2);
                let near = n / 2 - reach..=n.div_ceil(2) + reach;
                let rows = near.clone().map(|r| &corners[r * (n + 1)..][near.clone()]);
                rows.flatten().copied().fold(f64::NEG_INFINITY, f64::max)
            }
        };
        let [x, y] = self.corner();
        let middle = |place: usize| (place as f64 + 0.5) * self.tile();
        [x + middle(level), y + middle(column), z]
    }

    /// A line for each kind: its columns and its numbers at the easiest and the hardest level.
    /// `plan` is the one this was made of.
    ///
    /// # Errors
    /// The plan cannot be made.
    pub fn summary(plan: &TerrainPlan) -> Result<Vec<String>, ConfigError> {
        let checked = checked::check(plan)?;
        Ok(checked.kinds.iter().map(|kind| line(&checked, kind)).collect())
    }
}

fn line(checked: &Checked, kind: &Kind) -> String {
    let columns = checked.columns.iter().filter(|k| **k == kind.place).count();
    let mut parts = vec![format!("{columns} column{}", if columns == 1 { "" } else { "s" })];
    parts.extend(kind.file.map(|file| format!("\"{file}\"")));
    for (key, _) in checked::takes(kind.word) {
        let [easiest, hardest] = kind.ends(*key).map(short);
        let (name, unit) = (key.name(), key.unit());
        match easiest == hardest {
            // Its default: a cell.
            true if *key == Key::DownsampledScale && easiest == 0.0 => {}
            true => parts.push(format!("{name} {easiest}{unit}")),
            false => parts.push(format!("{name} {easiest} to {hardest}{unit}")),
        }
    }
    format!("{}: {}", kind.name, parts.join(", "))
}

/// The file of a kind that has one.
fn samples(
    plan: &TerrainPlan,
    kind: &Kind,
    read: &dyn Fn(&str) -> Result<Vec<u8>, String>,
) -> Result<Option<Samples>, ConfigError> {
    let Some(name) = kind.file.filter(|_| kind.word == KindWord::File) else { return Ok(None) };
    let wrong = |why: String| {
        ConfigError::new(format!("kinds[{}].file", kind.place), format!("\"{name}\": {why}"))
    };
    let bytes = read(name).map_err(wrong)?;
    let samples = Samples::read(name, &bytes).map_err(wrong)?;
    if !samples.picture && plan.kinds[kind.place].height.is_some() {
        let path = format!("kinds[{}].height", kind.place);
        let why = format!("\"{name}\" has heights in m: height is for pictures");
        return Err(ConfigError::new(path, why));
    }
    Ok(Some(samples))
}
