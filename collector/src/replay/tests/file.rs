use super::super::transition::{Field, Rows};
use super::*;
use proptest::prelude::*;

pub(crate) fn layout() -> Layout {
    Layout::new(vec![Field::float("a", 3), Field::integer("b")]).unwrap()
}

/// All words of a transition follow from its number and `salt`.
pub(crate) fn fill(first: u64, salt: u32) -> impl FnMut(usize, &mut [u32]) {
    move |i, words| {
        let row = first as u32 + i as u32;
        let all = (0..).map(|k| 1000 * row + 10 * salt + k);
        words.iter_mut().zip(all).for_each(|(w, v)| *w = v);
    }
}

pub(crate) fn open(folder: &Path, window: &mut Window) -> Result<(FileRing, Found), ReplayError> {
    FileRing::open(folder, &layout(), window, Expect::Any)
}

fn extend(file: &mut FileRing, window: &mut Window, count: usize, stride: u32, salt: u32) {
    let (first, segment) = (window.end(), window.segment_for(stride));
    file.write(first, count, |_| segment, fill(first, salt)).unwrap();
    window.push(count as u64, stride);
    file.commit(window).unwrap();
}

pub(crate) fn seen(file: &FileRing, window: &Window) -> Vec<(u64, Vec<u32>, (u64, u64))> {
    let rows = Rows::one(file.ring().unwrap());
    let row = |r| (r, rows.row(r).to_vec(), window.run_from(r, 50));
    window.range().map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn f13_what_was_committed_is_there_after_the_process_ended(
        capacity in 4_u64..30, margin in 0_u64..30,
        extends in prop::collection::vec((1_usize..9, 1_u32..4), 1..12),
        torn in 0_usize..40,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let new = || Window::new(capacity, capacity + margin);
        let mut window = new();
        let (mut file, _) = open(dir.path(), &mut window).unwrap();
        for (i, &(steps, n)) in extends.iter().enumerate() {
            let count = (steps * n as usize).min(window.physical() as usize);
            extend(&mut file, &mut window, count, n, i as u32);
        }
        let expected = seen(&file, &window);
        // Killed while it wrote: no more than the margin, as nothing promises more.
        let torn = torn.min(margin as usize);
        let segment = window.segment_for(1);
        file.write(window.end(), torn, |_| segment, fill(0, 99)).unwrap();
        drop(file);
        let mut found = new();
        let (file, said) = open(dir.path(), &mut found).unwrap();
        prop_assert_eq!(seen(&file, &found), expected);
        prop_assert_eq!(said, Found { rows: window.len(), dropped: 0 });
        prop_assert!(found.segment_for(1).id != window.segment_at(window.end() - 1).unwrap().id);
    }
}

#[test]
fn damaged_transitions_are_dropped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut window = Window::new(20, 20);
    let (mut file, _) = open(dir.path(), &mut window).unwrap();
    extend(&mut file, &mut window, 30, 1, 0);
    let flip = |row: u64| {
        let at = PLACES + (row % 20) * 4 * (4 + TRAILER as u64) + 5;
        let mut raw = File::options();
        let raw = raw.read(true).write(true).open(dir.path().join(ROWS)).unwrap();
        let mut byte = [0];
        raw.read_exact_at(&mut byte, at).unwrap();
        raw.write_all_at(&[byte[0] ^ 1], at).unwrap();
    };
    flip(15);
    flip(28);
    drop(file);
    let mut found = Window::new(20, 20);
    let (file, said) = open(dir.path(), &mut found).unwrap();
    assert_eq!(found.range(), 16..28, "the longest whole part of 10..30");
    assert_eq!(said, Found { rows: 12, dropped: 8 });
    assert_eq!(seen(&file, &found)[0].1[0], 16_000);
}

#[test]
fn one_damaged_commit_leaves_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let new = || Window::new(20, 30);
    let mut window = new();
    let (mut file, _) = open(dir.path(), &mut window).unwrap();
    extend(&mut file, &mut window, 6, 1, 0);
    extend(&mut file, &mut window, 6, 1, 0);
    let slot = file.commit.slot();
    file.file.write_all_at(&[1; 4], slot).unwrap();
    drop(file);
    let mut found = new();
    let (file, _) = open(dir.path(), &mut found).unwrap();
    assert_eq!(found.range(), 0..6);
    let other = if slot == SLOTS { SLOTS + SLOT } else { SLOTS };
    file.file.write_all_at(&[1; 4], other).unwrap();
    drop(file);
    // Without a commit nothing can be known: another file takes its place.
    let mut found = new();
    let (file, said) = open(dir.path(), &mut found).unwrap();
    assert_eq!((found.range(), said), (0..0, Found::default()));
    assert!(dir.path().join("rows.damaged").is_file());
    drop(file);
    assert!(open(dir.path(), &mut new()).is_ok());
}

#[test]
fn a_file_of_another_memory_is_refused_with_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path(), &mut Window::new(20, 30)).unwrap());
    let refused = |layout: &Layout, mut window: Window, expect| {
        let opened = FileRing::open(dir.path(), layout, &mut window, expect);
        opened.unwrap_err().to_string()
    };
    let other = Layout::new(vec![Field::float("a", 4)]).unwrap();
    let e = refused(&other, Window::new(20, 30), Expect::Any);
    assert!(e.contains("other fields"), "{e}");
    let e = refused(&layout(), Window::new(21, 30), Expect::Any);
    assert!(e.contains("other replay.capacity (20)"), "{e}");
    // Places are the file's own, also where its head is damaged, which is mended.
    for wanted in [20, 31, 60] {
        let mut window = Window::new(20, wanted);
        drop(open(dir.path(), &mut window).unwrap());
        assert_eq!((window.capacity(), window.physical()), (20, 30));
        assert!(!dir.path().join("rows.damaged").exists());
        let path = dir.path().join(ROWS);
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&[7], 40).unwrap();
    }
    let e = refused(&layout(), Window::new(20, 30), Expect::New);
    assert!(e.contains("there is a replay buffer already"), "{e}");
    let path = dir.path().join(ROWS);
    std::fs::write(&path, "something else").unwrap();
    let e = refused(&layout(), Window::new(20, 30), Expect::New);
    assert!(e.contains("there is a replay buffer already"), "{e}");
    // What somebody else has written is kept.
    drop(open(dir.path(), &mut Window::new(20, 30)).unwrap());
    let aside = std::fs::read(dir.path().join("rows.damaged")).unwrap();
    assert_eq!(aside, b"something else");
}

#[test]
fn a_file_that_was_cut_gives_what_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let mut window = Window::new(20, 30);
    let (mut file, _) = open(dir.path(), &mut window).unwrap();
    extend(&mut file, &mut window, 12, 1, 0);
    let place = 4 * (4 + TRAILER as u64);
    let whole = file.file.metadata().unwrap().len();
    file.file.set_len(PLACES + 7 * place + 3).unwrap();
    drop(file);
    let mut found = Window::new(20, 30);
    let (file, said) = open(dir.path(), &mut found).unwrap();
    let left = Found { rows: 7, dropped: 5 };
    assert_eq!((found.range(), said), (0..7, left));
    assert_eq!(file.file.metadata().unwrap().len(), whole);
    assert_eq!(seen(&file, &found)[6].1[0], 6_000);
}

#[test]
fn two_runs_do_not_share_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path(), &mut Window::new(4, 4)).unwrap();
    let second = open(dir.path(), &mut Window::new(4, 4));
    assert!(matches!(second, Err(ReplayError::Locked { .. })));
    drop(first);
    open(dir.path(), &mut Window::new(4, 4)).unwrap();
}

/// A commit whose checksum is right and whose numbers cannot be: rows are not counted up to
/// them, one after the other.
#[test]
fn a_commit_of_more_than_the_file_holds_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let new = || Window::new(20, 30);
    let mut window = new();
    let (mut file, _) = open(dir.path(), &mut window).unwrap();
    for _ in 0..8 {
        extend(&mut file, &mut window, 6, 1, 0);
    }
    let good = file.commit;
    assert_eq!((good.begin, good.end, good.head), (28, 48, 48));
    let raw = file.file.try_clone().unwrap();
    drop(file);
    let most = 1 << 62;
    let wrong = |begin, end, head, sequence| Commit { begin, end, head, sequence };
    for forged in [
        wrong(0, most, most, good.sequence),
        wrong(0, 1 << 40, 1 << 40, good.sequence),
        wrong(17, 48, 48, good.sequence),
        wrong(0, 31, 48, good.sequence),
        wrong(0, 0, u64::MAX, good.sequence),
        wrong(u64::MAX - 1, u64::MAX, u64::MAX, good.sequence),
        wrong(28, 48, 48, u64::MAX - 1 + good.sequence % 2),
    ] {
        raw.write_all_at(&forged.to_bytes(), good.slot()).unwrap();
        let mut found = new();
        let (file, _) = open(dir.path(), &mut found).unwrap();
        assert_eq!(file.commit.sequence, good.sequence - 1, "{forged:?}");
        assert_eq!(found.range(), 22..42, "the commit before: {forged:?}");
    }
    // All that fits is believed: the rows prove themselves.
    let behind = wrong(28, 48, 58, good.sequence);
    raw.write_all_at(&behind.to_bytes(), good.slot()).unwrap();
    let mut found = new();
    open(dir.path(), &mut found).unwrap();
    assert_eq!((found.range(), found.head()), (28..48, 58));
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    for name in [".lock", ROWS] {
        let path = dir.path().join(name);
        // Not by a program, which would hold this process's locks while it starts.
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        let e = open(dir.path(), &mut Window::new(4, 4)).unwrap_err();
        assert!(e.to_string().contains("a pipe"), "{e}");
        std::fs::remove_file(path).unwrap();
    }
}
