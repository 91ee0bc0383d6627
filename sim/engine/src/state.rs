//! State of environments by columns: `kernels/state.h` in Rust.

use crate::device::Address;
use crate::kernels::BREAK_HEAD;
use crate::stats::{STATS, StatSizes};
use bytemuck::{Pod, Zeroable};
use ostler_base::memory::{MemoryError, zeroed};
use ostler_base::snapshot::{Bytes, SnapshotError, reserve, unfit};
use ostler_model::Model;

include!(concat!(env!("OUT_DIR"), "/columns.rs"));

mod tables;

pub use tables::TABLES;
pub use tables::{TableAddresses, Tables};

/// The type of a column's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Numbers, `[width][N]`.
    Real,
    /// Unsigned numbers, `[width][N]`.
    Word,
    /// Numbers of an environment side by side, `[N][width]`.
    Row,
}

/// Content of a column where an episode begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// Zeros.
    Zero,
    /// The former content.
    Kept,
    /// Written by code of its own.
    Own,
}

/// One of the columns.
#[derive(Debug)]
pub struct Column {
    /// The buffer's name.
    pub name: &'static str,
    /// Of what it is made.
    pub kind: Kind,
    /// How it begins.
    pub begin: Begin,
    /// Whether expressions may read it.
    pub seen: bool,
    /// Its width as `state.h` has it: `3 nbody`.
    pub shape: &'static str,
    /// Contents and unit.
    pub says: &'static str,
    width: fn(&Sizes) -> usize,
}

impl Column {
    /// Entries of an environment, four bytes each.
    pub fn width(&self, sizes: &Sizes) -> usize {
        (self.width)(sizes)
    }

    /// Copies the environments from number `at` on of a stored column of `from`
    /// environments into the first ones of `into`, of `to`; the others stay as they are.
    fn copy(&self, stored: &[u8], into: &mut [u8], [from, to, at]: [usize; 3]) {
        let bytes = match self.kind {
            Kind::Real | Kind::Word => 4,
            Kind::Row => into.len() / to.max(1),
        };
        let taken = bytes * from.saturating_sub(at).min(to);
        if taken == 0 {
            return;
        }
        let rows = stored.chunks_exact(from * bytes);
        for (stored, row) in rows.zip(into.chunks_exact_mut(to * bytes)) {
            row[..taken].copy_from_slice(&stored[at * bytes..at * bytes + taken]);
        }
    }

    /// Zeros for the environments from number `at` on, of `n`.
    fn clear(&self, own: &mut [u8], n: usize, at: usize) {
        let bytes = match self.kind {
            Kind::Real | Kind::Word => 4,
            Kind::Row => own.len() / n.max(1),
        };
        if bytes > 0 {
            let rows = own.chunks_exact_mut(n * bytes);
            rows.for_each(|row| row[at * bytes..].fill(0));
        }
    }

    /// Appends the column of a batch, whose parts have these columns of so many
    /// environments.
    fn join(&self, parts: &[(&[u8], usize)], out: &mut Vec<u8>) {
        if self.kind == Kind::Row {
            return parts.iter().for_each(|(part, _)| out.extend_from_slice(part));
        }
        let (first, n) = parts.first().copied().unwrap_or_default();
        for row in 0..first.len() / (4 * n.max(1)) {
            for (part, n) in parts {
                out.extend_from_slice(&part[4 * row * n..4 * (row + 1) * n]);
            }
        }
    }
}

macro_rules! sizes_struct {
    ($(($name:ident $_n:ident $says:literal))*) => {
        /// Sizes of a robot and its task.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Sizes {
            $(#[doc = $says] pub $name: usize,)*
        }

        impl Sizes {
            /// Every size and its meaning.
            pub const SAYS: [(&str, &str); [$(stringify!($name)),*].len()] =
                [$((stringify!($name), $says)),*];

            /// All of them with their names.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// As kernels take them: `TaskSizes` of `kernels/env/args.cuh`.
            pub fn words(&self) -> TaskSizes {
                let mut words = TaskSizes::zeroed();
                let named = self.named().map(|(_, size)| i32::try_from(size).unwrap_or(i32::MAX));
                words.0.iter_mut().zip(named).for_each(|(word, size)| *word = size);
                words
            }
        }
    };
}
sizes!(sizes_struct);

/// [`Sizes`] as kernels take them, in a whole number of eight bytes.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct TaskSizes([i32; Sizes::SAYS.len().next_multiple_of(2)]);

// SAFETY: whole numbers side by side, whatever their bits.
unsafe impl Zeroable for TaskSizes {}
// SAFETY: as above; there is nothing between them.
unsafe impl Pod for TaskSizes {}

impl Sizes {
    /// Those of the worlds of a robot; its task's are 0.
    pub fn of(model: &Model) -> Self {
        Self {
            nq: model.nq,
            nv: model.nv,
            na: model.na,
            nu: model.nu(),
            nbody: model.bodies.len(),
            njoint: model.joints.len(),
            ngeom: model.geoms.len(),
            nsense: model.nmeasured(),
            nreading: model.nreading(),
            nvaried: model.nvaried(),
            nderived: model.nderived,
            nmemory: model.nmemory(),
            ..Self::default()
        }
    }
}

macro_rules! element {
    (real $real:ty) => {
        $real
    };
    (row $real:ty) => {
        $real
    };
    (word $real:ty) => {
        u32
    };
}
macro_rules! kind {
    (real) => {
        Kind::Real
    };
    (row) => {
        Kind::Row
    };
    (word) => {
        Kind::Word
    };
}
macro_rules! begin {
    (zero) => {
        Begin::Zero
    };
    (kept) => {
        Begin::Kept
    };
    (own) => {
        Begin::Own
    };
}
macro_rules! seen {
    (yes) => {
        true
    };
    (no) => {
        false
    };
}
macro_rules! width {
    ($factor:literal one) => {
        |_| $factor
    };
    ($factor:literal $size:ident) => {
        |s| $factor * s.$size
    };
}

/// A store of columns: its buffers, and their addresses for a kernel.
macro_rules! store {
    ($(#[$doc:meta])* $store:ident $list:ident $addresses:ident
     $(($name:ident $_n:ident $kind:ident $factor:literal $size:ident $begin:ident $seen:ident $says:literal))*) => {
        /// Its columns, in the order of snapshots.
        pub static $list: [Column; [$(stringify!($name)),*].len()] = [$(Column {
            name: stringify!($name),
            kind: kind!($kind),
            begin: begin!($begin),
            seen: seen!($seen),
            shape: concat!(stringify!($factor), " ", stringify!($size)),
            says: $says,
            width: width!($factor $size),
        }),*];

        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $store {
            /// Number of environments, `N`.
            pub num_envs: usize,
            $(#[doc = concat!($says, ": `", stringify!($kind), "`, ", stringify!($factor), " ", stringify!($size), ".")]
            pub $name: Vec<element!($kind f32)>,)*
        }

        impl $store {
            /// Zeros.
            ///
            /// # Errors
            /// There is not so much memory.
            pub fn zeroed(sizes: &Sizes, num_envs: usize) -> Result<Self, MemoryError> {
                $(let $name = {
                    let width: fn(&Sizes) -> usize = width!($factor $size);
                    zeroed(stringify!($name), width(sizes).saturating_mul(num_envs))?
                };)*
                Ok(Self { num_envs, $($name),* })
            }

            /// Every column with its bytes.
            pub fn columns(&self) -> impl Iterator<Item = (&'static Column, &[u8])> {
                $list.iter().zip([$(bytemuck::cast_slice(&self.$name)),*])
            }

            /// The same, to be written.
            pub fn columns_mut(&mut self) -> impl Iterator<Item = (&'static Column, &mut [u8])> {
                $list.iter().zip([$(bytemuck::cast_slice_mut(&mut self.$name)),*])
            }
        }

        /// Where a kernel finds them.
        #[derive(Debug, Clone, Copy, Pod, Zeroable)]
        #[repr(C)]
        pub struct $addresses {
            $(#[doc = $says] pub $name: Address,)*
        }

        impl $addresses {
            /// Lays the columns one behind the other: `take` hands out so many bytes.
            pub fn laid(
                sizes: &Sizes,
                num_envs: usize,
                mut take: impl FnMut(usize) -> Address,
            ) -> Self {
                $(let $name = {
                    let width: fn(&Sizes) -> usize = width!($factor $size);
                    take(4 * width(sizes) * num_envs)
                };)*
                Self { $($name),* }
            }
        }
    };
}

/// A store's part of snapshots.
macro_rules! recorded {
    ($store:ident $list:ident
     $(($name:ident $_n:ident $kind:ident $factor:literal $size:ident $begin:ident $seen:ident $says:literal))*) => {
        impl $store {
            /// The bytes of all columns, for a record.
            pub fn bytes(&self) -> [Bytes<'_>; $list.len()] {
                [$(Bytes(bytemuck::cast_slice(&self.$name))),*]
            }

            /// Whether these are the columns of `stored` environments like these.
            ///
            /// # Errors
            /// A column is longer or shorter, by its name.
            pub fn check(
                &self,
                stored: usize,
                columns: &[Bytes<'_>; $list.len()],
            ) -> Result<(), SnapshotError> {
                for ((column, own), bytes) in self.columns().zip(columns) {
                    let each = own.len() / self.num_envs.max(1);
                    if bytes.0.len() != each.saturating_mul(stored) {
                        return Err(unfit(format!(
                            "{} has {} bytes, not {stored} times {each}",
                            column.name,
                            bytes.0.len()
                        )));
                    }
                }
                Ok(())
            }

            /// Takes over the environments from number `at` on of `stored`; the others stay
            /// as they are. The columns have been [checked](Self::check).
            pub fn fill(
                &mut self,
                stored: usize,
                at: usize,
                columns: &[Bytes<'_>; $list.len()],
            ) {
                let to = self.num_envs;
                for ((column, own), bytes) in self.columns_mut().zip(columns) {
                    column.copy(bytes.0, own, [stored, to, at]);
                }
            }
        }
    };
}

episode_columns!(store
    /// The state of episodes, beside the worlds'.
    Episodes EPISODE EpisodeAddresses);
step_columns!(store
    /// Working memory of a step.
    StepBuffers STEP StepBufferAddresses);
world_columns!(store
    /// Columns of N worlds that tasks can see, and those that only their engine reads. Buffers are
    /// `[k][N]`, float32, SI units.
    State WORLD WorldAddresses);
episode_columns!(recorded Episodes EPISODE);
world_columns!(recorded State WORLD);

impl Sizes {
    /// Statistics of one environment.
    pub fn tally(&self) -> usize {
        let sizes = StatSizes::on_device(self);
        STATS.iter().map(|s| s.size(&sizes)).sum()
    }

    /// Entries of an environment's episode.
    pub fn live(&self) -> usize {
        width(&EPISODE, self)
    }

    /// Entries of its world.
    pub fn physics(&self) -> usize {
        width(&WORLD, self)
    }

    /// Words of a break record.
    pub fn break_record(&self) -> usize {
        let step = self.nraw + self.nu + self.nagent + self.nhistory;
        BREAK_HEAD as usize + step + self.live() + self.physics()
    }
}

impl State {
    /// Makes the world `to` of these one like the world `e` of others, in all columns that are as
    /// wide here as there.
    pub fn copy_world(&mut self, to: usize, others: &State, e: usize) {
        let (n, m) = (self.num_envs, others.num_envs);
        for ((_, own), (_, theirs)) in self.columns_mut().zip(others.columns()) {
            if own.len() * m != theirs.len() * n {
                continue;
            }
            // Columns of worlds have entries of four bytes, a row for each.
            for (own, theirs) in own.chunks_exact_mut(4 * n).zip(theirs.chunks_exact(4 * m)) {
                if let (Some(x), Some(y)) =
                    (own.get_mut(4 * to..4 * to + 4), theirs.get(4 * e..4 * e + 4))
                {
                    x.copy_from_slice(y);
                }
            }
        }
    }
}

impl Episodes {
    /// Forgets what the environments from number `at` on keep when an episode begins: they are
    /// as new.
    pub fn forget(&mut self, at: usize) {
        let n = self.num_envs;
        let kept = self.columns_mut().filter(|(c, _)| c.begin == Begin::Kept);
        kept.for_each(|(column, own)| column.clear(own, n, at));
    }
}

/// Where a store's columns are, for kernels that write them.
macro_rules! writable {
    ($store:ident $addresses:ident
     $(($name:ident $_n:ident $kind:ident $factor:literal $size:ident $begin:ident $seen:ident $says:literal))*) => {
        impl $store {
            /// Where the columns are, to be written.
            pub fn addresses_mut(&mut self) -> $addresses {
                $addresses { $($name: self.$name.as_mut_ptr() as Address),* }
            }
        }
    };
}
episode_columns!(writable Episodes EpisodeAddresses);
step_columns!(writable StepBuffers StepBufferAddresses);
world_columns!(writable State WorldAddresses);

/// The columns of a batch, one behind the other, from those of its parts: of every part
/// the number of environments and its columns. With them, where each ends.
///
/// # Errors
/// The parts differ in their widths; there is no memory.
pub fn join<const K: usize>(
    list: &[Column; K],
    parts: &[(usize, &[Bytes<'_>; K])],
) -> Result<(Vec<u8>, [usize; K]), SnapshotError> {
    let mut all = Vec::new();
    let bytes = parts.iter().flat_map(|(_, columns)| columns.iter().map(|c| c.0.len()));
    reserve(&mut all, bytes.sum(), "a batch")?;
    let mut ends = [0; K];
    for (k, (column, end)) in list.iter().zip(&mut ends).enumerate() {
        let side: Vec<_> = parts.iter().map(|(n, columns)| (columns[k].0, *n)).collect();
        let width = |(bytes, n): (&[u8], usize)| (bytes.len() / n.max(1), bytes.len() % n.max(1));
        if side.windows(2).any(|w| width(w[0]) != width(w[1])) {
            return Err(unfit("its parts are of different robots or tasks"));
        }
        column.join(&side, &mut all);
        *end = all.len();
    }
    Ok((all, ends))
}

/// Where the columns of `n` environments end that lie one behind the other.
pub fn ends<const K: usize>(list: &[Column; K], sizes: &Sizes, n: usize) -> [usize; K] {
    let mut ends = [0; K];
    let mut end = 0;
    for (column, at) in list.iter().zip(&mut ends) {
        end += 4 * n * column.width(sizes);
        *at = end;
    }
    ends
}

/// Columns that lie one behind the other.
pub fn cut<'a, const K: usize>(all: &'a [u8], ends: &[usize; K]) -> [Bytes<'a>; K] {
    let mut columns = [Bytes::default(); K];
    let mut start = 0;
    for (column, end) in columns.iter_mut().zip(ends) {
        *column = Bytes(&all[start..*end]);
        start = *end;
    }
    columns
}

/// Entries of an environment in all columns of a list.
pub fn width(list: &[Column], sizes: &Sizes) -> usize {
    list.iter().map(|c| c.width(sizes)).sum()
}

macro_rules! world_reals {
    ($(($name:ident $variant:ident $kind:ident $factor:literal $size:ident $begin:ident $seen:ident $says:literal))*) => {
        world_reals! { @ [] $(($name $variant $kind $seen))* }
    };
    (@ [$($done:tt)*] ($name:ident $variant:ident real yes) $($rest:tt)*) => {
        world_reals! { @ [$($done)* ($name $variant)] $($rest)* }
    };
    (@ $done:tt $skipped:tt $($rest:tt)*) => {
        world_reals! { @ $done $($rest)* }
    };
    (@ [$(($name:ident $variant:ident))*]) => {
        /// A column of worlds that expressions may read.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the columns have their own")]
        pub enum Seen { $($variant),* }

        impl Seen {
            /// All of them.
            pub const ALL: [Self; [$(stringify!($name)),*].len()] = [$(Self::$variant),*];

            /// Its name in [`State`] and in the kernels.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($name)),* }
            }
        }

        impl State {
            /// A column that expressions may read.
            pub fn seen(&self, which: Seen) -> &[f32] {
                match which { $(Seen::$variant => &self.$name),* }
            }

            /// All that expressions may read, in the order of [`Seen::ALL`].
            pub fn floats(&self) -> [&Vec<f32>; Seen::ALL.len()] {
                [$(&self.$name),*]
            }

            /// The same, to be written.
            pub fn floats_mut(&mut self) -> [&mut Vec<f32>; Seen::ALL.len()] {
                [$(&mut self.$name),*]
            }
        }
    };
}
world_columns!(world_reals);

/// Where the columns of worlds are, for kernels that only read them.
macro_rules! world_addresses {
    ($(($name:ident $_n:ident $kind:ident $factor:literal $size:ident $begin:ident $seen:ident $says:literal))*) => {
        impl State {
            /// Where the columns are, to be read.
            pub fn addresses(&self) -> WorldAddresses {
                WorldAddresses { $($name: self.$name.as_ptr() as Address),* }
            }
        }
    };
}
world_columns!(world_addresses);

impl State {
    /// Zeroed state of `num_envs` worlds.
    ///
    /// # Errors
    /// There is not so much memory.
    pub fn new(model: &Model, num_envs: usize) -> Result<Self, MemoryError> {
        Self::zeroed(&Sizes::of(model), num_envs)
    }

    /// The first column that is not as wide as `num_envs` worlds of `model` have it: these are
    /// others.
    pub fn differs(&self, model: &Model, num_envs: usize) -> Option<&'static str> {
        let sizes = Sizes::of(model);
        let other =
            |(c, own): &(&'static Column, &[u8])| own.len() != 4 * c.width(&sizes) * num_envs;
        self.columns().find(other).map(|(c, _)| c.name)
    }
}
