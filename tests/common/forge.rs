//! Checkpoints that somebody else could have written: whatever is in them, the checksum is
//! right.

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::{BTreeMap, HashMap};

/// By name: kind, shape, bytes.
pub type Tensors = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

/// A checkpoint's tensors with another JSON, the checksum put right.
pub fn resealed(file: &[u8], json: &str) -> Vec<u8> {
    let all = SafeTensors::deserialize(file).unwrap();
    let tensors = all.tensors().into_iter().map(|(name, t)| {
        let parts = (t.dtype(), t.shape().to_vec(), t.data().to_vec());
        (name, parts)
    });
    with_checksum(json, &tensors.collect()).unwrap()
}

/// The checkpoint of this JSON and these tensors, its checksum right.
pub fn with_checksum(json: &str, tensors: &Tensors) -> Option<Vec<u8>> {
    let mut hash = blake3::Hasher::new();
    hash.update(json.as_bytes());
    for (name, (kind, shape, data)) in tensors {
        hash.update(name.as_bytes()).update(&[0]);
        hash.update(kind.to_string().as_bytes()).update(&[0]);
        for d in shape {
            hash.update(&(*d as u64).to_le_bytes());
        }
        hash.update(&(data.len() as u64).to_le_bytes()).update(data);
    }
    let sum = hash.finalize().to_hex().to_string();
    let meta =
        HashMap::from([("ostler".to_string(), json.to_string()), ("checksum".to_string(), sum)]);
    let views = tensors.iter().map(|(n, (kind, shape, data))| {
        Some((n.as_str(), TensorView::new(*kind, shape.clone(), data).ok()?))
    });
    safetensors::serialize(views.collect::<Option<Vec<_>>>()?, Some(meta)).ok()
}
