//! A task's terrain for MuJoCo: boxes and height fields in the place of the robot's floor.

use super::mujoco::RefereeError;
use super::names::known;
use ostler_base::files;
use ostler_model::terrain::TerrainPart;
use ostler_model::{Geom, GeomKind, Model};
use serde_json::{Value, json};
use std::path::Path;

/// Numbers of a geom that say how it touches others, by MuJoCo's names.
pub(super) fn touches(geom: &Geom) -> Value {
    json!({
        "condim": geom.condim, "friction": geom.friction, "priority": geom.priority,
        "solref": geom.solref, "solimp": geom.solimp, "contype": geom.contype,
        "conaffinity": geom.conaffinity,
    })
}

/// What `tests/referee/mujoco_motors.py` lays in the place of the floor; null without a terrain.
/// The numbers go into `file`, in double precision: middle and half sides of every box; corner,
/// side of a cell, lower side and heights of every field.
///
/// # Errors
/// The file cannot be written.
pub(super) fn laid(model: &Model, file: &Path) -> Result<Value, RefereeError> {
    let place = model.geoms.iter().position(|g| g.kind == GeomKind::Terrain);
    let (Some(place), Some(terrain)) = (place, &model.terrain) else {
        return Ok(Value::Null);
    };
    let floor = &model.geoms[place];
    let (mut boxes, mut fields) = (Vec::new(), Vec::new());
    let mut shapes = Vec::new();
    for part in terrain.parts() {
        match part {
            TerrainPart::Box { center, size } => boxes.extend(center.into_iter().chain(size)),
            TerrainPart::Field { corner: [x, y], cells, cell, bottom, heights } => {
                shapes.push(cells);
                fields.extend([x, y, cell, bottom]);
                fields.extend(heights.into_iter().map(f64::from));
            }
        }
    }
    let count = boxes.len() / 6;
    let numbers: Vec<f64> = [boxes, fields].concat();
    files::create_with(file, bytemuck::cast_slice(&numbers)).map_err(RefereeError::Folder)?;
    let mut touches = touches(floor);
    for (key, value) in [("solmix", floor.solmix), ("margin", floor.margin), ("gap", floor.gap)] {
        touches[key] = value.into();
    }
    Ok(json!({
        "file": file, "boxes": count, "fields": shapes, "geom": known(model)[place],
        "name": floor.name, "touches": touches,
    }))
}
