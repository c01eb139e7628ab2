//! Checks on real data that is not part of the project: `make check-data KOMADO_DATA=…`.
//!
//! Give it a folder with transcripts (`transcripts/*.jsonl`, OpenAI chat messages, one conversation per file) and odd
//! texts (`edge/`, any files). Token counts must equal a second, independent implementation; every conversation must go
//! in whole, come back word for word, and hold the laws; odd texts must survive or be refused with a reason.

use komado_core::message::Message;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Meter, Seq, SessionId, ThreadId, View, openai};
use komado_engine::{Clock, Engine};
use komado_store::{FileStore, Holder, OpenMode};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tiktoken_rs::{cl100k_base_singleton, o200k_base_singleton};

type Checked<T = ()> = Result<T, Box<dyn Error>>;

struct Noon;

impl Clock for Noon {
    fn now(&self) -> String {
        "2024-01-15T12:00:00.000000Z".into()
    }
}

#[derive(Default)]
struct Sums {
    counted: u64,
    miscounted: u64,
    messages: u64,
    interrupted: u64,
    refused: u64,
    odd_kept: u64,
    odd_refused: u64,
}

fn main() -> Checked {
    let data = std::env::args_os().nth(1).map(PathBuf::from).ok_or("usage: check_data FOLDER")?;
    let mut sums = Sums::default();
    let odd = files(&data.join("edge"))?;
    for path in &odd {
        compare(&String::from_utf8_lossy(&std::fs::read(path)?), &mut sums);
    }
    let talks = files(&data.join("transcripts"))?;
    let talks: Vec<_> =
        talks.into_iter().filter(|path| path.extension().is_some_and(|e| e == "jsonl")).collect();
    if talks.is_empty() {
        return Err(format!("no transcripts/*.jsonl in {}", data.display()).into());
    }
    let place = tempfile::tempdir()?;
    let engine = self::engine(&place.path().join("a"));
    let other = self::engine(&place.path().join("b"));
    for (n, path) in talks.iter().enumerate() {
        eprintln!("{:>4}/{} {}", n + 1, talks.len(), path.display());
        check_talk(&engine, &other, n, path, &mut sums).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    check_odd(&engine, &odd, &mut sums)?;
    report(&sums, talks.len(), odd.len())
}

fn engine(base: &Path) -> Engine {
    let holder = Holder { pid: 0, host: "here".into(), program: "check_data".into(), since: "now".into() };
    Engine::new(Arc::new(FileStore::new(base, holder)), Arc::new(Noon))
}

/// Every file below `folder`.
fn files(folder: &Path) -> Checked<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// Counts one text with both implementations and both vocabularies.
fn compare(text: &str, sums: &mut Sums) {
    let ours = [Meter::O200k.text(text), Meter::Cl100k.text(text)];
    let theirs =
        [o200k_base_singleton().encode_ordinary(text), cl100k_base_singleton().encode_ordinary(text)];
    for (ours, theirs) in ours.into_iter().zip(theirs) {
        sums.counted += 1;
        if ours != theirs.len() as u64 {
            sums.miscounted += 1;
            let start: String = text.chars().take(40).collect();
            eprintln!("counted {ours}, reference {}: {start:?}…", theirs.len());
        }
    }
}

fn meta(id: &str) -> Checked<Meta> {
    let task_key = TaskKey::local(&SessionId::new(id)?);
    let config = MetaConfig { meter: "o200k".into(), ..MetaConfig::default() };
    Ok(Meta {
        uuid: id.into(),
        task_key,
        created_at: Noon.now(),
        process_id: 0,
        hostname: "here".into(),
        config,
        user: None,
        queued: false,
    })
}

fn check_talk(engine: &Engine, other: &Engine, n: usize, path: &Path, sums: &mut Sums) -> Checked {
    let id = engine.create(&meta(&format!("talk-{n}"))?)?;
    // Word for word: nothing is to be shown in short.
    let mut thread = engine.open(&id, &ThreadId::root(), OpenMode::Write)?.clipping(None);
    let mut said: Vec<(Seq, Message)> = Vec::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let message = openai::read(line)?;
        compare(&message.words(), sums);
        sums.messages += 1;
        match thread.say(message.clone()) {
            Ok(seq) => said.push((seq, message)),
            Err(error) => {
                sums.refused += 1;
                eprintln!("     refused: {error}");
            }
        }
    }
    sums.interrupted += u64::from(thread.last()) - said.len() as u64;
    thread.settle()?;
    check_words(thread.view(), thread.source(), &said)?;
    check_pairs(thread.view(), thread.source())?;
    let whole = thread.view().items(thread.source())?;
    let half = thread.last() / 2;
    thread.rewind(half)?;
    if thread.view().items(thread.source())? != thread.view_at(half)?.items(thread.source())? {
        return Err("a rewind does not give the earlier view".into());
    }
    thread.rewind(thread.last() - 1)?;
    if thread.view().items(thread.source())? != whole {
        return Err("rewinding the rewind does not give the view back".into());
    }
    thread.settle()?;
    drop(thread);
    let mut export = Vec::new();
    engine.export(&id, &mut export, |_| {})?;
    let copy = other.import(&mut &export[..], None, |_| {})?;
    let mut again = Vec::new();
    other.export(&copy, &mut again, |_| {})?;
    if again == export { Ok(()) } else { Err("export, import, export changed bytes".into()) }
}

/// Every message that went in is shown, word for word.
fn check_words(view: &View, source: &dyn komado_store::Journal, said: &[(Seq, Message)]) -> Checked {
    let mut shown = BTreeMap::new();
    view.pour(source, &mut |seq: Seq, message: &Message| -> Result<(), komado_store::Error> {
        shown.insert(seq, message.words());
        Ok(())
    })?;
    for (seq, message) in said {
        let place = match komado_core::head::EntrySource::record(source, *seq)?.entry {
            komado_core::Entry::Message(message, _) => message.replaces().unwrap_or(*seq),
            _ => *seq,
        };
        if shown.get(&place) != Some(&message.words()) {
            return Err(format!("@{seq} does not say what was said").into());
        }
    }
    Ok(())
}

/// No result without its call, no call without its result.
fn check_pairs(view: &View, source: &dyn komado_store::Journal) -> Checked {
    let mut open: Vec<String> = Vec::new();
    let mut wrong = None;
    view.pour(source, &mut |seq: Seq, message: &Message| -> Result<(), komado_store::Error> {
        match message.outcome() {
            Some(outcome) => match open.iter().position(|id| *id == outcome.call_id) {
                Some(i) => drop(open.remove(i)),
                None => wrong = Some(format!("@{seq} answers no call")),
            },
            None if !open.is_empty() => wrong = Some(format!("@{seq} speaks while calls wait")),
            None => open = message.calls().map(|call| call.id.clone()).collect(),
        }
        Ok(())
    })?;
    wrong.map_or(Ok(()), |why| Err(why.into()))
}

/// Odd bytes as a line of JSON, and as the words of a message.
fn check_odd(engine: &Engine, odd: &[PathBuf], sums: &mut Sums) -> Checked {
    let id = engine.create(&meta("odd")?)?;
    let mut thread = engine.open(&id, &ThreadId::root(), OpenMode::Write)?;
    for path in odd {
        let bytes = std::fs::read(path)?;
        match std::str::from_utf8(&bytes).map(openai::read) {
            Ok(Ok(_)) => sums.odd_kept += 1,
            _ => sums.odd_refused += 1,
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        for piece in text.lines().chain([text.as_str()]) {
            let seq = thread.say(Message::text(komado_core::Role::User, piece))?;
            let komado_core::Entry::Message(back, _) = thread.record(seq)?.entry else {
                return Err(format!("{}: @{seq} is no message", path.display()).into());
            };
            if back.words() != piece {
                return Err(format!("{}: @{seq} lost something", path.display()).into());
            }
            sums.odd_kept += 1;
        }
    }
    Ok(thread.settle()?)
}

fn report(sums: &Sums, talks: usize, odd: usize) -> Checked {
    println!("conversations           {talks}");
    println!("messages                {}", sums.messages);
    println!("calls never answered    {} (a result says so)", sums.interrupted);
    println!("messages refused        {}", sums.refused);
    println!(
        "odd files               {odd}: {} texts kept, {} lines refused",
        sums.odd_kept, sums.odd_refused
    );
    println!("token counts compared   {}, different: {}", sums.counted, sums.miscounted);
    if sums.miscounted > 0 { Err("token counts differ from the reference".into()) } else { Ok(()) }
}
