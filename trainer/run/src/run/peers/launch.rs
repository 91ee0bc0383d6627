//! How processes of one training come to be: by this program on one machine, by `torchrun`, by
//! SLURM.

use crate::supervise::process::Forked;
use crate::supervise::process::{die_with, fork as fork_process, threads};
use ostler_machine::torch::peers::Meeting;
use std::net::TcpListener;
use std::os::fd::IntoRawFd;

/// Several processes, and which of them this one is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Where they meet.
    pub meeting: Meeting,
    /// How many of them are on this machine.
    pub here: usize,
    /// Starts before this one.
    pub restarts: u64,
}

/// The launch that the environment's variables say, where they say one of several processes.
///
/// # Errors
/// A sentence about variables that do not fit together.
pub fn of_environment(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Launch>, String> {
    let number = |name: &str| -> Result<Option<usize>, String> {
        let value = get(name).filter(|v| !v.is_empty());
        let parse = |v: String| {
            v.parse().map_err(|_| format!("{name} = \"{v}\" in the environment is not a number"))
        };
        value.map(parse).transpose()
    };
    let need = |name: &str| -> Result<usize, String> {
        number(name)?.ok_or_else(|| format!("{name} is missing in the environment"))
    };
    let host = || get("MASTER_ADDR").filter(|h| !h.is_empty());
    if let Some(size) = number("WORLD_SIZE")?.filter(|&n| n > 1) {
        // As torchrun has it: https://docs.pytorch.org/docs/stable/elastic/run.html
        let host = host().ok_or("WORLD_SIZE is set and MASTER_ADDR is not: torchrun sets both")?;
        let here = number("LOCAL_WORLD_SIZE")?.unwrap_or(1);
        let restarts = number("TORCHELASTIC_RESTART_COUNT")?.unwrap_or(0) as u64;
        let held = get("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|v| v == "True");
        return launch(
            (need("RANK")?, size),
            (host, port(need("MASTER_PORT")?)?),
            here,
            restarts,
            held,
        )
        .map(Some);
    }
    // Only in a step of srun's: in the batch script itself nobody else would come.
    let Some(size) = number("SLURM_STEP_NUM_TASKS")?.filter(|&n| n > 1) else {
        return Ok(None);
    };
    let rank = need("SLURM_PROCID")?;
    let nodes = number("SLURM_STEP_NUM_NODES")?.unwrap_or(1);
    let first = || get("SLURM_STEP_NODELIST").as_deref().and_then(first_node);
    let host = match (host(), nodes) {
        (Some(host), _) => host,
        (None, 1) => "127.0.0.1".into(),
        (None, _) => first().ok_or("SLURM_STEP_NODELIST is missing in the environment")?,
    };
    // The same for all of a step, and seldom that of another on the machine.
    let port = match number("MASTER_PORT")? {
        Some(own) => port(own)?,
        None => {
            let job = number("SLURM_JOB_ID")?.unwrap_or(0) + number("SLURM_STEP_ID")?.unwrap_or(0);
            port(20_000 + job % 20_000)?
        }
    };
    let here = size.div_ceil(nodes.max(1));
    let restarts = number("SLURM_RESTART_COUNT")?.unwrap_or(0) as u64;
    launch((rank, size), (host, port), here, restarts, false).map(Some)
}

fn launch(
    (rank, size): (usize, usize),
    (host, port): (String, u16),
    here: usize,
    restarts: u64,
    held: bool,
) -> Result<Launch, String> {
    if rank >= size {
        return Err(format!("the environment says that this is process {rank} of {size}"));
    }
    let meeting = Meeting {
        rank,
        size,
        host,
        port,
        held,
        socket: None,
        attempt: restarts,
        here: here == size,
        parent: None,
        children: Vec::new(),
    };
    Ok(Launch { meeting, here, restarts })
}

fn port(number: usize) -> Result<u16, String> {
    u16::try_from(number).map_err(|_| format!("MASTER_PORT = {number} is not a port"))
}

/// The first of SLURM's list of nodes: `n1` of `n1,n2`, `gpu03` of `gpu[03-07,12]`.
fn first_node(list: &str) -> Option<String> {
    let (name, numbers) = match list.split_once('[') {
        Some((name, rest)) if !name.contains(',') => (name, rest.split([']', ',', '-']).next()?),
        _ => (list.split(',').next()?, ""),
    };
    Some(format!("{name}{numbers}")).filter(|n| !n.is_empty())
}

/// Becomes process 0 of `size` on this machine: the others begin where this returns, too, and end
/// when this one does.
///
/// # Errors
/// The system refuses a process or a port.
pub fn fork(size: usize) -> std::io::Result<Launch> {
    if threads() != Some(1) {
        let why = "this process has other threads at its start: --nproc needs one without";
        return Err(std::io::Error::other(why));
    }
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let parent = std::process::id() as i32;
    let of = |rank: usize, socket: Option<i32>, children: Vec<i32>| Launch {
        meeting: Meeting {
            rank,
            size,
            host: "127.0.0.1".into(),
            port,
            held: false,
            socket,
            attempt: 0,
            here: true,
            parent: (rank > 0).then_some(parent),
            children,
        },
        here: size,
        restarts: 0,
    };
    let mut children = Vec::new();
    for rank in 1..size {
        match fork_process()? {
            Forked::Child => {
                if !die_with(parent) {
                    ostler_machine::torch::exit_fast(super::LOST);
                }
                drop(listener);
                return Ok(of(rank, None, Vec::new()));
            }
            Forked::Parent(child) => children.push(child),
        }
    }
    Ok(of(0, Some(listener.into_raw_fd()), children))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Option<Launch>, String> {
        of_environment(&|name| {
            let found = variables.iter().find(|v| v.0 == name);
            found.map(|v| v.1.to_string())
        })
    }

    #[test]
    fn torchruns_variables_are_read() {
        let torchrun = [
            ("WORLD_SIZE", "4"),
            ("RANK", "3"),
            ("LOCAL_WORLD_SIZE", "2"),
            ("MASTER_ADDR", "node1"),
            ("MASTER_PORT", "29500"),
            ("TORCHELASTIC_USE_AGENT_STORE", "True"),
            ("TORCHELASTIC_RESTART_COUNT", "2"),
        ];
        let launch = read(&torchrun).unwrap().unwrap();
        assert_eq!((launch.here, launch.restarts), (2, 2));
        let m = launch.meeting;
        assert_eq!((m.rank, m.size, m.host.as_str(), m.port), (3, 4, "node1", 29500));
        assert!(m.held && !m.here && m.attempt == 2);
        assert_eq!(read(&[("WORLD_SIZE", "1"), ("RANK", "0")]), Ok(None));
        let without = |name: &str| {
            let all: Vec<_> = torchrun.iter().filter(|v| v.0 != name).copied().collect();
            read(&all).unwrap_err()
        };
        assert!(without("MASTER_PORT").contains("MASTER_PORT is missing"));
        assert!(without("MASTER_ADDR").contains("MASTER_ADDR is not"));
        let e = read(&[("WORLD_SIZE", "two")]).unwrap_err();
        assert!(e.contains("WORLD_SIZE = \"two\""), "{e}");
    }

    #[test]
    fn slurms_variables_are_read_in_a_step_alone() {
        let batch = [("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0"), ("SLURM_JOB_ID", "77")];
        assert_eq!(read(&batch), Ok(None), "nobody else would come");
        let step = [
            ("SLURM_STEP_NUM_TASKS", "4"),
            ("SLURM_STEP_NUM_NODES", "2"),
            ("SLURM_PROCID", "1"),
            ("SLURM_STEP_NODELIST", "gpu[03-04]"),
            ("SLURM_JOB_ID", "77"),
            ("SLURM_STEP_ID", "1"),
        ];
        let launch = read(&step).unwrap().unwrap();
        let m = launch.meeting;
        assert_eq!((m.rank, m.size, m.host.as_str(), m.port), (1, 4, "gpu03", 20_078));
        assert!(!m.held && !m.here && launch.here == 2);
        for (list, first) in
            [("n1,n2", "n1"), ("n1", "n1"), ("a-b[7,9]", "a-b7"), ("x,y[1-2]", "x")]
        {
            assert_eq!(first_node(list).as_deref(), Some(first));
        }
    }
}
