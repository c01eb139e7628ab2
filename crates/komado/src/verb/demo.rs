//! `komado demo`: a long coding session in a small window, told in six moments, without a key or a network.
//! It embeds the library (`komado-sdk`), and can be read as an example. The words are scripted. The folder is real, and so
//! are the requests over HTTP and the server that counts them and refuses what is too large.

mod agent;
mod screen;

use super::trust::command;
use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::{Paper, count, number, text_of};
use agent::{Agent, Result, SYSTEM, TOOLS, script};
use komado_sdk::{Edit, EditKind, Entry, Komado, Model, Record, Seq};
use screen::Screen;
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Requests to the model
    #[arg(long, value_name = "N", default_value_t = 240, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    turns: u32,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 16_000, value_parser = clap::value_parser!(u32).range(4_000..))]
    window: u32,
    /// Do not slow down for people who watch
    #[arg(long)]
    fast: bool,
    /// Keep the session in this folder instead of the usual one
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let base = match &args.keep {
        Some(dir) => std::path::absolute(dir)?,
        None if app.files.is_some() => app.claim().map(|()| app.config.base_dir.clone())?,
        None => return Err(Fault::usage("the demo leaves a folder behind: set store.url to file:")),
    };
    let user = app.config.user.clone().unwrap_or_else(|| "demo".into());
    play(&mut app.paper, &args, &base, &user).map_err(|error| {
        let exit = error.downcast_ref().map_or(Exit::Failed, |error: &komado_sdk::Error| error.kind().into());
        error.downcast::<Fault>().map_or_else(|error| Fault::new(exit, error.to_string()), |fault| *fault)
    })
}

/// A session is made, talked in, changed and ended.
fn play(paper: &mut Paper, args: &Args, base: &Path, user: &str) -> Result {
    let komado = Komado::open(base)?;
    let mut names = std::iter::once("demo".to_owned()).chain((2..).map(|n| format!("demo-{n}")));
    let name = names.find(|name| komado.session(name).read().is_err()).unwrap_or_default();
    let session = komado.session(&name).window(args.window).user(user).task("github:komado/demo/issue/1");
    let agent = Agent::new(session.system(SYSTEM).tools(TOOLS).open()?);
    let mut model = Model::scripted();
    model.settings().overflow_tries = 0; // What is refused is to be seen, not sent again.
    let mut demo =
        Demo { args, screen: Screen::new(paper, args.fast), agent, model, turn: 0, refused_without: None };
    let (turns, window) = (count(args.turns.into(), "turn"), number(args.window.into()));
    let title = format!("A coding agent at work: {turns} in a window of {window} tokens");
    let story = format!("Scripted words, real requests. Session {name} in {}", base.display());
    demo.screen.moment(&title, &story)?;
    demo.the_window_fills()?;
    demo.outputs_leave()?;
    demo.a_span_is_condensed()?;
    demo.what_is_hidden_comes_back()?;
    demo.work_beside()?;
    demo.the_end(&name, base)
}

struct Demo<'p, 'k> {
    args: &'p Args,
    screen: Screen<'p>,
    agent: Agent<'k>,
    model: Model,
    turn: u32,
    refused_without: Option<u32>,
}

impl Demo<'_, '_> {
    /// The next turn of the script; false when there is none.
    fn next(&mut self) -> Result<bool> {
        if self.turn == self.args.turns {
            return Ok(false);
        }
        self.agent.turns(&self.model, self.turn..self.turn + 1)?;
        self.turn += 1;
        self.screen.turn(self.turn, self.agent.chat.thread().view().weight(), self.args.window)?;
        Ok(true)
    }

    /// The next turns, until there is an edit of this kind.
    fn until(&mut self, kind: EditKind) -> Result<Option<(Seq, Edit)>> {
        while self.agent.edit(kind).is_none() && self.next()? {}
        Ok(self.agent.edit(kind))
    }

    fn the_window_fills(&mut self) -> Result {
        self.screen
            .moment("1/6 A long session begins", "The agent reads files. @N is entry N of its journal.")?;
        // Without Komado everything is sent. A session that believes in a window without end does the same.
        const WHOLE: &str = "(Here nothing is left out.)";
        let memory = Komado::in_memory();
        let session = memory.session("whole").window(u32::MAX).system(SYSTEM).tools(TOOLS);
        let mut whole = Agent::new(session.open()?);
        whole.chat.user(WHOLE)?;
        let model = self.model.clone().window(u32::MAX);
        while self.refused_without.is_none() && self.next()? {
            let (asked, step) = script(self.turn - 1);
            let reply = whole.turn(&model, asked, step.when_anywhere(WHOLE))?;
            self.refused_without = reply.is_ours.then_some(self.turn);
        }
        let [whole, tokens] = [whole.chat.cost()?.largest, self.agent.chat.tokens()].map(number);
        if let Some(turn) = self.refused_without {
            self.screen.tell("refused", format!("without Komado at turn {turn}: {whole} tokens."))?;
        }
        self.screen.tell("answered", format!("with Komado: the view has {tokens} tokens."))
    }

    fn outputs_leave(&mut self) -> Result {
        let story = "Long outputs are clipped at once; old ones leave to make room.";
        self.screen.moment("2/6 Outputs are clipped and trimmed", story)?;
        let trim = self.until(EditKind::Trim)?;
        let clipped = self.agent.chat.entries().flatten().find(|record| match &record.entry {
            Entry::Message(message, _) => message.outcome().is_some_and(|tool| tool.output_ref.is_some()),
            _ => false,
        });
        if let Some(Record { seq, .. }) = clipped {
            let lines = self.agent.chat.text(seq)?.lines().count();
            self.screen.tell("clip", format!("@{seq} has {lines} lines; its ends are shown."))?;
        }
        let Some((seq, edit)) = trim else { return Ok(()) };
        let (old, change) = (edit.replace.len(), change(edit.cause.before, edit.cause.after));
        self.screen.tell("trim", format!("@{seq} leaves out {}: {change}.", count(old as u64, "old output")))
    }

    fn a_span_is_condensed(&mut self) -> Result {
        let story = "Then a summary takes the place of old turns. It needs no model.";
        self.screen.moment("3/6 A span is condensed", story)?;
        let Some((seq, edit)) = self.until(EditKind::Condense)? else { return Ok(()) };
        let change = change(edit.cause.before, edit.cause.after);
        self.screen.tell("condense", format!("@{seq} shows a summary: {change}. It begins:"))?;
        let lines = edit.show.iter().flat_map(|show| show.text.lines()).filter(|line| !line.is_empty());
        lines.take(4).try_for_each(|line| self.screen.tell("", line))
    }

    fn what_is_hidden_comes_back(&mut self) -> Result {
        let story = "Every word is still on disk, and every edit can be undone.";
        self.screen.moment("4/6 What is hidden is found, and comes back", story)?;
        let found = self.agent.chat.recall("harbours")?.find(|found| found.hidden);
        let (Some(found), Some((edit, _))) = (found, self.agent.edit(EditKind::Condense)) else {
            return self.screen.tell("", "Nothing is hidden yet: that takes more turns.");
        };
        let (seq, before) = (found.seq, self.agent.chat.tokens());
        self.screen.tell("recall", format!("harbours: @{seq} is hidden. It says: {}", found.snippet.text))?;
        let revert = self.agent.chat.revert(edit)?;
        let change = change(before, self.agent.chat.tokens());
        self.screen.tell("revert", format!("@{revert} takes @{edit} back: {change}."))?;
        let pin = self.agent.chat.pin(seq)?;
        self.screen.tell("pin", format!("@{pin} keeps @{seq} from now on, whatever else leaves."))
    }

    fn work_beside(&mut self) -> Result {
        let story = "A child has its share of the window, a fork tries another way.";
        self.screen.moment("5/6 Work beside the session", story)?;
        let Self { args, screen, agent, model, .. } = self;
        agent.chat.fit()?;
        let (few, before) = ((args.turns / 20).max(1), agent.chat.tokens());
        let mut child = Agent::new(agent.chat.child("Which files are the longest?")?);
        child.turns(model, 0..few)?;
        child.read_back()?;
        let shares = child.chat.thread().shares(args.window.into())?;
        let (own, said) = (number(shares.map_or(0, |shares| shares.own)), number(child.chat.cost()?.said));
        agent.chat.end_child(child.chat, Some("openai.rs, then admit.rs"))?;
        let told = number(agent.chat.tokens() - before);
        screen.tell("child", format!("{own} of the window: {said} tokens were said, {told} tell of it."))?;
        let at = agent.chat.last();
        let mut fork = Agent::new(agent.chat.fork(at, "another-way")?);
        fork.turns(model, 7..7 + few)?;
        fork.read_back()?;
        screen.tell("fork", format!("{} from @{at} on, at no cost here.", count(few.into(), "turn")))?;
        agent.turns(model, 12..12 + few)?;
        let rewind = agent.chat.rewind(at)?;
        screen.tell("rewind", format!("@{rewind} goes back to @{at}: what was said since is hidden."))
    }

    fn the_end(mut self, name: &str, base: &Path) -> Result {
        self.screen.moment("6/6 What is on disk, and what it cost", "The session goes on to its end.")?;
        while self.next()? {}
        let (cost, messages) = (self.agent.chat.cost()?, self.agent.read_back()?);
        self.agent.chat.complete(Some("Every question is answered."))?;
        let (folder, paper) = (base.join("completed").join(name), &mut self.screen.paper);
        if paper.json {
            return Ok(paper.json(&json!({
                "session": name, "folder": text_of(&folder), "turns": self.turn, "window": self.args.window,
                "refused_without": self.refused_without, "messages": messages, "said_tokens": cost.said,
                "sent_tokens": cost.sent, "peak_tokens": cost.largest, "whole_tokens": cost.whole,
            }))?);
        }
        let [sent, whole, largest, messages] = [cost.sent, cost.whole, cost.largest, messages].map(number);
        let cached = 100 * cost.cached / cost.sent.max(1);
        self.screen.tell("sent", format!("{sent} tokens, at most {largest} at once; {cached} % cached."))?;
        self.screen.tell("whole", format!("{whole} tokens, had each request held everything."))?;
        self.screen.tell("on disk", format!("all {messages} messages, unchanged: {}", folder.display()))?;
        let program = std::env::args().next().unwrap_or_else(|| "komado".into());
        let is_named = self.args.keep.is_some() || std::env::args().any(|arg| arg.starts_with("--base-dir"));
        let komado = if is_named { command(&format!("{program} --base-dir"), base) } else { program };
        self.screen.moment("Look further", "")?;
        for (line, what) in [
            (format!("{komado} context {name}"), "the window, and what fills it"),
            (format!("{komado} show {name}"), "what the model saw last"),
            (format!("{komado} log {name} -n 30"), "the journal"),
            (format!("{komado} recall {name} harbours"), "find something"),
            (format!("{komado} thread tree {name}"), "the threads"),
            (format!("{komado} resume {name}"), "open it again, to revert, rewind, fork"),
        ] {
            self.screen.line(format!("  {line:<32} # {what}"))?;
        }
        Ok(())
    }
}

fn change(before: u64, after: u64) -> String {
    format!("{} → {} tokens", number(before), number(after))
}
