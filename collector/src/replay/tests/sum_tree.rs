use super::*;
use proptest::prelude::*;

proptest! {
    #[test]
    fn it_does_what_a_list_does(
        leaves in 1_usize..700,
        updates in prop::collection::vec(prop::collection::vec((0_usize..700, 0_u32..50), 1..40), 1..8),
        shares in prop::collection::vec(0.0_f64..1.0, 20),
    ) {
        let mut tree = SumTree::new(leaves).unwrap();
        let mut list = vec![0.0_f64; leaves];
        for update in &updates {
            let update: Vec<_> = update.iter().map(|&(i, v)| (i % leaves, f64::from(v))).collect();
            let mut undo = Vec::new();
            let (before, kept) = (tree.clone(), list.clone());
            tree.set(update.iter().copied(), |leaf, value| undo.push((leaf, value)));
            for &(i, v) in &update {
                list[i] = v;
            }
            prop_assert_eq!(tree.leaves(), &list[..]);
            // Whole numbers: sums are exact in any order.
            prop_assert_eq!(tree.total(), list.iter().sum::<f64>());
            prop_assert_eq!(tree.least(), smallest_above_0(&list));
            for share in &shares {
                let at = share * tree.total();
                let mut rest = at;
                let expected = list.iter().position(|&v| {
                    let here = rest < v;
                    rest -= v;
                    here
                });
                if let Some(expected) = expected {
                    prop_assert_eq!(tree.find(at), expected);
                }
            }
            let mut back = tree.clone();
            back.set(undo.into_iter().rev(), |_, _| ());
            prop_assert_eq!(back.leaves(), &kept[..]);
            prop_assert_eq!(&back.sums, &before.sums, "the same bits");
            prop_assert_eq!(&back.least, &before.least);
        }
    }
}

#[test]
fn what_rounding_leaves_behind_the_end_is_the_last_leafs() {
    let mut tree = SumTree::new(40).unwrap();
    tree.set([(3, 0.1), (17, 0.2)].into_iter(), |_, _| ());
    assert_eq!(tree.find(1.0), 17);
    assert_eq!(tree.find(0.0), 3);
    assert_eq!(SumTree::new(5).unwrap().find(0.0), 0, "nothing there");
}
