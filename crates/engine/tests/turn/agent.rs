//! An agent that knows only what it is shown, with windows that are little larger than its fixed prompt.
//!
//! A job is made from a seed: files that each hold a key at their beginning or end, a sum to be written, a check to be
//! run. The agent takes each step from the messages of the request that is about to leave, and from nothing else: a task
//! that it does not see cannot be done, a result that it does not see is asked for again. So a request that fits and tells
//! too little shows as a job that does not end.

use super::kit::{Talk, result};
use komado_core::journal::Setup;
use komado_core::message::{Message, Role};
use komado_core::raw::RawJson;
use komado_engine::condense::{ByDigest, CondenseSettings};
use komado_engine::fit::Ladder;
use komado_engine::{Error, Thread};
use komado_provider::Dialect;
use komado_provider::scripted::{ScriptStep, ScriptedOptions, ScriptedReply, ToolCall};
use komado_testkit::soak::times;
use std::collections::BTreeMap;

const SEED: u64 = 5_100;

/// A number from a seed: SplitMix64.
struct Chance(u64);

impl Chance {
    fn between(&mut self, from: u64, to: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        from + (z ^ (z >> 31)) % (to - from + 1)
    }
}

/// A job, and the window in which it is done.
struct Job {
    seed: u64,
    prompt: String,
    files: Vec<String>,
    keys: Vec<u64>,
    /// Files that are read in one step.
    at_once: usize,
    window: u64,
}

impl Job {
    fn of(seed: u64) -> Self {
        let mut chance = Chance(seed);
        let mut between = |from, to| chance.between(from, to);
        let lines = between(60, 220);
        let prompt =
            (0..lines).map(|n| format!("Rule {n}: keep module {} as it is.\n", n * 37 % 101)).collect();
        // A line of the prompt has about ten tokens.
        let fixed = lines * 10 + 60;
        let window = fixed * between(130, 400) / 100;
        let count = between(3, 9);
        let keys: Vec<u64> = (0..count).map(|_| between(100, 9_999)).collect();
        let files = (1..).zip(&keys).map(|(n, key)| {
            let size = window * between(1, 40) / 100 / 16;
            let mut lines: Vec<String> = (0..size)
                .map(|line| format!("log {n}.{line}: step took {} ms, all well", line * 7 % 911))
                .collect();
            let at = if between(0, 1) == 0 { 0 } else { lines.len() };
            lines.insert(at, format!("part_{n} key={key}"));
            lines.join("\n")
        });
        let files = files.collect();
        let at_once = usize::try_from(between(1, 3)).unwrap();
        Self { seed, prompt, files, keys, at_once, window }
    }

    fn task(&self) -> String {
        let count = self.files.len();
        format!("TASK: add the keys of part_1 to part_{count}, write the sum, run the check, and say DONE.")
    }

    fn setup(&self) -> Setup {
        let tool =
            |name: &str| format!(r#"{{"type":"function","function":{{"name":"{name}","parameters":{{}}}}}}"#);
        let tools = format!("[{},{},{}]", tool("read"), tool("write"), tool("check"));
        let tools = Some(RawJson::parse(tools).unwrap());
        Setup { system: Some(self.prompt.clone()), tools, params: None, dialect: Some("openai".into()) }
    }
}

/// What the agent does next.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Step {
    /// Notes, and calls of a tool, each with its argument.
    Call(String, &'static str, Vec<u64>),
    Say(&'static str),
}

/// The next step, from what is seen.
fn decide(seen: &[Message], at_once: usize) -> Step {
    let texts: Vec<String> = seen.iter().map(Message::words).collect();
    let users = seen.iter().zip(&texts).filter(|(message, _)| message.role == Role::User);
    let task = users.filter_map(|(_, text)| text.split_once("part_1 to part_")).next();
    let Some(count) = task.and_then(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok()) else {
        return Step::Say("What am I to do?");
    };
    let mut keys = BTreeMap::new();
    for word in texts.iter().flat_map(|text| text.split("part_").skip(1)) {
        if let Some((part, rest)) = word.split_once(" key=")
            && let Ok(part) = part.parse::<u64>()
            && let Ok(key) =
                rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().parse::<u64>()
        {
            keys.insert(part, key);
        }
    }
    let said = |what: &str| texts.iter().any(|text| text.lines().any(|line| line == what));
    let notes: Vec<String> = keys.iter().map(|(part, key)| format!("part_{part} key={key}")).collect();
    let notes = notes.join("; ");
    let missing: Vec<u64> = (1..=count).filter(|part| !keys.contains_key(part)).take(at_once).collect();
    if !missing.is_empty() {
        return Step::Call(notes, "read", missing);
    }
    let sum: u64 = keys.values().sum();
    if said("the check passed") {
        Step::Say("DONE")
    } else if said(&format!("{sum} is written")) || said("the check failed") {
        Step::Call(format!("{notes}\n{sum} is written"), "check", vec![0])
    } else {
        Step::Call(notes, "write", vec![sum])
    }
}

/// What the tools answer.
fn answer(job: &Job, written: &mut u64, tool: &str, argument: u64) -> String {
    match tool {
        "read" => job.files[usize::try_from(argument).unwrap() - 1].clone(),
        "write" => {
            *written = argument;
            format!("{argument} is written")
        }
        _ if *written == job.keys.iter().sum::<u64>() => "the check passed".into(),
        _ => "the check failed".into(),
    }
}

/// How a job ended.
#[derive(Clone, PartialEq, Eq, Debug)]
enum End {
    Done(u32),
    Lost(u32, &'static str),
    Refused(u32, String),
}

/// Everything that the next request says.
fn seen(thread: &Thread<'_>) -> Vec<Message> {
    let mut seen = Vec::new();
    let mut pour = |_, message: &Message| {
        seen.push(message.clone());
        Ok::<(), Error>(())
    };
    thread.view().pour_said(thread.source(), &mut pour).unwrap();
    seen
}

/// Does a job in a window, in no more requests than `most`.
fn work(job: &Job, window: u64, most: u32) -> End {
    let options = ScriptedOptions { window: Some(window), ..ScriptedOptions::default() };
    let talk = Talk::new(Dialect::Chat, window, options);
    let mut thread = talk.thread();
    thread.set_up(job.setup()).unwrap();
    thread.say(Message::text(Role::User, job.task())).unwrap();
    let mut written = 0;
    for request in 1..=most {
        let mut by = ByDigest::new(thread.meter());
        let mut ladder = Ladder { budget: talk.budget(), settings: CondenseSettings::default(), by: &mut by };
        if let Err(error) = thread.fit(&mut ladder) {
            return End::Refused(request, error.to_string());
        }
        let before = seen(&thread);
        let step = decide(&before, job.at_once);
        talk.server.add(scripted(&step));
        let (turned, _) = talk.turn(&mut thread);
        let turned = match turned {
            Ok(turned) => turned,
            Err(error) => return End::Refused(request, error.to_string()),
        };
        check_seen(&talk, &before);
        match step {
            Step::Say("DONE") => return End::Done(request),
            Step::Say(other) => return End::Lost(request, other),
            Step::Call(_, tool, arguments) => {
                let calls: Vec<String> = turned.message.calls().map(|call| call.id.clone()).collect();
                assert_eq!(calls.len(), arguments.len(), "the answer is not the agent's own");
                for (call, argument) in calls.iter().zip(arguments) {
                    thread.say(result(call, &answer(job, &mut written, tool, argument))).unwrap();
                }
            }
        }
    }
    End::Lost(most, "too many requests")
}

/// The step was taken from what the server was sent.
fn check_seen(talk: &Talk, before: &[Message]) {
    let body = String::from_utf8(talk.server.seen().pop().unwrap().body).unwrap();
    let sent = talk.asking.provider.dialect.read(&body).unwrap().messages;
    let words = |messages: &[Message]| messages.iter().map(Message::words).collect::<Vec<_>>();
    assert_eq!(words(&sent), words(before), "the agent decided on something else than what was sent");
}

fn scripted(step: &Step) -> ScriptStep {
    let (text, calls) = match step {
        Step::Say(text) => ((*text).to_owned(), Vec::new()),
        Step::Call(notes, tool, arguments) => {
            let call = |argument: &u64| ToolCall {
                id: None,
                name: (*tool).to_owned(),
                arguments: format!(r#"{{"of":{argument}}}"#),
            };
            (notes.clone(), arguments.iter().map(call).collect())
        }
    };
    ScriptStep { reply: ScriptedReply { text, calls, ..ScriptedReply::default() }, ..ScriptStep::default() }
}

#[test]
fn an_agent_that_knows_only_what_it_sees_ends_every_job_in_a_small_window() {
    let mut failed = Vec::new();
    let count = times(30, 300);
    for job in (SEED..SEED + count).map(Job::of) {
        let End::Done(alone) = work(&job, 1_000_000, 40) else {
            panic!("seed {}: it cannot be done", job.seed)
        };
        let most = alone + alone / 2;
        let end = work(&job, job.window, most);
        if !matches!(end, End::Done(_)) {
            failed.push(format!(
                "seed {}, window {}, {alone} requests without one: {end:?}",
                job.seed, job.window
            ));
        }
    }
    println!(
        "| agents that know only what they see, seeds from {SEED} on | {} of {count} jobs end |",
        count - failed.len() as u64
    );
    assert!(
        failed.is_empty(),
        "{} of {count} jobs from seed {SEED} on:\n{}",
        failed.len(),
        failed.join("\n")
    );
}
