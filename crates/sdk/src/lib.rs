//! Conversations with language models that stay inside the window, on disk, and lose no word.
//!
//! ```
//! use komado_sdk::{Komado, Model};
//!
//! # fn main() -> komado_sdk::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let folder = folder.path();
//! let komado = Komado::open(folder)?; // or Komado::in_memory(), Komado::connect(url)
//! let mut chat = komado.session("licences").window(8_000).open()?;
//! chat.user("Please read both licences.")?;
//! let model = Model::scripted().says("Both ask us to keep the notices."); // or Model::from_env("openai/gpt-4o")?
//! let reply = chat.ask(&model, |text| print!("{text}"))?;
//! let edit = chat.condense(1..=reply.seq, "Both were read.")?;
//! chat.revert(edit)?;
//! for message in chat.messages() {
//!     println!("{}", message?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A [`Komado`] is a place where sessions are kept. A [`Session`] is a conversation: what is said is durable when the call
//! returns, [`Session::ask`] makes the view fit the window and asks a [`Model`], every edit is undone by
//! [`Session::revert`], and nothing is ever removed. [`Session::messages`] is what the model sees, [`Session::entries`]
//! everything that ever happened, [`Session::edits`] what lies between the two. [`Session::child`] works apart in a share of
//! the window, and [`Session::cost`] adds up what was sent.
//!
//! | feature | |
//! |---|---|
//! | `client` (on) | asks models over HTTP |
//! | `scripted` | a model that follows a script, in this process |
//! | `postgres`, `redis` | sessions on a server |
//! | `async` | the module `asynchronous`, for asynchronous programs |
//!
//! The time and the names of new sessions come from the system unless [`Komado::builder`] is given others; with those, two
//! runs write the same journal byte for byte.

#![forbid(unsafe_code)]

#[cfg(feature = "async")]
pub mod asynchronous;
mod error;
mod iter;
mod komado;
#[cfg(feature = "client")]
mod model;
#[cfg(feature = "scripted")]
mod scripted;
mod session;

pub use crate::komado::{Builder, Komado};
pub use error::{Error, ErrorKind, Result};
pub use iter::{Entries, Messages, SeenMessage, SessionInfo, Sessions};
pub use komado_core::budget::{Policy, Preset};
pub use komado_core::journal::{Edit, EditKind, Entry, Record, Usage};
pub use komado_core::message::{Call, Message, MessagePart, Role};
pub use komado_core::{Seq, SessionId};
pub use komado_engine::fit::FitResult;
pub use komado_engine::recall::RecallHit;
#[cfg(feature = "scripted")]
pub use komado_provider::scripted::ScriptStep;
#[cfg(feature = "client")]
pub use komado_provider::{Cancel, Dialect};
#[cfg(feature = "client")]
pub use model::{Model, Reply};
pub use session::{Cost, Session, SessionBuilder};

/// The library's example on the front page compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct FrontPage;
