//! `[task.terrain]`: the ground in the place of the robot's floor, on which tiles episodes begin,
//! and what expressions scan of it.

use super::ray_targets::RayTargets;
use super::team::Team;
use super::term::{Kind, Term};
use crate::config::{ConfigError, TaskConfig, TerrainPlan};
use ostler_engine::kernels;
use ostler_engine::state::{Sizes, Tables};
use ostler_lang::expr::{Scan, ScanKind, Scope};
use ostler_model::edit::{carried, farthest, grounds};
use ostler_model::rest::Rest;
use ostler_model::rotation::{Pose, rotate};
use ostler_model::terrain::Terrain;
use ostler_model::{Geom, GeomKind, JointKind, Model};
use std::sync::Arc;

/// How episodes are spread over a terrain, and what is scanned of it.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    /// Where environments begin: least and greatest level.
    first: [u32; 2],
    /// Conditions of a level more and of a level less; none: tiles are drawn.
    pub(super) climbs: Vec<Term>,
    scans: Vec<Scan>,
    targets: RayTargets,
}

impl Ground {
    /// Checks the levels and the conditions of the next one.
    pub(super) fn compile(
        scope: &Scope<'_>,
        plan: Option<&TerrainPlan>,
        team: &Team,
    ) -> Result<Self, ConfigError> {
        let Some(plan) = plan else {
            return Ok(Self::default());
        };
        let texts = match (&plan.up, &plan.down) {
            (Some(up), Some(down)) => vec![("up", up), ("down", down)],
            (None, None) => Vec::new(),
            (up, _) => {
                let [has, lacks] = if up.is_some() { ["up", "down"] } else { ["down", "up"] };
                let why = format!("`{has}` without `{lacks}`");
                return Err(ConfigError::new(format!("task.terrain.{has}"), why)
                    .help(format!("{lacks} = \"0 > 1\" is never; without both, tiles are drawn")));
            }
        };
        let top = plan.levels.saturating_sub(1);
        let begin = if texts.is_empty() { top } else { top / 2 };
        let [low, high] = plan.start_level.unwrap_or([0, begin]);
        if low > high || high > top {
            let why = format!("[{low}, {high}] of levels 0 to {top}");
            return Err(ConfigError::new("task.terrain.start_level", why)
                .help("[least, greatest], in the order of the levels"));
        }
        let mut climbs = Vec::new();
        for (key, text) in texts {
            let path = format!("task.terrain.{key}");
            let term = Term::compile(Kind::Climb, scope, (team, None), text, path)?;
            term.is_condition(text, "a level is changed where a condition holds")?;
            climbs.push(term);
        }
        Ok(Self { first: [low as u32, high as u32], climbs, ..Self::default() })
    }

    /// The levels on which environments begin: the least and the greatest.
    pub fn first(&self) -> [u32; 2] {
        self.first
    }

    /// Takes what expressions scan.
    pub(super) fn look(&mut self, model: &Model, scans: Vec<Scan>) {
        self.targets = RayTargets::new(model, &scans);
        self.scans = scans;
    }

    /// Its part of the sizes.
    pub(super) fn size(&self, sizes: &mut Sizes) {
        sizes.nscan = self.scans.len();
        sizes.nray = self.scans.iter().map(|scan| scan.rays.len()).sum();
        self.targets.size(sizes);
    }

    /// Writes the tiles and the scans.
    pub(super) fn enter(&self, t: &mut Tables, model: &Model) {
        let terrain = model.terrain.as_deref();
        self.targets.enter(model, t);
        t.tile_columns = vec![terrain.map_or(1, |t| t.columns as u32)];
        t.tile_climbs = vec![u32::from(!self.climbs.is_empty())];
        t.tile_first = self.first.to_vec();
        let origins = terrain.iter().flat_map(|t| &t.origins).flatten();
        t.tile_origin = origins.map(|x| *x as f32).collect();
        for scan in &self.scans {
            t.scan_kind.push(match scan.kind {
                ScanKind::Heights => kernels::SCAN_HEIGHT,
                ScanKind::Rays => kernels::SCAN_RAY,
            });
            t.scan_body.push(scan.body as u32);
            for [from, along] in &scan.rays {
                t.ray_from.extend(from.map(|x| x as f32));
                t.ray_along.extend(along.map(|x| x as f32));
            }
            t.scan_end.push((t.ray_from.len() / 3) as u32);
        }
    }
}

/// The robot on its terrain, which takes the place of its floor.
///
/// # Errors
/// The ground cannot be made; the robot has no floor that is a level plane at z = 0, or nothing
/// that could stand on a tile.
pub(super) fn robot(model: &Arc<Model>, cfg: &TaskConfig) -> Result<Arc<Model>, ConfigError> {
    let (Some(plan), None) = (&cfg.terrain, &model.terrain) else {
        return Ok(Arc::clone(model));
    };
    let refuse = |why: String, help: &str| ConfigError::new("task.terrain", why).help(help);
    if !model.joints.iter().any(|j| j.kind == JointKind::Free) {
        let why = "the robot has no free joint: it stays where it is".to_owned();
        return Err(refuse(why, "task.base = \"free\" gives its root one"));
    }
    let read = |name: &str| match cfg.tile_files.get(name) {
        Some(bytes) => Ok(bytes.to_vec()),
        None => Err("it was not read with the configuration (config::read_tiles)".to_owned()),
    };
    let made = Terrain::generate(plan, &read);
    let (terrain, notes) = made.map_err(|e| {
        let path = format!("task.terrain.{}", e.path);
        ConfigError { path, ..e }
    })?;
    let floors: Vec<usize> = grounds(model).collect();
    let &[floor] = &floors[..] else {
        let names = floors.iter().map(|g| format!("\"{}\"", model.geoms[*g].name));
        let names = names.collect::<Vec<_>>().join(", ");
        let why = match floors.is_empty() {
            true => "the robot has no floor in whose place it lies".to_owned(),
            false => format!("it takes the place of one floor, and there are {names}"),
        };
        return Err(refuse(why, "task.floor = true adds a floor; take others out of the file"));
    };
    let mut made = Model::clone(model);
    let body = Rest::new(model, &model.qpos0).bodies[made.geoms[floor].body];
    let geom = &mut made.geoms[floor];
    let pose = body.then(Pose { pos: geom.pos, quat: geom.quat });
    let level = rotate(pose.quat, [0.0, 0.0, 1.0])[2] > 1.0 - 1e-9;
    if geom.kind != GeomKind::Plane || !level || pose.pos[2].abs() > 1e-9 {
        let why = format!("geom \"{}\" is no level plane at z = 0", geom.name);
        return Err(refuse(why, "the terrain takes such a plane's place"));
    }
    let tile = terrain.tile();
    let size = extent(model);
    if size > tile {
        let why = format!("{tile} m, and the robot in its initial pose is {size:.3} m across");
        return Err(ConfigError::new("task.terrain.tile", why)
            .help("a tile is as large as the ground that an episode walks on: 8 m for a Go1"));
    }
    geom.kind = GeomKind::Terrain;
    let back = body.inverse();
    (geom.pos, geom.quat) = (back.pos, back.quat);
    let name = &geom.name;
    made.added.push(format!(
        "geom \"{name}\": a terrain of {} x {} tiles of {} m in the plane's place \
         (task.terrain)",
        terrain.levels,
        terrain.columns,
        terrain.tile()
    ));
    made.added.extend(notes);
    made.terrain = Some(Arc::new(terrain));
    Ok(Arc::new(made))
}

/// How far the shapes of a tree of bodies that moves freely reach along x or y (m), in the initial
/// pose: the largest tree's, of shapes that can touch something.
fn extent(model: &Model) -> f64 {
    let bodies = Rest::new(model, &model.qpos0).bodies;
    let size = |root: usize| {
        let own = carried(model, root);
        let solid = |g: &&Geom| own[g.body] && g.contype | g.conaffinity != 0;
        let end = |direction| {
            let geoms = model.geoms.iter().filter(solid);
            farthest(model, &bodies, geoms, direction).unwrap_or(f64::NEG_INFINITY)
        };
        let along = |x: f64, y: f64| end([x, y, 0.0]) + end([-x, -y, 0.0]);
        along(1.0, 0.0).max(along(0.0, 1.0))
    };
    let free = model.joints.iter().filter(|joint| joint.kind == JointKind::Free);
    free.map(|joint| size(joint.body)).fold(0.0, f64::max)
}
