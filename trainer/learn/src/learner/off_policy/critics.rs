//! Two critics of observation and action, and the slow copies that targets come from.

use super::body::{Body, BodyAt, BodySpace};
use super::inputs::Inputs;
use crate::learner::nn::layer::LinearAt;
use crate::learner::nn::{Layout, Linear, Params, init};
use crate::learner::tensors::zeros;
use crate::learner::{CriticConfig, State, error::LearnError};
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor};

/// Starts the names of the two critics in a checkpoint.
const NAMES: [&str; 2] = ["critic.1", "critic.2"];
/// The same for their slow copies.
const TARGETS: [&str; 2] = ["target_critic.1", "target_critic.2"];

/// Twin critics (Fujimoto et al. 2018). Inputs are `[B,C+A]`: the observation as the
/// critics see it and the action; outputs `[B,K]`.
#[derive(Debug)]
pub(crate) struct Critics {
    /// All parameters of both, flat.
    pub params: Params,
    /// Those of the slow copies.
    pub target: Params,
    online: [Critic; 2],
    slow: [Critic; 2],
    inputs: i64,
    outputs: i64,
}

#[derive(Debug)]
struct Critic {
    body: Body,
    head: Linear,
}

/// Buffers of one pass of both critics over `B` rows, or over `2B` of which `B` count.
#[derive(Debug)]
pub(crate) struct CriticSpace {
    bodies: [BodySpace; 2],
    /// Outputs that count `[B,K]`.
    pub out: [Tensor; 2],
    /// Their gradients; empty where no backward pass is wanted.
    pub d_out: [Tensor; 2],
    /// The same of all rows.
    all: [Tensor; 2],
    d_all: [Tensor; 2],
}

/// Buffers of the passes of a gradient step.
#[derive(Debug)]
pub(crate) struct CriticSpaces {
    /// Over what was done.
    pub taken: CriticSpace,
    /// Of the slow copies, over what comes next.
    pub next: CriticSpace,
    /// Where the first cannot serve.
    now: Option<CriticSpace>,
}

impl CriticSpaces {
    /// Over what the policy would do now.
    pub(crate) fn now(&self) -> &CriticSpace {
        self.now.as_ref().unwrap_or(&self.taken)
    }
}

/// Where one network's parameters lie.
struct Declared {
    body: BodyAt,
    head: LinearAt,
}

impl Critics {
    /// Freshly initialised for `inputs` numbers; the slow copies are equal to them.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn new(
        config: &CriticConfig,
        inputs: i64,
        outputs: i64,
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let build = |names: [&str; 2]| -> Result<(Params, [Critic; 2]), LearnError> {
            let mut layout = Layout::default();
            let at = names.map(|name| {
                let (body, features) = Body::declare(&mut layout, name, inputs, config.body());
                let head = format!("{name}.head");
                let head = Linear::declare(&mut layout, &head, features, outputs);
                Declared { body, head }
            });
            let params = Params::new(layout, device)?;
            let [a, b] = &at;
            let critics = [Critic::new(&params, a, config)?, Critic::new(&params, b, config)?];
            Ok((params, critics))
        };
        let (params, online) = build(NAMES)?;
        let (target, slow) = build(TARGETS)?;
        // Streams apart from the actor's.
        let mut stream = 0x1000;
        for critic in &online {
            stream += critic.body.init(seed, stream)?;
            init::fan_in(&critic.head, seed, stream)?;
            stream += 1;
        }
        let critics = Self { params, target, online, slow, inputs, outputs };
        critics.project()?;
        critics.target.theta.shallow_clone().f_copy_(&critics.params.theta)?;
        Ok(critics)
    }

    /// Weights are brought back to their lengths, where they have such.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn project(&self) -> Result<(), TchError> {
        self.online.iter().try_for_each(|c| c.body.project(&[&c.head]))
    }

    fn joint(&self) -> bool {
        self.online[0].body.joint()
    }

    /// Allocates for batches of `rows` transitions.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn spaces(&self, rows: i64, device: Device) -> Result<CriticSpaces, LearnError> {
        let joint = self.joint();
        let behind = if joint { rows } else { 0 };
        Ok(CriticSpaces {
            taken: self.space(rows + behind, 0..rows, true, device)?,
            next: self.space(rows + behind, behind..rows + behind, false, device)?,
            now: joint.then(|| self.space(rows, 0..rows, true, device)).transpose()?,
        })
    }

    /// Allocates for `rows` rows, of which those of `count` count.
    fn space(
        &self,
        rows: i64,
        count: Range<i64>,
        backward: bool,
        device: Device,
    ) -> Result<CriticSpace, LearnError> {
        let body = |c: &Critic| c.body.space(rows, backward, device);
        let matrix = |wanted: bool| {
            let size: &[i64] = if wanted { &[rows, self.outputs] } else { &[0] };
            zeros("critic outputs", size, Kind::Float, device)
        };
        let all = [matrix(true)?, matrix(true)?];
        let d_all = [matrix(backward)?, matrix(backward)?];
        let counted = |t: &Tensor| match t.dim() {
            2 => t.f_narrow(0, count.start, count.end - count.start),
            _ => Ok(t.shallow_clone()),
        };
        Ok(CriticSpace {
            bodies: [body(&self.online[0])?, body(&self.online[1])?],
            out: [counted(&all[0])?, counted(&all[1])?],
            d_out: [counted(&d_all[0])?, counted(&d_all[1])?],
            all,
            d_all,
        })
    }

    /// Both slow copies on what comes next, its action included.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn forward_next(&self, x: &Inputs, spaces: &CriticSpaces) -> Result<(), TchError> {
        let input = if self.joint() { &x.all_pairs } else { &x.next.all };
        forward(&self.slow, input, &spaces.next, true)
    }

    /// Both critics on what was done, after the slow copies.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn forward_taken(&self, x: &Inputs, spaces: &CriticSpaces) -> Result<(), TchError> {
        forward(&self.online, self.taken(x), &spaces.taken, true)
    }

    /// Both critics on what the policy would do now.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn forward_now(&self, x: &Inputs, spaces: &CriticSpaces) -> Result<(), TchError> {
        forward(&self.online, &x.now.all, spaces.now(), false)
    }

    fn taken<'a>(&self, x: &'a Inputs) -> &'a Tensor {
        if self.joint() { &x.all_pairs } else { &x.taken.all }
    }

    /// Gradients of all parameters from those of the outputs for what was done.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn backward(&self, x: &Inputs, spaces: &CriticSpaces) -> Result<(), TchError> {
        let (x, space) = (self.taken(x), &spaces.taken);
        for (i, critic) in self.online.iter().enumerate() {
            let (body, d_out) = (&space.bodies[i], &space.d_all[i]);
            critic.head.backward(body.output(x), d_out)?;
            if let Some(d) = body.d_output() {
                critic.head.backward_input(d_out, d)?;
            }
            critic.body.backward(x, body)?;
        }
        Ok(())
    }

    /// Gradient of the action of now (the last of the inputs) from those of the outputs of both
    /// critics, into `d_action [B,A]`; `scratch` is of the same shape. Gradients of
    /// parameters stay as they are.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn backward_action(
        &self,
        spaces: &CriticSpaces,
        d_action: &Tensor,
        scratch: &Tensor,
    ) -> Result<(), TchError> {
        let width = d_action.size2()?.1;
        let space = spaces.now();
        for (i, critic) in self.online.iter().enumerate() {
            let (body, d_out) = (&space.bodies[i], &space.d_out[i]);
            let into = if i == 0 { d_action } else { scratch };
            let inputs = self.inputs;
            match body.d_output() {
                Some(d) => {
                    critic.head.backward_input(d_out, d)?;
                    critic.body.backward_inputs(body, (inputs - width, width), into)?;
                }
                None => critic.head.backward_inputs(d_out, inputs - width, width, into)?,
            }
        }
        let _ = d_action.shallow_clone().f_add_(scratch)?;
        Ok(())
    }

    /// Moves the slow copies by the share `tau` of the way.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn follow(&mut self, tau: f64) -> Result<(), TchError> {
        let _ = self.target.theta.f_lerp_(&self.params.theta, tau)?;
        Ok(())
    }

    /// Enters all weights into a state.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(crate) fn declare(&self, state: &mut State) -> Result<(), TchError> {
        self.params.declare(state)?;
        self.target.declare(state)
    }
}

impl Critic {
    fn new(params: &Params, at: &Declared, config: &CriticConfig) -> Result<Self, TchError> {
        Ok(Self {
            body: Body::new(params, &at.body, config.body().0)?,
            head: Linear::new(params, at.head)?,
        })
    }
}

fn forward(
    critics: &[Critic; 2],
    x: &Tensor,
    space: &CriticSpace,
    learning: bool,
) -> Result<(), TchError> {
    for (i, critic) in critics.iter().enumerate() {
        critic.body.forward(x, &space.bodies[i], learning)?;
        critic.head.forward(space.bodies[i].output(x), &space.all[i])?;
    }
    Ok(())
}
