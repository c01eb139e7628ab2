//! Where a store is: a URL with a parameter of our own.

use crate::{Error, Result};
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// What a URL says.
pub(super) struct PostgresAddress {
    /// For the driver.
    pub(super) config: Config,
    /// For people: host, port and database, without secrets.
    pub(super) place: String,
    /// Where our tables are.
    pub(super) schema: String,
    /// True when nothing is said in the clear, and the server shows who it is.
    pub(super) is_sealed: bool,
}

/// The longest name that the server does not cut.
const LONGEST: usize = 63;

/// The longest time that the server can be told.
const MOST_MILLIS: u128 = i32::MAX as u128;

impl PostgresAddress {
    /// Reads `postgres://user:password@host:port/database?sslmode=…&schema=…`.
    pub(super) fn parse(url: &str, patience: Duration) -> Result<Self> {
        check_user(url)?;
        let (start, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut schema, mut is_sealed, mut rest) = ("komado".to_owned(), false, Vec::new());
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("schema", name)) => schema = checked_schema(name)?,
                Some(("sslmode", mode)) => is_sealed = seals(mode)?,
                _ => rest.push(parameter),
            }
        }
        let config = format!("{start}?{}", rest.join("&")).parse::<Config>();
        let mut config = config.map_err(|error| refused(unreadable(url, &error)))?;
        if config.get_hosts().is_empty() {
            return Err(refused("it names no host; write postgres://user@host:5432/database".to_owned()));
        }
        config.ssl_mode(if is_sealed { SslMode::Require } else { SslMode::Disable });
        config.connect_timeout(patience).tcp_user_timeout(patience).keepalives_idle(patience * 3);
        config.application_name("komado");
        let limit = patience.as_millis().min(MOST_MILLIS / 3);
        let idle = limit * 3;
        config.options(format!(
            "{} -c search_path={schema} -c statement_timeout={limit} -c idle_in_transaction_session_timeout={idle}",
            config.get_options().unwrap_or_default()
        ));
        Ok(Self { place: place(&config), config, schema, is_sealed })
    }
}

fn refused(why: String) -> Error {
    Error::BadAddress { why }
}

/// Refuses a password that would be taken for a host or a parameter, and shown as one.
fn check_user(url: &str) -> Result<()> {
    let user = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')).map_or("", |(user, _)| user);
    if !user.contains(['@', '/', '?', '#']) {
        return Ok(());
    }
    let why =
        "in a user or password `@` is written %40, `/` %2F, `?` %3F and `#` %23; so is an `@` in a parameter";
    Err(refused(why.to_owned()))
}

/// What the driver did not understand, without the password.
fn unreadable(url: &str, error: &tokio_postgres::Error) -> String {
    let why = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    let user_part = url.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@')).map(|(user, _)| user);
    let secret = user_part.and_then(|user| user.split_once(':')).map(|(_, secret)| secret);
    match secret.filter(|secret| !secret.is_empty() && why.contains(*secret)) {
        Some(_) => "it cannot be read; write postgres://user:password@host:5432/database".to_owned(),
        None => format!("it cannot be read: {why}; write postgres://user:password@host:5432/database"),
    }
}

/// A name that needs no quotes anywhere.
fn checked_schema(name: &str) -> Result<String> {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    if begins && name.len() <= LONGEST && name.bytes().all(is_word) && !name.starts_with("pg_") {
        return Ok(name.to_owned());
    }
    let shown: String = name.chars().take(80).collect();
    Err(refused(format!(
        "schema={shown:?} is not a name for a schema; use a-z, 0-9 and _, {LONGEST} at most"
    )))
}

fn seals(mode: &str) -> Result<bool> {
    match mode {
        "disable" => Ok(false),
        "require" | "verify-ca" | "verify-full" => Ok(true),
        _ => {
            let shown: String = mode.chars().take(40).collect();
            Err(refused(format!("sslmode={shown:?} is not known; use disable, require or verify-full")))
        }
    }
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let named = config.get_hosts().iter().enumerate().map(|(i, host)| {
        let port = ports.get(i).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(host) => format!("{host}:{port}"),
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    });
    let hosts: Vec<String> = named.collect();
    format!("{}/{}", hosts.join(","), config.get_dbname().or(config.get_user()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<PostgresAddress> {
        PostgresAddress::parse(url, Duration::from_secs(3))
    }

    #[test]
    fn a_url_says_where_the_store_is_and_keeps_its_secrets() {
        let read =
            parse("postgres://ann:s3cret@db.example:5433/bot?sslmode=verify-full&schema=bot_1").unwrap();
        assert_eq!((read.place.as_str(), read.schema.as_str()), ("db.example:5433/bot", "bot_1"));
        assert!(read.is_sealed);
        let plain = parse("postgresql://ann@localhost/bot").unwrap();
        assert_eq!((plain.place.as_str(), plain.schema.as_str()), ("localhost:5432/bot", "komado"));
        assert!(!plain.is_sealed);
        let options = plain.config.get_options().unwrap();
        assert!(options.contains("idle_in_transaction_session_timeout=9000"), "{options}");
    }

    #[test]
    fn a_url_that_is_none_says_what_is_wrong_and_no_password() {
        for (url, word) in [
            ("postgres://ann:s3cret@h/d?schema=Robert'); DROP", "schema="),
            ("postgres://ann:s3cret@h/d?schema=", "schema="),
            ("postgres://ann:s3cret@h/d?schema=pg_own", "schema="),
            ("postgres://ann:s3cret@h/d?sslmode=maybe", "sslmode="),
            ("postgres://ann:s3cret@h:port/d", "cannot be read"),
            ("postgres://ann:s3cret@h/d?colour=red", "cannot be read"),
            ("postgres://ann:x@s3cret@h/d", "%40"),
            ("postgres://ann:x?s3cret@h/d", "%3F"),
            ("postgres:///d", "no host"),
        ] {
            let error = parse(url).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(word) && !error.contains("s3cret"), "{url}: {error}");
        }
    }
}
