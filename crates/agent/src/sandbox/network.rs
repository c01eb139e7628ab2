//! Which hosts a confined process reaches, as the settings list them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The ports of a host that is listed without one.
const WEB: [u16; 2] = [80, 443];
/// The word for a network without walls.
const OPEN: &str = "open";
/// The word for no network at all, which is also what an empty list means.
const NONE: &str = "none";

/// What of the network is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Network {
    /// These hosts, through the proxy; none when the list is empty.
    Hosts(Vec<AllowedHost>),
    /// Whatever the machine reaches.
    Open,
}

impl Default for Network {
    fn default() -> Self {
        Self::Hosts(Vec::new())
    }
}

/// A host that may be reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllowedHost {
    name: Name,
    port: Option<u16>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Name {
    /// An address.
    Address(IpAddr),
    /// A name, in lower case.
    Exact(String),
    /// All names below this one.
    Below(String),
}

/// An entry of the list that cannot be understood.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not a host: write open, none, or hosts such as example.com, *.example.com, example.com:8443, 192.0.2.7 or [::1]:8080"
)]
pub struct BadHost(pub String);

impl Network {
    /// The list of the settings: hosts, `open` alone, or `none` alone.
    pub fn parse(list: &[String]) -> Result<Self, BadHost> {
        match list {
            [one] if one == OPEN => Ok(Self::Open),
            [one] if one == NONE => Ok(Self::default()),
            hosts => {
                hosts.iter().map(|host| AllowedHost::parse(host)).collect::<Result<_, _>>().map(Self::Hosts)
            }
        }
    }

    /// As [`parse`](Self::parse) reads it.
    pub(super) fn words(&self) -> Vec<String> {
        match self {
            Self::Open => vec![OPEN.to_owned()],
            Self::Hosts(hosts) => hosts.iter().map(AllowedHost::to_string).collect(),
        }
    }

    /// The hosts, where a proxy is to serve any.
    pub(super) fn hosts(&self) -> Option<&[AllowedHost]> {
        match self {
            Self::Hosts(hosts) if !hosts.is_empty() => Some(hosts),
            _ => None,
        }
    }
}

impl AllowedHost {
    fn parse(given: &str) -> Result<Self, BadHost> {
        let bad = || BadHost(given.to_owned());
        let (name, port) = split(given).ok_or_else(bad)?;
        let name = match name.parse() {
            Ok(address) => Name::Address(canonical(address)),
            Err(_) => match name.strip_prefix("*.") {
                Some(above) if is_name(above) => Name::Below(above.to_ascii_lowercase()),
                None if is_name(name) && name != OPEN && name != NONE => {
                    Name::Exact(name.trim_end_matches('.').to_ascii_lowercase())
                }
                _ => return Err(bad()),
            },
        };
        Ok(Self { name, port })
    }

    fn has_port(&self, port: u16) -> bool {
        self.port.map_or(WEB.contains(&port), |own| own == port)
    }

    /// True when a client may ask for this name and port.
    pub(super) fn admits(&self, name: &str, port: u16) -> bool {
        let asked = name.trim_end_matches('.').to_ascii_lowercase();
        self.has_port(port)
            && match &self.name {
                Name::Address(address) => asked.parse().is_ok_and(|ip| canonical(ip) == *address),
                Name::Exact(own) => asked == *own,
                Name::Below(above) => asked
                    .strip_suffix(above.as_str())
                    .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
            }
    }

    /// True when an address that is not public may be reached, because it is listed itself: what a listed *name* resolves
    /// to is its owner's choice.
    pub(super) fn lists(&self, ip: IpAddr, port: u16) -> bool {
        self.has_port(port)
            && match &self.name {
                Name::Address(address) => *address == canonical(ip),
                Name::Exact(name) => name == "localhost" && canonical(ip).is_loopback(),
                Name::Below(_) => false,
            }
    }

    /// True when clients must ask the proxy for a loopback address, which otherwise is their own.
    pub(super) fn is_named(&self, loopback: &str) -> bool {
        match (&self.name, loopback.parse::<IpAddr>()) {
            (Name::Address(address), Ok(ip)) => *address == ip,
            (Name::Exact(name), Err(_)) => name == loopback,
            _ => false,
        }
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Name::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
            Name::Address(address) => write!(f, "{address}")?,
            Name::Exact(name) => f.write_str(name)?,
            Name::Below(above) => write!(f, "*.{above}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// A name or an address, and the port behind it; a bare address of version 6 has none.
pub(super) fn split(given: &str) -> Option<(&str, Option<u16>)> {
    let port = |text: &str| text.parse::<u16>().ok().filter(|port| *port > 0);
    if let Some(rest) = given.strip_prefix('[') {
        let (address, behind) = rest.split_once(']')?;
        address.parse::<Ipv6Addr>().ok()?;
        return match behind.strip_prefix(':') {
            Some(behind) => Some((address, Some(port(behind)?))),
            None => behind.is_empty().then_some((address, None)),
        };
    }
    if given.parse::<Ipv6Addr>().is_ok() {
        return Some((given, None));
    }
    match given.split_once(':') {
        Some((name, behind)) => Some((name, Some(port(behind)?))),
        None => Some((given, None)),
    }
}

fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // A last label of digits alone would be taken for an address by some resolvers.
    let text = text.trim_end_matches('.');
    text.split('.').all(is_label)
        && text.rsplit('.').next().is_some_and(|last| last.bytes().any(|byte| !byte.is_ascii_digit()))
        && !text.to_ascii_lowercase().rsplit('.').next().is_some_and(|last| last.starts_with("0x"))
}

/// An address of version 4 in the clothes of version 6, as itself.
fn canonical(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}

/// True for an address of the public internet: no machine of a local network, nor this one, is there.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match canonical(ip) {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let is_special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_documentation()
        || matches!(
            (a, b, c),
            (0 | 224.., ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18..=19, _)
        );
    !is_special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let parts = ip.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match parts {
        // Addresses of version 4 inside: 6to4, and translation by the network.
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        // Teredo and other special blocks, documentation.
        [0x2001, second, ..] if second < 0x200 || second == 0xdb8 => false,
        [0x3fff, second, ..] if second < 0x1000 => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::{AllowedHost, Network, is_public};

    fn host(text: &str) -> AllowedHost {
        AllowedHost::parse(text).unwrap()
    }

    #[test]
    fn a_host_admits_its_own_name_and_port_and_no_other() {
        let plain = host("Example.com");
        for (name, port) in [("example.com", 443), ("EXAMPLE.com.", 80)] {
            assert!(plain.admits(name, port), "{name}:{port}");
        }
        for (name, port) in [
            ("example.com", 22),
            ("example.com.evil.net", 443),
            ("evilexample.com", 443),
            ("a.example.com", 443),
            ("example.co", 443),
            ("", 443),
            (".", 443),
        ] {
            assert!(!plain.admits(name, port), "{name}:{port}");
        }
        let below = host("*.example.com");
        assert!(below.admits("a.example.com", 443) && below.admits("a.b.EXAMPLE.com", 80));
        for name in ["example.com", ".example.com", "aexample.com", "example.com.", "evil.com"] {
            assert!(!below.admits(name, 443), "{name}");
        }
        let port = host("localhost:8080");
        assert!(port.admits("localhost", 8080) && !port.admits("localhost", 443));
        assert!(host("[::1]:9").admits("::1", 9) && host("127.0.0.1").admits("::ffff:127.0.0.1", 80));
        assert!(!host("127.0.0.1").admits("127.1", 80) && !host("127.0.0.1").admits("localhost", 80));
    }

    #[test]
    fn an_address_that_is_not_public_is_listed_only_by_itself() {
        let ip = |text: &str| text.parse().unwrap();
        assert!(
            host("10.0.0.7:81").lists(ip("10.0.0.7"), 81) && !host("10.0.0.7:81").lists(ip("10.0.0.7"), 82)
        );
        assert!(host("localhost").lists(ip("127.0.0.1"), 80) && host("localhost").lists(ip("::1"), 443));
        assert!(!host("localhost").lists(ip("10.0.0.7"), 80));
        assert!(
            !host("example.com").lists(ip("127.0.0.1"), 443) && !host("*.example.com").lists(ip("::1"), 443)
        );
    }

    #[test]
    fn what_is_no_host_is_named() {
        for bad in [
            "",
            "*",
            "*.",
            "http://a.b",
            "a b",
            "a:0",
            "a:x",
            "a:70000",
            "[::1",
            "::1]:80",
            "1.2.3",
            "0x7f.1",
            "*.*.a",
            "a/b",
            "a@b",
            "open:80",
        ] {
            assert_eq!(Network::parse(&["a.b".to_owned(), bad.to_owned()]).unwrap_err().0, bad);
        }
        assert_eq!(Network::parse(&["open".into()]).unwrap(), Network::Open);
        assert_eq!(Network::parse(&["none".into()]).unwrap(), Network::parse(&[]).unwrap());
    }

    #[test]
    fn only_the_public_internet_is_public() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "172.32.0.1",
            "192.1.1.1",
            "2606:4700::1111",
            "2a00::1",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "0.1.2.3",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.8",
            "192.0.2.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "2002:7f00:1::1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "3fff::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
