//! The one list of operations.

use crate::operation::Row;
use crate::{edit, model, output, recall};

/// Every operation, in the order in which interfaces list them.
pub const ALL: &[Row] = &[
    Row::of::<edit::Pin>(),
    Row::of::<edit::Unpin>(),
    Row::of::<edit::Rewind>(),
    Row::of::<edit::Revert>(),
    Row::of::<edit::Truncate>(),
    Row::of::<edit::Trim>(),
    Row::of::<output::ListOutputs>(),
    Row::of::<output::ReadOutput>(),
    Row::of::<output::ToolOutputCache>(),
    Row::of::<output::ToolOutputCacheGrep>(),
    Row::of::<output::ToolOutputCacheLine>(),
    Row::of::<recall::Recall>(),
    Row::of::<recall::RecallSession>(),
    Row::of::<model::ListModels>(),
    Row::of::<model::ListLessons>(),
    Row::of::<model::ForgetLesson>(),
    Row::of::<model::ModelOfSession>(),
    Row::of::<model::UpdateModels>(),
    Row::of::<model::ExplainError>(),
];
