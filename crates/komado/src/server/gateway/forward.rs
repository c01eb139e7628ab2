//! What is not a conversation goes to the provider as it comes.
//!
//! Embeddings, files, a list of local models: Komado has nothing to say about them, and does not stand in the way.

use super::body::{self, SpooledBody};
use super::exchange::{ResponsePipe, answer};
use super::headers::{self, KeyPolicy, Translation};
use super::permissions::BodyCheck;
use super::upstream::{GatewayUpstream, UpstreamChoice};
use super::{GatewayRefusal, GatewayRequest, encoded};
use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use komado_core::picture::PictureRule;
use komado_core::{Message, Meter};
use komado_engine::relay::{ClientOutlet, RelayNotes};
use komado_provider::{Cancel, Dialect, ForwardRequest, ProviderResponse, RequestScanner, SendError, Splice};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::ScopedJoinHandle;

/// The longest list of models that is read.
const LONGEST: usize = 16 << 20;

/// Forwards a request to a path after the version.
pub(super) async fn version(
    mut visit: GatewayRequest,
    body: Body,
    path: &str,
) -> Result<Response, GatewayRefusal> {
    let choice = visit.gateway.upstreams.choose(visit.aim.upstream.as_deref(), None, visit.aim.dialect)?;
    let check = visit.check_route(&choice, path)?;
    let url = choice.upstream.url(path, visit.query.as_deref());
    forward(visit, body, choice, (url, check)).await
}

/// Forwards a request to a path at the root: only a provider that speaks as Ollama does has those.
pub(super) async fn root(
    mut visit: GatewayRequest,
    body: Body,
    path: &str,
) -> Result<Response, GatewayRefusal> {
    let upstreams = &visit.gateway.upstreams;
    if visit.aim.upstream.is_none() {
        let ollama = upstreams.all().iter().find(|upstream| upstream.speaks(Dialect::Ollama));
        let Some(ollama) = ollama else {
            return Err(GatewayRefusal::new(
                404,
                format!("{path} is one of Ollama's, and no provider here speaks as it does"),
            ));
        };
        visit.aim.upstream = Some(ollama.name().to_owned());
    }
    let choice = upstreams.choose(visit.aim.upstream.as_deref(), None, Dialect::Ollama)?;
    let check = visit.check_route(&choice, path)?;
    let url = choice.upstream.root_url(path, visit.query.as_deref());
    forward(visit, body, choice, (url, check)).await
}

/// Forwards a request to an address of the provider, once it was checked.
async fn forward(
    visit: GatewayRequest,
    body: Body,
    choice: UpstreamChoice,
    (url, check): (String, BodyCheck),
) -> Result<Response, GatewayRefusal> {
    let spooled = body::take(body, None, &visit.gateway.rules).await?;
    let request = ForwardedRequest { visit, spooled, choice, cancel: Cancel::default() };
    let sent = move |request: &ForwardedRequest, pipe: &mut ResponsePipe| {
        let incoming = request.send(&url).map_err(|error| GatewayRefusal::of(&error))?;
        hand_on(incoming, pipe);
        Ok(())
    };
    request.answered(check, sent).await
}

/// A request that is not a conversation, with its body.
struct ForwardedRequest {
    visit: GatewayRequest,
    spooled: SpooledBody,
    choice: UpstreamChoice,
    cancel: Cancel,
}

impl ForwardedRequest {
    /// Does the work on a thread of its own, once the request was checked, and tells how it went.
    async fn answered(
        self,
        check: BodyCheck,
        work: impl FnOnce(&Self, &mut ResponsePipe) -> Result<(), GatewayRefusal> + Send + 'static,
    ) -> Result<Response, GatewayRefusal> {
        answer(self.cancel.clone(), move |mut pipe| {
            let Self { visit, spooled, choice, cancel } = &self;
            let _flight = visit.gateway.flights.enter(cancel);
            let checked = visit.check(&check, (&spooled.file, spooled.len));
            if let Err(refusal) = checked.and_then(|()| work(&self, &mut pipe)) {
                pipe.refuse(&refusal, visit.aim.dialect, RelayNotes::default());
            }
            visit.tell(&pipe, choice, (spooled.len, 0));
        })
        .await
    }

    fn send(&self, url: &str) -> Result<ProviderResponse, SendError> {
        send(&self.visit, &self.spooled, &self.choice, url, &self.cancel)
    }
}

/// Sends a request on.
fn send(
    visit: &GatewayRequest,
    spooled: &SpooledBody,
    choice: &UpstreamChoice,
    url: &str,
    cancel: &Cancel,
) -> Result<ProviderResponse, SendError> {
    let headers = headers::outgoing(&visit.headers, &choice.upstream, Translation::Native, choice.signing);
    let body = komado_provider::ClientBody::Spliced(Splice::whole(spooled.file.clone(), spooled.len));
    let request = ForwardRequest { method: visit.method.clone(), url, headers: &headers, body };
    choice.upstream.client.forward(request, cancel)
}

/// Hands an answer on as it comes.
fn hand_on(mut incoming: ProviderResponse, pipe: &mut ResponsePipe) {
    let mut notes = RelayNotes { untouched: true, ..RelayNotes::default() };
    pipe.begin(incoming.status, &incoming.headers, &notes);
    loop {
        match incoming.chunk() {
            Ok(Some(bytes)) if pipe.write(&bytes).is_ok() => {}
            Ok(Some(_)) => return,
            Ok(None) => break,
            Err(error) => {
                notes.cut = Some(error.to_string());
                break;
            }
        }
    }
    pipe.end(&notes);
}

/// `POST /v1/messages/count_tokens`: the provider's own count where it gives one, else ours.
pub(super) async fn count(mut visit: GatewayRequest, body: Body) -> Result<Response, GatewayRefusal> {
    let skimmer = RequestScanner::new(Dialect::Messages, b"");
    let spooled = body::take(body, Some(skimmer), &visit.gateway.rules).await?;
    let model = spooled.skim.as_ref().and_then(|skim| skim.as_ref().ok()?.model.clone());
    let upstreams = &visit.gateway.upstreams;
    let choice = upstreams.choose(visit.aim.upstream.as_deref(), model.as_deref(), Dialect::Messages)?;
    let check = visit.check_ask(&choice);
    let request = ForwardedRequest { visit, spooled, choice, cancel: Cancel::default() };
    let counted = |request: &ForwardedRequest, pipe: &mut ResponsePipe| {
        if !request.counted_by_provider(pipe) {
            let notes = RelayNotes::default();
            let tokens = request.counted()?;
            pipe.begin(200, &[("content-type".to_owned(), "application/json".to_owned())], &notes);
            let _ = pipe.write(json!({ "input_tokens": tokens }).to_string().as_bytes());
            pipe.end(&notes);
        }
        Ok(())
    };
    request.answered(check, counted).await
}

/// Stands for the messages where all but them is read.
const STAND_IN: &str = r#"{"role":"user","content":"-"}"#;

impl ForwardedRequest {
    /// True when the provider counted, or said what is wrong.
    fn counted_by_provider(&self, pipe: &mut ResponsePipe) -> bool {
        let UpstreamChoice { upstream, renames, .. } = &self.choice;
        // A name that only we know would be refused.
        if !upstream.speaks(Dialect::Messages) || *renames {
            return false;
        }
        match self.send(&upstream.url("/messages/count_tokens", self.visit.query.as_deref())) {
            Ok(incoming) if ![404, 405, 501].contains(&incoming.status) => {
                hand_on(incoming, pipe);
                true
            }
            _ => false,
        }
    }

    /// By our meter, as far as it was learned how the provider's differs.
    fn counted(&self) -> Result<u64, GatewayRefusal> {
        let Self { visit, spooled, choice, .. } = self;
        let wrong = |why: String| GatewayRefusal::new(400, why);
        let read = |span: Range<u64>| {
            let mut bytes = vec![0; usize::try_from(span.end - span.start).unwrap_or_default()];
            let read = spooled.file.read_exact_at(&mut bytes, span.start);
            read.map_err(|error| GatewayRefusal::new(500, error.to_string()))?;
            String::from_utf8(bytes).map_err(|error| wrong(format!("body: {error}")))
        };
        let meter = Meter::for_model(&choice.model);
        let pictures = PictureRule::for_model(&choice.model);
        let weight = |message: &Message| u64::from(meter.message_for(message, pictures));
        let (mut frame, mut at, mut ours) = (String::new(), 0, 0);
        // One message at a time: a transcript may be larger than memory.
        if let Some(Ok(skim)) = &spooled.skim {
            for element in &skim.elements {
                let tail = Dialect::Messages.read_elements(&[&read(element.span.clone())?], &[]);
                let tail = tail.map_err(|error| wrong(error.to_string()))?;
                ours += tail.messages.iter().map(weight).sum::<u64>();
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
}

/// `GET /v1/models`: what can be asked for. With one provider its own list goes through untouched. With several the lists are put
/// together, and each model is there twice: by its name, and by its provider's name before it, which says which one is asked.
pub(super) async fn list(mut visit: GatewayRequest) -> Result<Response, GatewayRefusal> {
    visit.take_away_overrides();
    let upstreams = visit.gateway.upstreams.all();
    let named = visit.aim.upstream.as_deref();
    if named.is_some() || upstreams.len() == 1 {
        let choice = visit.gateway.upstreams.choose(named, None, visit.aim.dialect)?;
        let url = choice.upstream.url("/models", visit.query.as_deref());
        return forward(visit, Body::empty(), choice, (url, BodyCheck::Nothing)).await;
    }
    let is_anthropic = visit.headers.contains_key("anthropic-version");
    let empty = body::take(Body::empty(), None, &visit.gateway.rules).await?;
    let lists = tokio::task::spawn_blocking(move || lists(&visit, &empty)).await.unwrap_or_default();
    let models = merged(&lists, if is_anthropic { Dialect::Messages } else { Dialect::Chat });
    Ok(Json(page(models, is_anthropic)).into_response())
}

/// What each provider lists. All are asked at once, on threads that no other request waits for.
fn lists(visit: &GatewayRequest, empty: &SpooledBody) -> Vec<(String, Vec<Value>)> {
    let all = visit.gateway.upstreams.all();
    std::thread::scope(|scope| {
        let asks: Vec<_> = all.iter().map(|one| (one, scope.spawn(|| listed(visit, empty, one)))).collect();
        let list = |(one, ask): (&Arc<GatewayUpstream>, ScopedJoinHandle<'_, Vec<Value>>)| {
            (one.name().to_owned(), ask.join().unwrap_or_default())
        };
        asks.into_iter().map(list).collect()
    })
}

/// One model of the list.
pub(super) async fn one(mut visit: GatewayRequest, id: &str) -> Result<Response, GatewayRefusal> {
    visit.take_away_overrides();
    let choice =
        visit.gateway.upstreams.choose(visit.aim.upstream.as_deref(), Some(id), visit.aim.dialect)?;
    let url = choice.upstream.url(&format!("/models/{}", encoded(&choice.model)), visit.query.as_deref());
    forward(visit, Body::empty(), choice, (url, BodyCheck::Nothing)).await
}

/// What a provider lists, and what the settings say it has. One that does not answer lists nothing.
fn listed(visit: &GatewayRequest, empty: &SpooledBody, upstream: &Arc<GatewayUpstream>) -> Vec<Value> {
    // A client's key is not for all of them.
    let choice = UpstreamChoice {
        upstream: Arc::clone(upstream),
        model: String::new(),
        renames: false,
        signing: KeyPolicy::Held,
    };
    let url = upstream.url("/models", None);
    let answer = send(visit, empty, &choice, &url, &Cancel::default());
    let text = answer.ok().filter(|answer| answer.status == 200).and_then(|answer| answer.text(LONGEST).ok());
    let value: Value = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let mut models = value["data"].as_array().cloned().unwrap_or_default();
    let own = upstream.models.iter().filter(|name| !name.ends_with('*')).chain(&upstream.model);
    for name in own.filter(|name| !name.is_empty()) {
        if !models.iter().any(|model| model["id"] == name.as_str()) {
            models.push(json!({ "id": name }));
        }
    }
    models
}

/// Lists put together: each model by its name where it is the first of that name, and as `provider/model`.
fn merged(lists: &[(String, Vec<Value>)], dialect: Dialect) -> Vec<Value> {
    let mut seen = BTreeSet::new();
    let mut models = Vec::new();
    for (name, list) in lists {
        for model in list {
            let Some(id) = model["id"].as_str() else { continue };
            for id in [id.to_owned(), format!("{name}/{id}")] {
                if seen.insert(id.clone()) {
                    models.push(formed(model, &id, name, dialect));
                }
            }
        }
    }
    models
}

/// A model in the form of the client's API, with all that its provider says of it.
fn formed(model: &Value, id: &str, owner: &str, dialect: Dialect) -> Value {
    let mut formed = match dialect {
        Dialect::Messages => {
            json!({ "type": "model", "display_name": id, "created_at": "1970-01-01T00:00:00Z" })
        }
        _ => json!({ "object": "model", "created": 0, "owned_by": owner }),
    };
    for (key, value) in model.as_object().into_iter().flatten() {
        formed[key] = value.clone();
    }
    formed["id"] = json!(id);
    formed
}

fn page(models: Vec<Value>, is_anthropic: bool) -> Value {
    if !is_anthropic {
        return json!({ "object": "list", "data": models });
    }
    let id = |model: Option<&Value>| model.map(|model| model["id"].clone()).unwrap_or_default();
    json!({ "first_id": id(models.first()), "last_id": id(models.last()), "has_more": false, "data": models })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_put_together_and_the_first_of_a_name_has_it() {
        let lists = [
            ("openai".to_owned(), vec![json!({ "id": "m", "x": 1 })]),
            ("社内".to_owned(), vec![json!({ "id": "m" }), json!({ "no": "id" }), json!({ "id": "大" })]),
        ];
        let ids = |dialect| -> Vec<String> {
            merged(&lists, dialect).iter().map(|m| m["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(Dialect::Chat), ["m", "openai/m", "社内/m", "大", "社内/大"]);
        let first = &merged(&lists, Dialect::Chat)[0];
        assert_eq!((first["owned_by"].as_str(), first["x"].as_u64()), (Some("openai"), Some(1)));
        assert_eq!(merged(&lists, Dialect::Messages)[1]["type"], "model");
        assert_eq!(page(merged(&lists, Dialect::Messages), true)["last_id"], "社内/大");
    }
}
