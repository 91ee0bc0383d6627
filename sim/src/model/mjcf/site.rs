//! `<site>`.

use super::compiler::Compiler;
use super::pose::PoseSpec;
use super::source::{Element, Fault, Read};
use crate::model::Site;
use crate::model::rotation::{Pose, normalized, z_to};

/// What the attributes of a site say; its shape is only drawn.
#[derive(Debug, Clone, Default)]
pub(super) struct SiteSpec {
    pose: PoseSpec,
    fromto: Option<[f64; 6]>,
}

impl SiteSpec {
    /// Overwrites what the element says.
    pub fn read(&mut self, e: &Element) -> Read<()> {
        self.pose.read(e)?;
        let mut ends = [0.0; 6];
        if e.array("fromto", &mut ends)? {
            self.fromto = Some(ends);
        }
        Ok(())
    }

    /// The site in its body's frame.
    pub fn resolve(
        &self,
        e: &Element,
        frame: Pose,
        compiler: &Compiler,
        name: String,
        body: usize,
    ) -> Read<Site> {
        let pose = match self.fromto {
            // The middle, as for geoms; only the drawing has a length.
            Some([a, b, c, d, f, g]) => {
                let at = e.attr("fromto").map_or(e.at, |x| x.value_at(0));
                let direction = normalized([a - d, b - f, c - g])
                    .ok_or_else(|| Fault::new(at, "the two points of fromto are the same"))?;
                Pose {
                    pos: [0.5 * (a + d), 0.5 * (b + f), 0.5 * (c + g)],
                    quat: z_to(direction),
                }
            }
            None => self.pose.resolve(compiler, e)?,
        };
        let pose = frame.then(pose);
        Ok(Site {
            name,
            body,
            pos: pose.pos,
            quat: pose.quat,
        })
    }
}
