//! The text of a digest: a title, sections, lines that cite where they come from, all inside a limit.
//!
//! Each section writes what its share has room for; what is left over goes to the most important. Lines of several
//! findings save room where findings are short. It refuses to cut a finding in two, except those kept word for word.

use super::fact::{DigestSection, Fact, FactKind};
use super::scan::{fold, head_and_tail, stands};
use super::timeline::{Timeline, under};
use super::words::{Language, earlier, heading};
use crate::meter::Meter;

/// Findings that share a line.
const ON_A_LINE: usize = 10;

/// A section with the findings that made it into the text.
struct Block {
    section: DigestSection,
    /// Each finding written, in order.
    lines: Vec<String>,
}

/// What all writing needs to know.
#[derive(Clone, Copy)]
pub(super) struct Pen<'a> {
    pub(super) language: Language,
    pub(super) meter: Meter,
    /// The folder that the title tells once; empty when there is none.
    pub(super) root: &'a str,
}

/// Writes `sections`, and what was done, under `title`, at most `limit` tokens long.
pub(super) fn lay_out(
    title: &str,
    sections: Vec<(DigestSection, Vec<Fact>)>,
    timeline: &Timeline,
    pen: Pen<'_>,
    limit: u64,
) -> String {
    let room = limit.saturating_sub(pen.cost(title));
    let mut sections = without_told(sections);
    if !timeline.is_empty() {
        let at = sections.partition_point(|(section, _)| *section < DigestSection::Timeline);
        sections.insert(at, (DigestSection::Timeline, Vec::new()));
    }
    let wants: Vec<SectionDemand> = sections
        .iter()
        .map(|(section, facts)| SectionDemand {
            section: *section,
            tokens: match section {
                DigestSection::Timeline => pen.lines_demand(timeline, room),
                _ => pen.demand(*section, facts, room),
            },
        })
        .collect();
    let given = shares(&wants, room);
    let mut page = Page::default();
    let mut blocks: Vec<(Block, &[Fact])> = Vec::new();
    for ((section, facts), share) in sections.iter().zip(given) {
        blocks.push(match section {
            DigestSection::Timeline => (pen.lines(timeline, share, &mut page), [].as_slice()),
            _ => pen.block(*section, facts, share, &mut page),
        });
    }
    // What sections could not use goes to the most important first; what is soft has its chance here.
    for (block, rest) in &mut blocks {
        pen.fill_up(block, rest, room, &mut page);
    }
    shorten(title, blocks.into_iter().map(|(block, _)| block).collect(), pen, limit)
}

/// What is written so far.
#[derive(Default)]
struct Page {
    spent: u64,
    /// What the user said, word for word: the words in it are found again when the text is read back.
    said: String,
    /// What was done: commands and files are found again there.
    done: String,
}

impl Page {
    /// True when a finding of `section` stands there already and needs no line of its own.
    fn says(&self, section: DigestSection, fact: &Fact) -> bool {
        if matches!(section, DigestSection::Commands | DigestSection::Read) && fact.output.is_none() {
            return fact.count < 2 && stands(&self.done, &fact.text, "_/-");
        }
        let spare = matches!(
            section,
            DigestSection::Rules | DigestSection::Ids | DigestSection::Symbols | DigestSection::Seen
        );
        spare && fact.count < 2 && stands(&self.said, &fact.text, "_/-")
    }

    fn add(&mut self, section: DigestSection, item: &str, cost: u64) {
        self.spent += cost;
        if matches!(section, DigestSection::Newest | DigestSection::First | DigestSection::Rules) {
            self.said.push_str(item);
            self.said.push('\n');
        }
    }
}

impl Pen<'_> {
    fn lines_demand(self, timeline: &Timeline, room: u64) -> u64 {
        let lines = timeline.lines(self.language, self.root, room, |line| self.cost(line));
        let tokens: u64 = lines.iter().map(|line| self.cost(line)).sum();
        tokens + self.cost(&self.heading(DigestSection::Timeline))
    }

    /// As much of the timeline as `share` tokens hold.
    fn lines(self, timeline: &Timeline, share: u64, page: &mut Page) -> Block {
        let section = DigestSection::Timeline;
        let head = self.cost(&self.heading(section));
        let room = share.saturating_sub(head);
        let lines = timeline.lines(self.language, self.root, room, |line| self.cost(line));
        if !lines.is_empty() {
            page.spent += head + lines.iter().map(|line| self.cost(line)).sum::<u64>();
        }
        for line in &lines {
            // Where there is a root, the paths below it are told from there.
            page.done.push_str(&line.replace(" ./", &format!(" {}/", self.root)));
            page.done.push('\n');
        }
        Block { section, lines }
    }
}

/// Facts that only an earlier summary told need no line of their own while that summary stands in the text.
fn without_told(mut sections: Vec<(DigestSection, Vec<Fact>)>) -> Vec<(DigestSection, Vec<Fact>)> {
    let prose: Vec<String> = sections
        .iter()
        .filter(|(section, _)| *section == DigestSection::Earlier)
        .flat_map(|(_, facts)| facts.iter().map(|fact| fold(&fact.text)))
        .collect();
    for (section, facts) in &mut sections {
        if *section != DigestSection::Earlier {
            facts.retain(|fact| !fact.told || !prose.iter().any(|p| p.contains(&fold(&fact.text))));
        }
    }
    sections.retain(|(_, facts)| !facts.is_empty());
    sections
}

impl Pen<'_> {
    /// Tokens of a line with its line break; a rounded meter is rounded against us.
    fn cost(self, line: &str) -> u64 {
        self.meter.text(line) + 1
    }

    fn heading(self, section: DigestSection) -> String {
        format!("## {}", heading(section, self.language))
    }

    /// Tokens that a whole section would take, or a little more than `room`.
    fn demand(self, section: DigestSection, facts: &[Fact], room: u64) -> u64 {
        let mut tokens = 0;
        for fact in facts.iter().take_while(|fact| !fact.soft) {
            if tokens > room {
                break;
            }
            tokens += self.cost(&self.item(section, fact));
        }
        if tokens == 0 { 0 } else { tokens + self.cost(&self.heading(section)) }
    }

    /// As much of a section as `share` tokens hold, and the findings that were not looked at.
    fn block<'f>(
        self,
        section: DigestSection,
        facts: &'f [Fact],
        share: u64,
        page: &mut Page,
    ) -> (Block, &'f [Fact]) {
        let mut block = Block { section, lines: Vec::new() };
        let head = self.cost(&self.heading(section));
        let mut left = share.saturating_sub(head);
        for (i, fact) in facts.iter().enumerate() {
            if page.says(section, fact) {
                continue;
            }
            let mut item = self.item(section, fact);
            let mut cost = self.cost(&item);
            if cost > left && section.is_verbatim() {
                let Some(cut) = self.cut(section, fact, left) else { return (block, &facts[i..]) };
                cost = self.cost(&cut);
                item = cut;
            }
            if cost > left || fact.soft {
                return (block, &facts[i..]);
            }
            left -= cost;
            page.add(section, &item, cost + if block.lines.is_empty() { head } else { 0 });
            block.lines.push(item);
        }
        (block, &[])
    }

    /// Adds further findings while the page has room.
    fn fill_up(self, block: &mut Block, facts: &[Fact], room: u64, page: &mut Page) {
        let section = block.section;
        for fact in facts {
            let left = room.saturating_sub(page.spent);
            if left < 10 {
                break;
            }
            if page.says(section, fact) {
                continue;
            }
            let item = self.item(section, fact);
            let head = if block.lines.is_empty() { self.cost(&self.heading(section)) } else { 0 };
            let cost = self.cost(&item) + head;
            if cost <= left {
                page.add(section, &item, cost);
                block.lines.push(item);
            }
        }
    }

    /// A finding kept word for word, shortened to `room` tokens.
    fn cut(self, section: DigestSection, fact: &Fact, room: u64) -> Option<String> {
        let (full, mut chars) = (self.cost(&self.item(section, fact)).max(1), fact.text.chars().count());
        chars = (chars as u64 * room / full) as usize;
        while chars >= 8 {
            let short = Fact { text: head_and_tail(&fact.text, chars), ..fact.clone() };
            let item = self.item(section, &short);
            if self.cost(&item) <= room {
                return Some(item);
            }
            chars = chars * 9 / 10;
        }
        None
    }

    /// A finding as it stands in the text.
    fn item(self, section: DigestSection, fact: &Fact) -> String {
        let rooted = (fact.kind == FactKind::Path).then(|| under(self.root, &fact.text));
        let rooted = rooted.filter(|text| *text != fact.text).map(|text| Fact { text, ..fact.clone() });
        let fact = rooted.as_ref().unwrap_or(fact);
        if section.is_list() && can_share(&fact.text) {
            return self.short(fact);
        }
        let mut line = format!("- {}", marked(section, fact).replace('\n', "\n  "));
        if let FactKind::Command { exit } = fact.kind {
            match exit {
                Some(code) => line.push_str(&format!(" → exit {code}")),
                None if fact.failed => line.push_str(" → failed"),
                None => {}
            }
        }
        line.push_str(&times(fact));
        if let Some(at) = fact.resolved {
            line.push_str(&format!(" [resolved @{at}]"));
        }
        line.push_str(&format!(" ({}", self.place(fact)));
        if let Some(output) = &fact.output {
            line.push_str(&format!(", ref={output}"));
        }
        line.push(')');
        line
    }

    fn short(self, fact: &Fact) -> String {
        let mut item = format!("{}{} {}", fact.text, times(fact), self.place(fact));
        if let Some(output) = &fact.output {
            item.push_str(&format!(" ref={output}"));
        }
        item
    }

    fn place(self, fact: &Fact) -> String {
        match fact.at {
            0 => format!("@{}", earlier(self.language)),
            at => format!("@{at}"),
        }
    }
}

/// True when a finding cannot be taken for two, nor its end for a place.
fn can_share(text: &str) -> bool {
    !text.contains(", ") && !text.ends_with(',') && !text.contains(" @")
}

fn times(fact: &Fact) -> String {
    if fact.count > 1 { format!(" ×{}", fact.count) } else { String::new() }
}

fn marked(section: DigestSection, fact: &Fact) -> String {
    match (section, fact.kind) {
        (DigestSection::Open, FactKind::ToDo) => format!("{}{}", fact.status.mark(), fact.text),
        _ => fact.text.clone(),
    }
}

/// Puts the blocks together; what is still too long loses its least important findings.
fn shorten(title: &str, mut blocks: Vec<Block>, pen: Pen<'_>, limit: u64) -> String {
    loop {
        blocks.retain(|block| !block.lines.is_empty());
        let text = assemble(title, &blocks, pen);
        let mut over = pen.meter.text(&text).saturating_sub(limit);
        if over == 0 {
            return text;
        }
        let Some(block) = blocks.last_mut() else { return hard_cut(title, pen, limit) };
        while over > 0 {
            // The oldest of what was done matters least.
            let first = block.section == DigestSection::Timeline && !block.lines.is_empty();
            let Some(line) = (if first { Some(block.lines.remove(0)) } else { block.lines.pop() }) else {
                break;
            };
            over = over.saturating_sub(pen.cost(&line));
        }
    }
}

fn assemble(title: &str, blocks: &[Block], pen: Pen<'_>) -> String {
    let mut text = title.to_owned();
    for block in blocks {
        text.push('\n');
        text.push_str(&pen.heading(block.section));
        let mut on_line = 0;
        for line in &block.lines {
            // A finding that could not share a line has its own mark.
            if line.starts_with("- ") {
                text.push('\n');
                on_line = 0;
            } else if on_line % ON_A_LINE == 0 {
                text.push_str("\n- ");
                on_line = 1;
            } else {
                text.push_str(", ");
                on_line += 1;
            }
            text.push_str(line);
        }
    }
    text
}

/// The title alone, as much of it as a tiny limit lets stand.
fn hard_cut(title: &str, pen: Pen<'_>, limit: u64) -> String {
    let mut chars = title.chars().count();
    loop {
        let text: String = title.chars().take(chars).collect();
        if chars == 0 || pen.meter.text(&text) <= limit {
            return text;
        }
        chars -= 1;
    }
}

// Who gets how much room: every section its share, none more than it can use.
//
// When shares become too small to hold anything, the least important section gives its room to the others. It
// refuses to look at what a section holds.

/// Tokens below which a section is not worth its heading.
const LEAST: u64 = 22;

/// Tokens below which a digest is short.
const SHORT: u64 = 448;

/// What a section would take, in tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectionDemand {
    pub(super) section: DigestSection,
    pub(super) tokens: u64,
}

/// The parts of the room that sections take when all want more than there is.
const fn part(section: DigestSection, is_short: bool) -> u64 {
    match section {
        // In its own words the model says in few tokens what it took many to find: in a short digest nothing else is worth as much.
        DigestSection::Decisions if is_short => 60,
        DigestSection::Decisions => 10,
        DigestSection::Earlier => 30,
        DigestSection::Timeline => 22,
        DigestSection::Newest => 13,
        DigestSection::Commands => 12,
        DigestSection::Rules | DigestSection::First | DigestSection::Changed | DigestSection::Errors => 11,
        DigestSection::Open | DigestSection::Ids => 9,
        DigestSection::Symbols => 8,
        DigestSection::Read => 6,
        DigestSection::Seen => 5,
        DigestSection::Git => 4,
        DigestSection::Results | DigestSection::Outputs | DigestSection::Requests => 4,
    }
}

/// Tokens for each demand, in the order given, which is the order of importance; 0 for those that get nothing.
pub(super) fn shares(demands: &[SectionDemand], room: u64) -> Vec<u64> {
    for kept in (1..=demands.len()).rev() {
        let mut given = fill(&demands[..kept], room);
        let fits = given.iter().zip(demands).all(|(given, demand)| *given >= demand.tokens.min(LEAST));
        if fits || kept == 1 {
            given.resize(demands.len(), 0);
            return given;
        }
    }
    vec![0; demands.len()]
}

/// Small demands are met in full; the others share what is left by their parts.
fn fill(demands: &[SectionDemand], room: u64) -> Vec<u64> {
    let mut given: Vec<Option<u64>> = vec![None; demands.len()];
    let is_short = room < SHORT;
    loop {
        let left = room.saturating_sub(given.iter().flatten().sum());
        let waiting = || demands.iter().enumerate().filter(|(i, _)| given[*i].is_none());
        let parts: u64 = waiting().map(|(_, demand)| part(demand.section, is_short)).sum();
        let share = |demand: &SectionDemand| left * part(demand.section, is_short) / parts.max(1);
        let met: Vec<usize> = waiting().filter(|(_, d)| d.tokens <= share(d)).map(|(i, _)| i).collect();
        if met.is_empty() {
            return demands
                .iter()
                .zip(&given)
                .map(|(demand, given)| given.unwrap_or(share(demand)))
                .collect();
        }
        for i in met {
            given[i] = Some(demands[i].tokens);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demands(of: &[(DigestSection, u64)]) -> Vec<SectionDemand> {
        of.iter().map(|(section, tokens)| SectionDemand { section: *section, tokens: *tokens }).collect()
    }

    #[test]
    fn small_demands_are_met_and_the_rest_is_shared() {
        let demands = demands(&[
            (DigestSection::Newest, 1000),
            (DigestSection::Rules, 30),
            (DigestSection::Read, 1000),
        ]);
        let given = shares(&demands, 500);
        assert_eq!(given[1], 30);
        assert!(given[0] > given[2] && given.iter().sum::<u64>() <= 500 && given.iter().sum::<u64>() > 480);
    }

    #[test]
    fn when_room_is_short_the_least_important_get_nothing() {
        let demands = demands(&[
            (DigestSection::Newest, 1000),
            (DigestSection::Rules, 1000),
            (DigestSection::Requests, 1000),
        ]);
        assert_eq!(shares(&demands, 40), [40, 0, 0]);
        assert_eq!(shares(&demands, 60)[2], 0);
    }
}
