//! What work in a folder is done with: the tools and the rules. A task and a playbook that is run by hand have the same.

use super::folder;
use crate::{Context, Fault, Outcome};
use komado_agent::builtin::{Builtin, Workshop, beginning};
use komado_agent::handler::Brief;
use komado_agent::mcp::{How, Server, Servers};
use komado_agent::sandbox::Confinement;
use komado_agent::tools::Toolbox;
use komado_config::regular;
use komado_provider::Cancel;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

/// The file with rules that is looked for in a working folder.
const RULES: &str = "AGENTS.md";
/// Most bytes of a rules file that are read; how much of it is told is bounded, too.
const MOST_RULES: u64 = 1 << 20;

/// The tools of the settings in a folder: the built-in ones, and those of the MCP servers.
pub fn tools(context: &Context, folder: &Path, cancel: &Cancel) -> Outcome<Toolbox> {
    let wishes = &context.config.agent.tools;
    // A command starts in its folder: from there, a path that is not absolute would be another one.
    let sessions = std::path::absolute(&context.config.base_dir)?;
    folder::check_named(context, folder)?;
    let confinement = Confinement {
        launcher: launcher()?,
        sandbox: wishes.sandbox,
        network: wishes.network.clone(),
        limits: wishes.limits,
        hide: vec![sessions],
    };
    let workshop = Workshop {
        folder: folder.to_owned(),
        enabled: wishes.enabled.clone(),
        allow: wishes.allow.clone(),
        timeout: wishes.timeout,
        most_output: wishes.most_output,
        confinement: confinement.clone(),
    };
    let builtin = Builtin::new(workshop).map_err(komado_agent::Error::from)?;
    let servers: Vec<Server> =
        context.config.agent.servers.iter().map(|server| at_work(server, folder, &confinement)).collect();
    let servers = Servers::open(&servers, cancel).map_err(komado_agent::Error::from)?;
    Ok(Toolbox::default().with(builtin).with(servers))
}

/// What starts this program again so that it confines a command: its verb `confine`.
pub fn launcher() -> std::io::Result<Vec<OsString>> {
    Ok(vec![std::env::current_exe()?.into(), "confine".into()])
}

/// A server that works with a task: in its folder, and confined by the same program as commands.
fn at_work(server: &Server, folder: &Path, of_commands: &Confinement) -> Server {
    let mut server = server.clone();
    if let How::Command { work, confinement, .. } = &mut server.how {
        *work = Some(folder.to_owned());
        let Confinement { sandbox, network, .. } = confinement.clone();
        *confinement = Confinement { sandbox, network, ..of_commands.clone() };
    }
    server
}

/// What stands before the conversation: the words of the settings, and the rules of the folder.
pub fn brief(context: &Context, folder: &Path) -> Outcome<Brief> {
    let wishes = &context.config.agent;
    let rules = match &wishes.rules_file {
        Some(path) => Some((path.display().to_string(), read(path, MOST_RULES).map_err(rules_file)?)),
        // The folder's own file is a stranger's: one that leads elsewhere, or is no file, is not read.
        None => beginning(folder, RULES, MOST_RULES)
            .unwrap_or_else(|why| {
                tracing::warn!("the rules of {} are not taken: {why}", folder.display());
                None
            })
            .map(|text| (RULES.to_owned(), text)),
    };
    Ok(Brief { system: wishes.system_prompt.clone(), rules })
}

fn rules_file(why: Fault) -> Fault {
    Fault::input(format!("agent.rules_file: {}", why.message()))
}

/// The beginning of a file.
fn read(path: &Path, most: u64) -> Outcome<String> {
    let name = path.display();
    let mut bytes = Vec::new();
    // A folder from elsewhere may have a pipe there, which would be waited for.
    regular::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(|why| Fault::input(format!("{name}: {why}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{RULES, read};

    #[test]
    fn rules_that_are_a_pipe_are_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join(RULES);
        assert!(std::process::Command::new("mkfifo").arg(&rules).status().unwrap().success());
        assert!(read(&rules, 10).unwrap_err().message().contains("not a regular file"));
    }
}
