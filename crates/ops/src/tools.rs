//! Definitions of tools: a list of JSON objects, kept as it was written.

use komado_core::raw::RawJson;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Definitions of tools.
#[derive(Clone, Debug)]
pub struct ToolDefinitions(RawJson);

impl TryFrom<RawJson> for ToolDefinitions {
    type Error = String;

    fn try_from(raw: RawJson) -> Result<Self, String> {
        let list: Vec<&RawValue> =
            serde_json::from_str(raw.get()).map_err(|_| "tools is not a list".to_owned())?;
        for (i, one) in list.into_iter().enumerate() {
            // What cannot be read whole could not be sent.
            let read: Result<Map<String, Value>, _> = serde_json::from_str(one.get());
            read.map_err(|error| format!("tools[{i}] is not a JSON object: {error}"))?;
        }
        Ok(Self(raw))
    }
}

impl From<ToolDefinitions> for RawJson {
    fn from(tools: ToolDefinitions) -> Self {
        tools.0
    }
}

impl<'de> Deserialize<'de> for ToolDefinitions {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let written = Box::<RawValue>::deserialize(from)?;
        RawJson::from_value(&written).try_into().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for ToolDefinitions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ToolDefinitions".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<Map<String, Value>>::json_schema(generator)
    }
}
