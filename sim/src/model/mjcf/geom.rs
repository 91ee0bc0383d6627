//! `<geom>` and `<site>`.

use super::compiler::Compiler;
use super::inertia::{Inertia, moments, volume};
use super::joint::{SOLIMP, SOLREF};
use super::pose::PoseSpec;
use super::source::{Element, Fault, Read};
use super::value::{BOOL, Keywords};
use crate::model::rotation::{EPS, Pose, add, normalized, z_to};
use crate::model::{Geom, GeomKind, Site, Vec3};

/// Shapes MJCF knows; not all are supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Primitive(GeomKind),
    Mesh,
    HeightField,
    Sdf,
}

const SHAPE: Keywords<Shape> = &[
    ("plane", Shape::Primitive(GeomKind::Plane)),
    ("hfield", Shape::HeightField),
    ("sphere", Shape::Primitive(GeomKind::Sphere)),
    ("capsule", Shape::Primitive(GeomKind::Capsule)),
    ("ellipsoid", Shape::Primitive(GeomKind::Ellipsoid)),
    ("cylinder", Shape::Primitive(GeomKind::Cylinder)),
    ("box", Shape::Primitive(GeomKind::Box)),
    ("mesh", Shape::Mesh),
    ("sdf", Shape::Sdf),
];

const FLUID_SHAPE: Keywords<bool> = &[("none", false), ("ellipsoid", true)];

/// MuJoCo's colour of a geom that names none.
pub(super) const GREY: [f64; 4] = [0.5, 0.5, 0.5, 1.0];

/// What the attributes of a geom say.
#[derive(Debug, Clone)]
pub(super) struct GeomSpec {
    pub shape: Shape,
    pose: PoseSpec,
    fromto: Option<[f64; 6]>,
    size: Vec3,
    pub contype: u32,
    pub conaffinity: u32,
    condim: i32,
    friction: Vec3,
    priority: i32,
    solmix: f64,
    solref: [f64; 2],
    solimp: [f64; 5],
    margin: f64,
    gap: f64,
    pub group: i32,
    rgba: [f64; 4],
    material: Option<String>,
    /// A mesh or height field is named.
    asset: bool,
    pub mass: Option<f64>,
    pub density: f64,
    shell: bool,
    fluid_ellipsoid: bool,
    fluid_coef: [f64; 5],
}

impl Default for GeomSpec {
    fn default() -> Self {
        Self {
            shape: Shape::Primitive(GeomKind::Sphere),
            pose: PoseSpec::default(),
            fromto: None,
            size: [0.0; 3],
            contype: 1,
            conaffinity: 1,
            condim: 3,
            friction: [1.0, 0.005, 0.0001],
            priority: 0,
            solmix: 1.0,
            solref: SOLREF,
            solimp: SOLIMP,
            margin: 0.0,
            gap: 0.0,
            group: 0,
            rgba: GREY,
            material: None,
            asset: false,
            mass: None,
            density: 1000.0,
            shell: false,
            fluid_ellipsoid: false,
            fluid_coef: [0.5, 0.25, 1.5, 1.0, 1.0],
        }
    }
}

impl GeomSpec {
    /// Overwrites what the element says.
    pub fn read(&mut self, e: &Element) -> Read<()> {
        e.keyword("type", SHAPE, &mut self.shape)?;
        self.pose.read(e)?;
        let mut ends = [0.0; 6];
        if e.array("fromto", &mut ends)? {
            self.fromto = Some(ends);
        }
        e.fill("size", 1, &mut self.size)?;
        e.unsigned("contype", &mut self.contype)?;
        e.unsigned("conaffinity", &mut self.conaffinity)?;
        e.integer("condim", &mut self.condim)?;
        e.fill("friction", 1, &mut self.friction)?;
        e.integer("priority", &mut self.priority)?;
        e.scalar("solmix", &mut self.solmix)?;
        e.fill("solref", 1, &mut self.solref)?;
        e.fill("solimp", 1, &mut self.solimp)?;
        e.scalar("margin", &mut self.margin)?;
        e.scalar("gap", &mut self.gap)?;
        e.integer("group", &mut self.group)?;
        e.array("rgba", &mut self.rgba)?;
        if let Some(material) = e.text("material") {
            self.material = Some(material.to_string());
        }
        self.asset |= e.text("mesh").is_some() || e.text("hfield").is_some();
        let mut mass = 0.0;
        if e.scalar("mass", &mut mass)? {
            self.mass = Some(mass);
        }
        e.scalar("density", &mut self.density)?;
        e.keyword("shellinertia", BOOL, &mut self.shell)?;
        e.keyword("fluidshape", FLUID_SHAPE, &mut self.fluid_ellipsoid)?;
        e.fill("fluidcoef", 1, &mut self.fluid_coef)?;
        Ok(())
    }

    /// The supported shape, or why it is not.
    pub fn primitive(&self, e: &Element) -> Read<GeomKind> {
        let what = match self.shape {
            Shape::Primitive(kind) if !self.asset => return Ok(kind),
            Shape::Primitive(_) => {
                let at = e.attr("mesh").or(e.attr("hfield")).map_or(e.at, |a| a.at);
                let why = "a shape fitted to a mesh is not supported; give its size instead";
                return Err(Fault::new(at, why));
            }
            Shape::Mesh => "mesh",
            Shape::HeightField => "height field (hfield)",
            Shape::Sdf => "signed distance field (sdf)",
        };
        Err(Fault::new(
            e.attr("type").map_or(e.at, |a| a.value_at(0)),
            format!(
                "a {what} geom that collides or has mass is not supported; use capsules, boxes, \
                 spheres, cylinders or ellipsoids (visual geoms with contype=\"0\" \
                 conaffinity=\"0\" on a body with <inertial> are skipped)"
            ),
        ))
    }

    /// The geom in its body's frame, and its inertia if it counts for the body.
    pub fn resolve(
        &self,
        e: &Element,
        frame: Pose,
        compiler: &Compiler,
        name: String,
        body: usize,
    ) -> Read<(Geom, Inertia)> {
        let at = |attr: &str| e.attr(attr).map_or(e.at, |a| a.value_at(0));
        let kind = self.primitive(e)?;
        if ![1, 3, 4, 6].contains(&self.condim) {
            let why = format!("condim {} is not one of 1, 3, 4, 6", self.condim);
            return Err(Fault::new(at("condim"), why));
        }
        let (pose, size) = match self.fromto {
            Some(ends) => self.between(kind, ends, e)?,
            None => (self.pose.resolve(compiler, e)?, self.size),
        };
        let size = used_size(kind, size, e)?;
        let mass = match self.mass {
            Some(mass) => mass,
            None => self.density * volume(kind, size, self.shell),
        };
        if mass < 0.0 || !mass.is_finite() {
            let attr = if self.mass.is_some() {
                "mass"
            } else {
                "density"
            };
            return Err(Fault::new(
                at(attr),
                format!("a geom cannot have mass {mass} kg"),
            ));
        }
        // A shape without volume has no mass either, whatever the file says.
        let mass = if volume(kind, size, self.shell) > EPS {
            mass
        } else {
            0.0
        };
        let pose = frame.then(pose);
        let geom = Geom {
            name,
            kind,
            body,
            pos: pose.pos,
            quat: pose.quat,
            size,
            contype: self.contype,
            conaffinity: self.conaffinity,
            condim: self.condim as u32,
            friction: self.friction,
            priority: self.priority,
            solmix: self.solmix,
            solref: self.solref,
            solimp: self.solimp,
            margin: self.margin,
            gap: self.gap,
            fluid: self
                .fluid_ellipsoid
                .then(|| super::fluid::interaction(kind, size, self.fluid_coef)),
            group: self.group,
            rgba: self.rgba.map(|c| c as f32),
        };
        let moments = if mass > 0.0 {
            moments(kind, size, mass, self.shell)
        } else {
            [0.0; 3]
        };
        let inertia = Inertia {
            mass,
            frame: pose,
            moments,
        };
        Ok((geom, inertia))
    }

    /// The material that gives the geom its colour, if it names none itself.
    pub fn material(&self) -> Option<&str> {
        self.material.as_deref().filter(|_| self.rgba == GREY)
    }

    /// Pose and size of a shape that reaches from one point to another.
    fn between(&self, kind: GeomKind, ends: [f64; 6], e: &Element) -> Read<(Pose, Vec3)> {
        let at = e.attr("fromto").map_or(e.at, |a| a.value_at(0));
        if !matches!(
            kind,
            GeomKind::Capsule | GeomKind::Cylinder | GeomKind::Ellipsoid | GeomKind::Box
        ) {
            return Err(Fault::new(
                at,
                "fromto is for capsule, cylinder, box and ellipsoid; set type=\"...\"",
            ));
        }
        if self.pose.pos != [0.0; 3] {
            return Err(Fault::new(
                at,
                "pos and fromto both place the geom; keep one",
            ));
        }
        let [a, b, c, d, f, g] = ends;
        // MuJoCo points the shape's z axis from the second end to the first.
        let along = [a - d, b - f, c - g];
        let length = along.iter().map(|x| x * x).sum::<f64>().sqrt();
        let direction = normalized(along)
            .ok_or_else(|| Fault::new(at, "the two points of fromto are the same"))?;
        let pose = Pose {
            pos: add([a, b, c], [d, f, g]).map(|x| 0.5 * x),
            quat: z_to(direction),
        };
        let radius = self.size[0];
        let size = match kind {
            GeomKind::Capsule | GeomKind::Cylinder => [radius, 0.5 * length, 0.0],
            _ => [radius, radius, 0.5 * length],
        };
        Ok((pose, size))
    }
}

/// Checks the sizes that count for the shape and clears the others.
fn used_size(kind: GeomKind, mut size: Vec3, e: &Element) -> Read<Vec3> {
    let at = e.attr("size").map_or(e.at, |a| a.value_at(0));
    if kind == GeomKind::Plane {
        if size[0] < 0.0 || size[1] < 0.0 || size[2] <= 0.0 {
            return Err(Fault::new(
                at,
                "a plane's size is two half-extents (0 is infinite) and a positive grid spacing, \
                 for example \"0 0 1\"",
            ));
        }
        return Ok(size);
    }
    let (count, needs) = match kind {
        GeomKind::Sphere => (1, "a radius"),
        GeomKind::Capsule | GeomKind::Cylinder => (2, "a radius and a half-length (or fromto)"),
        _ => (3, "three half-extents"),
    };
    if size[..count].iter().any(|s| *s <= 0.0) {
        return Err(Fault::new(
            at,
            format!("size must be positive: {needs} [m]"),
        ));
    }
    size[count..].fill(0.0);
    Ok(size)
}

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
