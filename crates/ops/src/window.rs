//! The window: what fills it, what makes the view fit, and how two moments differ.

mod condense;
mod context;
mod diff;
mod fit;
mod parts;
mod plan;
mod room;

pub use condense::{Condense, Condensed, Written, condense_now};
pub use context::{ContextUse, EditInForce, OpenCall, ReadContext};
pub use diff::{Diff, Difference, Differences};
pub use fit::{Fit, Fitted, MadeEdit, Recut};
pub use parts::Parts;
pub use plan::Plan;
pub use room::{Room, window};
