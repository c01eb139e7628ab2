//! Threads of a session: forks, and children that work in a share of the window.

mod abort;
mod balance;
mod child;
mod chronicle;
mod end;
mod ended;
mod fork;
mod list;
mod pause;
mod resume;
mod run;
mod share;
mod start;
mod tell;
mod tree;
mod write_chronicle;
mod writer;

pub use abort::AbortThread;
pub use balance::{BalanceThread, Balanced, ShareEntry};
pub use child::{ChildOptions, ratio, spawn_settings};
pub use chronicle::{Chronicle, ChronicleEntry, ReadChronicle};
pub use end::EndThread;
pub use ended::{Ended, HowEnded};
pub use fork::{Fork, Forked, ThreadMoment};
pub use list::{ListThreads, ThreadRow};
pub use pause::PauseThread;
pub use resume::{ResumeThread, Resumed};
pub use run::{Ran, RunThread};
pub use share::{AboveShare, WindowShare};
pub use start::{StartThread, Started};
pub use tell::{TellThread, Told};
pub use tree::{DrawThreads, ThreadTree, TreeThread};
pub use write_chronicle::{WriteChronicle, WrittenChronicle};
pub use writer::{ChronicleWriter, WrittenBy};

use crate::address::AtThread;
use crate::{Context, Fault, Outcome};
use komado_engine::engine::Found;

/// The child thread that a request means, for an operation that changes what is now.
fn child(context: &Context, at: &AtThread) -> Outcome<Found> {
    let found = context.find_now(at)?;
    match found.thread.is_root() {
        false => Ok(found),
        true => Err(Fault::usage(format!(
            "name a child thread, such as {0}/stelis_1; `komado thread tree {0}` shows which there are",
            found.session
        ))),
    }
}
