//! The `stelis_start` and `stelis_end` nodes: a child thread for what comes between them.
//!
//! The child's name is noted before it is spawned, so that the worker that takes the task up finds it again. No process holds it:
//! it outlives the process, as the task does.

use super::node::ChildStart;
use super::run::{PlaybookNote, PlaybookRun};
use super::{NextStep, NodeRunner};
use crate::Result;
use komado_core::journal::{Ending, Setup};
use komado_core::thread::ThreadStatus;
use komado_core::{SessionId, ThreadId};
use komado_engine::stelis::{ChronicleBy, Finish, ResumeChild, Spawn};
use komado_engine::{Error as EngineError, Thread};
use komado_store::{Error as Store, OpenMode};

impl PlaybookRun<'_, '_, '_> {
    pub(super) fn start_child(&mut self, start: &ChildStart) -> Result<()> {
        let noted = self.taken.take().and_then(|note| note.child);
        let noted = noted.map(ThreadId::new).transpose().map_err(komado_engine::Error::from)?;
        if noted.is_none() {
            self.between(NextStep::Other)?;
        }
        if let Some(name) = &noted
            && self.enter_child(name)?
        {
            return Ok(());
        }
        self.active().answer_open_calls()?;
        let mut spawn = self.spawn(start)?;
        // A spawn that was cut short left a thread that is ended: another name is needed then.
        let name = match noted.map(|name| self.active().free_name(Some(&name))) {
            None | Some(Err(EngineError::Store(Store::ThreadExists(..)))) => {
                let name = self.active().free_name(None)?;
                self.note(Some(&name), None)?;
                name
            }
            Some(free) => free?,
        };
        spawn.name = Some(name.clone());
        self.active().spawn_free(&spawn)?.settle()?;
        let child = self.hands.open(self.session, &name)?;
        self.children.push(child);
        Ok(())
    }

    /// Enters a child that was spawned before; false when there is none that could be worked in.
    fn enter_child(&mut self, name: &ThreadId) -> Result<bool> {
        let store = self.hands.engine().store();
        if !store.threads(self.session)?.iter().any(|header| header.thread == *name) {
            return Ok(false);
        }
        let child = self.hands.open(self.session, name)?;
        let can_work = child.last() > 0 && child.status()?.is_open();
        if can_work {
            self.children.push(child);
        }
        Ok(can_work)
    }

    /// What the child is spawned with: as the settings say, then as the node says. Neither may nest deeper than the other.
    fn spawn(&mut self, start: &ChildStart) -> Result<Spawn> {
        let system = start.system.as_ref().map(|system| self.fill(system)).transpose()?;
        let label = self.node.label.clone();
        let thread = self.children.last().unwrap_or(&self.root);
        let usual = self.hands.spawn(thread)?;
        Ok(Spawn {
            label: label.or(usual.label),
            ratio: start.ratio.unwrap_or(usual.ratio),
            max_depth: start.max_depth.map_or(usual.max_depth, |most| most.min(usual.max_depth)),
            setup: system.map(|system| Setup { system: Some(system), ..Setup::default() }).or(usual.setup),
            chronicle_prompt: start.chronicle_prompt.clone().or(usual.chronicle_prompt),
            ..usual
        })
    }

    pub(super) fn stop_child(&mut self, generate_chronicle: bool) -> Result<()> {
        if self.taken.take().is_none() {
            self.between(NextStep::Other)?;
            self.note(None, None)?;
        }
        let Some(mut child) = self.children.pop() else {
            return Err(self.wrong("there is no child thread to end: the playbook was changed while it ran"));
        };
        if child.status()?.is_open() {
            let parent = self.children.last().unwrap_or(&self.root);
            let mut end = |telling: ChronicleBy<'_>| {
                child.answer_open_calls()?;
                child.finish(Finish { ending: Ending::Completed, result: None, telling })?;
                Ok(())
            };
            match generate_chronicle {
                true => self.hands.telling(parent, &mut end)?,
                false => end(ChronicleBy::Nothing)?,
            }
        }
        drop(child);
        let parent = self.active();
        parent.tend()?;
        Ok(parent.settle()?)
    }
}

/// Lets the threads that a note works in go on, where they were broken off with a session that was opened again since.
/// Takes the root and gives it back: it must not be held meanwhile.
pub(super) fn revive<'e>(
    hands: &dyn NodeRunner<'e>,
    session: &SessionId,
    note: &PlaybookNote,
    root: Thread<'e>,
) -> Result<Thread<'e>> {
    let mut broken_off = Vec::new();
    for name in note.stack.iter().skip(1) {
        let thread = ThreadId::new(name.clone()).map_err(komado_engine::Error::from)?;
        let status = hands.engine().open(session, &thread, OpenMode::Read)?.status()?;
        if matches!(status, ThreadStatus::Aborted | ThreadStatus::Paused) {
            broken_off.push(thread);
        }
    }
    if broken_off.is_empty() {
        return Ok(root);
    }
    let Spawn { window, buffer, .. } = hands.spawn(&root)?;
    drop(root);
    for thread in &broken_off {
        hands.engine().resume_child(session, thread, &ResumeChild { window, buffer, ratio: None })?;
    }
    hands.open(session, &ThreadId::root())
}
