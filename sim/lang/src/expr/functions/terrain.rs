//! The ground that all environments share: heights, slopes, scans.

use crate::expr::checker::{Checker, MAX_COMPONENTS};
use crate::expr::dag::{Id, Source};
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::readings::{Scan, ScanKind};
use crate::expr::signature::{Kind, Rule, one};
use crate::expr::unit::Unit;
use crate::expr::value::Value;

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "terrain_height",
        params: &[one("point", Kind::Value)],
        gives: "1",
        rule: Rule::Fixed("m"),
        doc: "height of the terrain at a point of the world (x, y, and a z that does not matter)",
        body: Body::Special(|c, call| {
            let [x, y] = point(c, call)?;
            Ok(Value::scalar(c.dag.two(Op::GroundHeight, x, y), metre()))
        }),
    },
    Function {
        name: "terrain_normal",
        params: &[one("point", Kind::Value)],
        gives: "3",
        rule: Rule::Fixed("-"),
        doc: "the terrain's upward unit normal at a point of the world; of a wall there is none",
        body: Body::Special(|c, call| {
            let [x, y] = point(c, call)?;
            let d = &mut c.dag;
            let slopes = [Op::GroundSlopeX, Op::GroundSlopeY].map(|op| d.two(op, x, y));
            let [one, square] = [d.constant(1.0), d.dot(&slopes, &slopes)];
            let length = d.add(one, square);
            let length = d.one(Op::Sqrt, length);
            let [x, y] = slopes.map(|s| d.one(Op::Neg, s));
            Ok(Value::vector([x, y, one].map(|k| d.div(k, length)), Unit::NONE))
        }),
    },
    Function {
        name: "terrain_origin",
        params: &[],
        gives: "3",
        rule: Rule::Fixed("m"),
        doc: "where on the terrain the episode began, in the world: the middle of its tile's platform",
        body: Body::Special(|c, call| {
            grounded(c, call)?;
            Ok(Value::vector([0, 1, 2].map(|k| c.dag.load(Source::Stand, k)), metre()))
        }),
    },
    Function {
        name: "terrain_level",
        params: &[],
        gives: "1",
        rule: Rule::Fixed("-"),
        doc: "level of the tile on which the episode began, 0 the easiest",
        body: Body::Special(|c, call| {
            grounded(c, call)?;
            Ok(Value::scalar(c.dag.load(Source::Stand, 3), Unit::NONE))
        }),
    },
    Function {
        name: "height_scan",
        params: &[
            one("body", Kind::Body),
            one("size", Kind::Value),
            one("resolution", Kind::Value),
        ],
        gives: "one per place",
        rule: Rule::Fixed("m"),
        doc: "the body's height over the terrain at places of a grid under it, which turns with its heading: `size` is [length, width] (m), places are `resolution` (m) apart from its edge on, x fastest, from behind on the right to the front on the left. From any height",
        body: Body::Special(height_scan),
    },
    Function {
        name: "ray_scan",
        params: &[
            one("body", Kind::Body),
            one("rays", Kind::Value),
            one("sideways", Kind::Value),
            one("upwards", Kind::Value),
        ],
        gives: "one per ray",
        rule: Rule::Fixed("m"),
        doc: "distances to what stands still, along rays from the body's origin, -1 where one meets nothing: the terrain, and the visible planes, height fields, meshes and other shapes of bodies that have no joints. `rays` is [columns, rows], whose directions are spread evenly over the angles `sideways` [from, to] and `upwards` [from, to] (rad) from the body's x axis, columns fastest. Rays pass through what moves",
        body: Body::Special(ray_scan),
    },
];

fn metre() -> Unit {
    Unit::parse("m").unwrap_or(Unit::Any)
}

/// Refuses a task without a terrain.
fn grounded(c: &Checker<'_>, call: &Call) -> Result<(), ExprError> {
    match c.scope.model.terrain {
        Some(_) => Ok(()),
        None => {
            let why = format!("`{}` is of the terrain, and this task has none", call.function.name);
            let help = "[task.terrain] makes one; kinds = [{ kind = \"flat\" }] is level ground";
            Err(ExprError::new(call.span.clone(), why).help(help))
        }
    }
}

/// x and y of a point.
fn point(c: &mut Checker<'_>, call: &Call) -> Result<[Id; 2], ExprError> {
    grounded(c, call)?;
    let at = c.value(call, 0)?;
    if !matches!(at.len(), 2 | 3) {
        let why = format!("`{}` takes a point, this is {}", call.function.name, at.describe());
        return Err(ExprError::new(call.span_of(0), why).help("pos(BODY), or [x, y]"));
    }
    Ok(at.array())
}

/// Argument `i` as constant numbers.
fn constants<const N: usize>(
    c: &Checker<'_>,
    call: &Call,
    i: usize,
    what: &str,
) -> Result<[f64; N], ExprError> {
    let value = c.value(call, i)?;
    let numbers = value.ids().into_iter().map(|id| c.dag.value(id).map(f64::from));
    let numbers: Option<Vec<f64>> = numbers.collect();
    let fit = numbers.filter(|n| n.iter().all(|x| x.is_finite()));
    fit.and_then(|n| <[f64; N]>::try_from(n).ok()).ok_or_else(|| {
        let why = format!("`{}` takes {what}", call.function.name);
        ExprError::new(call.span_of(i), why).help(format!("write {}", call.function.signature()))
    })
}

/// The values of a scan.
fn scanned(
    c: &mut Checker<'_>,
    call: &Call,
    kind: ScanKind,
    rays: Vec<[[f64; 3]; 2]>,
    meets: Vec<usize>,
) -> Result<Value, ExprError> {
    let elements = call.elements_of(0);
    let &[body] = elements else {
        let why = format!("`{}` is of one body, these are {}", call.function.name, elements.len());
        return Err(ExprError::new(call.span_of(0), why));
    };
    c.reads(body);
    let count = rays.len();
    let Some(first) = c.scope.readings.scan(Scan { kind, body: body.index, rays, meets }) else {
        return Err(ExprError::new(call.span.clone(), "the task scans too many places"));
    };
    Ok(Value::vector((first..first + count).map(|row| c.dag.load(Source::Scan, row)), metre()))
}

/// Refuses more values than a vector has.
fn few(call: &Call, count: f64) -> Result<(), ExprError> {
    if count <= MAX_COMPONENTS as f64 {
        return Ok(());
    }
    let why = format!("`{}` of {count} places; at most {MAX_COMPONENTS}", call.function.name);
    Err(ExprError::new(call.span.clone(), why))
}

fn height_scan(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    grounded(c, call)?;
    let size: [f64; 2] = constants(c, call, 1, "[length, width] in numbers (m)")?;
    let [resolution] = constants(c, call, 2, "a resolution in numbers (m)")?;
    if !(resolution > 0.0 && size.iter().all(|s| *s >= 0.0)) {
        let why = "a scan's size is 0 or more, its resolution above 0";
        return Err(ExprError::new(call.span.clone(), why));
    }
    // mjlab's `GridPatternCfg.generate_rays`: `arange(-size / 2, size / 2 + resolution / 2,
    // resolution)`, from the edge on, to half a place beyond the other one. Single precision's
    // error adds no place.
    let [columns, rows] = size.map(|s| (s / resolution * (1.0 - 1e-6) + 0.5).ceil());
    few(call, columns * rows)?;
    let place = |k: usize, size: f64| k as f64 * resolution - size / 2.0;
    let places = (0..rows as usize).flat_map(|y| (0..columns as usize).map(move |x| (x, y)));
    let rays = places.map(|(x, y)| [[place(x, size[0]), place(y, size[1]), 0.0], [0.0, 0.0, -1.0]]);
    let rays = rays.collect();
    scanned(c, call, ScanKind::Heights, rays, Vec::new())
}

fn ray_scan(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let count: [f64; 2] = constants(c, call, 1, "[columns, rows] in whole numbers")?;
    if count.iter().any(|n| *n < 1.0 || n.fract() != 0.0) {
        return Err(ExprError::new(
            call.span_of(1),
            "a scan has whole numbers of columns and rows",
        ));
    }
    few(call, count[0] * count[1])?;
    let spread = |[from, to]: [f64; 2], count: f64| -> Vec<f64> {
        let step = if count > 1.0 { (to - from) / (count - 1.0) } else { 0.0 };
        (0..count as usize).map(|k| from + k as f64 * step).collect()
    };
    let sideways = spread(constants(c, call, 2, "[from, to] in numbers (rad)")?, count[0]);
    let upwards = spread(constants(c, call, 3, "[from, to] in numbers (rad)")?, count[1]);
    let angles = upwards.iter().flat_map(|up| sideways.iter().map(move |side| (up, side)));
    let rays = angles
        .map(|(up, side)| [[0.0; 3], [up.cos() * side.cos(), up.cos() * side.sin(), up.sin()]]);
    let rays = rays.collect();
    let model = c.scope.model;
    let still = |body: usize| model.bodies[body].weld == 0 && !model.bodies[body].mocap;
    let refuse = |why: String| ExprError::new(call.span.clone(), why);
    let meets = super::rays::seen(model, still).map_err(|what| {
        refuse(format!("rays may meet {what}, which is not supported"))
            .help("give it contype=\"1\" so that it is kept, or take it out of the file")
    })?;
    if meets.is_empty() {
        let why = "there is nothing that stands still and that rays could meet";
        return Err(refuse(why.to_owned()).help("[task.terrain] makes ground; task.floor = true"));
    }
    scanned(c, call, ScanKind::Rays, rays, meets)
}
