//! The one list of operations.

use crate::edit;
use crate::operation::Row;

/// Every operation, in the order in which interfaces list them.
pub const ALL: &[Row] = &[
    Row::of::<edit::Pin>(),
    Row::of::<edit::Unpin>(),
    Row::of::<edit::Rewind>(),
    Row::of::<edit::Revert>(),
    Row::of::<edit::Truncate>(),
    Row::of::<edit::Trim>(),
];
