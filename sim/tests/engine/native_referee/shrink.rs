//! Takes things out of a model as long as it still shows what it was kept for.

use super::xml::Node;

/// The smallest model found for which `shows` still holds; it holds for `node`.
///
/// Greedy: whole elements first, the large ones before the small, then elements
/// whose children stay, then attributes; again until nothing more goes.
pub fn shrink(mut node: Node, mut tries: usize, shows: &mut dyn FnMut(&Node) -> bool) -> Node {
    loop {
        let before = (node.size(), attributes(&node));
        for keep in [false, true] {
            let mut i = 1;
            while i < node.size() {
                match attempt(node.without(i, keep), &mut tries, shows) {
                    Some(smaller) => node = smaller,
                    None => i += 1,
                }
            }
        }
        let mut i = 0;
        while i < node.size() {
            let mut a = 0;
            while node.find(i).is_some_and(|n| a < n.attributes.len()) {
                let mut less = node.clone();
                if let Some(n) = less.find(i) {
                    n.attributes.remove(a);
                }
                match attempt(Some(less), &mut tries, shows) {
                    Some(smaller) => node = smaller,
                    None => a += 1,
                }
            }
            i += 1;
        }
        if tries == 0 || (node.size(), attributes(&node)) == before {
            return node;
        }
    }
}

fn attempt(
    candidate: Option<Node>,
    tries: &mut usize,
    shows: &mut dyn FnMut(&Node) -> bool,
) -> Option<Node> {
    let candidate = candidate.filter(|_| *tries > 0)?;
    *tries -= 1;
    shows(&candidate).then_some(candidate)
}

fn attributes(node: &Node) -> usize {
    node.attributes.len() + node.children.iter().map(attributes).sum::<usize>()
}

#[test]
fn what_does_not_matter_is_taken_out() {
    let leaf = |name| Node::new(name).with("a", 1).with("b", 2);
    let tree = Node::new("root").holding(leaf("x")).holding(
        leaf("mid").holding(leaf("y").holding(leaf("z"))).holding(leaf("x").holding(leaf("x"))),
    );
    let mut asked = 0;
    let small = shrink(tree, 1000, &mut |n| {
        asked += 1;
        let text = n.to_string();
        text.contains("<z") && text.contains("b=\"2\"")
    });
    assert_eq!(small.to_string(), "<root>\n  <z b=\"2\"/>\n</root>\n");
    assert!(asked < 100, "{asked}");
    let kept = shrink(leaf("x"), 0, &mut |_| true);
    assert_eq!(kept, leaf("x"));
}
