//! What each output drives: entries of lists that go by outputs, and the table that people read.

use super::super::Task;
use super::Deployment;
use super::controls::{Control, DeployedJoint, Mapping, control};
use ostler_base::text::obeyed;
use ostler_model::summary::short;
use ostler_model::{Joint, Model};

/// Most choices that a cell shows.
const SHOWN: usize = 4;

/// The first columns name a row.
const NAMING: usize = 3;

/// Columns for a cell; longer names stick out.
const WIDEST: usize = 80;

const HEAD: [&str; 11] = [
    "output", "actuator", "joint", "qpos", "scale", "offset", "kp", "kd", "range", "control",
    "force",
];

/// Cells of a table's row.
pub type Row = [String; HEAD.len()];

/// What stands for an output in lists that have one entry for each.
#[derive(Debug)]
pub struct Entry<'a> {
    /// The output's name.
    pub name: &'a str,
    /// What it drives, in words: `joint knee`, `tendon split`, `2 actuators`.
    pub drives: String,
    /// The one hinge or slide joint that it drives by one actuator, if that is all.
    pub joint: Option<&'a DeployedJoint>,
    /// Its control, if that is one.
    pub control: Option<&'a Control>,
}

impl Entry<'_> {
    /// Scale and offset of what the output means at the joint: a target of its position where it
    /// is one, else the control itself. None of choices, and of what is added to something.
    pub fn affine(&self) -> Option<[f32; 2]> {
        let control = self.control.filter(|c| c.added_to.is_none())?;
        let Mapping::Affine { scale, offset } = control.mapping else {
            return None;
        };
        let by = match control.position {
            true => control.gear as f32,
            false => 1.0,
        };
        Some([scale / by, offset / by])
    }
}

impl<'a> Deployment<'a> {
    /// One entry for every output, in order.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let entry = |k: usize| {
            let mut own = self.controls.iter().filter(|c| c.output == k);
            let (first, others) = (own.next(), own.count());
            let control = first.filter(|_| others == 0);
            Entry {
                name: &self.outputs[k].name,
                drives: match control {
                    Some(control) => control.drives.clone(),
                    None => format!("{} actuators", others + 1),
                },
                joint: control.and_then(|c| c.joint.as_ref()),
                control,
            }
        };
        (0..self.outputs.len()).map(entry).collect()
    }

    /// Hinge and slide joints that are none of [`entries`](Self::entries)', with the actuator
    /// that drives each alone, if there is one.
    pub fn others(&self) -> Vec<(&DeployedJoint, Option<Control>)> {
        let entries = self.entries();
        let of_entry = |j: &DeployedJoint| entries.iter().any(|e| e.joint == Some(j));
        let joints = self.joints.iter().filter(|j| !of_entry(j));
        let driven = |j: &DeployedJoint| {
            let of = |u: &usize| {
                let joint = self.model.actuators[*u].joint();
                joint.is_some_and(|own| self.model.joints[own].name == j.name)
            };
            let u = (0..self.model.nu()).find(of)?;
            Some(control(self.task, self.model, u, NOTHING))
        };
        joints.map(|j| (j, driven(j))).collect()
    }

    /// Rows of the outputs, in order: one for each actuator that they drive.
    pub fn rows(&self) -> Vec<Row> {
        let each = self.controls.iter();
        each.map(|c| row(self.model, &c.output.to_string(), c)).collect()
    }

    /// Rows of what no policy of the task drives: actuators that hold the pose (`held`) or get
    /// zero (`none`), and joints without an actuator.
    pub fn idle(task: &'a Task, model: &'a Model) -> Vec<Row> {
        let mut rows = Vec::new();
        for u in 0..model.nu() {
            if task.actions.drives.iter().any(|d| d.actuator == u) {
                continue;
            }
            let held = task.actions.held.iter().find(|(held, _)| *held == u);
            let offset = held.map_or(0.0, |(_, control)| *control);
            let told = control(task, model, u, Mapping::Affine { scale: 0.0, offset });
            let output = if held.is_some() { "held" } else { "none" };
            rows.push(row(model, output, &told));
        }
        let moved = |j: usize| model.actuators.iter().any(|a| a.joint() == Some(j));
        let joints = model.joints.iter().enumerate();
        let idle = joints.filter(|(j, _)| !moved(*j)).map(|(_, joint)| {
            let mut cells: Row = std::array::from_fn(|_| "-".to_string());
            cells[2] = match joint.is_scalar() {
                true => joint.name.clone(),
                false => format!("{} {}", joint.kind.word(), joint.name),
            };
            cells[3] = places(joint);
            cells[8] = range(joint.range);
            cells
        });
        rows.extend(idle);
        rows
    }
}

const NOTHING: Mapping = Mapping::Affine { scale: 0.0, offset: 0.0 };

/// A joint's places in `qpos`.
fn places(joint: &Joint) -> String {
    match (joint.qpos_adr, joint.kind.nq()) {
        (first, 1) => first.to_string(),
        (first, n) => format!("{first}..{}", first + n - 1),
    }
}

fn range(ends: Option<[f64; 2]>) -> String {
    ends.map_or_else(none, |[low, high]| format!("{}..{}", short(low), short(high)))
}

fn none() -> String {
    "-".to_string()
}

fn row(model: &Model, output: &str, c: &Control) -> Row {
    let joint = model.actuators[c.actuator].joint().map(|j| &model.joints[j]);
    let number = |x: f32| short(f64::from(x));
    let (scale, offset) = match &c.mapping {
        Mapping::Affine { scale, offset } => (number(*scale), number(*offset)),
        Mapping::Binary([below, other]) => {
            (none(), format!("{} or {}", number(*below), number(*other)))
        }
        Mapping::Choice(choices) => {
            let shown: Vec<String> = choices.iter().take(SHOWN).map(|x| number(*x)).collect();
            let more = if choices.len() > SHOWN { " ..." } else { "" };
            (none(), shown.join(" or ") + more)
        }
    };
    let gain = |k: Option<f64>| k.map_or_else(none, short);
    let limited = c.range.iter().any(|x| x.is_finite());
    [
        output.to_string(),
        c.name.clone(),
        c.joint.as_ref().map_or_else(|| c.drives.clone(), |j| j.name.clone()),
        joint.map_or_else(none, places),
        scale,
        offset,
        gain(c.stiffness),
        gain(c.damping),
        range(joint.and_then(|j| j.range)),
        range(limited.then(|| c.range.map(f64::from))),
        gain(c.effort),
    ]
}

/// The rows below their head, in columns; where they are wider than `most`, in several blocks
/// that begin with the columns that name a row.
pub fn aligned(rows: &[Row], most: Option<usize>) -> Vec<String> {
    // Names are foreign: what breaks lines or moves a terminal's cursor has no width.
    let shown = |cell: &str| cell.replace(obeyed, "?");
    let head = HEAD.map(String::from);
    let all: Vec<Row> = std::iter::once(&head)
        .chain(rows)
        .map(|row| std::array::from_fn(|k| shown(&row[k])))
        .collect();
    let count = |text: &String| text.chars().count();
    let widths: [usize; HEAD.len()] = std::array::from_fn(|k| {
        all.iter().map(|row| count(&row[k]).min(WIDEST)).max().unwrap_or(0)
    });
    let naming: usize = widths[..NAMING].iter().map(|w| w + 2).sum();
    let mut blocks: Vec<Vec<usize>> = Vec::new();
    let mut width = usize::MAX;
    for (k, own) in widths.iter().enumerate().skip(NAMING) {
        width = width.saturating_add(own + 2);
        match blocks.last_mut() {
            Some(block) if width <= most.unwrap_or(usize::MAX - 1) => block.push(k),
            _ => {
                width = naming + own;
                blocks.push(vec![k]);
            }
        }
    }
    let mut lines = Vec::new();
    for (b, block) in blocks.iter().enumerate() {
        if b > 0 {
            lines.push(String::new());
        }
        for row in &all {
            let columns = (0..NAMING).chain(block.iter().copied());
            let cells = columns.map(|k| {
                // Names begin in one column, numbers end in one.
                let pad = " ".repeat(widths[k].saturating_sub(count(&row[k])));
                match k {
                    1 | 2 => format!("{}{pad}", row[k]),
                    _ => format!("{pad}{}", row[k]),
                }
            });
            let line = cells.collect::<Vec<_>>().join("  ");
            lines.push(line.trim_end().to_string());
        }
    }
    lines
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
