//! `komado sessions`: the sessions there are, or one session's threads.

use crate::app::App;
use crate::fault::Outcome;
use crate::paper::number;
use crate::table::table;
use clap::Args as ClapArgs;
use komado_core::Address;
use komado_ops::session::{ListSessions, Status};
use komado_store::Mode;
use serde_json::json;

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    /// List this session's threads
    pub(crate) address: Option<Address>,
    /// Only sessions in this state
    #[arg(long, value_enum)]
    pub(crate) status: Option<Status>,
    /// Only this user's
    #[arg(long)]
    pub(crate) user: Option<String>,
    /// At most so many, the newest
    #[arg(short = 'n', long, default_value_t = 50)]
    pub(crate) limit: u32,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    if let Some(address) = &args.address {
        return threads(app, address);
    }
    let Args { status, user, limit, .. } = args;
    let (limit, newest) = (Some(limit), Some(true));
    app.show(ListSessions { status, user, limit, newest, ..ListSessions::default() })
}

fn threads(app: &mut App, address: &Address) -> Outcome {
    let found = app.find(address)?;
    let mut rows = vec![
        ["thread", "status", "started at", "goes on from", "entries", "tokens", "label"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for header in app.context.engine.store().threads(&found.session)? {
        let thread = app.context.engine.open(&found.session, &header.thread, Mode::Read)?;
        let base = header.base.as_ref().map(|base| format!("{}@{}", base.thread, base.seq));
        let parent = header.parent.as_ref().map(|parent| format!("{}@{}", parent.thread, parent.seq));
        let status = thread.status()?.name();
        let own = thread.last() - header.base_seq();
        let tokens = thread.view().tokens();
        if app.paper.json {
            app.paper.json(&json!({
                "session": found.session.as_str(),
                "thread": header.thread.as_str(),
                "status": status,
                "parent": parent,
                "base": base,
                "entries": own,
                "last": thread.last(),
                "context_tokens": tokens,
                "label": header.label,
                "created_at": header.timestamp,
            }))?;
            continue;
        }
        rows.push(vec![
            header.thread.to_string(),
            status.to_owned(),
            parent.unwrap_or_else(|| "-".into()),
            base.unwrap_or_else(|| "-".into()),
            number(u64::from(own)),
            number(tokens),
            header.label.unwrap_or_default(),
        ]);
    }
    if app.paper.json {
        return Ok(());
    }
    table(&rows, &[4, 5]).into_iter().try_for_each(|line| app.paper.fit(&line))
}
