//! `komado ask`: one question, one answer.
//!
//! The answer goes to standard output as it comes, everything else to standard error. A question that brings no answer
//! is kept like any other, and the session goes on.

use super::chat::resume::latest;
use super::write::read_stdin;
use crate::app::App;
use crate::cli_output::{CliOutput, Style, number, say};
use crate::render::sessions::at_home;
use crate::render::window::{edit_line, slices_line};
use crate::signals::{Interrupt, InterruptGuard};
use komado_core::Address;
use komado_core::notation::shown;
use komado_engine::engine::ResolvedAddress;
use komado_engine::exchange::{BudgetHint, ExchangeEvent, HintTime};
use komado_engine::fit::FitResult;
use komado_ops::ask::{AskListener, AskModel, AskResult, Beginning};
use komado_ops::choice::ModelArgs;
use komado_ops::window::MadeEdit;
use komado_ops::{FaultKind, OpFault, OpResult, change};
use komado_provider::{Cancel, ModelEvent};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use std::io::{self, IsTerminal, Write};

#[derive(clap::Args, Debug)]
#[command(
    override_usage = "komado ask [OPTIONS] [SESSION] QUESTION\n       komado ask [OPTIONS] --continue QUESTION\n       komado ask [OPTIONS] --again SESSION"
)]
pub(crate) struct AskArgs {
    /// The session, or SESSION/THREAD (a new one when left out), and the question; `-` or a pipe for standard input
    #[arg(num_args = 0.., value_names = ["SESSION", "QUESTION"])]
    words: Vec<String>,
    /// Go on with the latest conversation begun in the working folder; then there is no SESSION
    #[arg(short = 'c', long = "continue", conflicts_with = "again")]
    go_on: bool,
    /// Ask again without a new message, after a failure or after tool results
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    beginning: Beginning,
}

pub(crate) fn ask(app: &mut App, args: AskArgs) -> OpResult {
    let (address, question) = read(app, &args)?;
    let (session, thread) = address.map(|address| (address.session, address.thread)).unzip();
    let is_new = session.is_none();
    let place = app.kept_in().filter(|_| is_new);
    let begun = move |found: &ResolvedAddress| {
        if is_new {
            say(format!("session: {}", komado_ops::change::name(found)));
            place.iter().for_each(|place| say(format!("folder: {}", at_home(place))));
        }
    };
    let request = AskModel {
        session: session.map(|session| session.to_string()),
        thread: thread.flatten().map(|thread| thread.to_string()),
        question,
        beginning: args.beginning,
        model: args.model,
    };
    let interrupt = Interrupt::listen();
    let mut listener = StoppablePrinter::new(AnswerPrinter::onto(&app.paper), &interrupt, begun);
    match request.hear(&app.context, &mut listener) {
        Ok(answered) => {
            listener.printed?;
            answered.check()?;
            app.print(&answered)
        }
        Err(fault) => {
            // What was printed of the answer stays on its line.
            let answer = &mut listener.answer;
            answer.end()?;
            Err(match answer.name().filter(|_| answer.is_kept) {
                Some(name) => {
                    fault.and(format!("the question is kept: `komado ask --again {name}` asks once more"))
                }
                None => fault,
            })
        }
    }
}

/// Which session, and what is asked.
fn read(app: &App, args: &AskArgs) -> OpResult<(Option<Address>, Option<String>)> {
    let named = |word: &String| word.parse::<Address>().map_err(OpFault::from);
    if args.again {
        return match args.words.as_slice() {
            [session] => Ok((Some(named(session)?), None)),
            _ => Err(OpFault::usage("--again takes a session and no question: komado ask --again SESSION")),
        };
    }
    let (address, question) = match args.words.as_slice() {
        words if args.go_on => {
            let question = match words {
                [] => read_stdin()?,
                [only] if only == "-" => read_stdin()?,
                words => with_pipe(words.join(" ")),
            };
            let session = latest(app)?;
            (Some(Address { session, thread: None, seq: None }), question)
        }
        [] => (None, read_stdin()?),
        [only] if only == "-" => (None, read_stdin()?),
        [only] => match piped_for(app, only)? {
            Some(question) => (Some(named(only)?), question),
            None => (None, with_pipe(only.clone())),
        },
        [session, dash] if dash == "-" => (Some(named(session)?), read_stdin()?),
        [session, rest @ ..] => {
            if !is_session(app, session) {
                return Err(OpFault::new(
                    FaultKind::NotFound,
                    format!(
                        "there is no session {session:?}; `komado sessions` lists them, and a question of several words \
                         to a new session stands in quotes"
                    ),
                ));
            }
            (Some(named(session)?), with_pipe(rest.join(" ")))
        }
    };
    if question.trim().is_empty() {
        return Err(OpFault::usage("there is no question: write it, or pipe it in"));
    }
    Ok((address, Some(question)))
}

/// The question. What waits in a pipe beside it is not read, since it may be meant for the next reader, but it is told.
fn with_pipe(question: String) -> String {
    let input = io::stdin();
    let is_pipe = fstat(&input).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo);
    let mut waits = [PollFd::new(&input, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if is_pipe && poll(&mut waits, Some(&now)).is_ok() && waits[0].revents().contains(PollFlags::IN) {
        say("komado: what is in the pipe is not read; `-` in place of the question reads it");
    }
    question
}

/// What is piped in for a session of that name; `None` when there is no such session, or nothing in the pipe: then the
/// word is the question, though a session's name may begin so.
fn piped_for(app: &App, word: &str) -> OpResult<Option<String>> {
    if io::stdin().is_terminal() || !is_session(app, word) {
        return Ok(None);
    }
    Ok(Some(read_stdin()?).filter(|text| !text.trim().is_empty()))
}

fn is_session(app: &App, word: &str) -> bool {
    word.parse::<Address>().is_ok_and(|address| app.find(&address).is_ok())
}

/// How an undo is spelled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoForm {
    /// As a command of the shell.
    Shell,
    /// As a command of the conversation.
    Slash,
}

/// What is heard while a question is answered: the model's words for standard output, the rest for the person.
pub(crate) struct AnswerPrinter {
    /// Where it is, once that is known.
    found: Option<ResolvedAddress>,
    undo: UndoForm,
    paper: CliOutput,
    /// Standard output is a terminal, which must not be given its codes by a model.
    is_terminal: bool,
    /// Thoughts are shown where a person waits for words.
    shows_thoughts: bool,
    thinking: bool,
    /// True when the last thing printed ended its line.
    at_start: bool,
    /// What went wrong with printing.
    fault: Option<OpFault>,
    /// True when the question is in the journal.
    pub(crate) is_kept: bool,
}

impl AnswerPrinter {
    /// Listens for a person.
    pub(crate) fn new(undo: UndoForm) -> Self {
        Self {
            found: None,
            undo,
            paper: CliOutput::new(false),
            is_terminal: io::stdout().is_terminal(),
            shows_thoughts: io::stderr().is_terminal(),
            thinking: false,
            at_start: true,
            fault: None,
            is_kept: false,
        }
    }

    /// Prints for the reader of `paper`; for a program words are not printed as they come.
    pub(crate) fn onto(paper: &CliOutput) -> Self {
        let mut answer = Self::new(UndoForm::Shell);
        answer.paper.json = paper.json;
        answer.shows_thoughts &= !paper.json;
        answer
    }

    /// Listens to a conversation in `found` from now on.
    pub(crate) fn begin(&mut self, found: &ResolvedAddress) {
        self.found = Some(found.clone());
    }

    /// The thread's name on the command line, once it is known.
    pub(crate) fn name(&self) -> Option<String> {
        self.found.as_ref().map(change::name)
    }

    /// Hears news.
    pub(crate) fn take(&mut self, news: ExchangeEvent<'_>) {
        match news {
            ExchangeEvent::Fitted(fitted) => self.fitted(fitted),
            ExchangeEvent::Sent { .. } => self.line_end(),
            ExchangeEvent::Said(event) => self.said(event),
            ExchangeEvent::Waiting(waiting) => self.tell(&format!(
                "{}; trying again in {:.1} s ({} of {})",
                waiting.why,
                waiting.delay.as_secs_f64(),
                waiting.tries + 1,
                waiting.most
            )),
            ExchangeEvent::TooLarge { attempt, limit, .. } => {
                let limit = limit.map(|limit| format!(" (it takes {})", number(limit))).unwrap_or_default();
                self.tell(&format!(
                    "the request was too large for the model{limit}; smaller now, try {}",
                    attempt + 1
                ));
            }
            ExchangeEvent::Truncated { reported, expected } => self.tell(&format!(
                "the server read only {} of {} tokens and did not say so",
                number(reported),
                number(expected)
            )),
            ExchangeEvent::Trouble(error) => self.tell(&format!("the answer is there, but: {error}")),
            ExchangeEvent::Hint(hint) => self.hint(hint),
            _ => {}
        }
    }

    fn fitted(&mut self, fitted: &FitResult) {
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
                UndoForm::Slash => format!("/revert @{}", edit.seq),
                UndoForm::Shell => edit.undo.clone(),
            };
            self.tell(&format!("{}; undo: {undo}", edit_line(&edit)));
        }
    }

    fn hint(&mut self, hint: BudgetHint) {
        if hint.when == HintTime::BeforeEnd && hint.verdict.will_manage && self.undo == UndoForm::Slash {
            self.tell("the window is getting full: before the next request something will leave the view");
        }
    }

    fn said(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Text(text) => {
                self.end_thought();
                self.print(text);
            }
            ModelEvent::Reasoning(text) if self.shows_thoughts => {
                self.thinking = true;
                let text = self.paper.painted(Style::Dim, text);
                let _ = write!(io::stderr(), "{text}");
            }
            ModelEvent::Call { name, .. } => {
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
        let printed = self.paper.raw().write_all(cleaned.as_bytes()).map_err(OpFault::from);
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
        say(format!("⋯ {}", self.paper.ink(Style::Dim, text)));
    }

    /// Prints an answer that no model gave, and says so; says also of one that was cut.
    pub(crate) fn own_words(&mut self, answered: &AskResult) {
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
    pub(crate) fn end(&mut self) -> OpResult {
        self.end_thought();
        self.line_end();
        self.fault.take().map_or(Ok(()), Err)
    }
}

/// An answer that Ctrl-C stops.
pub(crate) struct StoppablePrinter<'a> {
    pub(crate) answer: AnswerPrinter,
    /// What went wrong with printing the whole of it.
    pub(crate) printed: OpResult,
    interrupt: &'a Interrupt,
    /// From the question on, until it is known what Ctrl-C stops: one that comes before that waits, so that the question is kept.
    starting: Option<InterruptGuard<'a>>,
    watch: Option<InterruptGuard<'a>>,
    /// Says where it is, as it begins.
    begun: Box<dyn Fn(&ResolvedAddress) + 'a>,
}

impl<'a> StoppablePrinter<'a> {
    /// `answer`, which `interrupt` stops.
    pub(crate) fn new(
        answer: AnswerPrinter,
        interrupt: &'a Interrupt,
        begun: impl Fn(&ResolvedAddress) + 'a,
    ) -> Self {
        Self { answer, printed: Ok(()), interrupt, starting: None, watch: None, begun: Box::new(begun) }
    }
}

impl AskListener for StoppablePrinter<'_> {
    fn begun(&mut self, found: &ResolvedAddress) {
        self.starting = Some(self.interrupt.watch());
        (self.begun)(found);
        self.answer.begin(found);
    }

    fn kept(&mut self) {
        self.answer.is_kept = true;
    }

    fn news(&mut self, news: ExchangeEvent<'_>) {
        self.answer.take(news);
    }

    fn answered(&mut self, answered: &AskResult) {
        self.answer.own_words(answered);
        self.printed = self.answer.end();
    }

    fn cancel(&mut self) -> Cancel {
        // The watch before it ends first: it would take this one along.
        self.watch = None;
        let watch = self.starting.take().unwrap_or_else(|| self.interrupt.watch());
        let cancel = watch.cancel();
        self.watch = Some(watch);
        cancel
    }
}
