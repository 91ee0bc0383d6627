//! All parameters in one flat tensor, so that the optimiser, the gradient norm and
//! its clipping are a handful of operations whatever the network looks like.

use crate::learner::error::LearnError;
use crate::learner::state::{Holds, State};
use crate::learner::tensors::zeros;
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor};

/// Names and shapes of parameters, in the order they lie in memory.
#[derive(Debug, Clone, Default)]
pub struct Layout {
    entries: Vec<Entry>,
    total: i64,
}

#[derive(Debug, Clone)]
struct Entry {
    name: String,
    shape: Vec<i64>,
    offset: i64,
}

impl Layout {
    /// Adds a parameter; the number returned names it later.
    pub fn add(&mut self, name: impl Into<String>, shape: &[i64]) -> usize {
        let offset = self.total;
        self.total += shape.iter().product::<i64>();
        self.entries.push(Entry { name: name.into(), shape: shape.to_vec(), offset });
        self.entries.len() - 1
    }
}

/// Parameters and their gradient, both flat `[P]`, and views into them.
#[derive(Debug)]
pub struct Params {
    layout: Layout,
    /// Parameters `[P]`.
    pub theta: Tensor,
    /// Gradient of the loss `[P]`; the backward pass overwrites every entry.
    pub grad: Tensor,
}

impl Params {
    /// Allocates zeros for a layout.
    pub fn new(layout: Layout, device: Device) -> Result<Self, LearnError> {
        Ok(Self {
            theta: zeros("parameters", &[layout.total], Kind::Float, device)?,
            grad: zeros("gradient", &[layout.total], Kind::Float, device)?,
            layout,
        })
    }

    /// Number of parameters, `P`.
    pub fn len(&self) -> i64 {
        self.layout.total
    }

    /// Numbers in the parameters at the front whose names start so.
    pub fn front(&self, prefix: &str) -> i64 {
        let entries = self.layout.entries.iter();
        let front = entries.take_while(|e| e.name.starts_with(prefix));
        front.map(|e| e.shape.iter().product::<i64>()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.layout.total == 0
    }

    /// A parameter, in its shape, sharing memory with `theta`.
    pub fn view(&self, index: usize) -> Result<Tensor, TchError> {
        self.slice(&self.theta, index)
    }

    /// Where a parameter lies in `theta`, and its gradient in `grad`.
    pub fn range(&self, index: usize) -> Range<usize> {
        let e = &self.layout.entries[index];
        let from = e.offset as usize;
        from..from + e.shape.iter().product::<i64>() as usize
    }

    /// Its gradient, sharing memory with `grad`.
    pub fn grad_view(&self, index: usize) -> Result<Tensor, TchError> {
        self.slice(&self.grad, index)
    }

    fn slice(&self, flat: &Tensor, index: usize) -> Result<Tensor, TchError> {
        let e = &self.layout.entries[index];
        flat.f_narrow(0, e.offset, e.shape.iter().product())?.f_view(&e.shape[..])
    }

    /// Enters the parameters into a learner's state.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn declare(&self, state: &mut State) -> Result<(), TchError> {
        self.declare_as(state, Holds::Weights)
    }

    /// The same as what they hold.
    pub fn declare_as(&self, state: &mut State, holds: Holds) -> Result<(), TchError> {
        state.block(&self.theta);
        for (i, entry) in self.layout.entries.iter().enumerate() {
            state.view(&entry.name, &self.view(i)?, holds);
        }
        Ok(())
    }

    /// Copies of the gradients on the host, by name.
    #[cfg(test)]
    pub fn save_grad(&self) -> Result<crate::learner::tensors::NamedTensors, LearnError> {
        let entries = self.layout.entries.iter().enumerate();
        entries
            .map(|(i, e)| {
                Ok((e.name.clone(), crate::learner::tensors::host_copy(&self.grad_view(i)?)?))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> Params {
        let mut layout = Layout::default();
        layout.add("a", &[2, 3]);
        layout.add("b", &[2]);
        Params::new(layout, Device::Cpu).unwrap()
    }

    fn load(p: &mut Params, from: &[(String, Tensor)]) -> Result<(), LearnError> {
        let mut state = State::default();
        p.declare(&mut state).unwrap();
        state.load_weights(from)
    }

    #[test]
    fn views_share_memory_with_the_flat_tensor() {
        let p = params();
        p.theta.shallow_clone().copy_(&Tensor::arange(8, (Kind::Float, Device::Cpu)));
        assert_eq!(p.view(0).unwrap().double_value(&[1, 2]), 5.0);
        assert_eq!(p.view(1).unwrap().double_value(&[0]), 6.0);
        let _ = p.view(1).unwrap().fill_(9.0);
        assert_eq!(p.theta.double_value(&[7]), 9.0);
    }

    #[test]
    fn a_checkpoint_of_another_shape_changes_nothing_and_says_which() {
        let mut p = params();
        let one = |s: &[i64]| Tensor::ones(s, (Kind::Float, Device::Cpu));
        let wrong = vec![("a".to_string(), one(&[2, 3])), ("b".to_string(), one(&[4]))];
        let message = load(&mut p, &wrong).unwrap_err().to_string();
        assert!(message.contains("b is [4], expected [2]"), "{message}");
        assert_eq!(p.theta.sum(Kind::Float).double_value(&[]), 0.0);
        let missing = load(&mut p, &wrong[..1]).unwrap_err().to_string();
        assert!(missing.contains("it has no b"), "{missing}");
        let right = vec![("b".to_string(), one(&[2])), ("a".to_string(), one(&[2, 3]))];
        load(&mut p, &right).unwrap();
        assert_eq!(p.theta.sum(Kind::Float).double_value(&[]), 8.0);
    }
}
