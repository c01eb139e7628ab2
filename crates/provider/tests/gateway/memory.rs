//! A request is never held while it is skimmed. The test has a process of its own: the peak it looks at is that of the whole process.

#[cfg(target_os = "linux")]
#[test]
fn a_large_request_is_skimmed_in_little_memory() {
    use crate::own_process::{is_inside, peak};
    use komado_provider::{Dialect, RequestScanner};

    if !is_inside("gateway::memory::a_large_request_is_skimmed_in_little_memory", &[]) {
        return;
    }

    let piece = "窓を開ける。\\n".repeat(2000);
    let skim = |pieces: usize| {
        let mut skimmer = RequestScanner::new(Dialect::Messages, b"");
        skimmer.push(b"{\"model\":\"m\",\"messages\":[").unwrap();
        for (key, tail) in [("user", ","), ("assistant", "")] {
            skimmer
                .push(format!("{{\"role\":\"{key}\",\"content\":[{{\"type\":\"text\",\"text\":\"").as_bytes())
                .unwrap();
            (0..pieces).for_each(|_| skimmer.push(piece.as_bytes()).unwrap());
            skimmer.push(format!("\"}}]}}{tail}").as_bytes()).unwrap();
        }
        skimmer.push(b"]}").unwrap();
        skimmer.end().unwrap()
    };
    skim(1);
    let before = peak();
    let large = skim(900);
    assert!(large.len > 64 << 20, "{}", large.len);
    let grown = peak() - before;
    assert!(grown < 1 << 10, "skimmed {} bytes, held {grown} KB more than for a few", large.len);
    assert_eq!(large.elements.len(), 2);
}
