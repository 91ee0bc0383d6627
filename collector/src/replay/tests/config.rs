use super::*;

fn config(text: &str) -> ReplayConfig {
    toml::from_str(text).unwrap()
}

fn paths(errors: &[ConfigError]) -> Vec<&str> {
    errors.iter().map(|e| e.path.as_str()).collect()
}

#[test]
fn the_default_can_be_used_and_survives_being_written() {
    let default = ReplayConfig::default();
    assert!(default.validate().is_empty());
    assert!(default.validate_device(Device::Cpu, false).is_empty());
    assert!(default.validate_device(Device::Cuda(1), true).is_empty());
    let text = toml::to_string(&default).unwrap();
    assert_eq!(config(&text), default);
    assert!(toml::from_str::<ReplayConfig>("capacty = 1").is_err());
}

#[test]
fn each_key_says_what_it_cannot_be() {
    let cases = [
        ("capacity = 0", "replay.capacity"),
        ("capacity = 2147483648", "replay.capacity"),
        ("storage = 'tiered'\ncapacity = 9\nrecent = 10", "replay.recent"),
        ("storage = 'tiered'\nrecent = 0", "replay.recent"),
        ("alpha = -0.1", "replay.alpha"),
        ("beta = 1.5", "replay.beta"),
        ("beta_end = nan", "replay.beta_end"),
        ("n_step = 0", "replay.n_step"),
        ("prefetch = 65", "replay.prefetch"),
        ("storage_device = 'gpu'", "replay.storage_device"),
        ("storage = 'host'\nstorage_device = 'cuda'", "replay.storage_device"),
    ];
    for (text, path) in cases {
        let errors = config(text).validate();
        assert_eq!(paths(&errors), [path], "{text}");
        assert!(errors[0].help.is_some(), "{text}");
    }
}

#[test]
fn f11_a_memory_map_on_a_gpu_is_refused_with_the_two_ways_out() {
    for storage in ["memmap", "tiered"] {
        for device in ["cuda", "cuda:0", "cuda:7"] {
            let text = format!("storage = '{storage}'\nstorage_device = '{device}'");
            let errors = config(&text).validate();
            assert_eq!(paths(&errors), ["replay.storage_device"]);
            let help = errors[0].help.as_deref().unwrap();
            assert!(help.contains("replay.storage = \"device\""), "{help}");
            assert!(help.contains("when it is drawn"), "{help}");
        }
        // Batches for a GPU are another matter: they are brought there.
        let to_gpu = config(&format!("storage = '{storage}'"));
        assert!(to_gpu.validate().is_empty());
        assert!(to_gpu.validate_device(Device::Cuda(0), true).is_empty());
    }
}

#[test]
fn f09_pinning_without_a_gpu_is_refused() {
    let pinned = config("pin_memory = true");
    let errors = pinned.validate_device(Device::Cpu, false);
    assert_eq!(paths(&errors), ["replay.pin_memory"]);
    assert!(pinned.validate_device(Device::Cuda(0), true).is_empty());
    assert!(pinned.validate_device(Device::Cpu, true).is_empty());
}

#[test]
fn a_storage_on_another_device_than_the_learners_is_refused() {
    let on = |device: &str| config(&format!("storage = 'device'\nstorage_device = '{device}'"));
    for (device, learner, fits) in [
        ("cuda", Device::Cuda(0), true),
        ("cuda:1", Device::Cuda(1), true),
        ("cuda:1", Device::Cuda(0), false),
        ("cpu", Device::Cuda(0), false),
        ("cpu", Device::Cpu, true),
    ] {
        let errors = on(device).validate_device(learner, true);
        assert_eq!(errors.is_empty(), fits, "{device} {learner:?}");
    }
}

#[test]
fn auto_takes_the_device_where_a_quarter_of_its_memory_is_enough() {
    let layout = Layout::new(vec![super::super::Field::float("obs", 25)]).unwrap();
    let auto = |capacity, free| {
        let room = Room { device: free, ..Room::default() };
        let config = config(&format!("capacity = {capacity}"));
        config.resolve(&layout, Device::Cuda(0), &room, 10).storage
    };
    assert_eq!(auto(990, Some(400_000)), StorageKind::Device);
    assert_eq!(auto(991, Some(400_000)), StorageKind::Tiered);
    assert_eq!(auto(991, None), StorageKind::Device);
    let fixed = config("storage = 'host'\ncapacity = 5");
    let resolved = fixed.resolve(&layout, Device::Cpu, &Room::default(), 0);
    assert_eq!((resolved.storage, resolved.recent), (StorageKind::Host, 5));
}
