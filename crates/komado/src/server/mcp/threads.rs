//! Tools for threads: forks, and windows inside the window.

use super::desk::{Desk, Words};
use super::tool::{Answer, Errand};
use crate::fault::{Fault, Outcome};
use komado_core::ThreadId;
use komado_ops::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

/// Draws a session's threads.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Threads {
    /// The session; not needed when only one can be meant.
    session: Option<String>,
    /// The model's window in tokens, in place of the session's own.
    #[schemars(range(min = 1))]
    window: Option<u32>,
}

impl Errand for Threads {
    const NAME: &'static str = "threads";
    const TITLE: &'static str = "The tree of threads";
    const ABOUT: &'static str =
        "Draw a session's threads: who has how much of the window, what became of each, and what it tells.";
    const EFFECT: Effect = Effect::Read;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), None, None)?;
        desk.both(&Words::of("thread tree").option("window", self.window).word(address.session).all())
    }
}

/// Goes on from a moment elsewhere.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    /// The entry to go on from; now when left out.
    seq: Option<u32>,
    /// The new thread's name; one is made up when left out.
    name: Option<String>,
    /// What it is about, for people.
    label: Option<String>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread; the root when left out.
    thread: Option<String>,
}

impl Errand for Fork {
    const NAME: &'static str = "fork";
    const TITLE: &'static str = "Go on elsewhere from a moment";
    const ABOUT: &'static str = "Go on from a moment in another thread that shares everything up to there. The thread it left stays as it is.";
    const EFFECT: Effect = Effect::Add;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), self.seq)?;
        let words = Words::of("fork").option("label", self.label).word(address);
        desk.change(&self.name.into_iter().fold(words, Words::word).all())
    }
}

/// Starts a child thread.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadStart {
    /// What it is about, for people and for the model.
    label: Option<String>,
    /// Its name; stelis_1, stelis_2, … when left out.
    name: Option<String>,
    /// What it gets of its parent's window.
    #[schemars(range(min = 0.01, max = 0.99))]
    ratio: Option<f64>,
    /// A system prompt of its own, after those of the threads above.
    system: Option<String>,
    /// The model's window in tokens, in place of the session's own.
    #[schemars(range(min = 1))]
    window: Option<u32>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread it is started from; the root when left out.
    thread: Option<String>,
}

impl Errand for ThreadStart {
    const NAME: &'static str = "thread_start";
    const TITLE: &'static str = "Start a child thread";
    const ABOUT: &'static str =
        "Start a child thread: a share of the window to work in. Its parent keeps one short entry of it.";
    const EFFECT: Effect = Effect::Add;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let words = Words::of("thread start").option("name", self.name).option("ratio", self.ratio);
        let words = words.option("system", self.system).option("window", self.window).word(address);
        desk.change(&self.label.into_iter().fold(words, Words::word).all())
    }
}

/// Sends words from one thread to another.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadTell {
    /// The thread that is to hear it, of the same session.
    to: String,
    /// The words.
    text: String,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
    /// The thread that speaks; the root when left out.
    thread: Option<String>,
}

impl Errand for ThreadTell {
    const NAME: &'static str = "thread_tell";
    const TITLE: &'static str = "Tell another thread";
    const ABOUT: &'static str = "Send words from one thread to another of the same session, which hears them before its next request.";
    const EFFECT: Effect = Effect::Add;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        // On a command line that word means standard input.
        if self.text == "-" {
            return Err(Fault::usage("text: \"-\" tells nothing; write the words"));
        }
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let to = ThreadId::new(self.to)?;
        desk.change(&Words::of("thread tell").word(address).word(to).word(self.text).all())
    }
}

/// Who tells what was done.
#[derive(Deserialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "snake_case")]
enum Teller {
    Model,
    Digest,
}

/// Ends a child thread well.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadEnd {
    /// The thread; not needed when the session's address names it.
    thread: Option<String>,
    /// Its result, for people.
    result: Option<String>,
    /// What was done, in your words; else it is written now.
    chronicle: Option<String>,
    /// Who writes it: model or digest; as the settings say when left out.
    by: Option<Teller>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
}

impl Errand for ThreadEnd {
    const NAME: &'static str = "thread_end";
    const TITLE: &'static str = "End a child thread";
    const ABOUT: &'static str =
        "End a child thread well, and tell its parent what was done. `thread_resume` opens it again.";
    const EFFECT: Effect = Effect::Edit;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let by = self.by.map(|by| match by {
            Teller::Model => "model",
            Teller::Digest => "digest",
        });
        let words = Words::of("thread end").option("chronicle", self.chronicle).option("by", by);
        desk.change(&self.result.into_iter().fold(words.word(address), Words::word).all())
    }
}

/// Breaks a child thread off.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadAbort {
    /// The thread; not needed when the session's address names it.
    thread: Option<String>,
    /// Why, for people.
    why: Option<String>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
}

impl Errand for ThreadAbort {
    const NAME: &'static str = "thread_abort";
    const TITLE: &'static str = "Break a child thread off";
    const ABOUT: &'static str =
        "Break a child thread off, with as much of a chronicle as there is. `thread_resume` opens it again.";
    const EFFECT: Effect = Effect::Edit;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let words = Words::of("thread abort").word(address);
        desk.change(&self.why.into_iter().fold(words, Words::word).all())
    }
}

/// Lets a child thread go on.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadResume {
    /// The thread; not needed when the session's address names it.
    thread: Option<String>,
    /// The model's window in tokens, in place of the session's own.
    #[schemars(range(min = 1))]
    window: Option<u32>,
    /// What it gets of its parent's window; as before when left out.
    #[schemars(range(min = 0.01, max = 0.99))]
    ratio: Option<f64>,
    /// The session or its address; not needed when only one can be meant.
    session: Option<String>,
}

impl Errand for ThreadResume {
    const NAME: &'static str = "thread_resume";
    const TITLE: &'static str = "Let a child thread go on";
    const ABOUT: &'static str =
        "Let a child thread go on that was ended, aborted or paused, also days later.";
    const EFFECT: Effect = Effect::Add;

    fn run(self, desk: &Desk) -> Outcome<Answer> {
        let address = desk.at(self.session.as_deref(), self.thread.as_deref(), None)?;
        let words = Words::of("thread resume").option("window", self.window).option("ratio", self.ratio);
        desk.change(&words.word(address).all())
    }
}
