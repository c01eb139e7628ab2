//! `komado chat`: a conversation at the terminal, inside its window.
//!
//! The thread is open only while a question is answered: between questions any other command may change the session,
//! and everything a slash command does is done by the verb of the same name.

mod input;
pub(super) mod resume;

use super::ask::{AnswerPrinter, StoppablePrinter, UndoForm};
use super::read::{self, LogArgs, ShowArgs};
use crate::app::App;
use crate::cli_output::{Style, count, say};
use crate::pager::PagerOption;
use crate::render::Render;
use crate::render::sessions::at_home;
use crate::render::window::short_gauge;
use crate::signals::Interrupt;
use input::{ChatInput, TypedLine};
use komado_core::session::MetaConfig;
use komado_core::session::is_address;
use komado_core::suggest::nearest_name;
use komado_core::{Address, Kind, Seq, SessionId};
use komado_engine::Thread;
use komado_engine::engine::ResolvedAddress;
use komado_engine::model::ModelChoice;
use komado_ops::address::{AtEntry, AtMoment, Target};
use komado_ops::ask::{Beginning, Conversation};
use komado_ops::choice::ModelArgs;
use komado_ops::edit::{Pin, Revert, Rewind, Unpin};
use komado_ops::recall::RecallSearch;
use komado_ops::window::{ReadContext, condense_now};
use komado_ops::{FaultKind, OpFault, OpResult};
use komado_provider::provider::shown;
use komado_store::OpenMode;
use std::ops::{Deref, DerefMut};

/// Cells of the gauge in the prompt.
const CELLS: usize = 10;
/// Conversations that /sessions lists.
const LISTED: usize = 10;

#[derive(clap::Args, Debug)]
pub(crate) struct ChatArgs {
    /// The session, or SESSION/THREAD; a new one when left out
    #[arg(conflicts_with = "go_on")]
    address: Option<Address>,
    /// Go on with the latest conversation begun in the working folder
    #[arg(short = 'c', long = "continue")]
    go_on: bool,
    #[command(flatten)]
    model: ModelArgs,
    #[command(flatten)]
    beginning: Beginning,
}

pub(crate) fn chat(app: &mut App, args: ChatArgs) -> OpResult {
    if app.paper.json {
        return Err(OpFault::usage("chat is for people; `komado ask --json` is for programs"));
    }
    let at = match args.go_on {
        true => Some(at_session(&resume::latest(app)?)),
        false => args.address.as_ref().map(Target::from),
    };
    let is_new = at.is_none();
    let talk = Conversation::open(&app.context, at, args.model.into(), args.beginning.clone())?;
    let mut talk = Chat { talk, beginning: args.beginning, listed: Vec::new() };
    let mut input = ChatInput::new(app.context.files.as_ref().map(|_| app.context.config.base_dir.clone()));
    match is_new {
        true => talk.greet(),
        false => talk.take_up(app)?,
    }
    if is_new {
        app.kept_in().iter().for_each(|place| say(format!("sessions are in {}", at_home(place))));
    }
    if input.is_terminal() {
        say("/help lists the commands; Ctrl-C stops an answer, Ctrl-D ends");
    }
    let interrupt = Interrupt::listen();
    let (mut asked, mut lost) = (0u64, 0u64);
    loop {
        let (raw, styled) = prompt(app, &talk)?;
        let next = match input.next(&raw, &styled)? {
            TypedLine::Nothing => continue,
            TypedLine::End => break,
            TypedLine::Line(line) => step(app, &mut talk, &line),
        };
        match next {
            Ok(NextStep::Listen) => {}
            Ok(NextStep::Ask(question)) => {
                asked += 1;
                lost += u64::from(!ask(app, &mut talk, &interrupt, question)?);
            }
            Ok(NextStep::End) => break,
            Err(fault) if fault.is_gone() => return Err(fault),
            Err(fault) => drop(crate::cli_output::report(&fault, false)),
        }
        app.paper.flush()?;
    }
    input.keep();
    if !talk.is_unmade() {
        say(format!("go on with: komado chat {}{}", talk.name(), talk.address_options()));
    }
    if lost > 0 && !input.is_terminal() {
        let message = format!("{lost} of {} brought no answer", count(asked, "question"));
        return Err(OpFault::new(FaultKind::Failed, message));
    }
    Ok(())
}

/// A conversation at the terminal.
struct Chat {
    talk: Conversation,
    /// What stands before a new one.
    beginning: Beginning,
    /// The sessions that were listed last, by which a number is understood.
    listed: Vec<SessionId>,
}

impl Deref for Chat {
    type Target = Conversation;

    fn deref(&self) -> &Conversation {
        &self.talk
    }
}

impl DerefMut for Chat {
    fn deref_mut(&mut self) -> &mut Conversation {
        &mut self.talk
    }
}

impl Chat {
    /// Says where it is, and who is asked.
    fn greet(&self) {
        say(format!("{} · {}", self.name(), self.model));
    }

    /// What has to be said again of where the provider listens: a session knows the name of one that has a name, and nothing more.
    fn address_options(&self) -> String {
        let provider = &self.model.asking.provider.name;
        match &self.choice.base_url {
            Some(url) if !is_address(provider) => format!(" --provider {provider} --base-url {}", shown(url)),
            _ => String::new(),
        }
    }

    /// The same, and what was said last.
    fn take_up(&self, app: &App) -> OpResult {
        let thread = app.context.engine.open(&self.found.session, &self.found.thread, OpenMode::Read)?;
        resume::tell(&app.paper, &resume::exchanges(&app.paper, &thread)?);
        self.greet();
        Ok(())
    }

    /// Goes on elsewhere: in a new session, or where `at` says. Where that cannot be, the conversation stays where it is.
    fn change(&mut self, app: &App, at: Option<Target>) -> OpResult {
        let is_new = at.is_none();
        let beginning = if is_new { self.beginning.clone() } else { Beginning::default() };
        self.talk = Conversation::open(&app.context, at, self.choice.clone(), beginning)?;
        if is_new {
            self.greet();
            return Ok(());
        }
        self.take_up(app)
    }

    /// Lists conversations that can go on, or goes on with one of them.
    fn sessions(&mut self, app: &mut App, number: &str) -> OpResult {
        if number.is_empty() {
            let recent = resume::recent(app, LISTED)?;
            let lines = resume::lines(app, &recent, &self.found.session);
            self.listed =
                recent.into_iter().map(|one| SessionId::new(one.meta.uuid)).collect::<Result<_, _>>()?;
            lines.iter().try_for_each(|line| app.paper.fit(line))?;
            say(match lines.is_empty() {
                true => "no other conversation can go on",
                false => "/sessions N goes on with one; `komado sessions` lists all",
            });
            return Ok(());
        }
        let wrong = |why: &str| {
            OpFault::usage(format!("/sessions takes a number from its list, not {number:?}; {why}"))
        };
        let n: usize = number.parse().map_err(|_| wrong("/open ID takes an id"))?;
        if self.listed.is_empty() {
            let recent = resume::recent(app, LISTED)?;
            self.listed =
                recent.into_iter().map(|one| SessionId::new(one.meta.uuid)).collect::<Result<_, _>>()?;
        }
        let found = n
            .checked_sub(1)
            .and_then(|n| self.listed.get(n))
            .ok_or_else(|| wrong(&format!("there are {}", self.listed.len())))?;
        let at = at_session(found);
        self.change(app, Some(at))
    }
}

/// The root thread of a session.
fn at_session(session: &SessionId) -> Target {
    Target { session: Some(session.to_string()), ..Target::default() }
}

/// What one line asks for.
fn step(app: &mut App, talk: &mut Chat, line: &str) -> OpResult<NextStep> {
    match SlashCommand::parse(line) {
        None => Ok(NextStep::Ask(Some(line.trim_start_matches(' ').to_owned()))),
        Some(command) => command?.run(app, talk),
    }
}

/// Asks, and prints the answer; false when there was none. The conversation goes on all the same.
fn ask(
    app: &mut App,
    talk: &mut Conversation,
    interrupt: &Interrupt,
    question: Option<String>,
) -> OpResult<bool> {
    let mut listener = StoppablePrinter::new(AnswerPrinter::new(UndoForm::Slash), interrupt, |_| ());
    match talk.ask(&app.context, question, &mut listener) {
        Ok(answered) => {
            listener.printed?;
            answered.text(&mut app.paper)?;
            Ok(true)
        }
        Err(fault) if fault.is_gone() => Err(fault),
        Err(fault) => {
            listener.answer.end()?;
            let _ = crate::cli_output::report(&fault, false);
            if listener.answer.is_kept {
                say("komado: what you said is kept; /again asks once more, /rewind takes it back");
            }
            Ok(false)
        }
    }
}

/// The prompt: how full the window is. Plain, and in colour.
fn prompt(app: &App, talk: &Conversation) -> OpResult<(String, String)> {
    if talk.is_unmade() {
        let raw = short_gauge(0, 1, CELLS);
        return Ok((format!("{raw} ❯ "), format!("{} ❯ ", app.paper.painted(Style::Green, &raw))));
    }
    let thread = app.context.engine.open(&talk.found.session, &talk.found.thread, OpenMode::Read)?;
    let budget = app.models().budget(&thread, &talk.model)?;
    let tokens = thread.view().tokens();
    let raw = short_gauge(tokens, budget.room + budget.above, CELLS);
    let ink = match tokens {
        n if n > budget.usable => Style::Red,
        n if n >= budget.act_at => Style::Yellow,
        _ => Style::Green,
    };
    Ok((format!("{raw} ❯ "), format!("{} ❯ ", app.paper.painted(ink, &raw))))
}

/// Every slash command, which is the verb of the same name on the session at hand: name, what follows it, what it does.
const COMMANDS: [(&str, &str, &str); 17] = [
    ("/context", "", "draw the window and what fills it"),
    ("/rewind", "[N | @SEQ]", "take the last N questions back (1), or go back to a moment"),
    ("/revert", "[@SEQ]", "undo an edit: the last one, or the one named"),
    ("/pin", "[@SEQ]", "keep a message in the view: the last one, or the one named"),
    ("/unpin", "[@SEQ]", "take a pin back"),
    ("/recall", "WORDS", "find again what was said"),
    ("/condense", "", "put a summary in place of what is old, now"),
    ("/show", "", "print what the model sees"),
    ("/log", "[N]", "list the last entries of the journal (20)"),
    ("/model", "[NAME]", "ask another model from now on, or say which one is asked"),
    ("/new", "", "begin a new session"),
    ("/sessions", "[N]", "list the last conversations, or go on with one of them"),
    ("/open", "ID", "go on with another session, or SESSION/THREAD"),
    ("/again", "", "ask once more without saying anything new"),
    ("/help", "", "list these"),
    ("/quit", "", "end; so does Ctrl-D"),
    ("/exit", "", "the same"),
];

/// A command, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
struct SlashCommand {
    name: &'static str,
    rest: String,
}

/// What is to be done after a line.
enum NextStep {
    /// Ask the model; with a new question, or without one.
    Ask(Option<String>),
    /// Wait for the next line.
    Listen,
    /// End.
    End,
}

/// The commands that begin with what was typed.
fn complete(typed: &str) -> Vec<String> {
    let fits = COMMANDS.iter().filter(|(name, ..)| typed.starts_with('/') && name.starts_with(typed));
    fits.map(|(name, rest, _)| if rest.is_empty() { (*name).to_owned() } else { format!("{name} ") })
        .collect()
}

impl SlashCommand {
    /// The command that a line is; `None` for what is to be said to the model.
    fn parse(line: &str) -> Option<OpResult<Self>> {
        let line = line.trim_end();
        if !line.starts_with('/') {
            return None;
        }
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let known = COMMANDS.iter().find(|(known, ..)| *known == name);
        Some(match known {
            Some((name, ..)) => Ok(Self { name, rest: rest.trim().to_owned() }),
            None => {
                let near = nearest_name(name, COMMANDS.iter().map(|(name, ..)| *name));
                let hint = near.map_or("/help lists them".to_owned(), |near| format!("did you mean {near}?"));
                Err(OpFault::usage(format!(
                    "there is no command {name}: {hint} (nothing was sent; a message that begins with / needs a space before it)"
                )))
            }
        })
    }

    /// Does it.
    fn run(&self, app: &mut App, talk: &mut Chat) -> OpResult<NextStep> {
        match self.name {
            "/quit" | "/exit" => return Ok(NextStep::End),
            "/again" => return Ok(NextStep::Ask(None)),
            "/help" => help(app)?,
            "/new" => talk.change(app, None)?,
            "/sessions" => talk.sessions(app, &self.rest)?,
            "/open" if self.rest.is_empty() => {
                return Err(OpFault::usage("say which session: /open ID; /sessions lists the last ones"));
            }
            "/open" => {
                let address: Address = self.rest.parse().map_err(OpFault::from)?;
                talk.change(app, Some(Target::from(&address)))?;
            }
            "/model" => self.model(app, talk)?,
            // What stands before the first word can be looked at, too.
            _ if talk.is_unmade() => {
                talk.make(&app.context)?;
                return self.run(app, talk);
            }
            "/condense" => {
                let budget = |thread: &Thread<'_>| Ok(app.models().budget(thread, &talk.model)?);
                let written = condense_now(&app.context, &talk.found, budget, &talk.choice)?;
                written.fitted.text(&mut app.paper)?;
            }
            "/context" => {
                let window = u32::try_from(talk.model.window.tokens).ok();
                app.show(ReadContext { at: moment(talk), window })?;
            }
            "/show" => {
                let pager = PagerOption { no_pager: true };
                read::show(app, ShowArgs { at: moment(talk), full: false, brief: true, pager })?;
            }
            "/log" => {
                let last = match self.rest.as_str() {
                    "" => 20,
                    given => given.parse().map_err(|_| {
                        OpFault::usage(format!("/log takes a number of entries, not {given:?}"))
                    })?,
                };
                read::log(app, LogArgs::last(&talk.found, last))?;
            }
            "/recall" if self.rest.is_empty() => {
                return Err(OpFault::usage("say what to look for: /recall WORDS"));
            }
            "/recall" => {
                let search =
                    RecallSearch { query: self.rest.clone(), limit: Some(5), ..RecallSearch::default() };
                read::in_session(app, moment(talk), search)?;
            }
            verb => {
                let AtMoment { session, thread, .. } = moment(talk);
                let at = AtEntry { session, thread, seq: self.seq(app, talk)? };
                match verb {
                    "/rewind" => app.show(Rewind { at })?,
                    "/revert" => app.show(Revert { at })?,
                    "/unpin" => app.show(Unpin { at })?,
                    _ => app.show(Pin { at })?,
                }
            }
        }
        Ok(NextStep::Listen)
    }

    /// The entry a command is about: the one named, or the one that is meant when none is.
    fn seq(&self, app: &App, talk: &Conversation) -> OpResult<Seq> {
        let wrong = || {
            let form = if self.name == "/rewind" { "a number of questions, or @SEQ" } else { "@SEQ" };
            OpFault::usage(format!("{} takes {form}, not {:?}; /log lists the entries", self.name, self.rest))
        };
        if let Some(seq) = self.rest.strip_prefix('@') {
            return seq.parse().map_err(|_| wrong());
        }
        let thread = app.context.engine.open(&talk.found.session, &talk.found.thread, OpenMode::Read)?;
        let (count, is_bare) = match self.rest.as_str() {
            "" => (1, true),
            number => (number.parse::<usize>().map_err(|_| wrong())?, false),
        };
        if self.name == "/rewind" {
            return before_questions(&thread, count);
        }
        if !is_bare {
            return Err(wrong());
        }
        let found = match self.name {
            "/revert" => thread.view().edits().last(),
            "/unpin" => thread.view().pins().last().map(|pin| pin.from),
            _ => messages(&thread, |kind| kind.is_item() && kind != Kind::Anchor).next().transpose()?,
        };
        let what = match self.name {
            "/revert" => "no edit is in force",
            "/unpin" => "nothing is pinned",
            _ => "nothing was said yet",
        };
        found.ok_or_else(|| {
            OpFault::new(FaultKind::Refused, format!("{what}: {} has nothing to do", self.name))
        })
    }

    fn model(&self, app: &App, talk: &mut Chat) -> OpResult {
        if !self.rest.is_empty() {
            let own = match talk.is_unmade() {
                true => MetaConfig::default(),
                false => app.context.session(&talk.found.session)?.meta.config,
            };
            // A window that was given was given for the model before.
            let choice = ModelChoice { model: Some(self.rest.clone()), window: None, ..talk.choice.clone() };
            let provider = talk.choice.provider.clone();
            // A key from the environment goes to a chosen address only when the provider was chosen, too.
            let is_at_home = talk.choice.base_url.is_none();
            let provider = provider.or_else(|| is_at_home.then(|| talk.model.asking.provider.name.clone()));
            let choice = ModelChoice { provider, ..choice };
            talk.model = app.models().of(&talk.found.session).resolve(&own, &choice)?;
            talk.choice = choice;
        }
        say(talk.model.to_string());
        Ok(())
    }
}

/// The thread at hand, as it is now.
fn moment(talk: &Conversation) -> AtMoment {
    let ResolvedAddress { session, thread, .. } = &talk.found;
    AtMoment { session: Some(session.to_string()), thread: Some(thread.to_string()), seq: None }
}

fn help(app: &mut App) -> OpResult {
    for (name, rest, about) in COMMANDS {
        app.paper.line(format!("{:<22} {about}", format!("{name} {rest}")))?;
    }
    app.paper
        .line("A line that ends with \\ goes on in the next; everything between two \"\"\" is one message.")
}

/// Messages on the path to now, the newest first.
fn messages<'a>(
    thread: &'a Thread<'_>,
    of: impl Fn(Kind) -> bool + 'a,
) -> impl Iterator<Item = OpResult<Seq>> + 'a {
    thread.back().filter_map(move |found| match found {
        Ok((seq, head)) => of(head.kind).then_some(Ok(seq)),
        Err(error) => Some(Err(error.into())),
    })
}

/// The moment before the last `count` questions.
fn before_questions(thread: &Thread<'_>, count: usize) -> OpResult<Seq> {
    let said = messages(thread, |kind| kind == Kind::User).take(count).collect::<OpResult<Vec<Seq>>>()?;
    match said.last() {
        Some(seq) if said.len() == count => Ok(seq - 1),
        _ => Err(OpFault::new(
            FaultKind::Refused,
            format!(
                "{} cannot be taken back: there is no more than {}",
                crate::cli_output::count(count as u64, "question"),
                said.len()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_and_only_names() {
        assert_eq!(complete("/re"), ["/rewind ", "/revert ", "/recall "]);
        assert_eq!(complete("/s"), ["/show", "/sessions "]);
        assert_eq!(complete("/q"), ["/quit"]);
        assert!(complete("").is_empty() && complete("re").is_empty() && complete("/zz").is_empty());
    }

    #[test]
    fn what_does_not_begin_with_a_slash_is_said_and_a_misspelling_is_not() {
        assert!(SlashCommand::parse("hello /pin").is_none() && SlashCommand::parse(" /usr/bin").is_none());
        let command = SlashCommand::parse("/rewind  @12 ").unwrap().unwrap();
        assert_eq!((command.name, command.rest.as_str()), ("/rewind", "@12"));
        assert!(SlashCommand::parse("/rewnd 1").unwrap().is_err());
    }
}
