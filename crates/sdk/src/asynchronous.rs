//! The same library for asynchronous programs.
//!
//! Calls of the library block: a durable append is a write and a sync. So each [`Session`] lives on a thread of its own,
//! which does what it is told in order, and a call waits for that without blocking. A call that is dropped while it waits
//! is still carried out.
//!
//! ```
//! use komado_sdk::{Komado, Model, asynchronous::Session};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let komado = Komado::in_memory();
//! let chat = Session::open(&komado, |komado| komado.session("licences").window(8_000)).await?;
//! chat.user("Which licence is it?").await?;
//! let reply = chat.ask(&Model::scripted().says("MIT."), |_| {}).await?;
//! assert_eq!(reply.text, "MIT.");
//! let tokens = chat.with(|session| Ok(session.tokens())).await?;
//! assert!(tokens > 0);
//! # komado_sdk::Result::Ok(())
//! # }).unwrap();
//! ```

use crate::error::{Error, ErrorKind, Result};
use crate::komado::Komado;
use crate::session::{self, SessionBuilder};
use komado_core::Seq;
use std::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;

type Work = Box<dyn FnOnce(&mut session::Session<'_>) + Send>;

/// A conversation on a thread of its own. The thread ends, and the session is let go of, when the last clone is dropped.
#[derive(Clone)]
pub struct Session {
    work: Sender<Work>,
}

impl Session {
    /// Opens a session as `choose` says.
    pub async fn open<F>(komado: &Komado, choose: F) -> Result<Self>
    where
        F: for<'k> FnOnce(&'k Komado) -> SessionBuilder<'k> + Send + 'static,
    {
        let (work, todo) = channel::<Work>();
        let (opened, is_open) = oneshot::channel();
        let komado = komado.clone();
        let thread = std::thread::Builder::new().name("komado-session".into());
        let run = move || {
            let mut session = match choose(&komado).open() {
                Ok(session) => session,
                Err(error) => {
                    // The caller may be gone.
                    let _ = opened.send(Err(error));
                    return;
                }
            };
            let _ = opened.send(Ok(()));
            todo.into_iter().for_each(|work| work(&mut session));
        };
        thread.spawn(run).map_err(|error| Error::from(komado_engine::Error::from(error)))?;
        is_open.await.map_err(|_| gone())??;
        Ok(Self { work })
    }

    /// Does anything with the session, on its thread.
    pub async fn with<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut session::Session<'_>) -> Result<T> + Send + 'static,
    {
        let (done, result) = oneshot::channel();
        let work: Work = Box::new(move |session| {
            // The caller may be gone.
            let _ = done.send(work(session));
        });
        self.work.send(work).map_err(|_| gone())?;
        result.await.map_err(|_| gone())?
    }

    /// Says something as the user.
    pub async fn user(&self, text: &str) -> Result<Seq> {
        let text = text.to_owned();
        self.with(move |session| session.user(&text)).await
    }

    /// Answers a call of the model.
    pub async fn tool_result(&self, call_id: &str, text: &str) -> Result<Seq> {
        let (call_id, text) = (call_id.to_owned(), text.to_owned());
        self.with(move |session| session.tool_result(&call_id, &text)).await
    }

    /// Takes one edit back.
    pub async fn revert(&self, edit: Seq) -> Result<Seq> {
        self.with(move |session| session.revert(edit)).await
    }
}

#[cfg(feature = "client")]
impl Session {
    /// Asks `model`; `on_text` is called on the session's thread, with each word as it comes.
    pub async fn ask(
        &self,
        model: &crate::Model,
        on_text: impl FnMut(&str) + Send + 'static,
    ) -> Result<crate::Reply> {
        let model = model.clone();
        self.with(move |session| session.ask(&model, on_text)).await
    }
}

fn gone() -> Error {
    Error::new(
        ErrorKind::Failed,
        "the thread of this session ended: a call in it panicked; open the session again",
    )
}
