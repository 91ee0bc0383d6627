//! A checkpoint comes back as it was, or is refused with a reason.

use super::*;
use proptest::prelude::*;
use safetensors::tensor::TensorView;
use std::path::PathBuf;

fn mark() -> TaskMark {
    TaskMark {
        robot: "pole".into(),
        obs: 4,
        critic_obs: None,
        action: 1,
        outputs: vec!["slide".into()],
        by_name: false,
        num_envs: 2,
    }
}

fn sample() -> Checkpoint {
    Checkpoint {
        meta: Meta {
            iteration: 7,
            env_steps: 123,
            wall_s: 1.5,
            best: Some(0.1),
            ..Checkpoint::meta(mark())
        },
        learner: vec![
            ("w".into(), Tensor::from_slice(&[1.5_f32, -0.0, f32::NAN]).view([3, 1])),
            ("step".into(), Tensor::from_slice(&[42_i64])),
            ("empty".into(), Tensor::zeros([0, 4], (Kind::Double, tch::Device::Cpu))),
        ],
        good: vec![("w".into(), Tensor::from_slice(&[2.5_f32]))],
        candidate: vec![("w".into(), Tensor::from_slice(&[3.5_f32]))],
        best: vec![("w".into(), Tensor::from_slice(&[4.5_f32]))],
        collector: vec![1, 2, 3].into(),
        episodes: vec![[1.0, 10.0], [2.0, 20.0]],
    }
}

fn written() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.safetensors");
    sample().write(&path).unwrap();
    (dir, path)
}

#[test]
fn comes_back_bit_for_bit() {
    let (dir, path) = written();
    let c = Checkpoint::read(&path).unwrap();
    let s = sample();
    assert_eq!(c.meta.iteration, 7);
    assert_eq!(c.meta.best, Some(0.1));
    assert_eq!(c.collector.bytes(), s.collector.bytes());
    assert_eq!(c.episodes, s.episodes);
    for (name, tensor) in &s.learner {
        let back = &c.learner.iter().find(|t| &t.0 == name).unwrap().1;
        assert_eq!(back.size(), tensor.size(), "{name}");
        assert_eq!(bytes_of(back).unwrap().data, bytes_of(tensor).unwrap().data, "{name}");
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file stays");
}

#[test]
fn what_it_says_of_its_run_is_read_without_its_tensors() {
    let (_dir, path) = written();
    let mut bytes = std::fs::read(&path).unwrap();
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[data..].fill(0xa5);
    std::fs::write(&path, &bytes).unwrap();
    assert!(Checkpoint::read(&path).is_err(), "the checksum");
    assert_eq!(meta_of(&path).unwrap().iteration, 7);
    for length in [data - 1, 8, 7, 0] {
        std::fs::write(&path, &bytes[..length]).unwrap();
        assert!(meta_of(&path).is_none(), "{length} bytes");
    }
    let other = Meta { version: VERSION + 1, ..sample().meta };
    Checkpoint { meta: other, ..sample() }.write(&path).unwrap();
    assert!(meta_of(&path).is_none(), "another version");
}

#[test]
fn the_file_is_what_safetensors_itself_would_write() {
    let (_dir, path) = written();
    let bytes = std::fs::read(&path).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let theirs = safetensors::serialize(file.tensors(), header.metadata().clone()).unwrap();
    // Their metadata has no order, so that texts can differ, but lengths and data do not.
    assert_eq!(theirs.len(), bytes.len());
    let data = |b: &[u8]| b[8 + u64::from_le_bytes(b[..8].try_into().unwrap()) as usize..].to_vec();
    assert_eq!(data(&theirs), data(&bytes));
}

#[test]
fn every_cut_is_noticed() {
    let (_dir, path) = written();
    let bytes = std::fs::read(&path).unwrap();
    for n in 0..bytes.len() {
        assert!(parse(&bytes[..n]).is_err(), "cut at {n}");
    }
    assert!(parse(&[bytes.as_slice(), b"x"].concat()).is_err());
}

#[test]
fn every_flipped_byte_is_noticed() {
    let (_dir, path) = written();
    let bytes = std::fs::read(&path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x01;
        // Blanks that fill up the header mean nothing.
        if at < 8 + header && bytes[at] == b' ' {
            continue;
        }
        assert!(parse(&bad).is_err(), "byte {at}");
    }
}

#[test]
fn foreign_files_are_named_as_such() {
    let one = TensorView::new(Dtype::U8, vec![1], &[0]).unwrap();
    let foreign = safetensors::serialize([("w", one)], None).unwrap();
    let why = parse(&foreign).unwrap_err().to_string();
    assert!(why.contains("not a checkpoint of Ostler"), "{why}");
    let with = |json: &str| {
        let meta = Some(HashMap::from([(META.to_string(), json.to_string())]));
        let none: [(&str, TensorView<'_>); 0] = [];
        let bytes = safetensors::serialize(none, meta).unwrap();
        parse(&bytes).unwrap_err().to_string()
    };
    assert!(with(r#"{"format":"x","version":1}"#).contains("format is \"x\""));
    assert!(with(r#"{"format":"ostler-checkpoint","version":9}"#).contains("version 9"));
    assert!(with("[]").contains("JSON"));
}

#[test]
fn a_header_that_promises_terabytes_allocates_nothing() {
    let mut bytes = u64::MAX.to_le_bytes().to_vec();
    bytes.extend_from_slice(b"{}");
    assert!(parse(&bytes).is_err());
    let header =
        br#"{"w":{"dtype":"F32","shape":[1000000000000],"data_offsets":[0,4000000000000]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header);
    assert!(parse(&bytes).is_err());
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    // What has the name and cannot be replaced by a file makes the write fail at its end.
    let path = dir.path().join("taken.safetensors");
    std::fs::create_dir_all(path.join("old")).unwrap();
    assert!(matches!(sample().write(&path), Err(CheckpointError::File { .. })));
    assert!(path.join("old").is_dir());
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 1, "nothing of the new file is left");
}

/// Files with a checksum that is right and numbers that cannot be.
#[test]
fn counts_that_no_run_reaches_are_refused() {
    let read = |change: &dyn Fn(&mut Meta)| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.safetensors");
        let mut c = sample();
        change(&mut c.meta);
        c.write(&path).unwrap();
        Checkpoint::read(&path)
    };
    assert!(read(&|_| ()).is_ok());
    type Forge<'a> = &'a dyn Fn(&mut Meta);
    let forged: [(Forge<'_>, &str); 9] = [
        (&|m| m.iteration = u64::MAX, "its iteration"),
        (&|m| m.env_steps = u64::MAX, "its number of steps"),
        (&|m| m.wall_s = -1.0, "its time"),
        (&|m| m.wall_s = 1e300, "its time"),
        (&|m| m.last_pressure = u64::MAX, "its last trouble"),
        (&|m| m.task.num_envs = 0, "its environments"),
        (&|m| m.health.bad_updates = u32::MAX, "its counts"),
        (&|m| m.health.roll_backs = u32::MAX, "its counts"),
        (&|m| m.health.roll_backs_in_all = u64::MAX, "its counts"),
    ];
    for (change, words) in forged {
        let e = read(change).unwrap_err().to_string();
        assert!(e.contains(words) && e.contains("cannot be"), "{e}");
    }
}

#[test]
fn a_file_with_a_hole_is_not_read_into_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.safetensors");
    let file = File::create(&path).unwrap();
    // 8 TiB, which take nothing on the disk; first its head is none, then it is one.
    file.set_len(1 << 43).unwrap();
    file.write_all_at(&u64::MAX.to_le_bytes(), 0).unwrap();
    let e = Checkpoint::read(&path).unwrap_err();
    assert!(matches!(e, CheckpointError::Content { .. }), "{e}");
    file.write_all_at(&2_u64.to_le_bytes(), 0).unwrap();
    file.write_all_at(b"{}", 8).unwrap();
    let e = Checkpoint::read(&path).unwrap_err();
    assert_eq!(e.out_of_memory().map(|e| e.bytes), Some(1 << 43), "{e}");
    // The system would promise less than what there is, and kill who takes it.
    assert!(memory_holds(50, Some(100)) && memory_holds(50, None));
    assert!(!memory_holds(51, Some(100)) && !memory_holds(u64::MAX, Some(u64::MAX - 1)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_number_in_the_json_comes_back_exactly(bits: u64) {
        let wall_s = f64::from_bits(bits);
        prop_assume!(wall_s.is_finite());
        let meta = Meta { wall_s, ..Checkpoint::meta(mark()) };
        let text = serde_json::to_string(&meta).unwrap();
        let back: Meta = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back.wall_s.to_bits(), bits);
    }

    #[test]
    fn random_damage_is_an_error_or_harmless(
        at in 0usize..4000, byte in any::<u8>(), cut in 0usize..4000
    ) {
        let (_dir, path) = written();
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(cut.max(1));
        let whole = std::fs::read(&path).unwrap();
        // The blanks that fill up the header may be other blanks: they mean nothing.
        let blank = |b: &u8| b" \t\n\r".contains(b);
        let harmless = bytes.len() == whole.len()
            && bytes.iter().zip(&whole).all(|(a, b)| a == b || (blank(a) && blank(b)));
        prop_assert!(parse(&bytes).is_ok() || bytes != whole);
        prop_assert!(parse(&bytes).is_err() || harmless);
    }
}
