//! Resume: a child thread goes on, also days after its end.

use super::{WindowShare, child, ratio};
use crate::address::AtThread;
use crate::change;
use crate::operation::Route;
use crate::window::window;
use crate::{Context, Effect, Interfaces, Operation, Outcome};
use komado_core::Seq;
use komado_core::journal::{Close, Entry, Ratio};
use komado_core::thread::Status;
use komado_engine::engine::Found;
use komado_engine::stelis::Resume;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Let a child thread go on that was ended, aborted or paused, also days later.
#[derive(Clone, Debug, clap::Args, Deserialize, JsonSchema)]
pub struct ResumeThread {
    /// The thread, SESSION/THREAD
    #[arg(value_name = "ADDRESS")]
    #[serde(flatten)]
    pub at: AtThread,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    #[schemars(range(min = 1))]
    pub window: Option<u32>,
    /// What it gets of its parent's window, from 0.01 to 0.99; as before when left out
    #[arg(long, value_name = "RATIO", value_parser = ratio)]
    #[schemars(with = "Option<f64>", range(min = 0.01, max = 0.99))]
    pub ratio: Option<Ratio>,
}

/// A child thread that goes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Resumed {
    /// The session.
    pub session: String,
    /// The thread.
    pub thread: String,
    /// The entry that opened it.
    pub seq: Seq,
    /// `active`.
    pub status: &'static str,
    /// The window that is shared out.
    pub window: u64,
    /// How it is shared out.
    pub share: Option<WindowShare>,
    /// The command that makes of the thread what it was.
    pub undo: String,
}

impl Operation for ResumeThread {
    const NAME: &'static str = "thread_resume";
    const TITLE: &'static str = "Let a child thread go on";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread resume",
        Route::post("threads", "/sessions/{session}/threads/{thread}/resume"),
    );
    type Output = Resumed;

    fn run(self, context: &Context) -> Outcome<Resumed> {
        let found = child(context, &self.at)?;
        let window = u64::from(window(context, &context.session(&found.session)?, self.window)?);
        let undo = undo(context, &found)?;
        let resume = Resume { window, buffer: context.config.models.policy.buffer, ratio: self.ratio };
        let seq = context.engine.resume_child(&found.session, &found.thread, &resume)?;
        let thread = context.engine.open(&found.session, &found.thread, Mode::Read)?;
        Ok(Resumed {
            session: found.session.to_string(),
            thread: found.thread.to_string(),
            seq,
            status: "active",
            window,
            share: thread.portion(Some(window))?.as_ref().map(WindowShare::from),
            undo,
        })
    }
}

/// The command that makes of a thread what it is now, with the same result or reason; its chronicle stays where it can.
fn undo(context: &Context, found: &Found) -> Outcome<String> {
    let thread = context.engine.open(&found.session, &found.thread, Mode::Read)?;
    let (verb, more) = match thread.status()? {
        Status::Completed => ("end", " --no-chronicle"),
        Status::Aborted => ("abort", ""),
        Status::Active | Status::Paused => ("pause", ""),
    };
    let closed = thread.view().closed().map(|seq| thread.record(seq)).transpose()?;
    let words = match closed.map(|record| record.entry) {
        Some(Entry::Close(Close { result: Some(words), .. })) => format!(" {}", quoted(&words)),
        _ => String::new(),
    };
    Ok(format!("komado thread {verb} {}{words}{more}", change::name(found)))
}

/// A text as a shell takes it for one word.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_shell_takes_what_is_quoted_for_one_word() {
        assert_eq!(super::quoted("it's 直った"), r"'it'\''s 直った'");
    }
}
