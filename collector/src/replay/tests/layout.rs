use super::*;

#[test]
fn fields_lie_one_behind_the_other() {
    let fields = vec![Field::float("a", 3), Field::integer("b"), Field::float("c", 2)];
    let layout = Layout::new(fields).unwrap();
    let starts: Vec<usize> = layout.places().map(|(_, start)| start).collect();
    assert_eq!(starts, [0, 3, 4]);
    assert_eq!((layout.words(), layout.bytes_per_transition()), (6, 24));
    assert_eq!(layout.find("c"), Some((&Field::float("c", 2), 4)));
    assert_eq!(layout.find("d"), None);
}

#[test]
fn impossible_layouts_are_refused() {
    let a = || Field::float("a", 1);
    for fields in [vec![], vec![a(), a()], vec![Field::float("a", 0)]] {
        assert!(Layout::new(fields).is_err());
    }
}
