//! `komado admin trust`: consent to the settings and sessions of a folder, see what was consented to, take it back.
//!
//! What is shown may have been written by another person: it is shown on lines of its own, without its secrets, and without anything
//! that a terminal would act on.

use crate::app::{App, CONTEXTS, GlobalOptions, working_folder};
use crate::cli_output::{count, number, say, table, text_of};
use crate::trust::{self, ConsentAbout, Consents, FolderTrust, TrustError, shown};
use komado_config::{Config, InFolder, Sources, Unconsented, WrittenSetting};
use komado_core::notation::tamed;
use komado_ops::{FaultKind, OpFault, OpResult};
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// The settings file of a folder.
const SETTINGS: &str = "komado.yaml";
/// How many entries of a folder are listed.
const LISTED: usize = 20;
/// How many harmless settings of a file are listed before those that need consent.
const HARMLESS: usize = 20;
/// How many settings that need consent fit on a screen: with more of them a question says where to read them.
const READABLE: usize = 15;

#[derive(clap::Args, Debug)]
pub(crate) struct TrustArgs {
    /// A folder with komado.yaml or contexts in it, or one of these two; left out: the working folder
    path: Option<PathBuf>,
    /// List what is trusted
    #[arg(long, conflicts_with_all = ["path", "revoke", "show"])]
    list: bool,
    /// Show what was found without trusting it
    #[arg(long, conflicts_with = "revoke")]
    show: bool,
    /// Withdraw trust
    #[arg(long)]
    revoke: bool,
}

pub(crate) fn trust(app: &mut App, args: TrustArgs) -> OpResult {
    let consents = Consents::of_user();
    if args.list {
        return list(app, &consents);
    }
    let path = args.path.unwrap_or_else(|| PathBuf::from("."));
    let [settings, sessions] = meant(&path)?;
    if args.revoke {
        return revoke(app, &consents, &path, [settings, sessions]);
    }
    let found = [&settings, &sessions].into_iter().flatten().any(|path| path.symlink_metadata().is_ok());
    if !found {
        return Err(OpFault::new(
            FaultKind::NotFound,
            format!("there is neither {SETTINGS} nor {CONTEXTS} at {}", shown(&path)),
        ));
    }
    if let Some(path) = settings.filter(|path| path.symlink_metadata().is_ok()) {
        trust_settings(app, &consents, &path, args.show)?;
    }
    if let Some(path) = sessions.filter(|path| path.symlink_metadata().is_ok()) {
        trust_sessions(app, &consents, &path, args.show)?;
    }
    Ok(())
}

/// The settings file and the folder of sessions that a path means.
fn meant(path: &Path) -> OpResult<[Option<PathBuf>; 2]> {
    let absolute = working_folder()?.join(path);
    let name = absolute.file_name().and_then(|name| name.to_str());
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let inside = |name: &str| {
        let folder = absolute.parent().unwrap_or(&absolute);
        // As the working folder is named when it is worked in; the last part stays what it is, were it a link.
        Some(real(folder).join(name))
    };
    let is_whole = absolute.join(SETTINGS).symlink_metadata().is_ok();
    match name {
        Some(SETTINGS) => Ok([inside(SETTINGS), None]),
        Some(CONTEXTS) if !is_whole => Ok([None, inside(CONTEXTS)]),
        _ if absolute.is_file() => Err(OpFault::usage(format!(
            "{} needs no consent: only a file called {SETTINGS} is found by itself; name this one with --config FILE",
            shown(path)
        ))),
        _ => {
            let folder = real(&absolute);
            Ok([Some(folder.join(SETTINGS)), Some(folder.join(CONTEXTS))])
        }
    }
}

fn trust_settings(app: &mut App, consents: &Consents, path: &Path, only_shows: bool) -> OpResult {
    let Some(file) = asking(path)? else {
        return app.paper.line(match app.paper.json {
            true => {
                json!({ "about": "settings", "path": text_of(path), "trusted": true, "settings": [], "undo": null })
                    .to_string()
            }
            false => {
                format!("{} needs no consent: all it sets is harmless", shown(path))
            }
        });
    };
    let is_trusted = !only_shows || consents.has(ConsentAbout::Settings, &file.path, &file.digest);
    if !only_shows {
        keep_settings(&file, consents)?;
    }
    let undo = (!only_shows).then(|| undo(&file.path));
    if app.paper.json {
        let rows: Vec<_> = file
            .written
            .iter()
            .map(|one| json!({ "key": one.key, "line": one.line, "value": one.value, "needs_consent": one.needs_consent }))
            .collect();
        return app.paper.json(
            &json!({ "about": "settings", "path": text_of(&file.path), "trusted": is_trusted, "settings": rows, "undo": undo }),
        );
    }
    let most = if only_shows { usize::MAX } else { HARMLESS };
    lines(&file, most).iter().try_for_each(|line| app.paper.prose(line))?;
    let shown = shown(&file.path);
    say_whether(is_trusted, &shown, "with exactly this content", undo)
}

/// Says whether something is trusted, and how that is undone where it was just done.
fn say_whether(is_trusted: bool, shown: &str, how: &str, undo: Option<String>) -> OpResult {
    say(if is_trusted { format!("trusted: {shown}, {how}") } else { format!("not trusted: {shown}") });
    if let Some(undo) = undo {
        say(format!("undo: {undo}"));
    }
    Ok(())
}

/// The file at `path` as it would be found there, where it needs a consent.
fn asking(path: &Path) -> OpResult<Option<Box<Unconsented>>> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let (home, xdg) = (variable("HOME"), variable("XDG_CONFIG_HOME"));
    let config = Config::load(&Sources {
        flags: &[],
        env: &|name| std::env::var(name).ok().filter(|_| name != "KOMADO_CONFIG"),
        env_names: &[],
        file: None,
        cwd: path.parent().unwrap_or(path),
        home: home.as_deref(),
        xdg: xdg.as_deref(),
        data: None,
        has_contexts: &|_| false,
        in_folder: InFolder::Told,
        // Asked anew, so that what was consented to before is shown, too.
        has_consent: &|_, _| false,
    })?;
    Ok(config.unconsented)
}

fn trust_sessions(app: &mut App, consents: &Consents, path: &Path, only_shows: bool) -> OpResult {
    let shown = shown(path);
    let found = trust::look(path, consents);
    match found {
        FolderTrust::Absent | FolderTrust::Link => return trust::check(path, consents),
        _ if only_shows => {}
        FolderTrust::Own if !app.paper.json => {
            say(format!("{shown} is trusted already"));
            return Ok(());
        }
        FolderTrust::Own => {}
        FolderTrust::Empty | FolderTrust::Strange => keep_sessions(path, consents)?,
    }
    let is_trusted = !only_shows || found == FolderTrust::Own;
    let (undo, held) = ((!only_shows).then(|| undo(path)), held(path));
    if app.paper.json {
        return app.paper.json(
            &json!({ "about": "sessions", "path": text_of(path), "trusted": is_trusted, "holds": held, "undo": undo }),
        );
    }
    app.paper.line(&shown)?;
    held.iter().try_for_each(|line| app.paper.field("  ", line))?;
    say_whether(is_trusted, &shown, "with whatever is or will be in it", undo)
}

fn list(app: &mut App, consents: &Consents) -> OpResult {
    let all = consents.list()?;
    if app.paper.json {
        return all.iter().try_for_each(|one| {
            app.paper.json(&json!({ "about": one.about.name(), "path": one.path, "at": one.at }))
        });
    }
    if all.is_empty() {
        return app.paper.line("nothing was consented to");
    }
    let mut rows = vec![["about", "since"].map(str::to_owned).to_vec()];
    rows.extend(all.iter().map(|one| vec![one.about.name().to_owned(), one.at.clone()]));
    let paths = std::iter::once("path").chain(all.iter().map(|one| one.path.as_str()));
    table(&rows, &[]).iter().zip(paths).try_for_each(|(line, path)| app.paper.named(line, &tamed(path)))
}

fn revoke(app: &mut App, consents: &Consents, path: &Path, meant: [Option<PathBuf>; 2]) -> OpResult {
    let mut revoked = Vec::new();
    for (about, path) in [ConsentAbout::Settings, ConsentAbout::Sessions].into_iter().zip(meant) {
        if let Some(path) = path {
            let taken = consents.revoke(about, &path)?;
            revoked.extend((taken > 0).then_some((about, path)));
        }
    }
    if revoked.is_empty() {
        let shown = shown(path);
        let why = format!(
            "no consent was given to anything at {shown}; `komado admin trust --list` lists all there are"
        );
        return Err(OpFault::new(FaultKind::NotFound, why));
    }
    for (about, path) in revoked {
        let again = command("komado admin trust", &path);
        if app.paper.json {
            app.paper.json(
                &json!({ "about": about.name(), "path": text_of(&path), "trusted": false, "undo": again }),
            )?;
            continue;
        }
        app.paper.line(format!("revoked: {}", shown(&path)))?;
        say(format!("undo: {again}"));
    }
    Ok(())
}

fn undo(path: &Path) -> String {
    command("komado admin trust --revoke", path)
}

/// A command about a path, as a shell takes it. A path that cannot be shown as it is leaves its last part, which is a name of
/// ours, and the folder to run the command in.
pub(crate) fn command(words: &str, path: &Path) -> String {
    let Some(text) = path.to_str().filter(|text| tamed(text) == *text) else {
        let name = path.file_name().unwrap_or_default().display();
        return format!("{words} {name}  # after `cd` to the folder that it is in");
    };
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    match text.chars().all(is_plain) {
        true => format!("{words} {text}"),
        false => format!("{words} '{}'", text.replace('\'', r"'\''")),
    }
}

/// A file and its settings, for people: those that need consent last, where they are not scrolled away, and before them the
/// harmless ones, at most so many.
fn lines(file: &Unconsented, most: usize) -> Vec<String> {
    let mut lines = vec![shown(&file.path)];
    let all_of = |asks: bool| file.written.iter().filter(move |one| one.needs_consent == asks);
    let line = |one: &WrittenSetting| {
        let mark = if one.needs_consent { "!" } else { " " };
        format!("{mark} line {}: {} = {}", one.line, one.key, one.value)
    };
    lines.extend(all_of(false).take(most).map(line));
    if let Some(more) = all_of(false).count().checked_sub(most).filter(|more| *more > 0) {
        lines.push(format!("  and {} harmless ones", number(more as u64)));
    }
    lines.extend(all_of(true).map(line));
    if let Some(own) = &file.replaces {
        lines.push(format!("! in place of your own {}", shown(own)));
    }
    lines
}

/// What is in a folder of sessions.
fn held(folder: &Path) -> Vec<String> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| tamed(&entry.file_name().to_string_lossy())).collect();
        names.sort();
        names
    };
    let mut lines: Vec<String> = ["running", "completed"]
        .into_iter()
        .map(|half| (half, names(&folder.join(half)).len()))
        .filter(|(_, count)| *count > 0)
        .map(|(half, count)| format!("sessions in {half}: {count}"))
        .collect();
    let others = names(folder).into_iter().filter(|name| !["running", "completed"].contains(&name.as_str()));
    lines.extend(others.map(|name| match name.as_str() {
        "keys.json" => "keys.json: clients with these keys may reach `komado serve`".to_owned(),
        "models.jsonl" => "models.jsonl: windows and prices of models".to_owned(),
        _ => name,
    }));
    if let Some(more) = lines.len().checked_sub(LISTED).filter(|more| *more > 0) {
        lines.truncate(LISTED);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// Keeps the consent to a file.
pub(crate) fn keep_settings(file: &Unconsented, consents: &Consents) -> OpResult {
    consents.give(ConsentAbout::Settings, &file.path, &file.digest).map_err(|why| {
        OpFault::usage(format!(
            "consent to {} cannot be kept: {why}; name the file with --config FILE, or set HOME or XDG_DATA_HOME to a \
             folder that can be written",
            shown(&file.path)
        ))
    })
}

/// Keeps the consent to a folder of sessions.
fn keep_sessions(path: &Path, consents: &Consents) -> OpResult {
    trust::trust(path, consents).map_err(|why| {
        let why = match why {
            TrustError::Mark(why) => return trust::unmarked(path, &why),
            TrustError::Consent(why) => why,
        };
        OpFault::usage(format!(
            "{}: the consent cannot be kept: {why}; name the folder with --base-dir PATH",
            shown(path)
        ))
    })
}

/// True when there is a person to ask.
pub(crate) fn can_ask(options: &GlobalOptions) -> bool {
    !options.json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows a file and asks whether it may be used.
pub(crate) fn ask_about(file: &Unconsented) -> OpResult<bool> {
    lines(file, HARMLESS).into_iter().for_each(say);
    let asking = file.written.iter().filter(|one| one.needs_consent).count();
    if asking > READABLE {
        let asking = count(asking as u64, "setting");
        say(format!(
            "{asking} above need consent; `komado admin trust --show | less` shows them page by page"
        ));
    }
    ask(
        "komado: these settings were found in this folder. Use them, now and as long as they stay as they are? [y/N] ",
    )
}

/// Asks at the terminal. What is typed after the line is left for the next reader.
fn ask(question: &str) -> OpResult<bool> {
    eprint!("{question}");
    let (mut line, mut byte) = (Vec::new(), [0]);
    let input = std::io::stdin();
    while line.len() < 100 && rustix::io::read(&input, &mut byte).map_err(std::io::Error::from)? == 1 {
        if byte[0] == b'\n' {
            break;
        }
        line.push(byte[0]);
    }
    Ok(matches!(String::from_utf8_lossy(&line).trim(), "y" | "Y" | "yes"))
}
