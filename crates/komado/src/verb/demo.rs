//! `komado dev demo`: a long coding session in a small window, told in six moments, without a key or a network.
//! It embeds the library (`komado-sdk`), and can be read as an example. The words are scripted. The folder is real, and so
//! are the requests over HTTP and the server that counts them and refuses what is too large.

use super::trust::command;
use crate::app::App;
use crate::cli_output::{CliOutput, Style, count, number, text_of};
use crate::render::journal::wrap;
use crate::render::window::gauge;
use komado_core::view::ViewWeight;
use komado_ops::choice::tokens;
use komado_ops::{FaultKind, OpFault, OpResult};
use komado_provider::scripted::{ScriptedReply as Says, ToolCall};
use komado_sdk::{Edit, EditKind, Entry, Komado, Model, Record, Reply, ScriptStep, Seq, Session};
use serde_json::{Value, json};
use std::io::{IsTerminal, stdout};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub(crate) struct DemoArgs {
    /// Requests to the model
    #[arg(long, value_name = "N", default_value_t = 240, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    turns: u32,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", default_value = "16000", value_parser = tokens::<u32>(4_000))]
    window: u32,
    /// Do not pause between turns
    #[arg(long)]
    fast: bool,
    /// Keep the session in this folder instead of the usual one
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub(crate) fn demo(app: &mut App, args: DemoArgs) -> OpResult {
    let base = match &args.keep {
        Some(dir) => std::path::absolute(dir)?,
        None if app.files.is_some() => app.claim().map(|()| app.config.base_dir.clone())?,
        None => return Err(OpFault::usage("the demo leaves a folder behind: set store.url to file:")),
    };
    let user = app.config.user.clone().unwrap_or_else(|| "demo".into());
    play(&mut app.paper, &args, &base, &user).map_err(|error| {
        let exit =
            error.downcast_ref().map_or(FaultKind::Failed, |error: &komado_sdk::Error| error.kind().into());
        error.downcast::<OpFault>().map_or_else(|error| OpFault::new(exit, error.to_string()), |fault| *fault)
    })
}

/// A session is made, talked in, changed and ended.
fn play(paper: &mut CliOutput, args: &DemoArgs, base: &Path, user: &str) -> Result {
    let komado = Komado::open(base)?;
    let mut names = std::iter::once("demo".to_owned()).chain((2..).map(|n| format!("demo-{n}")));
    let name = names.find(|name| komado.session(name).read().is_err()).unwrap_or_default();
    let session = komado.session(&name).window(args.window).user(user).task("github:komado/demo/issue/1");
    let agent = DemoAgent::new(session.system(SYSTEM).tools(TOOLS).open()?);
    let mut model = Model::scripted();
    model.settings().overflow_tries = 0; // What is refused is to be seen, not sent again.
    let mut demo = Demo {
        args,
        screen: DemoScreen::new(paper, args.fast),
        agent,
        model,
        turn: 0,
        refused_without: None,
    };
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
    args: &'p DemoArgs,
    screen: DemoScreen<'p>,
    agent: DemoAgent<'k>,
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
        let mut whole = DemoAgent::new(session.open()?);
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
        let mut child = DemoAgent::new(agent.chat.child("Which files are the longest?")?);
        // Turns that the session itself does not play.
        let first = args.turns.next_multiple_of(5);
        child.turns(model, first..first + few)?;
        child.read_back()?;
        let shares = child.chat.thread().shares(args.window.into())?;
        let (own, said) = (number(shares.map_or(0, |shares| shares.own)), number(child.chat.cost()?.said));
        agent.chat.end_child(child.chat, Some("openai.rs, then admit.rs"))?;
        let told = number(agent.chat.tokens() - before);
        screen.tell("child", format!("{own} of the window: {said} tokens were said, {told} tell of it."))?;
        let at = agent.chat.last();
        let mut fork = DemoAgent::new(agent.chat.fork(at, "another-way")?);
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
            (format!("{komado} session resume {name}"), "open it again, to revert, rewind, fork"),
        ] {
            self.screen.line(format!("  {line:<32} # {what}"))?;
        }
        Ok(())
    }
}

fn change(before: u64, after: u64) -> String {
    format!("{} → {} tokens", number(before), number(after))
}

const SYSTEM: &str = "You are a careful engineer. Read before you answer, and answer shortly.";
const TOOLS: &str = r#"[{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object",
"properties": {"path": {"type": "string"}, "from": {"type": "integer"}, "to": {"type": "integer"}}}}}]"#;

/// What the user says: the first two once, the others again and again.
const QUESTIONS: [&str; 4] = [
    "Issue #1: why does a view of a million entries cost no more than one of ten? Begin with {path}.",
    "Next is {path}. And remember: sessions in tests are named after harbours, the first one is Otaru (小樽).",
    "{path} は初めて読む人には難しいです。要点を教えてください。",
    "What happens to the things in {path} after a rewind?",
];
const FILES: [(&str, &str); 4] = [
    ("view.rs", include_str!("../../../core/src/view.rs")),
    ("admit.rs", include_str!("../../../core/src/admit.rs")),
    ("ladder.rs", include_str!("../../../core/src/ladder.rs")),
    ("openai.rs", include_str!("../../../core/src/openai.rs")),
];

/// Turn `n`, counted from 0: what the user says before it, if anything, and what the model does.
fn script(n: u32) -> (Option<String>, ScriptStep) {
    let round = n as usize / 5;
    let [(path, _), (other, _)] = [round, round * 3 + 1].map(|at| FILES[at % FILES.len()]);
    let from = round * 17 % 120 + 1;
    let part = |path: &str| json!({"path": path, "from": from, "to": from + 60});
    let (text, calls) = match n % 5 {
        0 => (format!("I look into {path} first."), vec![part(path)]),
        1 => (format!("Now I read {path} as a whole."), vec![json!({ "path": path })]),
        2 => (format!("And {path} beside {other}."), vec![part(path), part(other)]),
        3 => ("Is there another one?".to_owned(), vec![part(&path.replace(".rs", "s.rs"))]),
        _ => (format!("In {path} only what is changed costs anything; the rest is not read again."), vec![]),
    };
    let call = |args: Value| ToolCall { id: None, name: "read_file".into(), arguments: args.to_string() };
    let reply = Says { text, calls: calls.into_iter().map(call).collect(), ..Says::default() };
    let question = QUESTIONS[if round < 2 { round } else { 2 + round % 2 }];
    let asked = n.is_multiple_of(5).then(|| question.replace("{path}", path));
    (asked, ScriptStep { reply, chunk: Some(200), ..ScriptStep::default() })
}

/// The tool: what it brings, or what went wrong.
fn read_file(arguments: &str) -> std::result::Result<String, String> {
    let asked: Value = serde_json::from_str(arguments).map_err(|why| why.to_string())?;
    let file = FILES.iter().find(|(path, _)| asked["path"] == *path);
    let (_, file) = file.ok_or_else(|| format!("{}: no such file", asked["path"]))?;
    let [from, to] = [("from", 1), ("to", u64::MAX)].map(|(key, usual)| asked[key].as_u64().unwrap_or(usual));
    let lines = (1..).zip(file.lines()).filter(|(n, _)| (from..=to).contains(n));
    Ok(lines.map(|(n, line)| format!("{n:>4} {line}\n")).collect())
}

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// An agent at work in one thread.
struct DemoAgent<'k> {
    chat: Session<'k>,
    /// Digests of everything that was said.
    said: Vec<(Seq, blake3::Hash)>,
}

impl<'k> DemoAgent<'k> {
    fn new(chat: Session<'k>) -> Self {
        Self { chat, said: Vec::new() }
    }

    /// One turn: what the user says, the model's answer, what its calls bring.
    fn turn(&mut self, model: &Model, asked: Option<String>, step: ScriptStep) -> Result<Reply> {
        if let Some(text) = asked {
            self.said.push((self.chat.user(&text)?, blake3::hash(text.as_bytes())));
        }
        model.add_step(step);
        let reply = self.chat.ask(model, |_| {})?;
        self.said.push((reply.seq, blake3::hash(self.chat.text(reply.seq)?.as_bytes())));
        for call in &reply.calls {
            let (seq, output) = match read_file(&call.arguments) {
                Ok(output) => (self.chat.tool_result(&call.id, &output)?, output),
                Err(why) => (self.chat.tool_error(&call.id, &why)?, why),
            };
            self.said.push((seq, blake3::hash(output.as_bytes())));
        }
        self.chat.fit()?;
        Ok(reply)
    }

    /// Some turns of the script.
    fn turns(&mut self, model: &Model, turns: impl Iterator<Item = u32>) -> Result {
        for (asked, step) in turns.map(script) {
            if self.turn(model, asked, step)?.is_ours {
                return Err("a request was refused; this is a bug".into());
            }
        }
        Ok(())
    }

    /// The last edit of a kind that is in force.
    fn edit(&self, kind: EditKind) -> Option<(Seq, Edit)> {
        self.chat.edits().rev().flatten().find(|(_, edit)| edit.kind == kind)
    }

    /// Reads everything back that was said, and counts it.
    fn read_back(&self) -> Result<u64> {
        for (seq, said) in &self.said {
            if blake3::hash(self.chat.text(*seq)?.as_bytes()) != *said {
                return Err(format!("entry @{seq} is not what was said; this is a bug").into());
            }
        }
        Ok(self.said.len() as u64)
    }
}

struct DemoScreen<'p> {
    paper: &'p mut CliOutput,
    /// How long a bar stays before the next is drawn over it; `None` where that cannot be done.
    pause: Option<Duration>,
    bar: Option<String>,
}

impl<'p> DemoScreen<'p> {
    fn new(paper: &'p mut CliOutput, is_fast: bool) -> Self {
        let pause = Duration::from_millis(if is_fast { 0 } else { 25 });
        Self { pause: (!paper.json && stdout().is_terminal()).then_some(pause), paper, bar: None }
    }

    /// The window after a turn.
    fn turn(&mut self, n: u32, weight: &ViewWeight, window: u32) -> Result {
        let cells = self.paper.width.saturating_sub(46).clamp(10, 60);
        let bar = gauge(self.paper, &weight.into(), Some(window), cells);
        let before = self.bar.replace(format!("  turn {n:>4} {bar}"));
        if let (Some(pause), Some(bar)) = (self.pause, &self.bar) {
            write!(self.paper.raw(), "{}", before.map_or("", |_| "\u{1b}[1A\u{1b}[J"))?;
            self.paper.line(bar)?;
            std::thread::sleep(pause);
        }
        Ok(())
    }

    /// A heading, and what is about to be seen.
    fn moment(&mut self, title: &str, story: &str) -> Result {
        self.line("")?;
        self.line(self.paper.ink(Style::Bold, title))?;
        self.tell("", story)
    }

    /// A word, and what there is to say about it, below the bar as it was last.
    fn tell(&mut self, word: &str, text: impl AsRef<str>) -> Result {
        if let Some(bar) = self.bar.take().filter(|_| self.pause.is_none()) {
            self.line(bar)?;
        }
        let ink = if word == "refused" { Style::Red } else { Style::Cyan };
        let mut label = self.paper.ink(ink, &format!("  {word:<9} "));
        for (line, _) in wrap(text.as_ref(), &[], self.paper.width.saturating_sub(13)) {
            self.line(std::mem::replace(&mut label, " ".repeat(12)) + &line)?;
        }
        Ok(())
    }

    fn line(&mut self, text: impl AsRef<str>) -> Result {
        if self.paper.json { Ok(()) } else { Ok(self.paper.line(text)?) }
    }
}
