//! Tables of text: a line for every frame, as Unitree publishes its retargeted motions.
//!
//! `x, y, z, qx, qy, qz, qw, joint, joint, ...`; robots without a free joint have joints alone.
//! The first line may name the columns; then they may stand in any order.

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
    let named = header.as_deref().filter(|_| lead == 7).map(root_columns).transpose()?.flatten();
    let (columns, names_place) = columns(robot, header.as_deref(), (lead, named), format, notes)?;
    let order = order(header.as_deref(), (lead, named), format, notes)?;
    let width = lead + columns.len();
    let root_columns = named.unwrap_or([0, 1, 2, 3, 4, 5, 6]);
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
            let more = match row.len().saturating_sub(width) {
                1 => "leave out a column of times or frames, if that is it",
                7 if lead == 0 => {
                    "seven more, as of a root: task.base = \"free\" gives the robot a free joint, \
                     and `ostler motion --robot TASK.toml` takes it"
                }
                _ => "take the robot that the file is of, or name its columns in a first line",
            };
            return Err(MotionError::new(
                line_place,
                format!("{} columns, and {whose} {width}{of}", row.len()),
                more,
            ));
        }
        if lead == 7 {
            let [x, y, z, a, b, c, d] = root_columns.map(|c| row[c]);
            let place = || format!("{line_place}, columns {}", shown(&root_columns[3..]));
            root.push(Pose { pos: [x, y, z], quat: unit(order.sorted([a, b, c, d]), place)? });
        }
        joints.extend(columns.iter().map(|c| row[*c]));
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
    let other = [(';', "semicolons"), ('\t', "tabs"), (' ', "spaces")];
    match other.iter().find(|(sign, _)| first.contains(*sign)).filter(|_| !first.contains(',')) {
        Some((_, name)) => Err(MotionError::new(
            "the file",
            format!("{name} stand between its columns"),
            "a table has commas between its numbers",
        )),
        None => Ok(()),
    }
}

/// Columns as they are counted in messages.
fn shown(columns: &[usize]) -> String {
    match columns {
        [first, .., last] if last - first == columns.len() - 1 => {
            format!("{} to {}", first + 1, last + 1)
        }
        _ => columns.iter().map(|c| (c + 1).to_string()).collect::<Vec<_>>().join(", "),
    }
}

/// The number of the root that a column's name means: 0 to 2 of its place, 3 to 6 of x, y, z, w of
/// its quaternion.
fn root_number(name: &str) -> Option<usize> {
    let name = name.to_ascii_lowercase();
    let (word, axis) = name.split_at_checked(name.len().checked_sub(1)?)?;
    let axis = "xyzw".find(axis)?;
    let word = word.trim_end_matches(['_', '.', ' ', '/']);
    let of = ["floating_base", "root", "base", "pelvis"];
    let word = of.iter().find_map(|of| word.strip_prefix(of)).unwrap_or(word);
    match word.trim_matches(['_', '.', ' ', '/']) {
        "q" | "quat" | "quaternion" | "rot" | "rotation" | "ori" | "orientation" => Some(3 + axis),
        "" | "p" | "t" | "pos" | "position" | "trans" | "translation" => {
            Some(axis).filter(|axis| *axis < 3)
        }
        _ => None,
    }
}

/// Where the root's seven numbers are, x y z w of the quaternion last, if the first line names
/// them; `None` where it names none of them.
fn root_columns(header: &[String]) -> Result<Option<[usize; 7]>, MotionError> {
    let mut found = [None; 7];
    for (column, name) in header.iter().enumerate() {
        let Some(number) = root_number(name) else { continue };
        if found[number].replace(column).is_some() {
            return Err(MotionError::new(
                format!("line 1, column {}", column + 1),
                format!("\"{name}\" is named twice"),
                "name the root's columns x, y, z, qx, qy, qz, qw",
            ));
        }
    }
    let missing = (0..7).find(|number| found[*number].is_none());
    match (missing, found.iter().flatten().count()) {
        (_, 0) => Ok(None),
        (None, _) => Ok(Some(found.map(Option::unwrap_or_default))),
        (Some(number), _) => Err(MotionError::new(
            "line 1",
            format!("it names columns of the root, and none for its {}", ROOT[number]),
            "name all of them: x, y, z, qx, qy, qz, qw",
        )),
    }
}

/// Names of the root's numbers.
const ROOT: [&str; 7] = ["x", "y", "z", "qx", "qy", "qz", "qw"];

/// For every joint its column, and where the names stand.
fn columns(
    robot: &Robot<'_>,
    header: Option<&[String]>,
    (lead, root): (usize, Option<[usize; 7]>),
    format: &MotionFormat,
    notes: &mut Vec<String>,
) -> Result<(Vec<usize>, Option<&'static str>), MotionError> {
    let own = robot.joint_names();
    let of = |place| Of { kind: "joint", place };
    match header {
        Some(header) => {
            let free = |c: &usize| root.map_or(*c >= lead, |root| !root.contains(c));
            let places: Vec<usize> = (0..header.len()).filter(free).collect();
            let names: Vec<String> = places.iter().map(|c| header[*c].clone()).collect();
            if !format.joints.is_empty() && format.joints != names {
                return Err(MotionError::new(
                    "key joints",
                    "it contradicts the names in the file's first line",
                    "leave the key out",
                ));
            }
            let columns = of("line 1").columns(&names, &own)?;
            Ok((columns.iter().map(|c| places[*c]).collect(), Some("line 1")))
        }
        None if !format.joints.is_empty() => {
            let columns = of("key joints").columns(&format.joints, &own)?;
            Ok((columns.iter().map(|c| lead + c).collect(), Some("key joints")))
        }
        None => {
            notes.push(
                "assumed: joints in the robot's order, as the file names no columns; if it is another, give the key joints".into(),
            );
            Ok(((lead..lead + own.len()).collect(), None))
        }
    }
}

/// The order of the quaternion's numbers: the header's, the key's, or w last.
fn order(
    header: Option<&[String]>,
    (lead, root): (usize, Option<[usize; 7]>),
    format: &MotionFormat,
    notes: &mut Vec<String>,
) -> Result<QuatOrder, MotionError> {
    if lead == 0 {
        return Ok(QuatOrder::Xyzw);
    }
    let is_w = |name: &String| name.to_ascii_lowercase().ends_with('w');
    let named = match root {
        Some([.., x, _, _, w]) if w < x => Some(QuatOrder::Wxyz),
        Some(_) => Some(QuatOrder::Xyzw),
        None => header.and_then(|h| match h.get(3..7)? {
            [w, _, _, x] if is_w(w) && !is_w(x) => Some(QuatOrder::Wxyz),
            [x, _, _, w] if is_w(w) && !is_w(x) => Some(QuatOrder::Xyzw),
            _ => None,
        }),
    };
    match (named, format.quat) {
        (Some(named), Some(key)) if named != key => Err(MotionError::new(
            format!(
                "line 1, columns {}",
                shown(&root.map_or([3, 4, 5, 6], |r| [r[3], r[4], r[5], r[6]]))
            ),
            format!("the names say {}, and the key quat says {}", named.word(), key.word()),
            "leave the key out",
        )),
        // By their names they are read as x y z w, wherever they stand.
        (Some(_), _) if root.is_some() => Ok(QuatOrder::Xyzw),
        (Some(order), _) | (None, Some(order)) => Ok(order),
        (None, None) => {
            notes.push(
                "assumed: quaternions x y z w, as Unitree's tables have them; else give quat = \"wxyz\"".into(),
            );
            Ok(QuatOrder::Xyzw)
        }
    }
}
