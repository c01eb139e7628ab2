//! What may be shown of a value that can hold a secret?
//!
//! When in doubt, less: an address loses everything that could be a name and a password, even where it was
//! neither.

/// Stands for a secret that is there.
pub(super) const SET: &str = "(set)";
/// Stands for a value that is not there.
pub(super) const UNSET: &str = "(unset)";

const LONGEST: usize = 60;
const TELLTALE: [&str; 4] = ["pass", "key", "token", "secret"];

/// An address without its name and password, and without query values whose name says that they are secret.
pub fn url(url: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let query = query.map(|query| query.split('&').map(parameter).collect::<Vec<_>>().join("&"));
    // The last `@` of the whole text, since an unescaped password may hold `/`, `?` or `@`.
    match (base.rfind('@'), query.as_deref().and_then(|query| query.rfind('@'))) {
        (_, Some(at)) => format!("{}***{}", scheme(base), query.as_deref().map_or("", |query| &query[at..])),
        (Some(at), None) => format!("{}***{}", scheme(base), &base[at..]) + &tail(query.as_deref()),
        (None, None) if is_plain(base) => base.to_owned() + &tail(query.as_deref()),
        (None, None) => format!("{}***", scheme(base)),
    }
}

/// The beginning of a text, on one line and without terminal codes, for an error message.
pub(super) fn excerpt(text: &str) -> String {
    let line = text.trim_end().lines().next().unwrap_or_default();
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let short: String = line.chars().take(LONGEST).map(visible).collect();
    if short.is_empty() {
        "(empty)".to_owned()
    } else if short.chars().count() < text.trim_end().chars().count() {
        format!("{short}…")
    } else {
        short
    }
}

/// True when nothing in an address without a name can be a password: what follows a host is its port.
fn is_plain(base: &str) -> bool {
    let Some((_, rest)) = base.split_once("://") else { return !is_telltale(base) };
    let hosts = rest.split('/').next().unwrap_or_default().split(',');
    let behind = |host: &str| host.rsplit_once(']').map_or(host, |(_, port)| port).to_owned();
    hosts.map(behind).all(|host| {
        let port = host.split_once(':').map_or("", |(_, port)| port);
        port.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn is_telltale(text: &str) -> bool {
    let lower = text.to_lowercase();
    TELLTALE.iter().any(|part| lower.contains(part))
}

fn scheme(base: &str) -> &str {
    base.find("://").map_or("", |end| &base[..end + 3])
}

fn tail(query: Option<&str>) -> String {
    query.map_or_else(String::new, |query| format!("?{query}"))
}

fn parameter(pair: &str) -> String {
    let name = pair.split('=').next().unwrap_or_default();
    if is_telltale(name) { format!("{name}=***") } else { pair.to_owned() }
}
