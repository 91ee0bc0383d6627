//! `ostler completions`, `man` and `schema`: the command line for a shell and for `man`, the
//! configuration for an editor.

use super::Cli;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use ostler_run::log::{note_written, outln};
use ostler_run::run::RunError;
use ostler_sim::files;
use std::io::Write as _;
use std::path::PathBuf;

/// Flags of `ostler completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Flags of `ostler man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for ostler.1 and a page of each command; made if it is missing
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Prints the completions.
///
/// # Errors
/// None: a reader that goes away ends it quietly.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<i32, RunError> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "ostler", &mut text);
    note_written(&std::io::stdout().lock().write_all(&text));
    Ok(0)
}

/// Prints JSON Schema of a configuration.
///
/// # Errors
/// None: a reader that goes away ends it quietly.
pub(crate) fn schema() -> Result<i32, RunError> {
    outln!("{:#}", ostler_learn::config::schema::for_editors());
    Ok(0)
}

/// Writes the manual pages.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn man(args: &ManArgs) -> Result<i32, RunError> {
    let write = || -> std::io::Result<()> {
        std::fs::create_dir_all(&args.folder)?;
        // Written aside: a page of this name may be a link.
        let aside = files::scratch("man")?;
        clap_mangen::generate_to(Cli::command(), aside.path())?;
        for page in std::fs::read_dir(aside.path())? {
            let (page, name) = page.map(|p| (p.path(), p.file_name()))?;
            files::output(&args.folder.join(name), &std::fs::read(page)?)?;
        }
        Ok(())
    };
    write().map_err(RunError::file("write into", &args.folder))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_manual_page_with_its_flags() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs { folder: folder.path().join("man1") };
        assert_eq!(man(&args).unwrap(), 0);
        // What is hidden refuses a name of earlier days.
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let page = args.folder.join(format!("ostler-{}.1", command.get_name()));
            let text = std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{page:?}: {e}"));
            let shown = command.get_arguments().filter(|a| !a.is_hide_set());
            for flag in shown.filter_map(|a| a.get_long()) {
                let written = format!("\\-\\-{}", flag.replace('-', "\\-"));
                assert!(text.contains(&written), "{page:?}: --{flag}");
            }
        }
        let page = std::fs::read_to_string(args.folder.join("ostler.1")).unwrap();
        assert!(page.contains("regress"), "{page}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_with_its_name() {
        let args = ManArgs { folder: "/proc/none".into() };
        let said = man(&args).unwrap_err().to_string();
        assert!(said.contains("/proc/none"), "{said}");
    }
}
