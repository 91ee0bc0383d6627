//! Batches: named tensors with a leading batch dimension.

use super::ReplayError;
use super::layout::names;
use tch::{Device, Tensor};

/// Named tensors `[B, ...]`, all on one device. There is no batch without a device and
/// none whose tensors lie elsewhere (F10): both ways to fill one check.
#[derive(Debug)]
pub struct Batch {
    device: Device,
    rows: usize,
    fields: Vec<(String, Tensor)>,
    /// Numbers of the transitions, counted since the buffer began.
    pub(super) indices: Vec<u64>,
    /// Seed and number of the draw.
    pub(super) key: (u64, u64),
}

impl Batch {
    /// An empty batch of `rows` draws on a device.
    pub fn new(device: Device, rows: usize) -> Self {
        Self { device, rows, fields: Vec::new(), indices: Vec::new(), key: (0, 0) }
    }

    /// An empty one with the same device, rows, indices and key.
    pub fn like(&self) -> Self {
        Self {
            device: self.device,
            rows: self.rows,
            fields: Vec::with_capacity(self.fields.len()),
            indices: self.indices.clone(),
            key: self.key,
        }
    }

    /// Adds a field, or replaces the one of that name.
    ///
    /// # Errors
    /// It is on another device, or has another number of rows.
    pub fn insert(&mut self, name: &str, tensor: Tensor) -> Result<(), ReplayError> {
        let (got, size) = (tensor.device(), tensor.size());
        if got != self.device {
            return Err(ReplayError::Device { name: name.into(), expected: self.device, got });
        }
        if size.first() != Some(&(self.rows as i64)) {
            let expected = format!("{} rows", self.rows);
            return Err(ReplayError::shape(
                format!("field {name:?} of a batch"),
                expected,
                format!("{size:?}"),
            ));
        }
        match self.fields.iter_mut().find(|(n, _)| n == name) {
            Some((_, t)) => *t = tensor,
            None => self.fields.push((name.into(), tensor)),
        }
        Ok(())
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        let at = self.fields.iter().position(|(n, _)| n == name)?;
        Some(self.fields.remove(at).1)
    }

    /// A field.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn get(&self, name: &str) -> Result<&Tensor, ReplayError> {
        let found = self.fields.iter().find(|(n, _)| n == name);
        found.map(|(_, t)| t).ok_or_else(|| ReplayError::NoField {
            name: name.into(),
            has: self.fields.iter().map(|(n, _)| n.clone()).collect(),
        })
    }

    /// Names and tensors, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.fields.iter().map(|(n, t)| (n.as_str(), t))
    }

    /// Draws, `B`.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The device of all tensors.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Numbers of the transitions `[B]`, counted since the buffer began.
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }

    /// Seed and number of the draw: the key of the random numbers of a
    /// [`Transform`](super::Transform), so that a run that is repeated or resumed has the
    /// same.
    pub fn key(&self) -> (u64, u64) {
        self.key
    }

    /// Importance weights `[B]`; ones unless draws are prioritised.
    ///
    /// # Errors
    /// A transform took them out.
    pub fn weights(&self) -> Result<&Tensor, ReplayError> {
        self.get(names::WEIGHTS)
    }

    /// The same on a device; without a copy where it is there already.
    ///
    /// # Errors
    /// The device has no room for it, or fails.
    pub fn to_device(&self, device: Device) -> Result<Self, ReplayError> {
        let mut out = Self { device, ..self.like() };
        for (name, tensor) in self.fields() {
            out.insert(name, tensor.f_to_device(device)?)?;
        }
        Ok(out)
    }

    /// The same tensors once more; nothing is copied.
    pub fn shallow_clone(&self) -> Self {
        let share = |(n, t): &(String, Tensor)| (n.clone(), t.shallow_clone());
        Self { fields: self.fields.iter().map(share).collect(), ..self.like() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tch::Kind;

    #[test]
    fn f10_a_tensor_on_another_device_does_not_get_into_a_batch() {
        let mut batch = Batch::new(Device::Cpu, 2);
        // A tensor without numbers stands for one on a GPU: it has a device of its own.
        let elsewhere = Tensor::zeros([2], (Kind::Float, Device::Cpu));
        batch.insert("here", elsewhere).unwrap();
        let other = Batch::new(Device::Cuda(0), 2);
        let mut like = other.like();
        assert_eq!(like.device(), Device::Cuda(0), "kept by construction");
        let e = like.insert("x", batch.get("here").unwrap().shallow_clone()).unwrap_err();
        assert!(matches!(
            &e,
            ReplayError::Device { name, expected: Device::Cuda(0), got: Device::Cpu } if name == "x"
        ));
        assert!(like.fields().next().is_none(), "nothing was added");
    }

    #[test]
    fn a_batch_has_one_number_of_rows() {
        let mut batch = Batch::new(Device::Cpu, 2);
        let zeros = |size: &[i64]| Tensor::zeros(size, (Kind::Float, Device::Cpu));
        assert!(batch.insert("a", zeros(&[3, 2])).is_err());
        assert!(batch.insert("a", zeros(&[])).is_err());
        batch.insert("a", zeros(&[2, 3])).unwrap();
        batch.insert("a", zeros(&[2])).unwrap();
        assert_eq!(batch.get("a").unwrap().size(), [2]);
        let e = batch.get("b").unwrap_err().to_string();
        assert_eq!(e, "a batch has no field \"b\"; it has a");
        assert!(batch.remove("a").is_some() && batch.remove("a").is_none());
    }
}
