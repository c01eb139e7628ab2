//! Who asks, and which session is meant when none is named.

use crate::app::App;
use crate::server::Caller;
use komado_ops::{Context, Naming};
use std::sync::Arc;

/// One guest's desk.
pub(super) struct Desk {
    /// Settings, store and engine.
    pub(super) app: Arc<App>,
    /// Who asks.
    pub(super) guest: Caller,
    /// The session that is meant when none is named.
    pub(super) named: Option<String>,
}

impl Desk {
    /// What operations run in.
    pub(super) fn context(&self) -> Context {
        let naming = Naming::Prefix { default: self.named.clone() };
        self.app.context.of(self.guest.clone(), naming)
    }
}
