//! An answer of one dialect, sent on to a client that speaks the other.

use super::answers::ALL;
use super::kit::{decoded, encoded, heard};
use komado_provider::{Dialect, ResponseForm};

#[test]
fn words_thoughts_and_calls_pass_from_one_dialect_to_the_other() {
    for fixture in &ALL {
        let events = decoded(fixture.dialect, fixture.form, &[fixture.text.as_bytes()]);
        let wanted = heard(&events);
        let Some(message) = wanted.message().filter(|_| wanted.failed.is_none()) else { continue };
        let to = if fixture.dialect == Dialect::Chat { Dialect::Ollama } else { Dialect::Chat };
        for form in [ResponseForm::Stream, ResponseForm::Whole] {
            let again = heard(&decoded(to, form, &[&encoded(to, form, &events)]));
            let found = again.message().unwrap_or_else(|| message.saying(""));
            assert_eq!(found.words(), message.words(), "{} {form:?}", fixture.name);
            let calls = |message: &komado_core::message::Message| {
                message
                    .calls()
                    // One that came without an id gets one on its way out.
                    .map(|c| (c.id.strip_prefix("call_").map_or(c.id.as_str(), |_| "").to_owned(), c))
                    .map(|(id, c)| (id, c.name.clone(), c.arguments.clone()))
                    .collect::<Vec<_>>()
            };
            assert_eq!(calls(&found), calls(&message), "{} {form:?}", fixture.name);
            let total = |heard: &komado_provider::ModelResponse| heard.usage.map(|usage| usage.total());
            assert_eq!(total(&again), total(&wanted), "{}", fixture.name);
        }
    }
}
