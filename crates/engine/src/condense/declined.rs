//! Why nothing was written, with the numbers, what was spent, and the way out.
//!
//! A summary is never half a success: either there are texts that make the view smaller, or there is one of these.

use komado_core::Seq;
use komado_core::journal::Usage;

/// Why there is no summary.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Declined {
    /// Too little to be worth it.
    #[error(
        "only {found} message{} would be summarised and {needed} are worth it; \
         hide more of them, or lower min_messages_to_summarize",
        if *found == 1 { "" } else { "s" }
    )]
    TooFew {
        /// Messages that would leave the view.
        found: u64,
        /// The fewest worth a summary.
        needed: u64,
    },
    /// Only earlier summaries would be summarised.
    #[error("nothing was said in the span since edit @{edit} stands for it; go on first, or revert @{edit}")]
    JustCondensed {
        /// The newest edit among what would leave.
        edit: Seq,
    },
    /// The limit leaves no room for words.
    #[error(
        "{limit} tokens for the texts that stand for the span are too few: \
         at least {needed} are needed; raise the limit"
    )]
    NoRoom {
        /// Tokens for all texts together.
        limit: u64,
        /// The fewest that would do.
        needed: u64,
    },
    /// The summariser's window holds the instructions and an answer, and hardly a message.
    #[error(
        "the window of {by} has {window} tokens and the instructions alone take {instructions}: \
         at least {needed} are needed; choose a model with a larger window, or shorten the prompt"
    )]
    Window {
        /// Who was to be asked.
        by: String,
        /// Its window.
        window: u64,
        /// Tokens of instructions without a message.
        instructions: u64,
        /// The smallest window that would do.
        needed: u64,
    },
    /// An answer without words.
    #[error(
        "{by} answered part {part} without a summary; try again, \
         choose another model, or condense with the digest, which needs none"
    )]
    Empty {
        /// Who was asked.
        by: String,
        /// Which part, from 1.
        part: u32,
        /// What was spent.
        usage: Option<Usage>,
    },
    /// What would be shown is no smaller than what would be hidden, or useless when cut to fit.
    #[error(
        "the summary does not make the view smaller: {shown} tokens would stand for {hidden}, \
         and {limit} are allowed; hide more, or ask for a shorter summary"
    )]
    Larger {
        /// Tokens that would leave.
        hidden: u64,
        /// Tokens that would stand for them.
        shown: u64,
        /// Tokens allowed.
        limit: u64,
        /// What was spent.
        usage: Option<Usage>,
    },
    /// The summariser failed.
    #[error(
        "{by} failed on part {part}: {why}; nothing was changed; try again, \
         choose another model, or condense with the digest, which needs none"
    )]
    Failed {
        /// Who was asked.
        by: String,
        /// Which part, from 1.
        part: u32,
        /// What it said.
        why: String,
        /// What was spent, the failure included.
        usage: Option<Usage>,
    },
}

impl Declined {
    /// What was spent before it came to this.
    pub fn usage(&self) -> Option<Usage> {
        match self {
            Self::TooFew { .. } | Self::JustCondensed { .. } => None,
            Self::NoRoom { .. } | Self::Window { .. } => None,
            Self::Empty { usage, .. } | Self::Larger { usage, .. } | Self::Failed { usage, .. } => *usage,
        }
    }
}
