//! What is heard while a question is answered: the model's words for standard output, the rest for the person.

use crate::fault::{Fault, Outcome};
use crate::paper::{Ink, Paper, number, say};
use crate::render::window::{edit_line, slices_line};
use komado_core::message::Message;
use komado_core::notation::shown;
use komado_engine::engine::Found;
use komado_engine::fit::Fitted;
use komado_engine::turn::{Hint, News, Turned, When};
use komado_ops::window::{MadeEdit, Recut};
use komado_provider::Event;
use std::io::{self, IsTerminal, Write};

/// How an undo is spelled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Undo {
    /// As a command of the shell.
    Shell,
    /// As a command of the conversation.
    Slash,
}

/// Listens, and prints what is heard.
pub(crate) struct Answer {
    found: Found,
    undo: Undo,
    paper: Paper,
    /// Standard output is a terminal, which must not be given its codes by a model.
    is_terminal: bool,
    /// Thoughts are shown where a person waits for words.
    shows_thoughts: bool,
    thinking: bool,
    /// True when the last thing printed ended its line.
    at_start: bool,
    /// What went wrong with printing.
    fault: Option<Fault>,
    /// Edits that were made, as `komado fit --json` tells them.
    pub(crate) edits: Vec<MadeEdit>,
    /// Slices of the threads above that were cut anew, told alike.
    pub(crate) slices: Vec<Recut>,
    /// Tokens of the view when all was said.
    pub(crate) tokens: u64,
    /// True when the question is in the journal.
    pub(crate) is_kept: bool,
}

impl Answer {
    /// Listens to a conversation in `found`.
    pub(crate) fn new(found: &Found, undo: Undo) -> Self {
        Self {
            found: found.clone(),
            undo,
            paper: Paper::new(false),
            is_terminal: io::stdout().is_terminal(),
            shows_thoughts: io::stderr().is_terminal(),
            thinking: false,
            at_start: true,
            fault: None,
            edits: Vec::new(),
            slices: Vec::new(),
            tokens: 0,
            is_kept: false,
        }
    }

    /// The same, for a program: words are not printed as they come.
    pub(crate) fn for_program(found: &Found) -> Self {
        let mut answer = Self::new(found, Undo::Shell);
        (answer.paper.json, answer.shows_thoughts) = (true, false);
        answer
    }

    /// Hears news.
    pub(crate) fn take(&mut self, news: News<'_>) {
        match news {
            News::Fitted(fitted) => self.fitted(fitted),
            News::Sent { .. } => self.line_end(),
            News::Said(event) => self.said(event),
            News::Waiting(waiting) => self.tell(&format!(
                "{}; trying again in {} s ({} of {})",
                waiting.why,
                waiting.delay.as_secs_f64(),
                waiting.tries + 1,
                waiting.most
            )),
            News::TooLarge { attempt, limit, .. } => {
                let limit = limit.map(|limit| format!(" (it takes {})", number(limit))).unwrap_or_default();
                self.tell(&format!(
                    "the request was too large for the model{limit}; smaller now, try {}",
                    attempt + 1
                ));
            }
            News::Truncated { reported, expected } => self.tell(&format!(
                "the server read only {} of {} tokens and did not say so",
                number(reported),
                number(expected)
            )),
            News::Trouble(error) => self.tell(&format!("the answer is there, but: {error}")),
            News::Hint(hint) => self.hint(hint),
            _ => {}
        }
    }

    fn fitted(&mut self, fitted: &Fitted) {
        for why in &fitted.declined {
            self.tell(&format!("no summary: {why}"));
        }
        if let Some(cut) = &fitted.share {
            let cut = Recut::from(cut);
            self.tell(&slices_line(&cut));
            self.slices.push(cut);
        }
        for done in &fitted.done {
            let edit = MadeEdit::of(&self.found, done);
            let undo = match self.undo {
                Undo::Slash => format!("/revert @{}", edit.seq),
                Undo::Shell => edit.undo.clone(),
            };
            self.tell(&format!("{}; undo: {undo}", edit_line(&edit)));
            self.edits.push(edit);
        }
    }

    fn hint(&mut self, hint: Hint) {
        if hint.when == When::BeforeEnd && hint.verdict.will_manage && self.undo == Undo::Slash {
            self.tell("the window is getting full: before the next request something will leave the view");
        }
    }

    fn said(&mut self, event: &Event) {
        match event {
            Event::Text(text) => {
                self.end_thought();
                self.print(text);
            }
            Event::Reasoning(text) if self.shows_thoughts => {
                self.thinking = true;
                let text = self.paper.painted(Ink::Dim, text);
                let _ = write!(io::stderr(), "{text}");
            }
            Event::Call { name, .. } => {
                self.end_thought();
                self.tell(&format!("the model calls {name}"));
            }
            _ => {}
        }
    }

    fn end_thought(&mut self) {
        if std::mem::take(&mut self.thinking) {
            say("");
        }
    }

    /// Prints words of the model.
    pub(crate) fn print(&mut self, text: &str) {
        if self.paper.json || self.fault.is_some() || text.is_empty() {
            return;
        }
        self.at_start = text.ends_with('\n');
        let cleaned = if self.is_terminal { shown(text) } else { text.to_owned() };
        let printed = self.paper.raw().write_all(cleaned.as_bytes()).map_err(Fault::from);
        self.fault = printed.and_then(|()| self.paper.flush()).err();
    }

    pub(crate) fn line_end(&mut self) {
        if !self.at_start {
            self.print("\n");
        }
    }

    /// Says something beside the words, on a line of its own.
    fn tell(&mut self, text: &str) {
        self.end_thought();
        self.line_end();
        if !io::stderr().is_terminal() {
            return say(format!("⋯ {text}"));
        }
        let _ = writeln!(io::stderr(), "⋯ {}", self.paper.painted(Ink::Dim, text));
    }

    /// Prints an answer that no model gave, and says so; says also of one that was cut.
    pub(crate) fn own_words(&mut self, turned: &Turned) {
        if turned.is_ours {
            self.tell("no model said this; komado did, because the request stayed too large");
            self.print(&turned.message.words());
        }
        if let Some(words) = refusal(&turned.message) {
            self.tell("the model declines:");
            self.print(&words);
        }
        let silent = turned.message.words().trim().is_empty() && turned.message.calls().next().is_none();
        match turned.reply.finish.as_str() {
            "length" => self.tell(
                "the answer is cut: the model came to the longest answer allowed, or to the end of its window",
            ),
            "content_filter" => self.tell("the provider's filter ended the answer"),
            finish if silent => self.tell(&format!("the model said nothing ({finish})")),
            _ => {}
        }
    }

    /// Ends the answer's last line; an error when the words could not be printed.
    pub(crate) fn end(&mut self) -> Outcome {
        self.end_thought();
        self.line_end();
        self.fault.take().map_or(Ok(()), Err)
    }
}

/// The words with which a model of OpenAI declines; they stand beside the answer.
fn refusal(message: &Message) -> Option<String> {
    let extra: serde_json::Value = serde_json::from_str(message.extra.as_ref()?.json.get()).ok()?;
    extra.get("refusal")?.as_str().map(str::to_owned)
}
