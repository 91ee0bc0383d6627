//! Clips that go round: where a round leads, and what does not fit where one ends.

use ostler_model::motion::{BODY, Motion};
use ostler_model::rotation::mul;
use ostler_model::{JointKind, Model};

/// Jumps from here on are told: joints and the root's roll and pitch (rad), its height and slides
/// (m).
const TURN: f64 = 0.05;
const PLACE: f64 = 0.02;

/// Place and orientation of the root, the first body that is not the world.
fn root(motion: &Motion, frame: usize) -> ([f64; 3], [f64; 4]) {
    let at = |i: usize| motion.bodies_at(frame).get(BODY + i).copied().unwrap_or(0.0);
    (std::array::from_fn(at), std::array::from_fn(|i| at(3 + i)))
}

fn is_free(model: &Model) -> bool {
    let own = model.bodies.get(1).map_or(0..0, |body| body.joints.clone());
    model.joints[own].iter().any(|joint| joint.kind == JointKind::Free)
}

/// Shift along x and y (m) after a turn about z (rad), which lead from the first frame to the
/// last. A root that is not free does not turn: what its joints turn is theirs.
pub(super) fn leads(model: &Model, motion: &Motion) -> [f64; 3] {
    let ((from, before), (to, after)) = (root(motion, 0), root(motion, motion.frames - 1));
    let [w, x, y, z] = before;
    let [w, _, _, z] = mul(after, [w, -x, -y, -z]);
    // Either sign is the same turn; the shorter way.
    let turn = if is_free(model) { 2.0 * (z * w.signum()).atan2(w.abs()) } else { 0.0 };
    let (s, c) = turn.sin_cos();
    [to[0] - (c * from[0] - s * from[1]), to[1] - (s * from[0] + c * from[1]), turn]
}

/// Where some rounds lead: what [`leads`] says of one, several times.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lead {
    shift: [f64; 2],
    turn: f64,
}

impl Lead {
    /// To where the first begins.
    pub(super) const NONE: Self = Self { shift: [0.0; 2], turn: 0.0 };

    /// After so many rounds that lead so.
    pub(super) fn after([x, y, turn]: [f64; 3], rounds: usize) -> Self {
        let (s, c) = turn.sin_cos();
        let on = |[a, b]: [f64; 2], _| [c * a - s * b + x, s * a + c * b + y];
        Self { shift: (0..rounds).fold([0.0; 2], on), turn: turn * rounds as f64 }
    }

    /// The pose of a body: place (m) and quaternion (w, x, y, z).
    pub(super) fn of(self, [x, y, z, quat @ ..]: [f64; 7]) -> [f64; 7] {
        let (s, c) = self.turn.sin_cos();
        let (half, own) = (0.5 * self.turn).sin_cos();
        let [w, i, j, k] = mul([own, 0.0, 0.0, half], quat);
        [c * x - s * y + self.shift[0], s * x + c * y + self.shift[1], z, w, i, j, k]
    }
}

/// Roll and pitch (rad), yaw first.
fn tilt([w, x, y, z]: [f64; 4]) -> [f64; 2] {
    let roll = (2.0 * (w * x + y * z)).atan2(1.0 - 2.0 * (x * x + y * y));
    [roll, (2.0 * (w * y - z * x)).clamp(-1.0, 1.0).asin()]
}

/// What jumps where a round ends, if it is more than a little.
pub(super) fn seam(model: &Model, motion: &Motion) -> Option<String> {
    let [first, last] = [0, motion.frames - 1];
    let width = motion.qpos.len() / motion.frames;
    let jump = |at: usize| (motion.qpos[last * width + at] - motion.qpos[at]).abs();
    let mut said = Vec::new();
    for (kind, least, unit) in [(JointKind::Hinge, TURN, "rad"), (JointKind::Slide, PLACE, "m")] {
        let own = model.joints.iter().filter(|joint| joint.kind == kind);
        let most = own.max_by(|a, b| jump(a.qpos_adr).total_cmp(&jump(b.qpos_adr)));
        if let Some(joint) = most.filter(|joint| jump(joint.qpos_adr) > least) {
            said.push(format!("{:.2} {unit} of joint \"{}\"", jump(joint.qpos_adr), joint.name));
        }
    }
    if is_free(model) {
        let ((from, before), (to, after)) = (root(motion, first), root(motion, last));
        let (before, after) = (tilt(before), tilt(after));
        // Angles of which one is just below pi and one just above -pi are near.
        let turned = |k: usize| {
            let off = (after[k] - before[k]).abs();
            off.min(std::f64::consts::TAU - off)
        };
        let height = (to[2] - from[2]).abs();
        let all = [(height, PLACE, "m of height"), (turned(0), TURN, "rad of roll")];
        for (off, least, what) in all.into_iter().chain([(turned(1), TURN, "rad of pitch")]) {
            if off > least {
                said.push(format!("{off:.2} {what}"));
            }
        }
    }
    let most = said.join(", ");
    (!said.is_empty())
        .then(|| format!("it goes round, but its last frame is not its first: up to {most}"))
}
