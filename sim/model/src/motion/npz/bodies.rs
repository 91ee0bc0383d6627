//! The arrays of bodies.

use super::{Reader, four, not_finite, other_length, three};
use crate::motion::error::MotionError;
use crate::motion::given::{Bodies, unit};
use crate::motion::names::Of;
use crate::{Quat, Vec3};
use ostler_base::npz::Numbers;

/// Bodies as the file has them: their number, their names, and of those which the robot has
/// the column and the robot's body.
struct Listed {
    count: usize,
    names: Option<Vec<String>>,
    columns: Vec<(usize, usize)>,
}

impl Reader<'_, '_> {
    /// Bodies that the robot has, too.
    pub(super) fn bodies(
        &mut self,
        frames: usize,
        notes: &mut Vec<String>,
    ) -> Result<Option<Bodies>, MotionError> {
        let arrays = ["body_pos_w", "body_quat_w"];
        let [pos, quat] = arrays.map(|name| self.npz.has(name));
        if pos != quat {
            let there = arrays[usize::from(!pos)];
            return Err(MotionError::new(
                format!("array {there}"),
                "body_pos_w and body_quat_w belong together, and the other one is missing",
                "write both, or none: bodies then follow from the joints",
            ));
        }
        if !pos {
            return Ok(None);
        }
        let listed = self.listed(notes)?;
        let pos = self.vectors("body_pos_w", frames, 3, &listed)?;
        let pos = points(&pos, &listed);
        let raw = self.vectors("body_quat_w", frames, 4, &listed)?;
        let mut quat: Vec<Quat> = Vec::with_capacity(pos.len());
        for (frame, row) in raw.values.chunks_exact(4 * listed.count).enumerate() {
            for (c, body) in &listed.columns {
                let name = &self.robot.model.bodies[*body].name;
                let place = || format!("array body_quat_w, frame {frame}, body {name}");
                quat.push(unit(self.order.sorted(four(&row[4 * c..])), place)?);
            }
        }
        let mut velocity = |name: &str| -> Result<Option<Vec<Vec3>>, MotionError> {
            match self.npz.has(name) {
                false => Ok(None),
                true => Ok(Some(points(&self.vectors(name, frames, 3, &listed)?, &listed))),
            }
        };
        let [linear, angular] = [velocity("body_lin_vel_w")?, velocity("body_ang_vel_w")?];
        let of = listed.columns.iter().map(|(_, body)| *body).collect();
        Ok(Some(Bodies { of, pos, quat, linear, angular }))
    }

    fn listed(&mut self, notes: &mut Vec<String>) -> Result<Listed, MotionError> {
        let own = self.robot.body_names();
        if !self.npz.has("body_names") {
            if !own.is_empty() {
                notes.push(
                    "assumed: bodies in the robot's order, as the file has no body_names".into(),
                );
            }
            let columns = (0..own.len()).map(|c| (c, c + 1)).collect();
            return Ok(Listed { count: own.len(), names: None, columns });
        }
        let names = self.npz.texts("body_names")?;
        Of { kind: "body", place: "array body_names" }.once(&names)?;
        let known = |name: &String| own.iter().position(|o| o == name);
        let all = names.iter().enumerate();
        let columns: Vec<_> = all.filter_map(|(c, n)| Some((c, known(n)? + 1))).collect();
        if columns.is_empty() {
            return Err(MotionError::new(
                "array body_names",
                "the robot has none of these bodies",
                format!("take the robot that the file is of; this one has: {}", own.join(", ")),
            ));
        }
        let list = |names: Vec<&str>| names.join(", ");
        let unknown: Vec<&str> =
            names.iter().map(String::as_str).filter(|n| !own.contains(n)).collect();
        if !unknown.is_empty() {
            notes.push(format!("left aside: bodies that the robot has not: {}", list(unknown)));
        }
        let missing: Vec<&str> =
            own.iter().copied().filter(|o| !names.iter().any(|n| n == o)).collect();
        if !missing.is_empty() {
            notes.push(format!(
                "computed: bodies that the file has not, from the joints: {}",
                list(missing)
            ));
        }
        Ok(Listed { count: names.len(), names: Some(names), columns })
    }

    /// An array `[frames, bodies, width]` of finite numbers.
    fn vectors(
        &mut self,
        name: &str,
        frames: usize,
        width: usize,
        listed: &Listed,
    ) -> Result<Numbers, MotionError> {
        let numbers = self.npz.numbers(name)?;
        let count = listed.count;
        match numbers.shape[..] {
            [f, b, w] if (f, b, w) == (frames, count, width) => {}
            [f, b, w] if (b, w) == (count, width) => return Err(other_length(name, f, frames)),
            [_, b, w] if w == width => {
                let (what, help) = match &listed.names {
                    Some(_) => (
                        format!("{b} bodies, and body_names has {count}"),
                        "name every body once, in the arrays' order",
                    ),
                    None => (
                        format!("{b} bodies, and the robot has {count} without the world"),
                        "take the robot that the file is of, or add the array body_names",
                    ),
                };
                return Err(MotionError::new(format!("array {name}"), what, help));
            }
            _ => {
                return Err(MotionError::new(
                    format!("array {name}"),
                    format!(
                        "it has shape {:?}, expected [{frames}, {count}, {width}]",
                        numbers.shape
                    ),
                    "check which array this is",
                ));
            }
        }
        let bad = numbers.values.iter().enumerate().find(|(_, x)| !x.is_finite());
        let Some((i, value)) = bad else { return Ok(numbers) };
        let (frame, column) = (i / (count * width), i / width % count);
        let own = self.robot.body_names();
        let body = match &listed.names {
            Some(names) => names.get(column).map(String::as_str),
            None => own.get(column).copied(),
        };
        let place = format!("array {name}, frame {frame}, body {}", body.unwrap_or("?"));
        Err(not_finite(place, *value))
    }
}

/// The robot's columns `[T][columns]`.
fn points(numbers: &Numbers, listed: &Listed) -> Vec<Vec3> {
    let rows = numbers.values.chunks_exact(3 * listed.count);
    rows.flat_map(|row| listed.columns.iter().map(move |(c, _)| three(&row[3 * c..]))).collect()
}

impl Bodies {
    /// Linear and angular velocity of one body `[T]`, where the file has both.
    pub(super) fn velocities_of(&self, body: usize) -> Option<Vec<[Vec3; 2]>> {
        let column = self.of.iter().position(|o| *o == body)?;
        let (linear, angular) = (self.linear.as_ref()?, self.angular.as_ref()?);
        let both = linear.iter().zip(angular).skip(column).step_by(self.of.len());
        Some(both.map(|(v, w)| [*v, *w]).collect())
    }
}
