use super::super::transition::Field;
use super::*;

#[test]
fn heads_and_commits_are_read_as_they_were_written() {
    let fields = vec![Field::float("obs", 3), Field::integer("version")];
    let head = Head::new(&Layout::new(fields).unwrap(), 10, 14);
    let mut bytes = head.to_bytes().unwrap();
    assert_eq!(Head::from_bytes(&bytes), Ok(head));
    assert!(Head::from_bytes(&bytes[..30]).is_err());
    for (at, expected) in [(0, "no replay"), (8, "format"), (40, "damaged")] {
        bytes[at] ^= 1;
        assert!(Head::from_bytes(&bytes).unwrap_err().contains(expected));
        bytes[at] ^= 1;
    }
    let commit = Commit { sequence: 7, begin: 1, end: 2, head: 3 };
    let bytes = commit.to_bytes();
    assert_eq!(Commit::from_bytes(&bytes), Some(commit));
    for at in 0..36 {
        let mut torn = bytes;
        torn[at] ^= 4;
        assert_eq!(Commit::from_bytes(&torn), None, "byte {at}");
    }
    assert_eq!(Commit::from_bytes(&[0; 512]), None);
}

#[test]
fn a_transition_proves_that_it_is_whole_and_the_right_one() {
    let mut place = [1, 2, 3, 4, 5, 0];
    seal(&mut place, 6, 9);
    assert_eq!(whole(&place, 9), Some((4, 5)));
    assert_eq!(whole(&place, 10), None);
    for at in 0..6 {
        let mut torn = place;
        torn[at] ^= 1;
        assert_eq!(whole(&torn, 9), None, "word {at}");
    }
    assert_eq!(whole(&[0; 6], 0), None, "a hole in the file");
    // Several at once, and what is left over.
    let mut places: Vec<u32> = (0..7 * 11).collect();
    seal(&mut places, 7, 100);
    for (place, row) in places.chunks(7).zip(100..) {
        assert_eq!(whole(place, row), Some((place[4], place[5])));
    }
}

#[test]
fn four_at_once_are_as_one_by_one() {
    for len in [0, 1, 2, 3, 8, 115] {
        let row = |k: u32| (0..len).map(|i: u32| i.wrapping_mul(2_654_435_761) ^ k << 7).collect();
        let rows: [Vec<u32>; 4] = [row(0), row(1), row(2), row(3)];
        let [a, b, c, d] = [0, 1, 2, 3].map(|i: usize| rows[i].as_slice());
        let first = u64::MAX / 3;
        let alone = [0, 1, 2, 3].map(|i: usize| check_of(&rows[i], first + i as u64));
        assert_eq!(checks_of([a, b, c, d], first), alone, "{len}");
    }
}
