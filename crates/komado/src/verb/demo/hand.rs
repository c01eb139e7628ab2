//! The agent's hand on one thread: says, asks, calls, and never lets the view outgrow the window.

use super::ledger::Ledger;
use super::screen::Screen;
use super::script::{Act, ISSUE, RULES, SYSTEM, TOOLS, Turn};
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Ink, number};
use komado_core::journal::{Reply, Setup, Usage};
use komado_core::message::{Call, CallKind, Message, Outcome as ToolOutcome, OutputRef, Part, Role};
use komado_core::raw::Raw;
use komado_core::{Meter, Seq, ThreadId, View};
use komado_engine::{Engine, Thread};
use komado_store::Mode;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What the played model is called.
pub(super) const MODEL: &str = "demo-model";

/// When to act, and how far.
#[derive(Clone, Copy)]
pub(super) struct Marks {
    pub(super) window: u64,
    /// Over this, room is made.
    pub(super) soft: u64,
    /// Down to this, when that can be done without hiding anything.
    pub(super) low: u64,
}

impl Marks {
    pub(super) fn new(window: u32, threshold: f64) -> Self {
        // What a turn brings must still fit above the mark.
        let soft = f64::from(window) * threshold.clamp(0.3, 0.8);
        Self { window: u64::from(window), soft: soft as u64, low: (soft * 0.65) as u64 }
    }
}

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
    pub(super) outputs: Vec<Seq>,
    pub(super) freed: u64,
}

/// An agent at work on one thread.
pub(super) struct Hand<'e> {
    engine: &'e Engine,
    pub(super) thread: Thread<'e>,
    pub(super) marks: Marks,
    pub(super) ledger: Ledger,
    /// What each tool's message is about.
    pub(super) outputs: BTreeMap<Seq, String>,
    /// The first entry that may be hidden.
    pub(super) first: Seq,
    /// Tokens that the provider has in its cache.
    pub(super) cached: u64,
    /// The last trim, while it can be taken back.
    pub(super) trimmed: Option<Trim>,
    /// Outputs that were brought back once, and so stay.
    pub(super) wanted: Vec<Seq>,
    /// Entries that condensed a span.
    pub(super) condensed: Vec<Seq>,
    pub(super) done: Done,
}

impl<'e> Hand<'e> {
    pub(super) fn new(engine: &'e Engine, thread: Thread<'e>, marks: Marks) -> Self {
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
        Self {
            engine,
            thread,
            marks,
            ledger: Ledger::default(),
            outputs: BTreeMap::new(),
            first: 1,
            cached: 0,
            trimmed: None,
            wanted: Vec::new(),
            condensed: Vec::new(),
            done,
        }
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
        self.first = self.say(Message::text(Role::User, ISSUE))? + 1;
        Ok(())
    }

    /// One turn: the user's wish if there is one, room, the model's words, what its calls brought.
    pub(super) fn play(&mut self, turn: &Turn, screen: &mut Screen<'_>) -> Outcome {
        if let Some(asked) = &turn.asked {
            let seq = self.say(Message::text(Role::User, asked))?;
            self.ledger.asked(seq, asked);
        }
        self.make_room(screen)?;
        let seq = self.request(turn)?;
        if !turn.acts.is_empty() {
            self.answer(seq, &turn.acts)?;
        }
        Ok(())
    }

    fn say(&mut self, message: Message) -> Outcome<Seq> {
        let digest = digest(&message);
        let seq = self.thread.say(message)?;
        self.done.said.push((seq, digest));
        self.look()?;
        Ok(seq)
    }

    /// The view may never outgrow the window; that is what all this is about.
    pub(super) fn look(&mut self) -> Outcome {
        let (tokens, window) = (self.view().tokens(), self.marks.window);
        self.done.peak = self.done.peak.max(tokens);
        if tokens <= window {
            return Ok(());
        }
        Err(Fault::new(
            Exit::Failed,
            format!("the view has {tokens} tokens, the window {window}; this is a bug"),
        ))
    }

    /// Sends the view, so to speak, and journals what comes back.
    fn request(&mut self, turn: &Turn) -> Outcome<Seq> {
        let next = self.thread.last() + 1;
        let mut parts = vec![Part::text(&turn.says)];
        parts.extend(turn.acts.iter().enumerate().map(|(i, act)| {
            let (id, name, arguments) = (format!("call_{next}_{i}"), act.tool().to_owned(), act.arguments());
            Part::Call(Call { id, name, arguments, kind: CallKind::Function, extra: None })
        }));
        let message = Message::of(Role::Assistant, parts);
        let sent = self.view().tokens();
        let usage = Usage {
            input_tokens: sent - self.cached.min(sent),
            output_tokens: u64::from(self.thread.meter().message(&message)),
            cache_creation_tokens: 0,
            cache_read_tokens: self.cached.min(sent),
        };
        self.cached = sent;
        self.done.usage.input_tokens += usage.input_tokens;
        self.done.usage.output_tokens += usage.output_tokens;
        self.done.usage.cache_read_tokens += usage.cache_read_tokens;
        let finish = if turn.is_report() { "stop" } else { "tool_calls" }.to_owned();
        let digest = digest(&message);
        let reply = Reply { to: None, model: Some(MODEL.into()), usage: Some(usage), finish, error: None };
        let seq = self.thread.reply(message, reply)?;
        self.done.said.push((seq, digest));
        self.look()?;
        Ok(seq)
    }

    /// Runs the calls of message `asked` and journals what they brought, together.
    fn answer(&mut self, asked: Seq, acts: &[Act]) -> Outcome {
        let free = self.marks.window.saturating_sub(self.view().tokens() + self.marks.window / 16);
        let cap = (self.marks.window / 8).min(free / acts.len() as u64).saturating_sub(24);
        let mut messages = Vec::new();
        let mut failures = Vec::new();
        for (i, act) in acts.iter().enumerate() {
            let came = act.act();
            failures.push(came.failed);
            let (text, output_ref) = self.clip(came.output, cap)?;
            messages.push(Message::of(
                Role::Tool,
                vec![Part::Result(ToolOutcome {
                    call_id: format!("call_{asked}_{i}"),
                    name: Some(act.tool().into()),
                    content: vec![Part::text(text)],
                    is_error: came.failed,
                    output_ref,
                    duration_ms: Some(u64::from(asked) % 40 + 3),
                    interrupted: false,
                })],
            ));
        }
        let digests: Vec<u64> = messages.iter().map(digest).collect();
        let seqs = self.thread.say_all(messages.into_iter().map(|message| (message, None)).collect())?;
        for (((seq, digest), act), failed) in seqs.into_iter().zip(digests).zip(acts).zip(failures) {
            self.done.said.push((seq, digest));
            self.ledger.did(seq, act, failed);
            self.outputs.insert(seq, act.brief());
        }
        self.look()
    }

    /// An output larger than `cap` goes to a blob; its head and its tail stay.
    fn clip(&mut self, output: String, cap: u64) -> Outcome<(String, Option<OutputRef>)> {
        let meter = self.thread.meter();
        if meter.text(&output) <= cap {
            return Ok((output, None));
        }
        let blob = self.engine.store().put_blob(self.thread.session(), &mut output.as_bytes())?;
        let text = head_and_tail(meter, &output, cap, &blob.id);
        self.done.blobs.push((blob.id.clone(), digest_text(&output)));
        let (byte_size, line_count) = (Some(blob.byte_size), Some(blob.line_count));
        Ok((text, Some(OutputRef { id: blob.id, byte_size, line_count })))
    }

    /// Goes on from here in another thread for a while; this one stays as it is.
    pub(super) fn try_elsewhere(&mut self, turns: &[Turn], screen: &mut Screen<'_>) -> Outcome<Done> {
        let at = self.thread.last();
        let header =
            self.thread.fork(at, ThreadId::new("another-idea")?, Some("a tree instead of a list?".into()))?;
        let fork = self.engine.open(self.thread.session(), &header.thread, Mode::Write)?;
        let mut hand = Self {
            ledger: self.ledger.clone(),
            outputs: self.outputs.clone(),
            ..Self::new(self.engine, fork, self.marks)
        };
        hand.first = self.first;
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
        self.ledger.rewind(to);
        self.condensed.retain(|edit| *edit <= to);
        self.trimmed = self.trimmed.take().filter(|trim| trim.seq <= to);
        self.cached = 0;
        self.done.rewinds += 1;
        self.look()?;
        let (before, after) = (number(before), number(self.view().tokens()));
        let detail =
            format!("@{seq}: back to @{to}, {} turns led nowhere: {before} → {after} tokens", turns.len());
        screen.tell(Ink::Yellow, "rewind", &detail)
    }

    /// Once, a trim took out what is needed after all.
    pub(super) fn change_mind(&mut self, screen: &mut Screen<'_>) -> Outcome {
        let before = self.view().tokens();
        let now = self.done.trims >= 2 && self.done.reverts == 0;
        let Some(trim) = self.trimmed.take_if(|trim| now && before + trim.freed <= self.marks.window) else {
            return Ok(());
        };
        let edit = trim.seq;
        let seq = self.thread.revert(edit)?;
        (self.wanted, self.cached) = (trim.outputs, 0);
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

/// The first and the last lines of `text`, as many as fit in `cap` tokens, and where the rest is.
fn head_and_tail(meter: Meter, text: &str, cap: u64, blob: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let share = cap as f64 / meter.text(text).max(1) as f64;
    let (mut head, mut tail) = (lines.len() as f64 * share * 0.6, lines.len() as f64 * share * 0.3);
    loop {
        let (first, last) = (head as usize, tail as usize);
        let out = lines.len() - first - last;
        let marker = format!("[{out} of {} lines left out; read_output {blob} has them all]", lines.len());
        let mut kept: Vec<&str> = lines[..first].to_vec();
        kept.push(&marker);
        kept.extend(&lines[lines.len() - last..]);
        let kept = kept.join("\n");
        if first + last == 0 || meter.text(&kept) <= cap {
            return kept;
        }
        (head, tail) = (head * 0.8, tail * 0.8);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clipped_output_keeps_its_ends_and_says_where_the_rest_is() {
        let text: String = (1..=500).map(|n| format!("line {n}\n")).collect();
        let kept = head_and_tail(Meter::Bytes4, &text, 200, "abc");
        assert!(Meter::Bytes4.text(&kept) <= 200);
        assert!(kept.starts_with("line 1\n") && kept.ends_with("line 500"), "{kept}");
        assert!(kept.contains("of 500 lines left out; read_output abc"), "{kept}");
        assert!(head_and_tail(Meter::Bytes4, &"x".repeat(9000), 10, "abc").starts_with("[1 of 1 lines"));
    }

    #[test]
    fn what_a_turn_brings_fits_above_the_mark() {
        for threshold in [0.0, 0.3, 0.7, 1.0] {
            let marks = Marks::new(4000, threshold);
            assert!(marks.low < marks.soft && marks.soft <= 3200);
        }
    }
}
