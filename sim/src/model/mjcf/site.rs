//! `<site>`.

use super::compiler::Compiler;
use super::geom::used_size;
use super::pose::PoseSpec;
use super::source::{Element, Fault, Read};
use super::value::Keywords;
use crate::model::rotation::{Pose, normalized, z_to};
use crate::model::{GeomKind, Site, Vec3};

const SHAPE: Keywords<GeomKind> = &[
    ("sphere", GeomKind::Sphere),
    ("capsule", GeomKind::Capsule),
    ("ellipsoid", GeomKind::Ellipsoid),
    ("cylinder", GeomKind::Cylinder),
    ("box", GeomKind::Box),
];

/// What the attributes of a site say.
#[derive(Debug, Clone)]
pub(super) struct SiteSpec {
    pose: PoseSpec,
    fromto: Option<[f64; 6]>,
    kind: GeomKind,
    size: Vec3,
}

impl Default for SiteSpec {
    /// MuJoCo's own.
    fn default() -> Self {
        Self {
            pose: PoseSpec::default(),
            fromto: None,
            kind: GeomKind::Sphere,
            size: [0.005; 3],
        }
    }
}

impl SiteSpec {
    /// Overwrites what the element says.
    pub fn read(&mut self, e: &Element) -> Read<()> {
        self.pose.read(e)?;
        let mut ends = [0.0; 6];
        if e.array("fromto", &mut ends)? {
            self.fromto = Some(ends);
        }
        e.keyword("type", SHAPE, &mut self.kind)?;
        e.fill("size", 1, &mut self.size)?;
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
        let mut size = self.size;
        let pose = match self.fromto {
            // The middle, as for geoms.
            Some([a, b, c, d, f, g]) => {
                let at = e.attr("fromto").map_or(e.at, |x| x.value_at(0));
                if self.kind == GeomKind::Sphere {
                    let why =
                        "fromto is for capsule, cylinder, box and ellipsoid; set type=\"...\"";
                    return Err(Fault::new(at, why));
                }
                let along = [a - d, b - f, c - g];
                let direction = normalized(along)
                    .ok_or_else(|| Fault::new(at, "the two points of fromto are the same"))?;
                let half = 0.5 * along.iter().map(|x| x * x).sum::<f64>().sqrt();
                size = match self.kind {
                    GeomKind::Ellipsoid | GeomKind::Box => [size[0], size[0], half],
                    _ => [size[0], half, size[2]],
                };
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
            kind: self.kind,
            size: used_size(self.kind, size, e)?,
        })
    }
}
