//! Tell: words from one thread to another.

use crate::address::{AtThread, Target};
use crate::operation::Route;
use crate::{Context, Effect, Fault, Interfaces, Operation, Outcome};
use komado_core::Seq;
use komado_engine::engine::Found;
use komado_store::Mode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A thread, or one with its session.
const LISTENER: &str = "^([A-Za-z0-9][A-Za-z0-9_.:-]{0,127}/)?[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$";

/// Send words from one thread to another of the same session, which hears them before its next request.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct TellThread {
    /// The thread that speaks.
    #[serde(flatten)]
    pub at: AtThread,
    /// The thread that is to hear it, of the same session.
    #[schemars(regex(pattern = LISTENER), example = &"root")]
    pub to: String,
    /// The words.
    #[schemars(length(min = 1), example = &"the tests pass")]
    pub text: String,
}

/// Words that were told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Told {
    /// The session.
    pub session: String,
    /// The thread that spoke.
    pub thread: String,
    /// The thread that hears it.
    pub to: String,
    /// The entry.
    pub seq: Seq,
    /// `tell`.
    pub op: &'static str,
}

impl Operation for TellThread {
    const NAME: &'static str = "thread_tell";
    const TITLE: &'static str = "Tell another thread";
    const EFFECT: Effect = Effect::Add;
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "thread tell",
        Route::post("threads", "/sessions/{session}/threads/{thread}/tell"),
    );
    type Output = Told;

    fn run(self, context: &Context) -> Outcome<Told> {
        let from = context.find_now(&self.at)?;
        let to = listener(context, &from, &self.to)?;
        if self.text.trim().is_empty() {
            return Err(Fault::usage("nothing is told: write the words"));
        }
        let mut thread = context.open(&from, Mode::Write)?;
        let seq = thread.tell(&to.thread, &self.text)?;
        context.settle(&mut thread);
        Ok(Told {
            session: from.session.to_string(),
            thread: from.thread.to_string(),
            to: to.thread.to_string(),
            seq,
            op: "tell",
        })
    }
}

/// The thread that is to hear: a name is one of the speaker's session, an address must lead there.
fn listener(context: &Context, from: &Found, to: &str) -> Outcome<Found> {
    let own = from.session.to_string();
    let (session, thread) = match to.split_once('/') {
        Some((session, thread)) => (session.to_owned(), thread),
        None => (own, to),
    };
    let target = Target { session: Some(session), thread: Some(thread.to_owned()), seq: None };
    // A name alone is in the failure; of an address its thread may be missing there.
    let named = |fault: Fault| match to.contains('/') {
        true => fault.and(format!("it was to be told to {to:?}")),
        false => fault,
    };
    let found = context.find_now(target).map_err(named)?;
    match found.session == from.session {
        true => Ok(found),
        false => Err(Fault::usage(format!(
            "threads of one session tell each other; {} is of session {}, not of {}",
            found.thread, found.session, from.session
        ))),
    }
}
