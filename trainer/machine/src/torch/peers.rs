//! Processes that train as one, over libtorch's c10d: a store where they meet (TCPStore), sums
//! and messages by Gloo. A thread of each process says that it lives, and ends the process when
//! another has said nothing for too long: nobody waits for the dead.

use super::shared::{self, SharedSums};
use super::{TorchError, call, exit_fast, short_errors};
use ostler_collector::peers::Peers;
use ostler_collector::transfer::host_integer;
use ostler_sim::files::of_process;
use std::ffi::{CString, c_char, c_void};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tch::{TchError, Tensor};

unsafe extern "C" {
    fn ostler_store_open(
        store: *mut *mut c_void,
        host: *const c_char,
        port: u16,
        serve: i32,
        socket: i32,
        timeout_ms: i64,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_store_part(
        from: *mut c_void,
        prefix: *const c_char,
        store: *mut *mut c_void,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_store_set(
        store: *mut c_void,
        key: *const c_char,
        value: *const u8,
        size: usize,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_store_get(
        store: *mut c_void,
        key: *const c_char,
        value: *mut u8,
        size: usize,
        held: *mut usize,
        timeout_ms: i64,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_store_close(store: *mut c_void);
    fn ostler_peers_open(
        peers: *mut *mut c_void,
        store: *mut c_void,
        rank: i32,
        size: i32,
        address: *const c_char,
        timeout_ms: i64,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_peers_reduce(
        peers: *mut c_void,
        tensor: *const c_void,
        largest: i32,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_peers_broadcast(
        peers: *mut c_void,
        tensor: *const c_void,
        root: i32,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_peers_pass(
        peers: *mut c_void,
        tensor: *const c_void,
        other: i32,
        receive: i32,
        error: *mut c_char,
        error_size: usize,
    ) -> i32;
    fn ostler_peers_close(peers: *mut c_void);
}

/// One operation of Gloo's takes at most so long: only of processes that say that they live
/// is anybody waited for.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// How often a process says that it lives.
const BEAT: Duration = Duration::from_millis(500);

/// How often somebody who waits for the others to come looks whether they live.
const LOOK: Duration = Duration::from_secs(2);

/// Where processes meet, and which this one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    /// The number of this process, from 0.
    pub rank: usize,
    /// How many there are.
    pub size: usize,
    /// The store's host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether somebody else holds the store: `torchrun`'s agent. Else process 0 does.
    pub held: bool,
    /// A listening socket for process 0, where whoever started it opened one.
    pub socket: Option<i32>,
    /// Starts of these processes before this one: what they left in the store is of no use.
    pub attempt: u64,
    /// Whether all are on this machine.
    pub here: bool,
    /// Process 0's number in the system, where it started this one.
    pub parent: Option<i32>,
    /// Those of the processes that this one started.
    pub children: Vec<i32>,
}

/// How long is waited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patience {
    /// Until all have come.
    pub start: Duration,
    /// For a process that says nothing.
    pub silence: Duration,
}

/// A connection to the store.
struct Store(NonNull<c_void>);

// SAFETY: c10d's client of a store guards its connection by a lock of its own; this value alone
// frees it.
unsafe impl Send for Store {}

impl Store {
    fn open(meeting: &Meeting, patience: Duration) -> Result<Self, TorchError> {
        let host = text(&meeting.host);
        let serve = i32::from(meeting.rank == 0 && !meeting.held);
        let socket = meeting.socket.unwrap_or(-1);
        Self::made(|store, error, size| {
            // SAFETY: the host is terminated, the place for the result lives across the call,
            // and `call` hands over a buffer together with its length.
            unsafe {
                let (host, port) = (host.as_ptr(), meeting.port);
                ostler_store_open(store, host, port, serve, socket, millis(patience), error, size)
            }
        })
    }

    /// Another connection, to keys below a prefix.
    fn part(&self, prefix: &str) -> Result<Self, TorchError> {
        let prefix = text(prefix);
        Self::made(|store, error, size| {
            // SAFETY: as above; this value holds the store.
            unsafe { ostler_store_part(self.0.as_ptr(), prefix.as_ptr(), store, error, size) }
        })
    }

    fn made(
        by: impl FnOnce(*mut *mut c_void, *mut c_char, usize) -> i32,
    ) -> Result<Self, TorchError> {
        let mut store = std::ptr::null_mut();
        call(MEET, |error, size| by(&mut store, error, size))?;
        NonNull::new(store).map(Self).ok_or_else(|| refused(MEET, "nothing was made"))
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), TorchError> {
        let key = text(key);
        // SAFETY: the key is terminated, the value given with its length, and `call` hands over
        // a buffer together with its length; this value holds the store.
        call(MEET, |error, size| unsafe {
            let (value, len) = (value.as_ptr(), value.len());
            ostler_store_set(self.0.as_ptr(), key.as_ptr(), value, len, error, size)
        })
    }

    /// Waits for a key that holds a number.
    fn number(&self, key: &str, patience: Duration) -> Result<u64, TorchError> {
        let key = text(key);
        let (mut value, mut held) = ([0_u8; 8], 0);
        // SAFETY: as in `set`, with room for so many bytes.
        call(MEET, |error, size| unsafe {
            ostler_store_get(
                self.0.as_ptr(),
                key.as_ptr(),
                value.as_mut_ptr(),
                value.len(),
                &mut held,
                millis(patience),
                error,
                size,
            )
        })?;
        Ok(u64::from_le_bytes(value))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: made by the shim and freed by this value alone.
        unsafe { ostler_store_close(self.0.as_ptr()) };
    }
}

/// Whether a process that this one started has ended.
fn has_ended(child: i32) -> bool {
    // SAFETY: zeros are a value of the struct, which the call fills; it looks only, and waits for
    // nobody.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, child as libc::id_t, &mut info, look) == 0
            && info.si_pid() == child
    }
}

/// A thread for as long as this process lives.
fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), TorchError> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map(drop).map_err(|e| refused("watch over the other processes", &e.to_string()))
}

const MEET: &str = "meet the other processes";

/// Processes that reach one another by Gloo.
pub struct Gloo {
    peers: NonNull<c_void>,
    rank: usize,
    size: usize,
    watch: Arc<Watch>,
    /// Where all are on this machine.
    shared: Option<Mutex<SharedSums>>,
    /// Held by process 0, to whom the others' threads are connected.
    _store: Store,
}

// SAFETY: c10d's group guards its queue by locks of its own, and takes calls from any thread; this
// value alone frees it.
unsafe impl Send for Gloo {}

impl std::fmt::Debug for Gloo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gloo").field("rank", &self.rank).field("size", &self.size).finish()
    }
}

/// What the threads that watch are told.
#[derive(Debug, Default)]
struct Watch {
    /// The process ends: nobody is missed any more.
    over: AtomicBool,
    /// All have met: from now on one that ends may have been told to.
    met: AtomicBool,
    /// Rounds of asking the store, which process 0 has.
    rounds: AtomicU64,
}

impl Gloo {
    /// Meets the others and waits until all have come.
    ///
    /// # Errors
    /// One does not come in time; the port is in use.
    pub fn meet(meeting: &Meeting, patience: Patience, lost: i32) -> Result<Self, TorchError> {
        short_errors()?;
        let store = Store::open(meeting, patience.start)?;
        let own = format!("ostler/{}", meeting.attempt);
        let (rank, size) = (meeting.rank, meeting.size);
        let beats = store.part(&own)?;
        beats.set(&beat_of(rank), &0_u64.to_le_bytes())?;
        let since = Instant::now();
        for other in (0..size).filter(|&other| rank == 0 || other == 0) {
            loop {
                let left = patience.start.saturating_sub(since.elapsed());
                // By and by, as one of its children may have died meanwhile.
                match beats.number(&beat_of(other), left.clamp(BEAT, LOOK)) {
                    Ok(_) => break,
                    Err(_) if meeting.children.iter().any(|&child| has_ended(child)) => {
                        return Err(TorchError::Gone { why: "it ended at its start".into() });
                    }
                    Err(TorchError::Call { .. }) if left > LOOK => {}
                    Err(e @ TorchError::Call { .. }) => {
                        return Err(TorchError::Absent {
                            rank: other,
                            size,
                            seconds: patience.start.as_secs(),
                            why: e.to_string(),
                        });
                    }
                    Err(e) => return Err(e),
                }
            }
        }
        // From here on somebody who dies is missed: what follows waits for all without an end.
        let watch = Arc::new(Watch::default());
        if rank > 0 {
            let (told, parent) = (Arc::clone(&watch), meeting.parent);
            let silence = patience.silence;
            thread("peers-store", move || {
                listen_to_the_store((rank, size), silence, (lost, parent), &told);
            })?;
        }
        let gloo = store.part(&format!("{own}/gloo"))?;
        let (told, children) = (Arc::clone(&watch), meeting.children.clone());
        thread("peers", move || {
            listen(&beats, (rank, size), patience.silence, (lost, &children), &told);
        })?;
        let made = Self::joined(meeting, store, &gloo, Arc::clone(&watch));
        watch.met.store(true, Relaxed);
        if made.is_err() {
            watch.over.store(true, Relaxed);
        }
        // All had come.
        made.map_err(|e| TorchError::Gone { why: e.to_string() })
    }

    /// The group of processes that have come.
    fn joined(
        meeting: &Meeting,
        store: Store,
        gloo: &Store,
        watch: Arc<Watch>,
    ) -> Result<Self, TorchError> {
        let (rank, size) = (meeting.rank, meeting.size);
        let address = text(if meeting.here { "127.0.0.1" } else { "" });
        let mut peers = std::ptr::null_mut();
        // SAFETY: the store and the address live across the call, which has a place for its
        // result; `call` hands over a buffer together with its length. The group keeps the
        // store's connection alive by itself.
        call(MEET, |error, len| unsafe {
            ostler_peers_open(
                &mut peers,
                gloo.0.as_ptr(),
                rank as i32,
                size as i32,
                address.as_ptr(),
                millis(LONGEST),
                error,
                len,
            )
        })?;
        let peers = NonNull::new(peers).ok_or_else(|| refused(MEET, "nothing was made"))?;
        let mut this = Self { peers, rank, size, watch, shared: None, _store: store };
        if meeting.here {
            this.shared = this.share_memory().map_err(|e| refused(MEET, &e.to_string()))?;
            if this.shared.is_none() && rank == 0 {
                tracing::warn!(
                    "the processes have no memory in common, so their sums go through sockets, \
                     which takes longer: let them see each other in /proc (one container, one user)"
                );
            }
        }
        Ok(this)
    }

    /// Memory for sums, if all processes can have it.
    fn share_memory(&self) -> Result<Option<Mutex<SharedSums>>, TchError> {
        let made = (self.rank == 0).then(|| shared::create(self.size).ok()).flatten();
        let (fd, name) = match &made {
            Some((file, name)) => (i64::from(file.as_raw_fd()), *name),
            None => (-1, 0),
        };
        let place = Tensor::f_from_slice(&[i64::from(std::process::id()), fd, name as i64])?;
        self.broadcast(&place, 0)?;
        let at = |k| host_integer(&place.f_get(k)?);
        let (pid, fd, name) = (at(0)?, at(1)?, at(2)? as u64);
        let map = |file: &_| SharedSums::map(file, name, self.rank, self.size);
        let own = match &made {
            Some((file, _)) => map(file),
            None => of_process(pid, fd).and_then(|file| map(&file)),
        };
        let own = own.ok();
        // Twice: each is to have written its number before the others look for it.
        let agreed = |holds: bool| -> Result<bool, TchError> {
            let lacking = Tensor::f_from_slice(&[i64::from(!holds)])?;
            self.reduce(&lacking, false)?;
            Ok(host_integer(&lacking)? == 0)
        };
        let mapped = agreed(own.is_some())?;
        let found = agreed(mapped && own.as_ref().is_some_and(SharedSums::finds_all))?;
        // The others opened it by its number: until here it was to stay this file's.
        drop(made);
        Ok(own.filter(|_| found).map(Mutex::new))
    }

    fn reduce(&self, tensor: &Tensor, largest: bool) -> Result<(), TchError> {
        if let Some(shared) = &self.shared
            && SharedSums::takes(tensor)
        {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            return shared.reduce(tensor, largest).map_err(TorchError::into_tch);
        }
        let own = tensor.as_ptr();
        // SAFETY: this value holds the group; the tensor lives across the call, and `call` hands
        // over a buffer together with its length.
        call("add numbers up", |error, size| unsafe {
            let peers = self.peers.as_ptr();
            ostler_peers_reduce(peers, own.cast(), i32::from(largest), error, size)
        })
        .map_err(TorchError::into_tch)
    }

    fn pass(&self, tensor: &Tensor, other: usize, receive: bool) -> Result<(), TchError> {
        let own = tensor.as_ptr();
        // SAFETY: as in `reduce`.
        call("pass a message", |error, size| unsafe {
            let (peers, receive) = (self.peers.as_ptr(), i32::from(receive));
            ostler_peers_pass(peers, own.cast(), other as i32, receive, error, size)
        })
        .map_err(TorchError::into_tch)
    }
}

impl Peers for Gloo {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn sum(&self, tensor: &Tensor) -> Result<(), TchError> {
        self.reduce(tensor, false)
    }

    fn largest(&self, tensor: &Tensor) -> Result<(), TchError> {
        self.reduce(tensor, true)
    }

    fn broadcast(&self, tensor: &Tensor, root: usize) -> Result<(), TchError> {
        let own = tensor.as_ptr();
        // SAFETY: as in `reduce`.
        call("tell all", |error, size| unsafe {
            ostler_peers_broadcast(self.peers.as_ptr(), own.cast(), root as i32, error, size)
        })
        .map_err(TorchError::into_tch)
    }

    fn send(&self, tensor: &Tensor, to: usize) -> Result<(), TchError> {
        self.pass(tensor, to, false)
    }

    fn receive(&self, tensor: &Tensor, from: usize) -> Result<(), TchError> {
        self.pass(tensor, from, true)
    }

    fn cut_short(&self) -> bool {
        let shared = self.shared.as_ref();
        shared.map(|s| s.lock().unwrap_or_else(PoisonError::into_inner).cut_short()).is_some()
    }
}

impl Drop for Gloo {
    fn drop(&mut self) {
        self.watch.over.store(true, Relaxed);
        // SAFETY: made by the shim and freed by this value alone.
        unsafe { ostler_peers_close(self.peers.as_ptr()) };
    }
}

/// Says that this process lives, and ends it when another no longer does: process 0 looks at all
/// others, the others at process 0.
fn listen(
    beats: &Store,
    (rank, size): (usize, usize),
    silence: Duration,
    (lost, children): (i32, &[i32]),
    watch: &Watch,
) {
    let others: Vec<usize> = (0..size).filter(|&r| r != rank && (rank == 0 || r == 0)).collect();
    let mut heard: Vec<(u64, Instant)> = vec![(0, Instant::now()); others.len()];
    for beat in 1_u64.. {
        std::thread::sleep(BEAT);
        if watch.over.load(Relaxed) {
            return;
        }
        watch.rounds.store(beat, Relaxed);
        let mut missing = beats.set(&beat_of(rank), &beat.to_le_bytes()).err().map(|_| 0);
        for (other, (last, since)) in others.iter().zip(&mut heard) {
            match beats.number(&beat_of(*other), silence) {
                Ok(now) if now != *last => (*last, *since) = (now, Instant::now()),
                Ok(_) if since.elapsed() < silence => {}
                _ => missing = Some(*other),
            }
        }
        if children.iter().any(|&child| has_ended(child)) && !watch.met.load(Relaxed) {
            eprintln!("error: a process of {size} ended at its start: process {rank} ends");
            exit_fast(lost);
        }
        // Both ends of what is gone say so: it may have been this one's wish.
        if let Some(other) = missing
            && !watch.over.load(Relaxed)
        {
            say_missed(other, (rank, size), silence);
            exit_fast(lost);
        }
    }
}

/// A store whose process stands still does not answer, and whoever asks it waits for ever: ends
/// this process then, and the one that stands still if that started it.
fn listen_to_the_store(
    (rank, size): (usize, usize),
    silence: Duration,
    (lost, parent): (i32, Option<i32>),
    watch: &Watch,
) {
    let (mut last, mut since) = (0, Instant::now());
    while !watch.over.load(Relaxed) {
        std::thread::sleep(BEAT);
        match watch.rounds.load(Relaxed) {
            rounds if rounds != last => (last, since) = (rounds, Instant::now()),
            _ if since.elapsed() < silence + 2 * BEAT => {}
            _ if watch.over.load(Relaxed) => {}
            _ => {
                // Before its end, which is this one's.
                say_missed(0, (rank, size), silence);
                // SAFETY: getppid and kill take and give numbers.
                unsafe {
                    if let Some(parent) = parent.filter(|&pid| pid == libc::getppid()) {
                        libc::kill(parent, libc::SIGKILL);
                    }
                }
                exit_fast(lost);
            }
        }
    }
}

/// Says that another process has said nothing, and that this one ends.
fn say_missed(other: usize, (rank, size): (usize, usize), silence: Duration) {
    eprintln!(
        "error: process {other} of {size} has said nothing for {} s (runner.peers_silence_s): \
         process {rank} ends",
        silence.as_secs()
    );
}

fn beat_of(rank: usize) -> String {
    format!("beat/{rank}")
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// As C has it: up to a zero.
fn text(text: &str) -> CString {
    let clean: Vec<u8> = text.bytes().take_while(|&b| b != 0).collect();
    CString::new(clean).unwrap_or_default()
}

fn refused(operation: &'static str, why: &str) -> TorchError {
    TorchError::Call { operation, message: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_collector::peers::Group;
    use std::net::TcpListener;
    use tch::{Device, Kind};

    /// Whether the test goes on here: in a process of its own, as a run has one store for its
    /// life. libtorch damages memory now and then where one store follows another.
    fn alone(test: &str) -> bool {
        crate::alone::here(&format!("torch::peers::tests::{test}"), &[])
    }

    /// Runs `work` in so many threads that are a process of a group each, once in a process.
    fn together<T: Send>(size: usize, work: impl Fn(Group) -> T + Sync) -> Vec<T> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = std::os::fd::IntoRawFd::into_raw_fd(listener);
        let meet = |rank: usize| {
            let meeting = Meeting { rank, size, ..first(port, (rank == 0).then_some(socket)) };
            let wait = Duration::from_secs(60);
            Gloo::meet(&meeting, Patience { start: wait, silence: wait }, 1).unwrap()
        };
        let (meet, work) = (&meet, &work);
        std::thread::scope(|scope| {
            let run = |rank| scope.spawn(move || work(Group::of(Box::new(meet(rank)))));
            let all: Vec<_> = (0..size).map(run).collect();
            all.into_iter().map(|t| t.join().unwrap()).collect()
        })
    }

    /// Of another meeting of the same processes, too, each meeting in a process of its own.
    fn sums_have_the_same_bits(test: &str, size: usize) {
        let full = format!("torch::peers::tests::{test}");
        if std::env::var(crate::need::ALONE).is_ok_and(|name| name == full) {
            return the_same_bits(size);
        }
        let bits = || {
            let out = crate::alone::command(&[], &full).output().unwrap();
            let said = String::from_utf8_lossy(&out.stdout).into_owned();
            assert!(out.status.success(), "{said}{}", String::from_utf8_lossy(&out.stderr));
            said.lines().find(|line| line.starts_with("bits ")).map(str::to_owned)
        };
        let first = bits();
        assert!(first.is_some() && first == bits());
    }

    #[test]
    fn sums_are_the_same_bits_in_every_process_and_at_every_time() {
        let test = "sums_are_the_same_bits_in_every_process_and_at_every_time";
        sums_have_the_same_bits(test, 3);
    }

    /// More processes than exchange their numbers each with each.
    #[test]
    fn sums_of_many_are_the_same_bits() {
        sums_have_the_same_bits("sums_of_many_are_the_same_bits", 9);
    }

    fn the_same_bits(size: usize) {
        let numbers = |rank: usize| {
            let t = Tensor::arange(10_007, (Kind::Float, Device::Cpu));
            (t * (0.1 + rank as f64)).sin()
        };
        let all = together(size, |group| {
            let rank = group.rank();
            let sum = || Vec::<f32>::try_from(group.total(numbers(rank)).unwrap()).unwrap();
            // A number that is none is none for all.
            let none = group.add([if rank == 1 { f64::NAN } else { 1.0 }, 2.0]).unwrap();
            (sum(), sum(), none)
        });
        let bits = |x: &Vec<f32>| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let first = bits(&all[0].0);
        assert!(all.iter().all(|(sum, again, _)| bits(sum) == first && bits(again) == first));
        let wanted = (1..size).fold(numbers(0), |sum, rank| sum + numbers(rank));
        let wanted = Vec::<f32>::try_from(wanted).unwrap();
        assert!(all[0].0.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5));
        let none = |x: &[f64; 2]| x[0].is_nan() && x[1] == 2.0 * size as f64;
        assert!(all.iter().all(|(_, _, x)| none(x)));
        println!("\nbits {first:?}");
    }

    #[test]
    fn messages_arrive_whole() {
        if !alone("messages_arrive_whole") {
            return;
        }
        let long: Vec<u8> = (0..300_000).map(|i| i as u8).collect();
        let got = together(3, |group| {
            let heard = |bytes: &[u8]| match group.rank() {
                0 => group.tell(bytes).map(|()| bytes.to_vec()).unwrap(),
                _ => group.told().unwrap(),
            };
            let (told, nothing) = (heard(&long), heard(&[]));
            let answers: Vec<Vec<u8>> = match group.rank() {
                0 => (1..3).map(|r| group.receive(r).unwrap()).collect(),
                rank => {
                    group.send(&vec![rank as u8; rank * 7 - 7], 0).unwrap();
                    Vec::new()
                }
            };
            (told == long, nothing.len(), answers, group.shard(8))
        });
        let answers = vec![vec![], vec![2; 7]];
        assert_eq!(got[0], (true, 0, answers, (0, 2)));
        assert_eq!(got[2], (true, 0, Vec::new(), (5, 3)));
    }

    #[test]
    fn nobody_is_past_the_close_before_all_have_come_to_it() {
        if !alone("nobody_is_past_the_close_before_all_have_come_to_it") {
            return;
        }
        use std::sync::atomic::{AtomicUsize, Ordering};
        let arrived = AtomicUsize::new(0);
        let seen = together(3, |group| {
            let each = |round: usize| {
                // Another one is late each time.
                if group.rank() == round % 3 {
                    std::thread::sleep(Duration::from_millis(20));
                }
                arrived.fetch_add(1, Ordering::SeqCst);
                group.close().unwrap();
                arrived.load(Ordering::SeqCst) >= 3 * (round + 1)
            };
            (0..6).map(each).collect::<Vec<_>>()
        });
        assert_eq!(seen, vec![vec![true; 6]; 3]);
    }

    #[test]
    fn who_cannot_go_on_says_so_and_the_next_sum_is_whole() {
        if !alone("who_cannot_go_on_says_so_and_the_next_sum_is_whole") {
            return;
        }
        let sums = together(3, |group| {
            let mut said = Vec::new();
            for round in 0..40 {
                // After some sums one of them fails: before the others wait, or while they do.
                let fails = group.rank() == round % 3;
                let summed = |x: f64| group.add([x]);
                for _ in 0..round % 4 {
                    summed(1.0).unwrap();
                }
                match fails {
                    true => assert!(group.cut_short()),
                    false => said.push(summed(1.0).unwrap_err().to_string()),
                }
                // A message between all, as orders and answers are.
                match group.rank() {
                    0 => {
                        (1..3).for_each(|r| drop(group.receive(r).unwrap()));
                        group.tell(&[1]).unwrap();
                    }
                    _ => {
                        group.send(&[1], 0).unwrap();
                        group.told().unwrap();
                    }
                }
                assert_eq!(summed(2.0).unwrap(), [6.0]);
            }
            said
        });
        let all: Vec<_> = sums.iter().flatten().collect();
        assert!(all.len() == 80 && all.iter().all(|e| e.contains("could not go on")), "{all:?}");
    }

    /// Process 0 of two.
    fn first(port: u16, socket: Option<i32>) -> Meeting {
        Meeting {
            rank: 0,
            size: 2,
            host: "127.0.0.1".into(),
            port,
            held: false,
            socket,
            attempt: 0,
            here: true,
            parent: None,
            children: Vec::new(),
        }
    }

    fn refusal(meeting: &Meeting, start: Duration) -> String {
        let patience = Patience { start, silence: start };
        Gloo::meet(meeting, patience, 1).unwrap_err().to_string()
    }

    #[test]
    fn a_process_that_does_not_come_is_named() {
        if !alone("a_process_that_does_not_come_is_named") {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let socket = std::os::fd::IntoRawFd::into_raw_fd(listener);
        // On a busy machine its own way to the store takes more than one second.
        let e = refusal(&first(port, Some(socket)), Duration::from_secs(5));
        assert!(e.contains("process 1 of 2 did not come within 5 s"), "{e}");
    }

    #[test]
    fn a_port_in_use_is_no_store_of_ours() {
        if !alone("a_port_in_use_is_no_store_of_ours") {
            return;
        }
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let e = refusal(&first(port, None), Duration::from_secs(5));
        assert!(e.contains("in use"), "{e}");
    }
}
