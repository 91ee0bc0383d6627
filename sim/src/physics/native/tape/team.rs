//! A function divided among the threads of a team.
//!
//! Elements of arrays have homes: the rank whose limb of the robot they belong to, or
//! none (the trunk's). What comes of one limb alone is its rank's; what several limbs
//! need is computed by each rank that needs it, so that nobody waits for it; where values
//! of several limbs meet, a stage ends, the team waits, and the values that are used
//! later lie in `w.cross`. A value comes of the same operations wherever it is computed.

use super::chunk::Chunks;
use super::node::Node;
use super::order::{self, Plan};
use super::program::{Function, Program};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Home of an element of an array: array and flat index to a rank.
pub type Homes<'a> = &'a dyn Fn(u32, u32) -> Option<usize>;

/// A divided function, as the printer takes it: one range of steps per piece.
#[derive(Debug)]
pub(super) struct Split {
    pub plan: Plan,
    pub chunks: Chunks,
    /// Stage and rank of each range.
    pub pieces: Vec<(usize, usize)>,
    pub stages: usize,
}

/// Who computes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    /// Every rank that needs it.
    All,
    One(usize),
}

/// When a value is computed, and by whom.
#[derive(Debug, Clone, Copy)]
struct Place {
    stage: usize,
    who: Who,
}

/// Bit of the trunk beside the ranks' in a set of homes.
const TRUNK: u32 = 1 << 31;

/// The one rank of a set of homes, if there is one and nothing else.
fn only(homes: u32) -> Option<usize> {
    (homes.count_ones() == 1 && homes != TRUNK).then(|| homes.trailing_zeros() as usize)
}

fn source(node: &Node) -> bool {
    matches!(node, Node::Const(_) | Node::True | Node::Load { .. })
}

/// Divides `function` among `size` ranks, at most 16.
pub(super) fn split(program: &Program, function: &Function, homes: Homes, size: usize) -> Split {
    let divider = Divider::new(program, function, homes);
    divider.finish(size)
}

struct Divider<'a> {
    program: &'a Program,
    nodes: &'a [Node],
    function: &'a Function,
    homes: Homes<'a>,
    /// By node; of those that are not needed without meaning.
    places: Vec<Place>,
    /// By node: has no statement of its own.
    inline: Vec<bool>,
}

/// What the pieces compute, by stage and rank.
#[derive(Default)]
struct Demand {
    computed: BTreeMap<(usize, usize), BTreeSet<u32>>,
    /// Values that cross a stage's end, and the last stage that reads them.
    crossing: BTreeMap<u32, usize>,
    /// Stores, by position in the function.
    stores: BTreeMap<(usize, usize), Vec<usize>>,
}

impl<'a> Divider<'a> {
    fn new(program: &'a Program, function: &'a Function, homes: Homes<'a>) -> Self {
        let nodes = program.graph.nodes();
        let live = program.live(function);
        let mut divider = Self {
            program,
            nodes,
            function,
            homes,
            places: Vec::new(),
            inline: order::inline(program, function, &live),
        };
        divider.places = divider.places(&live);
        divider
    }

    /// By node: the homes of all that is stored of it.
    fn needs(&self, live: &[bool]) -> Vec<u32> {
        let mut needs = vec![0_u32; self.nodes.len()];
        for store in &self.function.stores {
            let home = (self.homes)(store.array, store.index).map_or(TRUNK, |r| 1 << r);
            needs[store.value.node() as usize] |= home;
        }
        for at in (0..self.nodes.len()).rev().filter(|&at| live[at]) {
            for value in self.nodes[at].operands().iter() {
                needs[value.node() as usize] |= needs[at];
            }
        }
        needs
    }

    fn places(&self, live: &[bool]) -> Vec<Place> {
        let needs = self.needs(live);
        let start = Place {
            stage: 0,
            who: Who::All,
        };
        let mut places = vec![start; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if !live[at] || source(node) {
                continue;
            }
            let made = node.operands();
            let made = made.iter().map(|v| v.node() as usize);
            let made: Vec<usize> = made.filter(|&v| !source(&self.nodes[v])).collect();
            let stage = made.iter().map(|&v| places[v].stage).max().unwrap_or(0);
            let mut ranks = 0_u32;
            for &v in made.iter().filter(|&&v| places[v].stage == stage) {
                if let Who::One(rank) = places[v].who {
                    ranks |= 1 << rank;
                }
            }
            let by_need = only(needs[at]).map_or(Who::All, Who::One);
            places[at] = match (ranks.count_ones(), stage) {
                // Elements of arrays can be read by anyone; whose they are is a hint.
                (0, 0) if by_need == Who::All => Place {
                    stage,
                    who: only(self.loaded(node)).map_or(Who::All, Who::One),
                },
                (0, _) => Place {
                    stage,
                    who: by_need,
                },
                (1, _) => Place {
                    stage,
                    who: Who::One(ranks.trailing_zeros() as usize),
                },
                _ => Place {
                    stage: stage + 1,
                    who: by_need,
                },
            };
        }
        places
    }

    /// Homes of the elements among a node's operands.
    fn loaded(&self, node: &Node) -> u32 {
        let mut homes = 0;
        for value in node.operands().iter() {
            if let Node::Load { array, index } = self.nodes[value.node() as usize] {
                homes |= (self.homes)(array, index).map_or(0, |r| 1 << r);
            }
        }
        homes
    }

    /// The piece that computes a value for those that come later.
    fn owner(&self, node: u32) -> (usize, usize) {
        let place = self.places[node as usize];
        match place.who {
            Who::One(rank) => (place.stage, rank),
            Who::All => (place.stage, 0),
        }
    }

    /// Where a store belongs.
    fn store_place(&self, at: usize) -> (usize, usize) {
        let store = &self.function.stores[at];
        let (stage, rank) = self.owner(store.value.node());
        match self.places[store.value.node() as usize].who {
            Who::One(_) => (stage, rank),
            Who::All => (
                stage,
                (self.homes)(store.array, store.index).unwrap_or_default(),
            ),
        }
    }

    fn demand(&self) -> Demand {
        let mut late = BTreeSet::new();
        loop {
            let demand = self.demand_with(&late);
            let clashes = self.clashes(&demand);
            if clashes.is_subset(&late) {
                return demand;
            }
            late.extend(clashes);
        }
    }

    /// `late`: stores that wait until all else is done.
    fn demand_with(&self, late: &BTreeSet<usize>) -> Demand {
        let last = self.places.iter().map(|p| p.stage).max().unwrap_or(0);
        let mut demand = Demand::default();
        for (at, store) in self.function.stores.iter().enumerate() {
            let (mut stage, rank) = self.store_place(at);
            let value = store.value.node();
            if late.contains(&at) {
                stage = last + 1;
                if !self.inline[value as usize] {
                    demand.crossing.insert(value, stage);
                }
            }
            demand.stores.entry((stage, rank)).or_default().push(at);
        }
        self.compute(&mut demand, last);
        demand
    }

    /// What each piece has to compute, from the last stage to the first.
    fn compute(&self, demand: &mut Demand, last: usize) {
        for stage in (0..=last).rev() {
            let mut roots: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
            for (&(at, rank), stores) in &demand.stores {
                if at == stage {
                    let values = stores.iter().map(|&s| self.function.stores[s].value.node());
                    roots.entry(rank).or_default().extend(values);
                }
            }
            for &node in demand.crossing.keys() {
                let (at, rank) = self.owner(node);
                if at == stage {
                    roots.entry(rank).or_default().push(node);
                }
            }
            for (rank, mut stack) in roots {
                let mut computed = BTreeSet::new();
                while let Some(node) = stack.pop() {
                    let made = self.nodes[node as usize];
                    // Masks are not handed on: they are compared again.
                    let earlier = self.places[node as usize].stage < stage && !made.is_mask();
                    if self.inline[node as usize] || computed.contains(&node) {
                        continue;
                    }
                    if earlier && !source(&made) {
                        let until = demand.crossing.entry(node).or_default();
                        *until = stage.max(*until);
                        continue;
                    }
                    computed.insert(node);
                    stack.extend(made.operands().iter().map(|v| v.node()));
                }
                demand.computed.insert((stage, rank), computed);
            }
        }
    }

    /// Stores that overwrite what another piece may not have read yet.
    fn clashes(&self, demand: &Demand) -> BTreeSet<usize> {
        let mut readers: HashMap<(u32, u32), Vec<(usize, usize)>> = HashMap::new();
        for (piece, computed) in &demand.computed {
            for &node in computed {
                if let Node::Load { array, index } = self.nodes[node as usize] {
                    readers.entry((array, index)).or_default().push(*piece);
                }
            }
        }
        let mut clashes = BTreeSet::new();
        for (&place, stores) in &demand.stores {
            for &at in stores {
                let store = &self.function.stores[at];
                let others = readers.get(&(store.array, store.index));
                let reads_later = |&(s, r): &(usize, usize)| s >= place.0 && (s, r) != place;
                if others.is_some_and(|all| all.iter().any(reads_later)) {
                    clashes.insert(at);
                }
            }
        }
        clashes
    }

    fn finish(self, size: usize) -> Split {
        let demand = self.demand();
        let mut pieces: BTreeSet<(usize, usize)> = demand.computed.keys().copied().collect();
        pieces.extend(demand.stores.keys());
        let (mut steps, mut ranges, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        let mut writers = HashMap::new();
        let none = (BTreeSet::new(), Vec::new());
        for piece in pieces {
            let computed = demand.computed.get(&piece).unwrap_or(&none.0);
            let stores = demand.stores.get(&piece).unwrap_or(&none.1);
            let mut live = vec![false; self.nodes.len()];
            computed.iter().for_each(|&node| live[node as usize] = true);
            let row = order::part(self.program, self.function, &live, &self.inline, stores);
            if row.is_empty() {
                continue;
            }
            let first = steps.len();
            steps.extend(row);
            for &node in demand.crossing.keys() {
                if self.owner(node) == piece {
                    writers.insert(node, ranges.len());
                }
            }
            ranges.push(first..steps.len());
            kept.push(piece);
        }
        let (slots, scratch) = slots(&self, &demand.crossing);
        debug_assert!(kept.iter().all(|&(_, rank)| rank < size));
        Split {
            plan: Plan {
                steps,
                inline: self.inline,
            },
            chunks: Chunks {
                ranges,
                slots,
                scratch,
                writers: Some(writers),
            },
            stages: kept.last().map_or(0, |&(stage, _)| stage + 1),
            pieces: kept,
        }
    }
}

/// Places in `w.cross`: one is used again after the stage in which it was last read.
fn slots(divider: &Divider, crossing: &BTreeMap<u32, usize>) -> (HashMap<u32, usize>, usize) {
    let mut lives: Vec<(usize, usize, u32)> = crossing
        .iter()
        .map(|(&node, &until)| (divider.owner(node).0, until, node))
        .collect();
    lives.sort_unstable();
    let mut busy: Vec<usize> = Vec::new();
    let mut slots = HashMap::new();
    for (from, until, node) in lives {
        let free = busy.iter().position(|&last| last < from);
        let slot = free.unwrap_or_else(|| {
            busy.push(0);
            busy.len() - 1
        });
        busy[slot] = until;
        slots.insert(node, slot);
    }
    (slots, busy.len())
}

impl Split {
    /// Statements that one thread after the other has to wait for: of each stage the
    /// longest piece.
    pub(super) fn depth(&self) -> usize {
        let longest = (0..self.stages).map(|stage| {
            let of_stage = self.pieces.iter().zip(&self.chunks.ranges);
            let of_stage = of_stage.filter(|((s, _), _)| *s == stage);
            of_stage.map(|(_, range)| range.len()).max().unwrap_or(0)
        });
        longest.sum()
    }
}
