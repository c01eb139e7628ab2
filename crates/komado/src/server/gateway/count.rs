//! `POST /v1/messages/count_tokens`: the provider's own count where it gives one, else ours.

use super::Visit;
use super::choose::Choice;
use super::exchange::{answer, refuse};
use super::outlet::Pipe;
use super::plain;
use super::refusal::Refusal;
use super::spool::Spooled;
use axum::body::Body;
use axum::response::Response;
use komado_core::Meter;
use komado_engine::relay::{Notes, Outlet};
use komado_provider::{Cancel, Dialect, Skimmer};
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Counts a request.
pub(super) async fn count(mut visit: Visit, body: Body) -> Result<Response, Refusal> {
    let spooled = visit.gateway.take(body, Some(Skimmer::new(Dialect::Messages, b""))).await?;
    let model = spooled.skim.as_ref().and_then(|skim| skim.as_ref().ok()?.model.clone());
    let upstreams = &visit.gateway.upstreams;
    let choice = upstreams.choose(visit.aim.upstream.as_deref(), model.as_deref(), Dialect::Messages)?;
    let check = visit.check_ask(&choice);
    let cancel = Cancel::default();
    let stop = cancel.clone();
    answer(cancel, move |mut pipe| {
        let _flight = visit.gateway.flights.enter(&stop);
        if let Err(refusal) = visit.check(&check, (&spooled.file, spooled.len)) {
            refuse(&mut pipe, &refusal, Dialect::Messages, Notes::default());
        } else if !by_provider(&visit, &spooled, &choice, &stop, &mut pipe) {
            by_us(&visit, &spooled, &choice, &mut pipe);
        }
        visit.tell(&pipe, &choice, (spooled.len, 0));
    })
    .await
}

/// True when the provider counted, or said what is wrong.
fn by_provider(visit: &Visit, spooled: &Spooled, choice: &Choice, cancel: &Cancel, pipe: &mut Pipe) -> bool {
    // A name that only we know would be refused.
    if !choice.upstream.speaks(Dialect::Messages) || choice.renames {
        return false;
    }
    let url = choice.upstream.url("/messages/count_tokens", visit.query.as_deref());
    match plain::send(visit, spooled, choice, &url, cancel) {
        Ok(incoming) if ![404, 405, 501].contains(&incoming.status) => {
            plain::hand_on(incoming, pipe);
            true
        }
        _ => false,
    }
}

fn by_us(visit: &Visit, spooled: &Spooled, choice: &Choice, pipe: &mut Pipe) {
    let counted = counted(visit, spooled, choice);
    match counted {
        Ok(tokens) => {
            let headers = [("content-type".to_owned(), "application/json".to_owned())];
            let notes = Notes::default();
            pipe.begin(200, &headers, &notes);
            let _ = pipe.write(serde_json::json!({ "input_tokens": tokens }).to_string().as_bytes());
            pipe.end(&notes);
        }
        Err(refusal) => refuse(pipe, &refusal, Dialect::Messages, Notes::default()),
    }
}

/// Stands for the messages where all but them is read.
const STAND_IN: &str = r#"{"role":"user","content":"-"}"#;

/// By our meter, as far as it was learned how the provider's differs.
fn counted(visit: &Visit, spooled: &Spooled, choice: &Choice) -> Result<u64, Refusal> {
    let wrong = |why: String| Refusal::new(400, why);
    let read = |span: Range<u64>| {
        let mut bytes = vec![0; usize::try_from(span.end - span.start).unwrap_or_default()];
        let read = spooled.file.read_exact_at(&mut bytes, span.start);
        read.map_err(|error| Refusal::new(500, error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| wrong(format!("body: {error}")))
    };
    let meter = Meter::for_model(&choice.model);
    let (mut frame, mut at, mut ours) = (String::new(), 0, 0);
    // One message at a time: a transcript may be larger than memory.
    if let Some(Ok(skim)) = &spooled.skim {
        for element in &skim.elements {
            let tail = Dialect::Messages.read_elements(&[&read(element.span.clone())?], &[]);
            let tail = tail.map_err(|error| wrong(error.to_string()))?;
            ours += tail.messages.iter().map(|message| u64::from(meter.message(message))).sum::<u64>();
        }
        if let (Some(first), Some(last)) = (skim.elements.first(), skim.elements.last()) {
            frame = read(0..first.span.start)? + STAND_IN;
            at = last.span.end;
        }
    }
    frame.push_str(&read(at..spooled.len)?);
    let asked = Dialect::Messages.read(&frame).map_err(|error| wrong(error.to_string()))?;
    ours += u64::from(meter.setup(&asked.setup));
    let context = &visit.gateway.house.context;
    let (asking, _) = visit.gateway.asking(&choice.upstream, &choice.model, Dialect::Messages);
    let lesson = context.models().lesson(&asking).unwrap_or_default();
    Ok(lesson.theirs(ours))
}
