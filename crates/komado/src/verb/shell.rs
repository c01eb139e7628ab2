//! `komado admin completions` and `komado admin man`: what a shell and a reader of manuals need. Both are made from the list of verbs.

use crate::app::App;
use crate::cli_output::{count, say, text_of};
use crate::{cli, completion};
use clap::ValueEnum;
use clap_mangen::Man;
use komado_ops::{FaultKind, OpFault, OpResult};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Shells whose lines are completed.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum CompletedShell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

#[derive(clap::Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: CompletedShell,
}

/// Prints the line that a shell's own file needs. Where the line goes is told beside it.
pub(crate) fn completions(app: &mut App, args: CompletionsArgs) -> OpResult {
    let variable = completion::VARIABLE;
    let (line, file) = match args.shell {
        CompletedShell::Bash => (format!("source <({variable}=bash komado)"), "~/.bashrc"),
        CompletedShell::Zsh => (format!("source <({variable}=zsh komado)"), "~/.zshrc, after compinit"),
        CompletedShell::Fish => {
            (format!("{variable}=fish komado | source"), "~/.config/fish/completions/komado.fish")
        }
        CompletedShell::Elvish => {
            (format!("eval (E:{variable}=elvish komado | slurp)"), "~/.config/elvish/rc.elv")
        }
        CompletedShell::Powershell => (
            format!(
                "$env:{variable} = 'powershell'; komado | Out-String | Invoke-Expression; Remove-Item Env:\\{variable}"
            ),
            "$PROFILE",
        ),
    };
    app.paper.line(line)?;
    say(format!("put this line into {file}"));
    Ok(())
}

#[derive(clap::Args, Debug)]
pub(crate) struct ManArgs {
    /// Write a page for each verb into this folder; left out: the first page, to standard output
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints the manual's first page, or writes all of them.
pub(crate) fn man(app: &mut App, args: ManArgs) -> OpResult {
    let mut command = cli::command().disable_help_subcommand(true);
    command.build();
    let Some(folder) = args.out else {
        let (_, page) = page(&command)?;
        return Ok(app.paper.raw().write_all(&page)?);
    };
    let failed = |path: &Path, why: std::io::Error| {
        OpFault::new(FaultKind::Failed, format!("{}: {why}", path.display()))
    };
    std::fs::create_dir_all(&folder).map_err(|why| failed(&folder, why))?;
    let mut pages = Vec::new();
    each_page(&command, &mut pages)?;
    for (name, page) in &pages {
        let path = folder.join(name);
        std::fs::write(&path, page).map_err(|why| failed(&path, why))?;
    }
    if app.paper.json {
        let names: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
        return app.paper.json(&json!({ "folder": text_of(&folder), "pages": names }));
    }
    say(format!("wrote {} to {}", count(pages.len() as u64, "page"), folder.display()));
    say(format!("read one: man -l {}", folder.join("komado.1").display()));
    Ok(())
}

/// The pages of a command and of all below it, with the names of their files.
fn each_page(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> OpResult {
    pages.push(page(command)?);
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    below.into_iter().try_for_each(|below| each_page(below, pages))
}

fn page(command: &clap::Command) -> OpResult<(String, Vec<u8>)> {
    let source = format!("komado {}", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("Komado");
    let mut page = Vec::new();
    man.render(&mut page)?;
    Ok((man.get_filename(), page))
}
