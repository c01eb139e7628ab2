//! `komado cleanup`: remove sessions that ended long ago. It fails when some could not be removed, after telling of all.

use crate::app::App;
use crate::fault::{Exit, Fault, Outcome};
use crate::paper::count;
pub(crate) use komado_ops::session::Cleanup as Args;

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    let cleaned = app.context.run(args)?;
    app.print(&cleaned)?;
    match cleaned.failures() {
        0 => Ok(()),
        n => {
            Err(Fault::new(Exit::Failed, format!("{} could not be removed; see above", count(n, "session"))))
        }
    }
}
