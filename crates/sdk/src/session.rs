//! A conversation: what is said in it, what the model sees of it, and every change with its undo.

use crate::error::{Error, ErrorKind, Result};
use crate::iter::{Entries, Messages};
use crate::komado::{Komado, host};
use komado_core::amount::count_of;
use komado_core::clip::ClipLimits;
use komado_core::journal::{Edit, Ending, Entry, Record, Setup};
use komado_core::message::{MessagePart, ToolOutcome};
use komado_core::openai::DIALECT;
use komado_core::raw::RawJson;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Message, Meter, Role, Seq, SessionId, Span, ThreadId};
use komado_engine::Thread;
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::{FitResult, Ladder};
use komado_engine::output::{self, OutputReference};
use komado_engine::recall::{RecallHit, RecallScope};
use komado_engine::stelis::{ChronicleBy, Finish, Spawn};
use komado_store::OpenMode;
use std::io::Read;
use std::ops::{Bound, RangeBounds};

/// The rule that an edit by hand names as its cause.
const BY_HAND: &str = "by_hand";

/// How a session is opened, and what a new one is made with.
#[must_use]
pub struct SessionBuilder<'k> {
    komado: &'k Komado,
    name: String,
    thread: Option<String>,
    window: Option<u32>,
    model: Option<String>,
    user: Option<String>,
    task: Option<String>,
    system: Option<String>,
    tools: Option<String>,
    #[cfg(feature = "client")]
    has_recall: bool,
}

impl<'k> SessionBuilder<'k> {
    pub(crate) fn new(komado: &'k Komado, name: String) -> Self {
        Self {
            komado,
            name,
            thread: None,
            window: None,
            model: None,
            user: None,
            task: None,
            system: None,
            tools: None,
            #[cfg(feature = "client")]
            has_recall: false,
        }
    }

    /// The window in tokens: of a new session, and of this handle.
    pub fn window(mut self, tokens: u32) -> Self {
        self.window = Some(tokens);
        self
    }

    /// The model of a new session, as `PROVIDER/MODEL` or its name alone: it decides how tokens are counted.
    pub fn model(mut self, model: &str) -> Self {
        self.model = Some(model.to_owned());
        self
    }

    /// Whose a new session is.
    pub fn user(mut self, user: &str) -> Self {
        self.user = Some(user.to_owned());
        self
    }

    /// What a new session works on: an issue or a pull request, such as `github:ann/tool/issue/27`.
    pub fn task(mut self, key: &str) -> Self {
        self.task = Some(key.to_owned());
        self
    }

    /// The system prompt of a new session.
    pub fn system(mut self, text: &str) -> Self {
        self.system = Some(text.to_owned());
        self
    }

    /// Tool definitions of a new session: a JSON array, as OpenAI's chat API takes it.
    pub fn tools(mut self, json: &str) -> Self {
        self.tools = Some(json.to_owned());
        self
    }

    /// Offers the model of a new session the tools that lead back to what left its view; they are answered by
    /// `Session::ask` itself.
    #[cfg(feature = "client")]
    pub fn recall_tools(mut self) -> Self {
        self.has_recall = true;
        self
    }

    /// A fork or a child thread of the session, in place of the thread that it began with.
    pub fn thread(mut self, name: &str) -> Self {
        self.thread = Some(name.to_owned());
        self
    }

    /// Opens the session for writing; one that is not there is made. One process writes at a time.
    pub fn open(self) -> Result<Session<'k>> {
        let (id, thread) = self.ids()?;
        let engine = &self.komado.engine;
        match engine.open(&id, &thread, OpenMode::Write) {
            Err(komado_engine::Error::Store(komado_store::Error::NoSession(_))) if thread.is_root() => {
                let setup = self.setup()?;
                engine.create(&self.meta(&id)?)?;
                let mut root = engine.open(&id, &thread, OpenMode::Write)?;
                if setup != Setup::default() {
                    root.set_up(setup)?;
                }
                Ok(self.session(root))
            }
            opened => Ok(self.session(opened?)),
        }
    }

    /// Opens a session that is there to look at it, also while a process writes to it or when it has ended. What would
    /// change it is refused.
    pub fn read(self) -> Result<Session<'k>> {
        let (id, thread) = self.ids()?;
        Ok(self.session(self.komado.engine.open(&id, &thread, OpenMode::Read)?))
    }

    fn ids(&self) -> Result<(SessionId, ThreadId)> {
        let thread = self.thread.clone().map(ThreadId::new).transpose()?;
        Ok((SessionId::new(self.name.as_str())?, thread.unwrap_or_else(ThreadId::root)))
    }

    fn session(&self, thread: Thread<'k>) -> Session<'k> {
        let window = self.window.or(thread.config().context_length);
        Session::new(self.komado, thread, window)
    }

    fn meta(&self, id: &SessionId) -> Result<Meta> {
        let task = self.task.as_deref().map(TaskKey::parse).transpose();
        let task = task.map_err(|why| Error::new(ErrorKind::Input, why))?;
        let (provider, model) = match self.model.as_deref().map(|model| model.split_once('/').ok_or(model)) {
            Some(Ok((provider, model))) => (Some(provider.to_owned()), Some(model.to_owned())),
            Some(Err(model)) => (None, Some(model.to_owned())),
            None => (None, None),
        };
        let meter = model.as_deref().map_or(Meter::O200k, Meter::for_model);
        let config = MetaConfig {
            llm_provider: provider,
            model,
            context_length: self.window,
            meter: meter.name().to_owned(),
            ..MetaConfig::default()
        };
        let usual = Meta::new(id, self.komado.engine.now(), config);
        Ok(Meta {
            task_key: task.unwrap_or(usual.task_key),
            process_id: std::process::id(),
            hostname: host(),
            user: self.user.clone(),
            ..usual
        })
    }

    fn setup(&self) -> Result<Setup> {
        let tools = self.tools.as_deref().map(RawJson::parse).transpose().map_err(|why| {
            Error::new(
                ErrorKind::Input,
                format!("the tool definitions are not JSON: {why}; write a JSON array"),
            )
        })?;
        let dialect = tools.as_ref().map(|_| DIALECT.to_owned());
        let setup = Setup { system: self.system.clone(), tools, dialect, ..Setup::default() };
        #[cfg(feature = "client")]
        if self.has_recall {
            return Ok(komado_engine::exchange::RecallTools::offered(setup));
        }
        Ok(setup)
    }
}

/// What the requests of a thread cost, in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Cost {
    /// How many requests were sent.
    pub requests: u64,
    /// Tokens of all of them.
    pub sent: u64,
    /// Those of them that the provider read from its cache.
    pub cached: u64,
    /// Tokens of the largest one.
    pub largest: u64,
    /// Tokens of all answers.
    pub answers: u64,
    /// Tokens of everything that was said, long outputs whole.
    pub said: u64,
    /// Tokens of all requests, had each held everything said before it.
    pub whole: u64,
}

/// A conversation. Every change is durable when its call returns, and gives the number of its entry.
pub struct Session<'k> {
    pub(crate) komado: &'k Komado,
    pub(crate) thread: Thread<'k>,
    pub(crate) window: Option<u32>,
    #[cfg(feature = "client")]
    pub(crate) resolved: Option<crate::model::Resolved>,
}

impl<'k> Session<'k> {
    fn new(komado: &'k Komado, thread: Thread<'k>, window: Option<u32>) -> Self {
        // In a small window less is shown of a long output; a share without room is an error only where something is said.
        let budget = window.map(|window| thread.budget(komado.policy.clone(), window.into(), &[]));
        let limits =
            budget.and_then(std::result::Result::ok).map(|budget| budget.limits(&ClipLimits::default()));
        let thread = thread.clipping(Some(limits.unwrap_or_default()));
        Self {
            komado,
            thread,
            window,
            #[cfg(feature = "client")]
            resolved: None,
        }
    }

    /// The session's name.
    pub fn id(&self) -> &SessionId {
        self.thread.session()
    }

    /// The number of the last entry; 0 for none.
    pub fn last(&self) -> Seq {
        self.thread.last()
    }

    /// Tokens of what the model sees.
    pub fn tokens(&self) -> u64 {
        self.thread.view().tokens()
    }

    /// Says something as the user.
    pub fn user(&mut self, text: &str) -> Result<Seq> {
        self.say(Message::text(Role::User, text))
    }

    /// Says something as the model, for an answer that came another way.
    pub fn assistant(&mut self, text: &str) -> Result<Seq> {
        self.say(Message::text(Role::Assistant, text))
    }

    /// Says something as the system.
    pub fn system(&mut self, text: &str) -> Result<Seq> {
        self.say(Message::text(Role::System, text))
    }

    /// Answers a call of the model.
    pub fn tool_result(&mut self, call_id: &str, text: &str) -> Result<Seq> {
        self.answer(ToolOutcome::text(call_id, None, text))
    }

    /// Answers a call of the model with what went wrong.
    pub fn tool_error(&mut self, call_id: &str, text: &str) -> Result<Seq> {
        self.answer(ToolOutcome { is_error: true, ..ToolOutcome::text(call_id, None, text) })
    }

    fn answer(&mut self, outcome: ToolOutcome) -> Result<Seq> {
        self.say(Message::of(Role::Tool, vec![MessagePart::Result(outcome)]))
    }

    /// Says any message.
    pub fn say(&mut self, message: Message) -> Result<Seq> {
        Ok(self.thread.say(message)?)
    }

    /// Shows `text` in place of a range of entries. [`Session::revert`] takes it back.
    pub fn condense(&mut self, range: impl RangeBounds<Seq>, text: &str) -> Result<Seq> {
        let span = self.span(range)?;
        Ok(self.thread.condense(vec![span], text, BY_HAND)?)
    }

    /// Shows a marker in place of a range of entries. [`Session::revert`] takes it back.
    pub fn truncate(&mut self, range: impl RangeBounds<Seq>) -> Result<Seq> {
        let span = self.span(range)?;
        let hidden = count_of(u64::from(span.to - span.from + 1), "entry", "entries");
        let marker = format!("[{hidden} not shown: {span}]");
        Ok(self.thread.truncate(vec![span], &marker, BY_HAND)?)
    }

    /// Shows `text` in place of what one entry says. [`Session::revert`] takes it back.
    pub fn trim(&mut self, seq: Seq, text: &str) -> Result<Seq> {
        Ok(self.thread.trim(vec![(seq, text.to_owned())], BY_HAND)?)
    }

    /// Keeps a message in the view through every edit; a call is kept together with its results.
    pub fn pin(&mut self, seq: Seq) -> Result<Seq> {
        Ok(self.thread.pin(seq)?)
    }

    /// Takes the pin around a message back.
    pub fn unpin(&mut self, seq: Seq) -> Result<Seq> {
        Ok(self.thread.unpin(seq)?)
    }

    /// Takes one edit back, and keeps everything said since. To revert a revert makes the edit again.
    pub fn revert(&mut self, edit: Seq) -> Result<Seq> {
        Ok(self.thread.revert(edit)?)
    }

    /// Goes on as if nothing after entry `to` had happened; 0 for nothing at all. Nothing is removed.
    pub fn rewind(&mut self, to: Seq) -> Result<Seq> {
        Ok(self.thread.rewind(to)?)
    }

    /// Goes on from entry `at` in a thread of its own, called `name`; this one stays as it is.
    pub fn fork(&self, at: Seq, name: &str) -> Result<Session<'k>> {
        let header = self.thread.fork(at, ThreadId::new(name)?, None)?;
        let thread = self.komado.engine.open(&header.session, &header.thread, OpenMode::Write)?;
        Ok(Session::new(self.komado, thread, self.window))
    }

    /// Starts a thread below this one, for work that would crowd the window here: it has a share of the window for itself,
    /// and sees what it needs of this thread. [`Session::end_child`] ends it.
    ///
    /// ```
    /// # fn main() -> komado_sdk::Result<()> {
    /// # let komado = komado_sdk::Komado::in_memory();
    /// let mut chat = komado.session("licences").window(8_000).open()?;
    /// let mut child = chat.child("look for licences")?;
    /// child.user("Which ones are there?")?;
    /// chat.end_child(child, Some("MIT and Apache-2.0"))?;
    /// assert_eq!(chat.messages().count(), 1); // it tells of the child
    /// # Ok(())
    /// # }
    /// ```
    pub fn child(&mut self, label: &str) -> Result<Session<'k>> {
        let window = self.known_window()?;
        let (label, buffer) = (Some(label.to_owned()), self.komado.policy.buffer);
        let thread = self.thread.spawn_free(&Spawn { label, buffer, ..Spawn::new(window.into()) })?;
        Ok(Session::new(self.komado, thread, Some(window)))
    }

    /// Ends a child well. In this thread one message tells of it: `result`, and an account of what was done, which needs no
    /// model.
    pub fn end_child(&mut self, mut child: Session<'_>, result: Option<&str>) -> Result<()> {
        let (ending, result) = (Ending::Completed, result.map(str::to_owned));
        child.thread.finish(Finish { ending, result, telling: ChronicleBy::Digest })?;
        drop(child);
        self.thread.tend()?;
        Ok(())
    }

    /// Makes the view fit the window now; nothing happens while there is room. [`Session::revert`] takes back each edit
    /// that is named. Summaries are written by the digest, which needs no model.
    pub fn fit(&mut self) -> Result<FitResult> {
        let window = self.known_window()?;
        let budget = self.thread.budget(self.komado.policy.clone(), window.into(), &[])?;
        let (settings, mut by) = (CondenseSettings::default(), ByDigest::new(self.thread.meter()));
        Ok(self.thread.fit(&mut Ladder { budget, settings, by: &mut by })?)
    }

    /// What the model sees: every message, the system prompt first.
    pub fn messages(&self) -> Messages<'_> {
        Messages::new(&self.thread, self.thread.view().clone())
    }

    /// What the model saw when entry `at` was the last one.
    pub fn messages_at(&self, at: Seq) -> Result<Messages<'_>> {
        Ok(Messages::new(&self.thread, self.thread.view_at(at)?))
    }

    /// The journal: every entry that ever was, edits and undone ones too.
    pub fn entries(&self) -> Entries<'_> {
        Entries::new(&self.thread)
    }

    /// The edits in force, the oldest first: what [`Session::revert`] can take back.
    pub fn edits(&self) -> impl DoubleEndedIterator<Item = Result<(Seq, Edit)>> + '_ {
        self.thread.view().edits().filter_map(|seq| match self.thread.record(seq) {
            Ok(Record { entry: Entry::Edit(edit), .. }) => Some(Ok((seq, edit))),
            Ok(_) => None,
            Err(error) => Some(Err(error.into())),
        })
    }

    /// Everything that entry `seq` says, also where the model sees a part of it or nothing.
    pub fn text(&self, seq: Seq) -> Result<String> {
        let mut bytes = Vec::new();
        output::open(&self.thread, &OutputReference::Entry(seq))?
            .read_to_end(&mut bytes)
            .map_err(komado_engine::Error::from)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Searches everything that was said in the session, seen by the model or not; the best result first.
    pub fn recall(&self, query: &str) -> Result<std::vec::IntoIter<RecallHit>> {
        self.komado.recall_in(&RecallScope::Session(self.id().clone()), query)
    }

    /// Adds up what this thread cost, with what it shares and what was rewound. It reads the whole journal.
    pub fn cost(&self) -> Result<Cost> {
        let mut cost = Cost::default();
        for record in self.entries() {
            let record = record?;
            match record.entry {
                Entry::Sent(sent) => {
                    cost.requests += 1;
                    cost.sent += sent.context_tokens;
                    cost.largest = cost.largest.max(sent.context_tokens);
                    cost.whole += if sent.purpose.is_none() { cost.said } else { sent.context_tokens };
                }
                Entry::Message(message, reply) => {
                    let is_clipped = message.outcome().is_some_and(|outcome| outcome.output_ref.is_some());
                    cost.said += match is_clipped {
                        true => self.thread.meter().text(&self.text(record.seq)?),
                        false => record.tokens.into(),
                    };
                    if let Some(usage) = reply.and_then(|reply| reply.usage) {
                        cost.cached += usage.cache_read_tokens;
                        cost.answers += usage.output_tokens;
                    }
                }
                Entry::Setup(_) => cost.said += u64::from(record.tokens),
                _ => {}
            }
        }
        Ok(cost)
    }

    /// Ends the session well. `Komado::engine` has the other ways to end it, and the way back.
    pub fn complete(self, result: Option<&str>) -> Result<()> {
        let (engine, id) = (&self.komado.engine, self.id().clone());
        drop(self);
        engine.complete(&id, result.map(str::to_owned))?;
        Ok(())
    }

    /// Brings what is derived from the journal (`current.jsonl`, counters) up to date. A session that is dropped does so,
    /// too, but cannot say when it fails.
    pub fn settle(&mut self) -> Result<()> {
        Ok(self.thread.settle()?)
    }

    /// The thread beneath, for everything that this crate does not show.
    pub fn thread(&mut self) -> &mut Thread<'k> {
        &mut self.thread
    }

    fn known_window(&self) -> Result<u32> {
        self.window.ok_or_else(|| {
            let text = format!(
                "the window of session {} is not known; give it with .window(tokens) before .open()",
                self.id()
            );
            Error::new(ErrorKind::Setting, text)
        })
    }

    fn span(&self, range: impl RangeBounds<Seq>) -> Result<Span> {
        let from = match range.start_bound() {
            Bound::Included(from) => *from,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 1,
        };
        let to = match range.end_bound() {
            Bound::Included(to) => *to,
            Bound::Excluded(after) => after.saturating_sub(1),
            Bound::Unbounded => self.last(),
        };
        if from == 0 || from > to {
            let text =
                format!("the range {from}..={to} holds no entry; entries count from 1 to {}", self.last());
            return Err(Error::new(ErrorKind::Input, text));
        }
        Ok(Span::new(from, to))
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // What is derived is made again when it is missing.
        let _ = self.thread.settle();
    }
}
