//! Which row a name means.

use super::{Model, Source};

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

pub(super) fn find<'a>(models: &'a [Model], name: &str) -> Option<&'a Model> {
    let name = name.trim();
    if name.is_empty() {
        return None;
    }
    exact(models, name).or_else(|| if is_local(name) { None } else { known_as(models, name) })
}

/// `id`, or `provider/id`.
fn exact<'a>(models: &'a [Model], name: &str) -> Option<&'a Model> {
    let whole = best(models.iter().filter(|model| model.id == name));
    whole.or_else(|| {
        let (provider, id) = name.split_once('/')?;
        models.iter().find(|model| model.provider == provider && model.id == id)
    })
}

fn known_as<'a>(models: &'a [Model], name: &str) -> Option<&'a Model> {
    let wanted = plain(name)?;
    let keyed: Vec<(String, &Model)> =
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
    let other = |word: &str| {
        VARIANTS.split(' ').any(|variant| variant == word) || (digits(word) > 0 && digits(word) < word.len())
    };
    // -5 right behind the name is a version; 0613, or -05-06 after another word, is a date.
    let version = |word: &str| (1..=2).contains(&digits(word));
    !words.split('-').any(other) && !words.split('-').next().is_some_and(version)
}

/// The user's own first, then the maker's, then the smallest window.
fn best<'a>(models: impl Iterator<Item = &'a Model>) -> Option<&'a Model> {
    let maker =
        |model: &Model| MAKERS.split(' ').position(|name| name == model.provider).unwrap_or(usize::MAX);
    models.min_by_key(|model| (model.source != Source::File, maker(model), model.context))
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
    let release = |tag: &str| {
        TAGS.split(' ').any(|known| known == tag)
            || (!tag.is_empty() && tag.bytes().all(|b| b.is_ascii_digit()))
    };
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
