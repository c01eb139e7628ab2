//! A session as one stream of lines, and back.

use super::transcript;
use crate::address::AtMoment;
use crate::stream::{self, StreamBytes, StreamForm, StreamSink};
use crate::{
    Interfaces, OpFault, OpResult, Operation, OperationContext, OperationLabel, OperationProgress, Route,
    Streamed,
};
use komado_core::SessionId;
use komado_core::address::ID_PATTERN;
use komado_core::session::State;
use komado_engine::engine::ResolvedAddress;
use komado_provider::Dialect;
use komado_store::OpenMode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{BufRead, Read};

/// Write a session: whole, as JSON lines that `import` reads; as a transcript for people; or as the request that a model would be
/// sent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub struct Export {
    /// The session; of a transcript or request also a thread and a moment.
    #[serde(flatten)]
    pub at: AtMoment,
    /// The form; `komado` when left out.
    pub format: Option<ExportFormat>,
    /// The model that a request names; that of the session when left out.
    pub model: Option<String>,
}

/// What an export is written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ExportFormat {
    /// JSON lines: the whole session, which `import` reads.
    #[default]
    Komado,
    /// A transcript of everything said, in Markdown.
    Md,
    /// The same as one page for a browser.
    Html,
    /// What the model sees, as a request of OpenAI's chat API.
    Openai,
    /// What the model sees, as a request of Anthropic's messages API.
    Anthropic,
}

komado_core::names! {
    /// The word for it.
    ExportFormat {
        Komado = "komado", Md = "md", Html = "html", Openai = "openai", Anthropic = "anthropic",
    }
}

impl ExportFormat {
    const fn media(self) -> &'static str {
        match self {
            Self::Komado => "application/x-ndjson",
            Self::Md => "text/markdown; charset=utf-8",
            Self::Html => "text/html; charset=utf-8",
            Self::Openai | Self::Anthropic => "application/json",
        }
    }

    const fn ending(self) -> &'static str {
        match self {
            Self::Komado => "jsonl",
            Self::Md => "md",
            Self::Html => "html",
            Self::Openai | Self::Anthropic => "json",
        }
    }
}

/// A session that is exported.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Exported {
    /// Its id.
    pub session: String,
    /// The form.
    pub format: ExportFormat,
}

impl Streamed for Export {
    const ABOUT: OperationLabel = OperationLabel::read("export", "Export a session");
    const INTERFACES: Interfaces =
        Interfaces::everywhere("export", Route::get("sessions", "/sessions/{session}/export"))
            .not_mcp("a whole session is more than a window holds; `log` and `recall` read it in parts");
    const FORM: StreamForm = StreamForm::Bytes(&[
        ExportFormat::Komado.media(),
        "text/markdown",
        "text/html",
        ExportFormat::Openai.media(),
    ]);
    type Head = Exported;
    type Item = StreamBytes;

    fn run(self, context: &OperationContext, to: &mut dyn StreamSink<Self>) -> OpResult {
        let found = context.find(&self.at)?;
        let (format, session) = (self.format.unwrap_or_default(), found.session.to_string());
        let head = Exported { session, format };
        match format {
            ExportFormat::Komado => {
                self.check_whole(&found)?;
                to.begin(head)?;
                stream::pieces(to, |mut out| Ok(context.engine.export(&found.session, &mut out, |_| {})?))
            }
            ExportFormat::Md | ExportFormat::Html => {
                let is_whole = self.check_whole(&found).is_ok();
                let threads = transcript::threads(context, &found, is_whole)?;
                let about = transcript::about(context, &found)?;
                to.begin(head)?;
                stream::pieces(to, |out| match format {
                    ExportFormat::Md => transcript::markdown(context, &threads, &about, out),
                    _ => transcript::html(context, &threads, &about, out),
                })
            }
            ExportFormat::Openai | ExportFormat::Anthropic => {
                let thread = context.engine.open(&found.session, &found.thread, OpenMode::Read)?;
                let view = found.seq.map_or_else(|| Ok(thread.view().clone()), |seq| thread.view_at(seq))?;
                if view.weight().items == 0 {
                    return Err(OpFault::refused(
                        "nothing was said at that moment, and a request needs a message",
                    ));
                }
                let model = self.model.map_or_else(|| thread.model_name(), |model| Ok(Some(model)))?;
                let model = model.ok_or_else(|| {
                    OpFault::usage(
                        "a request names a model and this session has none; say which: --model NAME",
                    )
                })?;
                let dialect = match format {
                    ExportFormat::Openai => Dialect::Chat,
                    _ => Dialect::Messages,
                };
                to.begin(head)?;
                stream::pieces(to, |out| {
                    thread.write_request(&view, dialect, &model, out)?;
                    Ok(out.write_all(b"\n")?)
                })
            }
        }
    }

    fn file_name(head: &Exported) -> Option<String> {
        Some(format!("{}.{}", head.session.replace(':', "_"), head.format.ending()))
    }

    fn media(head: &Exported) -> Option<&'static str> {
        Some(head.format.media())
    }
}

impl Export {
    /// Refuses a thread or moment where only a whole session can be written.
    fn check_whole(&self, found: &ResolvedAddress) -> OpResult {
        match found.thread.is_root() && self.at.thread.is_none() && found.seq.is_none() {
            true => Ok(()),
            false => Err(OpFault::usage(
                "the komado form holds a whole session; leave out thread and moment, or choose another --format",
            )),
        }
    }
}

/// Bytes of an export's first line.
const FIRST: u64 = 1 << 20;

/// Read a session that was exported. The export is the input of the call ([`OperationContext::reading`]).
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(description = "Read a session that was exported.")]
pub struct Import {
    /// Another id for the session.
    #[serde(rename = "as")]
    #[schemars(length(max = 128), regex(pattern = ID_PATTERN))]
    pub name: Option<String>,
}

/// A session that was read from its export.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Imported {
    /// Its id.
    pub session: String,
    /// Where it is in its life.
    pub status: State,
}

impl Operation for Import {
    const ABOUT: OperationLabel = OperationLabel::add("import", "Import a session");
    const INTERFACES: Interfaces = Interfaces::everywhere(
        "import",
        Route { body: Some("application/x-ndjson"), ..Route::make("sessions", "/import") },
    )
    .not_mcp("a whole session is more than a window holds");
    type Output = Imported;

    fn run(self, context: &OperationContext) -> OpResult<Imported> {
        let mut from = context.input()?;
        let name = self.name.map(|name| context.free_name(&name)).transpose()?;
        let each = |lines| {
            // Only people watch; an import is not broken off by them.
            let _ = context.progress(OperationProgress::Importing { lines });
        };
        let id = match context.caller.sees_all {
            true => context.engine.import(&mut *from, name, each)?,
            false => {
                let (first, own) = opening(context, &mut *from)?;
                let name = name.map_or_else(|| context.free_name(&own), Ok)?;
                context.engine.import(&mut first.chain(from), Some(name), each)?
            }
        };
        let status = context.session(&id)?.status;
        Ok(Imported { session: id.to_string(), status })
    }

    fn location(imported: &Imported) -> Option<String> {
        Some(format!("/sessions/{}", imported.session))
    }
}

/// The first line of an export and the id that it names, if it is of a session of the caller's user.
fn opening(
    context: &OperationContext,
    from: &mut dyn BufRead,
) -> OpResult<(std::io::Cursor<Vec<u8>>, String)> {
    let mut line = Vec::new();
    from.take(FIRST).read_until(b'\n', &mut line)?;
    let wrong = || OpFault::input("this is not a komado export; give what `export` wrote, as it is");
    let first: Value = serde_json::from_slice(&line).map_err(|_| wrong())?;
    let session = first.get("session").ok_or_else(wrong)?;
    let id = SessionId::new(session.get("uuid").and_then(Value::as_str).ok_or_else(wrong)?)?;
    let user = session.get("user").and_then(Value::as_str);
    if user != context.caller.user.as_deref() {
        let whose = user.unwrap_or("no user");
        let why = format!("the export is of a session of {whose}, which this key does not see");
        return Err(OpFault::forbidden(why));
    }
    Ok((std::io::Cursor::new(line), id.to_string()))
}
