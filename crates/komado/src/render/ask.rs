//! An answer was printed as it came; what is left to say is which calls wait, and how they are answered.

use super::{Render, address};
use crate::fault::Outcome;
use crate::paper::{Paper, say};
use komado_ops::ask::Answered;

impl Render for Answered {
    fn text(&self, _: &mut Paper) -> Outcome {
        for call in &self.calls {
            say(format!("⋯ the model waits for {}({}), {}", call.name, call.arguments, call.id));
        }
        if let Some(first) = self.calls.first() {
            let name = address(&self.session, &self.thread);
            say(format!(
                "answer with: komado append {name} --role tool --call {} \"…\"; then: komado ask --again {name}",
                first.id
            ));
        }
        Ok(())
    }
}
