use super::super::file::tests::{fill, layout, open, seen};
use super::super::file::{PLACES, ROWS};
use super::*;
use std::fs::File;
use std::path::Path;

fn disk(dir: &Path, window: &mut Window, on_full: OnFullDisk) -> Disk {
    let (file, _) = open(dir, window).unwrap();
    let words = layout().words();
    Disk { file, overflow: None, on_full, free: || Some(2 * 16 * 25), words }
}

fn extend(disk: &mut Disk, window: &mut Window, count: usize) -> Result<(), ReplayError> {
    let mut fill = fill(window.end(), 0);
    disk.extend(window, &mut New { count, stride: 2, fill: &mut fill })
}

#[test]
fn f13_a_full_disk_is_an_error_and_what_was_stored_stays() {
    let dir = tempfile::tempdir().unwrap();
    let mut window = Window::new(20, 30);
    let mut disk = disk(dir.path(), &mut window, OnFullDisk::Stop);
    extend(&mut disk, &mut window, 24).unwrap();
    let (before, expected) = (window.clone(), seen(&disk.file, &window));
    disk.file.room = Some(50);
    let e = extend(&mut disk, &mut window, 6).unwrap_err();
    assert!(matches!(&e, ReplayError::FullDisk { rows: 20, .. }), "{e}");
    let text = e.to_string();
    for remedy in ["replay.capacity", "replay.directory", "replay.on_full_disk"] {
        assert!(text.contains(remedy), "{text}");
    }
    assert_eq!(window.range(), before.range());
    assert_eq!(seen(&disk.file, &window), expected);
    disk.file.room = None;
    extend(&mut disk, &mut window, 6).unwrap();
    assert_eq!(window.range(), 10..30, "it goes on where there is room again");
    assert_eq!(window.segment_at(29).unwrap().id, 0);
    drop(disk);
    let mut found = Window::new(20, 30);
    open(dir.path(), &mut found).unwrap();
    assert_eq!(found.range(), 10..30);
}

#[test]
fn f13_a_full_disk_may_be_continued_in_host_memory() {
    let dir = tempfile::tempdir().unwrap();
    let mut window = Window::new(20, 30);
    let mut disk = disk(dir.path(), &mut window, OnFullDisk::Host);
    extend(&mut disk, &mut window, 24).unwrap();
    disk.file.room = Some(50);
    extend(&mut disk, &mut window, 6).unwrap();
    assert_eq!(window.range(), 10..30);
    let rows = disk.rows().unwrap();
    for (row, words) in window.range().map(|r| (r, rows.row(r))) {
        assert_eq!(words[0], 1000 * row as u32);
    }
    assert_eq!(disk.save(&window).unwrap(), 24, "the rest is not in the file");
    // Half of the free memory holds 25 transitions.
    assert_eq!((window.capacity(), window.physical()), (20, 25));
    for _ in 0..9 {
        extend(&mut disk, &mut window, 6).unwrap();
    }
    let rows = disk.rows().unwrap();
    for (row, words) in window.range().map(|r| (r, rows.row(r))) {
        assert_eq!(words[0], 1000 * row as u32);
    }
    drop(disk);
    let mut found = Window::new(20, 30);
    open(dir.path(), &mut found).unwrap();
    assert!(found.end() == 24 && found.begin() >= 4);
}

/// Another program's `truncate`, between two uses.
#[test]
fn a_file_that_another_program_shortens_is_an_error_and_no_signal() {
    let dir = tempfile::tempdir().unwrap();
    let mut window = Window::new(2_000, 2_000);
    let mut disk = disk(dir.path(), &mut window, OnFullDisk::Host);
    extend(&mut disk, &mut window, 1_000).unwrap();
    let raw = File::options().write(true).open(dir.path().join(ROWS));
    let raw = raw.unwrap();
    let (whole, before) = (raw.metadata().unwrap().len(), window.range());
    raw.set_len(PLACES).unwrap();
    let refused = |e: ReplayError| {
        let text = e.to_string();
        let expected = format!("it has {PLACES} bytes instead of {whole}");
        assert!(text.contains(&expected), "{text}");
        assert!(text.contains(ROWS), "{text}");
    };
    refused(disk.rows().map(drop).unwrap_err());
    refused(disk.file.ring().map(drop).unwrap_err());
    // Nor is it made long again: its content would be zeros.
    refused(extend(&mut disk, &mut window, 6).unwrap_err());
    assert_eq!(raw.metadata().unwrap().len(), PLACES);
    assert_eq!(window.range(), before);
    assert!(disk.overflow.is_none(), "the disk is not full");
    // Longer is no harm.
    raw.set_len(whole + 9).unwrap();
    assert_eq!(disk.rows().unwrap().row(window.begin()).len(), 4);
}
