//! Columns that line up, also where a character takes two of them.

use komado_core::notation::{tamed, width};

/// Rows of cells; the first row is the heading. A cell is one line, and a terminal shows it as it is.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> Vec<String> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| tamed(cell)).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|c| rows.iter().filter_map(|row| row.get(c)).map(|cell| width(cell)).max().unwrap_or(0))
        .collect();
    rows.iter().map(|row| line(row, &widths, right)).collect()
}

fn line(row: &[String], widths: &[usize], right: &[usize]) -> String {
    let mut text = String::new();
    for (c, cell) in row.iter().enumerate() {
        let gap = " ".repeat(widths[c].saturating_sub(width(cell)));
        if c > 0 {
            text.push_str("  ");
        }
        if right.contains(&c) {
            text.push_str(&gap);
            text.push_str(cell);
        } else {
            text.push_str(cell);
            text.push_str(&gap);
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_cell_is_one_line_and_gives_no_orders_to_a_terminal() {
        let rows = [vec!["label".into()], vec!["a\nFAKE ROW\u{1b}[2J".into()]];
        assert_eq!(super::table(&rows, &[]), ["label", "a FAKE ROW\\u001b[2J"]);
    }

    #[test]
    fn japanese_takes_two_columns_a_character() {
        let rows =
            [vec!["user".into(), "n".into()], vec!["小窓".into(), "12".into()], vec!["a".into(), "3".into()]];
        assert_eq!(super::table(&rows, &[1]), ["user   n", "小窓  12", "a      3"]);
    }
}
