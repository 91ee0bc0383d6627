//! `ostler`: trains robot policies in batches of simulated robots.

fn main() {
    let code = ostler_trainer::cli::run();
    ostler_trainer::torch::exit_fast(code);
}
