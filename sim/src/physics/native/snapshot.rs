//! Worlds as bytes: `magic | fingerprint | N | buffers | blake3`, little-endian.
//!
//! The fingerprint names the robot's tables: worlds of anything else are refused.
//! The checksum guards against accidents, not against a forger.

use super::engine::NativePhysics;
use super::tables::Plan;
use crate::physics::SnapshotError;

const MAGIC: &[u8; 8] = b"OSTNAT01";
const HASH: usize = 32;

/// What worlds must have in common to be exchanged.
pub(super) fn fingerprint(plan: &Plan) -> [u8; HASH] {
    *plan.digest().as_bytes()
}

/// Every buffer of the worlds, as bytes, in a fixed order: `buffers!(p, cast_slice)`,
/// or `buffers!(p, cast_slice_mut, mut)` to write them.
macro_rules! buffers {
    ($p:ident, $cast:ident $(, $mutable:tt)?) => {{
        let (s, h) = (&$($mutable)? $p.state, &$($mutable)? $p.hidden);
        [
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.qpos),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.qvel),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.body_pos),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.body_quat),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.body_lin_vel),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.body_ang_vel),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.contact_force),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.actuator_force),
            bytemuck::$cast::<u32, u8>(&$($mutable)? s.fault),
            bytemuck::$cast::<f32, u8>(&$($mutable)? h.act),
            bytemuck::$cast::<f32, u8>(&$($mutable)? h.qacc),
            bytemuck::$cast::<u32, u8>(&$($mutable)? h.overflow),
            bytemuck::$cast::<u32, u8>(&$($mutable)? h.unsolved),
        ]
    }};
}

pub(super) fn save(p: &NativePhysics, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let buffers = buffers!(p, cast_slice);
    let size = MAGIC.len() + HASH + 8 + buffers.iter().map(|b| b.len()).sum::<usize>() + HASH;
    out.try_reserve(size)
        .map_err(|_| SnapshotError(format!("no memory for {size} bytes")))?;
    let start = out.len();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&p.fingerprint);
    out.extend_from_slice(&(p.state.num_envs as u64).to_le_bytes());
    for buffer in buffers {
        out.extend_from_slice(buffer);
    }
    let hash = blake3::hash(&out[start..]);
    out.extend_from_slice(hash.as_bytes());
    Ok(())
}

pub(super) fn restore(p: &mut NativePhysics, blob: &[u8]) -> Result<(), SnapshotError> {
    let error = |text: &str| Err(SnapshotError(text.to_string()));
    let Some((body, hash)) = blob
        .len()
        .checked_sub(HASH)
        .and_then(|at| blob.split_at_checked(at))
    else {
        return error("it is too short");
    };
    let Some(rest) = body.strip_prefix(MAGIC) else {
        return error("it is not one of the native engine");
    };
    if blake3::hash(body).as_bytes() != hash {
        return error("its checksum does not match: it is damaged");
    }
    let Some(rest) = rest.strip_prefix(&p.fingerprint) else {
        return error("it is of another robot, time step or solver");
    };
    let Some((n, mut rest)) = rest.split_first_chunk::<8>() else {
        return error("it is too short");
    };
    let (has, have) = (u64::from_le_bytes(*n), p.state.num_envs as u64);
    if has != have {
        return error(&format!("it holds {has} environments, not {have}"));
    }
    let expected: usize = buffers!(p, cast_slice).iter().map(|b| b.len()).sum();
    if rest.len() != expected {
        return error("its length does not match");
    }
    for buffer in buffers!(p, cast_slice_mut, mut) {
        let (part, tail) = rest.split_at(buffer.len());
        buffer.copy_from_slice(part);
        rest = tail;
    }
    Ok(())
}
