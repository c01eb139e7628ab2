//! Reads a request without keeping it: what a client's memory and speed are measured against.
//!
//! However large the body is, only its ends are held, to see whether the answer is to come in pieces. What is answered
//! cannot depend on it: steps of the script are used in order as far as they have no conditions, else a short fixed text.

use super::Host;
use super::decide::{Answer, Decision, fixed_stamp};
use super::ledger::{Fnv, Seen};
use super::script::{News, Reply};
use super::speech::{self, Speech};
use crate::dialect::{Dialect, Form};
use axum::body::Body;
use http_body_util::BodyExt;
use komado_core::journal::Usage;
use std::time::Duration;

/// Bytes that are held at each end.
const END: usize = 4096;

/// What the answer says.
const WORDS: &str = "ok";

/// Reads `body` to its end and answers the next step, or a short fixed text. `None` when the client went away.
pub(super) async fn take(
    host: &Host,
    dialect: Dialect,
    path: String,
    headers: Vec<(String, String)>,
    mut body: Body,
) -> Option<Decision> {
    let (mut sum, mut bytes) = (Fnv::default(), 0u64);
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.ok()?.into_data() else { continue };
        sum.bytes(&data);
        bytes += data.len() as u64;
        head.extend_from_slice(&data[..data.len().min(END - head.len())]);
        tail.extend_from_slice(&data[data.len().saturating_sub(END)..]);
        tail.drain(..tail.len().saturating_sub(END));
    }
    let stream = streams(dialect, &head, &tail);
    let n = host.ledger().number();
    let seen = Seen {
        n,
        dialect,
        path,
        headers,
        body: Vec::new(),
        bytes,
        digest: sum.0,
        tokens: 0,
        status: 200,
        stream,
        cached: 0,
    };
    host.record(seen);
    let speech = said(host, dialect, sum.0);
    // A guess, so that nobody takes the answer for one to a shortened request.
    let usage = Usage { input_tokens: bytes / 4, output_tokens: speech.tokens, ..Usage::default() };
    let events = speech.events(speech::begun(dialect, "scripted", sum.0), usage, None);
    let form = if stream { Form::Stream } else { Form::Whole };
    let answer = Answer::Said { form, events, stamp: fixed_stamp(true) };
    Some(Decision { answer, delay: Duration::ZERO, pause: Duration::ZERO, break_after: None })
}

/// The reply of the next step, as it stands there; the fixed text when there is none.
fn said(host: &Host, dialect: Dialect, digest: u64) -> Speech {
    let Some(step) = host.ledger().step(&News::default()) else {
        let reply = Reply { text: WORDS.into(), ..Reply::default() };
        return Speech { reply, finish: "stop".into(), tokens: 1 };
    };
    let mut reply = step.reply;
    speech::name_calls(&mut reply.calls, dialect, digest);
    Speech::new(host.options.meter, reply, None, step.finish)
}

/// Whether the request asks for pieces, as far as its ends tell.
fn streams(dialect: Dialect, head: &[u8], tail: &[u8]) -> bool {
    let says = |word: &str| [head, tail].iter().any(|end| String::from_utf8_lossy(end).contains(word));
    let (yes, no) = (
        says("\"stream\":true") || says("\"stream\": true"),
        says("\"stream\":false") || says("\"stream\": false"),
    );
    yes || (dialect == Dialect::Ollama && !no)
}
