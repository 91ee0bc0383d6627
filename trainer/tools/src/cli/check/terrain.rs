//! The ground of `[task.terrain]`: its size, its kinds, where environments begin, a picture.

use super::one_line;
use ostler_learn::config::Loaded;
use ostler_run::log::outln;
use ostler_run::log::progress::thousands;
use ostler_run::run::RunError;
use ostler_sim::Model;
use ostler_sim::env::BatchEnv;
use ostler_sim::files;
use ostler_sim::model::terrain::Terrain;
use std::path::Path;

/// Prints it, where the task has one.
pub(super) fn print(loaded: &Loaded, model: &Model, env: &BatchEnv) -> Result<(), RunError> {
    let (Some(plan), Some(terrain)) = (&loaded.config.task.terrain, &model.terrain) else {
        return Ok(());
    };
    let Terrain { levels, columns, cell, range: [low, high], .. } = **terrain;
    let tile = terrain.tile();
    let [x, y] = [levels, columns].map(|tiles| tiles as f64 * tile);
    let cells = thousands((levels * columns * terrain.cells * terrain.cells) as f64);
    outln!(
        "\nterrain: {levels} levels x {columns} columns of tiles of {tile} m, {x} x {y} m; \
         {cells} cells of {cell} m; heights {low:.3} to {high:.3} m"
    );
    let lines = Terrain::summary(plan).map_err(|e| {
        let path = format!("task.terrain.{}", e.path);
        let e = ostler_sim::config::ConfigError { path, ..e };
        RunError::from(loaded.places.explain(&e))
    })?;
    for line in lines {
        outln!("  {line}");
    }
    let [least, greatest] = env.compiled().ground.first();
    let on = match least == greatest {
        true => format!("level {least}"),
        false => format!("levels {least} to {greatest}"),
    };
    let then = match (&plan.up, &plan.down) {
        (Some(up), Some(down)) => {
            format!("then a level up if {}, down if {}", one_line(up), one_line(down))
        }
        _ => "every episode on a tile that is drawn".into(),
    };
    outln!("  environments begin on {on}; {then}");
    Ok(())
}

/// Writes a picture of the whole ground.
pub(super) fn picture(model: &Model, path: &Path) -> Result<(), RunError> {
    let Some(terrain) = &model.terrain else {
        return Err(none());
    };
    let unwritten =
        |why: String| RunError::Usage(format!("cannot write {}: {why}", path.display()));
    let bytes = terrain.picture().map_err(unwritten)?;
    files::output(path, &bytes).map_err(|e| unwritten(e.to_string()))?;
    outln!("picture of the terrain: {} (x to the right, y upwards)", path.display());
    Ok(())
}

/// There is nothing for `--terrain` to draw.
pub(super) fn none() -> RunError {
    RunError::Usage(
        "the task has no terrain for --terrain to draw: [task.terrain] gives it one, with \
         kinds = [{ kind = \"stairs\" }] for example"
            .into(),
    )
}
