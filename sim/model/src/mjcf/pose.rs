//! `pos` and the five ways to write an orientation.

use super::compiler::Compiler;
use super::element::{Element, Fault, Read};
use crate::rotation::{IDENTITY, Pose, about, add, cross, dot, from_axes, normalized, z_to};
use crate::{Quat, Vec3};

/// An orientation that still needs `<compiler>` to be understood.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Alternative {
    AxisAngle([f64; 4]),
    Euler(Vec3),
    XyAxes([f64; 6]),
    ZAxis(Vec3),
}

/// `pos`, `quat` and the alternatives to `quat`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct PoseSpec {
    pub pos: Vec3,
    quat: Quat,
    alternative: Option<Alternative>,
}

impl Default for PoseSpec {
    fn default() -> Self {
        Self { pos: [0.0; 3], quat: IDENTITY, alternative: None }
    }
}

impl PoseSpec {
    /// Reads the attributes that are there; the others stay.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.array("pos", &mut self.pos)?;
        let given = ["quat", "axisangle", "euler", "xyaxes", "zaxis"]
            .into_iter()
            .filter_map(|n| e.attr(n))
            .collect::<Vec<_>>();
        if let [first, second, ..] = given[..] {
            let (a, b) = (&first.name, &second.name);
            return Err(Fault::new(
                second.at,
                format!("{a} and {b} both give an orientation; keep one"),
            ));
        }
        if e.array("quat", &mut self.quat)? {
            self.quat = normalized(self.quat)
                .ok_or_else(|| Fault::new(e.at, "quat is zero; no rotation is \"1 0 0 0\""))?;
            self.alternative = None;
        }
        let (mut four, mut three, mut six) = ([0.0; 4], [0.0; 3], [0.0; 6]);
        if e.array("axisangle", &mut four)? {
            self.alternative = Some(Alternative::AxisAngle(four));
        } else if e.array("euler", &mut three)? {
            self.alternative = Some(Alternative::Euler(three));
        } else if e.array("xyaxes", &mut six)? {
            self.alternative = Some(Alternative::XyAxes(six));
        } else if e.array("zaxis", &mut three)? {
            self.alternative = Some(Alternative::ZAxis(three));
        }
        Ok(())
    }

    /// True if an orientation was given in another way than `quat`.
    pub(crate) fn has_alternative(&self) -> bool {
        self.alternative.is_some()
    }

    /// The pose in the parent's frame.
    pub(crate) fn resolve(&self, compiler: &Compiler, e: &Element) -> Read<Pose> {
        let no_direction = |what: &str| Fault::new(e.at, format!("{what} has no direction (zero)"));
        let quat = match self.alternative {
            None => self.quat,
            Some(Alternative::AxisAngle([x, y, z, angle])) => about(
                normalized([x, y, z]).ok_or_else(|| no_direction("axisangle's axis"))?,
                compiler.radians(angle),
            ),
            Some(Alternative::Euler(angles)) => compiler.euler(angles),
            Some(Alternative::ZAxis(z)) => {
                z_to(normalized(z).ok_or_else(|| no_direction("zaxis"))?)
            }
            Some(Alternative::XyAxes([a, b, c, d, e, f])) => {
                let x = normalized([a, b, c]).ok_or_else(|| no_direction("xyaxes' x axis"))?;
                let y = [d, e, f];
                let along = dot(x, y);
                let y = normalized(add(y, x.map(|v| -along * v)))
                    .ok_or_else(|| no_direction("xyaxes' y axis across x"))?;
                from_axes(x, y, cross(x, y))
            }
        };
        Ok(Pose { pos: self.pos, quat })
    }
}
