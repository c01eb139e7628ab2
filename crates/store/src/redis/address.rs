//! Where a Redis is and how it is spoken to, read from a URL.
//!
//! `redis://[user:password@]host[:port][/db]`, `rediss://` for TLS; `redis+cluster://` and `redis+sentinel://` name several
//! hosts, the latter also the service: `redis+sentinel://a:26379,b:26379/mymaster/0`. Own parameters: `prefix` begins every
//! key, `wait` is the number of replicas that an entry must have reached, `ca` is a file with the certificate to trust,
//! `tls=1` speaks TLS to a cluster or to what a sentinel names. A password never leaves this file but for the server.

use crate::{Error, Result};
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, TlsCertificates};
use std::time::Duration;

/// How long a connection may be quiet before it is tried.
const QUIET: Duration = Duration::from_secs(30);

/// What a URL says.
#[derive(Clone)]
pub(super) struct RedisAddress {
    pub(super) sort: RedisTopology,
    pub(super) is_tls: bool,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) hosts: Vec<(String, u16)>,
    pub(super) db: i64,
    /// What every key begins with.
    pub(super) prefix: String,
    /// How many replicas an entry must have reached.
    pub(super) wait: u32,
    /// The certificate to trust, as PEM.
    authority: Option<Vec<u8>>,
}

/// What stands behind the hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RedisTopology {
    /// One server.
    One,
    /// A Redis Cluster.
    Cluster,
    /// Sentinels that know where the service of this name is.
    Sentinel(String),
}

const SCHEMES: [(&str, RedisTopology, bool); 4] = [
    ("redis", RedisTopology::One, false),
    ("rediss", RedisTopology::One, true),
    ("redis+cluster", RedisTopology::Cluster, false),
    ("redis+sentinel", RedisTopology::Sentinel(String::new()), false),
];

/// Refuses a URL, naming what is wrong with it and nothing of what is in it but that.
fn refused(why: String) -> Error {
    Error::BadAddress { why }
}

impl RedisAddress {
    pub(super) fn parse(url: &str) -> Result<Self> {
        let (scheme, rest) =
            url.split_once("://").ok_or_else(|| refused("the address has no `://`".into()))?;
        let known = SCHEMES.into_iter().find(|(name, ..)| *name == scheme);
        let (_, sort, is_tls) = known.ok_or_else(|| refused(format!("`{scheme}` is no kind of Redis")))?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // Then what stands before and after it is a password's, and is not to be told as a port or a parameter.
        if query.contains('@') {
            return Err(refused("a `?` in a password is written %3F, and an `@` in a parameter %40".into()));
        }
        let (userinfo, rest) = rest.rsplit_once('@').map_or((None, rest), |(who, rest)| (Some(who), rest));
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let usual = if matches!(sort, RedisTopology::Sentinel(_)) { 26_379 } else { 6379 };
        let hosts = hosts.split(',').map(|host| host_port(host, usual)).collect::<Result<Vec<_>>>()?;
        let (user, password) = credentials(userinfo)?;
        let (sort, db) = service_and_db(&sort, path)?;
        let (prefix, wait, authority) = ("komado".to_owned(), 0, None);
        let mut address = Self { sort, is_tls, user, password, hosts, db, prefix, wait, authority };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            address.set(name, &decoded(value)?)?;
        }
        address.checked()
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "prefix" => value.clone_into(&mut self.prefix),
            "wait" => {
                let n = value.parse().map_err(|_| refused(format!("`wait` is a number, not {value:?}")))?;
                self.wait = n;
            }
            "tls" if matches!(value, "1" | "true" | "yes") => self.is_tls = true,
            "tls" => {
                return Err(refused(format!(
                    "`tls` is 1, true or yes, not {value:?}; to speak plainly write redis:// and leave it out"
                )));
            }
            "ca" => {
                let pem = std::fs::read(value)
                    .map_err(|e| refused(format!("the certificate {value:?} of `ca` cannot be read: {e}")))?;
                self.authority = Some(pem);
            }
            _ => {
                return Err(refused(format!("`{name}` is no parameter; there are prefix, wait, tls and ca")));
            }
        }
        Ok(())
    }

    fn checked(self) -> Result<Self> {
        let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.:".contains(&b);
        if self.prefix.is_empty() || self.prefix.len() > 64 || !self.prefix.bytes().all(is_plain) {
            return Err(refused("`prefix` is one to 64 letters, digits or `_-.:`".into()));
        }
        if self.sort == RedisTopology::Cluster && self.db != 0 {
            return Err(refused(format!("a cluster has only the database 0, not {}", self.db)));
        }
        if self.sort == RedisTopology::Cluster && self.wait > 0 {
            return Err(refused("`wait` is for one server or a sentinel's, not for a cluster".into()));
        }
        Ok(self)
    }

    /// For people: without secrets.
    pub(super) fn place(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        match &self.sort {
            RedisTopology::One => format!("{}/{}", hosts.join(","), self.db),
            RedisTopology::Cluster => format!("cluster {}", hosts.join(",")),
            RedisTopology::Sentinel(service) => format!("{service} at {}/{}", hosts.join(","), self.db),
        }
    }

    /// How each host is reached.
    pub(super) fn addresses(&self) -> Vec<ConnectionAddr> {
        self.hosts.iter().map(|(host, port)| self.address(host, *port)).collect()
    }

    fn address(&self, host: &str, port: u16) -> ConnectionAddr {
        let host = host.to_owned();
        // What a sentinel says is spoken plainly; the servers behind it may want TLS.
        if self.is_tls && !matches!(self.sort, RedisTopology::Sentinel(_)) {
            return ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None };
        }
        ConnectionAddr::Tcp(host, port)
    }

    /// Who is at the door.
    pub(super) fn introduction(&self) -> RedisConnectionInfo {
        let mut info = RedisConnectionInfo::default().set_db(self.db);
        if let Some(user) = &self.user {
            info = info.set_username(user);
        }
        if let Some(password) = &self.password {
            info = info.set_password(password);
        }
        info
    }

    /// Everything about one host.
    pub(super) fn info(&self, addr: ConnectionAddr) -> redis::RedisResult<ConnectionInfo> {
        let info = addr.into_connection_info()?.set_redis_settings(self.introduction());
        Ok(info.set_tcp_settings(lively()))
    }

    pub(super) fn certificates(&self) -> Option<TlsCertificates> {
        let root_cert = self.authority.clone()?;
        Some(TlsCertificates { client_tls: None, root_cert: Some(root_cert) })
    }
}

/// A connection on which nothing is said, as to one that listens, is tried now and then: else this process never learns that the
/// other end is gone.
pub(super) fn lively() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(QUIET).with_interval(QUIET / 3);
    TcpSettings::default().set_keepalive(keepalive)
}

fn host_port(text: &str, usual: u16) -> Result<(String, u16)> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(refused("the address names no host; write redis://host:port".into()));
    }
    let port = match port {
        None => usual,
        Some(port) => {
            // Not repeated: it may be a password whose `@host` was forgotten.
            port.parse().map_err(|_| refused("its port is not a number; write redis://host:port".into()))?
        }
    };
    Ok((host.to_owned(), port))
}

fn credentials(userinfo: Option<&str>) -> Result<(Option<String>, Option<String>)> {
    let Some(userinfo) = userinfo else { return Ok((None, None)) };
    let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
    let some = |text: &str| decoded(text).map(|text| (!text.is_empty()).then_some(text));
    Ok((some(user)?, some(password)?))
}

fn service_and_db(sort: &RedisTopology, path: &str) -> Result<(RedisTopology, i64)> {
    let (sort, db) = match sort {
        RedisTopology::Sentinel(_) => {
            let (service, db) = path.split_once('/').unwrap_or((path, ""));
            if service.is_empty() {
                return Err(refused(
                    "the sentinels' service is missing; write redis+sentinel://host:port/service/0".into(),
                ));
            }
            (RedisTopology::Sentinel(decoded(service)?), db)
        }
        other => (other.clone(), path),
    };
    let db = db.trim_end_matches('/');
    let number = if db.is_empty() { Ok(0) } else { db.parse().ok().filter(|n| *n >= 0).ok_or(()) };
    Ok((sort, number.map_err(|()| refused(format!("{db:?} is no database; it is a number from 0 on")))?))
}

/// Undoes percent signs.
fn decoded(text: &str) -> Result<String> {
    let bad =
        || refused("a `%` in the address is not followed by two digits; write `%25` for the sign".into());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|b| char::from(b).to_digit(16)).ok_or_else(bad);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).map_err(|_| refused("the address is no text once `%` is undone".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> String {
        RedisAddress::parse(url).unwrap().place()
    }

    #[test]
    fn each_kind_of_address_is_understood() {
        assert_eq!(place("redis://here"), "here:6379/0");
        assert_eq!(place("rediss://u:p@[::1]:7000/3?prefix=mado"), "::1:7000/3");
        assert_eq!(place("redis+cluster://a:1,b:2"), "cluster a:1,b:2");
        assert_eq!(place("redis+sentinel://a,b:9/svc/2"), "svc at a:26379,b:9/2");
        let address = RedisAddress::parse("redis://ann:p%40ss@h/1?prefix=x&wait=2").unwrap();
        assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("ann"), Some("p@ss")));
        assert_eq!((address.prefix.as_str(), address.wait, address.db), ("x", 2, 1));
        assert_eq!(RedisAddress::parse("redis://:secret@h").unwrap().user, None);
        assert_eq!(RedisAddress::parse("redis://u:a%3Fb@h").unwrap().password.as_deref(), Some("a?b"));
        assert!(RedisAddress::parse("redis+cluster://h?tls=1").unwrap().is_tls);
    }

    #[test]
    fn every_connection_is_tried_when_it_is_quiet() {
        let address = RedisAddress::parse("redis://here").unwrap();
        let info = address.info(address.addresses().remove(0)).unwrap();
        assert!(info.tcp_settings().keepalive().is_some());
    }

    #[test]
    fn a_wrong_address_is_refused_without_its_password() {
        let wrong = [
            ("redis://u:secret@h:port", "its port is not a number"),
            ("redis://u:secret@h/x", "\"x\" is no database"),
            ("redis://u:secret@h?prefx=a", "`prefx` is no parameter"),
            ("redis://u:secret@h?prefix={a}", "`prefix` is one to 64"),
            ("redis://u:secret%zz@h", "`%`"),
            ("redis://u:secret@", "names no host"),
            ("redis+cluster://u:secret@h/1", "only the database 0"),
            ("redis+sentinel://u:secret@h", "service is missing"),
            ("redis://u:se?secret@h", "written %3F"),
            ("redis://u:x@y?secret@h", "written %3F"),
            ("rediss://u:secret@h?tls=0", "`tls` is 1, true or yes, not \"0\""),
            ("redis+cluster://u:secret@h?tls=on", "not \"on\""),
            ("redis://u:secret@h?ca=/no/such/file", "/no/such/file"),
        ];
        for (url, why) in wrong {
            let error = RedisAddress::parse(url).err().unwrap().to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{url}: {error}");
        }
    }
}
