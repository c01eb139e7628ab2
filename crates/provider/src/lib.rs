//! The other side of the wire: how providers are spoken to, and what they answer.
//!
//! Dialects are pure codecs in both directions; they never see a socket. Providers are rows of data. One client sends
//! what is on disk and hands on what comes back. The scripted server is the same codecs the other way round: it serves
//! tests, the demo, and users who test an agent of their own. Nothing here knows a store or a journal's place.

#![forbid(unsafe_code)]

#[cfg(feature = "client")]
pub mod client;
pub mod dialect;
pub mod event;
pub mod lines;
pub mod overflow;
#[cfg(feature = "client")]
pub mod probe;
#[cfg(feature = "client")]
pub mod provider;
pub mod refusal;
pub mod registry;
pub mod same;
pub mod scan;
#[cfg(feature = "server")]
pub mod scripted;
pub mod splice;

#[cfg(feature = "client")]
pub use client::{
    Cancel, Client, ClientBody, ClientError, ClientTimeouts, ForwardRequest, IsFinal, Method,
    ProviderResponse, RetryWait, SendError, SendStep,
};
pub use dialect::{BadRequest, Dialect, ModelRequest, ParsedRequest, ResponseForm, ToolUse};
pub use event::{ModelEvent, ModelResponse, ProviderFailure};
#[cfg(feature = "client")]
pub use provider::{ApiKey, Auth, BadKey, BadUrl, Provider, ProviderRow, ROWS, row};
pub use refusal::{ApiRefusal, RefusalKind};
pub use same::same_words;
pub use scan::{
    ElementAuthor, ReferenceScanner, References, RequestScanner, ScannedRequest, TranscriptElement,
};
pub use splice::{Splice, SplicePiece};

/// True when `word` is one of the words of `list`.
fn listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}
