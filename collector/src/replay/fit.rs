//! Size of a replay buffer, and whether there is room for it (F14).

use super::layout::TRAILER;
use super::{Layout, ReplayConfig, ReplayError, StorageKind};
use tch::Device;

/// Free bytes; `None` where nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// Host memory that this process may still take.
    pub host: Option<u64>,
    /// Memory of the learner's device, where that is not the host.
    pub device: Option<u64>,
    /// Disk, in the folder of the file.
    pub disk: Option<u64>,
}

impl Room {
    /// On a device.
    pub fn on(&self, device: Device) -> Option<u64> {
        match device {
            Device::Cpu => self.host,
            _ => self.device,
        }
    }
}

/// Transitions by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// In host memory.
    pub host: u64,
    /// On the device.
    pub device: u64,
    /// In a file.
    pub disk: u64,
}

/// Where a configuration keeps its transitions, and `margin` more; `"auto"`: on the device.
pub fn places(config: &ReplayConfig, device: Device, margin: usize) -> Places {
    let rows = (config.capacity as u64).saturating_add(margin as u64);
    let on_device = |n: u64| match device {
        Device::Cpu => (n, 0),
        _ => (0, n),
    };
    let recent = config.recent as u64;
    let (host, device) = match config.storage {
        StorageKind::Host => (rows, 0),
        StorageKind::Device | StorageKind::Auto => on_device(rows),
        StorageKind::Memmap => (0, 0),
        StorageKind::Tiered => on_device(recent.saturating_add(margin as u64).min(rows)),
    };
    let file = config.storage.in_file() || config.save;
    Places { host, device, disk: if file { rows } else { 0 } }
}

/// Refuses a capacity that does not fit, with the largest that would. `margin` transitions
/// more than `config.capacity` are kept, see [`Setup::margin`](super::Setup::margin);
/// `config.storage` is resolved. `there` is the file's present size (bytes).
///
/// # Errors
/// [`ReplayError::TooLarge`].
pub fn check(
    config: &ReplayConfig,
    layout: &Layout,
    device: Device,
    margin: usize,
    room: &Room,
    there: u64,
) -> Result<(), ReplayError> {
    let need = places(config, device, margin);
    let each = layout.bytes_per_transition() as u64;
    let in_file = each + 4 * TRAILER as u64;
    let tiered = config.storage == StorageKind::Tiered;
    let places = [
        (need.host, each, room.host, "in host memory"),
        (need.device, each, room.device, "on the device"),
        (need.disk, in_file, room.disk.map(|d| d.saturating_add(there)), "on the disk"),
    ];
    for (rows, each, free, place) in places {
        let bytes = rows.saturating_mul(each);
        let Some(free) = free.filter(|&free| bytes > free) else {
            continue;
        };
        let key = match tiered && place != "on the disk" {
            true => "replay.recent",
            false => "replay.capacity",
        };
        let most = (free / each).saturating_sub(margin as u64);
        let fits = match most {
            0 => format!("not even {key} = 1 would fit"),
            n => format!("{key} = {n} would fit"),
        };
        let also = match (place, config.storage) {
            ("on the disk", StorageKind::Host | StorageKind::Device) => {
                "; without replay.save nothing is written"
            }
            ("on the disk", _) => "; or choose another replay.directory",
            (_, StorageKind::Tiered) => "",
            _ => "; or replay.storage = \"memmap\" or \"tiered\"",
        };
        return Err(ReplayError::TooLarge {
            what: format!("{rows} transitions"),
            place: place.into(),
            needs: bytes,
            each,
            free,
            remedy: format!("{fits}{also}"),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
        let config = ReplayConfig {
            capacity: 1000,
            storage: StorageKind::Memmap,
            ..ReplayConfig::default()
        };
        let room = Room { disk: Some(12_000), ..Room::default() };
        assert!(check(&config, &layout, Device::Cpu, 0, &room, 99_999).is_err());
        assert!(check(&config, &layout, Device::Cpu, 0, &room, 100_000).is_ok());
    }
}
