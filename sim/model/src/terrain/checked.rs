//! A plan's numbers, checked and with those that were left out.

use super::plan::{KindPlan, KindWord, LevelRange, TerrainPlan};
use ostler_base::ConfigError;

/// Most cells of all tiles.
const MOST_CELLS: f64 = (16 << 20) as f64;
/// Largest length, height or slope that is taken.
const MOST: f64 = 1000.0;

/// A number of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Border,
    Platform,
    NoiseLow,
    NoiseHigh,
    NoiseStep,
    DownsampledScale,
    Amplitude,
    Waves,
    Slope,
    StepHeight,
    StepWidth,
    GridHeight,
    GridWidth,
    StoneHeight,
    StoneWidth,
    StoneDistance,
    GapWidth,
    RailHeight,
    RailThickness,
    Depth,
    Height,
}
use Key::*;

/// What a number may be.
#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Any,
    NotNegative,
    Positive,
}
use Sign::{Any, NotNegative, Positive};

/// Each key's name, unit and sign, in the order of [`Key`].
const KEYS: [(Key, &str, &str, Sign); 21] = [
    (Border, "border", " m", NotNegative),
    (Platform, "platform", " m", Positive),
    (NoiseLow, "noise_low", " m", Any),
    (NoiseHigh, "noise_high", " m", Any),
    (NoiseStep, "noise_step", " m", Positive),
    (DownsampledScale, "downsampled_scale", " m", Positive),
    (Amplitude, "amplitude", " m", NotNegative),
    (Waves, "waves", "", Positive),
    (Slope, "slope", "", NotNegative),
    (StepHeight, "step_height", " m", NotNegative),
    (StepWidth, "step_width", " m", Positive),
    (GridHeight, "grid_height", " m", NotNegative),
    (GridWidth, "grid_width", " m", Positive),
    (StoneHeight, "stone_height", " m", NotNegative),
    (StoneWidth, "stone_width", " m", Positive),
    (StoneDistance, "stone_distance", " m", NotNegative),
    (GapWidth, "gap_width", " m", NotNegative),
    (RailHeight, "rail_height", " m", NotNegative),
    (RailThickness, "rail_thickness", " m", Positive),
    (Depth, "depth", " m", NotNegative),
    (Height, "height", " m", Any),
];

impl Key {
    pub(super) fn name(self) -> &'static str {
        KEYS[self as usize].1
    }

    pub(super) fn unit(self) -> &'static str {
        KEYS[self as usize].2
    }

    fn of(self, plan: &KindPlan) -> Option<LevelRange> {
        let one = |x: Option<f64>| x.map(LevelRange::One);
        match self {
            Border => one(plan.border),
            Platform => one(plan.platform),
            NoiseLow => plan.noise_low,
            NoiseHigh => plan.noise_high,
            NoiseStep => one(plan.noise_step),
            DownsampledScale => one(plan.downsampled_scale),
            Amplitude => plan.amplitude,
            Waves => one(plan.waves.map(f64::from)),
            Slope => plan.slope,
            StepHeight => plan.step_height,
            StepWidth => one(plan.step_width),
            GridHeight => plan.grid_height,
            GridWidth => one(plan.grid_width),
            StoneHeight => plan.stone_height,
            StoneWidth => plan.stone_width,
            StoneDistance => plan.stone_distance,
            GapWidth => plan.gap_width,
            RailHeight => plan.rail_height,
            RailThickness => plan.rail_thickness,
            Depth => plan.depth,
            Height => plan.height,
        }
    }
}

/// The numbers that a kind takes, with their defaults at the easiest and the hardest level.
pub(super) fn takes(kind: KindWord) -> &'static [(Key, [f64; 2])] {
    match kind {
        KindWord::Flat => &[],
        KindWord::Rough => &[
            (NoiseLow, [0.02; 2]),
            (NoiseHigh, [0.1; 2]),
            (NoiseStep, [0.02; 2]),
            // The cell's side.
            (DownsampledScale, [0.0; 2]),
            (Border, [0.2; 2]),
        ],
        KindWord::Wave => &[(Amplitude, [0.0, 0.2]), (Waves, [4.0; 2]), (Border, [0.2; 2])],
        KindWord::Slope => &[(Slope, [0.0, 0.7]), (Platform, [2.0; 2]), (Border, [0.2; 2])],
        KindWord::Stairs => &[
            (StepHeight, [0.0, 0.2]),
            (StepWidth, [0.3; 2]),
            (Platform, [3.0; 2]),
            (Border, [1.0; 2]),
        ],
        KindWord::Boxes => &[
            (GridHeight, [0.0, 0.3]),
            (GridWidth, [0.4; 2]),
            (Platform, [1.0; 2]),
            (Border, [0.2; 2]),
        ],
        KindWord::Stones => &[
            (StoneHeight, [0.0, 0.1]),
            (StoneWidth, [0.8, 0.4]),
            (StoneDistance, [0.1, 0.4]),
            (Depth, [2.0; 2]),
            (Platform, [2.0; 2]),
            (Border, [0.2; 2]),
        ],
        KindWord::Gap => &[(GapWidth, [0.1, 0.8]), (Depth, [2.0; 2]), (Platform, [2.0; 2])],
        KindWord::Rails => {
            &[(RailHeight, [0.05, 0.2]), (RailThickness, [0.1; 2]), (Platform, [2.0; 2])]
        }
        KindWord::Pit => &[(Depth, [0.05, 0.3]), (Platform, [2.0; 2])],
        KindWord::File => &[(Height, [1.0; 2])],
    }
}

/// A plan that can be made.
pub(super) struct Checked<'p> {
    /// Cells along a tile's side.
    pub cells: usize,
    pub kinds: Vec<Kind<'p>>,
    /// Each column's kind.
    pub columns: Vec<usize>,
}

/// A kind with all its numbers.
pub(super) struct Kind<'p> {
    /// Its place in the plan.
    pub place: usize,
    pub word: KindWord,
    pub name: String,
    pub inverted: bool,
    pub file: Option<&'p str>,
    /// At the easiest and the hardest level, in the order of [`Key`].
    numbers: [[f64; 2]; KEYS.len()],
}

impl Kind<'_> {
    pub(super) fn ends(&self, key: Key) -> [f64; 2] {
        self.numbers[key as usize]
    }

    pub(super) fn at(&self, key: Key, difficulty: f64) -> f64 {
        let [easiest, hardest] = self.ends(key);
        easiest + difficulty * (hardest - easiest)
    }
}

/// Digits that a reader wants.
pub(super) fn short(x: f64) -> f64 {
    (x * 1e6).round() / 1e6 + 0.0
}

/// Checks everything but files.
pub(super) fn check(plan: &TerrainPlan) -> Result<Checked<'_>, ConfigError> {
    let cells = cells(plan)?;
    if plan.kinds.is_empty() {
        let help = "kinds = [{ kind = \"flat\" }]";
        return Err(ConfigError::new("kinds", "there are no kinds of tiles").help(help));
    }
    let shares = shares(&plan.kinds)?;
    let columns = deal(&shares, plan.columns)?;
    let mut kinds: Vec<Kind> = Vec::with_capacity(plan.kinds.len());
    for (place, kind) in plan.kinds.iter().enumerate() {
        let mut checked = self::kind(plan, place, kind)?;
        let same = |k: &&Kind| k.name.split(' ').next() == Some(&checked.name);
        let before = kinds.iter().filter(same).count();
        if before > 0 {
            checked.name = format!("{} {}", checked.name, before + 1);
        }
        kinds.push(checked);
    }
    Ok(Checked { cells, kinds, columns })
}

/// Cells along a tile's side.
fn cells(plan: &TerrainPlan) -> Result<usize, ConfigError> {
    for (key, value) in [("tile", plan.tile), ("cell", plan.cell)] {
        if !(value.is_finite() && value > 0.0) {
            return Err(ConfigError::new(key, format!("{value} is not a positive number of m")));
        }
    }
    for (key, value) in [("levels", plan.levels), ("columns", plan.columns)] {
        if value == 0 {
            return Err(ConfigError::new(key, "there must be at least 1"));
        }
    }
    let cells = (plan.tile / plan.cell).round();
    if cells < 2.0 {
        let why = format!("{} m is less than two cells of {} m", plan.tile, plan.cell);
        return Err(ConfigError::new("tile", why));
    }
    let all = plan.levels as f64 * plan.columns as f64 * cells * cells;
    if all > MOST_CELLS {
        let why = format!(
            "{} levels of {} columns of {cells} x {cells} cells; at most {MOST_CELLS} cells are \
             supported",
            plan.levels, plan.columns
        );
        return Err(ConfigError::new("cell", why).help("larger cells, or fewer or smaller tiles"));
    }
    let nearest = cells * plan.cell;
    if (nearest - plan.tile).abs() > 1e-6 * plan.cell {
        let why = format!("{} m is no whole number of cells of {} m", plan.tile, plan.cell);
        return Err(ConfigError::new("tile", why).help(format!("tile = {}", short(nearest))));
    }
    Ok(cells as usize)
}

fn shares(kinds: &[KindPlan]) -> Result<Vec<f64>, ConfigError> {
    if kinds.iter().all(|k| k.share.is_none()) {
        return Ok(vec![1.0 / kinds.len() as f64; kinds.len()]);
    }
    let mut shares = Vec::with_capacity(kinds.len());
    for (place, kind) in kinds.iter().enumerate() {
        let path = format!("kinds[{place}].share");
        match kind.share {
            Some(share) if (0.0..=1.0).contains(&share) => shares.push(share),
            Some(share) => {
                return Err(ConfigError::new(path, format!("{share} is not between 0 and 1")));
            }
            None => {
                let why = "it is missing, and other kinds have one: all or none";
                return Err(ConfigError::new(path, why));
            }
        }
    }
    let sum: f64 = shares.iter().sum();
    if (sum - 1.0).abs() > 1e-6 {
        return Err(ConfigError::new("kinds", format!("shares sum to {}, not to 1", short(sum))));
    }
    Ok(shares)
}

/// Each column's kind, by cumulative share. A kind with a small share gets a column of the kind
/// that has most.
fn deal(shares: &[f64], columns: usize) -> Result<Vec<usize>, ConfigError> {
    let wanted = shares.iter().filter(|s| **s > 0.0).count();
    if columns < wanted {
        let why = format!("{columns} columns are too few for {wanted} kinds");
        return Err(ConfigError::new("columns", why).help(format!("at least {wanted}")));
    }
    let last = shares.iter().rposition(|s| *s > 0.0).unwrap_or(0);
    let mut counts = vec![0; shares.len()];
    for column in 0..columns {
        // The small number keeps rounding from moving an edge.
        let at = column as f64 / columns as f64 + 1e-3 / columns as f64;
        let mut sum = 0.0;
        let kind = shares.iter().position(|share| {
            sum += share;
            *share > 0.0 && at < sum
        });
        counts[kind.unwrap_or(last)] += 1;
    }
    for kind in 0..shares.len() {
        if shares[kind] > 0.0 && counts[kind] == 0 {
            let most = (0..counts.len()).max_by_key(|k| counts[*k]).unwrap_or(kind);
            counts[most] -= 1;
            counts[kind] += 1;
        }
    }
    let dealt = counts.iter().enumerate().flat_map(|(k, n)| std::iter::repeat_n(k, *n));
    Ok(dealt.collect())
}

fn kind<'p>(plan: &TerrainPlan, place: usize, kind: &'p KindPlan) -> Result<Kind<'p>, ConfigError> {
    let word = kind.kind.word();
    let wrong = |key: &str, why: String| ConfigError::new(format!("kinds[{place}].{key}"), why);
    let taken = takes(kind.kind);
    let mut numbers = [[0.0; 2]; KEYS.len()];
    for (key, default) in taken {
        numbers[*key as usize] = *default;
    }
    for (key, name, unit, sign) in KEYS {
        let Some(given) = key.of(kind) else { continue };
        if !taken.iter().any(|(k, _)| *k == key) {
            return Err(not_taken(kind.kind, place, name));
        }
        for x in given.ends() {
            let why = match sign {
                _ if !x.is_finite() => "not a finite number",
                _ if x.abs() > MOST => "more than 1000",
                NotNegative if x < 0.0 => "negative",
                Positive if x <= 0.0 => "not positive",
                _ => continue,
            };
            return Err(wrong(name, format!("{x}{unit} is {why}")));
        }
        numbers[key as usize] = given.ends();
    }
    let inverts = matches!(kind.kind, KindWord::Slope | KindWord::Stairs);
    if kind.inverted.is_some() && !inverts {
        return Err(not_taken(kind.kind, place, "inverted"));
    }
    if kind.file.is_some() != (kind.kind == KindWord::File) {
        return Err(match &kind.file {
            Some(_) => not_taken(kind.kind, place, "file"),
            None => wrong("file", "it is missing: a .png or .npy file".into()),
        });
    }
    let inverted = kind.inverted == Some(true);
    let name = format!("{word}{}", if inverted { "_inverted" } else { "" });
    let kind = Kind { place, word: kind.kind, name, inverted, file: kind.file.as_deref(), numbers };
    fits(plan, &kind)?;
    Ok(kind)
}

fn not_taken(kind: KindWord, place: usize, key: &str) -> ConfigError {
    let mut names: Vec<&str> = takes(kind).iter().map(|(key, _)| key.name()).collect();
    match kind {
        KindWord::Slope | KindWord::Stairs => names.push("inverted"),
        KindWord::File => names.push("file"),
        _ => {}
    }
    let why = format!("{} does not take it", kind.word());
    let help = match names.is_empty() {
        true => format!("{} takes nothing but share", kind.word()),
        false => format!("{} takes {}", kind.word(), names.join(", ")),
    };
    ConfigError::new(format!("kinds[{place}].{key}"), why).help(help)
}

/// Whether a kind's lengths fit its tile and each other.
fn fits(plan: &TerrainPlan, kind: &Kind) -> Result<(), ConfigError> {
    let wrong = |key: Key, why: String| {
        Err(ConfigError::new(format!("kinds[{}].{}", kind.place, key.name()), why))
    };
    let [platform, border] = [Platform, Border].map(|key| kind.ends(key)[0]);
    if platform > plan.tile {
        return wrong(Platform, format!("{platform} m is more than a tile of {} m", plan.tile));
    }
    if platform + 2.0 * border > plan.tile + 1e-9 || 2.0 * border >= plan.tile {
        let what = match platform > 0.0 {
            true => format!("{border} m on both sides of a platform of {platform} m is"),
            false => format!("{border} m on both sides is"),
        };
        return wrong(Border, format!("{what} too much for a tile of {} m", plan.tile));
    }
    let scale = kind.ends(DownsampledScale)[0];
    if kind.word == KindWord::Rough && scale > 0.0 && scale < plan.cell - 1e-9 {
        return wrong(DownsampledScale, format!("{scale} m is less than a cell"));
    }
    for (low, high) in kind.ends(NoiseLow).into_iter().zip(kind.ends(NoiseHigh)) {
        if low > high {
            return wrong(NoiseLow, format!("{low} m is above noise_high = {high} m"));
        }
        if (high - low) / kind.ends(NoiseStep)[0] > 1e6 {
            return wrong(NoiseStep, "it is too small for the range of heights".into());
        }
    }
    Ok(())
}
