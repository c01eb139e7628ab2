//! From settings to who is asked: a provider, a model, and how large its window is.
//!
//! The command line is trusted over the session, the session over the settings, the settings over what is found in the
//! environment. A window that nobody knows is an error here, before anything is sent; none is ever guessed. With nothing
//! configured at all that is an error, too: the built-in scripted model answers only where it is named.

pub(crate) mod provider;
mod summary;

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::{number, say};
use clap::Args as ClapArgs;
use komado_config::table::SCRIPTED;
use komado_core::budget::{Budget, RESERVE};
use komado_core::session::MetaConfig;
use komado_engine::Thread;
use komado_engine::lesson::{self, Lesson};
use komado_engine::turn::Asking;
use komado_engine::window::{Listed, Told, Window};
use komado_provider::registry::{Model, Registry};
use komado_provider::scripted::{Options, Server};
use komado_provider::{
    Cancel, Client, Dialect, Form, Method, Patience, Provider, SendError, overflow, probe,
};
use std::time::Duration;

/// The window of the built-in model, unless another is wished for.
pub(crate) const SMALL: u32 = 4_096;
/// The same where it works with tools: their definitions and a child thread's share must have room in it.
pub(crate) const ROOMY: u32 = 32_768;

/// Who is to be asked, as far as the command line says.
#[derive(ClapArgs, Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// The provider: a known name, one from the settings, or `scripted` for the built-in model
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// The model, as its provider spells it
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The model's window in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) window: Option<u32>,
    /// Where the provider listens
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// The longest answer, in tokens
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_tokens: Option<u32>,
    /// Let the answer come in one piece
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// The window of the built-in model where nobody wishes for one
    #[arg(skip)]
    pub(crate) built_in: Option<u32>,
}

/// Who is asked.
pub(crate) struct Connection {
    /// Everything a turn needs.
    pub(crate) asking: Asking,
    /// The window, in the provider's tokens, and who said so.
    pub(crate) window: Window,
    /// The built-in model, while it is the one.
    server: Option<Server>,
}

impl Connection {
    /// A connection that others hold open.
    pub(crate) fn over(asking: Asking, window: Window) -> Self {
        Self { asking, window, server: None }
    }

    /// True when the built-in model answers.
    pub(crate) fn is_scripted(&self) -> bool {
        self.server.is_some()
    }

    /// Provider, model and window as a session keeps them.
    pub(crate) fn config(&self) -> MetaConfig {
        MetaConfig {
            llm_provider: Some(self.asking.provider.name.clone()),
            model: Some(self.asking.model.clone()),
            context_length: u32::try_from(self.window.tokens).ok(),
            window_from: Some(self.window.told.name().to_owned()),
            ..MetaConfig::default()
        }
    }

    /// One line about it.
    pub(crate) fn line(&self) -> String {
        let Asking { provider, model, .. } = &self.asking;
        let Window { tokens, told } = self.window;
        format!("{model} at {}, window {} tokens ({told})", provider.name, number(tokens))
    }
}

/// What is known of a model, but for what was learned.
pub(crate) struct Known {
    /// Who is asked; its window is as yet 0.
    pub(crate) asking: Asking,
    given: Option<u64>,
    limits: Option<Listed>,
    /// Why its server said nothing of its window.
    silent: Option<SendError>,
}

impl Known {
    /// The window, with what was learned.
    pub(crate) fn window(&self, lesson: &Lesson) -> Option<Window> {
        Window::known(self.given, lesson, self.asking.probed, self.limits)
    }

    /// True when its server was asked and did not answer.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent.is_some()
    }
}

/// What is asked of whom, before it is known how large the window is.
struct Whom {
    provider: Provider,
    model: String,
    server: Option<Server>,
}

impl App {
    /// The registry of models: the user's own over the built-in one.
    pub(crate) fn registry(&self) -> Outcome<Registry> {
        crate::verb::models::registry(self)
    }

    /// Who is asked in a session made with `own`, under the wishes of the command line.
    pub(crate) fn connect(&self, own: &MetaConfig, wishes: &Wishes) -> Outcome<Connection> {
        let whom = self.whom(own, wishes)?;
        let name = whom.provider.name.clone();
        let client = Client::new(self.patience(&name))
            .map_err(|error| Fault::new(crate::fault::Exit::Failed, error.to_string()))?
            .final_if(|status, body| overflow::classify(status, body).overflow);
        let mut asking = Asking::new(client, whom.provider, whom.model, 0);
        asking.known_as = whom.server.as_ref().map(|_| format!("{SCRIPTED}:"));
        asking.form = if wishes.no_stream { Form::Whole } else { Form::Stream };
        let built_in = whom.server.as_ref().map(|_| built_in_window(own, wishes));
        let known = self.known(asking, own, wishes, built_in, &self.registry()?);
        let lesson = self.lesson(&known.asking)?;
        let window = known.window(&lesson);
        let Known { mut asking, silent, .. } = known;
        let window = window.ok_or_else(|| unknown(&asking, silent))?;
        (asking.window, asking.is_given) = (window.tokens, window.told == Told::Given);
        if let (Told::Given, Some(said)) = (window.told, lesson.window.filter(|said| *said < window.tokens)) {
            say(format!(
                "komado: the window is given as {}, but {} at {name} once refused what was over {}",
                number(window.tokens),
                asking.model,
                number(said)
            ));
        }
        Ok(Connection { asking, window, server: whom.server })
    }

    /// Everything that is known of a model but what was learned: from the settings, from the table of models, from its
    /// server. `built_in` is the window of the built-in model, where it is the one.
    pub(crate) fn known(
        &self,
        mut asking: Asking,
        own: &MetaConfig,
        wishes: &Wishes,
        built_in: Option<u32>,
        registry: &Registry,
    ) -> Known {
        let name = asking.provider.name.clone();
        let llm = self.config.llm(&name);
        let longest = wishes.max_tokens.or_else(|| llm.and_then(|llm| llm.max_tokens));
        asking.max_tokens = longest.map(u64::from);
        asking.shrink = self.config.retry_shrink;
        asking.tries = self.config.overflow_tries;
        asking.history = self.config.max_history;
        // A model on one's own machine has the window that its server was started with, whatever it is called.
        let listed = registry.get(&name, &asking.model).or_else(|| registry.find(&asking.model)).cloned();
        let chooses = asking.provider.is_local || asking.provider.dialect == Dialect::Ollama;
        let listed = listed.filter(|_| !chooses);
        asking.output = listed.as_ref().and_then(|model| model.output);
        asking.max_tokens = longest_answer(&asking, listed.as_ref());
        let given = self.given(own, wishes, &asking).map(u64::from);
        let mut silent = None;
        asking.probed = match (given, built_in) {
            (Some(_), _) => None,
            (None, Some(window)) => Some(u64::from(window)),
            (None, None) => self.probe(&asking, &mut silent),
        };
        let limits = listed.as_ref().map(|model| Listed { context: model.context, input: model.input });
        Known { asking, given, limits, silent }
    }

    /// What was learned about the model that is asked.
    pub(crate) fn lesson(&self, asking: &Asking) -> Outcome<Lesson> {
        Ok(lesson::known(self.engine.store(), &asking.about())?)
    }

    /// What was learned about a session's own model; nothing when it has none, or its provider is not known any more.
    pub(crate) fn own_lesson(&self, own: &MetaConfig) -> Lesson {
        let about = || {
            let model = own.model.as_deref()?;
            let place = match own.llm_provider.as_deref()? {
                SCRIPTED => format!("{SCRIPTED}:"),
                name => self.address(name, None).ok()?.place(),
            };
            Some(lesson::about(&place, model))
        };
        about().and_then(|about| lesson::known(self.engine.store(), &about).ok()).unwrap_or_default()
    }

    /// The window of a session in tokens as we count them: `given`, else its own, as far as nothing better was learned.
    pub(crate) fn own_window(&self, own: &MetaConfig, given: Option<u32>) -> Option<u32> {
        let lesson = self.own_lesson(own);
        let was_given = own.window_from.as_deref().is_none_or(|from| from == Told::Given.name());
        let learned = lesson.window.filter(|_| !was_given);
        let window = given.map(u64::from).or(learned).or(own.context_length.map(u64::from))?;
        u32::try_from(lesson.ours(window).max(1)).ok()
    }

    /// The window of a connection in tokens as we count them.
    pub(crate) fn our_window(&self, connection: &Connection) -> Outcome<u64> {
        let lesson = self.lesson(&connection.asking)?;
        // What was learned since the connection was made counts at once, but never over the user's word.
        let learned = lesson.window.filter(|_| !connection.asking.is_given).unwrap_or(u64::MAX);
        Ok(lesson.ours(connection.window.tokens.min(learned)).max(1))
    }

    /// The budget of a conversation over a connection, in tokens as we count them: of the thread's share, where it was
    /// spawned.
    pub(crate) fn budget(&self, thread: &Thread<'_>, connection: &Connection) -> Outcome<Budget> {
        let Asking { model, provider, .. } = &connection.asking;
        let window = self.our_window(connection)?;
        Ok(thread.budget(self.config.policy(None), window, &[model, &provider.name])?)
    }

    /// How long a provider is waited for.
    pub(crate) fn patience(&self, provider: &str) -> Patience {
        let mut patience = Patience {
            tries: self.config.tries,
            delay: Duration::from_secs(u64::from(self.config.delay_seconds)),
            ..Patience::default()
        };
        if let Some(seconds) = self.config.llm(provider).and_then(|llm| llm.timeout_seconds) {
            let time = Duration::from_secs(u64::from(seconds));
            (patience.first, patience.idle) = (time, time);
            patience.connect = patience.connect.min(time);
        }
        patience
    }

    /// Provider and model; the built-in one is started where it is to answer.
    fn whom(&self, own: &MetaConfig, wishes: &Wishes) -> Outcome<Whom> {
        let name = self.provider_name(own, wishes)?;
        if name == SCRIPTED {
            return self.scripted(own, wishes);
        }
        let provider = self.provider(&name, wishes)?;
        let llm = self.config.llm(&name);
        // A session's model is one of its own provider.
        let same = own.llm_provider.as_deref().is_none_or(|own| own == name);
        let model = wishes
            .model
            .clone()
            .or_else(|| own.model.clone().filter(|_| same))
            .or_else(|| llm.and_then(|llm| llm.model.clone()));
        let model = model.ok_or_else(|| {
            Fault::usage(format!("which model of {name}? give --model NAME, or set llm.{name}.model"))
        })?;
        Ok(Whom { provider, model, server: None })
    }

    /// The built-in model, in this process.
    fn scripted(&self, own: &MetaConfig, wishes: &Wishes) -> Outcome<Whom> {
        let window = u64::from(built_in_window(own, wishes));
        let options = Options { window: Some(window), ..Options::default() };
        let server = Server::start(options)?;
        let provider = Provider::at(SCRIPTED, Dialect::Chat, server.url())
            .map_err(|error| Fault::new(crate::fault::Exit::Failed, error.to_string()))?;
        let model = wishes.model.clone().unwrap_or_else(|| SCRIPTED.to_owned());
        Ok(Whom { provider, model, server: Some(server) })
    }

    /// The window that the user gave: for this command, for this session, or in the settings.
    fn given(&self, own: &MetaConfig, wishes: &Wishes, asking: &Asking) -> Option<u32> {
        let is_same = own.model.as_ref().is_none_or(|model| *model == asking.model)
            && own.llm_provider.as_ref().is_none_or(|provider| *provider == asking.provider.name);
        let was_given = own.window_from.as_deref().is_none_or(|from| from == Told::Given.name());
        let of_session = own.context_length.filter(|_| is_same && was_given);
        let llm = self.config.llm(&asking.provider.name);
        let of_settings = llm
            .filter(|llm| llm.model.as_ref().is_none_or(|model| *model == asking.model))
            .and_then(|llm| llm.context_length);
        wishes.window.or(of_session).or(of_settings)
    }

    /// Asks a server how large its window is. Only one of our own, or at an address the user gave, is asked at all; one
    /// that does not answer is not asked a second thing.
    fn probe(&self, asking: &Asking, silent: &mut Option<SendError>) -> Option<u64> {
        let Asking { client, provider, model, .. } = asking;
        let is_usual =
            komado_provider::row(&provider.name).is_some_and(|row| row.base_url == provider.base_url);
        if is_usual && !provider.is_local {
            return None;
        }
        provider::probe(provider, model, &mut |step: &probe::Step| {
            let method = match step.method {
                probe::Method::Get => Method::GET,
                probe::Method::Post => Method::POST,
            };
            let answer = client.fetch(provider, method, step.path, step.body.clone(), &Cancel::default());
            answer.map_err(|error| *silent = Some(error)).ok()
        })
    }
}

/// The window of the built-in model: as wished, as the session has it, or as is usual where it is asked.
fn built_in_window(own: &MetaConfig, wishes: &Wishes) -> u32 {
    wishes.window.or(own.context_length).or(wishes.built_in).unwrap_or(SMALL)
}

/// The longest answer to ask for: as wished, but never more than the model is known to give. Only a dialect that must name
/// one has to be told where nobody wishes.
fn longest_answer(asking: &Asking, listed: Option<&Model>) -> Option<u64> {
    let Some(most) = listed.and_then(|model| model.output) else { return asking.max_tokens };
    let must = asking.provider.dialect == Dialect::Messages && most < RESERVE;
    asking.max_tokens.map(|wished| wished.min(most)).or(must.then_some(most))
}

fn unknown(asking: &Asking, silent: Option<SendError>) -> Fault {
    let (model, name) = (&asking.model, &asking.provider.name);
    let silent = silent.map(|why| format!(", and its server did not answer ({why})")).unwrap_or_default();
    Fault::usage(format!(
        "the window of model {model:?} is not known{silent}: give --window TOKENS, or set llm.{name}.context_length"
    ))
}
