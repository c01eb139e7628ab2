//! Many conversations at once that outgrow the window: nothing lost, nothing mixed, no error.

use super::Args;
use super::caller::{LoadClient, client};
use super::servers::GatewayServer;
use crate::context::BenchEngine;
use crate::dice::Dice;
use crate::error::{Error, Result};
use crate::place::opened;
use crate::words::BenchWords;
use komado_core::journal::Entry;
use komado_core::{SessionId, ThreadId};
use komado_engine::Engine;
use komado_provider::Client;
use komado_store::OpenMode;
use std::collections::HashSet;
use std::path::Path;

/// Bytes of filling in each question: about 300 tokens.
const FILLING: usize = 1_200;

/// What was seen.
#[derive(Default)]
pub(super) struct Load {
    pub(super) sessions: u32,
    pub(super) requests: u32,
    pub(super) edits: u32,
    /// Answers that were errors, or not the ones asked for.
    pub(super) wrong: Vec<String>,
    /// Requests that went through untouched because something of ours failed.
    pub(super) faults: Vec<String>,
    /// Messages that are missing in the journals, or stand in one of another conversation.
    pub(super) lost: u32,
    /// Journals that hold more or other messages than were said.
    pub(super) mixed: u32,
    pub(super) peak: u64,
    /// Requests that the model would have refused directly.
    pub(super) over_window: u32,
}

/// A conversation, when it is over.
struct Talk {
    session: Option<String>,
    said: Vec<String>,
    load: Load,
}

pub(super) fn measure(komado: &BenchEngine, folder: &Path, args: &Args) -> Result<Load> {
    let base = folder.join("load");
    let model = GatewayServer::model(komado, Some(args.window))?;
    let gateway = GatewayServer::gateway(komado, &base, &model.url)?;
    let client = client()?;
    let talks: Vec<Result<Talk>> = std::thread::scope(|scope| {
        let talks: Vec<_> = (0..args.sessions)
            .map(|n| {
                let (client, url) = (&client, gateway.url.as_str());
                scope.spawn(move || talk(client, url, n, args))
            })
            .collect();
        let failed = |_| Err(Error::failed("a caller's thread failed"));
        talks.into_iter().map(|talk| talk.join().unwrap_or_else(failed)).collect()
    });
    let peak = gateway.peak();
    drop(gateway);
    let mut load = Load { sessions: args.sessions, peak, ..Load::default() };
    let (_, engine) = opened(&base);
    let mut seen = HashSet::new();
    for talk in talks {
        let talk = talk?;
        if !talk.session.iter().all(|session| seen.insert(session.clone())) {
            load.mixed += 1;
        }
        compare(&engine, &talk, &mut load)?;
        load.add(talk.load);
    }
    Ok(load)
}

/// Every turn asks for words that no other client asks for.
fn talk(client: &Client, url: &str, n: u32, args: &Args) -> Result<Talk> {
    let mut caller = LoadClient::new(client, url, None);
    let mut dice = Dice::new(u64::from(n) + 1);
    let words = BenchWords::new();
    let (mut said, mut session, mut load) = (Vec::new(), None, Load::default());
    let mut bytes = 0;
    // The first words of all are the same: they must not be taken for one another.
    caller.say("user", "Hello. Let us begin.");
    said.push("Hello. Let us begin.".to_owned());
    for turn in 0..args.turns {
        if turn > 0 {
            let filling = format!("{n}.{turn} {}", words.text(&mut dice, FILLING));
            bytes += filling.len();
            for text in [filling, format!("repeat: answer {turn} of caller {n} です")] {
                caller.say("user", &text);
                said.push(text);
            }
        }
        load.over_window += u32::from(bytes / 4 > args.window as usize);
        let answer = caller.ask()?;
        load.requests += 1;
        load.edits += answer.edits;
        load.faults.extend(answer.fault);
        let wanted = format!("answer {turn} of caller {n} です");
        if answer.status != 200 || turn > 0 && answer.text.trim() != wanted {
            load.wrong.push(format!("caller {n}, turn {turn}: {} {}", answer.status, answer.text));
            break;
        }
        // As long as all have said the same, any of their sessions is any other's; the one that counts is the last.
        session = answer.session.or(session);
        caller.say("assistant", &answer.text);
        said.push(answer.text);
    }
    Ok(Talk { session, said, load })
}

/// The journal says what was said, in order, and nothing else.
fn compare(engine: &Engine, talk: &Talk, load: &mut Load) -> Result {
    let Some(session) = &talk.session else {
        load.lost += talk.said.len() as u32;
        return Ok(());
    };
    let thread = engine.open(&SessionId::new(session.as_str())?, &ThreadId::root(), OpenMode::Read)?;
    let mut journaled = Vec::new();
    for seq in (1..=thread.last()).filter(|seq| thread.view().on_path(*seq)) {
        if let Entry::Message(message, _) = thread.record(seq)?.entry {
            journaled.push(message.words());
        }
    }
    let missing = talk.said.iter().filter(|said| !journaled.contains(said)).count();
    load.lost += missing as u32;
    load.mixed += u32::from(missing == 0 && journaled != talk.said);
    Ok(())
}

impl Load {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.edits += other.edits;
        self.over_window += other.over_window;
        self.mixed += other.mixed;
        self.wrong.extend(other.wrong);
        self.faults.extend(other.faults);
    }

    /// A bench that finds something lost fails.
    pub(super) fn check(&self) -> Result {
        if self.lost + self.mixed == 0 && self.wrong.is_empty() && self.faults.is_empty() {
            return Ok(());
        }
        let first = self.wrong.first().or(self.faults.first()).cloned().unwrap_or_default();
        Err(Error::failed(format!(
            "{} messages lost, {} conversations mixed, {} wrong answers, {} faults: {first}",
            self.lost,
            self.mixed,
            self.wrong.len(),
            self.faults.len()
        )))
    }
}
