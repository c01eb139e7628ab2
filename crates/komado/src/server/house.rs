//! What all doors share.

use super::access::Access;
use crate::app::App;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Settings, store and engine, who may come in, and a way to say that it is over.
pub(crate) struct House {
    /// Settings, store and engine.
    pub(crate) app: Arc<App>,
    /// Who may come in.
    pub(crate) access: Access,
    /// Said when the server is to stop: what waits without end (events) ends then.
    pub(crate) stop: CancellationToken,
}
