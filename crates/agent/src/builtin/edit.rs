//! `edit`: puts words in the place of others, or writes a whole file. A reader sees the old file or the new
//! one, never a half: it is written beside, and takes the name in one step.

use super::folder::{WorkingFolder, words};
use super::{ToolArguments, needed};
use crate::tools::ToolAnswer;
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The largest file in which words are replaced; it is held meanwhile.
const LARGEST: u64 = 8 << 20;
/// The most bytes of words that are looked for: each place of a file is held against all of them.
const LONGEST_OLD: usize = 64 << 10;
/// The most lines of a change that are shown.
const LINES: usize = 12;
/// How many names are tried for the file beside.
const NAMES: u32 = 100;

pub(super) fn edit(folder: &WorkingFolder, given: &ToolArguments) -> Result<ToolAnswer, String> {
    let name = needed(given, "path")?;
    let path = folder.inside(name)?;
    match (given.text("content")?, given.text("old")?, given.text("new")?) {
        (Some(_), Some(_), _) => {
            Err("edit: give content for a whole file, or old and new, not both".to_owned())
        }
        (Some(content), None, _) => whole(folder, &path, content),
        (None, Some(""), _) => Err("edit: old is empty; give content to write a whole file".to_owned()),
        (None, Some(old), _) if old.len() > LONGEST_OLD => Err(format!(
            "edit: old has {} bytes, and {LONGEST_OLD} are the most; give less of the text, or content for the whole file",
            old.len()
        )),
        (None, Some(old), Some(new)) if old == new => {
            Err("edit: old and new are the same; nothing to do".to_owned())
        }
        (None, Some(old), Some(new)) => replaced(folder, &path, old, new, given.flag("all")?),
        _ => Err("edit: give old and new to replace words, or content to write a whole file".to_owned()),
    }
}

/// Writes a whole file.
fn whole(folder: &WorkingFolder, path: &Path, content: &str) -> Result<ToolAnswer, String> {
    let lines = content.lines().count();
    match folder.file(path) {
        Ok(file) => {
            let real = folder.real(&file).map_err(|error| format!("{}: {error}", path.display()))?;
            write(folder, &real, content.as_bytes(), Some(&file))?;
            Ok(ToolAnswer::text(format!(
                "wrote {} anew: {lines} lines, {} bytes",
                path.display(),
                content.len()
            )))
        }
        Err(_) if is_missing(folder, path)? => {
            write(folder, path, content.as_bytes(), None)?;
            Ok(ToolAnswer::text(format!("made {}: {lines} lines, {} bytes", path.display(), content.len())))
        }
        Err(why) => Err(why),
    }
}

/// True when a file can be made there: its name ends in one, and nothing has it. Missing folders are made on the way.
fn is_missing(folder: &WorkingFolder, path: &Path) -> Result<bool, String> {
    let Some(name) = path.file_name() else { return Ok(false) };
    let parent = folder.made(path.parent().unwrap_or(Path::new("")))?;
    match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(true),
        Err(errno) => Err(words(path, errno)),
        Ok(_) => Ok(false),
    }
}

/// Puts `new` in the place of `old`.
fn replaced(
    folder: &WorkingFolder,
    path: &Path,
    old: &str,
    new: &str,
    all: bool,
) -> Result<ToolAnswer, String> {
    let file = folder.file(path)?;
    let before = held(&file, path)?;
    let crlf = !old.contains('\r') && find(&before, b"\r\n").next().is_some();
    let ends =
        |text: &str| if crlf { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text.to_owned() };
    let (old, new) = (ends(old), ends(new));
    let places: Vec<usize> = find(&before, old.as_bytes()).collect();
    if places.is_empty() {
        return Err(not_there(path, &before, &old));
    }
    if places.len() > 1 && !all {
        let lines = lines_of(&before, &places);
        return Err(format!(
            "{}: old stands there {} times (lines {lines}); give more of the text around it, or all: true",
            path.display(),
            places.len()
        ));
    }
    let size = before.len().saturating_add(places.len().saturating_mul(new.len()));
    if new.len() > old.len() && size as u64 > 2 * LARGEST {
        return Err(format!(
            "{} would grow to about {size} bytes; edit makes no file larger than {}, use sed in the shell",
            path.display(),
            2 * LARGEST
        ));
    }
    let after = changed(&before, &places, old.len(), &new);
    let real = folder.real(&file).map_err(|error| format!("{}: {error}", path.display()))?;
    write(folder, &real, &after, Some(&file))?;
    Ok(ToolAnswer::text(change(path, &before, &places, &old, &new)))
}

/// The bytes with `new` at each place, where something of this length stood.
fn changed(before: &[u8], places: &[usize], length: usize, new: &str) -> Vec<u8> {
    let (mut after, mut from) = (Vec::with_capacity(before.len()), 0);
    for place in places {
        after.extend_from_slice(&before[from..*place]);
        after.extend_from_slice(new.as_bytes());
        from = place + length;
    }
    after.extend_from_slice(&before[from..]);
    after
}

/// The file's bytes.
fn held(file: &File, path: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("{} is larger than {LARGEST} bytes; use sed in the shell", path.display()));
    }
    Ok(bytes)
}

/// Where `what` stands, from left to right; no two overlap.
fn find<'a>(bytes: &'a [u8], what: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let first = *what.first()?;
        while let Some(step) = bytes.get(from..)?.iter().position(|byte| *byte == first) {
            let at = from + step;
            if bytes[at..].starts_with(what) {
                from = at + what.len();
                return Some(at);
            }
            from = at + 1;
        }
        None
    })
}

fn line_of(bytes: &[u8], place: usize) -> usize {
    bytes[..place].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn lines_of(bytes: &[u8], places: &[usize]) -> String {
    let mut lines: Vec<String> = places.iter().take(20).map(|at| line_of(bytes, *at).to_string()).collect();
    if places.len() > lines.len() {
        lines.push("…".to_owned());
    }
    lines.join(", ")
}

/// What was changed, in a few lines.
fn change(path: &Path, before: &[u8], places: &[usize], old: &str, new: &str) -> String {
    let lines = lines_of(before, places);
    let times = if places.len() == 1 { "once".to_owned() } else { format!("{} times", places.len()) };
    let mut text = format!("changed {} {times}, at line {lines}", path.display());
    for (mark, side) in [('-', old), ('+', new)] {
        for line in side.lines().take(LINES) {
            text.push_str(&format!("\n{mark}{}", super::spool::shown(line.as_bytes(), line.len() as u64)));
        }
        let more = side.lines().count().saturating_sub(LINES);
        if more > 0 {
            text.push_str(&format!("\n{mark}… [{more} more lines]"));
        }
    }
    text
}

/// Says that `old` is not there, and what comes nearest to its first line.
fn not_there(path: &Path, bytes: &[u8], old: &str) -> String {
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes);
    let nearest = text
        .lines()
        .enumerate()
        .map(|(at, line)| (likeness(line.trim(), wanted), at, line))
        .max_by_key(|(likeness, at, _)| (*likeness, std::cmp::Reverse(*at)));
    let shown = path.display();
    match nearest {
        Some((likeness, at, line)) if likeness * 2 > wanted.chars().count() => format!(
            "{shown}: old is not there word for word; nearest is line {}: {}\nread the file again and copy the text exactly, with its white space",
            at + 1,
            super::spool::shown(line.as_bytes(), line.len() as u64)
        ),
        _ => format!("{shown}: old is not there, and no line is like it; read the file again"),
    }
}

/// How many characters two lines have in common at their beginnings and ends.
fn likeness(one: &str, other: &str) -> usize {
    let begin = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let shorter = one.chars().count().min(other.chars().count());
    let end = one.chars().rev().zip(other.chars().rev()).take_while(|(a, b)| a == b).count();
    begin + end.min(shorter - begin)
}

/// Writes beside, and takes the name. The permissions of `like` are kept.
fn write(folder: &WorkingFolder, path: &Path, bytes: &[u8], like: Option<&File>) -> Result<(), String> {
    let name = path.file_name().ok_or_else(|| format!("{} is not a file's name", path.display()))?;
    let parent = folder.made(path.parent().unwrap_or(Path::new("")))?;
    let (beside, file) = beside(&parent, path)?;
    let written = filled(file, bytes, like)
        .map_err(|error| format!("{} cannot be written: {error}", path.display()))
        .and_then(|()| renameat(&parent, &beside, &parent, name).map_err(|errno| words(path, errno)));
    if written.is_err() {
        // What went wrong is said already; a rest that stays is named after us.
        let _ = unlinkat(&parent, &beside, AtFlags::empty());
    }
    written
}

fn filled(mut file: File, bytes: &[u8], like: Option<&File>) -> std::io::Result<()> {
    file.write_all(bytes)?;
    if let Some(like) = like {
        let mode = like.metadata()?.permissions().mode() & 0o777;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    }
    file.sync_data()
}

/// A new file with a name that nothing has.
fn beside(parent: &OwnedFd, path: &Path) -> Result<(PathBuf, File), String> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for number in 0..NAMES {
        let name = PathBuf::from(format!(".komado-edit-{}-{number}", std::process::id()));
        match openat(parent, &name, flags, Mode::from_raw_mode(0o666)) {
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(words(path, errno)),
            Ok(handle) => return Ok((name, handle.into())),
        }
    }
    Err(format!("{} cannot be written: remove the files .komado-edit-* beside it", path.display()))
}
