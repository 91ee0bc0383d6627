//! An episode as poses: small enough to keep whole, drawn when it is over.

use super::camera::{Aim, Camera, View};
use super::choice::Geoms;
use super::image::Image;
use super::math::{V3, v3};
use super::render::Renderer;
use super::scene::{Mark, Poses, Scene, Travel, corners};
use super::text;
use ostler_sim::model::looks::Looks;
use ostler_sim::{BatchEnv, Model};
use std::sync::{Mutex, PoisonError};

/// Pictures drawn before they are handed on.
pub(super) const CHUNK: usize = 32;

/// Goals are in the picture up to so many sizes of the robot from its root.
const FAR: f32 = 8.0;

/// One moment.
#[derive(Debug, Clone)]
struct Moment {
    poses: Poses,
    caption: String,
    /// First of an episode: the camera jumps.
    cut: bool,
}

/// A recording of one environment, one shot per control step.
#[derive(Debug, Clone)]
pub struct Clip {
    scene: Scene,
    step_dt: f64,
    shots: Vec<Moment>,
    aim: Aim,
}

/// Pictures in which nothing of the robot is seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unseen {
    /// How many.
    pub count: usize,
    /// Pictures in all.
    pub of: usize,
    /// Why, in the first of them.
    pub why: String,
}

impl Clip {
    /// An empty recording of the shapes chosen; `step_dt` is the control step (s).
    pub fn new(model: &Model, looks: &Looks, geoms: Geoms, step_dt: f64) -> Clip {
        let scene = Scene::new(model, looks, geoms);
        Clip { scene, step_dt, shots: Vec::new(), aim: Aim::default() }
    }

    /// The same of an environment; where its episodes follow a reference motion, a pale copy of
    /// the robot shows that.
    pub fn of(env: &BatchEnv, looks: &Looks, geoms: Geoms) -> Clip {
        let mut clip = Self::new(env.model(), looks, geoms, env.spec().step_dt);
        if env.compiled().reference.is_some() {
            clip.scene = clip.scene.with_ghost(env.model().bodies.len());
        }
        clip
    }

    /// The same with the camera's aim.
    pub fn aimed(self, aim: Aim) -> Clip {
        Clip { aim, ..self }
    }

    /// Adds a moment; `first` marks the first of an episode.
    pub fn push(&mut self, poses: Poses, caption: String, first: bool) {
        self.shots.push(Moment { poses, caption, cut: first });
    }

    /// Number of moments.
    pub fn len(&self) -> usize {
        self.shots.len()
    }

    /// Nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.shots.is_empty()
    }

    /// Control step (s).
    pub fn step_dt(&self) -> f64 {
        self.step_dt
    }

    /// Shapes that cannot be drawn, in words.
    pub fn missing(&self) -> Option<&str> {
        self.scene.missing.as_deref()
    }

    /// Draws the shots with these ascending indices, each `width` x `height`, and hands
    /// them on in order. Says in which nothing of the robot is seen.
    ///
    /// # Errors
    /// The first of `each`.
    pub fn render<E>(
        &self,
        picks: &[usize],
        width: usize,
        height: usize,
        mut each: impl FnMut(usize, &Image) -> Result<(), E>,
    ) -> Result<Unseen, E> {
        let aspect = width as f32 / height as f32;
        let camera = Camera::seeing(&self.scene, aspect, &self.visited()).aimed(self.aim);
        let light = camera.light();
        let views = self.views(&camera);
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(8);
        let blank = Image::new(width, height, [0; 3]);
        let mut images = vec![(blank, true); picks.len().min(CHUNK)];
        let mut unseen = Unseen { of: picks.len(), ..Unseen::default() };
        for chunk in picks.chunks(CHUNK) {
            let share = chunk.len().div_ceil(threads).max(1);
            let shares = Mutex::new(chunk.chunks(share).zip(images.chunks_mut(share)));
            let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
            let draw = || {
                let mut renderer = Renderer::new(&self.scene, light, width, height);
                while let Some((picks, images)) = next() {
                    for (&i, (image, seen)) in picks.iter().zip(images) {
                        if let (Some(shot), Some(view)) = (self.shots.get(i), views.get(i)) {
                            *seen = renderer.draw(&shot.poses, view, image);
                            caption(image, &shot.caption);
                        }
                    }
                }
            };
            std::thread::scope(|scope| {
                // Threads that the system does not grant are no loss but of time.
                for _ in 1..chunk.len().div_ceil(share) {
                    let _ = std::thread::Builder::new().spawn_scoped(scope, draw);
                }
                draw();
            });
            for (&i, (image, seen)) in chunk.iter().zip(&images) {
                if !seen {
                    unseen.count += 1;
                }
                if !seen && unseen.why.is_empty() {
                    unseen.why = self.why_unseen(i);
                }
                each(i, image)?;
            }
        }
        Ok(unseen)
    }

    /// Why nothing of the robot is seen in a shot, in words.
    fn why_unseen(&self, shot: usize) -> String {
        if let Some(why) = &self.scene.nothing {
            return why.clone();
        }
        let parts = self.scene.solids.iter().filter(|s| s.robot);
        let poses = self.shots.get(shot).map(|s| &s.poses);
        let frames = parts.filter_map(|s| Some(poses?.frame(s.body)?.then(&s.local)));
        let floor = &self.scene.floor;
        let mut heights = frames.map(|f| (f.pos - floor.pos).dot(floor.rot.c[2]));
        let why = match heights.next() {
            None => "its pose is not finite, or farther than 100 km away",
            Some(first) if heights.by_ref().fold(first, f32::max) < 0.0 => "it is below the floor",
            Some(_) => "it is outside of the picture, or behind something",
        };
        why.into()
    }

    /// Goals of all shots beside the robot in its initial pose, and where a robot that stays in place
    /// is in them; what is far would leave nothing of it to be seen, and is left out.
    fn visited(&self) -> Vec<V3> {
        let (scene, reach) = (&self.scene, FAR * self.scene.size());
        let of_shot = |shot: &Moment| {
            let root = shot.poses.frame(scene.root).map_or(scene.root_pos, |f| f.pos);
            let moved = match scene.travel {
                Travel::Bounded => v3(0.0, 0.0, 0.0),
                _ => scene.root_pos - root,
            };
            let goals = shot.poses.marks.iter().filter_map(move |mark| match mark {
                Mark::Goal(at) => Some(*at + moved),
                Mark::String(_) => None,
            });
            let parts = scene.solids.iter().filter(|s| s.robot && scene.travel == Travel::Bounded);
            let places = goals.chain(parts.flat_map(|solid| corners(solid, &shot.poses)));
            places.filter(|at| (*at - scene.root_pos).norm() <= reach).collect::<Vec<_>>()
        };
        self.shots.iter().flat_map(of_shot).collect()
    }

    /// Where the camera is at each shot.
    fn views(&self, camera: &Camera) -> Vec<View> {
        let body = self.aim.body.unwrap_or(self.scene.root);
        let root = |shot: &Moment| shot.poses.frame(body).map(|f| f.pos);
        let roots: Vec<_> = self.shots.iter().map(root).collect();
        let cuts: Vec<_> = self.shots.iter().map(|shot| shot.cut).collect();
        camera.path(&roots, &cuts, self.step_dt as f32, self.scene.ground())
    }
}

/// Writes a line into the upper left corner.
fn caption(image: &mut Image, line: &str) {
    let size = (image.height as f32 / 18.0).max(11.0);
    let (x, y) = (0.5 * size, 0.4 * size);
    let ink = text::ink(image, x, y, text::width(line, size), size);
    text::draw(image, line, x, y, size, ink);
}
