//! No, in the client's own dialect.
//!
//! What a provider says is handed on as it is where the client speaks its dialect. In another one it is said anew, and a
//! conversation that is too large to the end is refused in the words that clients know to look for.

use super::listen::Refused;
use super::mouth::{Mouth, kind};
use super::visit::Visit;
use komado_provider::dialect::Stamp;
use komado_provider::{Dialect, Failed, Form, Refusal, RefusalKind};

impl Visit<'_> {
    /// Hands an error on.
    pub(super) fn tell_refusal(
        &mut self,
        mouth: &mut Mouth<'_>,
        status: u16,
        headers: &[(String, String)],
        body: &str,
    ) {
        let failed = Failed { status, body: body.to_owned() };
        if mouth.begun() {
            // The answer had begun in an earlier round: its end is an error inside it.
            return mouth.fail(failed);
        }
        mouth.forget();
        if self.translates() {
            mouth.translate(self.arrival.dialect(), Form::Whole, Stamp::default(), false);
            mouth.begin_anew(status, headers, &self.notes);
            mouth.fail(failed);
            return mouth.repeat();
        }
        // Its length is told anew: of a very long reason not all is handed on.
        let kept: Vec<_> = headers.iter().filter(|(name, _)| name != "content-length").cloned().collect();
        mouth.begin(status, &kept, &self.notes);
        mouth.write(body.as_bytes());
    }

    /// Says that the conversation is too large, after everything was tried.
    pub(super) fn tell_too_large(&mut self, mouth: &mut Mouth<'_>, refused: &Refused) {
        let (dialect, stream) = (self.arrival.dialect(), self.arrival.skim.stream);
        let known = ["context_length_exceeded", "prompt is too long"];
        let is_known = known.iter().any(|words| refused.body.contains(words));
        if is_known && !self.translates() && refused.status >= 400 && !mouth.begun() {
            return self.tell_refusal(mouth, refused.status, &refused.headers, &refused.body);
        }
        let refusal = Refusal {
            tokens: refused.why.actual.or(Some(self.notes.after)),
            limit: refused.why.limit,
            ..Refusal::new(RefusalKind::Overflow, refused.why.why.clone())
        };
        if !mouth.begun() {
            mouth.forget();
        }
        // Who reads a stream of responses looks for this in the stream alone.
        let in_stream = stream && (mouth.begun() || dialect == Dialect::Responses);
        let (status, body) = dialect.refusal(&refusal);
        let (status, form, body) = match in_stream {
            true => (200, Form::Stream, dialect.refusal_event(&refusal)),
            false => (status, Form::Whole, body),
        };
        let headers = [("content-type".to_owned(), kind(dialect, form).to_owned())];
        mouth.begin(status, &headers, &self.notes);
        mouth.write(&body);
    }
}

/// Seconds since 1970 of a time as RFC 3339; 0 for what is none.
pub(super) fn seconds(time: &str) -> u64 {
    let number = |range: std::ops::Range<usize>| time.get(range).and_then(|text| text.parse::<i64>().ok());
    let parts = [0..4, 5..7, 8..10, 11..13, 14..16, 17..19].map(number);
    let [Some(year), Some(month), Some(day), Some(hour), Some(minute), Some(second)] = parts else {
        return 0;
    };
    // Years that begin in March end with the day that may be missing.
    let (y, m) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719_468;
    u64::try_from(((days * 24 + hour) * 60 + minute) * 60 + second).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_so_many_seconds() {
        assert_eq!(seconds("1970-01-01T00:00:00Z"), 0);
        assert_eq!(seconds("2024-02-29T12:34:56.789Z"), 1_709_210_096);
        assert_eq!(seconds("yesterday"), 0);
    }
}
