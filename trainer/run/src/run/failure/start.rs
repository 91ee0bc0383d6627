//! Environments at the start of an iteration and the actions since: what a replay
//! begins with.

use crate::run::parts::Parts;
use ostler_collector::CollectError;
use ostler_collector::snapshot::environments;
use ostler_collector::transfer::bytes_into;
use ostler_sim::files;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::HashMap;
use std::path::Path;

/// Name of the file.
pub(super) const NAME: &str = "start.safetensors";
/// More than this is not kept (bytes).
const MOST: usize = 256 << 20;
const ENVIRONMENTS: &str = "environments";
const ACTIONS: &str = "actions";

/// As it is read back.
pub(crate) struct Start {
    /// The environments' captured state.
    pub environments: Vec<u8>,
    /// `[T][N][A]`.
    pub actions: Vec<f32>,
    /// `T`, `N`, `A`.
    pub shape: [usize; 3],
}

impl Start {
    /// Writes the file into `folder`; an error is a sentence.
    pub(super) fn write(folder: &Path, parts: &Parts) -> Result<(), String> {
        let say = |e: CollectError| e.to_string();
        let captured = parts.collector.bytes(&parts.start.collector).map_err(say)?;
        let environments = environments(&captured).map_err(say)?;
        let action = &parts.collector.rollout().action;
        let shape: Vec<usize> = action.size().iter().map(|&d| d as usize).collect();
        let count = action.numel();
        let bytes = environments.len() + 4 * count;
        if bytes > MOST {
            return Err(format!("{} MiB are more than {}", bytes >> 20, MOST >> 20));
        }
        let mut actions = Vec::new();
        actions.try_reserve_exact(4 * count).map_err(|_| "no memory for it".to_string())?;
        actions.resize(4 * count, 0_u8);
        bytes_into(action, &mut actions).map_err(|e| e.to_string())?;
        let view = |dtype, shape, data| TensorView::new(dtype, shape, data);
        let tensors = [
            (ENVIRONMENTS, view(Dtype::U8, vec![environments.len()], environments)),
            (ACTIONS, view(Dtype::F32, shape, &actions)),
        ];
        let tensors = tensors
            .into_iter()
            .map(|(name, t)| t.map(|t| (name, t)))
            .collect::<Result<HashMap<_, _>, _>>()
            .map_err(|e| e.to_string())?;
        let bytes = safetensors::serialize(tensors, None).map_err(|e| e.to_string())?;
        files::replace(&folder.join(NAME), files::SHARED, &bytes).map_err(|e| e.to_string())
    }

    /// Reads the file of a report; an error is a sentence.
    pub(crate) fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join(NAME);
        // The head comes on top of what is kept.
        let most = MOST as u64 + (1 << 20);
        let bytes = files::read(&path, most).map_err(|e| format!("{}: {e}", path.display()))?;
        let wrong = || format!("{} is damaged", path.display());
        let file = SafeTensors::deserialize(&bytes).map_err(|_| wrong())?;
        let environments = file.tensor(ENVIRONMENTS).map_err(|_| wrong())?;
        let actions = file.tensor(ACTIONS).map_err(|_| wrong())?;
        let shape: [usize; 3] = actions.shape().try_into().map_err(|_| wrong())?;
        // Without any actions the number of environments would be bounded by nothing.
        if actions.dtype() != Dtype::F32 || shape.contains(&0) {
            return Err(wrong());
        }
        let words = actions.data().chunks_exact(4);
        Ok(Self {
            environments: environments.data().to_vec(),
            actions: words.map(|w| f32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect(),
            shape,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_without_actions_is_refused_whatever_number_of_environments_it_names() {
        let dir = tempfile::tempdir().unwrap();
        for shape in [vec![0, 1 << 24, 1], vec![1, 1 << 24, 0], vec![0, 0, 0]] {
            let tensors = [
                (ENVIRONMENTS, TensorView::new(Dtype::U8, vec![1], &[0])),
                (ACTIONS, TensorView::new(Dtype::F32, shape, &[])),
            ];
            let file = safetensors::serialize(tensors.map(|(n, t)| (n, t.unwrap())), None);
            std::fs::write(dir.path().join(NAME), file.unwrap()).unwrap();
            let why = Start::read(dir.path()).err().unwrap();
            assert!(why.contains("is damaged"), "{why}");
        }
    }
}
