//! The one list of operations.

use crate::edit;
use crate::operation::Row;
use crate::session;

/// Every operation, in the order in which interfaces list them.
pub const ALL: &[Row] = &[
    Row::of::<session::ListSessions>(),
    Row::of::<session::GetSession>(),
    Row::of::<session::New>(),
    Row::of::<session::Complete>(),
    Row::of::<session::Fail>(),
    Row::of::<session::Stop>(),
    Row::of::<session::Pause>(),
    Row::of::<session::Resume>(),
    Row::of::<session::RemoveSession>(),
    Row::of::<session::Cleanup>(),
    Row::of::<session::StatsOf>(),
    Row::of::<edit::Pin>(),
    Row::of::<edit::Unpin>(),
    Row::of::<edit::Rewind>(),
    Row::of::<edit::Revert>(),
    Row::of::<edit::Truncate>(),
    Row::of::<edit::Trim>(),
];
