//! What all doors share.

use super::access::Access;
use super::circuit::Circuit;
use super::metered::Metered;
use super::metrics::Meters;
use super::news::Newsroom;
use super::pulse::LastPulse;
use komado_ops::Context;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Settings, store and engine, who may come in, and a way to say that it is over.
pub(crate) struct House {
    /// Settings, store and engine; what the store does is counted, and what people should know goes to the log.
    pub(crate) context: Context,
    /// Who may come in.
    pub(crate) access: Access,
    /// What is counted.
    pub(crate) meters: Arc<Meters>,
    /// Whether the store is worth asking.
    pub(crate) circuit: Arc<Circuit>,
    /// How the store is doing, as it last said.
    pub(crate) pulse: LastPulse,
    /// Where readers hear what happens.
    pub(crate) news: Newsroom,
    /// Said when the server is to stop: what waits without end (events) ends then.
    pub(crate) stop: CancellationToken,
}

impl House {
    /// A house over the store of `context`.
    pub(crate) fn new(context: &Context, access: Access) -> Arc<Self> {
        let (meters, circuit) = (Arc::new(Meters::new()), Arc::new(Circuit::default()));
        let engine = context
            .engine
            .over(|store| Arc::new(Metered::new(store, Arc::clone(&meters), Arc::clone(&circuit))));
        let context = context.over(engine).noting(|note| tracing::warn!("{note}")).served();
        Arc::new(Self {
            context,
            access,
            meters,
            circuit,
            pulse: LastPulse::default(),
            news: Newsroom::default(),
            stop: CancellationToken::new(),
        })
    }
}
