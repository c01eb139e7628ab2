//! The one list of operations.

use crate::ask::Ask;
use crate::config::ShowConfig;
use crate::doctor::Doctor;
use crate::migrate::Migrate;
use crate::replay::Replay;
use crate::{
    Interfaces, Offer, Row, edit, event, journal, key, model, output, playbook, recall, report, session,
    task, thread, user, window,
};

/// Every operation, in the order in which interfaces list them.
pub const ALL: &[Row] = &[
    Row::of::<session::ListSessions>(),
    Row::of::<session::GetSession>(),
    Row::of::<session::New>(),
    Row::of::<session::Complete>(),
    Row::of::<session::Fail>(),
    Row::of::<session::Stop>(),
    Row::of::<session::Pause>(),
    Row::of::<session::Resume>(),
    Row::of::<session::RemoveSession>(),
    Row::of::<session::Cleanup>(),
    Row::of::<session::StatsOf>(),
    Row::streamed::<session::Export>(),
    Row::of::<session::Import>(),
    Row::of::<journal::Append>(),
    Row::of::<journal::EntriesOf>(),
    Row::of::<journal::GetEntry>(),
    Row::of::<journal::Log>(),
    Row::streamed::<journal::Show>(),
    Row::of::<journal::SetUp>(),
    Row::of::<journal::Redact>(),
    Row::of::<edit::Pin>(),
    Row::of::<edit::Unpin>(),
    Row::of::<edit::Rewind>(),
    Row::of::<edit::Revert>(),
    Row::of::<edit::Truncate>(),
    Row::of::<edit::Trim>(),
    Row::of::<window::ReadContext>(),
    Row::of::<window::Fit>(),
    Row::of::<window::Plan>(),
    Row::of::<window::Condense>(),
    Row::of::<window::Diff>(),
    Row::of::<thread::ListThreads>(),
    Row::of::<thread::DrawThreads>(),
    Row::of::<thread::Fork>(),
    Row::of::<thread::StartThread>(),
    Row::of::<thread::TellThread>(),
    Row::of::<thread::EndThread>(),
    Row::of::<thread::AbortThread>(),
    Row::of::<thread::PauseThread>(),
    Row::of::<thread::ResumeThread>(),
    Row::of::<thread::BalanceThread>(),
    Row::of::<thread::ReadChronicle>(),
    Row::of::<thread::WriteChronicle>(),
    Row::of::<thread::RunThread>(),
    Row::of::<Ask>(),
    Row::of::<output::ListOutputs>(),
    Row::of::<output::ReadOutput>(),
    Row::streamed::<output::RawOutput>(),
    Row::of::<output::ToolOutputCache>(),
    Row::of::<output::ToolOutputCacheGrep>(),
    Row::of::<output::ToolOutputCacheLine>(),
    Row::of::<recall::Recall>(),
    Row::of::<recall::RecallSession>(),
    Row::of::<report::MakeReport>(),
    Row::watched::<event::SessionEvents>(),
    Row::watched::<event::AllEvents>(),
    Row::of::<task::ListTasks>(),
    Row::of::<task::ShowTask>(),
    Row::of::<task::AddTask>(),
    Row::of::<task::AddTasks>(),
    Row::of::<task::FetchTasks>(),
    Row::of::<task::PauseTask>(),
    Row::of::<task::ResumeTask>(),
    Row::of::<task::StopTask>(),
    Row::of::<task::RetryTask>(),
    Row::of::<playbook::CheckPlaybooks>(),
    Row::of::<playbook::GraphPlaybook>(),
    Row::of::<playbook::RunPlaybook>(),
    Row::of::<user::ListUsers>(),
    Row::of::<user::ShowUser>(),
    Row::of::<user::RecentMessages>(),
    Row::of::<user::UserSession>(),
    Row::of::<user::ForgetUser>(),
    Row::of::<key::AddKey>(),
    Row::of::<key::ListKeys>(),
    Row::of::<key::RevokeKey>(),
    Row::of::<model::ListModels>(),
    Row::of::<model::ListLessons>(),
    Row::of::<model::ForgetLesson>(),
    Row::of::<model::ModelOfSession>(),
    Row::of::<model::UpdateModels>(),
    Row::of::<model::ExplainError>(),
    Row::of::<Doctor>(),
    Row::of::<Replay>(),
    Row::of::<ShowConfig>(),
    Row::streamed::<Migrate>(),
];

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

fn cell<T: Copy>(offer: Offer<T>, show: impl Fn(T) -> String) -> String {
    match offer {
        Offer::As(how) => show(how),
        Offer::Not(why) => format!("no: {why}"),
    }
}
