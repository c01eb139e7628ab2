//! `komado models`: what is known about models, and how to know it better. `komado explain-error`: what a provider's error is
//! taken for. `komado dev model-server`: a model that follows a script, at an address of its own, until it is told to stop. It keeps
//! nothing on disk; what is asked is told line by line, without a clock, so that two runs can be compared.

use crate::app::App;
use crate::cli_output::{count, number, say};
use crate::signals;
use clap::Subcommand;
use komado_core::Meter;
use komado_ops::choice::{one_of, tokens};
use komado_ops::model::{ExplainError, ForgetLesson, ListLessons, ListModels, UpdateModels};
use komado_ops::{FaultKind, OpFault, OpResult};
use komado_provider::scripted::{
    ErrorStyle, OnOverflow, ScriptedOptions, ScriptedServer, ScriptedSteps, SeenRequest,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ModelsArgs {
    /// Only models whose name and provider hold all of these words; a name that means one model shows it in full
    #[arg(value_name = "MODEL")]
    words: Vec<String>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Load a newer table of models over the built-in one
    Update {
        /// Lines in our own form, models.dev's api.json, or LiteLLM's model_prices_and_context_window.json
        file: PathBuf,
    },
    /// List what was learned from the answers and refusals of models: what, from which request, and how sure; or forget it
    Learned {
        /// Forget what was learned about a model: its name, or address and name as they are listed
        #[arg(long, value_name = "NAME|ABOUT")]
        forget: Option<String>,
    },
}

impl ModelsArgs {
    /// True where a table of models is put into the folder of the sessions.
    pub(crate) fn is_update(&self) -> bool {
        matches!(self.action, Some(Action::Update { .. }))
    }

    /// True where what was learned, which is kept in that folder, is looked at.
    pub(crate) fn is_learned(&self) -> bool {
        matches!(self.action, Some(Action::Learned { .. }))
    }
}

pub(crate) fn models(app: &mut App, args: ModelsArgs) -> OpResult {
    match args.action {
        Some(Action::Update { file }) => update(app, &file),
        Some(Action::Learned { forget: None }) => app.show(ListLessons::default()),
        Some(Action::Learned { forget: Some(about) }) => app.show(ForgetLesson { about }),
        None if args.words.is_empty() => {
            let all = app.run(ListModels::default())?;
            app.print(&all)?;
            told(app, all.items.len(), all.items.len())
        }
        None => find(app, &args.words.join(" ")),
    }
}

/// Shows the model that a name means, or lists those that hold its words.
fn find(app: &mut App, name: &str) -> OpResult {
    let one = |app: &App| app.run(ListModels { name: Some(name.to_owned()), words: None });
    let unknown = match one(app) {
        Ok(found) => return found.items.iter().try_for_each(|model| app.print(model)),
        Err(fault) if fault.exit() == FaultKind::NotFound => fault,
        Err(fault) => return Err(fault),
    };
    let found = app.run(ListModels { name: None, words: Some(name.to_owned()) })?;
    match found.items.as_slice() {
        [] => Err(unknown),
        [only] => app.print(only),
        many => {
            let all = app.run(ListModels::default())?.items.len();
            app.print(&found)?;
            told(app, many.len(), all)
        }
    }
}

/// Says how many of all models were listed, to people.
fn told(app: &mut App, listed: usize, all: usize) -> OpResult {
    if app.paper.json {
        return Ok(());
    }
    app.paper.flush()?;
    let (listed, all) = (listed as u64, all as u64);
    say(match listed == all {
        true => format!("{}; `komado models WORD` lists those that hold a word", count(all, "model")),
        false => format!("{} of {}", number(listed), count(all, "model")),
    });
    Ok(())
}

fn update(app: &mut App, path: &Path) -> OpResult {
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| {
        let exit = match e.kind() {
            std::io::ErrorKind::NotFound => FaultKind::NotFound,
            std::io::ErrorKind::InvalidData => FaultKind::BadInput,
            _ => FaultKind::Failed,
        };
        OpFault::new(exit, format!("{file}: {e}; nothing was changed"))
    })?;
    app.show(UpdateModels { text }).map_err(|fault| match fault.exit() {
        FaultKind::BadInput => OpFault::input(format!("{file}: {}", fault.message())),
        _ => fault,
    })
}

/// The largest body taken in; an error of a server is a few lines.
const LARGEST: u64 = 16 << 20;

#[derive(clap::Args, Debug)]
pub(crate) struct ExplainErrorArgs {
    /// The HTTP status the body came with; 200 for an error inside a stream
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(100..=599))]
    status: u16,
}

/// What a provider's error is taken for, as the gateway and the engine would take it.
pub(crate) fn explain_error(app: &mut App, args: ExplainErrorArgs) -> OpResult {
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(OpFault::input(
            "standard input: more than 16 MB; give the error alone, without what came before it",
        ));
    }
    app.show(ExplainError { status: args.status, body: String::from_utf8_lossy(&bytes).into_owned() })
}

#[derive(clap::Args, Debug)]
pub(crate) struct ModelServerArgs {
    /// The port; one that is free when left out
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The address to listen at; any other than this machine's own lets others in
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The window in tokens; unlimited when left out
    #[arg(long, value_name = "TOKENS", value_parser = tokens::<u64>(1))]
    window: Option<u64>,
    /// What to answer, as JSON lines: see docs/model-server.md
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// The provider whose error texts are used
    #[arg(long, value_name = "WHO", default_value = "dialect", value_parser = one_of(&ErrorStyle::ALL, ErrorStyle::name))]
    words: ErrorStyle,
    /// How tokens are counted
    #[arg(long, value_name = "NAME", default_value = "o200k", value_parser = one_of(&Meter::ALL, Meter::name))]
    meter: Meter,
    /// What happens to a request that is too large
    #[arg(long, value_name = "HOW", default_value = "refuse", value_parser = one_of(&OnOverflow::ALL, OnOverflow::name))]
    on_overflow: OnOverflow,
    /// Read requests without keeping or parsing them; answer steps without conditions, else a short fixed text
    #[arg(long)]
    discard: bool,
}

/// What the printing thread hears of.
enum News {
    Asked(Box<SeenRequest>),
    Stop,
}

pub(crate) fn model_server(app: &mut App, args: ModelServerArgs) -> OpResult {
    let script = args.script.as_deref().map_or_else(|| Ok(ScriptedSteps::default()), read_script)?;
    let address = format!("{}:{}", args.host, args.port);
    let (say, news) = channel();
    // Before anything is printed, so that a reader of the address can already stop the server.
    let stop = say.clone();
    signals::each(signals::FOR_SERVERS, move || drop(stop.send(News::Stop)))?;
    let server = ScriptedServer::start(ScriptedOptions {
        address: address.clone(),
        window: args.window,
        meter: args.meter,
        words: args.words,
        script,
        overflow: args.on_overflow,
        keep: 0,
        discard: args.discard,
    })
    .map_err(|e| {
        OpFault::new(FaultKind::Failed, format!("cannot listen at {address}: {e}; choose another --port"))
    })?;
    server.watch(move |seen| drop(say.send(News::Asked(Box::new(seen.clone())))));
    greet(app, &server, &args)?;
    while let Ok(News::Asked(seen)) = news.recv() {
        tell(app, &seen)?;
    }
    Ok(())
}

fn read_script(path: &Path) -> OpResult<ScriptedSteps> {
    let name = path.display();
    let text = std::fs::read(path).map_err(|e| {
        let exit = if e.kind() == io::ErrorKind::NotFound { FaultKind::NotFound } else { FaultKind::Failed };
        OpFault::new(exit, format!("{name}: {e}"))
    })?;
    let text = String::from_utf8(text).map_err(|e| {
        OpFault::input(format!("{name}: not UTF-8 from byte {} on", e.utf8_error().valid_up_to()))
    })?;
    ScriptedSteps::read(&text)
        .map_err(|e| OpFault::input(format!("{name}: {e}; docs/model-server.md lists the fields")))
}

fn greet(app: &mut App, server: &ScriptedServer, args: &ModelServerArgs) -> OpResult {
    let url = server.url();
    let env = client_settings(url);
    if app.paper.json {
        let (words, env) = (args.words.name(), BTreeMap::from(env));
        app.paper.json(
            &json!({ "kind": "ready", "url": url, "env": env, "window": args.window, "words": words }),
        )?;
        return app.paper.flush();
    }
    app.paper.line(format!("listening at {url}"))?;
    match args.window {
        Some(window) => {
            app.paper.line(format!("window {}, counted by {}", count(window, "token"), args.meter.name()))?
        }
        None => app.paper.line("no window; --window TOKENS sets one")?,
    }
    app.paper.line("")?;
    for (name, value) in env {
        app.paper.line(format!("export {name}={value}"))?;
    }
    app.paper.line("export OPENAI_API_KEY=none ANTHROPIC_API_KEY=none")?;
    app.paper.line("")?;
    app.paper.line(format!("the gateway in front of it: komado serve --upstream {url}"))?;
    app.paper.line("Ctrl-C stops it. Requests:")?;
    app.paper.flush()
}

/// The variables by which clients find a server.
pub(super) fn client_settings(url: &str) -> [(&'static str, String); 3] {
    let (openai, plain) = (format!("{url}/v1"), url.to_owned());
    [("OPENAI_BASE_URL", openai), ("ANTHROPIC_BASE_URL", plain.clone()), ("OLLAMA_HOST", plain)]
}

fn tell(app: &mut App, seen: &SeenRequest) -> OpResult {
    if app.paper.json {
        app.paper.json(&json!({
            "kind": "request",
            "n": seen.n,
            "dialect": seen.dialect.name(),
            "path": seen.path,
            "bytes": seen.bytes,
            "tokens": seen.tokens,
            "cached": seen.cached,
            "status": seen.status,
            "stream": seen.stream,
        }))?;
        return app.paper.flush();
    }
    let stream = if seen.stream { ", in pieces" } else { "" };
    let cached = if seen.cached > 0 { format!(" ({} cached)", number(seen.cached)) } else { String::new() };
    let (n, dialect, status) = (seen.n, seen.dialect.name(), seen.status);
    app.paper.line(format!("{n} {dialect} {}{cached} -> {status}{stream}", count(seen.tokens, "token")))?;
    app.paper.flush()
}
