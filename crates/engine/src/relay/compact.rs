//! A transcript made shorter because its client asks for it, before it would be refused.
//!
//! Nothing is sent to the provider but what a summariser may ask. What the client gets is what the view shows; when it comes
//! back with that, it is another transcript and gets a thread of its own.

use super::mouth::Mouth;
use super::refusal::seconds;
use super::visit::Visit;
use super::{Fault, Outlet};
use crate::condense::ByDigest;
use crate::error::Error;
use crate::fit::Ladder;
use crate::turn::render::Stored;
use komado_core::message::Message;

impl Visit<'_> {
    /// Condenses, and answers with the items that are left.
    pub(super) fn compact(mut self, outlet: &mut dyn Outlet) -> Result<(), Fault> {
        let window = match self.window() {
            0 => self.lesson.theirs(self.thread.view().tokens()).max(1),
            window => window,
        };
        let (session, meter) = (self.thread.session().clone(), self.thread.meter());
        let mut digest = ByDigest::new(meter);
        let mut own = (self.manner.summariser)(&session, meter, &self.upstream.asking.cancel);
        let by = own.as_deref_mut().unwrap_or(&mut digest);
        let settings = self.manner.settings.clone();
        let mut ladder = Ladder { budget: self.budget(window), settings, by };
        let fitted = self.thread.condense_now(&mut ladder)?;
        self.count(&fitted.done);
        self.notes.after = fitted.after;
        let body = self.compacted()?;
        let notes = self.leave();
        let mut mouth = Mouth::new(outlet);
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        mouth.begin(200, &headers, &notes);
        mouth.write(&body);
        mouth.close(&notes).into()
    }

    fn compacted(&self) -> Result<Vec<u8>, Error> {
        let mut messages = Vec::new();
        self.thread.view().pour_said(self.thread.source(), &mut |_, message: &Message| {
            messages.push(message.clone());
            Ok::<(), Error>(())
        })?;
        let mut blobs = Stored { store: self.thread.store(), session: self.thread.session() };
        let items = self.arrival.dialect().write_elements(&messages, &mut blobs)?;
        let (created, last) = (seconds(&self.relay.engine.now()), self.thread.last());
        let (before, after) = (self.notes.before, self.notes.after);
        let mut body = format!(
            "{{\"id\":\"resp_{}_{last}\",\"object\":\"response.compaction\",\"created_at\":{created},\"output\":[",
            self.thread.session()
        )
        .into_bytes();
        body.extend(items);
        body.extend(
            format!(
                "],\"usage\":{{\"input_tokens\":{before},\"input_tokens_details\":{{\"cached_tokens\":0}},\
                 \"output_tokens\":{after},\"output_tokens_details\":{{\"reasoning_tokens\":0}},\"total_tokens\":{}}}}}",
                before + after
            )
            .into_bytes(),
        );
        Ok(body)
    }
}
