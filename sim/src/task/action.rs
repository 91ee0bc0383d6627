//! `[[task.action]]`: policy outputs to controls.

use super::{number, range, select, spread};
use crate::config::{ActionKind, ActionTerm, ConfigError, OneOrMany};
use crate::env::ActionSpace;
use crate::math::all_finite;
use crate::model::{Actuator, Dynamics, Joint, JointKind, Model};
use crate::physics::State;

/// The compiled action terms.
#[derive(Debug, Clone)]
pub struct Actions {
    /// What the policy decides.
    pub space: ActionSpace,
    /// Range each output is clipped to `(A)`.
    pub(super) clip: Vec<[f32; 2]>,
    pub(super) drives: Vec<Drive>,
}

/// How one actuator gets its control.
#[derive(Debug, Clone)]
pub(super) struct Drive {
    pub actuator: usize,
    /// Output that decides it.
    pub output: usize,
    pub law: Law,
    /// Controls are clipped to this.
    pub ctrlrange: [f32; 2],
}

#[derive(Debug, Clone)]
pub(super) enum Law {
    /// `offset + scale * output`.
    Affine { scale: f32, offset: f32 },
    /// `(kp (offset + scale * output - q) - kd v) / gear`.
    Pd {
        scale: f32,
        offset: f32,
        kp: f32,
        kd: f32,
        gear: f32,
        q: usize,
        v: usize,
    },
    /// A row's entry per choice.
    Choice(Vec<f32>),
}

const UNLIMITED: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];

impl Actions {
    /// `initial_qpos`: the pose that position targets are relative to `(nq)`.
    pub fn compile(
        model: &Model,
        terms: &[ActionTerm],
        initial_qpos: &[f64],
    ) -> Result<Self, ConfigError> {
        let mut all = Self {
            space: ActionSpace::Continuous(0),
            clip: Vec::new(),
            drives: Vec::new(),
        };
        let mut owner: Vec<Option<usize>> = vec![None; model.nu()];
        if terms.is_empty() {
            return Err(ConfigError::new("task.action", "the policy moves nothing")
                .help("add [[task.action]] with actuators = [\"*\"]"));
        }
        for (t, term) in terms.iter().enumerate() {
            let path = format!("task.action[{t}]");
            let mut chosen = Vec::new();
            for (p, pattern) in term.actuators.iter().enumerate() {
                let names = model.actuators.iter().map(|a| a.name.as_str()).enumerate();
                chosen.extend(select(
                    pattern,
                    "actuator",
                    names,
                    &format!("{path}.actuators[{p}]"),
                )?);
            }
            // The model's order, so that a pattern and a list mean the same.
            chosen.sort_unstable();
            chosen.dedup();
            if chosen.is_empty() {
                return Err(ConfigError::new(
                    format!("{path}.actuators"),
                    "the list is empty",
                ));
            }
            for &a in &chosen {
                if let Some(other) = owner[a].replace(t) {
                    return Err(ConfigError::new(
                        format!("{path}.actuators"),
                        format!(
                            "\"{}\" is already driven by task.action[{other}]",
                            model.actuators[a].name
                        ),
                    ));
                }
            }
            if term.kind == ActionKind::Discrete {
                if terms.len() > 1 {
                    return Err(ConfigError::new(
                        format!("{path}.kind"),
                        "a discrete action must be the only one",
                    )
                    .help("list every combination of controls as a row of `choices`"));
                }
                return Self::discrete(model, term, &chosen, &path);
            }
            all.continuous(model, term, &chosen, initial_qpos, &path)?;
        }
        all.space = ActionSpace::Continuous(all.clip.len());
        Ok(all)
    }

    fn discrete(
        model: &Model,
        term: &ActionTerm,
        chosen: &[usize],
        path: &str,
    ) -> Result<Self, ConfigError> {
        if term.choices.len() < 2 {
            return Err(ConfigError::new(
                format!("{path}.choices"),
                "a discrete action needs at least two choices",
            )
            .help("choices = [[-1.0], [1.0]]: one row of controls per choice"));
        }
        for (key, given) in [
            ("scale", term.scale != OneOrMany::One(1.0)),
            ("offset", term.offset != OneOrMany::One(0.0)),
            ("clip", term.clip.is_some()),
        ] {
            if given {
                return Err(ConfigError::new(
                    format!("{path}.{key}"),
                    "has no meaning for kind = \"discrete\"",
                )
                .help("write the controls themselves into `choices`"));
            }
        }
        let mut drives = Vec::new();
        for (i, &actuator) in chosen.iter().enumerate() {
            let mut table = Vec::new();
            for (r, row) in term.choices.iter().enumerate() {
                let path = format!("{path}.choices[{r}]");
                if row.len() != chosen.len() {
                    return Err(ConfigError::new(
                        path,
                        format!("{} controls for {} actuators", row.len(), chosen.len()),
                    ));
                }
                table.push(number(row[i], &path)?);
            }
            let ctrlrange = limits(&model.actuators[actuator]);
            drives.push(Drive {
                actuator,
                output: 0,
                law: Law::Choice(table),
                ctrlrange,
            });
        }
        let n = term.choices.len();
        Ok(Self {
            space: ActionSpace::Discrete(n),
            clip: vec![[0.0, (n - 1) as f32]],
            drives,
        })
    }

    fn continuous(
        &mut self,
        model: &Model,
        term: &ActionTerm,
        chosen: &[usize],
        initial_qpos: &[f64],
        path: &str,
    ) -> Result<(), ConfigError> {
        if !term.choices.is_empty() {
            return Err(ConfigError::new(
                format!("{path}.choices"),
                "is for kind = \"discrete\"",
            ));
        }
        let gains = term.stiffness.is_some() || term.damping.is_some();
        if gains && term.kind != ActionKind::Position {
            return Err(ConfigError::new(
                format!("{path}.stiffness"),
                "gains are for kind = \"position\"",
            ));
        }
        let scale = spread(
            &term.scale,
            chosen.len(),
            "actuators",
            &format!("{path}.scale"),
        )?;
        let offset = spread(
            &term.offset,
            chosen.len(),
            "actuators",
            &format!("{path}.offset"),
        )?;
        let clip = term
            .clip
            .map(|c| range(c, &format!("{path}.clip")))
            .transpose()?;
        for (i, &index) in chosen.iter().enumerate() {
            let actuator = &model.actuators[index];
            let ctrlrange = limits(actuator);
            let (scale, offset) = (scale[i], offset[i]);
            let law = match term.kind {
                ActionKind::Control | ActionKind::Discrete => Law::Affine { scale, offset },
                ActionKind::Normalized => {
                    let Some([low, high]) = actuator.ctrlrange else {
                        return Err(ConfigError::new(
                            format!("{path}.kind"),
                            format!(
                                "\"{}\" has no control range to map -1..1 onto",
                                actuator.name
                            ),
                        )
                        .help(
                            "give the actuator a ctrlrange, or use kind = \"control\" with `scale`",
                        ));
                    };
                    let (middle, half) = ((low + high) / 2.0, (high - low) / 2.0);
                    Law::Affine {
                        scale: (half * f64::from(scale)) as f32,
                        offset: (middle + half * f64::from(offset)) as f32,
                    }
                }
                ActionKind::Position => {
                    position(model, actuator, term, scale, offset, initial_qpos, path)?
                }
            };
            // Without a range of its own an output is clipped to what the actuator can
            // follow: outputs beyond it would all mean the same control.
            let clip = clip.unwrap_or(match law {
                Law::Affine { scale, offset } if scale != 0.0 => {
                    let ends = ctrlrange.map(|c| (c - offset) / scale);
                    [ends[0].min(ends[1]), ends[0].max(ends[1])]
                }
                _ => UNLIMITED,
            });
            self.drives.push(Drive {
                actuator: index,
                output: self.clip.len(),
                law,
                ctrlrange,
            });
            self.clip.push(clip);
        }
        Ok(())
    }

    /// A name for each output: that of the actuator it drives.
    pub fn names(&self, model: &Model) -> Vec<String> {
        match self.space {
            ActionSpace::Discrete(_) => vec!["choice".to_string()],
            ActionSpace::Continuous(_) => self
                .drives
                .iter()
                .map(|d| model.actuators[d.actuator].name.clone())
                .collect(),
        }
    }

    /// Clips the rows `raw` `[len][A]` of environments `first..first + len` into
    /// columns of `action` `[A][N]`; marks rows that are not finite in `bad` `[len]`
    /// and takes them as zero.
    pub fn clip(&self, raw: &[f32], bad: &mut [bool], mut put: impl FnMut(usize, usize, f32)) {
        let width = self.clip.len();
        for (lane, (row, bad)) in raw.chunks_exact(width).zip(bad).enumerate() {
            *bad = !all_finite(row);
            for (k, (&x, &[low, high])) in row.iter().zip(&self.clip).enumerate() {
                let x = if *bad { 0.0 } else { x };
                let x = if matches!(self.space, ActionSpace::Discrete(_)) {
                    x.round()
                } else {
                    x
                };
                put(k, lane, x.max(low).min(high));
            }
        }
    }

    /// Writes the controls of one environment through `put(actuator, value)`, from
    /// its clipped actions `action(output)`.
    pub fn drive(
        &self,
        state: &State,
        env: usize,
        action: impl Fn(usize) -> f32,
        mut put: impl FnMut(usize, f32),
    ) {
        let n = state.num_envs;
        for drive in &self.drives {
            let x = action(drive.output);
            let control = match &drive.law {
                Law::Affine { scale, offset } => offset + scale * x,
                Law::Pd {
                    scale,
                    offset,
                    kp,
                    kd,
                    gear,
                    q,
                    v,
                } => {
                    let error = offset + scale * x - state.qpos[q * n + env];
                    (kp * error - kd * state.qvel[v * n + env]) / gear
                }
                Law::Choice(table) => table[x as usize],
            };
            put(
                drive.actuator,
                control.max(drive.ctrlrange[0]).min(drive.ctrlrange[1]),
            );
        }
    }
}

fn limits(actuator: &Actuator) -> [f32; 2] {
    actuator
        .ctrlrange
        .map_or(UNLIMITED, |r| r.map(|x| x as f32))
}

/// The law of `kind = "position"`.
fn position(
    model: &Model,
    actuator: &Actuator,
    term: &ActionTerm,
    scale: f32,
    offset: f32,
    initial_qpos: &[f64],
    path: &str,
) -> Result<Law, ConfigError> {
    let scalar = |j: &&Joint| matches!(j.kind, JointKind::Hinge | JointKind::Slide);
    let joint = actuator.joint().map(|j| &model.joints[j]).filter(scalar);
    let Some(joint) = joint else {
        return Err(ConfigError::new(
            format!("{path}.kind"),
            format!(
                "\"{}\" does not drive a hinge or slide joint",
                actuator.name
            ),
        ));
    };
    if !matches!(actuator.dynamics, Dynamics::None | Dynamics::FilterExact) {
        return Err(ConfigError::new(
            format!("{path}.kind"),
            format!(
                "the control of \"{}\" is not a position: it has a state of its own",
                actuator.name
            ),
        )
        .help("use kind = \"control\""));
    }
    let gear = actuator.gear[0];
    let offset = f64::from(offset) + initial_qpos[joint.qpos_adr];
    let servo = actuator.gain[0] != 0.0 && actuator.bias[1] == -actuator.gain[0];
    let motor =
        actuator.gain[0] != 0.0 && actuator.bias == [0.0; 3] && actuator.gain[1..] == [0.0; 2];
    let name = &actuator.name;
    if servo {
        if term.stiffness.is_some() || term.damping.is_some() {
            return Err(ConfigError::new(
                format!("{path}.stiffness"),
                format!("\"{name}\" is a position actuator with gains of its own"),
            )
            .help("remove stiffness and damping here, or make it a motor in the robot file"));
        }
        // Its length is gear times the joint's position.
        return Ok(Law::Affine {
            scale: (gear * f64::from(scale)) as f32,
            offset: (gear * offset) as f32,
        });
    }
    if !motor || gear == 0.0 || actuator.dynamics != Dynamics::None {
        return Err(ConfigError::new(
            format!("{path}.kind"),
            format!("\"{name}\" is neither a position actuator nor a motor"),
        ));
    }
    let Some(kp) = term.stiffness else {
        return Err(ConfigError::new(
            format!("{path}.stiffness"),
            format!("is needed: \"{name}\" is a motor"),
        )
        .help("stiffness = 20.0 and damping = 0.5, for example"));
    };
    let kd = term.damping.unwrap_or(0.0);
    for (key, value) in [("stiffness", kp), ("damping", kd)] {
        if value < 0.0 {
            return Err(ConfigError::new(
                format!("{path}.{key}"),
                format!("{value} is negative"),
            ));
        }
    }
    Ok(Law::Pd {
        scale,
        offset: offset as f32,
        kp: number(kp, &format!("{path}.stiffness"))?,
        kd: number(kd, &format!("{path}.damping"))?,
        gear: (gear * actuator.gain[0]) as f32,
        q: joint.qpos_adr,
        v: joint.dof_adr,
    })
}
