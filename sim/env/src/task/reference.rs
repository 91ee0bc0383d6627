//! `[[task.reference]]`: the motions that episodes follow, as kernels take them.

mod round;

use crate::config::{ConfigError, FollowFrom, TaskConfig};
use ostler_engine::kernels;
use ostler_engine::state::{Sizes, Tables};
use ostler_lang::expr::{Look, LookOf};
use ostler_model::Model;
use ostler_model::motion::{self, Motion, MotionFormat};
use std::sync::Arc;

/// Most bytes of the frames that kernels read: 2 GiB.
const MOST: usize = 2 << 30;

/// Notes that a summary has at most; `ostler check` has all.
const NOTES: usize = 8;

/// A motion, in frames of the control step.
#[derive(Debug, Clone)]
pub struct Clip {
    pub motion: Arc<Motion>,
    /// Weight of its term.
    weight: f64,
    /// It goes round.
    loops: bool,
    /// Where a round leads: shift along x and y (m) after a turn about z (rad).
    round: [f64; 3],
    /// How its last frame differs from its first where it should not, as it goes round.
    seam: Option<String>,
}

/// The clips of a task, and what expressions read of them.
#[derive(Debug, Clone, Default)]
pub struct Reference {
    /// In the order of the files; empty without a reference.
    pub clips: Vec<Clip>,
    from: FollowFrom,
    looks: Vec<Look>,
    /// Frames in a second, 1 or more.
    second: u32,
}

/// All that the reading of a file depends on besides its bytes.
fn purpose(model: &Model, format: &MotionFormat, step: f64) -> [u8; 32] {
    let parts = (&model.bodies, &model.joints, &model.qpos0, format, step);
    *blake3::hash(format!("{parts:?}").as_bytes()).as_bytes()
}

impl Reference {
    /// Reads the files, which [`ostler_lang::config::read_motions`] has put into `cfg`, for
    /// control steps of `step` (s).
    ///
    /// # Errors
    /// A file is not of this robot, or contradicts itself; a number that cannot be.
    pub(super) fn compile(model: &Model, cfg: &TaskConfig, step: f64) -> Result<Self, ConfigError> {
        let mut all = Self { second: (1.0 / step).round().max(1.0) as u32, ..Self::default() };
        for (t, term) in cfg.reference.iter().enumerate() {
            let path = |key: &str| format!("task.reference[{t}].{key}");
            if !(term.weight.is_finite() && term.weight > 0.0) {
                let why = format!("{} cannot be a weight", term.weight);
                return Err(ConfigError::new(path("weight"), why).help("a number above 0"));
            }
            let from = term.start.unwrap_or_default();
            if t > 0 && from != all.from {
                let why = "another start than that of the terms before".to_owned();
                return Err(ConfigError::new(path("start"), why)
                    .help("all clips begin alike: write the same start in all terms"));
            }
            all.from = from;
            let Some(files) = cfg.motion_files.get(t) else {
                let why = "its files were not read with the configuration (config::read_motions)";
                return Err(ConfigError::new(path("files"), why));
            };
            for file in files {
                let format = term.format();
                let purpose = purpose(model, &format, step);
                let motion = file.once(purpose, || {
                    let read = motion::read(model, &file.name, &file.bytes, &format);
                    read.map(|motion| motion.resampled(model, step))
                });
                let motion = motion.map_err(|e| {
                    let why = format!("{}: {}: {}", e.file, e.place, e.what);
                    ConfigError::new(path("files"), why).help(e.help)
                })?;
                if motion.frames < 2 {
                    let why =
                        format!("{}: it is shorter than two control steps ({step} s)", file.name);
                    return Err(ConfigError::new(path("files"), why)
                        .help("a longer motion, or env.decimation = 1"));
                }
                let (weight, loops) = (term.weight, term.loops);
                let round = round::leads(model, &motion);
                let seam = loops.then(|| round::seam(model, &motion)).flatten();
                all.clips.push(Clip { motion, weight, loops, round, seam });
            }
        }
        Ok(all)
    }

    /// Whether there is one.
    pub fn is_some(&self) -> bool {
        !self.clips.is_empty()
    }

    /// Whether an episode's time can be out where a clip ends.
    pub(crate) fn truncates(&self) -> bool {
        self.clips.iter().any(|clip| !clip.loops)
    }

    /// Takes what expressions read.
    ///
    /// # Errors
    /// That is more than kernels can hold.
    pub(super) fn look(&mut self, looks: Vec<Look>) -> Result<(), ConfigError> {
        self.looks = looks;
        let bytes = self.bytes();
        if bytes <= MOST {
            return Ok(());
        }
        let frames: usize = self.clips.iter().map(|c| c.motion.frames).sum();
        let mib = |bytes: usize| bytes >> 20;
        let why = format!(
            "{frames} frames of {} numbers take {} MiB, and a task may have {}",
            self.width(),
            mib(bytes),
            mib(MOST)
        );
        Err(ConfigError::new("task.reference", why)
            .help("fewer files, or expressions that read fewer bodies"))
    }

    /// What is read of a frame, each once, and where in it a reading begins.
    fn columns(&self) -> (Vec<LookOf>, Vec<usize>) {
        let (mut columns, mut firsts): (Vec<LookOf>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut width = 0;
        let mut at = Vec::new();
        for look in &self.looks {
            let first = match columns.iter().position(|of| *of == look.of) {
                Some(known) => at[known],
                None => {
                    columns.push(look.of);
                    at.push(width);
                    width += look.of.size();
                    width - look.of.size()
                }
            };
            firsts.push(first);
        }
        (columns, firsts)
    }

    fn width(&self) -> usize {
        self.columns().0.iter().map(|of| of.size()).sum()
    }

    /// Bytes of the frames that kernels read.
    pub fn bytes(&self) -> usize {
        let frames: usize = self.clips.iter().map(|c| c.motion.frames).sum();
        frames.saturating_mul(self.width()).saturating_mul(4)
    }

    /// Its part of the sizes.
    pub(super) fn size(&self, sizes: &mut Sizes) {
        sizes.nreference = usize::from(self.is_some());
        sizes.nclip = self.clips.len();
        sizes.nmotion = self.bytes() / 4;
        sizes.nlook = self.looks.len();
        sizes.nlooked = self.looks.iter().map(|look| look.of.size()).sum();
    }

    /// Writes clips, frames and readings.
    pub(super) fn enter(&self, t: &mut Tables) {
        t.follow_how = vec![match self.from {
            FollowFrom::Uniform => kernels::FOLLOW_ANYWHERE,
            FollowFrom::Adaptive => kernels::FOLLOW_FAILURES,
            FollowFrom::Begin => kernels::FOLLOW_BEGIN,
        }];
        t.motion_second = vec![self.second.max(1)];
        let (columns, firsts) = self.columns();
        t.motion_width = vec![self.width() as u32];
        let whole: f64 = self.clips.iter().map(|clip| clip.weight).sum();
        let (mut first, mut share) = (0, 0.0);
        for clip in &self.clips {
            let motion = &clip.motion;
            for frame in 0..motion.frames {
                columns.iter().for_each(|of| t.motion.extend(numbers(motion, *of, frame)));
            }
            t.clip_first.push(first);
            first += motion.frames as u32;
            t.clip_frames.push(motion.frames as u32);
            t.clip_loops.push(u32::from(clip.loops));
            share += clip.weight / whole;
            t.clip_share.push(share as f32);
            t.clip_shift.extend(clip.round.map(|x| x as f32));
        }
        let mut end = 0;
        for (look, first) in self.looks.iter().zip(firsts) {
            t.look_kind.push(match look.of {
                LookOf::Pos(_) => kernels::LOOK_PLACE,
                LookOf::Quat(_) => kernels::LOOK_TURN,
                LookOf::LinVel(_) | LookOf::AngVel(_) => kernels::LOOK_VELOCITY,
                LookOf::JointPos(_) | LookOf::JointVel(_) => kernels::LOOK_NUMBER,
            });
            t.look_at.push(first as u32);
            t.look_ahead.push(look.ahead);
            end += look.of.size() as u32;
            t.look_end.push(end);
        }
    }

    /// Bodies of a frame, for pictures: place (m) and quaternion (w, x, y, z) of each, set down
    /// beside where they are by a bit more than the robot's reach.
    pub(crate) fn poses(
        &self,
        clip: usize,
        frame: usize,
    ) -> impl Iterator<Item = [f32; 7]> + use<'_> {
        let (mut rows, mut first, mut lead) = (&[][..], &[][..], round::Lead::NONE);
        if let Some(Clip { motion, loops, round, .. }) = self.clips.get(clip) {
            let last = motion.frames - 1;
            rows = motion.bodies_at(if *loops { frame % last } else { frame.min(last) });
            first = motion.bodies_at(0);
            lead = if *loops { round::Lead::after(*round, frame / last) } else { lead };
        }
        let bodies = rows.chunks_exact(motion::BODY);
        let root = first.get(motion::BODY..motion::BODY + 3).unwrap_or(&[0.0; 3]);
        let reach = first.chunks_exact(motion::BODY).skip(1).map(|body| {
            let each = body.iter().zip(root).map(|(a, b)| (a - b).powi(2));
            each.sum::<f64>().sqrt()
        });
        let aside = 0.2 + 1.2 * reach.fold(0.0, f64::max);
        bodies.map(move |body| {
            let mut pose = lead.of(std::array::from_fn(|i| body[i]));
            pose[1] += aside;
            pose.map(|x| x as f32)
        })
    }

    /// How long the motions are together and their memory, and what their reader noted, each once.
    pub(crate) fn summary(&self) -> Vec<String> {
        let (count, kib) = (self.clips.len(), self.bytes().div_ceil(1024));
        let each = self.clips.iter().map(|c| (c.motion.frames - 1) as f64 * c.motion.step);
        let seconds: f64 = each.sum();
        let mut lines: Vec<String> = Vec::new();
        if self.is_some() {
            lines.push(format!("reference: {count} motions, {seconds:.2} s, {kib} KiB"));
        }
        for clip in &self.clips {
            for note in clip.motion.notes.iter().map(|note| format!("reference: {note}")) {
                if lines.len() <= NOTES && !lines.contains(&note) {
                    lines.push(note);
                }
            }
        }
        lines
    }

    /// The clips, a line each, and what their files' reader noted; then their memory.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for Clip { motion, loops, seam, .. } in &self.clips {
            let round = if *loops { ", goes round" } else { "" };
            let seconds = (motion.frames - 1) as f64 * motion.step;
            lines.push(format!(
                "{}: {seconds:.2} s, {} frames of {} s{round}",
                motion.name, motion.frames, motion.step
            ));
            lines.extend(seam.iter().chain(&motion.notes).map(|note| format!("  {note}")));
        }
        if self.is_some() {
            let kib = self.bytes().div_ceil(1024);
            lines.push(format!("{kib} KiB of frames, which all environments share"));
        }
        lines
    }
}

/// What a frame has of a joint or body.
fn numbers(motion: &Motion, of: LookOf, frame: usize) -> Vec<f32> {
    let (nq, nv) = (motion.qpos.len() / motion.frames, motion.qvel.len() / motion.frames);
    let bodies = motion.bodies.len() / motion.frames;
    let body = |b: usize, from: usize, size: usize| {
        let first = frame * bodies + 13 * b + from;
        motion.bodies[first..first + size].iter().map(|x| *x as f32).collect()
    };
    match of {
        LookOf::JointPos(at) => vec![motion.qpos[frame * nq + at] as f32],
        LookOf::JointVel(at) => vec![motion.qvel[frame * nv + at] as f32],
        LookOf::Pos(b) => body(b, 0, 3),
        LookOf::Quat(b) => body(b, 3, 4),
        LookOf::LinVel(b) => body(b, 7, 3),
        LookOf::AngVel(b) => body(b, 10, 3),
    }
}
