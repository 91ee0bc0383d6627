//! Files of motions that can be changed before they are written.

use super::*;
use ostler_base::npz::NpzWriter;

/// Arrays by name.
#[derive(Clone)]
pub(super) struct File {
    pub(super) numbers: Vec<(&'static str, Vec<usize>, Vec<f64>)>,
    pub(super) texts: Vec<(&'static str, Vec<String>)>,
}

impl File {
    /// With names and columns of the root, as holosoma has them.
    pub(super) fn holosoma(model: &Model, motion: &Motion) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        motion.write(model, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let mut npz = ostler_base::npz::Npz::read(&path, &bytes).unwrap();
        let numbers = [
            "fps",
            "joint_pos",
            "joint_vel",
            "body_pos_w",
            "body_quat_w",
            "body_lin_vel_w",
            "body_ang_vel_w",
        ]
        .map(|name| {
            let array = npz.numbers(name).unwrap();
            (name, array.shape, array.values)
        });
        let texts = ["joint_names", "body_names"].map(|n| (n, npz.texts(n).unwrap()));
        Self { numbers: numbers.into(), texts: texts.into() }
    }

    /// Without names, as mjlab has them.
    pub(super) fn mjlab(model: &Model, motion: &Motion) -> Self {
        let mut file = Self::holosoma(model, motion);
        file.texts.clear();
        if model.joints.iter().any(|j| j.kind == JointKind::Free) {
            file.columns("joint_pos", |row| row[7..].to_vec());
            file.columns("joint_vel", |row| row[6..].to_vec());
        }
        file
    }

    pub(super) fn shape(&mut self, name: &str) -> &mut Vec<usize> {
        &mut self.numbers.iter_mut().find(|n| n.0 == name).unwrap().1
    }

    pub(super) fn values(&mut self, name: &str) -> &mut Vec<f64> {
        &mut self.numbers.iter_mut().find(|n| n.0 == name).unwrap().2
    }

    pub(super) fn text(&mut self, name: &str) -> &mut Vec<String> {
        &mut self.texts.iter_mut().find(|n| n.0 == name).unwrap().1
    }

    pub(super) fn drop(&mut self, name: &str) {
        self.numbers.retain(|n| n.0 != name);
        self.texts.retain(|n| n.0 != name);
    }

    /// Every row of a table, or the numbers of every body, made anew.
    pub(super) fn columns(&mut self, name: &str, change: impl Fn(&[f64]) -> Vec<f64>) {
        let width = *self.shape(name).last().unwrap();
        let values: Vec<f64> = self.values(name).chunks_exact(width).flat_map(change).collect();
        let rows = self.values(name).len() / width;
        *self.shape(name).last_mut().unwrap() = values.len() / rows;
        *self.values(name) = values;
    }

    /// The same where a row is all bodies of a frame.
    pub(super) fn bodies(&mut self, name: &str, order: &[usize]) {
        let width = *self.shape(name).last().unwrap();
        let frames = self.values(name).chunks_exact(width * order.len());
        let values = frames
            .flat_map(|f| order.iter().flat_map(move |b| f[b * width..(b + 1) * width].to_vec()))
            .collect();
        *self.values(name) = values;
    }

    /// Frames from the first on.
    pub(super) fn cut(&mut self, name: &str, frames: usize) {
        let width = self.shape(name)[1..].iter().product::<usize>();
        self.shape(name)[0] = frames;
        self.values(name).truncate(frames * width);
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let mut file = NpzWriter::create(&path).unwrap();
        for (name, shape, values) in &self.numbers {
            file.array(name, shape, values).unwrap();
        }
        for (name, texts) in &self.texts {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            file.texts(name, &texts).unwrap();
        }
        file.finish().unwrap();
        std::fs::read(&path).unwrap()
    }
}

/// The same motion as a table: root, quaternion x y z w, joints.
pub(super) fn table(model: &Model, motion: &Motion) -> Vec<Vec<f64>> {
    let rows = motion.qpos.chunks_exact(model.nq);
    rows.map(|q| match model.joints[0].kind {
        JointKind::Free => [&q[..3], &[q[4], q[5], q[6], q[3]], &q[7..]].concat(),
        _ => q.to_vec(),
    })
    .collect()
}

pub(super) fn text(rows: &[Vec<f64>]) -> String {
    let line = |row: &Vec<f64>| {
        let texts: Vec<String> = row.iter().map(f64::to_string).collect();
        texts.join(",") + "\n"
    };
    rows.iter().map(line).collect()
}
