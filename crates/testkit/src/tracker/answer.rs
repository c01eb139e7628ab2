//! An answer before it goes out, and times as trackers write them.

use jiff::Timestamp;
use serde_json::Value;

/// An answer.
pub(super) struct TrackerResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl TrackerResponse {
    /// JSON.
    pub(super) fn json(status: u16, body: &Value) -> Self {
        let headers = vec![("content-type", "application/json; charset=utf-8".to_owned())];
        Self { status, headers, body: body.to_string() }
    }

    /// A page, as proxies and load balancers write it.
    pub(super) fn page(status: u16) -> Self {
        let headers = vec![("content-type", "text/html".to_owned())];
        let body = format!(
            "<html>\r\n<head><title>{status} Bad Gateway</title></head>\r\n<body>\r\n<center><h1>{status} Bad \
             Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
        );
        Self { status, headers, body }
    }

    /// With one more header.
    pub(super) fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

/// Such as `2026-01-01T00:00:00Z`.
pub(super) fn stamp(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

/// Such as `Thu, 01 Jan 2026 00:00:00 GMT`.
pub(super) fn date(seconds: i64) -> String {
    Timestamp::from_second(seconds).unwrap_or_default().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
