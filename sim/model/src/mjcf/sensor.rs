//! `<sensor>`: the kinds that tasks can read. A sensor changes nothing about the robot, so
//! one that is not supported, or wrong, is refused where a task asks for it.

use super::element::{Attr, Element};
use crate::{FrameQuantity, Model, Sensor, SensorFrame, SensorKind};
use ostler_base::names::nearest;

/// All sensors of one `<sensor>`, with names that go on from `model`'s.
pub(super) fn read(section: &Element, model: &Model) -> Vec<Sensor> {
    let first = model.sensors.len();
    let list = section.children.iter().enumerate();
    list.map(|(k, e)| {
        let mut cutoff = 0.0;
        let kind = match e.scalar("cutoff", &mut cutoff) {
            Ok(_) if cutoff >= 0.0 => kind(e, model).unwrap_or_else(SensorKind::Unsupported),
            _ => SensorKind::Unsupported("its cutoff is not a number from 0".into()),
        };
        let name = e.text("name").filter(|n| !n.is_empty());
        Sensor {
            name: name.map_or_else(|| format!("sensor{}", first + k), str::to_string),
            kind,
            cutoff,
        }
    })
    .collect()
}

fn kind(e: &Element, model: &Model) -> Result<SensorKind, String> {
    if let Some(attr) = ["delay", "nsample", "interval"].iter().find_map(|n| e.attr(n)) {
        let instead = match attr.name.as_str() {
            "interval" => "",
            _ => "; leave it out, and give `delay` of the [[task.observation]] that shows it",
        };
        return Err(format!("its {} is not supported{instead}", attr.name));
    }
    let joint = || find(e, "joint", model.joints.iter().map(|j| j.name.as_str()));
    let scalar = || {
        let j = joint()?;
        match model.joints[j].is_scalar() {
            true => Ok(j),
            false => Err("its joint is neither hinge nor slide".to_string()),
        }
    };
    let ball = || {
        let j = joint()?;
        match model.joints[j].kind {
            crate::JointKind::Ball => Ok(j),
            _ => Err("its joint is no ball joint".to_string()),
        }
    };
    let tendon = || find(e, "tendon", model.tendons.iter().map(|t| t.name.as_str()));
    let actuator = || find(e, "actuator", model.actuators.iter().map(|a| a.name.as_str()));
    let site = || find(e, "site", model.sites.iter().map(|s| s.name.as_str()));
    let between = || {
        let s = site()?;
        match model.sites[s].body {
            0 => Err("its site is of the world, which has no parent".to_string()),
            _ => Ok(s),
        }
    };
    let body = || find(e, "body", model.bodies.iter().map(|b| b.name.as_str()));
    let frame = |quantity| {
        Ok(SensorKind::Frame {
            quantity,
            frame: of(e, "objtype", "objname", model)?.ok_or("it has no objtype")?,
            relative: of(e, "reftype", "refname", model)?,
        })
    };
    match e.name.as_str() {
        "jointpos" => scalar().map(SensorKind::JointPos),
        "jointvel" => scalar().map(SensorKind::JointVel),
        "ballquat" => ball().map(SensorKind::BallQuat),
        "ballangvel" => ball().map(SensorKind::BallAngVel),
        "tendonpos" => tendon().map(SensorKind::TendonPos),
        "tendonvel" => tendon().map(SensorKind::TendonVel),
        "actuatorpos" => actuator().map(SensorKind::ActuatorPos),
        "actuatorvel" => actuator().map(SensorKind::ActuatorVel),
        "actuatorfrc" => actuator().map(SensorKind::ActuatorFrc),
        "framepos" => frame(FrameQuantity::Pos),
        "framequat" => frame(FrameQuantity::Quat),
        "framexaxis" => frame(FrameQuantity::Axis(0)),
        "frameyaxis" => frame(FrameQuantity::Axis(1)),
        "framezaxis" => frame(FrameQuantity::Axis(2)),
        "framelinvel" => frame(FrameQuantity::LinVel),
        "frameangvel" => frame(FrameQuantity::AngVel),
        "framelinacc" | "frameangacc" if e.text("reftype").is_some() => {
            Err("accelerations relative to another frame are not supported".into())
        }
        "framelinacc" => frame(FrameQuantity::LinAcc),
        "frameangacc" => frame(FrameQuantity::AngAcc),
        "velocimeter" => site().map(SensorKind::Velocimeter),
        "gyro" => site().map(SensorKind::Gyro),
        "rangefinder" => match e.text("data") {
            None | Some("dist") => site().map(SensorKind::Rangefinder),
            Some(_) => Err("of a <rangefinder>, data=\"dist\" is supported alone".into()),
        },
        "magnetometer" => site().map(SensorKind::Magnetometer),
        "accelerometer" => site().map(SensorKind::Accelerometer),
        "force" => between().map(SensorKind::Force),
        "torque" => between().map(SensorKind::Torque),
        "touch" => site().map(SensorKind::Touch),
        "subtreecom" => body().map(SensorKind::SubtreeCom),
        "subtreelinvel" => body().map(SensorKind::SubtreeLinVel),
        "subtreeangmom" => body().map(SensorKind::SubtreeAngMom),
        "clock" => Ok(SensorKind::Clock),
        other => Err(format!("<{other}> is not supported")),
    }
}

fn find<'a>(
    e: &Element,
    attr: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, String> {
    let Some(Attr { value, .. }) = e.attr(attr) else {
        return Err(format!("it does not say which {attr}"));
    };
    names.clone().position(|n| n == value).ok_or_else(|| {
        let guess = nearest(value, names).map_or(String::new(), |g| format!("; there is \"{g}\""));
        format!("no {attr} called \"{value}\" is kept{guess}")
    })
}

/// The frame that two attributes give; `None` without them.
fn of(e: &Element, kind: &str, name: &str, model: &Model) -> Result<Option<SensorFrame>, String> {
    let Some(kind) = e.text(kind) else {
        return Ok(None);
    };
    let body = || find(e, name, model.bodies.iter().map(|b| b.name.as_str()));
    let frame = match kind {
        "xbody" => SensorFrame::Body(body()?),
        "body" => SensorFrame::Inertia(body()?),
        "geom" => SensorFrame::Geom(find(e, name, model.geoms.iter().map(|g| g.name.as_str()))?),
        "site" => SensorFrame::Site(find(e, name, model.sites.iter().map(|s| s.name.as_str()))?),
        other => return Err(format!("frames of a {other} are not supported")),
    };
    Ok(Some(frame))
}
