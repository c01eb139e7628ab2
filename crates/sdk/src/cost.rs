//! What a conversation cost, as its journal says.

use crate::error::Result;
use crate::session::Session;
use komado_core::journal::Entry;

/// What the requests of a thread cost, in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Cost {
    /// How many requests were sent.
    pub requests: u64,
    /// Tokens of all of them.
    pub sent: u64,
    /// Those of them that the provider read from its cache.
    pub cached: u64,
    /// Tokens of the largest one.
    pub largest: u64,
    /// Tokens of all answers.
    pub answers: u64,
    /// Tokens of everything that was said, long outputs whole.
    pub said: u64,
    /// Tokens of all requests, had each held everything said before it.
    pub whole: u64,
}

impl Session<'_> {
    /// Adds up what this thread cost, with what it shares and what was rewound. It reads the whole journal.
    pub fn cost(&self) -> Result<Cost> {
        let mut cost = Cost::default();
        for record in self.entries() {
            let record = record?;
            match record.entry {
                Entry::Sent(sent) => {
                    cost.requests += 1;
                    cost.sent += sent.context_tokens;
                    cost.largest = cost.largest.max(sent.context_tokens);
                    cost.whole += if sent.purpose.is_none() { cost.said } else { sent.context_tokens };
                }
                Entry::Message(message, reply) => {
                    let is_clipped = message.outcome().is_some_and(|outcome| outcome.output_ref.is_some());
                    cost.said += match is_clipped {
                        true => self.thread.meter().text(&self.text(record.seq)?),
                        false => record.tokens.into(),
                    };
                    if let Some(usage) = reply.and_then(|reply| reply.usage) {
                        cost.cached += usage.cache_read_tokens;
                        cost.answers += usage.output_tokens;
                    }
                }
                Entry::Setup(_) => cost.said += u64::from(record.tokens),
                _ => {}
            }
        }
        Ok(cost)
    }
}
