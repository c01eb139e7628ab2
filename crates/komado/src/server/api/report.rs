//! The forms of a report over HTTP: JSON, CSV and HTML, as the caller takes it.
//!
//! A report reads every session, so it ends when its reader goes away, as all do when the server stops.

use super::problem::{Answer, Problem};
use super::request::Call;
use super::response::written;
use crate::fault::{Exit, Fault};
use crate::report::{By, Format, Lang, Look, POLICY, write};
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use komado_ops::Arguments;
use komado_ops::report::MakeReport;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Media types beside JSON.
pub(super) const MEDIA: [&str; 2] = ["text/csv", "text/html"];

/// How a report is shown.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
pub(super) struct Shown {
    /// The form; as `accept` says when left out
    format: Option<Form>,
    /// In CSV and HTML: only usage by this
    by: Option<By>,
    /// The language of headings
    lang: Option<Lang>,
}

/// In which form.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Form {
    Json,
    Csv,
    Html,
}

/// Makes a report and answers it in the form that is asked for.
pub(super) async fn answer(call: Call, mut given: Arguments) -> Answer<Response> {
    let shown = Shown {
        format: chosen(&mut given, "format")?,
        by: chosen(&mut given, "by")?,
        lang: chosen(&mut given, "lang")?,
    };
    let form = shown.format.unwrap_or_else(|| accepted(&call.headers));
    let look = Look { format: form.format(), by: shown.by, lang: shown.lang.unwrap_or_default() };
    let reader = Reader::default();
    let is_gone = Arc::clone(&reader.is_gone);
    let made = call
        .run(move |call| {
            let context = call.context.clone().showing(move |_| match is_gone.load(Ordering::Relaxed) {
                true => Err(Fault::new(Exit::Failed, "the reader has gone")),
                false => Ok(()),
            });
            Ok(context.run(given.request::<MakeReport>()?)?)
        })
        .await?;
    drop(reader);
    Ok(form.answer(written(move |out| write(&made, look, out)).into_response()))
}

/// Dropped with the call that waits for a report.
#[derive(Default)]
struct Reader {
    is_gone: Arc<AtomicBool>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }
}

/// One of several words.
fn chosen<T: DeserializeOwned>(given: &mut Arguments, name: &str) -> Answer<Option<T>> {
    let Some(text) = given.take(name) else { return Ok(None) };
    serde_json::from_value(text.into()).map(Some).map_err(|error| Problem::bad(format!("{name}: {error}")))
}

/// The first form that is asked for by name; JSON where none is.
fn accepted(headers: &HeaderMap) -> Form {
    let accept =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect::<Vec<_>>().join(",");
    let named = |one: &str| match one.split(';').next().unwrap_or_default().trim() {
        "application/json" => Some(Form::Json),
        "text/csv" => Some(Form::Csv),
        "text/html" => Some(Form::Html),
        _ => None,
    };
    accept.split(',').find_map(named).unwrap_or(Form::Json)
}

impl Form {
    const fn format(self) -> Format {
        match self {
            Self::Json => Format::Json,
            Self::Csv => Format::Csv,
            Self::Html => Format::Html,
        }
    }

    fn answer(self, mut response: Response) -> Response {
        let media = match self {
            Self::Json => "application/json",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
        };
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
        if self == Self::Html {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        }
        response
    }
}
