//! The one list of operations.

use crate::operation::{InterfaceOffer, Interfaces, OperationRow};
use crate::{
    ask, config, doctor, edit, event, journal, key, migrate, model, output, playbook, recall, replay, report,
    session, task, thread, user, window,
};

/// `MODULE: TYPE, TYPE as streamed, TYPE as watched;` for the operations of each module.
macro_rules! rows {
    ($($module:ident: $($name:ident $(as $kind:ident)?),+;)+) => {
        &[$($(rows!($module::$name $(, $kind)?)),+),+]
    };
    ($type:ty) => { OperationRow::of::<$type>() };
    ($type:ty, $kind:ident) => { OperationRow::$kind::<$type>() };
}

/// Every operation, in the order in which interfaces list them.
pub const ALL: &[OperationRow] = rows! {
    session: ListSessions, GetSession, New, Complete, FailSession, StopSession, Pause, ResumeSession, RemoveSession, Cleanup,
        StatsOf, Export as streamed, Import;
    journal: AppendMessages, EntriesOf, GetEntry, Log, ShowView as streamed, SetUp, Redact;
    edit: Pin, Unpin, Rewind, Revert, TruncateSpan, Trim;
    window: ReadContext, Fit, PlanFit, Condense, Diff;
    thread: ListThreads, DrawThreads, Fork, StartThread, TellThread, EndThread, AbortThread, PauseThread,
        ResumeThread, BalanceThread, ReadChronicle, WriteChronicle, RunThread;
    ask: AskModel;
    output: ListOutputs, ReadOutput, RawOutput as streamed, ToolOutputCache, ToolOutputCacheGrep,
        ToolOutputCacheLine;
    recall: Recall, RecallSession;
    report: MakeReport;
    event: SessionEvents as watched, AllEvents as watched;
    task: ListTasks, ShowTask, AddTask, AddTasks, FetchTasks, PauseTask, ResumeTask, StopTask, RetryTask;
    playbook: CheckPlaybooks, GraphPlaybook, RunPlaybook;
    user: ListUsers, ShowUser, RecentMessages, UserSession, ForgetUser;
    key: AddKey, ListKeys, RevokeKey;
    model: ListModels, ListLessons, ForgetLesson, ModelOfSession, UpdateModels, ExplainError;
    doctor: Doctor;
    replay: ReplayFiles;
    config: ShowConfig;
    migrate: Migrate as streamed;
};

/// The list as a Markdown table: what `docs/operations.md` shows.
pub fn table() -> String {
    let mut out = String::from("| operation | type | command line | HTTP | MCP |\n|---|---|---|---|---|\n");
    for row in ALL {
        let Interfaces { cli, http, mcp } = row.interfaces;
        let path: Vec<&str> = (row.type_name)().split("::").collect();
        // Each type is found under the module of its group, whichever file it stands in.
        let name = path.get(1).zip(path.last()).map(|(group, name)| format!("{group}::{name}"));
        let cells = [
            row.title.to_owned(),
            format!("`{}`", name.unwrap_or_default()),
            cell(cli, |verb| format!("`komado {verb}`")),
            cell(http, |route| format!("`{} /api/v1{}`", route.method.name().to_uppercase(), route.path)),
            cell(mcp, |()| format!("`{}`", row.name)),
        ];
        out += &format!("| {} |\n", cells.join(" | "));
    }
    out
}

fn cell<T>(offer: InterfaceOffer<T>, show: impl Fn(T) -> String) -> String {
    offer.map_or_else(|why| format!("no: {why}"), show)
}
