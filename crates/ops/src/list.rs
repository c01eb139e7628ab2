//! The one list of operations.

use crate::edit;
use crate::operation::{Interfaces, Offer, Row};

/// Every operation, in the order in which interfaces list them.
pub const ALL: &[Row] = &[
    Row::of::<edit::Pin>(),
    Row::of::<edit::Unpin>(),
    Row::of::<edit::Rewind>(),
    Row::of::<edit::Revert>(),
    Row::of::<edit::Truncate>(),
    Row::of::<edit::Trim>(),
];

/// The list as a Markdown table: what `docs/operations.md` shows.
pub fn table() -> String {
    let mut out = String::from("| operation | type | command line | HTTP | MCP |\n|---|---|---|---|---|\n");
    for row in ALL {
        let Interfaces { cli, http, mcp } = row.interfaces;
        let name = (row.type_name)().trim_start_matches("komado_ops::").to_owned();
        let cells = [
            row.title.to_owned(),
            format!("`{name}`"),
            cell(cli, |verb| format!("`komado {verb}`")),
            cell(http, |route| format!("`{} /api/v1{}`", route.method.name().to_uppercase(), route.path)),
            cell(mcp, |()| format!("`{}`", row.name)),
        ];
        out += &format!("| {} |\n", cells.join(" | "));
    }
    out
}

fn cell<T: Copy>(offer: Offer<T>, show: impl Fn(T) -> String) -> String {
    match offer {
        Offer::As(how) => show(how),
        Offer::Not(why) => format!("no: {why}"),
    }
}
