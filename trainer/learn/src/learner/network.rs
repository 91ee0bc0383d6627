//! A trained policy's network as plain numbers, for files that other programs read.

use super::nn::activation::Activation;
use super::nn::{LayerNorm, Linear, Trunk};
use super::normalizer::Normalizer;
use ostler_collector::transfer::host_numbers;
use tch::TchError;

/// A fully connected layer: `y = W x + b`.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Inputs `I`.
    pub inputs: usize,
    /// Outputs `H`.
    pub outputs: usize,
    /// Weights `[H,I]`.
    pub weight: Vec<f32>,
    /// Biases `[H]`.
    pub bias: Vec<f32>,
}

/// A hidden layer.
#[derive(Debug, Clone)]
pub struct Hidden {
    /// Its weights.
    pub layer: Layer,
    /// Gain and bias of layer normalisation in front of the function, `[H]` each.
    pub norm: Option<[Vec<f32>; 2]>,
    /// It adds the result of the layer before to its own.
    pub adds: bool,
}

/// A gated recurrent unit with PyTorch's gates: reset, update, new.
#[derive(Debug, Clone)]
pub struct Gru {
    /// Of the input `[3H,I]`.
    pub input: Layer,
    /// Of the hidden state `[3H,H]`.
    pub hidden: Layer,
}

/// What becomes of the last layer's numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Head {
    /// They are the actions.
    Mean,
    /// `bound tanh(x)`.
    Squashed {
        /// Largest of each action `[A]`.
        bound: Vec<f32>,
    },
    /// The action is the place of the largest.
    Largest,
}

/// From a row of observations to an action, without chance.
#[derive(Debug, Clone)]
pub struct Network {
    /// Shift that is subtracted and factor of every observation, `[O]`; the result is kept
    /// within [`FARTHEST`](super::normalizer::FARTHEST) of 0.
    pub norm: Option<[Vec<f32>; 2]>,
    /// In front of the hidden layers, which see the observations and its state.
    pub gru: Option<Gru>,
    /// Hidden layers.
    pub hidden: Vec<Hidden>,
    /// The function behind each.
    pub activation: Activation,
    /// The last layer.
    pub last: Layer,
    /// What becomes of it.
    pub head: Head,
}

impl Layer {
    /// The numbers of a layer.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn of(linear: &Linear) -> Result<Self, TchError> {
        Ok(Self {
            inputs: linear.inputs(),
            outputs: linear.outputs(),
            weight: host_numbers(linear.weight())?,
            bias: host_numbers(linear.bias())?,
        })
    }

    fn numbers(&self) -> impl Iterator<Item = &f32> {
        self.weight.iter().chain(&self.bias)
    }
}

impl Hidden {
    /// All layers of a trunk.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn of(trunk: &Trunk) -> Result<Vec<Self>, TchError> {
        let numbers = |norm: &LayerNorm| -> Result<_, TchError> {
            let [gain, bias] = norm.parameters();
            Ok([host_numbers(gain)?, host_numbers(bias)?])
        };
        let layers = trunk.layers().iter().enumerate();
        layers
            .map(|(i, layer)| {
                Ok(Self {
                    layer: Layer::of(layer)?,
                    norm: trunk.norms().get(i).map(numbers).transpose()?,
                    adds: trunk.adds(i),
                })
            })
            .collect()
    }
}

impl Network {
    /// Shift and factor of a normaliser.
    ///
    /// # Errors
    /// libtorch refuses.
    pub fn norm_of(norm: Option<&Normalizer>) -> Result<Option<[Vec<f32>; 2]>, TchError> {
        let numbers = |n: &Normalizer| -> Result<_, TchError> {
            let [shift, scale] = n.applied();
            Ok([host_numbers(shift)?, host_numbers(scale)?])
        };
        norm.map(numbers).transpose()
    }

    /// Width of the hidden state; 0 without one.
    pub fn state(&self) -> usize {
        self.gru.as_ref().map_or(0, |g| g.hidden.inputs)
    }

    /// Observations `O`.
    pub fn inputs(&self) -> usize {
        match (&self.gru, self.hidden.first()) {
            (Some(gru), _) => gru.input.inputs,
            (None, Some(first)) => first.layer.inputs,
            (None, None) => self.last.inputs,
        }
    }

    /// Whether all its numbers are finite.
    pub fn is_finite(&self) -> bool {
        let layers = self.hidden.iter().map(|h| &h.layer);
        let gru = self.gru.iter().flat_map(|g| [&g.input, &g.hidden]);
        let all = layers.chain(gru).chain([&self.last]);
        let norms = self.hidden.iter().filter_map(|h| h.norm.as_ref());
        let norms = norms.chain(&self.norm).flatten().flatten();
        all.flat_map(Layer::numbers).chain(norms).all(|x| x.is_finite())
    }
}
