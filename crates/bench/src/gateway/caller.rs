//! One client: it sends its whole transcript each time, as agents do, and reads the answer as it comes.

use crate::error::{Error, Result};
use komado_provider::{
    Cancel, Client, ClientBody, ClientTimeouts, Dialect, ForwardRequest, Method, ModelResponse, ResponseForm,
};
use serde_json::json;
use std::time::{Duration, Instant};

/// A client and its transcript.
pub(super) struct LoadClient {
    client: Client,
    url: String,
    /// Each message, as JSON.
    pub(super) messages: Vec<String>,
    headers: Vec<(String, String)>,
}

/// What came back.
pub(super) struct LoadAnswer {
    pub(super) status: u16,
    /// What the model said; of an error its body.
    pub(super) text: String,
    /// The session, where the gateway names one.
    pub(super) session: Option<String>,
    /// What went wrong inside the gateway.
    pub(super) fault: Option<String>,
    /// Edits that were made for this request.
    pub(super) edits: u32,
    /// From the request to the last byte of the answer.
    pub(super) whole: Duration,
}

/// A client that all callers share.
pub(super) fn client() -> Result<Client> {
    Client::new(ClientTimeouts::default()).map_err(|error| Error::failed(error.to_string()))
}

impl LoadClient {
    pub(super) fn new(client: &Client, base: &str, session: Option<&str>) -> Self {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("authorization".to_owned(), "Bearer none".to_owned()),
            ("user-agent".to_owned(), "komado-bench".to_owned()),
        ];
        headers.extend(session.map(|name| ("x-session-id".to_owned(), name.to_owned())));
        let url = format!("{base}/v1/chat/completions");
        Self { client: client.clone(), url, messages: Vec::new(), headers }
    }

    /// Adds a message.
    pub(super) fn say(&mut self, role: &str, text: &str) {
        self.messages.push(json!({ "role": role, "content": text }).to_string());
    }

    /// Sends everything, and hears what comes back.
    pub(super) fn ask(&self) -> Result<LoadAnswer> {
        let body =
            format!("{{\"model\":\"scripted\",\"stream\":true,\"messages\":[{}]}}", self.messages.join(","));
        let forward = ForwardRequest {
            method: Method::POST,
            url: &self.url,
            headers: &self.headers,
            body: ClientBody::Bytes(body.into_bytes().into()),
        };
        let begun = Instant::now();
        let failed = |error: komado_provider::SendError| Error::failed(error.to_string());
        let mut incoming = self.client.forward(forward, &Cancel::default()).map_err(failed)?;
        let mut bytes = Vec::new();
        let (mut heard, mut decoder) =
            (ModelResponse::default(), Dialect::Chat.decoder(ResponseForm::Stream));
        while let Some(chunk) = incoming.chunk().map_err(failed)? {
            match incoming.status {
                200 => decoder.push(&chunk, &mut |event| heard.take(&event)),
                _ => bytes.extend_from_slice(&chunk),
            }
        }
        decoder.end(&mut |event| heard.take(&event));
        let whole = begun.elapsed();
        let said = heard.finish.as_ref().and_then(|_| heard.message()).map(|message| message.words());
        Ok(LoadAnswer {
            status: incoming.status,
            text: said.unwrap_or_else(|| String::from_utf8_lossy(&bytes).into_owned()),
            session: incoming.header("x-komado-session").map(str::to_owned),
            fault: incoming.header("x-komado-fault").map(str::to_owned),
            edits: incoming.header("x-komado-edits").and_then(|edits| edits.parse().ok()).unwrap_or(0),
            whole,
        })
    }
}
