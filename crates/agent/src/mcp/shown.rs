//! What may be shown of a server: never the values of its environment and headers, nor what stands in its address beside the
//! place. They are where people put their keys.

use super::{How, Server};
use std::fmt;

/// Shorter values are no secrets, and would be found in any text.
const SHORTEST: usize = 8;

impl Server {
    /// A text about it without its secrets. What a server prints when it fails may well be its key.
    pub(super) fn hide(&self, text: &str) -> String {
        let (How::Command { env: values, .. } | How::Http { headers: values, .. }) = &self.how;
        let words = values.iter().flat_map(|(_, value)| [value.as_str()].into_iter().chain(value.split(' ')));
        let secrets = words.filter(|word| word.len() >= SHORTEST);
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

impl fmt::Debug for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, args, env, folder, work, confinement } => f
                .debug_struct("Command")
                .field("program", program)
                .field("args", &args.len())
                .field("env", &names(env))
                .field("folder", folder)
                .field("work", work)
                .field("confinement", confinement)
                .finish(),
            Self::Http { url, headers } => {
                f.debug_struct("Http").field("url", &address(url)).field("headers", &names(headers)).finish()
            }
        }
    }
}

fn names(pairs: &[(String, String)]) -> Vec<&str> {
    pairs.iter().map(|(name, _)| name.as_str()).collect()
}

/// An address without credentials, query and fragment, whatever else is wrong with it.
pub(super) fn address(url: &str) -> String {
    let url = &url[..url.find(['?', '#']).unwrap_or(url.len())];
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, after)| after);
    if scheme.is_empty() { rest.to_owned() } else { format!("{scheme}://{rest}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn server(how: How) -> Server {
        let second = Duration::from_secs(1);
        Server { name: "s".to_owned(), how, start: second, call: second, only: Vec::new() }
    }

    #[test]
    fn neither_debug_nor_an_error_shows_what_is_in_the_environment_or_the_headers() {
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let by_command = server(How::Command {
            program: "p".to_owned(),
            args: vec!["--key=sesame-open".to_owned()],
            env: pair("API_KEY", "sesame-open"),
            folder: None,
            work: None,
            confinement: crate::sandbox::Confinement::default(),
        });
        let url = "https://ann:sesame-open@host/mcp?key=sesame-open#sesame-open".to_owned();
        let by_http = server(How::Http { url, headers: pair("Authorization", "Bearer sesame-open") });
        for server in [by_command, by_http] {
            let shown = format!("{server:?}");
            assert!(!shown.contains("sesame"), "{shown}");
            assert_eq!(server.hide("bad key: sesame-open!"), "bad key: ***!");
        }
    }

    #[test]
    fn the_address_and_the_names_of_headers_are_shown() {
        let headers = vec![("X-Team".to_owned(), "a".to_owned())];
        let shown = format!("{:?}", How::Http { url: "http://host:1/mcp?q".to_owned(), headers });
        assert_eq!(shown, r#"Http { url: "http://host:1/mcp", headers: ["X-Team"] }"#);
    }
}
