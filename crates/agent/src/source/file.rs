//! Tasks of a file or of what is piped in: JSON, or plain text as people write it.
//!
//! A task without a key is known by what it says, so that the same file can be added twice and is queued once.
//! A file is taken as a whole or not at all: the first thing that is wrong is named with its place.

use super::{Error, text};
use crate::task::Task;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The longest title in characters; what is longer stands in the text.
const MOST_TITLE: usize = 200;
/// The longest key, in bytes.
const MOST_KEY: usize = 200;
/// The fields of an object, all of them texts.
const FIELDS: [&str; 6] = ["title", "text", "user", "folder", "playbook", "key"];
/// Characters of something that is no text that are shown.
const SHOWN: usize = 40;
/// What stands between two tasks.
const BETWEEN: &str = "---";

/// A task as a file writes it.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Written {
    title: Option<String>,
    #[serde(default)]
    text: String,
    user: Option<String>,
    folder: Option<PathBuf>,
    playbook: Option<PathBuf>,
    key: Option<String>,
}

/// Tasks of a file. `name` says what it is: `.jsonl`, `.ndjson` and `.json` hold objects, one after the other or in an array;
/// `.md` and `.txt` hold text, as does anything else that does not begin like JSON. Texts are separated by lines of `---`, and the
/// first line of each is its title.
pub fn read(name: &str, text: &str) -> Result<Vec<Task>, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let written = if is_json(name, text) { objects(name, text)? } else { texts(name, text) };
    if written.is_empty() {
        return Err(bad(name, "there is no task in it"));
    }
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    let mut tasks = Vec::with_capacity(written.len());
    for (place, one) in written {
        let key = one.key.clone();
        tasks.push(task(one).map_err(|why| bad(&place, &why))?);
        let Some(key) = key else { continue };
        if let Some(earlier) = keys.insert(key.clone(), place.clone()) {
            return Err(bad(&place, &format!("the key {key:?} is taken already, at {earlier}")));
        }
    }
    Ok(tasks)
}

fn bad(place: &str, why: &str) -> Error {
    Error::BadTask { place: place.to_owned(), why: why.to_owned() }
}

fn is_json(name: &str, text: &str) -> bool {
    let end = name.rsplit_once('.').map(|(_, end)| end.to_lowercase());
    match end.as_deref() {
        Some("json" | "jsonl" | "ndjson") => true,
        Some("md" | "markdown" | "txt") => false,
        // An array of objects; `[x](y)` is how Markdown writes a link.
        _ => match text.trim_start().strip_prefix('[') {
            Some(rest) => rest.trim_start().starts_with(['{', ']']),
            None => text.trim_start().starts_with('{'),
        },
    }
}

/// Objects with their places.
fn objects(name: &str, text: &str) -> Result<Vec<(String, Written)>, Error> {
    let wrong = |error: serde_json::Error| {
        let why = error.to_string();
        let why = why.rsplit_once(" at line ").map_or(why.as_str(), |(why, _)| why);
        bad(&format!("{name}:{}", error.line()), why)
    };
    if text.trim_start().starts_with('[') {
        let all: Vec<Value> = serde_json::from_str(text).map_err(wrong)?;
        let places = (1..).map(|at| format!("{name}: task {at}"));
        return places.zip(all).map(|(place, one)| written(place, one)).collect();
    }
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let (mut all, mut line, mut read) = (Vec::new(), 1, 0);
    while let Some(one) = objects.next() {
        let one = one.map_err(wrong)?;
        let end = objects.byte_offset();
        let piece = &text[read..end];
        let before = piece.len() - piece.trim_start().len();
        line += piece[..before].matches('\n').count();
        all.push(written(format!("{name}:{line}"), one)?);
        line += piece[before..].matches('\n').count();
        read = end;
    }
    Ok(all)
}

/// What an object says, with its place. A field that is no text is named.
fn written(place: String, object: Value) -> Result<(String, Written), Error> {
    let is_text = |name: &str, value: &Value| value.is_string() || (value.is_null() && name != "text");
    let odd = FIELDS
        .into_iter()
        .find_map(|name| Some((name, object.get(name)?)).filter(|(_, value)| !is_text(name, value)));
    if let Some((name, value)) = odd {
        let value = value.to_string();
        let shown = text::head(&value, SHOWN);
        return Err(bad(&place, &format!("{name:?} is {shown}: write a text, in quotes")));
    }
    let read = serde_json::from_value(object).map_err(|why| bad(&place, &why.to_string()))?;
    Ok((place, read))
}

/// Texts with their places. A line of `---` in a block of code belongs to the code.
fn texts(name: &str, text: &str) -> Vec<(String, Written)> {
    let mut all = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    let (mut begin, mut fence) = (1, None);
    for (at, line) in text.lines().enumerate() {
        fence = fenced(line, fence);
        if fence.is_none() && line.trim_end() == BETWEEN {
            all.extend(one(begin, &lines));
            (begin, lines) = (at + 2, Vec::new());
        } else {
            lines.push(line);
        }
    }
    all.extend(one(begin, &lines));
    all.into_iter().map(|(line, one)| (format!("{name}:{line}"), one)).collect()
}

/// The fence that is open after `line`.
fn fenced(line: &str, open: Option<&'static str>) -> Option<&'static str> {
    let fence = ["```", "~~~"].into_iter().find(|fence| line.trim_start().starts_with(fence));
    match (open, fence) {
        (None, fence) => fence,
        (Some(open), Some(fence)) if open == fence => None,
        (open, _) => open,
    }
}

/// One text: its first line is the title.
fn one(begin: usize, lines: &[&str]) -> Option<(usize, Written)> {
    let first = lines.iter().position(|line| !line.trim().is_empty())?;
    let title = lines[first].trim();
    // `# Title`, but not `#12`, which is how people write of an issue.
    let heading = title.trim_start_matches('#').strip_prefix(' ').map(str::trim);
    let title = heading.filter(|heading| !heading.is_empty()).unwrap_or(title);
    let text = lines[first + 1..].join("\n").trim().to_owned();
    Some((begin + first, Written { title: Some(title.to_owned()), text, ..Written::default() }))
}

fn task(written: Written) -> Result<Task, String> {
    let Written { title, text, user, folder, playbook, key } = written;
    let (title, text) = titled(title, text)?;
    let task_id = match key {
        Some(key) => checked(key)?,
        None => digest(&[
            Some(&title),
            Some(&text),
            user.as_deref(),
            folder.as_deref().and_then(Path::to_str),
            playbook.as_deref().and_then(Path::to_str),
        ]),
    };
    Ok(Task { title, text, user, folder, playbook, ..Task::of(Task::local(task_id)) })
}

/// A title of one line, and the text. Where there is no title the text begins with it; one that is too long stands in the text.
fn titled(title: Option<String>, text: String) -> Result<(String, String), String> {
    let given = title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    if given.is_some_and(|title| title.contains('\n')) {
        return Err("a title is one line: put the rest into \"text\"".to_owned());
    }
    let line = given.or_else(|| text.lines().map(str::trim).find(|line| !line.is_empty()));
    let line = text::line(line.ok_or("there is neither a \"title\" nor a \"text\"")?);
    if line.chars().count() <= MOST_TITLE {
        return Ok((line, text));
    }
    let short: String = line.chars().take(MOST_TITLE - 1).chain(['…']).collect();
    let text = given.map(|title| format!("{title}\n\n{text}").trim_end().to_owned()).unwrap_or(text);
    Ok((short, text))
}

/// A key that can stand in a name.
fn checked(key: String) -> Result<String, String> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace();
    if key.is_empty() || key.len() > MOST_KEY || !key.chars().all(is_plain) {
        return Err(format!(
            "not a key: {:?}: 1 to {MOST_KEY} bytes without blanks",
            text::head(&key, MOST_KEY)
        ));
    }
    Ok(key)
}

/// What is the same is said to be the same: each piece with its length, so that none runs into the next.
fn digest(pieces: &[Option<&str>]) -> String {
    let mut hash = blake3::Hasher::new();
    for piece in pieces {
        let length = piece.map_or(u64::MAX, |piece| piece.len() as u64);
        hash.update(&length.to_le_bytes());
        hash.update(piece.unwrap_or_default().as_bytes());
    }
    hash.finalize().to_hex()[..32].to_owned()
}
