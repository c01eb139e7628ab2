//! What work in a folder is done with: the tools and the rules. A task and a playbook that somebody runs have the same.

pub(crate) mod folder;

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::trust::regular;
use crate::verb::task::fault;
use komado_agent::builtin::{Builtin, Workshop};
use komado_agent::handler::Brief;
use komado_agent::mcp::{How, Server, Servers};
use komado_agent::tools::Toolbox;
use komado_provider::Cancel;
use std::io::Read;
use std::path::Path;

/// The file with rules that is looked for in a working folder.
const RULES: &str = "AGENTS.md";
/// Most bytes of a rules file that are read; how much of it is told is bounded, too.
const MOST_RULES: u64 = 1 << 20;

/// The tools of the settings in a folder: the built-in ones, and those of the MCP servers.
pub(crate) fn tools(app: &App, folder: &Path, cancel: &Cancel) -> Outcome<Toolbox> {
    let wishes = &app.config.agent.tools;
    // A command starts in its folder: from there, a path that is not absolute would be another one.
    let sessions = std::path::absolute(&app.config.base_dir)?;
    folder::check_named(app, folder)?;
    let workshop = Workshop {
        folder: folder.to_owned(),
        enabled: wishes.enabled.clone(),
        allow: wishes.allow.clone(),
        timeout: wishes.timeout,
        most_output: wishes.most_output,
        sandbox: wishes.sandbox,
        jailer: vec![std::env::current_exe()?.into(), "confine".into(), "--hide".into(), sessions.into()],
    };
    let builtin = Builtin::new(workshop).map_err(|why| fault(why.into()))?;
    let servers: Vec<Server> =
        app.config.agent.servers.iter().map(|server| in_folder(server, folder)).collect();
    let servers = Servers::open(&servers, cancel).map_err(|why| fault(why.into()))?;
    Ok(Toolbox::default().with(builtin).with(servers))
}

/// A server that says nothing else runs where the task works.
fn in_folder(server: &Server, task: &Path) -> Server {
    let mut server = server.clone();
    if let How::Command { folder, .. } = &mut server.how {
        folder.get_or_insert_with(|| task.to_owned());
    }
    server
}

/// What stands before the conversation: the words of the settings, and the rules of the folder.
pub(crate) fn brief(app: &App, folder: &Path) -> Outcome<Brief> {
    let wishes = &app.config.agent;
    let rules = match &wishes.rules_file {
        Some(path) => Some((path.display().to_string(), read(path, MOST_RULES).map_err(rules_file)?)),
        None => read(&folder.join(RULES), MOST_RULES).ok().map(|text| (RULES.to_owned(), text)),
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
