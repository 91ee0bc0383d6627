use super::super::Field;
use super::*;

fn asked(storage: StorageKind, save: bool, room: Room, device: Device) -> Option<String> {
    let layout = Layout::new(vec![Field::float("obs", 25)]).unwrap();
    let config =
        ReplayConfig { capacity: 1000, recent: 100, storage, save, ..ReplayConfig::default() };
    let checked = check(&config, &layout, device, 50, &room, 0);
    checked.err().map(|e| e.to_string())
}

#[test]
fn f14_a_capacity_that_does_not_fit_is_refused_with_the_largest_that_would() {
    let (cpu, gpu) = (Device::Cpu, Device::Cuda(0));
    let host = |bytes| Room { host: Some(bytes), ..Room::default() };
    let disk = |bytes| Room { disk: Some(bytes), ..Room::default() };
    let on_device = |bytes| Room { device: Some(bytes), host: Some(0), ..Room::default() };
    use StorageKind::{Device as OnDevice, Host, Memmap, Tiered};
    // 1050 transitions of 100 bytes.
    assert_eq!(asked(Host, false, host(105_000), cpu), None);
    let text = asked(Host, false, host(104_999), cpu).unwrap();
    assert!(text.starts_with(
        "1050 transitions need 105000 bytes (100 per transition), 104999 are free in host memory"
    ));
    assert!(text.contains("replay.capacity = 999 would fit"), "{text}");
    assert_eq!(asked(OnDevice, false, on_device(105_000), gpu), None);
    let text = asked(OnDevice, false, on_device(60_000), gpu).unwrap();
    assert!(text.contains("on the device") && text.contains("= 550 would fit"));
    assert!(asked(OnDevice, false, host(60_000), cpu).is_some());
    // 12 bytes more in a file.
    assert_eq!(asked(Memmap, false, disk(117_600), cpu), None);
    let text = asked(Memmap, false, disk(117_599), cpu).unwrap();
    assert!(text.contains("= 999 would fit") && text.contains("replay.directory"));
    let text = asked(Host, true, disk(10), cpu).unwrap();
    assert!(text.contains("not even replay.capacity = 1") && text.contains("replay.save"));
    assert_eq!(asked(Host, false, disk(10), cpu), None);
    // 100 and the margin on the device, all in the file.
    assert_eq!(asked(Tiered, false, on_device(15_000), gpu), None);
    let text = asked(Tiered, false, on_device(14_999), gpu).unwrap();
    assert!(text.contains("replay.recent = 99 would fit"), "{text}");
    assert_eq!(asked(Tiered, false, Room::default(), gpu), None);
}

#[test]
fn what_a_file_takes_already_is_not_taken_again() {
    let layout = Layout::new(vec![Field::float("obs", 25)]).unwrap();
    let config =
        ReplayConfig { capacity: 1000, storage: StorageKind::Memmap, ..ReplayConfig::default() };
    let room = Room { disk: Some(12_000), ..Room::default() };
    assert!(check(&config, &layout, Device::Cpu, 0, &room, 99_999).is_err());
    assert!(check(&config, &layout, Device::Cpu, 0, &room, 100_000).is_ok());
}
