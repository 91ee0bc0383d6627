//! Commands of `ostler` by its fork server (`trainer/src/fork_server.rs`), which spares each the
//! 0.15 s of loading libtorch.

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Result, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;

/// What is read while a program is loaded cannot be set afterwards.
const OF_LOADING: [&str; 6] = ["LD_", "GLIBC_", "MALLOC_", "OMP_", "GOMP_", "MKL_"];

struct Server {
    folder: tempfile::TempDir,
    socket: PathBuf,
    /// It ends with this process, at the end of its standard input.
    _child: Child,
}

static SERVER: OnceLock<Server> = OnceLock::new();

fn server() -> &'static Server {
    SERVER.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let mut command = super::ostler();
        command.arg("--fork-server").arg(&socket).stdin(Stdio::piped());
        let child = command.spawn().unwrap();
        super::process::wait("the fork server", || socket.exists().then_some(()));
        Server { folder, socket, _child: child }
    })
}

pub trait Forked {
    /// As [`Command::output`]: for `ostler` with arguments, folder and variables, and nothing
    /// else that a command can have.
    fn forked(&mut self) -> Result<Output>;
}

impl Forked for Command {
    fn forked(&mut self) -> Result<Output> {
        let of_loading = |(name, _): (&OsStr, _)| {
            OF_LOADING.iter().any(|start| name.as_bytes().starts_with(start.as_bytes()))
        };
        let other = self.get_program() != super::ostler().get_program();
        // A release build has no server.
        if other || cfg!(not(debug_assertions)) || self.get_envs().any(of_loading) {
            return self.output();
        }
        let server = server();
        let own = tempfile::tempdir_in(server.folder.path())?;
        let (out, err) = (own.path().join("out"), own.path().join("err"));
        let here = std::env::current_dir()?;
        let folder = here.join(self.get_current_dir().unwrap_or(&here));
        let count = self.get_args().count().to_string();
        let mut words: Vec<OsString> =
            vec![out.clone().into(), err.clone().into(), folder.into(), count.into()];
        words.extend(self.get_args().map(OsStr::to_owned));
        let mut variables: std::collections::BTreeMap<OsString, OsString> =
            std::env::vars_os().collect();
        for (name, value) in self.get_envs() {
            match value {
                Some(value) => variables.insert(name.into(), value.into()),
                None => variables.remove(name),
            };
        }
        for (mut pair, value) in variables {
            pair.push("=");
            pair.push(value);
            words.push(pair);
        }
        let mut stream = UnixStream::connect(&server.socket)?;
        for word in words {
            stream.write_all(word.as_bytes())?;
            stream.write_all(&[0])?;
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        let mut status = [0; 4];
        stream.read_exact(&mut status)?;
        Ok(Output {
            status: ExitStatus::from_raw(i32::from_le_bytes(status)),
            stdout: std::fs::read(&out)?,
            stderr: std::fs::read(&err)?,
        })
    }
}
