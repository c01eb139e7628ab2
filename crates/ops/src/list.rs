//! The one list of operations.

use crate::edit;
use crate::operation::Row;
use crate::{thread, window};

/// Every operation, in the order in which interfaces list them.
pub const ALL: &[Row] = &[
    Row::of::<edit::Pin>(),
    Row::of::<edit::Unpin>(),
    Row::of::<edit::Rewind>(),
    Row::of::<edit::Revert>(),
    Row::of::<edit::Truncate>(),
    Row::of::<edit::Trim>(),
    Row::of::<window::ReadContext>(),
    Row::of::<window::Fit>(),
    Row::of::<window::Plan>(),
    Row::of::<window::Condense>(),
    Row::of::<window::Diff>(),
    Row::of::<thread::ListThreads>(),
    Row::of::<thread::DrawThreads>(),
    Row::of::<thread::Fork>(),
    Row::of::<thread::StartThread>(),
    Row::of::<thread::TellThread>(),
    Row::of::<thread::EndThread>(),
    Row::of::<thread::AbortThread>(),
    Row::of::<thread::PauseThread>(),
    Row::of::<thread::ResumeThread>(),
    Row::of::<thread::BalanceThread>(),
    Row::of::<thread::ReadChronicle>(),
    Row::of::<thread::WriteChronicle>(),
];
