//! `ostler`: trains robot policies in batches of simulated robots.

#[cfg(debug_assertions)]
mod fork_server;

fn main() {
    #[cfg(debug_assertions)]
    let args = match fork_server::args() {
        Ok(args) => args,
        Err(e) => panic!("fork server: {e}"),
    };
    #[cfg(not(debug_assertions))]
    let args: Vec<_> = std::env::args_os().collect();
    let code = ostler_trainer::cli::run_with(&args);
    ostler_trainer::torch::exit_fast(code);
}
