//! Taking operations down.

use super::graph::Graph;
use super::node::{Node, Val};
use super::program::{Array, Function, Init, Program, Store};
use std::collections::{BTreeMap, HashMap};

/// Error of a recording. Each is a mistake in a kernel or in its caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TapeError {
    /// An operation, load or store outside of a function.
    #[error("{what} outside of a recorded function; begin one first")]
    NoFunction {
        /// The called function.
        what: &'static str,
    },
    /// Functions overlap.
    #[error("the function `{0}` is still open; end it first")]
    OpenFunction(String),
    /// A number that is no value of the open function.
    #[error(
        "value {raw:#x} was never recorded in this function: the kernel reads a variable \
         it has not set, or one left over from another function"
    )]
    UnknownValue {
        /// As it came.
        raw: u32,
    },
    /// A mask where a number is needed or the reverse.
    #[error("{what} was given a mask for a number or a number for a mask")]
    Kind {
        /// Which operation.
        what: &'static str,
    },
    /// An operation's number that this recorder does not know.
    #[error("operation {0} is unknown: sym.cuh and the recorder differ")]
    UnknownOperation(u32),
    /// An element that does not exist.
    #[error("element {index} of array {array} does not exist")]
    NoElement {
        /// Index into the arrays.
        array: u32,
        /// Flat index.
        index: u32,
    },
    /// An element used as a constant is given another value later.
    #[error(
        "{element} was used as the constant it had been set to, and is set to something \
         else later; declare its array as shared"
    )]
    Changed {
        /// In C++.
        element: String,
    },
    /// Too many operations.
    #[error("this robot's step would be written out in more than {} operations", Val::MAX_NODES)]
    TooLarge,
    /// Tables are too long to be written as text.
    #[error("this robot's tables have {numbers} numbers, of which {most} are written out")]
    TooManyNumbers {
        /// That many.
        numbers: usize,
        /// At most.
        most: usize,
    },
    /// A second recording on the same thread.
    #[error("this thread records already")]
    Busy,
}

/// Knowledge of an element after the functions recorded so far.
#[derive(Debug, Clone, Copy)]
enum Known {
    Constant { value: Val, used: bool },
    Varies,
}

#[derive(Debug, Default)]
struct Open {
    name: String,
    stores: Vec<Store>,
    /// Position in `stores` by element.
    position: HashMap<(u32, u32), usize>,
}

/// Takes operations down.
///
/// The first mistake is kept and returned by [`finish`](Self::finish); after it,
/// values are zeros.
#[derive(Debug)]
pub struct Recorder {
    graph: Graph,
    arrays: Vec<Array>,
    functions: Vec<Function>,
    open: Option<Open>,
    known: BTreeMap<(u32, u32), Known>,
    error: Option<TapeError>,
    /// Place of each array's first element in all arrays one behind the other.
    starts: Vec<u32>,
}

impl Recorder {
    /// A recorder of functions over these arrays.
    pub fn new(arrays: Vec<Array>) -> Self {
        let starts = arrays.iter().scan(0_u32, |next, array| {
            let start = *next;
            *next = start.saturating_add(array.len() as u32);
            Some(start)
        });
        Self {
            starts: starts.collect(),
            graph: Graph::new(),
            arrays,
            functions: Vec::new(),
            open: None,
            known: BTreeMap::new(),
            error: None,
        }
    }

    /// The graph, for constants and operations.
    pub fn graph(&mut self) -> &mut Graph {
        &mut self.graph
    }

    /// Whether a function is open.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Keeps the first mistake.
    pub fn fail(&mut self, error: TapeError) {
        self.error.get_or_insert(error);
    }

    /// The first mistake so far.
    pub fn error(&self) -> Option<&TapeError> {
        self.error.as_ref()
    }

    /// Begins a function.
    pub fn begin(&mut self, name: &str) {
        if let Some(open) = &self.open {
            let error = TapeError::OpenFunction(open.name.clone());
            self.fail(error);
            return;
        }
        self.graph.begin_function();
        self.open = Some(Open { name: name.to_owned(), ..Open::default() });
    }

    /// Ends the function.
    pub fn end(&mut self) {
        let Some(mut open) = self.open.take() else {
            self.fail(TapeError::NoFunction { what: "end" });
            return;
        };
        // An element stored as it was loaded keeps its value.
        open.stores.retain(|store| {
            let Store { array, index, value } = *store;
            value.negated() || self.graph.node(value) != Node::Load { array, index }
        });
        for store in &open.stores {
            self.learn(store);
        }
        self.functions.push(Function { name: open.name, stores: open.stores });
    }

    /// An element as the open function finds it, by its place in all arrays one behind
    /// the other.
    pub fn found(&mut self, place: u32) -> Option<Val> {
        let array = self.starts.partition_point(|start| *start <= place) as u32;
        let array = array.saturating_sub(1);
        let index = place - self.starts.get(array as usize).copied().unwrap_or(0);
        self.check_element(array, index)?;
        self.before(array, index)
    }

    /// An element as it is at this point of the open function.
    pub fn load(&mut self, array: u32, index: u32) -> Option<Val> {
        self.check_element(array, index)?;
        if let Some(open) = &self.open
            && let Some(&at) = open.position.get(&(array, index))
        {
            return Some(open.stores[at].value);
        }
        self.before(array, index)
    }

    /// An element that exists, as the open function finds it.
    fn before(&mut self, array: u32, index: u32) -> Option<Val> {
        if self.open.is_none() {
            self.fail(TapeError::NoFunction { what: "a load" });
            return None;
        }
        if let Some(Known::Constant { value, used }) = self.known.get_mut(&(array, index)) {
            *used = true;
            return Some(*value);
        }
        Some(self.graph.load(array, index))
    }

    /// Sets an element from this point of the open function on.
    pub fn store(&mut self, array: u32, index: u32, value: Val) {
        if self.check_element(array, index).is_none() {
            return;
        }
        if !self.graph.holds(value) {
            self.fail(TapeError::UnknownValue { raw: value.raw() });
            return;
        }
        if self.graph.node(value).is_mask() {
            self.fail(TapeError::Kind { what: "a store" });
            return;
        }
        let Some(open) = &mut self.open else {
            self.fail(TapeError::NoFunction { what: "a store" });
            return;
        };
        let value = match self.graph.constant(value) {
            // Minus zero is zero.
            Some(number) => self.graph.number(number),
            None => value,
        };
        let store = Store { array, index, value };
        match open.position.get(&(array, index)) {
            Some(&at) => open.stores[at] = store,
            None => {
                open.position.insert((array, index), open.stores.len());
                open.stores.push(store);
            }
        }
    }

    /// The program.
    ///
    /// # Errors
    /// The first mistake of the recording.
    pub fn finish(mut self) -> Result<Program, TapeError> {
        if let Some(open) = &self.open {
            let error = TapeError::OpenFunction(open.name.clone());
            self.fail(error);
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let constant = |at: &(u32, u32)| match self.known.get(at) {
            Some(Known::Constant { value, .. }) => self.graph.constant(*value),
            _ => None,
        };
        let init = self
            .known
            .keys()
            .filter_map(|&(array, index)| {
                constant(&(array, index)).map(|value| Init { array, index, value })
            })
            .collect();
        let mut functions = self.functions;
        for function in &mut functions {
            function.stores.retain(|store| constant(&(store.array, store.index)).is_none());
        }
        Ok(Program { graph: self.graph, arrays: self.arrays, functions, init })
    }

    fn check_element(&mut self, array: u32, index: u32) -> Option<()> {
        let exists = self.arrays.get(array as usize).is_some_and(|a| (index as usize) < a.len());
        if !exists {
            self.fail(TapeError::NoElement { array, index });
        }
        exists.then_some(())
    }

    /// Lasting knowledge of an element from a store.
    fn learn(&mut self, store: &Store) {
        let at = (store.array, store.index);
        let array = &self.arrays[store.array as usize];
        if array.shared {
            return;
        }
        let constant = self.graph.constant(store.value).is_some();
        let known = self.known.get(&at).copied();
        let next = match known {
            None if constant => Known::Constant { value: store.value, used: false },
            Some(Known::Constant { value, .. }) if value == store.value => return,
            Some(Known::Constant { used: true, .. }) => {
                let element = array.element(store.index);
                self.fail(TapeError::Changed { element });
                Known::Varies
            }
            _ => Known::Varies,
        };
        self.known.insert(at, next);
    }
}
