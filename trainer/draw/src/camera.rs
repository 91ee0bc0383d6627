//! Where the picture is taken from: a pinhole camera that follows the robot.

use super::ground::Ground;
use super::math::{V3, v3};
use super::scene::{Scene, Travel, bounds};

/// Half of the vertical field of view, as a tangent.
const TAN: f32 = 0.36;

/// Part of the picture's half-width and half-height that the robot may fill.
const FILL: f32 = 0.78;

/// Time constant of the smoothing of the camera's path (s).
const LAG: f32 = 0.25;

/// Height of the camera above a ground (m), at least.
const CLEAR: f32 = 0.3;
/// The steepest view down that is taken for that (rad), and steps to it.
const STEEP: f32 = -1.3;
const TILT: f32 = 0.1;

/// One picture's camera.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct View {
    /// Where it is.
    pub eye: V3,
    /// Where it looks, unit.
    pub forward: V3,
    /// The picture's right, unit.
    pub right: V3,
    /// The picture's up, unit.
    pub up: V3,
}

impl View {
    /// Looks at `target` from `distance` (m); `azimuth` and `elevation` (rad) are
    /// those of the direction of sight, as in MuJoCo: azimuth from +x to +y,
    /// elevation negative when looking down.
    pub fn look_at(target: V3, azimuth: f32, elevation: f32, distance: f32) -> View {
        let (sa, ca) = azimuth.sin_cos();
        let (se, ce) = elevation.sin_cos();
        let forward = v3(ca * ce, sa * ce, se);
        let right = v3(sa, -ca, 0.0);
        View { eye: target - forward * distance, forward, right, up: right.cross(forward) }
    }

    /// Direction through the point (x, y) of a picture of `width` x `height`
    /// pixels, y down; its part along [`forward`](Self::forward) is 1.
    pub fn ray(&self, x: f32, y: f32, width: f32, height: f32) -> V3 {
        let (sx, sy) = (2.0 * x / width - 1.0, 1.0 - 2.0 * y / height);
        self.forward + self.right * (sx * TAN * width / height) + self.up * (sy * TAN)
    }

    /// Where a point appears, in pixels, and its depth (m); the reverse of
    /// [`ray`](Self::ray). Only points of positive depth can be seen.
    pub fn project(&self, p: V3, width: f32, height: f32) -> (f32, f32, f32) {
        let c = p - self.eye;
        let depth = c.dot(self.forward);
        let scale = 0.5 * height / (TAN * depth);
        (0.5 * width + c.dot(self.right) * scale, 0.5 * height - c.dot(self.up) * scale, depth)
    }
}

/// What the camera looks at, and from how far: the whole robot unless given.
#[derive(Debug, Clone, Copy, Default)]
pub struct Aim {
    /// A body, by its number.
    pub body: Option<usize>,
    /// Distance of the camera (m).
    pub distance: Option<f32>,
}

/// A camera that keeps a robot in view.
#[derive(Debug, Clone)]
pub struct Camera {
    azimuth: f32,
    elevation: f32,
    distance: f32,
    /// From the root to the target.
    offset: V3,
    follow: bool,
    /// Point to look at while the root is nowhere.
    target: V3,
}

impl Camera {
    /// Chooses direction and distance so that the initial pose fills a picture
    /// with this width to height.
    pub fn new(scene: &Scene, aspect: f32) -> Camera {
        Camera::seeing(scene, aspect, &[])
    }

    /// The same for a picture that also has `goals`, points beside the robot in its initial pose.
    pub(crate) fn seeing(scene: &Scene, aspect: f32, goals: &[V3]) -> Camera {
        let (azimuth, elevation): (f32, f32) = match scene.travel {
            Travel::Bounded => (90.0, -8.0),
            Travel::Planar => (90.0, -9.0),
            Travel::Free => (125.0, -20.0),
        };
        let seen: Vec<V3> = scene.extent.iter().chain(goals).copied().collect();
        let (low, high) = bounds(&seen);
        let center = (low + high) * 0.5;
        let view = View::look_at(center, azimuth.to_radians(), elevation.to_radians(), 0.0);
        let distance = seen.iter().fold(0.1 * scene.size(), |d, &p| {
            let c = p - center;
            let wide = c.dot(view.right).abs() / (TAN * aspect * FILL);
            let tall = c.dot(view.up).abs() / (TAN * FILL);
            d.max(wide.max(tall) - c.dot(view.forward))
        });
        // A robot that travels needs room around it to move its legs in.
        let room = if scene.travel == Travel::Bounded { 1.0 } else { 1.35 };
        Camera {
            azimuth: azimuth.to_radians(),
            elevation: elevation.to_radians(),
            distance: distance * room,
            offset: center - scene.root_pos,
            follow: scene.travel != Travel::Bounded,
            target: center,
        }
    }

    /// The same with another aim: a body that is to be in the middle, or another distance.
    pub(crate) fn aimed(self, aim: Aim) -> Camera {
        let distance = aim.distance.unwrap_or(self.distance);
        match aim.body {
            Some(_) => Camera { follow: true, offset: v3(0.0, 0.0, 0.0), distance, ..self },
            None => Camera { distance, ..self },
        }
    }

    /// Where it is and what it looks at before anything moves.
    pub fn start(&self) -> (V3, V3) {
        let view = View::look_at(self.target, self.azimuth, self.elevation, self.distance);
        (view.eye, self.target)
    }

    /// Direction towards the light: from above, over the viewer's left shoulder.
    pub fn light(&self) -> V3 {
        let view = View::look_at(self.target, self.azimuth, 0.0, 1.0);
        (v3(0.0, 0.0, 1.0) - view.forward * 0.45 - view.right * 0.40).unit()
    }

    /// Where the camera is at each of the pictures, `dt` (s) apart, with the root at
    /// `roots`; `None` (the root is nowhere) leaves it where it was. At a `true` in
    /// `cuts` it jumps to the robot (a new episode).
    ///
    /// Each episode's path is smoothed once forwards and once backwards around the straight line
    /// from its start to its end, so that a robot that runs stays in the middle: a lag on the
    /// way there is a lead on the way back, and the line itself does not lag. Where it would be
    /// in the ground it looks down more steeply.
    pub fn path(
        &self,
        roots: &[Option<V3>],
        cuts: &[bool],
        dt: f32,
        ground: Option<&Ground>,
    ) -> Vec<View> {
        let mut last = self.target;
        let mut targets: Vec<V3> = roots
            .iter()
            .map(|root| {
                if let (true, Some(root)) = (self.follow, *root) {
                    last = root + self.offset;
                }
                last
            })
            .collect();
        let keep = (-dt / LAG).exp().clamp(0.0, 1.0);
        smooth_each(&mut targets, cuts, keep);
        let tilt = |t: &V3| v3(self.tilt(*t, ground), 0.0, 0.0);
        let mut tilts: Vec<V3> = targets.iter().map(tilt).collect();
        smooth_each(&mut tilts, cuts, keep);
        let views = targets.into_iter().zip(tilts);
        views.map(|(t, tilt)| View::look_at(t, self.azimuth, tilt.x, self.distance)).collect()
    }

    /// The elevation at which it is above the ground.
    fn tilt(&self, target: V3, ground: Option<&Ground>) -> f32 {
        let clear = |elevation: &f32| {
            let eye = View::look_at(target, self.azimuth, *elevation, self.distance).eye;
            ground.is_none_or(|g| eye.z > g.height(eye.x, eye.y) + CLEAR)
        };
        let tilts = std::iter::successors(Some(self.elevation), |e| Some(e - TILT));
        tilts.take_while(|e| *e > STEEP).find(clear).unwrap_or(STEEP)
    }
}

/// Smooths the path of each episode.
fn smooth_each(path: &mut [V3], cuts: &[bool], keep: f32) {
    let mut rest = path;
    let mut from = 0;
    while !rest.is_empty() {
        let next = (from + 1..cuts.len()).find(|&i| cuts[i]);
        let len = next.map_or(rest.len(), |i| i - from).min(rest.len());
        let (episode, others) = rest.split_at_mut(len);
        smooth(episode, keep);
        (rest, from) = (others, from + len);
    }
}

/// Smooths a path around its chord; `keep` is the part of the former point that each
/// point takes.
fn smooth(path: &mut [V3], keep: f32) {
    let (Some(&start), Some(&end)) = (path.first(), path.last()) else {
        return;
    };
    let steps = path.len().saturating_sub(1).max(1) as f32;
    let chord = |i: usize| start.lerp(end, i as f32 / steps);
    for (i, p) in path.iter_mut().enumerate() {
        *p = *p - chord(i);
    }
    for i in 1..path.len() {
        path[i] = path[i].lerp(path[i - 1], keep);
    }
    for i in (1..path.len()).rev() {
        path[i - 1] = path[i - 1].lerp(path[i], keep);
    }
    for (i, p) in path.iter_mut().enumerate() {
        *p += chord(i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projection_undoes_rays() {
        let view = View::look_at(v3(1.0, -2.0, 0.5), 2.1, -0.3, 4.0);
        assert!((view.forward.norm() - 1.0).abs() < 1e-6);
        assert!(view.up.z > 0.9 && view.right.z == 0.0);
        // The target is in the middle, at the distance asked for.
        let (x, y, depth) = view.project(v3(1.0, -2.0, 0.5), 320.0, 240.0);
        assert!((x - 160.0).abs() < 1e-3 && (y - 120.0).abs() < 1e-3 && (depth - 4.0).abs() < 1e-5);
        let d = view.ray(17.5, 200.5, 320.0, 240.0);
        let (x, y, depth) = view.project(view.eye + d * 3.0, 320.0, 240.0);
        assert!((x - 17.5).abs() < 1e-2 && (y - 200.5).abs() < 1e-2 && (depth - 3.0).abs() < 1e-4);
    }
}
