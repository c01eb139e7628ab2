//! `komado model-server`: a model that follows a script, at an address of its own, until it is told to stop.
//!
//! Nothing is kept on disk. What is asked is told line by line, without a clock, so that two runs can be compared.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::number;
use crate::signals;
use clap::Args as ClapArgs;
use komado_core::Meter;
use komado_ops::choice::one_of;
use komado_provider::scripted::{OnOverflow, Options, Script, Seen, Server, Words};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The port; one that is free when left out
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// The address to listen at; any other than this machine's own lets others in
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// The window in tokens; without end when left out
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    window: Option<u64>,
    /// What to answer, as JSON lines: see docs/model-server.md
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Whose words errors have
    #[arg(long, value_name = "WHO", default_value = "dialect", value_parser = one_of(&Words::ALL, Words::name))]
    words: Words,
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
    Asked(Box<Seen>),
    Stop,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let script = args.script.as_deref().map_or_else(|| Ok(Script::default()), read_script)?;
    let address = format!("{}:{}", args.host, args.port);
    let (say, news) = channel();
    // Before anything is printed, so that whoever reads the address can already stop the server.
    let stop = say.clone();
    signals::each(signals::FOR_SERVERS, move || drop(stop.send(News::Stop)))?;
    let server = Server::start(Options {
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
        Fault::new(Exit::Failed, format!("cannot listen at {address}: {e}; choose another --port"))
    })?;
    server.watch(move |seen| drop(say.send(News::Asked(Box::new(seen.clone())))));
    greet(app, &server, &args)?;
    while let Ok(News::Asked(seen)) = news.recv() {
        tell(app, &seen)?;
    }
    Ok(())
}

fn read_script(path: &Path) -> Outcome<Script> {
    let name = path.display();
    let text = std::fs::read(path).map_err(|e| {
        let exit = if e.kind() == io::ErrorKind::NotFound { Exit::NotFound } else { Exit::Failed };
        Fault::new(exit, format!("{name}: {e}"))
    })?;
    let text = String::from_utf8(text).map_err(|e| {
        Fault::input(format!("{name}: not UTF-8 from byte {} on", e.utf8_error().valid_up_to()))
    })?;
    Script::read(&text)
        .map_err(|e| Fault::input(format!("{name}: {e}; docs/model-server.md lists the fields")))
}

fn greet(app: &mut App, server: &Server, args: &Args) -> Outcome {
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
            app.paper.line(format!("window {} tokens, counted by {}", number(window), args.meter.name()))?
        }
        None => app.paper.line("no window; --window TOKENS sets one")?,
    }
    app.paper.line("")?;
    for (name, value) in env {
        app.paper.line(format!("export {name}={value}"))?;
    }
    app.paper.line("export OPENAI_API_KEY=none ANTHROPIC_API_KEY=none")?;
    app.paper.line("")?;
    app.paper.line("Ctrl-C stops it. Requests:")?;
    app.paper.flush()
}

/// The variables by which clients find a server.
pub(super) fn client_settings(url: &str) -> [(&'static str, String); 3] {
    let (openai, plain) = (format!("{url}/v1"), url.to_owned());
    [("OPENAI_BASE_URL", openai), ("ANTHROPIC_BASE_URL", plain.clone()), ("OLLAMA_HOST", plain)]
}

fn tell(app: &mut App, seen: &Seen) -> Outcome {
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
    app.paper.line(format!("{n} {dialect} {} tokens{cached} -> {status}{stream}", number(seen.tokens)))?;
    app.paper.flush()
}
