//! A playbook as a Mermaid flowchart, which GitHub, GitLab and many editors draw. Whatever stands in a playbook is shown as text:
//! nothing of it is read as Mermaid's syntax.

use super::Playbook;
use super::draw::{DrawnEdge, DrawnNode, rows, told_kind, ways};
use super::node::NodeAction;
use std::collections::BTreeMap;

/// The flowchart.
pub(super) fn text(playbook: &Playbook) -> String {
    let rows = rows(playbook);
    // An id of ours may be any text, one of Mermaid's a word that means nothing to it.
    let names: BTreeMap<&str, String> =
        rows.iter().enumerate().map(|(n, row)| (row.node.id.as_str(), format!("n{}", n + 1))).collect();
    let name = |id: &str| names.get(id).cloned().unwrap_or_default();
    let mut lines = vec!["flowchart TD".to_owned()];
    let mut depth = 0;
    for row in &rows {
        change_depth(&mut lines, &mut depth, row.depth);
        let indent = "    ".repeat(depth + 1);
        lines.push(format!("{indent}{}{}", name(&row.node.id), shape(row)));
    }
    change_depth(&mut lines, &mut depth, 0);
    for DrawnNode { node, .. } in &rows {
        let is_chosen = matches!(node.does, NodeAction::Branch { .. });
        for DrawnEdge { when, to } in ways(node) {
            let arrow = match when.as_str() {
                "" => "-->".to_owned(),
                when if is_chosen => format!("-->|\"{}\"|", escaped(when)),
                when => format!("-.->|\"{}\"|", escaped(when)),
            };
            lines.push(format!("    {} {arrow} {}", name(&node.id), name(to)));
        }
    }
    lines.join("\n")
}

/// Opens and closes the frames of child threads.
fn change_depth(lines: &mut Vec<String>, depth: &mut usize, wanted: usize) {
    while *depth > wanted {
        lines.push(format!("{}end", "    ".repeat(*depth)));
        *depth -= 1;
    }
    while *depth < wanted {
        *depth += 1;
        // Each frame has a name of its own: where it begins.
        lines.push(format!("{}subgraph t{} [\"child thread\"]", "    ".repeat(*depth), lines.len()));
    }
}

/// A node's shape and words: a diamond for a choice, round for an end.
fn shape(row: &DrawnNode<'_>) -> String {
    let node = row.node;
    let label = node.label.as_ref().map(|label| format!("<br/>{}", escaped(label))).unwrap_or_default();
    let text = format!("\"{} [{}]{label}\"", escaped(&node.id), escaped(&told_kind(node)));
    match node.does {
        NodeAction::Branch { .. } => format!("{{{text}}}"),
        NodeAction::End { .. } => format!("([{text}])"),
        NodeAction::Start(_) | NodeAction::Stop { .. } => format!("[[{text}]]"),
        _ => format!("[{text}]"),
    }
}

/// A text between quotes: what Mermaid, or the HTML it makes, would read as syntax is written as a code.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '"' | '#' | '&' | '<' | '>' | '`' | '%' | '\\' | '*' | '_' | '~' | '|' => {
                out.push_str(&format!("#{};", u32::from(c)));
            }
            // At the beginning these would make a list.
            '-' | '+' if out.is_empty() => out.push_str(&format!("#{};", u32::from(c))),
            '.' | ')' if !out.is_empty() && out.bytes().all(|byte| byte.is_ascii_digit()) => {
                out.push_str(&format!("#{};", u32::from(c)));
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mermaid_would_read_is_written_as_a_code() {
        assert_eq!(
            escaped(r#"a "b" <c> #d; `e` %%{f}%%"#),
            "a #34;b#34; #60;c#62; #35;d; #96;e#96; #37;#37;{f}#37;#37;"
        );
        assert_eq!(escaped("line\nbreak\u{1b}"), "line break ");
        assert_eq!(
            (escaped("1. a"), escaped("- a"), escaped("v1.2 - b")),
            ("1#46; a".into(), "#45; a".into(), "v1.2 - b".into())
        );
    }

    #[test]
    fn hostile_words_stay_inside_their_quotes() {
        let text = serde_json::json!({ "name": "x", "nodes": [
            { "id": "end", "type": "llm", "label": "\"]; click n1 \"javascript:alert(1)\"\n%%{init:{}}%%", "next": "style n1" },
            { "id": "style n1", "type": "end", "label": "<script>" },
        ] });
        let playbook = Playbook::parse("x", &text.to_string()).unwrap();
        let chart = super::text(&playbook);
        let lines: Vec<&str> = chart.lines().collect();
        assert_eq!(lines.len(), 4, "{chart}");
        assert_eq!(lines[0], "flowchart TD");
        assert!(lines[1].starts_with("    n1[\"end [llm]<br/>") && lines[1].ends_with("\"]"), "{chart}");
        assert_eq!(lines[3], "    n1 --> n2");
        assert!(
            lines.iter().all(|line| line.matches('"').count() % 2 == 0 && !line.contains('%')),
            "{chart}"
        );
        assert!(!chart.contains("<script>"), "{chart}");
    }

    #[test]
    fn child_threads_stand_in_frames() {
        let text = serde_json::json!({ "name": "x", "nodes": [
            { "id": "begin", "type": "stelis_start", "next": "work" },
            { "id": "work", "type": "llm", "next": "finish" },
            { "id": "finish", "type": "stelis_end", "next": "done" },
            { "id": "done", "type": "end" },
        ] });
        let chart = super::text(&Playbook::parse("x", &text.to_string()).unwrap());
        let (before, after) =
            chart.split_once("    subgraph t2 [\"child thread\"]\n").unwrap_or_else(|| panic!("{chart}"));
        let (inside, after) = after.split_once("\n    end\n").unwrap();
        assert!(before.contains("[[\"begin"), "{chart}");
        assert!(inside.contains("work [llm]") && inside.contains("finish"), "{chart}");
        assert!(after.contains("done [end]") && after.contains("n1 --> n2"), "{chart}");
    }
}
