//! `<site>`.

use super::compiler::Compiler;
use super::element::{Element, Read};
use super::geom::{between, used_size};
use super::pose::PoseSpec;
use super::value::Keywords;
use crate::rotation::Pose;
use crate::{GeomKind, Site, Vec3};

const SHAPE: Keywords<GeomKind> = &[
    ("sphere", GeomKind::Sphere),
    ("capsule", GeomKind::Capsule),
    ("ellipsoid", GeomKind::Ellipsoid),
    ("cylinder", GeomKind::Cylinder),
    ("box", GeomKind::Box),
];

/// Attributes of a site.
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
        Self { pose: PoseSpec::default(), fromto: None, kind: GeomKind::Sphere, size: [0.005; 3] }
    }
}

impl SiteSpec {
    /// Overwrites the values that the element sets.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
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
    pub(crate) fn resolve(
        &self,
        e: &Element,
        frame: Pose,
        compiler: &Compiler,
        name: String,
        body: usize,
    ) -> Read<Site> {
        let (pose, size) = match self.fromto {
            Some(ends) => between(self.kind, self.size, &self.pose, ends, e)?,
            None => (self.pose.resolve(compiler, e)?, self.size),
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
