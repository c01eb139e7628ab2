//! The agent's hand on one thread: says, asks, calls, and never lets the view outgrow the window.

use super::screen::Screen;
use super::script::{Act, ISSUE, RULES, SYSTEM, TOOLS, Turn};
use super::wire::Wire;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Ink, number};
use komado_core::budget::Budget;
use komado_core::clip::Limits;
use komado_core::journal::{Entry, Setup, Usage};
use komado_core::message::{Message, Outcome as ToolOutcome, Part, Role};
use komado_core::raw::Raw;
use komado_core::{Seq, ThreadId, View};
use komado_engine::{Engine, Thread};
use komado_store::Mode;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What the played model is called.
pub(super) const MODEL: &str = "demo-model";

/// What was done on a thread, and what was said, to be compared with what is there.
pub(super) struct Done {
    pub(super) thread: ThreadId,
    pub(super) peak: u64,
    pub(super) usage: Usage,
    pub(super) trims: u32,
    pub(super) condenses: u32,
    pub(super) reverts: u32,
    pub(super) rewinds: u32,
    /// Digest of every message.
    pub(super) said: Vec<(Seq, u64)>,
    /// Digest of every output that went to a blob.
    pub(super) blobs: Vec<(String, u64)>,
}

/// A trim that was made.
pub(super) struct Trim {
    pub(super) seq: Seq,
    pub(super) freed: u64,
}

/// An agent at work on one thread.
pub(super) struct Hand<'e> {
    engine: &'e Engine,
    pub(super) thread: Thread<'e>,
    pub(super) budget: Budget,
    pub(super) wire: &'e Wire,
    /// Requests so far.
    asked: usize,
    /// The last trim, while it can be taken back.
    pub(super) trimmed: Option<Trim>,
    /// Entries that condensed a span.
    pub(super) condensed: Vec<Seq>,
    pub(super) done: Done,
}

impl<'e> Hand<'e> {
    pub(super) fn new(engine: &'e Engine, thread: Thread<'e>, budget: Budget, wire: &'e Wire) -> Self {
        let done = Done {
            thread: thread.header().thread.clone(),
            peak: 0,
            usage: Usage::default(),
            trims: 0,
            condenses: 0,
            reverts: 0,
            rewinds: 0,
            said: Vec::new(),
            blobs: Vec::new(),
        };
        let thread = thread.clipping(Some(budget.limits(&Limits::default())));
        Self { engine, thread, budget, wire, asked: 0, trimmed: None, condensed: Vec::new(), done }
    }

    /// A hand on another thread of the session, whose calls are told from those here.
    pub(super) fn beside(&self, thread: Thread<'e>, budget: Budget) -> Self {
        let asked = self.asked.max(self.thread.last() as usize);
        Self { asked, ..Self::new(self.engine, thread, budget, self.wire) }
    }

    pub(super) fn view(&self) -> &View {
        self.thread.view()
    }

    /// The last time a span was condensed.
    pub(super) fn condensed(&self) -> Option<Seq> {
        self.condensed.last().copied()
    }

    /// What stands before the work: the setup, the rules, which are pinned, and the issue.
    pub(super) fn open(&mut self) -> Outcome {
        let tools = Raw::parse(TOOLS)?;
        let dialect = Some("openai".to_owned());
        self.thread.set_up(Setup {
            system: Some(SYSTEM.into()),
            tools: Some(tools),
            params: None,
            dialect,
        })?;
        let rules = self.say(Message::text(Role::User, RULES))?;
        self.thread.pin(rules)?;
        self.say(Message::text(Role::User, ISSUE))?;
        Ok(())
    }

    /// One turn: the user's wish if there is one, room, the model's words, what its calls brought.
    pub(super) fn play(&mut self, turn: &Turn, screen: &mut Screen<'_>) -> Outcome {
        if let Some(asked) = &turn.asked {
            self.say(Message::text(Role::User, asked))?;
        }
        self.request(turn, screen)?;
        if !turn.acts.is_empty() {
            self.answer(&turn.acts)?;
        }
        // Also after the tools: whoever looks at the session now sees what the next request will be.
        self.make_room(screen)
    }

    pub(super) fn say(&mut self, message: Message) -> Outcome<Seq> {
        let digest = digest(&message);
        let seq = self.thread.say(message)?;
        self.done.said.push((seq, digest));
        Ok(seq)
    }

    /// A request may never outgrow the window; that is what all this is about.
    pub(super) fn look(&mut self) -> Outcome {
        let (tokens, window) = (self.view().tokens(), self.budget.window);
        self.done.peak = self.done.peak.max(tokens);
        if tokens <= window {
            return Ok(());
        }
        Err(Fault::new(
            Exit::Failed,
            format!("the view has {tokens} tokens, the window {window}; this is a bug"),
        ))
    }

    /// Asks the model, and notes what it said and what that took.
    fn request(&mut self, turn: &Turn, screen: &mut Screen<'_>) -> Outcome {
        // Two threads share what came before: their calls must not have the same names.
        self.asked = self.asked.max(self.thread.last() as usize) + 1;
        self.wire.will_say(turn, self.asked);
        let turned = self.ask(screen)?;
        if let Some(usage) = turned.reply.usage {
            self.done.usage.input_tokens += usage.input_tokens;
            self.done.usage.output_tokens += usage.output_tokens;
            self.done.usage.cache_read_tokens += usage.cache_read_tokens;
        }
        self.done.said.push((turned.seq, digest(&turned.message)));
        Ok(())
    }

    /// Runs the calls that were made last and journals what they brought, together.
    fn answer(&mut self, acts: &[Act]) -> Outcome {
        let asked = self.asked;
        let mut outputs = Vec::new();
        let mut messages = Vec::new();
        for (i, act) in acts.iter().enumerate() {
            let came = act.act();
            let message = Message::of(
                Role::Tool,
                vec![Part::Result(ToolOutcome {
                    call_id: format!("call_{asked}_{i}"),
                    name: Some(act.tool().into()),
                    content: vec![Part::text(&came.output)],
                    is_error: came.failed,
                    output_ref: None,
                    duration_ms: Some(asked as u64 % 40 + 3),
                    interrupted: false,
                })],
            );
            outputs.push((digest(&message), digest_text(&came.output)));
            messages.push((message, None));
        }
        let seqs = self.thread.say_all(messages)?;
        for (seq, (said, whole)) in seqs.into_iter().zip(outputs) {
            self.note_output(seq, said, whole)?;
        }
        Ok(())
    }

    /// An output that was too large is in a blob, whole; its message shows the ends.
    fn note_output(&mut self, seq: Seq, said: u64, whole: u64) -> Outcome {
        let Entry::Message(message, _) = self.thread.record(seq)?.entry else { return Ok(()) };
        match message.outcome().and_then(|outcome| outcome.output_ref.as_ref()) {
            Some(output) => {
                self.done.blobs.push((output.id.clone(), whole));
                self.done.said.push((seq, digest(&message)));
            }
            None => self.done.said.push((seq, said)),
        }
        Ok(())
    }

    /// Goes on from here in another thread for a while; this one stays as it is.
    pub(super) fn try_elsewhere(&mut self, turns: &[Turn], screen: &mut Screen<'_>) -> Outcome<Done> {
        let at = self.thread.last();
        let header =
            self.thread.fork(at, ThreadId::new("another-idea")?, Some("a tree instead of a list?".into()))?;
        let fork = self.engine.open(self.thread.session(), &header.thread, Mode::Write)?;
        let mut hand = Self::new(self.engine, fork, self.budget.clone(), self.wire);
        let detail =
            format!("@{at} is shared with {}: another idea is tried there, at no cost here", header.thread);
        screen.tell(Ink::Cyan, "fork", &detail)?;
        turns.iter().try_for_each(|turn| hand.play(turn, screen))?;
        hand.finish()
    }

    /// Some turns that lead nowhere, and the way back.
    pub(super) fn go_astray(&mut self, turns: &[Turn], screen: &mut Screen<'_>) -> Outcome {
        let to = self.thread.last();
        turns.iter().try_for_each(|turn| self.play(turn, screen))?;
        let before = self.view().tokens();
        let seq = self.thread.rewind(to)?;
        self.condensed.retain(|edit| *edit <= to);
        self.trimmed = self.trimmed.take().filter(|trim| trim.seq <= to);
        self.done.rewinds += 1;
        let (before, after) = (number(before), number(self.view().tokens()));
        let detail =
            format!("@{seq}: back to @{to}, {} turns led nowhere: {before} → {after} tokens", turns.len());
        screen.tell(Ink::Yellow, "rewind", &detail)
    }

    /// Once, a trim took out what is needed after all.
    pub(super) fn change_mind(&mut self, screen: &mut Screen<'_>) -> Outcome {
        let before = self.view().tokens();
        let now = self.done.trims >= 2 && self.done.reverts == 0;
        let Some(trim) = self.trimmed.take_if(|trim| now && before + trim.freed <= self.budget.usable) else {
            return Ok(());
        };
        let edit = trim.seq;
        let seq = self.thread.revert(edit)?;
        self.done.reverts += 1;
        self.look()?;
        let (before, after) = (number(before), number(self.view().tokens()));
        let detail =
            format!("@{seq}: the outputs that @{edit} left out are needed again: {before} → {after} tokens");
        screen.tell(Ink::Green, "revert", &detail)
    }

    pub(super) fn settle(&mut self) -> Outcome {
        Ok(self.thread.settle()?)
    }

    pub(super) fn finish(mut self) -> Outcome<Done> {
        self.settle()?;
        Ok(self.done)
    }
}

/// Tells two messages apart.
pub(super) fn digest(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.role.name().hash(&mut hasher);
    message.words().hash(&mut hasher);
    message.calls().for_each(|call| (&call.id, &call.name, &call.arguments).hash(&mut hasher));
    message.outcome().map(|outcome| (&outcome.call_id, outcome.is_error)).hash(&mut hasher);
    hasher.finish()
}

/// Tells two texts apart.
pub(super) fn digest_text(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
