//! The window as a picture: how full it is, and of what.

use crate::paper::{Ink, Paper, number};
use komado_ops::window::Parts;

/// How each part of a window is drawn, in the order of [`Parts::named`].
const CELLS: [(char, Ink); 7] = [
    ('█', Ink::Cyan),
    ('▚', Ink::Cyan),
    ('█', Ink::Dim),
    ('▓', Ink::Green),
    ('▒', Ink::Yellow),
    ('░', Ink::Bold),
    ('■', Ink::Red),
];

/// One line: a bar, the share used, tokens of the window.
pub(crate) fn line(paper: &Paper, parts: &Parts, window: Option<u32>, cells: usize) -> String {
    let used = parts.tokens();
    let Some(window) = window.map(u64::from) else {
        return format!("{} tokens; the window is not set", number(used));
    };
    let percent = 100.0 * used as f64 / window as f64;
    let share = format!("{percent:>5.1} %");
    let ink = match percent {
        p if p > 100.0 => Ink::Red,
        p if p >= 80.0 => Ink::Yellow,
        _ => Ink::Green,
    };
    let bar = bar(paper, parts, window, cells);
    format!("▕{bar}▏ {} {} of {}", paper.ink(ink, &share), number(used), number(window))
}

/// How full a window is, short enough to stand before what a person types: a bar and the share used.
pub(crate) fn short(tokens: u64, window: u64, cells: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let share = tokens as f64 / window.max(1) as f64;
    let filled = ((share * cells as f64 * 8.0).floor() as usize).min(cells * 8);
    let mut bar: String = std::iter::repeat_n('█', filled / 8).collect();
    if filled < cells * 8 {
        bar.push(EIGHTHS[filled % 8]);
        bar.extend(std::iter::repeat_n(' ', cells - filled / 8 - 1));
    }
    format!("▕{bar}▏ {:.0} %", (100.0 * share).ceil())
}

/// The bar: a run of cells for each part, then what is free.
fn bar(paper: &Paper, parts: &Parts, window: u64, cells: usize) -> String {
    let scale = window.max(parts.tokens()).max(1);
    let mut drawn = String::new();
    let (mut sum, mut filled) = (0u64, 0usize);
    for ((_, tokens), (cell, ink)) in parts.named().into_iter().zip(CELLS) {
        sum += tokens;
        let upto = (sum as f64 / scale as f64 * cells as f64).round() as usize;
        let run: String = std::iter::repeat_n(cell, upto.saturating_sub(filled)).collect();
        filled = filled.max(upto);
        if !run.is_empty() {
            drawn.push_str(&paper.ink(ink, &run));
        }
    }
    drawn.push_str(&" ".repeat(cells.saturating_sub(filled)));
    drawn
}

/// The parts as lines: what, tokens, share of what is used.
pub(crate) fn legend(paper: &Paper, parts: &Parts) -> Vec<String> {
    let used = parts.tokens().max(1) as f64;
    let row = |((name, tokens), (cell, ink)): ((&str, u64), (char, Ink))| {
        let share = 100.0 * tokens as f64 / used;
        format!("  {} {name:<18} {:>12}  {share:>5.1} %", paper.ink(ink, &cell.to_string()), number(tokens))
    };
    parts.named().into_iter().zip(CELLS).filter(|((_, tokens), _)| *tokens > 0).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn the_short_gauge_is_as_wide_whatever_it_shows() {
        for (tokens, shown) in [
            (0, "▕          ▏ 0 %"),
            (340, "▕███▍      ▏ 34 %"),
            (999, "▕█████████▉▏ 100 %"),
            (1_000, "▕██████████▏ 100 %"),
            (5_000, "▕██████████▏ 500 %"),
        ] {
            assert_eq!(short(tokens, 1_000, 10), shown);
        }
        assert_eq!(short(1, 0, 2), "▕██▏ 100 %");
    }
}
