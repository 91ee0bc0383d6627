use super::super::{Batch, Layout, ReplayBuffer, ReplayConfig, SamplerKind, Setup, StorageKind};
use super::*;
use crate::replay::tests::{field, host, rollout, setup, spec};
use std::path::Path;
use tch::Tensor;

const STORAGES: [StorageKind; 4] =
    [StorageKind::Host, StorageKind::Device, StorageKind::Memmap, StorageKind::Tiered];
const SAMPLERS: [SamplerKind; 3] =
    [SamplerKind::Uniform, SamplerKind::WithoutReplacement, SamplerKind::Prioritized];

fn config(storage: StorageKind, sampler: SamplerKind, prefetch: usize) -> ReplayConfig {
    ReplayConfig { storage, sampler, prefetch, recent: 12, save: true, n_step: 2, ..host(60) }
}

/// As a run's environments become more or fewer, a buffer that is opened again would have another
/// margin.
fn make(config: &ReplayConfig, folder: &Path, reopen: bool) -> Result<ReplayBuffer, ReplayError> {
    let margin = if reopen { 7 } else { 30 };
    let setup = Setup { folder: Some(folder), margin, reopen, ..setup(16) };
    ReplayBuffer::new(config, Layout::of(&spec(3, None)), setup)
}

fn all(batch: &Batch) -> Vec<(String, Vec<Vec<f32>>)> {
    let names = batch.fields().map(|(n, _)| n.to_owned());
    names.map(|n| (n.clone(), field(batch, &n))).collect()
}

type Drawn = Vec<(Vec<u64>, Vec<(String, Vec<Vec<f32>>)>)>;

/// A rollout, and then four updates that set priorities.
fn iterate(buffer: &mut ReplayBuffer, iteration: i64) -> Drawn {
    buffer.set_version(iteration as i32);
    buffer.extend(&rollout(&spec(3, None), 5 * iteration, 5)).unwrap();
    buffer.set_progress(iteration as f64 / 20.0);
    // More than will be drawn.
    buffer.begin_update(5);
    let draw = |_| {
        let batch = buffer.next().unwrap();
        let drawn = (batch.indices().to_vec(), all(batch));
        let priorities: Vec<f32> = drawn.0.iter().map(|&r| (r % 7) as f32 + 0.5).collect();
        buffer.update_priorities(&Tensor::from_slice(&priorities)).unwrap();
        drawn
    };
    (0..4).map(draw).collect()
}

#[test]
fn after_a_resume_the_same_bits_follow_as_without_it() {
    for storage in STORAGES {
        for sampler in SAMPLERS {
            let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let config = config(storage, sampler, 2);
            let mut straight = make(&config, other.path(), false).unwrap();
            let mut buffer = make(&config, dir.path(), false).unwrap();
            let mut saved = None;
            let mut expected = Vec::new();
            for i in 0..8 {
                expected.push(iterate(&mut straight, i));
                assert_eq!(iterate(&mut buffer, i), expected[i as usize]);
                if i == 2 || i == 5 {
                    saved = Some(serde_json::to_string(&buffer.save().unwrap()).unwrap());
                }
            }
            // Killed two iterations behind the checkpoint.
            drop(buffer);
            let mut again = make(&config, dir.path(), true).unwrap();
            let saved: Saved = serde_json::from_str(&saved.unwrap()).unwrap();
            let restored = again.restore(&saved).unwrap();
            assert!(restored.exact(), "{storage:?} {sampler:?} {restored:?}");
            assert_eq!(restored.rows, 60);
            for i in 6..8 {
                let drawn = iterate(&mut again, i);
                assert_eq!(drawn, expected[i as usize], "{storage:?} {sampler:?} {i}");
            }
            assert_eq!(iterate(&mut again, 8), iterate(&mut straight, 8));
        }
    }
}

#[test]
fn prefetch_and_storage_change_nothing_that_is_drawn() {
    for sampler in SAMPLERS {
        let mut expected: Option<Vec<Drawn>> = None;
        for storage in STORAGES {
            for prefetch in [0, 1, 3, 9] {
                let dir = tempfile::tempdir().unwrap();
                let config = config(storage, sampler, prefetch);
                let mut buffer = make(&config, dir.path(), false).unwrap();
                let mut drawn = vec![iterate(&mut buffer, 0)];
                let mark = buffer.mark();
                iterate(&mut buffer, 1);
                assert_eq!(buffer.rewind(&mark).unwrap(), 0);
                drawn.extend((1..4).map(|i| iterate(&mut buffer, i)));
                let expected = expected.get_or_insert_with(|| drawn.clone());
                assert_eq!(&drawn, expected, "{storage:?} {sampler:?} {prefetch}");
            }
        }
    }
}

#[test]
fn what_cannot_come_back_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(StorageKind::Host, SamplerKind::Prioritized, 0);
    let mut buffer = make(&config, dir.path(), false).unwrap();
    for i in 0..4 {
        iterate(&mut buffer, i);
    }
    let early = buffer.save().unwrap();
    for i in 4..10 {
        iterate(&mut buffer, i);
    }
    buffer.save().unwrap();
    buffer.save().unwrap();
    drop(buffer);
    let mut again = make(&config, dir.path(), true).unwrap();
    assert!(again.describe().contains("60 were there"), "{}", again.describe());
    let restored = again.restore(&early).unwrap();
    // 150 came, 90 places: those before 60 are gone, and 0..60 was saved.
    assert_eq!((restored.rows, restored.lost_oldest), (0, 60));
    assert!(restored.lost_priorities && !restored.exact());
    drop(again);
    // No file: nothing is left, and the run goes on all the same.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut empty = make(&config, elsewhere.path(), true).unwrap();
    let restored = empty.restore(&early).unwrap();
    assert_eq!((restored.rows, restored.lost_newest), (0, 60));
    assert!(!restored.exact());
    iterate(&mut empty, 4);
}

/// Bits at any place of the file, and cuts at any length.
#[test]
fn a_damaged_file_costs_what_is_damaged_and_no_resume() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("replay/rows.bin");
    let config = config(StorageKind::Memmap, SamplerKind::Uniform, 0);
    let mut buffer = make(&config, dir.path(), false).unwrap();
    for i in 0..3 {
        iterate(&mut buffer, i);
    }
    let saved = buffer.save().unwrap();
    drop(buffer);
    let whole = std::fs::read(&file).unwrap();
    // 45 transitions, the first in the first place.
    let (rows, places) = (45, 12_288);
    let place = (whole.len() - places) / 90;
    let restored = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let mut again = make(&config, dir.path(), true).unwrap();
        let restored = again.restore(&saved).unwrap();
        assert_eq!(restored.rows, again.len() as u64);
        iterate(&mut again, 3);
        restored
    };
    assert!(restored(&whole).exact());
    for (at, left) in [
        // Of the head: what it says is known. Of the number of its version, too.
        (0, rows),
        (8, rows),
        (13, rows),
        (17, rows),
        (60, rows),
        // A commit: the one before is of the iteration before, or it is the older one.
        (8192 + 9, rows),
        (8704 + 9, rows - 15),
        // A transition: the longer part, of two of the same length the newer one.
        (places + 5, rows - 1),
        (places + 9 * place, rows - 10),
        (places + 22 * place, 22),
        (places + 43 * place, 43),
    ] {
        let mut bytes = whole.clone();
        bytes[at] ^= 16;
        let restored = restored(&bytes);
        assert_eq!(restored.rows, left, "byte {at}");
        assert_eq!(restored.exact(), left == rows, "byte {at}: {restored:?}");
    }
    for (length, left) in [(0, 0), (100, 0), (9000, 0), (places, 0), (places + 20 * place + 7, 20)]
    {
        assert_eq!(restored(&whole[..length]).rows, left, "{length}");
    }
    let aside = std::fs::read(dir.path().join("replay/rows.damaged")).unwrap();
    assert_eq!(aside.len(), 100, "what nothing can be known of is kept");
}

#[test]
fn without_save_a_resume_begins_with_nothing() {
    for storage in [StorageKind::Host, StorageKind::Memmap] {
        let dir = tempfile::tempdir().unwrap();
        let config = ReplayConfig { save: false, ..config(storage, SamplerKind::Uniform, 0) };
        let mut buffer = make(&config, dir.path(), false).unwrap();
        iterate(&mut buffer, 0);
        let saved = buffer.save().unwrap();
        drop(buffer);
        assert_eq!(dir.path().join("replay").exists(), storage.in_file());
        let mut again = make(&config, dir.path(), true).unwrap();
        let restored = again.restore(&saved).unwrap();
        assert_eq!((restored.rows, restored.lost_newest), (0, 15));
        assert!(again.is_empty());
        iterate(&mut again, 1);
        assert_eq!(again.len(), 15);
    }
}

#[test]
fn a_new_run_does_not_take_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(StorageKind::Memmap, SamplerKind::Uniform, 0);
    drop(make(&config, dir.path(), false).unwrap());
    let e = make(&config, dir.path(), false).unwrap_err();
    assert!(matches!(e, ReplayError::InUse { .. }));
}

/// A checkpoint's record of a replay buffer, with one number changed; its checksum would be
/// right.
#[test]
fn what_cannot_have_been_saved_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(StorageKind::Host, SamplerKind::WithoutReplacement, 0);
    let mut buffer = make(&config, dir.path(), false).unwrap();
    iterate(&mut buffer, 0);
    let good = serde_json::to_value(buffer.save().unwrap()).unwrap();
    drop(buffer);
    let mut again = make(&config, dir.path(), true).unwrap();
    for (at, number, words) in [
        ("/place/begin", 16_u64, "its transitions"),
        ("/place/end", u64::MAX, "its transitions"),
        ("/in_file", u64::MAX, "its transitions"),
        ("/progress/draws", u64::MAX, "its draws"),
        ("/progress/pass", u64::MAX, "its draws"),
        ("/progress/first", u64::MAX, "its draws"),
        // A pass that would be gone through for ever, as none of it is there.
        ("/progress/len", 1 << 61, "its draws"),
        ("/progress/at", 1 << 61, "its draws"),
    ] {
        let mut forged = good.clone();
        *forged.pointer_mut(at).unwrap() = number.into();
        let saved: Saved = serde_json::from_value(forged).unwrap();
        let e = again.restore(&saved).unwrap_err().to_string();
        assert!(e.contains(words), "{at}: {e}");
    }
    let saved: Saved = serde_json::from_value(good).unwrap();
    assert!(again.restore(&saved).unwrap().exact());
    iterate(&mut again, 1);
}

#[test]
fn priorities_that_are_no_numbers_are_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let config = config(StorageKind::Host, SamplerKind::Prioritized, 0);
    let mut buffer = make(&config, dir.path(), false).unwrap();
    iterate(&mut buffer, 0);
    let saved = serde_json::to_value(buffer.save().unwrap()).unwrap();
    drop(buffer);
    let folder = dir.path().join("replay");
    let file = saved["priorities"]["file"].as_str().unwrap();
    let good = std::fs::read(folder.join(file)).unwrap();
    let restored = |bytes: &[u8], largest: f64| {
        std::fs::write(folder.join(file), bytes).unwrap();
        let mut forged = saved.clone();
        forged["priorities"]["check"] = crc32c::crc32c(bytes).into();
        forged["priorities"]["largest"] = largest.into();
        let saved: Saved = serde_json::from_value(forged).unwrap();
        let mut again = make(&config, dir.path(), true).unwrap();
        let restored = again.restore(&saved).unwrap();
        iterate(&mut again, 1);
        !restored.lost_priorities
    };
    assert!(restored(&good, 7.0));
    assert!(!restored(&good, -1.0));
    for number in [f64::NAN, f64::INFINITY, -0.5] {
        let mut bad = good.clone();
        bad[8..16].copy_from_slice(&number.to_le_bytes());
        assert!(!restored(&bad, 7.0), "{number}");
    }
    assert!(!restored(&[&good[..], &[0; 8]].concat(), 7.0));
    std::fs::remove_file(folder.join(file)).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join(file), rustix::fs::Mode::RWXU).unwrap();
    let saved: Saved = serde_json::from_value(saved).unwrap();
    let mut again = make(&config, dir.path(), true).unwrap();
    assert!(again.restore(&saved).unwrap().lost_priorities);
}
