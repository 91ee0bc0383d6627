//! A tree of XML that can be changed and written.

/// An element.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub name: &'static str,
    pub attributes: Vec<(&'static str, String)>,
    pub children: Vec<Node>,
}

impl Node {
    pub fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), children: Vec::new() }
    }

    /// With one more attribute.
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.set(name, value);
        self
    }

    pub fn set(&mut self, name: &'static str, value: impl ToString) {
        self.attributes.push((name, value.to_string()));
    }

    /// With one more child.
    pub fn holding(mut self, child: Node) -> Self {
        self.children.push(child);
        self
    }

    /// Number of elements, this one included.
    pub fn size(&self) -> usize {
        1 + self.children.iter().map(Node::size).sum::<usize>()
    }

    /// The `index`-th element in document order, this one being 0.
    pub fn find(&mut self, index: usize) -> Option<&mut Node> {
        if index == 0 {
            return Some(self);
        }
        let mut before = 1;
        for child in &mut self.children {
            let size = child.size();
            if index < before + size {
                return child.find(index - before);
            }
            before += size;
        }
        None
    }

    /// Without the `index`-th element, whose children stay in its place if `keep`.
    pub fn without(&self, index: usize, keep: bool) -> Option<Node> {
        let mut copy = self.clone();
        copy.remove(index, keep).then_some(copy)
    }

    fn remove(&mut self, index: usize, keep: bool) -> bool {
        let mut before = 1;
        for i in 0..self.children.len() {
            if index == before {
                let gone = self.children.remove(i);
                if keep {
                    self.children.splice(i..i, gone.children);
                }
                return true;
            }
            let size = self.children[i].size();
            if index < before + size {
                return self.children[i].remove(index - before, keep);
            }
            before += size;
        }
        false
    }
}

impl std::fmt::Display for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        fn write(node: &Node, depth: usize, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{:depth$}<{}", "", node.name)?;
            for (name, value) in &node.attributes {
                write!(f, " {name}=\"{value}\"")?;
            }
            if node.children.is_empty() {
                return writeln!(f, "/>");
            }
            writeln!(f, ">")?;
            for child in &node.children {
                write(child, depth + 2, f)?;
            }
            writeln!(f, "{:depth$}</{}>", "", node.name)
        }
        write(self, 0, f)
    }
}
