//! A summariser that says what it was told to say.
//!
//! It remembers every request and fails, as a real one would, when a request is larger than its window.

use komado_core::Meter;
use komado_core::journal::Usage;
use komado_engine::condense::{Summariser, SummaryAnswer, SummaryFailure, SummaryRequest};
use std::collections::VecDeque;

/// Answers from a queue.
#[derive(Clone, Debug)]
pub struct Scripted {
    meter: Meter,
    window: Option<u64>,
    answers: VecDeque<Result<String, SummaryFailure>>,
    always: Option<String>,
    /// What it was asked, oldest first.
    pub requests: Vec<SummaryRequest>,
}

impl Scripted {
    /// One without a bound that has nothing to say yet; `meter` counts what it is asked and what it answers.
    pub fn new(meter: Meter) -> Self {
        Self { meter, window: None, answers: VecDeque::new(), always: None, requests: Vec::new() }
    }

    /// Takes at most `tokens`, question and answer together.
    #[must_use]
    pub fn within(mut self, tokens: u64) -> Self {
        self.window = Some(tokens);
        self
    }

    /// Answers next with `text`.
    #[must_use]
    pub fn says(mut self, text: impl Into<String>) -> Self {
        self.answers.push_back(Ok(text.into()));
        self
    }

    /// Fails next because of `why`; what it read is paid for.
    #[must_use]
    pub fn fails(mut self, why: impl Into<String>) -> Self {
        self.answers.push_back(Err(SummaryFailure::new(why)));
        self
    }

    /// Answers with `text` whenever nothing else is left to say.
    #[must_use]
    pub fn always(mut self, text: impl Into<String>) -> Self {
        self.always = Some(text.into());
        self
    }

    /// Tokens of a request, without its answer.
    fn read(&self, request: &SummaryRequest) -> u64 {
        let system = request.system.as_deref().map_or(0, |system| self.meter.said(system));
        u64::from(system) + u64::from(self.meter.said(&request.text))
    }
}

impl Summariser for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn summarise(&mut self, request: &SummaryRequest) -> Result<SummaryAnswer, SummaryFailure> {
        self.requests.push(request.clone());
        let read = self.read(request);
        if let Some(window) = self.window.filter(|window| read + request.max_tokens > *window) {
            let asked = request.max_tokens;
            return Err(SummaryFailure::new(format!(
                "{read} tokens and {asked} for the answer, of {window}"
            )));
        }
        let usage = Usage { input_tokens: read, ..Usage::default() };
        match self.answers.pop_front().or(self.always.clone().map(Ok)) {
            Some(Ok(text)) => {
                let usage = Usage { output_tokens: self.meter.text(&text), ..usage };
                Ok(SummaryAnswer { text, usage: Some(usage), model: None })
            }
            Some(Err(failure)) => Err(SummaryFailure { usage: failure.usage.or(Some(usage)), ..failure }),
            None => Err(SummaryFailure::new("the script has no answer left; give it one more")),
        }
    }
}
