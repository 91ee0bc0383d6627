//! Pictures by ray casting: each solid within its bounds on the screen, the ground
//! and the sky wherever nothing stands before them.

use super::camera::View;
use super::floor::{Shadow, checks};
use super::image::Image;
use super::math::{Frame, V3, v3};
use super::scene::{Mark, Poses, Scene, Solid, linear};
use super::shape::{Shape, Touch};

/// Samples along each side of a pixel.
const AA: usize = 2;

/// Draws pictures of one size of one scene; all buffers are kept.
#[derive(Debug)]
pub struct Renderer<'a> {
    scene: &'a Scene,
    light: V3,
    width: usize,
    height: usize,
    /// Nearest hit of each sample: depth, infinite for none.
    depth: Vec<f32>,
    /// Its colour, linear light.
    color: Vec<V3>,
    /// It is on the robot.
    robot: Vec<bool>,
    /// Solids of this picture in the world.
    placed: Vec<Placed>,
    /// The scene's, and behind them this picture's marks.
    solids: Vec<Solid>,
    shadow: Shadow,
    palette: Palette,
    to_srgb: Vec<u8>,
}

/// A solid in the world.
#[derive(Debug, Clone, Copy)]
struct Placed {
    frame: Frame,
    /// Its number among the renderer's.
    at: usize,
    radius: f32,
}

/// Colours of everything that is not the robot, linear light.
#[derive(Debug, Clone, Copy)]
struct Palette {
    light_check: V3,
    dark_check: V3,
    horizon: V3,
    zenith: V3,
}

/// What a pixel shows of a ground.
#[derive(Debug, Clone, Copy)]
struct Face {
    depth: f32,
    normal: V3,
    /// Distance of its plane from the origin (m).
    offset: f32,
    color: V3,
}

impl Face {
    /// Two pixels show the same plane in nearly the same light.
    fn same(a: Option<Self>, b: Option<Self>) -> bool {
        match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                let near = |a: V3, b: V3, most: f32| (a - b).norm() < most;
                near(a.normal, b.normal, 1e-3)
                    && (a.offset - b.offset).abs() < 1e-3
                    && near(a.color, b.color, 0.04)
            }
            _ => false,
        }
    }
}

/// A rectangle of samples, ends excluded.
struct Rect {
    x: std::ops::Range<usize>,
    y: std::ops::Range<usize>,
}

impl<'a> Renderer<'a> {
    /// For pictures of `width` x `height` pixels lit from `light` (unit, towards it).
    pub fn new(scene: &'a Scene, light: V3, width: usize, height: usize) -> Renderer<'a> {
        let samples = AA * AA * width * height;
        Renderer {
            scene,
            light,
            width,
            height,
            depth: vec![f32::INFINITY; samples],
            color: vec![v3(0.0, 0.0, 0.0); samples],
            robot: vec![false; samples],
            placed: Vec::with_capacity(scene.solids.len()),
            solids: scene.solids.clone(),
            shadow: Shadow::default(),
            palette: Palette {
                light_check: linear([0.80, 0.83, 0.87]),
                dark_check: linear([0.66, 0.70, 0.76]),
                horizon: linear([0.90, 0.94, 0.98]),
                zenith: linear([0.42, 0.62, 0.86]),
            },
            to_srgb: (0..=4095).map(srgb).collect(),
        }
    }

    /// Draws one picture over what `image` holds; true if something of the robot is seen
    /// in it.
    pub fn draw(&mut self, poses: &Poses, view: &View, image: &mut Image) -> bool {
        self.place(poses);
        let solids = self.placed.iter().map(|p| (&p.frame, &self.solids[p.at]));
        let solids = solids.filter(|(_, solid)| !solid.ground).map(|(f, solid)| (f, &solid.shape));
        self.shadow.cast(&self.scene.floor, self.light, solids);
        self.depth.fill(f32::INFINITY);
        self.robot.fill(false);
        for k in 0..self.placed.len() {
            self.solid(k, view);
        }
        self.resolve(view, image);
        self.robot.contains(&true)
    }

    /// Puts the solids where the poses say; those whose pose is not finite are left out.
    fn place(&mut self, poses: &Poses) {
        let fixed = self.scene.solids.len();
        self.solids.truncate(fixed);
        self.solids.extend(poses.marks.iter().filter_map(Mark::solid));
        self.placed.clear();
        for (at, solid) in self.solids.iter().enumerate() {
            // Marks lie in the world.
            let frame = match at < fixed {
                true => poses.frame(solid.body).map(|body| body.then(&solid.local)),
                false => Some(solid.local),
            };
            if let Some(frame) = frame {
                self.placed.push(Placed { frame, at, radius: solid.shape.radius() });
            }
        }
    }

    /// What was placed as number `k`.
    fn what(&self, k: usize) -> &Solid {
        &self.solids[self.placed[k].at]
    }

    /// Casts rays at solid `k` and keeps the hits that are nearest.
    fn solid(&mut self, k: usize, view: &View) {
        if matches!(self.what(k).shape, Shape::Ground(_)) {
            return self.ground(k, view);
        }
        let (w, h) = (AA * self.width, AA * self.height);
        let Some(rect) = bounds(&self.placed[k], self.what(k), view, w, h) else {
            return;
        };
        for y in rect.y {
            for x in rect.x.clone() {
                self.sample(k, view, [x, y]);
            }
        }
    }

    /// Casts a ray at solid `k` through a sample and keeps the hit if it is the nearest.
    fn sample(&mut self, k: usize, view: &View, [x, y]: [usize; 2]) {
        let (w, h) = (AA * self.width, AA * self.height);
        let ray = view.ray(x as f32 + 0.5, y as f32 + 0.5, w as f32, h as f32);
        let Some(touch) = self.touch(k, view, ray) else {
            return;
        };
        let at = y * w + x;
        if touch.t < self.depth[at] {
            self.depth[at] = touch.t;
            self.robot[at] = self.what(k).robot;
            self.color[at] = self.seen(k, view, ray, &touch);
        }
    }

    /// Casts rays at solid `k`, a ground, which fills the picture: one through the middle of each
    /// pixel, and those of its samples where what it meets is no part of what the pixels before
    /// and above show.
    fn ground(&mut self, k: usize, view: &View) {
        let [w, h] = [self.width, self.height];
        let mut above: Vec<Option<Face>> = vec![None; w];
        for y in 0..h {
            let mut before = None;
            for (x, above) in above.iter_mut().enumerate() {
                let ray = view.ray(x as f32 + 0.5, y as f32 + 0.5, w as f32, h as f32);
                let face = self.touch(k, view, ray).map(|touch| Face {
                    depth: touch.t,
                    normal: touch.normal,
                    offset: touch.normal.dot(view.eye + ray * touch.t),
                    color: self.seen(k, view, ray, &touch),
                });
                let same = Face::same(face, before) && Face::same(face, *above);
                let samples = (0..AA * AA).map(|s| [AA * x + s % AA, AA * y + s / AA]);
                for [x, y] in samples {
                    let at = y * AA * w + x;
                    match face {
                        _ if !same => self.sample(k, view, [x, y]),
                        Some(face) if face.depth < self.depth[at] => {
                            (self.depth[at], self.color[at]) = (face.depth, face.color);
                            self.robot[at] = false;
                        }
                        _ => {}
                    }
                }
                (before, *above) = (face, face);
            }
        }
    }

    /// Where a ray meets solid `k` above the floor.
    fn touch(&self, k: usize, view: &View, ray: V3) -> Option<Touch> {
        let (frame, solid) = (&self.placed[k].frame, self.what(k));
        let touch =
            solid.shape.touch(frame.rot.inverse(view.eye - frame.pos), frame.rot.inverse(ray))?;
        self.floor_depth(view.eye, ray).is_none_or(|f| touch.t < f).then_some(touch)
    }

    /// The colour of solid `k` where a ray meets it.
    fn seen(&self, k: usize, view: &View, ray: V3, touch: &Touch) -> V3 {
        let (frame, solid) = (&self.placed[k].frame, self.what(k));
        let t = touch.t;
        let local = frame.rot.inverse(ray);
        let place = || frame.rot.inverse(view.eye - frame.pos) + local * t;
        let across = self.across(t, AA * self.height);
        let base = match &solid.coat {
            Some(coat) => coat.color(&solid.shape, touch, place(), local.unit(), across),
            None if matches!(solid.shape, Shape::Ground(_)) => {
                let along = across / touch.normal.dot(local.unit()).abs().max(0.02);
                self.checked(place(), touch.normal, along)
            }
            None => solid.color,
        };
        let n = frame.rot.apply(touch.normal);
        let color = self.shade(k, base, view.eye + ray * t, n, ray.unit());
        match solid.ground {
            true => self.hazy(color, t * ray.norm()),
            false => color,
        }
    }

    /// How wide (m) one of `rows` rows of the picture is in depth `t`.
    fn across(&self, t: f32, rows: usize) -> f32 {
        t * 0.72 / rows as f32
    }

    /// Light that leaves point `p` of solid `k`, of colour `base` and with normal `n`, against
    /// the ray `d`.
    fn shade(&self, k: usize, base: V3, p: V3, n: V3, d: V3) -> V3 {
        let facing = n.dot(self.light);
        let lit = facing > 0.0 && !self.blocked(k, p);
        let sun = if lit { facing } else { 0.0 };
        // Light from the sky above and, less, from the ground below.
        let up = 0.5 + 0.5 * n.dot(self.scene.floor.rot.c[2]);
        let ambient = v3(0.24, 0.23, 0.22).lerp(v3(0.46, 0.50, 0.56), up);
        let mut out = base.times(ambient + v3(0.78, 0.75, 0.70) * sun);
        if lit {
            let half = (self.light - d).unit();
            out += v3(1.0, 1.0, 1.0) * (0.22 * n.dot(half).max(0.0).powi(48));
        }
        // Edges seen at a grazing angle catch the sky.
        let graze = (1.0 + n.dot(d)).clamp(0.0, 1.0);
        out + self.palette.horizon * (0.10 * graze * graze * graze)
    }

    /// Share of a colour of the ground that remains `away` from the eye (m).
    fn hazy(&self, color: V3, away: f32) -> V3 {
        let far = away / (9.0 * self.scene.size().max(0.4));
        color.lerp(self.palette.horizon, 1.0 - (-far * far).exp())
    }

    /// Another solid stands between point `p` of solid `k` and the light. Nearby
    /// ends of the same limb overlap, so the ray starts a little outside.
    fn blocked(&self, k: usize, p: V3) -> bool {
        self.placed.iter().enumerate().any(|(i, other)| {
            let c = other.frame.pos - p;
            let along = c.dot(self.light);
            if i == k
                || self.what(i).ground
                || along < 0.0
                || c.dot(c) - along * along > other.radius * other.radius
            {
                return false;
            }
            let rot = &other.frame.rot;
            let met = &self.what(i).shape;
            // Meshes of one limb touch along whole faces.
            let gap = match met {
                Shape::Mesh(_) => 0.01 * self.placed[k].radius.min(other.radius),
                _ => 0.0,
            };
            let from = self.light * gap - c;
            met.blocks(rot.inverse(from), rot.inverse(self.light))
        })
    }

    /// Where a ray meets the floor's upper side.
    fn floor_depth(&self, eye: V3, ray: V3) -> Option<f32> {
        let floor = &self.scene.floor;
        let down = ray.dot(floor.rot.c[2]);
        let t = (floor.pos - eye).dot(floor.rot.c[2]) / down;
        if !(down < 0.0 && t > 0.0) {
            return None;
        }
        let p = floor.rot.inverse(eye + ray * t - floor.pos);
        let [hx, hy] = self.scene.floor_half;
        (p.x.abs() <= hx && p.y.abs() <= hy).then_some(t)
    }

    /// The side of the ground's checks (m).
    fn check(&self) -> f32 {
        2.0f32.powf((0.45 * self.scene.size()).log2().round()).clamp(0.125, 4.0)
    }

    /// The colour of the ground's checks at a place of which `seen` (m) is seen as one; walls
    /// have none.
    fn checked(&self, p: V3, normal: V3, seen: f32) -> V3 {
        let side = self.check();
        let [x, y, wide] = [p.x / side, p.y / side, seen / side];
        let mix = if normal.z > 0.0 { 0.5 + 0.5 * checks(x, y, wide, wide) } else { 0.5 };
        self.palette.dark_check.lerp(self.palette.light_check, mix)
    }

    /// The colour seen along `ray` where no solid is.
    fn background(&self, eye: V3, ray: V3, cell: f32) -> V3 {
        let palette = &self.palette;
        let Some(t) = self.floor_depth(eye, ray) else {
            let up = ray.unit().dot(self.scene.floor.rot.c[2]).max(0.0);
            return palette.horizon.lerp(palette.zenith, (2.5 * up).min(1.0));
        };
        let floor = &self.scene.floor;
        let p = floor.rot.inverse(eye + ray * t - floor.pos);
        // The area of the floor under one pixel: across, and longer along the ray.
        let d = floor.rot.inverse(ray);
        let across = self.across(t, self.height);
        if let Some(coat) = &self.scene.floor_coat {
            let touch = Touch { t, normal: v3(0.0, 0.0, 1.0), coords: None };
            let shape = Shape::Plane(self.scene.floor_half);
            let ground = coat.color(&shape, &touch, p, floor.rot.inverse(ray).unit(), across);
            let shaded = ground * (1.0 - 0.58 * self.shadow.at(p.x, p.y));
            return self.hazy(shaded, t * ray.norm());
        }
        let along = across * (t * ray.norm() / (floor.rot.inverse(eye - floor.pos).z).max(1e-3));
        let flat = (d.x * d.x + d.y * d.y).sqrt().max(1e-6);
        let (cx, cy) = ((d.x / flat).abs(), (d.y / flat).abs());
        let wx = (across * cy + along * cx) / cell;
        let wy = (across * cx + along * cy) / cell;
        let mix = 0.5 + 0.5 * checks(p.x / cell, p.y / cell, wx, wy);
        let ground = palette.dark_check.lerp(palette.light_check, mix);
        let shaded = ground * (1.0 - 0.58 * self.shadow.at(p.x, p.y));
        self.hazy(shaded, t * ray.norm())
    }

    /// Samples to pixels.
    fn resolve(&self, view: &View, image: &mut Image) {
        let (w, h) = (self.width as f32, self.height as f32);
        let cell = self.check();
        for y in 0..self.height {
            for x in 0..self.width {
                let mut sum = v3(0.0, 0.0, 0.0);
                let mut misses = 0;
                for s in 0..AA * AA {
                    let at = (AA * y + s / AA) * AA * self.width + AA * x + s % AA;
                    if self.depth[at] < f32::INFINITY {
                        sum += self.color[at];
                    } else {
                        misses += 1;
                    }
                }
                if misses > 0 {
                    let ray = view.ray(x as f32 + 0.5, y as f32 + 0.5, w, h);
                    sum += self.background(view.eye, ray, cell) * misses as f32;
                }
                let c = sum * (1.0 / (AA * AA) as f32);
                let byte = |c: f32| self.to_srgb[(c.clamp(0.0, 1.0) * 4095.0 + 0.5) as usize];
                image.put(x, y, [byte(c.x), byte(c.y), byte(c.z)]);
            }
        }
    }
}

/// The samples that the box around a solid can cover; `None` for none.
fn bounds(
    placed: &Placed,
    solid: &Solid,
    view: &View,
    width: usize,
    height: usize,
) -> Option<Rect> {
    let half = solid.shape.half();
    let everywhere = Rect { x: 0..width, y: 0..height };
    if placed.radius == f32::INFINITY {
        return Some(everywhere);
    }
    let (mut low, mut high) = ([f32::INFINITY; 2], [f32::NEG_INFINITY; 2]);
    for k in 0..8 {
        let sign = |bit: i32| if k & bit == 0 { -1.0 } else { 1.0 };
        let corner = placed.frame.point(half.times(v3(sign(1), sign(2), sign(4))));
        let (x, y, depth) = view.project(corner, width as f32, height as f32);
        if depth < 1e-3 {
            // Reaches behind the camera: its outline is not that of its corners.
            let ahead = (placed.frame.pos - view.eye).dot(view.forward);
            return (ahead > -placed.radius).then_some(everywhere);
        }
        low = [low[0].min(x), low[1].min(y)];
        high = [high[0].max(x), high[1].max(y)];
    }
    let range = |a: f32, b: f32, n: usize| {
        (a.floor().clamp(0.0, n as f32) as usize)..(b.ceil().clamp(0.0, n as f32) as usize)
    };
    Some(Rect { x: range(low[0], high[0], width), y: range(low[1], high[1], height) })
}

/// Linear light in 4096ths as an sRGB byte.
fn srgb(i: usize) -> u8 {
    let c = i as f32 / 4095.0;
    let s = if c <= 0.003_130_8 { 12.92 * c } else { 1.055 * c.powf(1.0 / 2.4) - 0.055 };
    (255.0 * s + 0.5) as u8
}
