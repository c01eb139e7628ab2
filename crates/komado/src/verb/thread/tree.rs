//! `komado thread tree`: a session's threads, who has how much of the window, and what became of it.

mod draw;

use super::ended::chronicle_json;
use crate::app::App;
use crate::fault::Outcome;
use crate::share;
use clap::Args as ClapArgs;
use komado_core::view::Weight;
use komado_core::{Address, SessionId};
use komado_engine::share::Portion;
use komado_engine::stelis::Node;
use komado_store::Mode;
use serde_json::{Value, json};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// The session
    pub(crate) address: Address,
    /// The model's window in tokens, in place of the session's own
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let id = app.find(&args.address)?.session;
    let window = app.models().own_window(&app.context.session(&id)?.meta.config, args.window).map(u64::from);
    let tree = app.context.engine.tree(&id, window)?;
    if app.paper.json {
        let mut threads = Vec::new();
        tree.nodes.iter().try_for_each(|node| list(app, node, window, &mut threads))?;
        return app.paper.json(&json!({ "session": id.as_str(), "window": window, "threads": threads }));
    }
    draw::tree(app, &tree, window)
}

/// A thread at this moment, beside what the tree says of it.
struct Leaf {
    portion: Option<Portion>,
    weight: Weight,
}

impl Leaf {
    fn of(app: &App, id: &SessionId, node: &Node, window: Option<u64>) -> Outcome<Self> {
        let thread = app.context.engine.open(id, &node.header.thread, Mode::Read)?;
        let portion = thread.portion(window)?;
        Ok(Self { portion, weight: *thread.view().weight() })
    }

    /// The thread's own window: by its ratio, or all of it.
    fn own_window(node: &Node, window: Option<u64>) -> Option<u64> {
        node.shares.as_ref().map(|shares| shares.own).or(window)
    }
}

/// A thread and those below it, for programs.
fn list(app: &App, node: &Node, window: Option<u64>, threads: &mut Vec<Value>) -> Outcome {
    let header = &node.header;
    let leaf = Leaf::of(app, &header.session, node, window)?;
    threads.push(json!({
        "thread": header.thread.as_str(),
        "address": format!("{}/{}", header.session, header.thread),
        "parent": header.parent.as_ref().map(|parent| parent.thread.as_str()),
        "base": header.base.as_ref().map(|base| format!("{}@{}", base.thread, base.seq)),
        "label": header.label,
        "depth": node.depth,
        "status": node.status.name(),
        "ratio": node.ratio.map(|ratio| ratio.get()),
        "thread_window": Leaf::own_window(node, window),
        "share": leaf.portion.as_ref().map(share::json),
        "context_tokens": leaf.weight.tokens(),
        "above": node.above,
        "messages": node.messages,
        "chronicle": node.chronicle.as_ref().map(chronicle_json),
        "anchored": !node.is_adrift,
        "held": node.held_by.is_some(),
        "created_at": header.timestamp,
    }));
    node.children.iter().try_for_each(|child| list(app, child, window, threads))
}
