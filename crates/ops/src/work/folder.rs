//! The folder a task works in: the one it names, or one of its own that is made and prepared once.

use crate::{OpFault, OpResult, OperationContext, private};
use komado_agent::prepare::prepare;
use komado_agent::sandbox::Sandbox;
use komado_agent::task::Task;
use komado_core::SessionId;
use komado_provider::Cancel;
use std::fs;
use std::path::{Path, PathBuf};

/// Refuses a folder that holds the sessions: commands could not be kept from them, and neither could `read` and `edit`.
fn check(folder: &Path, sessions: &Path) -> OpResult {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if !real(sessions).starts_with(real(folder)) {
        return Ok(());
    }
    Err(OpFault::input(format!(
        "the sessions in {} lie in the working folder {}, where a task could read and change them: set \
         context_storage.base_dir to a folder elsewhere, or `tools.sandbox: off` and `tools.network: open` to let it",
        sessions.display(),
        folder.display()
    )))
}

/// Refuses a folder that a task may not work in, by the settings of this place.
pub fn check_named(context: &OperationContext, folder: &Path) -> OpResult {
    if context.config.agent.tools.sandbox != Sandbox::Required {
        return Ok(());
    }
    // A command starts in its folder: from there, a path that is not absolute would be another one.
    check(folder, &std::path::absolute(&context.config.base_dir)?)
}

/// The folder that a task names, or the one of its own where that was made.
pub fn there(context: &OperationContext, named: Option<PathBuf>, session: &SessionId) -> Option<PathBuf> {
    named.or_else(|| Some(all(context).join(session.as_str())).filter(|own| own.is_dir()))
}

/// Where folders are made.
fn all(context: &OperationContext) -> PathBuf {
    context.config.agent.tools.work_dir.clone().unwrap_or_else(|| context.config.base_dir.join("work"))
}

/// The folder of a task. One of its own gets its name when it is ready: a process that ended on the way leaves none.
pub fn of(
    context: &OperationContext,
    task: &Task,
    session: &SessionId,
    cancel: &Cancel,
) -> OpResult<PathBuf> {
    if let Some(folder) = &task.folder {
        return Ok(folder.clone());
    }
    own(context, session, |new| match &context.config.agent.tools.prepare {
        Some(command) => Ok(prepare(command, new, task, context.config.agent.tools.timeout, cancel)?),
        None => Ok(()),
    })
}

/// The folder of a session, made and filled by `fill` when it is not there.
pub fn own(
    context: &OperationContext,
    session: &SessionId,
    fill: impl FnOnce(&Path) -> OpResult,
) -> OpResult<PathBuf> {
    let all = all(context);
    let folder = all.join(session.as_str());
    if folder.is_dir() {
        return Ok(folder);
    }
    if all.starts_with(&context.config.base_dir) {
        context.claim()?;
    }
    private::folder(&all).map_err(|why| at(&all, &why))?;
    let new = private::temporary(".new-", &all).map_err(|why| at(&all, &why))?;
    fill(new.path())?;
    fs::rename(new.path(), &folder).map_err(|why| at(&folder, &why))?;
    drop(new.keep());
    Ok(folder)
}

fn at(folder: &Path, why: &std::io::Error) -> OpFault {
    OpFault::failed(format!("the working folder {}: {why}; set tools.work_dir", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_holds_the_sessions_is_refused_and_one_among_them_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (base, own) = (dir.path().join("contexts"), dir.path().join("contexts/work/s1"));
        fs::create_dir_all(&own).unwrap();
        assert!(check(&own, &base).is_ok());
        for folder in [dir.path(), &base] {
            let why = check(folder, &base).unwrap_err().message().to_owned();
            assert!(why.contains("context_storage.base_dir"), "{why}");
        }
    }
}
