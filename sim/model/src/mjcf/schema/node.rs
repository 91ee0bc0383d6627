//! An element of the schema.

/// Treatment of an element.
pub(crate) enum Role {
    /// Its attributes and children are looked at.
    Read,
    /// Accepted with everything in it and listed, with the reason.
    Ignored(&'static str),
    /// Accepted with everything in it: tasks read it, the dynamics do not.
    Apart,
    /// Not supported, with the reason or remedy.
    Refused(&'static str),
}

/// An element: names are separated by spaces.
pub(crate) struct Node {
    pub name: &'static str,
    pub role: Role,
    /// Attributes that are read.
    pub reads: &'static [&'static str],
    /// Attributes without effect on the dynamics, and why.
    pub ignores: &'static [(&'static str, &'static str)],
    /// Attributes that are not supported, and why; their value for "off" passes.
    pub refuses: &'static [(&'static str, &'static str)],
    pub children: &'static [&'static Node],
}

pub(super) const LEAF: Node =
    Node { name: "", role: Role::Read, reads: &[], ignores: &[], refuses: &[], children: &[] };

pub(super) const DRAWING: &str = "only for drawing";
pub(super) const USER: &str = "user data has no effect on the dynamics";
pub(super) const AWAKE: &str = "bodies never sleep here";
pub(super) const PLASTIC: (&str, &str) = ("springyield", "springs do not yield here; leave it out");
pub(super) const NAMED: &str = "name class";
