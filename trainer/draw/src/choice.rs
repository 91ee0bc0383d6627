//! Which of a model's shapes are drawn, and why none of the robot's is.

use super::ground::Ground;
use super::math::{Frame, V3};
use super::mesh::Mesh;
use super::paint::Coat;
use super::picture::Picture;
use super::shape::Shape;
use clap::ValueEnum;
use ostler_sim::Model;
use ostler_sim::model::looks::{LookKind, Looks, Paint, Surface};
use ostler_sim::model::terrain::Terrain;
use ostler_sim::model::{GeomKind, HField};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Which shapes are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Geoms {
    /// Shapes that are meant to be seen; of a body without any, those that collide
    #[default]
    Auto,
    /// Shapes that are meant to be seen: groups 0 to 2, not transparent
    Visual,
    /// Shapes that collide, of any group; meshes as their convex hulls
    Collision,
    /// Everything
    All,
}

/// Groups from here on are not meant to be seen, as in MuJoCo's viewer: collision shapes
/// of robots that have others to look at.
const HIDDEN_GROUP: i32 = 3;
/// Shapes that are less opaque than this are not seen.
const TRANSPARENT: f32 = 0.05;
/// Reasons that are told one by one.
const TOLD: usize = 3;

/// A shape to draw.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The body it moves with.
    pub body: usize,
    /// Its pose in the body's frame.
    pub local: Frame,
    /// Its shape.
    pub shape: Shape,
    /// Its colour as the file has it.
    pub rgba: [f32; 4],
    /// Its texture.
    pub coat: Option<Coat>,
    /// It is a terrain.
    pub terrain: bool,
}

/// Appearance of a candidate.
#[derive(Debug, Clone, Copy)]
enum Form<'a> {
    Primitive(GeomKind, [f64; 3]),
    Surface(&'a Surface),
    Hull(usize),
    Terrain(&'a HField),
    Ground(&'a Arc<Terrain>),
}

impl Form<'_> {
    fn is_terrain(self) -> bool {
        matches!(self, Form::Terrain(_) | Form::Ground(_))
    }
}

/// A shape that may be drawn.
#[derive(Debug, Clone, Copy)]
struct Candidate<'a> {
    body: usize,
    local: Frame,
    form: Form<'a>,
    rgba: [f32; 4],
    paint: Option<&'a Paint>,
    /// It is meant to be seen.
    meant: bool,
    collides: bool,
}

/// Shapes to draw, and notes about them.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// The shapes.
    pub shapes: Vec<Chosen>,
    /// Shapes that cannot be drawn, in words.
    pub missing: Option<String>,
    /// Why nothing of the robot is drawn, in words.
    pub nothing: Option<String>,
}

/// True for bodies of the robot: those that move, or, where none does, all but the world.
pub fn is_robot(model: &Model, body: usize) -> bool {
    let moves = |b: usize| model.bodies.get(b).is_some_and(|b| b.weld != 0);
    body != 0 && (moves(body) || !(1..model.bodies.len()).any(moves))
}

/// Chooses among all shapes of a model.
pub fn choose(model: &Model, looks: &Looks, geoms: Geoms) -> Choice {
    let all = candidates(model, looks, geoms);
    let mut known = Known { looks, meshes: BTreeMap::new(), pictures: BTreeMap::new() };
    let mut choice = Choice::default();
    let mut shown = vec![false; model.bodies.len()];
    let mut draw = |c: &Candidate<'_>, choice: &mut Choice, shown: &mut [bool]| {
        if let Some(drawn) = built(c, model, &mut known) {
            if let Some(shown) = shown.get_mut(c.body) {
                *shown = true;
            }
            choice.shapes.push(drawn);
        }
    };
    let wanted = |c: &&Candidate<'_>| match geoms {
        Geoms::Auto | Geoms::Visual => c.meant,
        Geoms::Collision => c.collides,
        Geoms::All => true,
    };
    for c in all.iter().filter(wanted) {
        draw(c, &mut choice, &mut shown);
    }
    if geoms == Geoms::Auto {
        let seen = shown.clone();
        let ground = choice.shapes.iter().any(|c| is_ground(c, model));
        for c in all.iter().filter(|c| c.collides && !c.meant) {
            let opaque = c.rgba[3] >= TRANSPARENT || is_robot(model, c.body);
            let plane = matches!(c.form, Form::Primitive(GeomKind::Plane, _));
            let floor = plane || c.form.is_terrain();
            // The floor under a robot is not left out because it is called collision.
            if floor && !ground || opaque && !seen.get(c.body).is_some_and(|s| *s) {
                draw(c, &mut choice, &mut shown);
            }
        }
    }
    let robot = |body: usize| is_robot(model, body);
    choice.missing = missing(looks, geoms);
    if !choice.shapes.iter().any(|c| robot(c.body)) {
        let own = all.iter().filter(|c| robot(c.body));
        let collides = own.clone().any(|c| c.collides);
        let why = match (own.count(), geoms) {
            (0, _) if looks.missing.is_empty() => "it has no shapes",
            (0, _) => "none of its shapes can be drawn",
            (_, Geoms::Visual) if collides => {
                "all its shapes are transparent or of group 3 and above; --geoms collision draws \
                 what collides"
            }
            (_, Geoms::Collision) => "none of its shapes collides; --geoms visual draws the others",
            (_, Geoms::All) => "none of its shapes can be drawn",
            _ => {
                "all its shapes are transparent or of group 3 and above, and none collides; \
                  --geoms all draws them"
            }
        };
        choice.nothing = Some(why.into());
    }
    choice
}

/// Something that a robot can stand on anywhere: a plane that faces up, or a terrain.
fn is_ground(c: &Chosen, model: &Model) -> bool {
    let fixed = !is_robot(model, c.body);
    let level = matches!(c.shape, Shape::Plane(_)) && c.local.rot.c[2].z > 0.5;
    fixed && (c.terrain || level)
}

fn candidates<'a>(model: &'a Model, looks: &'a Looks, geoms: Geoms) -> Vec<Candidate<'a>> {
    let mut paired = vec![false; model.geoms.len()];
    for geom in model.pairs.iter().flat_map(|p| [p.geom1, p.geom2]) {
        if let Some(paired) = paired.get_mut(geom) {
            *paired = true;
        }
    }
    let looked_at = |body: usize| looks.shapes.iter().any(|l| l.body == body);
    let visible = |group: i32, rgba: [f32; 4]| group < HIDDEN_GROUP && rgba[3] >= TRANSPARENT;
    let mut all = Vec::with_capacity(model.geoms.len() + looks.shapes.len());
    for (i, geom) in model.geoms.iter().enumerate() {
        let collides = geom.collides() || paired.get(i) == Some(&true);
        let form = match geom.kind {
            GeomKind::Hfield(i) => match model.hfields.get(i) {
                Some(field) => Form::Terrain(field),
                None => continue,
            },
            GeomKind::Terrain => match &model.terrain {
                Some(terrain) => Form::Ground(terrain),
                None => continue,
            },
            GeomKind::Mesh(i) => match looks.meshes.get(i) {
                Some(surface) if geoms != Geoms::Collision => Form::Surface(surface),
                _ => Form::Hull(i),
            },
            kind => Form::Primitive(kind, geom.size),
        };
        let instead = looks.urdf && collides && looked_at(geom.body);
        all.push(Candidate {
            body: geom.body,
            local: Frame::new(geom.pos, geom.quat),
            form,
            rgba: geom.rgba,
            paint: looks.painted.get(&geom.name),
            meant: visible(geom.group, geom.rgba) && !instead,
            collides,
        });
    }
    for look in &looks.shapes {
        let form = match look.kind {
            LookKind::Primitive(kind) => Form::Primitive(kind, look.size),
            LookKind::Surface(i) => match looks.surfaces.get(i) {
                Some(surface) => Form::Surface(surface),
                None => continue,
            },
            LookKind::HField(i) => match looks.hfields.get(i) {
                Some(field) => Form::Terrain(field),
                None => continue,
            },
        };
        all.push(Candidate {
            body: look.body,
            local: Frame::new(look.pos, look.quat),
            form,
            rgba: look.rgba,
            paint: look.paint.as_ref(),
            meant: visible(look.group, look.rgba),
            collides: false,
        });
    }
    all
}

/// A mesh, and what its triangles are moved by.
type Placed = (Arc<Mesh>, V3);

/// What was built and may be needed again; four legs share a mesh.
struct Known<'a> {
    looks: &'a Looks,
    /// By where their triangles lie.
    meshes: BTreeMap<(bool, usize), Option<Placed>>,
    /// By number.
    pictures: BTreeMap<usize, Option<Arc<Picture>>>,
}

impl Known<'_> {
    fn coat(&mut self, paint: &Paint, rgba: [f32; 4], shape: &Shape) -> Option<Coat> {
        let texture = self.looks.textures.get(paint.texture)?;
        let make = || Picture::new(texture).map(Arc::new);
        let picture = self.pictures.entry(paint.texture).or_insert_with(make);
        let [r, g, b, _] = rgba;
        Some(Coat::new(picture.clone()?, paint, [r, g, b], shape))
    }
}

fn built(c: &Candidate<'_>, model: &Model, known: &mut Known<'_>) -> Option<Chosen> {
    let mut mesh = |key, make: &dyn Fn() -> Option<(Mesh, V3)>| {
        let made = || make().map(|(mesh, centre)| (Arc::new(mesh), centre));
        known.meshes.entry(key).or_insert_with(made).clone()
    };
    let (shape, centre) = match c.form {
        Form::Primitive(kind, size) => (Shape::new(kind, size)?, V3::default()),
        Form::Surface(surface) => {
            let key = (false, std::ptr::from_ref(surface).addr());
            let (mesh, centre) = mesh(key, &|| Mesh::of(surface))?;
            (Shape::Mesh(mesh), centre)
        }
        Form::Hull(i) => {
            let hull = model.meshes.get(i)?;
            let (mesh, centre) = mesh((true, i), &|| Mesh::new(&hull.vertices, &hull.faces))?;
            (Shape::Mesh(mesh), centre)
        }
        Form::Terrain(field) => {
            let key = (false, std::ptr::from_ref(field).addr());
            let (mesh, centre) = mesh(key, &|| Mesh::terrain(field))?;
            (Shape::Mesh(mesh), centre)
        }
        Form::Ground(terrain) => (Shape::Ground(Arc::new(Ground::new(terrain))), V3::default()),
    };
    let paint = c.paint.filter(|_| !matches!(c.form, Form::Hull(_)));
    Some(Chosen {
        body: c.body,
        local: Frame { pos: c.local.point(centre), ..c.local },
        coat: paint.and_then(|paint| known.coat(paint, c.rgba, &shape)),
        shape,
        rgba: c.rgba,
        terrain: c.form.is_terrain(),
    })
}

/// `2 shapes cannot be drawn: trunk (robot.xml:3:5: ...); ...`, and the same of textures.
fn missing(looks: &Looks, geoms: Geoms) -> Option<String> {
    let shapes = looks.missing.iter().filter(|_| geoms != Geoms::Collision);
    let shapes = shapes.map(|m| format!("{} ({})", m.name, m.why));
    let plain = looks.plain.iter();
    let plain = plain.map(|p| format!("{} ({})", p.name, p.why));
    let small = looks.textures.iter().filter_map(|t| {
        let [w, h] = t.reduced?;
        Some(format!("{} ({w} x {h} pixels)", t.name))
    });
    let small = told(small.collect(), "texture is", "textures are", "drawn smaller");
    let all = [
        told(shapes.collect(), "shape", "shapes", "cannot be drawn"),
        told(plain.collect(), "texture", "textures", "cannot be drawn"),
        small,
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(". "))
}

/// `a shape cannot be drawn: trunk (...)`, of many the first ones.
fn told(all: Vec<String>, one: &str, many: &str, what: &str) -> Option<String> {
    let count = match all.len() {
        0 => return None,
        1 => format!("a {one}"),
        n => format!("{n} {many}"),
    };
    let mut told: Vec<String> = Vec::new();
    for line in all {
        if !told.contains(&line) {
            told.push(line);
        }
    }
    let more = match told.len().saturating_sub(TOLD) {
        0 => String::new(),
        n => format!("; and {n} more"),
    };
    told.truncate(TOLD);
    Some(format!("{count} {what}: {}{more}", told.join("; ")))
}
