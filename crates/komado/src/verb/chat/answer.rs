//! What is heard while a question is answered: the model's words for standard output, the rest for the person.

use crate::fault::{Fault, Outcome};
use crate::paper::{Ink, Paper, number, say};
use crate::render::window::{edit_line, slices_line};
use crate::signals::{Interrupt, Watch};
use komado_core::notation::shown;
use komado_engine::engine::Found;
use komado_engine::exchange::{Hint, News, When};
use komado_engine::fit::Fitted;
use komado_ops::ask::{Answered, Listener};
use komado_ops::change;
use komado_ops::window::MadeEdit;
use komado_provider::{Cancel, Event};
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
    /// Where it is, once that is known.
    found: Option<Found>,
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
    /// True when the question is in the journal.
    pub(crate) is_kept: bool,
}

impl Answer {
    /// Listens for a person.
    pub(crate) fn new(undo: Undo) -> Self {
        Self {
            found: None,
            undo,
            paper: Paper::new(false),
            is_terminal: io::stdout().is_terminal(),
            shows_thoughts: io::stderr().is_terminal(),
            thinking: false,
            at_start: true,
            fault: None,
            is_kept: false,
        }
    }

    /// Listens for the reader of `paper`; for a program words are not printed as they come.
    pub(crate) fn onto(paper: &Paper) -> Self {
        let mut answer = Self::new(Undo::Shell);
        answer.paper.json = paper.json;
        answer.shows_thoughts &= !paper.json;
        answer
    }

    /// Listens to a conversation in `found` from now on.
    pub(crate) fn begin(&mut self, found: &Found) {
        self.found = Some(found.clone());
    }

    /// The thread's name on the command line, once it is known.
    pub(crate) fn name(&self) -> Option<String> {
        self.found.as_ref().map(change::name)
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
            self.tell(&slices_line(cut));
        }
        let Some(found) = self.found.clone() else { return };
        for done in &fitted.done {
            let edit = MadeEdit::of(&found, done);
            let undo = match self.undo {
                Undo::Slash => format!("/revert @{}", edit.seq),
                Undo::Shell => edit.undo.clone(),
            };
            self.tell(&format!("{}; undo: {undo}", edit_line(&edit)));
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
    pub(crate) fn own_words(&mut self, answered: &Answered) {
        if answered.ours {
            self.tell("no model said this; komado did, because the request stayed too large");
            self.print(&answered.text);
        }
        if let Some(words) = &answered.refusal {
            self.tell("the model declines:");
            self.print(words);
        }
        match answered.finish.as_str() {
            "length" => self.tell(
                "the answer is cut: the model came to the longest answer allowed, or to the end of its window",
            ),
            "content_filter" => self.tell("the provider's filter ended the answer"),
            finish if answered.is_silent() => self.tell(&format!("the model said nothing ({finish})")),
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

/// An answer that Ctrl-C stops.
pub(crate) struct Stoppable<'a> {
    pub(crate) answer: Answer,
    /// What went wrong with printing the whole of it.
    pub(crate) printed: Outcome,
    interrupt: &'a Interrupt,
    watch: Option<Watch<'a>>,
    /// Says where it is, as it begins.
    begun: fn(&Found),
}

impl<'a> Stoppable<'a> {
    /// `answer`, which `interrupt` stops.
    pub(crate) fn new(answer: Answer, interrupt: &'a Interrupt, begun: fn(&Found)) -> Self {
        Self { answer, printed: Ok(()), interrupt, watch: None, begun }
    }
}

impl Listener for Stoppable<'_> {
    fn begun(&mut self, found: &Found) {
        (self.begun)(found);
        self.answer.begin(found);
    }

    fn kept(&mut self) {
        self.answer.is_kept = true;
    }

    fn news(&mut self, news: News<'_>) {
        self.answer.take(news);
    }

    fn answered(&mut self, answered: &Answered) {
        self.answer.own_words(answered);
        self.printed = self.answer.end();
    }

    fn cancel(&mut self) -> Cancel {
        // The watch before it ends first: it would take this one along.
        self.watch = None;
        let watch = self.interrupt.watch();
        let cancel = watch.cancel();
        self.watch = Some(watch);
        cancel
    }
}
