//! For tests of the whole program, which start it thousands of times: loading libtorch takes a
//! start 0.15 s of processor time. `ostler --fork-server SOCKET` has loaded it, and forks for
//! every command that comes by the socket. Development builds alone have it.
//!
//! A command is words that end in zeros: files for standard output and error, the folder, the
//! number of arguments, the arguments, and the environment (`NAME=VALUE`). The answer is the
//! status as `wait` has it, in four bytes.

use ostler_sim::files::append;
use ostler_trainer::supervise::process::{Forked, fork};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, Read as _, Result, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// The words of the command that this process is to run: its own, or, in a process that the
/// server has forked, those that came by the socket.
///
/// # Errors
/// The socket cannot be made or read; there is no process left.
pub fn args() -> Result<Vec<OsString>> {
    let own: Vec<OsString> = std::env::args_os().collect();
    match &own[..] {
        [_, word, socket] if word == "--fork-server" => serve(&own[0], Path::new(socket)),
        _ => Ok(own),
    }
}

/// A process that runs a command, and who waits for it.
struct Running {
    process: Pid,
    ended: OwnedFd,
    client: UnixStream,
}

/// Serves until standard input ends. Returns in the processes that are to run a command.
fn serve(program: &OsStr, socket: &Path) -> Result<Vec<OsString>> {
    let listener = UnixListener::bind(socket)?;
    let stdin = std::io::stdin();
    let mut running: Vec<Running> = Vec::new();
    loop {
        let mut fds =
            vec![PollFd::new(&stdin, PollFlags::IN), PollFd::new(&listener, PollFlags::IN)];
        fds.extend(running.iter().map(|one| PollFd::new(&one.ended, PollFlags::IN)));
        poll(&mut fds, None)?;
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[0] {
            ostler_trainer::torch::exit_fast(0);
        }
        for i in (0..running.len()).rev().filter(|i| ready[2 + i]) {
            let mut one = running.swap_remove(i);
            let status = waitpid(Some(one.process), WaitOptions::empty())?;
            let status = status.map_or(-1, |(_, status)| status.as_raw());
            // Who does not wait any more does not hear of it.
            let _ = one.client.write_all(&status.to_le_bytes());
        }
        if ready[1] {
            let (client, _) = listener.accept()?;
            match fork()? {
                Forked::Child => return command(program, client),
                Forked::Parent(pid) => {
                    let process = Pid::from_raw(pid).ok_or_else(|| Error::other("no process"))?;
                    let ended = pidfd_open(process, PidfdFlags::empty())?;
                    running.push(Running { process, ended, client });
                }
            }
        }
    }
}

/// Makes this process what the client asks for. Returns the words of its command.
fn command(program: &OsStr, mut client: UnixStream) -> Result<Vec<OsString>> {
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes)?;
    drop(client);
    let mut words = bytes.split(|&b| b == 0).map(OsStr::from_bytes);
    let mut next = || words.next().ok_or_else(|| Error::other("a command that is cut off"));
    rustix::stdio::dup2_stdout(append(next()?.as_ref())?)?;
    rustix::stdio::dup2_stderr(append(next()?.as_ref())?)?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    std::env::set_current_dir(next()?)?;
    let count = next()?.to_string_lossy().parse().map_err(Error::other)?;
    let args = (0..count).map(|_| next().map(OsStr::to_owned)).collect::<Result<Vec<_>>>()?;
    for (name, _) in std::env::vars_os() {
        // SAFETY: this process has one thread.
        unsafe { std::env::remove_var(name) };
    }
    for pair in words.filter(|pair| !pair.is_empty()) {
        let pair = pair.as_bytes();
        // A name may begin with `=`.
        let end = 1 + pair[1..].iter().position(|&b| b == b'=').unwrap_or(pair.len() - 1);
        let value = pair.get(end + 1..).unwrap_or_default().to_vec();
        // SAFETY: this process has one thread.
        unsafe { std::env::set_var(OsStr::from_bytes(&pair[..end]), OsString::from_vec(value)) };
    }
    Ok([program.to_owned()].into_iter().chain(args).collect())
}
