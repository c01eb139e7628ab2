//! `komado demo`: a long coding session in a small window, from beginning to end, without a key or a network.
//!
//! The agent is played: its words follow from a fixed seed, its tools read this project's own files, which are part
//! of the program. Everything else is real: the journal, the requests and the server that counts and refuses them, the
//! edits, the folder that is left behind.

mod dice;
mod errand;
mod hand;
mod ladder;
mod library;
mod screen;
mod script;
mod tour;
mod wire;

use crate::app::{App, hostname};
use crate::clock::SystemClock;
use crate::fault::{Fault, Outcome};
use clap::Args as ClapArgs;
use errand::Errand;
use hand::{Done, Hand};
use komado_core::budget::Budget;
use komado_core::session::{Meta, MetaConfig, TaskKey};
use komado_core::{Seq, SessionId, ThreadId};
use komado_engine::{Clock, Engine};
use komado_store::{FileStore, Holder, Mode, Store};
use screen::Screen;
use script::Script;
use std::path::PathBuf;
use std::sync::Arc;
use wire::Wire;

/// What the session works on.
const TASK: &str = "github:komado/demo/issue/1";

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// Requests to the model
    #[arg(long, value_name = "N", default_value_t = 240, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    turns: u32,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 16_000, value_parser = clap::value_parser!(u32).range(4_000..))]
    window: u32,
    /// Do not slow down for whoever watches
    #[arg(long)]
    fast: bool,
    /// Keep the session in this folder instead of the usual one
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let kept = args.keep.as_ref().map(|dir| open_kept(dir)).transpose()?;
    if kept.is_none() {
        app.claim()?;
    }
    let App { context: komado_ops::Context { config, engine, files, .. }, paper, .. } = app;
    let (engine, files) = match &kept {
        Some((engine, files)) => (engine, &**files),
        None => (
            &*engine,
            files
                .as_deref()
                .ok_or_else(|| Fault::usage("the demo leaves a folder behind: set store.url to file:"))?,
        ),
    };
    let id = SessionId::new(uuid::Uuid::new_v4().to_string())?;
    engine.create(&Meta {
        uuid: id.to_string(),
        task_key: TaskKey::parse(TASK).map_err(Fault::usage)?,
        created_at: engine.now(),
        process_id: std::process::id(),
        hostname: hostname(),
        config: MetaConfig {
            llm_provider: Some("demo".into()),
            model: Some(hand::MODEL.into()),
            context_length: Some(args.window),
            window_from: None,
            compression_threshold: Some(config.compression_threshold),
            meter: config.meter.clone(),
            persona: None,
            stelis_config: None,
            alias: None,
        },
        user: Some(config.user.clone().unwrap_or_else(|| "demo".into())),
        queued: false,
    })?;
    let budget = config.budget(None, args.window, None);
    let mut screen = Screen::new(paper, args.window, args.turns, args.fast);
    screen.opening(files.base_dir(), &id)?;
    let wire = Wire::new(args.window)?;
    let played = play(engine, &id, (budget, &wire), args.turns, &mut screen)?;
    screen.done()?;
    engine.complete(&id, Some("The issue is closed; every test passes.".into()))?;
    tour::tell(engine, files, &id, &args, &played, paper)
}

/// A store and an engine in a folder of their own.
fn open_kept(dir: &std::path::Path) -> Outcome<(Engine, Arc<FileStore>)> {
    let dir = std::path::absolute(dir)?;
    let holder = Holder {
        pid: std::process::id(),
        host: hostname(),
        program: "komado demo".into(),
        since: SystemClock.now(),
    };
    let files = Arc::new(FileStore::new(&dir, holder));
    Ok((Engine::new(Arc::clone(&files) as Arc<dyn Store>, Arc::new(SystemClock)), files))
}

/// What was played, on the session's first thread, on the fork and in the child.
struct Played {
    root: Done,
    fork: Option<Done>,
    /// What a child thread did.
    errand: Option<Errand>,
    /// The last time a span was condensed, and the last edit in force: worth a look.
    condensed: Option<Seq>,
    edited: Option<Seq>,
}

impl Played {
    /// The most tokens that any view had.
    fn peak(&self) -> u64 {
        let errand = self.errand.as_ref().map_or(0, |errand| errand.done.peak);
        self.root.peak.max(self.fork.as_ref().map_or(0, |fork| fork.peak)).max(errand)
    }
}

/// The whole session: turns, and between them what a person does to it.
fn play(
    engine: &Engine,
    id: &SessionId,
    (budget, wire): (Budget, &Wire),
    turns: u32,
    screen: &mut Screen<'_>,
) -> Outcome<Played> {
    let root = engine.open(id, &ThreadId::root(), Mode::Write)?;
    let mut hand = Hand::new(engine, root, budget, wire);
    let mut script = Script::new();
    hand.open()?;
    let (mut fork, mut errand) = (None, None);
    for n in 1..=turns {
        let last = n == turns;
        let turn = if last { script.farewell() } else { script.next() };
        hand.play(&turn, screen)?;
        screen.turn(n, hand.view().weight(), &turn.says)?;
        match n {
            n if n == turns * 35 / 100 => fork = Some(hand.try_elsewhere(&script.aside(), screen)?),
            n if n == turns * 80 / 100 => errand = hand.delegate((turns / 10).max(2), screen)?,
            n if n == turns * 60 / 100 => hand.go_astray(&script.astray(), screen)?,
            _ => hand.change_mind(screen)?,
        }
        hand.settle()?;
    }
    let (condensed, edited) = (hand.condensed(), hand.view().edits().last());
    Ok(Played { root: hand.finish()?, fork, errand, condensed, edited })
}
