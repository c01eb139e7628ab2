//! The fields of a JSON object, in order, with values that nobody touched.
//!
//! Most of what a codec writes is put together from raw pieces of other JSON. It is done here once, so that no one
//! forgets a quote, writes a key twice, or sends a number through a float.

use komado_core::raw::Object;

/// Keys and the JSON text of their values.
#[derive(Clone, Debug, Default)]
pub(in crate::dialect) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The fields of `json`; none when it is no object. Of a key that stands twice the last value is taken, as every
    /// parser does.
    pub(in crate::dialect) fn of(json: &str) -> Self {
        let mut fields = Self::default();
        fields.put_all(json);
        fields
    }

    /// Sets every field of `json`; none when it is no object.
    pub(in crate::dialect) fn put_all(&mut self, json: &str) {
        if let Ok(object) = Object::parse(json) {
            object.0.iter().for_each(|(key, value)| self.put(key, value.get()));
        }
    }

    /// The value of `key`.
    pub(in crate::dialect) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }

    /// Takes `key` out.
    pub(in crate::dialect) fn take(&mut self, key: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(at).1)
    }

    /// Sets `key` to the JSON `value`; where it already stands, its place stays.
    pub(in crate::dialect) fn put(&mut self, key: &str, value: impl Into<String>) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, place)) => *place = value.into(),
            None => self.0.push((key.to_owned(), value.into())),
        }
    }

    /// Sets `key` to a text.
    pub(in crate::dialect) fn say(&mut self, key: &str, text: &str) {
        self.put(key, quoted(text));
    }

    /// Sets `key` unless it is there.
    pub(in crate::dialect) fn suggest(&mut self, key: &str, value: &str) {
        if self.get(key).is_none() {
            self.put(key, value);
        }
    }

    /// True when there is no field.
    pub(in crate::dialect) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fields in order.
    pub(in crate::dialect) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Keeps the fields for which `keep` says so.
    pub(in crate::dialect) fn retain(&mut self, mut keep: impl FnMut(&str, &str) -> bool) {
        self.0.retain(|(key, value)| keep(key, value));
    }

    /// What stands between the braces: `"a":1,"b":2`.
    pub(in crate::dialect) fn inner(&self) -> String {
        let fields: Vec<String> =
            self.0.iter().map(|(key, value)| format!("{}:{value}", quoted(key))).collect();
        fields.join(",")
    }

    /// As one JSON object.
    pub(in crate::dialect) fn json(&self) -> String {
        format!("{{{}}}", self.inner())
    }
}

/// `text` as a JSON string.
pub(in crate::dialect) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A JSON array of pieces that are JSON already; `None` when there are none.
pub(in crate::dialect) fn list(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| format!("[{}]", items.join(",")))
}
