//! What is known about models: how much they take, how much they say, and what that costs.
//!
//! The rows are compiled in (`registry/models.jsonl`, with its sources in `registry/NOTICE`), and a file of the user's may
//! be laid over them. A name is looked up as it stands, then without what differs between routers and releases, then
//! by its longest beginning. It refuses to guess for a model that runs locally: how large its window is was decided when
//! its server was started, and only the server knows ([`crate::probe`]).

use crate::listed;
use komado_core::journal::Usage;
use komado_core::raw::RawObject;
use komado_core::suggest::nearest_names;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::fmt::Write as _;

/// So many near names are told at most.
const SUGGESTED: usize = 3;

const BUILTIN: &str = include_str!("registry/models.jsonl");

/// A model of one provider.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegistryModel {
    /// The name the provider knows it by.
    pub id: String,
    /// Who serves it.
    pub provider: String,
    /// The window: what is sent and what is answered together, in tokens.
    pub context: u64,
    /// The most that may be sent, where that is less than the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// The longest answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// What it costs, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Where the row comes from; not part of a file.
    #[serde(skip)]
    pub source: RegistrySource,
}

impl RegistryModel {
    /// The most that may be sent. Providers that give it apart are believed (400,000 tokens of window may mean 272,000 of
    /// input); elsewhere it is the whole window, because how much of it the answer takes is for the request to say.
    pub fn input_limit(&self) -> u64 {
        self.input.unwrap_or(self.context)
    }
}

/// A price in US dollars for a million tokens.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Price {
    /// What is sent.
    pub input: f64,
    /// What is answered.
    pub output: f64,
    /// What is sent and was found in the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// What is sent and put into the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Price {
    /// What these tokens cost, in US dollars. Where the provider's cache has no price of its own, its tokens cost what others do.
    #[allow(clippy::cast_precision_loss)]
    pub fn of(&self, usage: &Usage) -> f64 {
        let million = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        million(usage.input_tokens, self.input)
            + million(usage.output_tokens, self.output)
            + million(usage.cache_read_tokens, self.cache_read.unwrap_or(self.input))
            + million(usage.cache_creation_tokens, self.cache_write.unwrap_or(self.input))
    }
}

/// The day on which the compiled-in prices were taken (`registry/NOTICE`).
pub const PRICES_OF: &str = "2026-11-15";

/// Prices of models, with the day they are of.
#[cfg(feature = "client")]
#[derive(Clone, PartialEq, Debug)]
pub struct PriceTable {
    /// The rows.
    pub registry: Registry,
    /// The day of the user's own rows.
    pub own_of: Option<String>,
}

/// A price of a session's model.
#[cfg(feature = "client")]
#[derive(Clone, PartialEq, Debug)]
pub struct SessionPrice {
    /// The price.
    pub price: Price,
    /// The day it is of.
    pub of: String,
}

#[cfg(feature = "client")]
impl PriceTable {
    /// The price of a provider's model. A provider that serves models on the user's own machine asks for none, whatever the
    /// maker of such a model asks for; that is no price.
    pub fn price(&self, provider: Option<&str>, model: &str) -> Option<SessionPrice> {
        let exact = provider.and_then(|provider| self.registry.get(provider, model));
        let is_local = provider.and_then(crate::provider::row).is_some_and(|row| row.is_local);
        let found = exact.or_else(|| self.registry.find(model).filter(|_| !is_local))?;
        let of = match found.source {
            RegistrySource::Builtin => PRICES_OF.to_owned(),
            RegistrySource::File => self.own_of.clone()?,
        };
        Some(SessionPrice { price: found.price?, of })
    }

    /// The day of the prices that are built in.
    pub fn date(&self) -> String {
        PRICES_OF.to_owned()
    }
}

/// Where a row comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RegistrySource {
    /// Compiled in.
    #[default]
    Builtin,
    /// A file of the user's.
    File,
}

komado_core::names! {
    /// Its name.
    RegistrySource { Builtin = "built in", File = "file" }
}

/// Why rows cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadRegistry {
    /// A line is not a JSON object.
    #[error("line {line}: {why}")]
    Line {
        /// Counted from one.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A field is not what it should be.
    #[error("line {line}: field `{field}`: {why}")]
    Field {
        /// Counted from one.
        line: usize,
        /// The field.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// An entry of another collection is not what it should be.
    #[error("{entry}: field `{field}`: {why}")]
    Entry {
        /// Its path in the file.
        entry: String,
        /// The field.
        field: String,
        /// What is wrong with it.
        why: String,
    },
    /// The text is JSON, but of no form that is known.
    #[error(
        "it is neither lines of {{\"id\",\"provider\",\"context\"}}, nor models.dev's api.json, nor LiteLLM's \
         model_prices_and_context_window.json"
    )]
    UnknownForm,
    /// There is no model in it.
    #[error("there is no model in it")]
    Empty,
}

/// Everything known about models.
#[derive(Clone, PartialEq, Debug)]
pub struct Registry {
    models: Vec<RegistryModel>,
}

impl Registry {
    /// What is compiled in.
    pub fn builtin() -> Self {
        // The file is part of the program, and a test reads it; a row that could not be read would only be missing.
        Self::read(BUILTIN).unwrap_or(Self { models: Vec::new() })
    }

    /// Reads rows in our own form: one JSON object per line; empty lines and lines that begin with `#` are passed over.
    pub fn read(text: &str) -> Result<Self, BadRegistry> {
        let models = read_rows(text)?;
        if models.is_empty() { Err(BadRegistry::Empty) } else { Ok(Self::sorted(models)) }
    }

    /// Reads rows in our own form, in that of models.dev's `api.json`, or in LiteLLM's.
    pub fn read_any(text: &str) -> Result<Self, BadRegistry> {
        match read_foreign(text)? {
            Some(models) if models.is_empty() => Err(BadRegistry::Empty),
            Some(models) => Ok(Self::sorted(models)),
            None => Self::read(text),
        }
    }

    /// These rows under those of `over`, which count as the user's.
    #[must_use]
    pub fn under(self, over: Self) -> Self {
        let same = |a: &RegistryModel, b: &RegistryModel| a.id == b.id && a.provider == b.provider;
        let mut models: Vec<RegistryModel> =
            self.models.into_iter().filter(|model| !over.models.iter().any(|own| same(own, model))).collect();
        models.extend(
            over.models.into_iter().map(|model| RegistryModel { source: RegistrySource::File, ..model }),
        );
        Self::sorted(models)
    }

    /// All rows, by provider and name.
    pub fn models(&self) -> &[RegistryModel] {
        &self.models
    }

    /// The row of one provider's model, by its exact name.
    pub fn get(&self, provider: &str, id: &str) -> Option<&RegistryModel> {
        self.models.iter().find(|model| model.provider == provider && model.id == id)
    }

    /// Looks a model up.
    ///
    /// The name as it stands comes first; then the name without the path of a router, a date, a tag such as `:free`, or
    /// `-latest`; then the longest known name it begins with, if what follows is another word and none that stands for
    /// another model (`gpt-4` is never taken for `gpt-4.1`, `gpt-4o` or `gpt-4-32k`). Where several providers have it,
    /// the user's own rows win, then those of the model's maker, then the smallest window.
    pub fn find(&self, model: &str) -> Option<&RegistryModel> {
        find(&self.models, model)
    }

    /// The known names nearest to one that is not known: the provider's own, where any of those is near.
    pub fn nearest(&self, provider: &str, model: &str) -> Vec<String> {
        let names = |is_meant: &dyn Fn(&str) -> bool| -> Vec<String> {
            let known = self.models.iter().filter(|known| is_meant(&known.provider));
            let near = nearest_names(model, known.map(|known| known.id.as_str()), SUGGESTED);
            near.into_iter().map(str::to_owned).collect()
        };
        let own = names(&|known| known == provider);
        if own.is_empty() { names(&|_| true) } else { own }
    }

    /// The rows in our own form.
    pub fn write(&self) -> String {
        let mut text = String::new();
        for model in &self.models {
            if let Ok(line) = serde_json::to_string(model) {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }

    fn sorted(mut models: Vec<RegistryModel>) -> Self {
        models.sort_by(|a, b| (&a.provider, &a.id).cmp(&(&b.provider, &b.id)));
        Self { models }
    }
}

// A row in our own form, checked field by field.

const KNOWN: &[&str] = &["id", "provider", "context", "input", "output", "price"];

fn read_rows(text: &str) -> Result<Vec<RegistryModel>, BadRegistry> {
    let mut models = Vec::new();
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, json) in text.lines().enumerate().map(|(i, json)| (i + 1, json.trim())) {
        if json.is_empty() || json.starts_with('#') {
            continue;
        }
        let model = row(line, json)?;
        let key = (model.provider.clone(), model.id.clone());
        if let Some(before) = seen.insert(key, line) {
            let why = format!("{:?} of {:?} is on line {before}, too", model.id, model.provider);
            return Err(BadRegistry::Field { line, field: "id".into(), why });
        }
        models.push(model);
    }
    Ok(models)
}

fn row(line: usize, json: &str) -> Result<RegistryModel, BadRegistry> {
    let object = RawObject::parse(json).map_err(|e| BadRegistry::Line { line, why: e.to_string() })?;
    let bad = |field: &str, why: String| BadRegistry::Field { line, field: field.to_owned(), why };
    if let Some((key, _)) = object.0.iter().find(|(key, _)| !KNOWN.contains(&key.as_ref())) {
        return Err(bad(key, format!("not known; known are {}", KNOWN.join(", "))));
    }
    let text = |field: &str| match object.read::<String>(field) {
        Ok(Some(text)) if !text.trim().is_empty() => Ok(text),
        Ok(_) => Err(bad(field, "missing or empty".into())),
        Err(e) => Err(bad(field, e.why)),
    };
    let count = |field: &str| match object.read::<u64>(field) {
        Ok(Some(0)) => Err(bad(field, "must be more than 0 tokens".into())),
        Ok(n) => Ok(n),
        Err(e) => Err(bad(field, e.why)),
    };
    let context = count("context")?.ok_or_else(|| bad("context", "missing".into()))?;
    let within = |field: &str| match count(field)? {
        Some(n) if n > context => Err(bad(field, format!("{n} is more than the window of {context} tokens"))),
        n => Ok(n),
    };
    let price = object.read::<Price>("price").map_err(|e| bad("price", e.why))?;
    if let Some(amount) = price.and_then(wrong) {
        return Err(bad("price", format!("{amount} is no price")));
    }
    Ok(RegistryModel {
        id: text("id")?,
        provider: text("provider")?,
        context,
        input: within("input")?,
        output: within("output")?,
        price,
        source: RegistrySource::Builtin,
    })
}

/// An amount that cannot be one.
fn wrong(price: Price) -> Option<f64> {
    let amounts = [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
    amounts.into_iter().flatten().find(|amount| !amount.is_finite() || *amount < 0.0)
}

// The forms of two public collections: models.dev's `api.json` and LiteLLM's price file.
//
// Models that do not chat (embeddings, images, speech) are passed over, and so are limits of zero, which both
// collections write where they do not know one. A limit that is not a number is an error: then it is not the file it
// seems to be.

/// The models of a foreign collection; `None` when the text is none, such as our own lines.
fn read_foreign(text: &str) -> Result<Option<Vec<RegistryModel>>, BadRegistry> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Ok(Value::Object(root)) = serde_json::from_str::<Value>(text) else { return Ok(None) };
    let has = |key: &str| root.values().any(|value| value.get(key).is_some());
    if root.contains_key("id") && root.contains_key("context") {
        return Ok(None);
    }
    if has("models") {
        return models_dev(&root).map(Some);
    }
    if has("litellm_provider") {
        return litellm(&root).map(Some);
    }
    Err(BadRegistry::UnknownForm)
}

fn models_dev(root: &Map<String, Value>) -> Result<Vec<RegistryModel>, BadRegistry> {
    let mut models = Vec::new();
    for (provider, about) in root {
        let Some(Value::Object(theirs)) = about.get("models") else { continue };
        for (id, model) in theirs {
            let entry = Entry { path: format!("{provider}/{id}"), fields: model };
            let Some(context) = entry.count("/limit/context")? else { continue };
            if !entry.writes_text() {
                continue;
            }
            let input = entry.count("/limit/input")?.filter(|n| *n < context);
            let output = entry.count("/limit/output")?.map(|n| n.min(context));
            let price =
                entry.price(["/cost/input", "/cost/output", "/cost/cache_read", "/cost/cache_write"], 1.0)?;
            let (id, provider) = (id.clone(), provider.clone());
            models.push(RegistryModel {
                id,
                provider,
                context,
                input,
                output,
                price,
                source: RegistrySource::Builtin,
            });
        }
    }
    Ok(models)
}

fn litellm(root: &Map<String, Value>) -> Result<Vec<RegistryModel>, BadRegistry> {
    let mut models: Vec<RegistryModel> = Vec::new();
    for (name, model) in root.iter().filter(|(name, _)| *name != "sample_spec") {
        let entry = Entry { path: name.clone(), fields: model };
        let provider = model.get("litellm_provider").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mode = model.get("mode").and_then(Value::as_str).unwrap_or("chat");
        if provider.is_empty() || !matches!(mode, "chat" | "completion" | "responses") {
            continue;
        }
        let asked = entry.count("/max_input_tokens")?;
        let Some(context) = asked.or(entry.count("/max_tokens")?) else { continue };
        let output = entry.count("/max_output_tokens")?.map(|n| n.min(context));
        let costs = [
            "/input_cost_per_token",
            "/output_cost_per_token",
            "/cache_read_input_token_cost",
            "/cache_creation_input_token_cost",
        ];
        let price = entry.price(costs, 1e6)?;
        let id = name.strip_prefix(&format!("{provider}/")).unwrap_or(name).to_owned();
        if !models.iter().rev().any(|known| known.id == id && known.provider == provider) {
            models.push(RegistryModel {
                id,
                provider,
                context,
                input: None,
                output,
                price,
                source: RegistrySource::Builtin,
            });
        }
    }
    Ok(models)
}

struct Entry<'a> {
    path: String,
    fields: &'a Value,
}

impl Entry<'_> {
    fn bad(&self, field: &str, value: &Value) -> BadRegistry {
        let (field, why) =
            (field.trim_start_matches('/').replace('/', "."), format!("{value} is not a number"));
        BadRegistry::Entry { entry: self.path.clone(), field, why }
    }

    fn number(&self, field: &str) -> Result<Option<f64>, BadRegistry> {
        match self.fields.pointer(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(n) if n.is_finite() && n >= 0.0 => Ok(Some(n)),
                _ => Err(self.bad(field, value)),
            },
        }
    }

    /// A number of tokens; zero is not known.
    fn count(&self, field: &str) -> Result<Option<u64>, BadRegistry> {
        // Both collections hold whole numbers far below 2^53, some of them written as floats.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let whole = |n: f64| n as u64;
        Ok(self.number(field)?.map(whole).filter(|n| *n > 0))
    }

    fn price(&self, fields: [&str; 4], scale: f64) -> Result<Option<Price>, BadRegistry> {
        let amount = |field: &str| Ok(self.number(field)?.map(|n| cents(n * scale)));
        let (input, output) = (amount(fields[0])?, amount(fields[1])?);
        let (cache_read, cache_write) = (amount(fields[2])?, amount(fields[3])?);
        let (Some(input), Some(output)) = (input, output) else { return Ok(None) };
        Ok(Some(Price { input, output, cache_read, cache_write }))
    }

    fn writes_text(&self) -> bool {
        match self.fields.pointer("/modalities/output") {
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "text"),
            _ => true,
        }
    }
}

/// Without the dust that scaling leaves: 3e-6 a token is 3 dollars a million, not 2.9999999999999996.
fn cents(amount: f64) -> f64 {
    (amount * 1e6).round() / 1e6
}

// Which row a name means.

/// Who makes models and serves them; their rows are the ones meant when only a name is given.
const MAKERS: &str = "openai anthropic google mistral xai deepseek cohere moonshotai minimax zai alibaba \
                      perplexity llama upstage stepfun xiaomi inception sarvam morph nova";

/// Tags that routers hang on names; the model stays the same.
const TAGS: &str = "free beta thinking extended online nitro floor exacto preview default paid";

/// Regions before the names of Bedrock's profiles.
const REGIONS: &str = "us. eu. global. apac. jp. au. us-gov. ca.";

/// Words that make another model out of a name, with a window of its own.
const VARIANTS: &str = "mini nano micro lite small large pro max plus turbo image audio tts realtime live \
                        vision vl embedding embeddings search transcribe coder code codex long distill \
                        flash fast air deep research omni math guard base";

fn find<'a>(models: &'a [RegistryModel], name: &str) -> Option<&'a RegistryModel> {
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    exact(models, name).or_else(|| if is_local(name) { None } else { known_as(models, name) })
}

/// `id`, or `provider/id`.
fn exact<'a>(models: &'a [RegistryModel], name: &str) -> Option<&'a RegistryModel> {
    let whole = best(models.iter().filter(|model| model.id == name));
    whole.or_else(|| {
        let (provider, id) = name.split_once('/')?;
        models.iter().find(|model| model.provider == provider && model.id == id)
    })
}

fn known_as<'a>(models: &'a [RegistryModel], name: &str) -> Option<&'a RegistryModel> {
    let wanted = plain(name)?;
    let keyed: Vec<(String, &RegistryModel)> =
        models.iter().filter_map(|model| Some((plain(&model.id)?, model))).collect();
    let same = best(keyed.iter().filter(|(key, _)| *key == wanted).map(|(_, model)| *model));
    same.or_else(|| {
        let begins = |key: &str| wanted.strip_prefix(key).is_some_and(is_release);
        let longest = keyed.iter().filter(|(key, _)| begins(key)).map(|(key, _)| key.len()).max()?;
        best(keyed.iter().filter(|(key, _)| key.len() == longest && begins(key)).map(|(_, model)| *model))
    })
}

/// True when what is left of a name says no more than which release it is.
fn is_release(rest: &str) -> bool {
    let Some(words) = rest.strip_prefix('-') else { return false };
    let digits = |word: &str| word.bytes().take_while(u8::is_ascii_digit).count();
    // 32k is a window and 8b a size, wherever they stand.
    let other = |word: &str| listed(VARIANTS, word) || (digits(word) > 0 && digits(word) < word.len());
    // -5 right behind the name is a version; 0613, or -05-06 after another word, is a date.
    let version = |word: &str| (1..=2).contains(&digits(word));
    !words.split('-').any(other) && !words.split('-').next().is_some_and(version)
}

/// The user's own first, then the maker's, then the smallest window.
fn best<'a>(models: impl Iterator<Item = &'a RegistryModel>) -> Option<&'a RegistryModel> {
    let maker = |model: &RegistryModel| {
        MAKERS.split(' ').position(|name| name == model.provider).unwrap_or(usize::MAX)
    };
    models.min_by_key(|model| (model.source != RegistrySource::File, maker(model), model.context))
}

/// A name without what differs between routers and releases: path, region, tag, date, `-latest`.
fn plain(name: &str) -> Option<String> {
    let mut name = name.to_lowercase().replace(['@', '_', '.'], "-");
    if let Some(tuned) = name.strip_prefix("ft:") {
        name = tuned.split(':').next()?.to_owned();
    }
    let last = name.rsplit('/').next()?;
    let (last, tag) = last.split_once(':').unwrap_or((last, ""));
    let dotted =
        REGIONS.split(' ').find_map(|region| last.strip_prefix(&region.replace('.', "-"))).unwrap_or(last);
    let vendor =
        ["anthropic-", "amazon-", "meta-", "mistral-", "cohere-", "deepseek-", "ai21-", "openai-", "qwen-"];
    let bare = if tag.bytes().all(|b| b.is_ascii_digit()) && !tag.is_empty() {
        vendor.iter().find_map(|vendor| dotted.strip_prefix(vendor)).unwrap_or(dotted)
    } else {
        dotted
    };
    let bare = bare.strip_suffix("-latest").unwrap_or(bare);
    let bare = if tag.is_empty() {
        bare
    } else {
        bare.strip_suffix("-v1").or(bare.strip_suffix("-v2")).unwrap_or(bare)
    };
    Some(undated(bare).to_owned()).filter(|plain| !plain.is_empty())
}

/// Without `-20250514` or `-2024-08-06` at the end.
fn undated(name: &str) -> &str {
    let digits = |text: &str, len: usize| text.len() == len && text.bytes().all(|b| b.is_ascii_digit());
    if let Some((before, date)) = name.rsplit_once('-')
        && digits(date, 8)
        && date.starts_with("20")
    {
        return before;
    }
    let parts: Vec<&str> = name.rsplitn(4, '-').collect();
    match parts[..] {
        [day, month, year, before] if digits(day, 2) && digits(month, 2) && digits(year, 4) => before,
        _ => name,
    }
}

/// True for names of models that run on a machine of one's own: files, quantised weights, Ollama's `name:size`. The window
/// of such a model is the one its server was started with.
fn is_local(name: &str) -> bool {
    let name = name.to_lowercase();
    let tag = name.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let release =
        |tag: &str| listed(TAGS, tag) || (!tag.is_empty() && tag.bytes().all(|b| b.is_ascii_digit()));
    let tagged = !name.starts_with("ft:") && tag.is_some_and(|tag| !release(tag));
    let quantised = name.split(['-', '.', '_', ':', '/', '@']).any(is_quantised);
    tagged || quantised || name.ends_with(".bin") || name.starts_with('/') || name.contains('\\')
}

fn is_quantised(word: &str) -> bool {
    let number =
        |rest: Option<&str>| rest.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let bits = number(word.strip_suffix("bit")) || number(word.strip_suffix("bpw"));
    matches!(word, "gguf" | "ggml" | "gptq" | "awq" | "exl2" | "exl3" | "mlx" | "safetensors" | "imatrix")
        || number(word.strip_prefix('q'))
        || number(word.strip_prefix("iq"))
        || bits
}
