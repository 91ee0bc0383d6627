//! Elements and attributes with their places in files, and what is said of them.

/// Elements nested deeper than this are refused (the reader recurses).
pub(super) const MAX_DEPTH: usize = 200;

/// A place in one of the model's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct At {
    file: u32,
    byte: u32,
}

impl At {
    /// Where the first file begins.
    pub(crate) const START: At = At { file: 0, byte: 0 };

    /// Byte number `byte` of file number `file`, whose size is bounded.
    pub(crate) fn new(file: u32, byte: usize) -> Self {
        At { file, byte: byte as u32 }
    }

    pub(crate) fn byte(self) -> usize {
        self.byte as usize
    }

    /// Key that sorts places by file and position.
    pub(crate) fn order(self) -> (u32, u32) {
        (self.file, self.byte)
    }

    /// Number of its file, in the order of reading.
    pub(crate) fn file(self) -> usize {
        self.file as usize
    }
}

/// The mistake and its place.
#[derive(Debug)]
pub(super) struct Fault {
    pub at: At,
    pub message: String,
}

impl Fault {
    pub(crate) fn new(at: At, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

/// Result of reading a part of a file.
pub(super) type Read<T> = Result<T, Fault>;

/// `name="value"`.
#[derive(Debug, Clone)]
pub(super) struct Attr {
    pub name: String,
    pub value: String,
    /// The name's place.
    pub at: At,
    /// The value's first character.
    value_at: At,
    /// The value stands in the file as it is here, so offsets hold.
    verbatim: bool,
}

impl Attr {
    /// One that stands in the file; `verbatim`: its value does so as it is here.
    pub(crate) fn read(name: &str, value: String, at: At, value_at: At, verbatim: bool) -> Self {
        Self { name: name.to_string(), value, at, value_at, verbatim }
    }

    /// An attribute that does not stand in the file, for what stands at `at`.
    pub(crate) fn made(name: &str, value: &str, at: At) -> Self {
        Self { name: name.to_string(), value: value.to_string(), at, value_at: at, verbatim: false }
    }

    /// Gives it another value, which does not stand in the file.
    pub(crate) fn set(&mut self, value: String) {
        self.value = value;
        self.verbatim = false;
    }

    /// Place of the value's byte `offset`.
    pub(crate) fn value_at(&self, offset: usize) -> At {
        At {
            byte: self.value_at.byte + if self.verbatim { offset as u32 } else { 0 },
            ..self.value_at
        }
    }
}

/// `<name attrs>children</name>`.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub name: String,
    pub at: At,
    pub attrs: Vec<Attr>,
    pub children: Vec<Element>,
    /// Text between its children, which says nothing.
    pub stray: Option<At>,
    /// Name of a joint or actuator in keyframes of attached models.
    pub slot: Option<u32>,
    /// Only for pictures: MuJoCo leaves it out (visual shapes of URDFs).
    pub discarded: bool,
}

impl Element {
    /// An element that does not stand in the file, for what stands at `at`.
    pub(crate) fn made(name: &str, at: At) -> Self {
        Self {
            name: name.to_string(),
            at,
            attrs: Vec::new(),
            children: Vec::new(),
            stray: None,
            slot: None,
            discarded: false,
        }
    }

    /// Gives an attribute a value, whether it stands in the file or not.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        match self.attrs.iter_mut().find(|a| a.name == name) {
            Some(attr) => attr.set(value.to_string()),
            None => self.attrs.push(Attr::made(name, value, self.at)),
        }
    }

    pub(crate) fn attr(&self, name: &str) -> Option<&Attr> {
        self.attrs.iter().find(|a| a.name == name)
    }

    pub(crate) fn children_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.children.iter().filter(move |c| c.name == name)
    }
}

/// Something that has no effect, with its place still as an offset.
pub(super) struct Note {
    pub at: At,
    pub what: String,
    pub why: &'static str,
}
