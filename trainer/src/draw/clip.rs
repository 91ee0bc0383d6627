//! What happened, as poses: small enough to keep whole, drawn when it is over.

use super::camera::{Camera, View};
use super::image::Image;
use super::render::Renderer;
use super::scene::{Poses, Scene};
use super::text;
use ostler_sim::Model;

/// Pictures drawn before they are handed on.
const CHUNK: usize = 32;

/// One moment.
#[derive(Debug, Clone)]
struct Shot {
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
    shots: Vec<Shot>,
}

impl Clip {
    /// An empty recording; `step_dt` is the control step (s).
    pub fn new(model: &Model, step_dt: f64) -> Clip {
        Clip {
            scene: Scene::new(model),
            step_dt,
            shots: Vec::new(),
        }
    }

    /// Adds a moment; `first` marks the first of an episode.
    pub fn push(&mut self, poses: Poses, caption: String, first: bool) {
        self.shots.push(Shot {
            poses,
            caption,
            cut: first,
        });
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

    /// Draws the shots with these ascending indices, each `width` x `height`, and hands
    /// them on in order. Stops at the first error of `each`.
    pub fn render<E>(
        &self,
        picks: &[usize],
        width: usize,
        height: usize,
        mut each: impl FnMut(usize, &Image) -> Result<(), E>,
    ) -> Result<(), E> {
        let camera = Camera::new(&self.scene, width as f32 / height as f32);
        let light = camera.light();
        let views = self.views(&camera);
        let threads = std::thread::available_parallelism()
            .map_or(1, |n| n.get())
            .min(8);
        let blank = Image::new(width, height, [0; 3]);
        let mut images = vec![blank; picks.len().min(CHUNK)];
        for chunk in picks.chunks(CHUNK) {
            let share = chunk.len().div_ceil(threads).max(1);
            let draw = |picks: &[usize], images: &mut [Image]| {
                let mut renderer = Renderer::new(&self.scene, light, width, height);
                for (&i, image) in picks.iter().zip(images) {
                    if let (Some(shot), Some(view)) = (self.shots.get(i), views.get(i)) {
                        renderer.draw(&shot.poses, view, image);
                        caption(image, &shot.caption);
                    }
                }
            };
            std::thread::scope(|scope| {
                let draw = &draw;
                for (k, (picks, images)) in chunk
                    .chunks(share)
                    .zip(images.chunks_mut(share))
                    .enumerate()
                {
                    // The first share is this thread's own, below.
                    if k > 0 {
                        scope.spawn(move || draw(picks, images));
                    } else {
                        draw(picks, images);
                    }
                }
            });
            for (&i, image) in chunk.iter().zip(&images) {
                each(i, image)?;
            }
        }
        Ok(())
    }

    /// Where the camera is at each shot.
    fn views(&self, camera: &Camera) -> Vec<View> {
        let root = |shot: &Shot| shot.poses.frame(self.scene.root).map(|f| f.pos);
        let roots: Vec<_> = self.shots.iter().map(root).collect();
        let cuts: Vec<_> = self.shots.iter().map(|shot| shot.cut).collect();
        camera.path(&roots, &cuts, self.step_dt as f32)
    }
}

/// Writes a line into the upper left corner.
fn caption(image: &mut Image, line: &str) {
    let size = (image.height as f32 / 18.0).max(11.0);
    text::draw(image, line, 0.5 * size, 0.4 * size, size, [38, 50, 66]);
}
