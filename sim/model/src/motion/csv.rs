//! Tables of text: a line for every frame, as Unitree publishes its retargeted motions.
//!
//! `x, y, z, qx, qy, qz, qw, joint, joint, ...`; robots without a free joint have joints alone.
//! The first line may name the columns.

use super::error::MotionError;
use super::format::{MotionFormat, QuatOrder};
use super::given::{Given, Robot, enough, step, unit};
use super::names::Of;
use crate::rotation::Pose;

/// Reads a table into the robot's order.
pub(super) fn read(
    robot: &Robot<'_>,
    bytes: &[u8],
    format: &MotionFormat,
    notes: &mut Vec<String>,
) -> Result<Given, MotionError> {
    let text = std::str::from_utf8(bytes).map_err(|_| {
        MotionError::new(
            "the file",
            "it is neither an archive of arrays (.npz) nor text",
            "convert it to .npz or .csv",
        )
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    commas(text)?;
    let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()).peekable();
    let lead = robot.leading().0;
    let header = lines.next_if(|(_, line)| {
        let first = line.split(',').next().unwrap_or("").trim();
        first.parse::<f64>().is_err() && !first.is_empty()
    });
    let header: Option<Vec<String>> = header
        .map(|(_, line)| line.split(',').map(|n| n.trim().trim_matches('"').to_string()).collect());
    let (columns, names_place) = columns(robot, header.as_deref(), lead, format, notes)?;
    let order = order(header.as_deref(), lead, format, notes)?;
    let width = lead + columns.len();
    let step = step(None, format.fps)?;
    let (mut root, mut joints) = (Vec::new(), Vec::new());
    let mut frames = 0;
    let mut row = Vec::with_capacity(width);
    for (number, line) in lines {
        row.clear();
        let line_place = format!("line {}, frame {frames}", number + 1);
        for (c, field) in line.split(',').enumerate() {
            let place = || format!("{line_place}, column {}", c + 1);
            let value: f64 = field.trim().parse().map_err(|_| {
                let shown: String = field.trim().chars().take(40).collect();
                MotionError::new(
                    place(),
                    format!("\"{shown}\" is no number"),
                    "a table has numbers with commas between them, and names in its first line only",
                )
            })?;
            if !value.is_finite() {
                return Err(MotionError::new(
                    place(),
                    format!("the number is {value}"),
                    "a motion has finite numbers only",
                ));
            }
            row.push(value);
        }
        if row.len() != width {
            let whose = match header {
                Some(_) => "the first line names",
                None => "the robot takes",
            };
            let of = if lead == 7 { " (7 of the root)" } else { "" };
            let more = match row.len() == width + 1 {
                true => "leave out a column of times or frames, if that is it",
                false => "take the robot that the file is of, or name its columns in a first line",
            };
            return Err(MotionError::new(
                line_place,
                format!("{} columns, and {whose} {width}{of}", row.len()),
                more,
            ));
        }
        if let Some([x, y, z, a, b, c, d]) = row.first_chunk::<7>().filter(|_| lead == 7) {
            let place = || format!("{line_place}, columns 4 to 7");
            let quat = unit(order.sorted([*a, *b, *c, *d]), place)?;
            root.push(Pose { pos: [*x, *y, *z], quat });
        }
        joints.extend(columns.iter().filter_map(|c| row.get(lead + c)));
        frames += 1;
    }
    enough(robot, "the file", frames)?;
    Ok(Given {
        frames,
        step,
        root,
        root_place: "the root's columns".into(),
        joints,
        root_velocity: None,
        joint_velocity: None,
        bodies: None,
        last_w: order == QuatOrder::Xyzw,
        assumed: names_place.is_none(),
    })
}

/// Refuses what is no table with commas, but looks like another format.
fn commas(text: &str) -> Result<(), MotionError> {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if first == "HIERARCHY" {
        return Err(MotionError::new(
            "the file",
            "it is a BVH file, of a skeleton and not of a robot",
            "retarget it to the robot's joints, and write these to .npz or .csv",
        ));
    }
    let other = [(';', "semicolons"), ('\t', "tabs")];
    match other.iter().find(|(sign, _)| first.contains(*sign)).filter(|_| !first.contains(',')) {
        Some((_, name)) => Err(MotionError::new(
            "the file",
            format!("{name} stand between its columns"),
            "a table has commas between its numbers",
        )),
        None => Ok(()),
    }
}

/// For every joint its column after the root's, and where the names stand.
fn columns(
    robot: &Robot<'_>,
    header: Option<&[String]>,
    lead: usize,
    format: &MotionFormat,
    notes: &mut Vec<String>,
) -> Result<(Vec<usize>, Option<&'static str>), MotionError> {
    let own = robot.joint_names();
    let of = |place| Of { kind: "joint", place };
    match header {
        Some(header) => {
            let names = header.get(lead..).unwrap_or_default();
            if !format.joints.is_empty() && format.joints != names {
                return Err(MotionError::new(
                    "key joints",
                    "it contradicts the names in the file's first line",
                    "leave the key out",
                ));
            }
            Ok((of("line 1").columns(names, &own)?, Some("line 1")))
        }
        None if !format.joints.is_empty() => {
            Ok((of("key joints").columns(&format.joints, &own)?, Some("key joints")))
        }
        None => {
            notes.push(
                "assumed: joints in the robot's order, as the file names no columns; if it is another, give the key joints".into(),
            );
            Ok(((0..own.len()).collect(), None))
        }
    }
}

/// The order of the quaternion's numbers: the header's, the key's, or w last.
fn order(
    header: Option<&[String]>,
    lead: usize,
    format: &MotionFormat,
    notes: &mut Vec<String>,
) -> Result<QuatOrder, MotionError> {
    if lead == 0 {
        return Ok(QuatOrder::Xyzw);
    }
    let is_w = |name: &String| name.to_ascii_lowercase().ends_with('w');
    let named = header.and_then(|h| match h.get(3..7)? {
        [w, _, _, x] if is_w(w) && !is_w(x) => Some(QuatOrder::Wxyz),
        [x, _, _, w] if is_w(w) && !is_w(x) => Some(QuatOrder::Xyzw),
        _ => None,
    });
    match (named, format.quat) {
        (Some(named), Some(key)) if named != key => Err(MotionError::new(
            "line 1, columns 4 to 7",
            format!("the names say {}, and the key quat says {}", named.word(), key.word()),
            "leave the key out",
        )),
        (Some(order), _) | (None, Some(order)) => Ok(order),
        (None, None) => {
            notes.push(
                "assumed: quaternions x y z w, as Unitree's tables have them; else give quat = \"wxyz\"".into(),
            );
            Ok(QuatOrder::Xyzw)
        }
    }
}
