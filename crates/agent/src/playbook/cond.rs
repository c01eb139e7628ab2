//! Conditions: what a branch asks of the variables.
//!
//! They are data, not code. What cannot be compared is false, so that a branch always has an answer.

use super::read::among;
use super::vars::{Variables, check_path};
use regex::Regex;
use serde_json::{Map, Value};
use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::fmt;

/// The operators.
const OPERATORS: [&str; 9] = ["eq", "ne", "gt", "gte", "lt", "lte", "contains", "matches", "exists"];

/// Those that compare: what they are called, how they are drawn, and what may come of it.
const COMPARING: [(&str, &str, &[Ordering]); 4] = [
    ("gt", ">", &[Greater]),
    ("gte", "≥", &[Greater, Equal]),
    ("lt", "<", &[Less]),
    ("lte", "≤", &[Less, Equal]),
];

/// Deepest nesting of conditions.
const DEEPEST: usize = 32;

/// A condition.
#[derive(Clone, Debug)]
pub(super) enum Condition {
    /// All of these.
    All(Vec<Condition>),
    /// Any of these.
    Any(Vec<Condition>),
    /// Not this.
    Not(Box<Condition>),
    /// A variable, and all that it is asked.
    Ask(String, Vec<ConditionTest>),
}

/// What is asked of one variable.
#[derive(Clone, Debug)]
pub(super) enum ConditionTest {
    Eq(Value),
    Ne(Value),
    /// One of [`COMPARING`]: how it is drawn, and what may come of it.
    Compare(&'static str, &'static [Ordering], Value),
    Contains(Value),
    Matches(Regex),
    Exists(bool),
}

impl Condition {
    /// Reads one; the error says what to write.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        Self::parse_at(value, 0)
    }

    fn parse_at(value: &Value, depth: usize) -> Result<Self, String> {
        if depth > DEEPEST {
            return Err(format!("conditions are nested more than {DEEPEST} deep"));
        }
        let Value::Object(fields) = value else {
            return Err(format!(
                "a condition is an object such as {{\"var\":\"calls\",\"gt\":0}}, not {value}"
            ));
        };
        let several = |value: &Value, name: &str| match value {
            Value::Array(items) if !items.is_empty() => {
                items.iter().map(|item| Self::parse_at(item, depth + 1)).collect::<Result<Vec<_>, _>>()
            }
            other => Err(format!("\"{name}\" takes a list of conditions, not {other}")),
        };
        let mut entries = fields.iter();
        match (entries.next(), entries.next()) {
            (Some((name, value)), None) if name == "all" => several(value, name).map(Self::All),
            (Some((name, value)), None) if name == "any" => several(value, name).map(Self::Any),
            (Some((name, value)), None) if name == "not" => {
                Ok(Self::Not(Box::new(Self::parse_at(value, depth + 1)?)))
            }
            _ => Self::ask(fields),
        }
    }

    fn ask(fields: &Map<String, Value>) -> Result<Self, String> {
        let Some(Value::String(name)) = fields.get("var") else {
            return Err(
                "a condition names a variable in \"var\", or is one of \"all\", \"any\" and \"not\"".into()
            );
        };
        check_path(name)?;
        let tests = fields.iter().filter(|(field, _)| *field != "var");
        let tests = tests.map(|(field, value)| test(field, value)).collect::<Result<Vec<_>, _>>()?;
        if tests.is_empty() {
            return Err(format!(
                "the condition on {name:?} has no operator: add one of {}",
                OPERATORS.join(", ")
            ));
        }
        Ok(Self::Ask(name.clone(), tests))
    }

    /// Whether it holds.
    pub(super) fn holds(&self, vars: &Variables) -> bool {
        match self {
            Self::All(conds) => conds.iter().all(|cond| cond.holds(vars)),
            Self::Any(conds) => conds.iter().any(|cond| cond.holds(vars)),
            Self::Not(cond) => !cond.holds(vars),
            Self::Ask(name, tests) => {
                let value = vars.value(name);
                tests.iter().all(|test| test.holds(value.as_ref()))
            }
        }
    }
}

/// Reads one operator.
fn test(field: &str, value: &Value) -> Result<ConditionTest, String> {
    let value = value.clone();
    if let Some((_, sign, fits)) = COMPARING.iter().find(|(name, ..)| *name == field) {
        return match value {
            Value::Number(_) | Value::String(_) => Ok(ConditionTest::Compare(sign, fits, value)),
            // Only numbers and texts have an order.
            other => Err(format!("\"{field}\" takes a number or a text, not {other}")),
        };
    }
    Ok(match field {
        "eq" => ConditionTest::Eq(value),
        "ne" => ConditionTest::Ne(value),
        "contains" => ConditionTest::Contains(value),
        "matches" => match &value {
            Value::String(pattern) => ConditionTest::Matches(
                Regex::new(pattern).map_err(|why| format!("\"matches\" is not a regex: {why}"))?,
            ),
            other => return Err(format!("\"matches\" takes a regex as text, not {other}")),
        },
        "exists" => match value {
            Value::Bool(is) => ConditionTest::Exists(is),
            other => return Err(format!("\"exists\" takes true or false, not {other}")),
        },
        other => return Err(format!("unknown operator {other:?}{}", among(other, OPERATORS))),
    })
}

impl ConditionTest {
    fn holds(&self, value: Option<&Value>) -> bool {
        match self {
            Self::Exists(is) => value.is_some_and(|value| !value.is_null()) == *is,
            Self::Eq(with) => value.is_some_and(|value| is_same(value, with)),
            Self::Ne(with) => !value.is_some_and(|value| is_same(value, with)),
            Self::Compare(_, fits, with) => {
                value.and_then(|value| order(value, with)).is_some_and(|found| fits.contains(&found))
            }
            Self::Contains(with) => value.is_some_and(|value| contains(value, with)),
            Self::Matches(pattern) => {
                value.and_then(Value::as_str).is_some_and(|text| pattern.is_match(text))
            }
        }
    }
}

fn is_same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(_), Some(_)) => order(a, b) == Some(Equal),
        _ => a == b,
    }
}

fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(x), Value::Number(y)) => match (x.as_i64(), y.as_i64()) {
            (Some(x), Some(y)) => Some(x.cmp(&y)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        _ => None,
    }
}

fn contains(value: &Value, with: &Value) -> bool {
    match (value, with) {
        (Value::String(text), Value::String(part)) => text.contains(part),
        (Value::Array(items), with) => items.iter().any(|item| is_same(item, with)),
        (Value::Object(fields), Value::String(name)) => fields.contains_key(name),
        _ => false,
    }
}

/// As a person would write it, for a drawing.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |conds: &[Self], word: &str| {
            let all: Vec<String> = conds.iter().map(|cond| format!("({cond})")).collect();
            all.join(word)
        };
        match self {
            Self::All(conds) => f.write_str(&joined(conds, " and ")),
            Self::Any(conds) => f.write_str(&joined(conds, " or ")),
            Self::Not(cond) => write!(f, "not ({cond})"),
            Self::Ask(name, tests) => {
                let all: Vec<String> = tests.iter().map(|test| format!("{name} {test}")).collect();
                f.write_str(&all.join(" and "))
            }
        }
    }
}

impl fmt::Display for ConditionTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Eq(value) => write!(f, "= {value}"),
            Self::Ne(value) => write!(f, "≠ {value}"),
            Self::Compare(sign, _, value) => write!(f, "{sign} {value}"),
            Self::Contains(value) => write!(f, "contains {value}"),
            Self::Matches(pattern) => write!(f, "matches /{pattern}/"),
            Self::Exists(true) => f.write_str("is there"),
            Self::Exists(false) => f.write_str("is not there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn holds(cond: Value) -> bool {
        let vars = crate::playbook::vars::given(
            json!({"n": 2, "f": 2.0, "text": "直しました: OK", "list": [1, 2], "none": null}),
        );
        Condition::parse(&cond).unwrap().holds(&vars)
    }

    #[test]
    fn what_holds_holds() {
        for cond in [
            json!({"var": "n", "eq": 2}),
            json!({"var": "f", "eq": 2}),
            json!({"var": "n", "ne": 3}),
            json!({"var": "gone", "ne": 3}),
            json!({"var": "n", "gt": 1, "lt": 3}),
            json!({"var": "n", "gte": 2.0, "lte": 2}),
            json!({"var": "text", "contains": "直し"}),
            json!({"var": "list", "contains": 2}),
            json!({"var": "text", "matches": "OK$"}),
            json!({"var": "n", "exists": true}),
            json!({"var": "none", "exists": false}),
            json!({"not": {"var": "n", "gt": 5}}),
            json!({"all": [{"var": "n", "gt": 0}, {"any": [{"var": "n", "eq": 9}, {"var": "n", "eq": 2}]}]}),
        ] {
            assert!(holds(cond.clone()), "{cond}");
        }
    }

    #[test]
    fn what_cannot_be_compared_is_false() {
        for cond in [
            json!({"var": "text", "gt": 1}),
            json!({"var": "n", "lt": "z"}),
            json!({"var": "n", "contains": 2}),
            json!({"var": "n", "matches": "2"}),
            json!({"var": "gone", "eq": null}),
            json!({"var": "gone", "gte": 0}),
            json!({"var": "text", "contains": 1}),
            json!({"var": "n", "eq": "2"}),
        ] {
            assert!(!holds(cond.clone()), "{cond}");
        }
    }

    #[test]
    fn what_is_no_condition_is_told() {
        for (cond, why) in [
            (json!({"var": "n"}), "has no operator"),
            (json!({"var": "n", "matches": "("}), "not a regex"),
            (json!({"var": "n", "greater": 1}), "unknown operator \"greater\""),
            (json!({"gt": 1}), "names a variable"),
            (json!({"all": []}), "takes a list"),
            (json!({"var": "n", "gt": []}), "a number or a text"),
            (json!({"var": "n", "exists": 1}), "true or false"),
            (json!(true), "is an object"),
        ] {
            let told = Condition::parse(&cond).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }
}
