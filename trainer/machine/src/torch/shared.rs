//! Sums of processes on one machine, in memory that they share: a message of Gloo's wakes
//! threads four times, which costs more than the sum.

use super::TorchError;
use ostler_collector::peers::CUT_SHORT;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tch::{Kind, Tensor};

/// Bytes of a process's numbers that are added up at a time.
const AREA: usize = 1 << 20;
/// Bytes of what a process says of itself: a cache line's, so that no other's is touched.
const HEAD: usize = 64;
/// Tries before the processor is left to others.
const TRIES: u32 = 4000;
/// How long it is left then.
const NAP: Duration = Duration::from_micros(20);
/// Time between two looks whether another process is still there.
const LOOK: Duration = Duration::from_millis(10);

/// Shared memory of `size` processes: a [`Head`] of each, then two areas of each. A turn's
/// numbers lie in one of the two: who writes the next but one knows that all have read it.
#[derive(Debug)]
pub(super) struct SharedSums {
    base: NonNull<u8>,
    rank: usize,
    size: usize,
    /// How often sums were cut short.
    cuts: u64,
    /// Counts sums: from [`begin`] on after each cut, whoever had come how far.
    turn: u64,
}

/// What a process says of itself.
#[repr(C)]
struct Head {
    /// The last turn whose numbers are there.
    turn: AtomicU64,
    /// The last cut that it made.
    cut: AtomicU64,
    pid: AtomicU32,
    /// Which memory it is, in the first process's head: a descriptor's number may be another
    /// file's by now, or another process's.
    name: AtomicU64,
}

/// The turn before the first after so many cuts.
fn begin(cuts: u64) -> u64 {
    cuts << 40
}

// SAFETY: the mapping belongs to this value alone; what others write is read behind atomics.
unsafe impl Send for SharedSums {}

/// Memory that other processes can map by the name of this one and its number there, and what
/// tells it from all other.
pub(super) fn create(size: usize) -> std::io::Result<(std::fs::File, u64)> {
    use std::hash::{BuildHasher, RandomState};
    let file = ostler_sim::files::unnamed(0)?;
    // Memory that is not there is refused here, not by a signal later.
    // SAFETY: takes numbers.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, bytes(size) as libc::off_t) } {
        0 => {
            let name = RandomState::new().hash_one(std::process::id());
            file.write_all_at(&name.to_ne_bytes(), offset_of!(Head, name) as u64)?;
            Ok((file, name))
        }
        code => Err(std::io::Error::from_raw_os_error(code)),
    }
}

fn bytes(size: usize) -> usize {
    size * (HEAD + 2 * AREA)
}

impl SharedSums {
    /// Maps the memory of this name, for process `rank` of `size`.
    pub(super) fn map(
        file: &std::fs::File,
        name: u64,
        rank: usize,
        size: usize,
    ) -> std::io::Result<Self> {
        let mut found = [0; 8];
        file.read_exact_at(&mut found, offset_of!(Head, name) as u64)?;
        if u64::from_ne_bytes(found) != name || file.metadata()?.len() < bytes(size) as u64 {
            return Err(std::io::Error::other("another file"));
        }
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of as many bytes as the file has, anywhere.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes(size), protection, flags, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(std::io::Error::last_os_error)?;
        let this = Self { base, rank, size, cuts: 0, turn: 0 };
        this.head(rank).pid.store(std::process::id(), Ordering::Release);
        Ok(this)
    }

    /// Whether each process finds all others by their numbers.
    pub(super) fn finds_all(&self) -> bool {
        (0..self.size).all(|rank| lives(self.head(rank).pid.load(Ordering::Acquire)))
    }

    fn head(&self, rank: usize) -> &Head {
        // SAFETY: `rank` is below `size`; heads come first, are aligned, and hold atomics alone.
        unsafe { &*self.base.as_ptr().add(rank * HEAD).cast() }
    }

    /// The area of a process in a turn.
    fn area(&self, rank: usize, turn: u64) -> *mut u8 {
        let at = self.size * HEAD + ((turn as usize % 2) * self.size + rank) * AREA;
        // SAFETY: within the mapping.
        unsafe { self.base.as_ptr().add(at) }
    }

    /// Whether [`reduce`](Self::reduce) can have this tensor: all processes have its like.
    pub(super) fn takes(tensor: &Tensor) -> bool {
        matches!(tensor.kind(), Kind::Float | Kind::Double | Kind::Int64)
    }

    /// The sum over all processes, in their order, or the largest; in place. The tensor lies on
    /// the host and is contiguous.
    ///
    /// # Errors
    /// Another process is gone, or cut it short.
    pub(super) fn reduce(&mut self, tensor: &Tensor, largest: bool) -> Result<(), TorchError> {
        let (data, numbers) = (tensor.data_ptr(), tensor.numel());
        match (tensor.kind(), largest) {
            (Kind::Float, false) => self.each(data.cast(), numbers, |a: f32, b| a + b),
            (Kind::Float, true) => self.each(data.cast(), numbers, f32::max),
            (Kind::Double, false) => self.each(data.cast(), numbers, |a: f64, b| a + b),
            (Kind::Double, true) => self.each(data.cast(), numbers, f64::max),
            (_, false) => self.each(data.cast(), numbers, i64::wrapping_add),
            (_, true) => self.each(data.cast(), numbers, i64::max),
        }
    }

    fn each<T: Copy>(
        &mut self,
        data: *mut T,
        numbers: usize,
        join: impl Fn(T, T) -> T,
    ) -> Result<(), TorchError> {
        let most = AREA / size_of::<T>();
        for at in (0..numbers).step_by(most) {
            let len = most.min(numbers - at);
            self.turn += 1;
            let turn = self.turn;
            // SAFETY: `data` has `numbers` numbers, which nobody else has meanwhile. This turn's
            // area is this process's alone to write: all have read what was in it, for they have
            // written their next one since.
            let own = unsafe {
                std::ptr::copy_nonoverlapping(data.add(at), self.area(self.rank, turn).cast(), len);
                std::slice::from_raw_parts_mut(data.add(at), len)
            };
            self.head(self.rank).turn.store(turn, Ordering::Release);
            self.wait(turn)?;
            for rank in 0..self.size {
                // SAFETY: its process wrote as many before it said so, and writes there again only
                // after this one has said its next turn.
                let theirs: &[T] =
                    unsafe { std::slice::from_raw_parts(self.area(rank, turn).cast(), len) };
                match rank {
                    0 => own.copy_from_slice(theirs),
                    _ => own.iter_mut().zip(theirs).for_each(|(a, b)| *a = join(*a, *b)),
                }
            }
        }
        Ok(())
    }

    /// The others' present sum, or their next, does not come.
    pub(super) fn cut_short(&mut self) {
        self.cut(self.cuts + 1);
        self.head(self.rank).cut.store(self.cuts, Ordering::Release);
    }

    fn cut(&mut self, cuts: u64) {
        (self.cuts, self.turn) = (cuts, begin(cuts));
    }

    /// Until all have written.
    fn wait(&mut self, turn: u64) -> Result<(), TorchError> {
        let failed = |message: String| TorchError::Call { operation: "add numbers up", message };
        for rank in (0..self.size).filter(|rank| *rank != self.rank) {
            let (mut tries, mut looked) = (0, Instant::now());
            while self.head(rank).turn.load(Ordering::Acquire) < turn {
                let cuts = (0..self.size).map(|r| self.head(r).cut.load(Ordering::Acquire));
                if let Some(cuts) = cuts.max().filter(|cuts| *cuts > self.cuts) {
                    // Who cut the next sum has seen all numbers of this one.
                    if self.head(rank).turn.load(Ordering::Acquire) >= turn {
                        break;
                    }
                    self.cut(cuts);
                    return Err(failed(CUT_SHORT.into()));
                }
                tries += 1;
                if tries < TRIES {
                    std::hint::spin_loop();
                    continue;
                }
                std::thread::sleep(NAP);
                if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    if !lives(self.head(rank).pid.load(Ordering::Acquire)) {
                        return Err(failed(format!("process {rank} has ended")));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for SharedSums {
    fn drop(&mut self) {
        // SAFETY: mapped by this value with so many bytes, and not used any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), bytes(self.size)) };
    }
}

/// Whether a process is there, and not only what is left of one that has ended.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // The name, in brackets, may hold anything.
    let state = |s: String| s.rsplit_once(')').map(|(_, rest)| rest.trim_start().chars().next());
    stat.ok().and_then(state).flatten().is_some_and(|state| !['Z', 'X'].contains(&state))
}
