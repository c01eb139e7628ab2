//! A way to say stop, from any thread, to whatever waits, sends or reads.
//!
//! It knows nothing of what it stops: the client listens to it at every step, and nothing else is asked of it. Once
//! said it stays said; a new call takes a new one.

use tokio_util::sync::CancellationToken;

/// Says stop. Clones are one and the same.
#[derive(Clone, Default, Debug)]
pub struct Cancel(CancellationToken);

impl Cancel {
    /// Stops what listens, at once.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// True once it was said.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Ends when it is said.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}
