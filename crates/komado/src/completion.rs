//! What a shell offers when Tab is pressed: verbs and options, and what is there to be named: sessions, threads, models, settings.
//!
//! It runs at each Tab, so it asks nothing, makes nothing and tells nothing: a folder that needs the user's consent has no sessions
//! here, and a store on a server is not asked, because it may be away.

use crate::app::{App, GlobalOptions};
use crate::cli_output::number;
use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use komado_config::table::SETTINGS;
use komado_core::Address;
use komado_core::amount::age;
use komado_core::notation::tamed;
use komado_ops::OperationContext;
use komado_ops::clock::seconds_between;
use komado_ops::session::newest;
use komado_provider::provider::ROWS;
use komado_store::SessionQuery;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The variable by which a shell says that it wants to complete a line; it holds the shell's name.
pub(crate) const VARIABLE: &str = "KOMADO_COMPLETE";
/// The most sessions that are offered, the newest ones: no reader wants more in a list.
const MOST: usize = 100;

/// Answers a shell that completes a line, and ends; comes back when none asks.
pub(crate) fn answer(command: fn() -> Command) {
    CompleteEnv::with_factory(move || offered(command())).var(VARIABLE).bin("komado").complete();
}

/// The command line with what its arguments can be.
fn offered(command: Command) -> Command {
    command.mut_args(arg).mut_subcommands(offered)
}

fn arg(arg: Arg) -> Arg {
    let named = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let offers: fn(&OsStr) -> Vec<CompletionCandidate> = match (arg.get_id().as_str(), named.as_deref()) {
        ("model", _) | (_, Some("MODEL" | "NAME|ABOUT")) => models,
        ("provider" | "upstream", _) => providers,
        ("set", _) => assignments,
        ("prefix", Some("PREFIX")) => settings,
        (_, Some("SESSION" | "ADDRESS" | "SESSION@SEQ" | "BEFORE" | "AFTER" | "FROM")) => sessions,
        // The words of a task begin no session.
        (_, Some("TASK")) if arg.get_num_args().is_none_or(|range| range.max_values() == 1) => sessions,
        _ => return arg,
    };
    arg.add(ArgValueCompleter::new(offers))
}

/// Sessions that begin so, the newest first; behind `SESSION/`, its threads.
fn sessions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some((typed, context)) = typed.to_str().zip(context()) else { return Vec::new() };
    match typed.split_once('/') {
        Some((session, thread)) => threads(&context, session, thread),
        None => {
            let prefix = Some(typed.to_owned()).filter(|typed| !typed.is_empty());
            let query = SessionQuery { prefix, ..SessionQuery::default() };
            let found = newest(&context, query, MOST, |_| true).unwrap_or_default();
            let now = context.engine.now();
            let row = |(n, session): (usize, &komado_core::session::Session)| {
                let age = seconds_between(&session.meta.created_at, &now).map_or(0.0, |age| age.max(0.0));
                let age = age_of(age);
                let model = session.meta.config.model.as_deref().unwrap_or("no model");
                let about = format!("{}, {age} old, {}", session.status.name(), tamed(model));
                let offer = CompletionCandidate::new(session.meta.uuid.clone());
                offer.help(Some(about.into())).display_order(Some(n))
            };
            found.iter().rev().enumerate().map(row).collect()
        }
    }
}

fn age_of(seconds: f64) -> String {
    age(std::time::Duration::from_secs_f64(seconds).as_secs())
}

fn threads(context: &OperationContext, session: &str, typed: &str) -> Vec<CompletionCandidate> {
    let found = session.parse::<Address>().ok().and_then(|address| context.find(&address).ok());
    let headers = found.and_then(|found| context.engine.store().threads(&found.session).ok());
    let names = headers.into_iter().flatten().map(|header| header.thread.to_string());
    let fits = names.filter(|name| name.starts_with(typed));
    fits.map(|name| CompletionCandidate::new(format!("{session}/{name}"))).collect()
}

/// Models whose name begins so, in any case; with a `/` in it, as provider/name.
fn models(typed: &OsStr) -> Vec<CompletionCandidate> {
    let (Some(typed), Some(config)) = (typed.to_str(), App::quiet_config(&given())) else {
        return Vec::new();
    };
    let typed = typed.to_lowercase();
    let Ok(registry) = config.models.registry() else { return Vec::new() };
    let mut found: Vec<(String, String)> = Vec::new();
    for model in registry.models() {
        let full = format!("{}/{}", model.provider, model.id);
        let name = if typed.contains('/') && full.to_lowercase().starts_with(&typed) {
            full
        } else {
            model.id.clone()
        };
        if name.to_lowercase().starts_with(&typed) {
            found.push((name, format!("{}, {} tokens", model.provider, number(model.context))));
        }
    }
    found.sort();
    found.dedup_by(|later, first| later.0 == first.0);
    found.into_iter().map(|(name, about)| CompletionCandidate::new(name).help(Some(about.into()))).collect()
}

fn providers(typed: &OsStr) -> Vec<CompletionCandidate> {
    beginning(typed, ROWS.iter().map(|row| row.name).chain(["scripted"]).map(|name| (name.to_owned(), "")))
}

/// Keys of settings.
fn settings(typed: &OsStr) -> Vec<CompletionCandidate> {
    beginning(typed, keys())
}

/// The same with the `=` that a value follows.
fn assignments(typed: &OsStr) -> Vec<CompletionCandidate> {
    beginning(typed, keys().map(|(key, about)| (format!("{key}="), about)))
}

/// Those that can be written as they stand; `llm.<provider>.model` is one for each known provider.
fn keys() -> impl Iterator<Item = (String, &'static str)> {
    const PROVIDER: &str = "<provider>";
    SETTINGS.iter().flat_map(|setting| {
        let names: Vec<String> = match setting.path.split_once(PROVIDER) {
            Some(_) => ROWS.iter().map(|row| setting.path.replace(PROVIDER, row.name)).collect(),
            None if setting.path.contains('<') => Vec::new(),
            None => vec![setting.path.to_owned()],
        };
        names.into_iter().map(|name| (name, setting.about))
    })
}

fn beginning<'a>(typed: &OsStr, all: impl Iterator<Item = (String, &'a str)>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let fits = all.filter(|(name, _)| name.starts_with(&*typed));
    let offer = |(name, about): (String, &str)| {
        let about = Some(about).filter(|about| !about.is_empty());
        CompletionCandidate::new(name).help(about.map(|about| about.to_owned().into()))
    };
    fits.map(offer).collect()
}

/// What sessions are read in; `None` where none can be offered.
fn context() -> Option<OperationContext> {
    App::quiet(&given())
}

/// The global options on the line that is being completed.
fn given() -> GlobalOptions {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    options(&words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>())
}

fn options(words: &[String]) -> GlobalOptions {
    let values = |name: &str| {
        let value = |(n, word): (usize, &String)| match word.strip_prefix(name)? {
            // Bash makes three words of NAME=VALUE.
            "" if words.get(n + 1).is_some_and(|next| next == "=") => words.get(n + 2).cloned(),
            "" => words.get(n + 1).cloned(),
            rest => rest.strip_prefix('=').map(str::to_owned),
        };
        words.iter().enumerate().filter_map(value).filter(|value| !value.is_empty()).collect::<Vec<_>>()
    };
    let path = |name: &str| values(name).pop().map(PathBuf::from);
    // A setting that is only half typed sets nothing yet.
    let set = values("--set").into_iter().filter(|pair| pair.contains('=')).collect();
    GlobalOptions { json: false, base_dir: path("--base-dir"), config: path("--config"), set }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_line_that_is_not_ended_are_understood() {
        let read = |line: &str| options(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(read("komado show --base-dir /a x").base_dir, path("/a"));
        assert_eq!(read("komado show --base-dir=/a").base_dir, path("/a"));
        assert_eq!(read("komado show --base-dir = /a").base_dir, path("/a"));
        assert_eq!(read("komado show --base-dir").base_dir, None);
        assert_eq!(read("komado --set a.b=c --set d").set, ["a.b=c"]);
        assert_eq!(read("komado --config x.yaml log").config, path("x.yaml"));
    }
}
