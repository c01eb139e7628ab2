//! The agent: a script that follows from the number of the turn, a tool that reads files of this project, and the loop
//! that any program writes around the library.

use komado_provider::scripted::{Reply as Says, ToolCall};
use komado_sdk::{Edit, EditKind, Model, Reply, Seq, Session, Step};
use serde_json::{Value, json};

pub(super) const SYSTEM: &str = "You are a careful engineer. Read before you answer, and answer shortly.";
pub(super) const TOOLS: &str = r#"[{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object",
"properties": {"path": {"type": "string"}, "from": {"type": "integer"}, "to": {"type": "integer"}}}}}]"#;

/// What the user says: the first two once, the others again and again.
const QUESTIONS: [&str; 4] = [
    "Issue #1: why does a view of a million entries cost no more than one of ten? Begin with {path}.",
    "Next is {path}. And remember: sessions in tests are named after harbours, the first one is Otaru (小樽).",
    "{path} は初めて読む人には難しいです。要点を教えてください。",
    "What happens to the things in {path} after a rewind?",
];
const FILES: [(&str, &str); 4] = [
    ("view.rs", include_str!("../../../../core/src/view.rs")),
    ("admit.rs", include_str!("../../../../core/src/admit.rs")),
    ("ladder.rs", include_str!("../../../../core/src/ladder.rs")),
    ("openai.rs", include_str!("../../../../core/src/openai.rs")),
];

/// Turn `n`, counted from 0: what the user says before it, if anything, and what the model does.
pub(super) fn script(n: u32) -> (Option<String>, Step) {
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
    (asked, Step { reply, chunk: Some(200), ..Step::default() })
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

pub(super) type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// An agent at work in one thread.
pub(super) struct Agent<'k> {
    pub(super) chat: Session<'k>,
    /// Digests of everything that was said.
    said: Vec<(Seq, blake3::Hash)>,
}

impl<'k> Agent<'k> {
    pub(super) fn new(chat: Session<'k>) -> Self {
        Self { chat, said: Vec::new() }
    }

    /// One turn: what the user says, the model's answer, what its calls bring.
    pub(super) fn turn(&mut self, model: &Model, asked: Option<String>, step: Step) -> Result<Reply> {
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
    pub(super) fn turns(&mut self, model: &Model, turns: impl Iterator<Item = u32>) -> Result {
        for (asked, step) in turns.map(script) {
            if self.turn(model, asked, step)?.is_ours {
                return Err("a request was refused; this is a bug".into());
            }
        }
        Ok(())
    }

    /// The last edit of a kind that is in force.
    pub(super) fn edit(&self, kind: EditKind) -> Option<(Seq, Edit)> {
        self.chat.edits().rev().flatten().find(|(_, edit)| edit.kind == kind)
    }

    /// Reads everything back that was said, and counts it.
    pub(super) fn read_back(&self) -> Result<u64> {
        for (seq, said) in &self.said {
            if blake3::hash(self.chat.text(*seq)?.as_bytes()) != *said {
                return Err(format!("entry @{seq} is not what was said; this is a bug").into());
            }
        }
        Ok(self.said.len() as u64)
    }
}
