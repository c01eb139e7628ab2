//! `komado key`: the keys of whoever may reach `komado serve`.

use crate::app::App;
use crate::fault::{Fault, Outcome};
use crate::paper::say;
use crate::server::access::keys::{self, Key, Keys, Sees};
use crate::table::table;
use clap::{Args as ClapArgs, Subcommand};
use jiff::{Timestamp, civil::Date, tz::TimeZone};
use komado_core::SessionId;
use serde_json::{Value, json};

#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// Make a key and show it, this once
    Add(Add),
    /// List the keys, without their secrets
    List,
    /// Take a key back: it opens nothing from the next request on
    Revoke {
        /// Its name
        name: String,
    },
}

#[derive(ClapArgs, Debug)]
struct Add {
    /// Its name, such as ann-laptop
    name: String,
    /// Whose sessions are made with it; the key's name when left out
    #[arg(long)]
    user: Option<String>,
    /// Which sessions it leads to: the user's own, or all
    #[arg(long, default_value = "own", value_parser = ["own", "all"])]
    sees: String,
    /// Sessions it leads to beside the user's own
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    sessions: Vec<String>,
    /// Requests a second at most, such as 10/s
    #[arg(long, value_name = "N/s", value_parser = rate)]
    rate: Option<u32>,
    /// Requests at a time at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
    /// When it is of no more use: 2027-01-31 (to the end of that day, UTC) or 2027-01-31T12:00:00Z
    #[arg(long, value_name = "DATE", value_parser = expiry)]
    expires: Option<String>,
}

pub(crate) fn run(app: &mut App, args: Args) -> Outcome {
    match args.verb {
        Verb::Add(args) => add(app, args),
        Verb::List => list(app),
        Verb::Revoke { name } => revoke(app, &name),
    }
}

fn add(app: &mut App, args: Add) -> Outcome {
    let secret = keys::secret()?;
    let sessions = args.sessions.iter().map(|id| Ok(SessionId::new(id.as_str())?.to_string()));
    let key = Key {
        name: name(&args.name)?,
        digest: keys::digest(&secret),
        user: Some(args.user.unwrap_or_else(|| args.name.clone())),
        sees: if args.sees == "all" { Sees::All } else { Sees::Own },
        sessions: sessions.collect::<Outcome<_>>()?,
        rate: args.rate,
        concurrency: args.concurrency,
        expires: args.expires,
        created_at: app.context.engine.now(),
    };
    app.claim()?;
    keys::add(&app.context.config.base_dir, key.clone())?;
    if app.paper.json {
        let mut row = row(&key);
        row["key"] = json!(secret);
        row["undo"] = json!(format!("komado key revoke {}", key.name));
        return app.paper.json(&row);
    }
    app.paper.line(&secret)?;
    say(format!("key {} of user {}: shown this once, and kept as a digest only", key.name, user(&key)));
    say("send it as Authorization: Bearer, x-api-key or x-komado-key; from now on every request needs one");
    say(format!("undo: komado key revoke {}", key.name));
    Ok(())
}

fn list(app: &mut App) -> Outcome {
    let keys = Keys::read(&keys::place(&app.context.config.base_dir))?;
    if app.paper.json {
        return keys.iter().try_for_each(|key| app.paper.json(&row(key)));
    }
    if keys.is_empty() {
        return app.paper.line("no keys: only this machine is served");
    }
    let heading = ["name", "user", "sees", "rate", "at a time", "expires", "made"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    rows.extend(keys.iter().map(cells));
    table(&rows, &[]).into_iter().try_for_each(|line| app.paper.fit(&line))
}

fn revoke(app: &mut App, name: &str) -> Outcome {
    keys::revoke(&app.context.config.base_dir, name)?;
    let left = Keys::read(&keys::place(&app.context.config.base_dir))?;
    if app.paper.json {
        return app.paper.json(&json!({ "name": name, "revoked": true, "undo": null }));
    }
    app.paper.line(format!("revoked {name}"))?;
    if left.is_empty() {
        say("that was the last one: whoever is on this machine needs none now, and others are not served");
    }
    Ok(())
}

fn row(key: &Key) -> Value {
    let mut row = json!(key);
    if let Value::Object(fields) = &mut row {
        fields.remove("digest");
    }
    row
}

fn cells(key: &Key) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let sees = match key.sees {
        Sees::All => "all".to_owned(),
        Sees::Own if key.sessions.is_empty() => "own".to_owned(),
        Sees::Own => format!("own, {}", key.sessions.join(", ")),
    };
    vec![
        key.name.clone(),
        user(key).to_owned(),
        sees,
        or_dash(key.rate.map(|rate| format!("{rate}/s"))),
        or_dash(key.concurrency.map(|n| n.to_string())),
        or_dash(key.expires.as_ref().map(|end| end.chars().take(19).collect())),
        key.created_at.chars().take(19).collect(),
    ]
}

fn user(key: &Key) -> &str {
    key.user.as_deref().unwrap_or("-")
}

/// A name that can be written on a command line and in a log.
fn name(given: &str) -> Outcome<String> {
    let ok = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    if given.is_empty() || given.chars().count() > 64 || given.starts_with('-') || !given.chars().all(ok) {
        return Err(Fault::usage(format!(
            "{given:?} is no name for a key; use up to 64 letters, digits, and - _ . @"
        )));
    }
    Ok(given.to_owned())
}

fn rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse().ok().filter(|rate| *rate > 0);
    rate.ok_or_else(|| format!("{text:?} is no rate; write such as 10/s"))
}

fn expiry(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is no date; write such as 2027-01-31 or 2027-01-31T12:00:00Z");
    if let Ok(time) = text.parse::<Timestamp>() {
        return Ok(crate::clock::stamp(time));
    }
    let day: Date = text.parse().map_err(|_| wrong())?;
    let end = day.tomorrow().and_then(|day| day.to_zoned(TimeZone::UTC)).map_err(|_| wrong())?;
    Ok(crate::clock::stamp(end.timestamp()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_ends_with_the_day_and_a_moment_is_a_moment() {
        assert_eq!(expiry("2027-01-31").unwrap(), "2027-02-01T00:00:00.000000Z");
        assert_eq!(expiry("2027-01-31T12:00:00+09:00").unwrap(), "2027-01-31T03:00:00.000000Z");
        for wrong in ["", "tomorrow", "2027-13-01", "窓"] {
            assert!(expiry(wrong).unwrap_err().contains("2027-01-31"), "{wrong}");
        }
    }

    #[test]
    fn names_and_rates_say_what_they_may_be() {
        assert_eq!(name("太郎-laptop").unwrap(), "太郎-laptop");
        for wrong in ["", "a b", "-x", "a/b", "a\n"] {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!((rate("10/s"), rate("3")), (Ok(10), Ok(3)));
        assert!(rate("0/s").is_err() && rate("10/m").is_err());
    }
}
