//! Which MCP servers are there, and how are they reached?
//!
//! A server is a program that is started or an address, and never both: which of the two was meant would be a guess. Its
//! settings are put together here, since each of them alone says too little to be checked. One that the file names and says
//! nothing of is refused too: its author believes to have it.

use super::ConfigError;
use super::check::{GivenValue, GivenValues, SettingsSection};
use super::origin::SettingPlace;
use super::sections::sandbox;
use super::table::{self, SERVER};
use komado_agent::mcp::{McpServer, McpTransport};
use komado_agent::sandbox::{Confinement, Network, Sandbox};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The section of the file in which servers are named.
pub(super) const SERVERS: &str = "mcp_servers";
const CALL: Duration = Duration::from_secs(60);
const START: Duration = Duration::from_secs(30);

/// The servers that some settings speak of, by name; `listed` are those that the file names.
pub(super) fn servers(
    given: &GivenValues,
    listed: &BTreeMap<String, SettingPlace>,
) -> Result<Vec<McpServer>, ConfigError> {
    let set = given.iter().filter(|(_, given)| given.value.is_some()).map(|(key, _)| key);
    let spoken_of = names(given.keys());
    // One whose settings are all given as empty is switched off; one without any was forgotten.
    let bare = listed.keys().filter(|name| !spoken_of.contains(*name)).cloned();
    let all: BTreeSet<String> = names(set).into_iter().chain(bare).collect();
    let said = |name: String| {
        let key = format!("{SERVERS}.{name}");
        Said { section: SettingsSection::of(given, key.as_str()), given, listed: listed.get(&name), key }
            .server(name)
    };
    all.into_iter().map(said).collect()
}

/// The names of servers in some keys.
fn names<'a>(keys: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
    let named = table::named(keys).into_iter().filter(|(stand_in, _)| *stand_in == SERVER);
    named.map(|(_, name)| name).collect()
}

/// What is said of one server.
struct Said<'a> {
    given: &'a GivenValues,
    section: SettingsSection<'a>,
    key: String,
    /// Where the file names it.
    listed: Option<&'a SettingPlace>,
}

impl Said<'_> {
    fn server(self, name: String) -> Result<McpServer, ConfigError> {
        let said = &self.section;
        let how = match (said.get::<Option<String>>("command"), said.get("url")) {
            (Some(command), None) => self.started(&command)?,
            (None, Some(url)) => McpTransport::Http { url, headers: said.get("headers") },
            (Some(_), Some(_)) => {
                return Err(self.wrong("url", "has a command and a url; keep one of the two"));
            }
            (None, None) => {
                return Err(self.wrong(
                    "",
                    "has neither a command nor a url; write `command: PROGRAM ARGUMENTS` or `url: https://HOST/PATH`",
                ));
            }
        };
        let start = said.get::<Option<_>>("start_seconds").unwrap_or(START);
        let call = said.get::<Option<_>>("timeout_seconds").unwrap_or(CALL);
        Ok(McpServer { how, start, call, only: said.get("tools"), name })
    }

    /// A program: by itself with its arguments, or a whole command line.
    fn started(&self, command: &str) -> Result<McpTransport, ConfigError> {
        let (program, args) = match self.section.get::<Option<_>>("args") {
            Some(args) => (command.trim().to_owned(), args),
            None => {
                let mut words = words(command).ok_or_else(|| {
                    self.wrong("command", "has a command with a quote that is not closed; close it")
                })?;
                let program = if words.is_empty() { String::new() } else { words.remove(0) };
                (program, words)
            }
        };
        if program.is_empty() {
            return Err(self.wrong("command", "has a command without a program's name; write one"));
        }
        let confinement = self.confinement()?;
        let (env, folder) = (self.section.get("env"), self.section.get("folder"));
        Ok(McpTransport::Command { program, args, env, folder, work: None, confinement })
    }

    /// Like commands, unless it says otherwise. Who launches it, and what it may take, is known where a task is.
    fn confinement(&self) -> Result<Confinement, ConfigError> {
        let own: Option<Network> = self.section.get("network");
        let commands = SettingsSection::of(self.given, "tools");
        let said = sandbox(&self.section);
        let network = match said {
            Some(Sandbox::Off) => own.unwrap_or(Network::Open),
            _ => own.unwrap_or_else(|| commands.get("network")),
        };
        if said == Some(Sandbox::Off) && network != Network::Open {
            let why = "has a network and is not confined, which leaves all of it open; write `network: open` or leave it out";
            return Err(self.wrong("network", why));
        }
        let sandbox = said.or_else(|| sandbox(&commands)).unwrap_or_default();
        Ok(Confinement { sandbox, network, ..Confinement::default() })
    }

    /// An error at the place of one of its settings; of any of them when that one was not given, else of its name.
    fn wrong(&self, leaf: &str, why: &str) -> ConfigError {
        let own = format!("{}.", self.key);
        let set = |(key, given): &(&String, &GivenValue)| key.starts_with(&own) && given.value.is_some();
        let any = || self.given.iter().find(set).map(|(_, given)| given);
        let place = self.section.given(leaf).or_else(any).map(|given| &given.place);
        let place = place.or(self.listed).cloned().unwrap_or(SettingPlace::Default);
        ConfigError::at(place, format!("{} {why}", self.key))
    }
}

/// The words of a command line: blanks part them, quotes of both kinds hold them together, a backslash takes the next
/// character as it is, except between single quotes. `None` when a quote is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = line.chars();
    while let Some(c) = letters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(letters.next()?),
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_command_line_is_parted_at_blanks_that_no_quote_holds() {
        let cases: [(&str, &[&str]); 6] = [
            ("uvx  mcp-server-time --tz=Asia/Tokyo ", &["uvx", "mcp-server-time", "--tz=Asia/Tokyo"]),
            ("a 'b c' \"d 'e'\" f''", &["a", "b c", "d 'e'", "f"]),
            ("x '' \"\"", &["x", "", ""]),
            (r#"a\ b "c\"d" 'e\f'"#, &["a b", "c\"d", "e\\f"]),
            ("道具 '日本 語'", &["道具", "日本 語"]),
            ("  ", &[]),
        ];
        for (line, parts) in cases {
            assert_eq!(words(line).unwrap(), parts, "{line}");
        }
        assert!(["a 'b", "a \"b", "a\\"].into_iter().all(|line| words(line).is_none()));
    }
}
