//! One environment in f64, and the geometry formulas need.

use super::fixture::{ACTIONS, World};
use crate::expr::looks::{Look, LookOf};
use ostler_model::terrain::Terrain;
use ostler_model::{ContactReading, ContactSensor};

/// One environment in f64.
pub struct View<'a> {
    pub w: &'a World,
    pub e: usize,
}

pub type V3 = [f64; 3];

impl View<'_> {
    pub fn rows(&self, buffer: &[f32], rows: std::ops::Range<usize>) -> Vec<f64> {
        let n = self.w.state.num_envs;
        rows.map(|k| f64::from(buffer[k * n + self.e])).collect()
    }
    pub fn v3(&self, buffer: &[f32], body: usize) -> V3 {
        self.rows(buffer, 3 * body..3 * body + 3).try_into().unwrap()
    }
    pub fn q(&self, k: std::ops::Range<usize>) -> Vec<f64> {
        self.rows(&self.w.state.qpos, k)
    }
    pub fn dq(&self, k: std::ops::Range<usize>) -> Vec<f64> {
        self.rows(&self.w.state.qvel, k)
    }
    pub fn pos(&self, body: usize) -> V3 {
        self.v3(&self.w.state.body_pos, body)
    }
    pub fn vel(&self, body: usize) -> V3 {
        self.v3(&self.w.state.body_lin_vel, body)
    }
    pub fn omega(&self, body: usize) -> V3 {
        self.v3(&self.w.state.body_ang_vel, body)
    }
    pub fn quat(&self, body: usize) -> [f64; 4] {
        self.rows(&self.w.state.body_quat, 4 * body..4 * body + 4).try_into().unwrap()
    }
    /// What is read of the reference motion.
    pub fn motion(&self, of: LookOf, ahead: f32) -> Vec<f64> {
        let first = self.w.defined.motion.row(Look { of, ahead });
        self.rows(&self.w.motion, first..first + of.size())
    }
    /// Rotation matrix of a body.
    pub fn mat(&self, body: usize) -> [V3; 3] {
        matrix(self.quat(body))
    }
    pub fn point(&self, body: usize, at: V3) -> V3 {
        add(self.pos(body), apply(self.mat(body), at))
    }
    pub fn point_vel(&self, body: usize, at: V3) -> V3 {
        add(self.vel(body), cross(self.omega(body), apply(self.mat(body), at)))
    }
    pub fn force(&self, geom: usize) -> f64 {
        self.rows(&self.w.state.contact_force, geom..geom + 1)[0]
    }
    /// What a contact sensor reads.
    pub fn sensed<const K: usize>(
        &self,
        of: &[usize],
        with: &[usize],
        reads: ContactReading,
    ) -> [f64; K] {
        self.latest(of, with, reads, false)
    }
    /// The same, of the last physics step.
    pub fn latest<const K: usize>(
        &self,
        of: &[usize],
        with: &[usize],
        reads: ContactReading,
        last: bool,
    ) -> [f64; K] {
        let rows = self.w.readings.read(ContactSensor {
            of: of.to_vec(),
            with: with.to_vec(),
            reads,
            last,
        });
        self.rows(&self.w.state.contact_data, rows.unwrap()).try_into().unwrap()
    }
    pub fn action(&self) -> Vec<f64> {
        self.rows(&self.w.action, 0..ACTIONS)
    }
    pub fn last_action(&self) -> Vec<f64> {
        self.rows(&self.w.last_action, 0..ACTIONS)
    }
    pub fn memory(&self, rows: std::ops::Range<usize>) -> Vec<f64> {
        self.rows(&self.w.memory, rows)
    }
    pub fn random(&self, rows: std::ops::Range<usize>) -> Vec<f64> {
        self.rows(&self.w.random, rows)
    }
    pub fn ground(&self) -> &Terrain {
        self.w.model.terrain.as_ref().unwrap()
    }
    pub fn command(&self) -> Vec<f64> {
        self.rows(&self.w.command, 0..4)
    }
}

pub fn matrix([w, x, y, z]: [f64; 4]) -> [V3; 3] {
    [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
}
pub fn apply(m: [V3; 3], v: V3) -> V3 {
    m.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
}
pub fn transpose(m: [V3; 3]) -> [V3; 3] {
    std::array::from_fn(|i| std::array::from_fn(|j| m[j][i]))
}
pub fn add(a: V3, b: V3) -> V3 {
    std::array::from_fn(|k| a[k] + b[k])
}
pub fn sub(a: V3, b: V3) -> V3 {
    std::array::from_fn(|k| a[k] - b[k])
}
pub fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
pub fn norm(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}
pub fn column(m: [V3; 3], k: usize) -> Vec<f64> {
    transpose(m)[k].to_vec()
}
pub fn flag(b: bool) -> f64 {
    f64::from(u8::from(b))
}
pub fn each(v: Vec<f64>, f: impl Fn(f64) -> f64) -> Vec<f64> {
    v.into_iter().map(f).collect()
}
