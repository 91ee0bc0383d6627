//! Processes that train as one: what each tells the others.
//!
//! [`Group`] is what everybody else holds; of a process alone it does nothing. Sums are the same
//! bits in every process, so what follows from them is, too.

use crate::CollectError;
use crate::transfer::{bytes_into, host_doubles, host_integer};
use ostler_sim::memory::MemoryError;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tch::{Device, Kind, TchError, Tensor};

/// How an error of libtorch begins that says that another process is gone.
const LOST: &str = "another process of this training is gone";

/// What an error of libtorch says where another process [cut a sum short](Peers::cut_short).
pub const CUT_SHORT: &str = "another process of this training could not go on";

/// What every sum waits before it begins, as on a slow network (us).
static DELAY: AtomicU64 = AtomicU64::new(0);

/// From now on sums wait so long before they begin: for drills. It is enough that one process
/// does, as the others wait for it.
pub fn delay_sums(by: Duration) {
    DELAY.store(by.as_micros() as u64, Relaxed);
}

/// Waits as [`delay_sums`] says. Sleeping alone takes some 50 us more.
fn delayed(begun: Instant) {
    let delay = Duration::from_micros(DELAY.load(Relaxed));
    if delay.is_zero() {
        return;
    }
    std::thread::sleep(delay.saturating_sub(Duration::from_micros(100)));
    while begun.elapsed() < delay {
        std::hint::spin_loop();
    }
}

/// How processes reach one another. Tensors are contiguous and lie on the host; all processes call
/// the same functions in the same order, with tensors of the same size.
pub trait Peers: std::fmt::Debug + Send {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many there are.
    fn size(&self) -> usize;

    /// `tensor` becomes the sum over all processes.
    ///
    /// # Errors
    /// Another process is gone.
    fn sum(&self, tensor: &Tensor) -> Result<(), TchError>;

    /// `tensor` becomes, entry by entry, the largest of all processes.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    fn largest(&self, tensor: &Tensor) -> Result<(), TchError>;

    /// `tensor` becomes that of process `root`.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    fn broadcast(&self, tensor: &Tensor, root: usize) -> Result<(), TchError>;

    /// Gives `tensor` to process `to`, which [receives](Self::receive) it.
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    fn send(&self, tensor: &Tensor, to: usize) -> Result<(), TchError>;

    /// Waits for what process `from` [sends](Self::send).
    ///
    /// # Errors
    /// As [`sum`](Self::sum).
    fn receive(&self, tensor: &Tensor, from: usize) -> Result<(), TchError>;

    /// The sums that the others wait for, or will, do not come: they are errors there that say
    /// [`CUT_SHORT`]. The next sum comes after a message between all. `false` where the others
    /// cannot be told.
    fn cut_short(&self) -> bool {
        false
    }
}

/// Which rows of all processes' are this one's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The first.
    pub first: i64,
    /// How many all processes have.
    pub all: i64,
}

/// The processes that this one trains with, if there are any.
#[derive(Debug, Clone, Default)]
pub struct Group(Option<Arc<Joined>>);

#[derive(Debug)]
struct Joined {
    rank: usize,
    size: usize,
    /// Messages keep their order, whichever thread of this process sends them.
    peers: Mutex<Box<dyn Peers>>,
    /// Time that sums took (ns), most of it waiting for the slowest.
    waited: AtomicU64,
    /// Time that each process worked since it was asked for (s).
    work: Mutex<Vec<f64>>,
    /// Where several tensors become one message, by their sizes and kinds.
    messages: Mutex<Vec<Tensor>>,
}

impl Joined {
    fn peers(&self) -> MutexGuard<'_, Box<dyn Peers>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    static CURRENT: RefCell<Group> = RefCell::default();
}

impl Group {
    /// With these.
    pub fn of(peers: Box<dyn Peers>) -> Self {
        let (rank, size) = (peers.rank(), peers.size());
        match size {
            1 => Self::default(),
            _ => Self(Some(Arc::new(Joined {
                rank,
                size,
                peers: Mutex::new(peers),
                waited: AtomicU64::default(),
                work: Mutex::new(vec![0.0; size]),
                messages: Mutex::default(),
            }))),
        }
    }

    /// The group of this thread, which [`enter`](Self::enter) set; alone without it.
    pub fn current() -> Self {
        CURRENT.with_borrow(Self::clone)
    }

    /// From now on it is that of this thread.
    pub fn enter(&self) {
        CURRENT.set(self.clone());
    }

    /// Whether there is no other process.
    pub fn is_alone(&self) -> bool {
        self.0.is_none()
    }

    /// The number of this process, from 0.
    pub fn rank(&self) -> usize {
        self.0.as_ref().map_or(0, |g| g.rank)
    }

    /// How many there are.
    pub fn size(&self) -> usize {
        self.0.as_ref().map_or(1, |g| g.size)
    }

    /// Which of so many `environments` is the first of process `rank`.
    pub fn first(&self, environments: usize, rank: usize) -> usize {
        (environments as u128 * rank as u128 / self.size() as u128) as usize
    }

    /// Which of so many `environments` are this process's: the first, and how many.
    pub fn shard(&self, environments: usize) -> (usize, usize) {
        let [from, to] = [0, 1].map(|more| self.first(environments, self.rank() + more));
        (from, to - from)
    }

    /// Which rows of all processes' are this one's, of so many `environments` of which it has `rows`
    /// rows (an environment has one for each agent).
    pub fn place(&self, environments: usize, rows: usize) -> Place {
        if self.is_alone() {
            return Place { first: 0, all: rows as i64 };
        }
        let (first, own) = self.shard(environments);
        let each = rows / own.max(1);
        Place { first: (first * each) as i64, all: (environments * each) as i64 }
    }

    /// The sum of `tensor` over all processes; of one alone the tensor itself.
    ///
    /// # Errors
    /// Another process is gone.
    pub fn total(&self, tensor: Tensor) -> Result<Tensor, TchError> {
        self.reduced(tensor, |peers, tensor| peers.sum(tensor))
    }

    /// The same of several tensors of one kind, in one message and in place. Once it had their
    /// like it allocates nothing.
    ///
    /// # Errors
    /// As [`total`](Self::total).
    pub fn totals<const N: usize>(&self, tensors: [Tensor; N]) -> Result<[Tensor; N], TchError> {
        let (Some(group), Some(first)) = (&self.0, tensors.first()) else {
            return Ok(tensors);
        };
        let numbers = tensors.iter().map(Tensor::numel).sum::<usize>();
        let mut messages = group.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |m: &Tensor| m.numel() == numbers && m.kind() == first.kind();
        let message = match messages.iter().find(|m| fits(m)) {
            Some(message) => message.shallow_clone(),
            None => {
                messages.push(Tensor::f_zeros([numbers as i64], (first.kind(), first.device()))?);
                messages[messages.len() - 1].shallow_clone()
            }
        };
        let parts = |t: &Tensor, at: &mut i64| -> Result<Tensor, TchError> {
            *at += t.numel() as i64;
            message.f_narrow(0, *at - t.numel() as i64, t.numel() as i64)?.f_view_as(t)
        };
        let mut at = 0;
        for t in &tensors {
            parts(t, &mut at)?.f_copy_(t)?;
        }
        let _ = self.total(message.shallow_clone())?;
        let mut at = 0;
        for t in &tensors {
            t.shallow_clone().f_copy_(&parts(t, &mut at)?)?;
        }
        Ok(tensors)
    }

    /// The largest of all processes, entry by entry.
    ///
    /// # Errors
    /// As [`total`](Self::total).
    pub fn largest(&self, tensor: Tensor) -> Result<Tensor, TchError> {
        self.reduced(tensor, |peers, tensor| peers.largest(tensor))
    }

    fn reduced(
        &self,
        tensor: Tensor,
        by: impl Fn(&dyn Peers, &Tensor) -> Result<(), TchError>,
    ) -> Result<Tensor, TchError> {
        let Some(group) = &self.0 else {
            return Ok(tensor);
        };
        let tensor = tensor.f_contiguous()?;
        let begun = Instant::now();
        delayed(begun);
        by(&**group.peers(), &tensor).map_err(|e| lost(&e))?;
        group.waited.fetch_add(begun.elapsed().as_nanos() as u64, Relaxed);
        Ok(tensor)
    }

    /// `own` among what the other processes have, along dimension `dim`.
    ///
    /// # Errors
    /// As [`total`](Self::total); there is no memory.
    pub fn among(&self, own: &Tensor, dim: i64, place: Place) -> Result<Tensor, TchError> {
        if self.is_alone() {
            return Ok(own.shallow_clone());
        }
        let mut size = own.size();
        let rows = std::mem::replace(&mut size[dim as usize], place.all);
        let whole = Tensor::f_zeros(size, (own.kind(), own.device()))?;
        whole.f_narrow(dim, place.first, rows)?.f_copy_(own)?;
        self.total(whole)
    }

    /// The sums of a few numbers.
    ///
    /// # Errors
    /// As [`total`](Self::total).
    pub fn add<const N: usize>(&self, numbers: [f64; N]) -> Result<[f64; N], TchError> {
        if self.is_alone() {
            return Ok(numbers);
        }
        let sums = host_doubles(&self.total(Tensor::f_from_slice(&numbers)?)?)?;
        Ok(std::array::from_fn(|i| sums[i]))
    }

    /// Work with sums in it has come to its end here; waits until it has everywhere. Nobody
    /// [cuts](Self::cut_short) a sum that nobody waits for.
    ///
    /// # Errors
    /// As [`total`](Self::total).
    pub fn close(&self) -> Result<(), TchError> {
        self.add([0.0]).map(drop)
    }

    /// All take the numbers of process 0, in place.
    ///
    /// # Errors
    /// As [`total`](Self::total).
    pub fn share(&self, tensor: &Tensor) -> Result<(), TchError> {
        match &self.0 {
            Some(group) => group.peers().broadcast(tensor, 0).map_err(|e| lost(&e)),
            None => Ok(()),
        }
    }

    /// Gives bytes of process 0 to all others, who [are told](Self::told) them.
    ///
    /// # Errors
    /// As [`total`](Self::total).
    pub fn tell(&self, bytes: &[u8]) -> Result<(), CollectError> {
        // Both before the first is sent: half a message would leave the others waiting.
        let (length, text) = message(bytes)?;
        self.share(&length)?;
        text.map_or(Ok(()), |text| Ok(self.share(&text)?))
    }

    /// Waits for what process 0 [tells](Self::tell).
    ///
    /// # Errors
    /// As [`total`](Self::total); there is no memory.
    pub fn told(&self) -> Result<Vec<u8>, CollectError> {
        taken(|tensor| self.share(tensor))
    }

    /// Gives bytes to another process.
    ///
    /// # Errors
    /// As [`total`](Self::total).
    pub fn send(&self, bytes: &[u8], to: usize) -> Result<(), CollectError> {
        let Some(group) = &self.0 else {
            return Ok(());
        };
        let give = |tensor: &Tensor| group.peers().send(tensor, to).map_err(|e| lost(&e));
        let (length, text) = message(bytes)?;
        give(&length)?;
        text.map_or(Ok(()), |text| Ok(give(&text)?))
    }

    /// Waits for what another process sends.
    ///
    /// # Errors
    /// As [`told`](Self::told).
    pub fn receive(&self, from: usize) -> Result<Vec<u8>, CollectError> {
        let Some(group) = &self.0 else {
            return Ok(Vec::new());
        };
        taken(|tensor| group.peers().receive(tensor, from).map_err(|e| lost(&e)))
    }

    /// See [`Peers::cut_short`].
    pub fn cut_short(&self) -> bool {
        self.0.as_ref().is_some_and(|g| g.peers().cut_short())
    }

    /// Time that sums took so far (s).
    pub fn waited(&self) -> f64 {
        self.0.as_ref().map_or(0.0, |g| g.waited.load(Relaxed) as f64 * 1e-9)
    }

    /// Does `work`; the time that it took without its sums (s).
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> (T, f64) {
        let (begun, waited) = (Instant::now(), self.waited());
        let done = work();
        (done, begun.elapsed().as_secs_f64() - (self.waited() - waited))
    }

    /// Counts time that a process worked (s).
    pub fn count_work(&self, rank: usize, seconds: f64) {
        let Some(group) = &self.0 else {
            return;
        };
        let mut work = group.work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of) = work.get_mut(rank) {
            *of += seconds;
        }
    }

    /// The [work](Self::count_work) of each process since this was asked last (s).
    pub fn take_work(&self) -> Vec<f64> {
        let Some(group) = &self.0 else {
            return Vec::new();
        };
        let mut work = group.work.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *work, vec![0.0; group.size])
    }
}

/// Bytes whose number comes before them.
fn taken(take: impl Fn(&Tensor) -> Result<(), TchError>) -> Result<Vec<u8>, CollectError> {
    // Who sends does not know that there is no room here: it is taken in nevertheless, if there is
    // at the second try, so that the next message is understood.
    let mut failed = None;
    let mut room = |numbers: i64, kind| {
        let zeros = || Tensor::f_zeros([numbers], (kind, Device::Cpu));
        let again = |e| {
            failed = Some(e);
            zeros()
        };
        let lost = |e| CollectError::Lost(format!("no memory for what it says: {e}"));
        zeros().or_else(again).map_err(lost)
    };
    let length = room(1, Kind::Int64)?;
    take(&length)?;
    let text = room(host_integer(&length)?.max(0), Kind::Uint8)?;
    let (what, bytes) = ("a message".to_string(), text.numel());
    if bytes > 0 {
        take(&text)?;
    }
    if let Some(e) = failed {
        return Err(e.into());
    }
    let mut out = Vec::new();
    out.try_reserve_exact(bytes).map_err(|_| MemoryError { what, bytes })?;
    out.resize(bytes, 0);
    bytes_into(&text, &mut out)?;
    Ok(out)
}

/// Its length, and the bytes themselves where there are some.
fn message(bytes: &[u8]) -> Result<(Tensor, Option<Tensor>), TchError> {
    let length = Tensor::f_from_slice(&[bytes.len() as i64])?;
    let text = (!bytes.is_empty()).then(|| Tensor::f_from_slice(bytes)).transpose()?;
    Ok((length, text))
}

fn lost(e: &TchError) -> TchError {
    let text = e.to_string();
    match text.contains(CUT_SHORT) {
        true => TchError::Torch(CUT_SHORT.into()),
        false => TchError::Torch(format!("{LOST}: {text}")),
    }
}

/// What it says of another process, if it does.
pub(crate) fn of_another(e: &TchError) -> Option<CollectError> {
    let text = e.to_string();
    if text.contains(CUT_SHORT) {
        return Some(CollectError::CutShort);
    }
    let at = text.find(LOST)?;
    Some(CollectError::Lost(text[at + LOST.len() + 2..].to_string()))
}
