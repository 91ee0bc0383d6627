//! `<geom>`.

mod look;

use super::asset::Assets;
use super::compiler::Compiler;
use super::element::{Element, Fault, Read};
use super::inertia::{Inertia, moments, volume};
use super::joint::{SOLIMP, SOLREF};
use super::material::Materials;
use super::pose::PoseSpec;
use super::value::{BOOL, Keywords};
use crate::rotation::{EPS, Pose, add, normalized, z_to};
use crate::{Geom, GeomKind, Model, Vec3, WORDS};

/// Shapes MJCF knows; not all are supported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Primitive(GeomKind),
    Mesh,
    HeightField,
    Sdf,
}

const SHAPE: Keywords<Shape> = &{
    // The last one is MuJoCo's, in the place of the one that is a task's.
    let mut all = [("sdf", Shape::Sdf); WORDS.len()];
    let (mut i, mut own) = (0, 0);
    while i < WORDS.len() {
        let (word, kind) = WORDS[i];
        i += 1;
        all[own] = match kind {
            GeomKind::Mesh(_) => (word, Shape::Mesh),
            GeomKind::Hfield(_) => (word, Shape::HeightField),
            GeomKind::Terrain => continue,
            _ => (word, Shape::Primitive(kind)),
        };
        own += 1;
    }
    all
};

const FLUID_SHAPE: Keywords<bool> = &[("none", false), ("ellipsoid", true)];

/// MuJoCo's colour of a geom that names none.
pub(super) const GREY: [f64; 4] = [0.5, 0.5, 0.5, 1.0];

/// Attributes of a geom.
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
    adhesion: f64,
    pub group: i32,
    rgba: [f64; 4],
    material: Option<String>,
    pub mesh: Option<String>,
    hfield: Option<String>,
    fit_scale: f64,
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
            adhesion: 0.0,
            group: 0,
            rgba: GREY,
            material: None,
            mesh: None,
            hfield: None,
            fit_scale: 1.0,
            mass: None,
            density: 1000.0,
            shell: false,
            fluid_ellipsoid: false,
            fluid_coef: [0.5, 0.25, 1.5, 1.0, 1.0],
        }
    }
}

/// A shape with its place and size.
struct Form {
    kind: GeomKind,
    pose: Pose,
    size: Vec3,
    /// Volume (m^3), or area of shells (m^2).
    volume: f64,
    /// Principal moments of inertia per mass (m^2).
    unit_moments: Vec3,
}

impl Form {
    fn primitive(kind: GeomKind, pose: Pose, size: Vec3, shell: bool) -> Self {
        Self {
            kind,
            pose,
            size,
            volume: volume(kind, size, shell),
            unit_moments: moments(kind, size, 1.0, shell),
        }
    }
}

impl GeomSpec {
    /// Puts `prefix` before the names of its mesh, height field and material.
    pub(crate) fn prefix_assets(&mut self, prefix: &str) {
        let names = [&mut self.material, &mut self.mesh, &mut self.hfield];
        for name in names.into_iter().flatten() {
            name.insert_str(0, prefix);
        }
    }

    /// True for ellipsoids in the medium.
    pub(crate) fn feels_medium(&self) -> bool {
        self.fluid_ellipsoid
    }

    /// True for what neither collides nor feels the medium.
    pub(crate) fn is_only_seen(&self) -> bool {
        self.contype == 0 && self.conaffinity == 0 && !self.feels_medium()
    }

    /// Overwrites the values that the element sets.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
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
        e.scalar("adhesion", &mut self.adhesion)?;
        e.integer("group", &mut self.group)?;
        e.array("rgba", &mut self.rgba)?;
        if let Some(material) = e.text("material") {
            self.material = Some(material.to_string());
        }
        for (name, to) in [("mesh", &mut self.mesh), ("hfield", &mut self.hfield)] {
            if let Some(text) = e.text(name) {
                *to = Some(text.to_string());
            }
        }
        e.scalar("fitscale", &mut self.fit_scale)?;
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

    /// Shape, place and size, before the frames around it.
    fn form(
        &self,
        e: &Element,
        compiler: &Compiler,
        assets: &mut Assets,
        model: &mut Model,
    ) -> Read<Form> {
        let at = |attr: &str| e.attr(attr).map_or(e.at, |a| a.value_at(0));
        let fault = |attr: &str, why: &str| Err(Fault::new(at(attr), why));
        if let Some(ends) = self.fromto {
            if self.mesh.is_some() {
                return fault("fromto", "fromto and mesh both give the size; keep one");
            }
            let (pose, size) = between(self.primitive(), self.size, &self.pose, ends, e)?;
            return Ok(Form::primitive(
                self.primitive(),
                pose,
                used_size(self.primitive(), size, e)?,
                self.shell,
            ));
        }
        let pose = self.pose.resolve(compiler, e)?;
        match (self.shape, &self.mesh, &self.hfield) {
            (Shape::Mesh, Some(_), None) if self.shell => {
                fault("shellinertia", "a mesh says itself what is filled: <mesh inertia=\"shell\">")
            }
            (Shape::Mesh, Some(name), None) => {
                let (index, solid) = assets.mesh(name, at("mesh"), model)?;
                let [low, high] = solid.bounds;
                Ok(Form {
                    kind: GeomKind::Mesh(index),
                    pose: pose.then(solid.frame),
                    size: [0, 1, 2].map(|i| low[i].abs().max(high[i].abs())),
                    volume: solid.volume,
                    unit_moments: moments(GeomKind::Box, solid.inertia_box, 1.0, false),
                })
            }
            (Shape::HeightField, None, Some(name)) => {
                let index = assets.hfield(name, at("hfield"), &mut model.hfields)?;
                let [x, y, top, base] = model.hfields[index].size;
                Ok(Form {
                    kind: GeomKind::Hfield(index),
                    pose,
                    size: [x, y, 0.25 * top + 0.5 * base],
                    volume: 0.0,
                    unit_moments: [0.0; 3],
                })
            }
            (Shape::Primitive(GeomKind::Plane), Some(_), None) => {
                fault("mesh", "a plane cannot be fitted to a mesh")
            }
            (Shape::Primitive(kind), Some(name), None) => {
                let solid = assets.fitted(name, at("mesh"))?;
                let (size, centre) = solid.fit(kind, compiler.fit_aabb, self.fit_scale);
                let centre = Pose { pos: centre, ..Pose::IDENTITY };
                let size = used_size(kind, size, e)?;
                let pose = pose.then(solid.frame).then(centre);
                Ok(Form::primitive(kind, pose, size, self.shell))
            }
            (Shape::Primitive(kind), None, None) => {
                Ok(Form::primitive(kind, pose, used_size(kind, self.size, e)?, self.shell))
            }
            (Shape::Mesh, None, None) => {
                fault("type", "a mesh geom needs mesh=\"...\", the name of an asset")
            }
            (Shape::HeightField, None, None) => {
                fault("type", "an hfield geom needs hfield=\"...\", the name of an asset")
            }
            (Shape::Sdf, ..) => fault(
                "type",
                "a signed distance field (sdf) is not supported; use a mesh or primitives",
            ),
            (_, _, Some(_)) => fault("hfield", "hfield is for geoms with type=\"hfield\""),
            (Shape::HeightField, Some(_), None) => {
                fault("mesh", "mesh is not for geoms with type=\"hfield\"")
            }
        }
    }

    /// The shape of `fromto` geoms: others than primitives are refused before.
    fn primitive(&self) -> GeomKind {
        match self.shape {
            Shape::Primitive(kind) => kind,
            _ => GeomKind::Plane,
        }
    }

    /// The geom in its body's frame, and its inertia if it counts for the body.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn resolve(
        &self,
        e: &Element,
        frame: Pose,
        compiler: &Compiler,
        assets: &mut Assets,
        model: &mut Model,
        name: String,
        body: usize,
    ) -> Read<(Geom, Inertia)> {
        let at = |attr: &str| e.attr(attr).map_or(e.at, |a| a.value_at(0));
        if ![1, 3, 4, 6].contains(&self.condim) {
            let why = format!("condim {} is not one of 1, 3, 4, 6", self.condim);
            return Err(Fault::new(at("condim"), why));
        }
        let form = self.form(e, compiler, assets, model)?;
        let mass = match self.mass {
            Some(mass) => mass,
            None => self.density * form.volume,
        };
        if mass < 0.0 || !mass.is_finite() {
            let attr = if self.mass.is_some() { "mass" } else { "density" };
            return Err(Fault::new(at(attr), format!("a geom cannot have mass {mass} kg")));
        }
        // A shape without volume has no mass either, whatever the file says.
        let mass = if form.volume > EPS { mass } else { 0.0 };
        let pose = frame.then(form.pose);
        let geom = Geom {
            name,
            kind: form.kind,
            body,
            pos: pose.pos,
            quat: pose.quat,
            size: form.size,
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
            adhesion: self.adhesion,
            fluid: self
                .fluid_ellipsoid
                .then(|| super::fluid::interaction(form.kind, form.size, self.fluid_coef)),
            group: self.group,
            rgba: self.rgba.map(|c| c as f32),
            unseen: false,
        };
        let inertia = Inertia {
            mass,
            frame: pose,
            moments: if mass > 0.0 { form.unit_moments.map(|m| m * mass) } else { [0.0; 3] },
        };
        Ok((geom, inertia))
    }

    /// Takes its mesh's material if it names none itself.
    pub(crate) fn inherit_material(&mut self, assets: &Assets) {
        if let (None, Some(mesh)) = (&self.material, &self.mesh) {
            self.material = assets.material(mesh);
        }
    }

    /// Its alpha is 0: its material's, of these, if it has one, else its own.
    pub(crate) fn is_unseen(&self, materials: &Materials) -> bool {
        let material = self.material.as_ref().and_then(|m| materials.get(m));
        material.map_or(self.rgba[3], |m| m.rgba[3]) == 0.0
    }

    /// Its material.
    pub(crate) fn material(&self) -> Option<&str> {
        self.material.as_deref()
    }

    /// The material that gives the geom its colour, if it names none itself.
    pub(crate) fn colour_material(&self) -> Option<&str> {
        self.material().filter(|_| self.rgba == GREY)
    }
}

/// Pose and size of a geom's or site's shape that reaches from one point to another.
pub(super) fn between(
    kind: GeomKind,
    size: Vec3,
    pose: &PoseSpec,
    ends: [f64; 6],
    e: &Element,
) -> Read<(Pose, Vec3)> {
    let at = e.attr("fromto").map_or(e.at, |a| a.value_at(0));
    if !matches!(kind, GeomKind::Capsule | GeomKind::Cylinder | GeomKind::Ellipsoid | GeomKind::Box)
    {
        let why = "fromto is for capsule, cylinder, box and ellipsoid; set type=\"...\"";
        return Err(Fault::new(at, why));
    }
    if pose.pos != [0.0; 3] {
        let why = format!("pos and fromto both place the {}; keep one", e.name);
        return Err(Fault::new(at, why));
    }
    let [a, b, c, d, f, g] = ends;
    // MuJoCo points the shape's z axis from the second end to the first.
    let along = [a - d, b - f, c - g];
    let length = along.iter().map(|x| x * x).sum::<f64>().sqrt();
    let direction =
        normalized(along).ok_or_else(|| Fault::new(at, "the two points of fromto are the same"))?;
    let pose = Pose { pos: add([a, b, c], [d, f, g]).map(|x| 0.5 * x), quat: z_to(direction) };
    let radius = size[0];
    let size = match kind {
        GeomKind::Capsule | GeomKind::Cylinder => [radius, 0.5 * length, 0.0],
        _ => [radius, radius, 0.5 * length],
    };
    Ok((pose, size))
}

/// Checks the sizes that count for the shape and clears the others.
pub(super) fn used_size(kind: GeomKind, mut size: Vec3, e: &Element) -> Read<Vec3> {
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
        GeomKind::Ellipsoid | GeomKind::Box => (3, "three half-extents"),
        GeomKind::Plane | GeomKind::Mesh(_) | GeomKind::Hfield(_) | GeomKind::Terrain => {
            return Ok(size);
        }
    };
    if size[..count].iter().any(|s| *s <= 0.0) {
        return Err(Fault::new(at, format!("size must be positive: {needs} [m]")));
    }
    size[count..].fill(0.0);
    Ok(size)
}
