//! A large file costs no memory: what this process holds at most hardly grows while it is read, searched and printed.

use super::Bench;
use serde_json::json;
use std::io::Write;

const LINES: u64 = 1_000_000;

/// The most that was ever resident, in kB.
fn most_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_hundred_megabytes_are_read_searched_and_printed_in_flat_memory() {
    let mut bench = Bench::with(|workshop| workshop.most_output = 200 << 20);
    let mut file = std::io::BufWriter::new(std::fs::File::create(bench.work().join("big")).unwrap());
    for number in 0..LINES {
        writeln!(file, "{number:08} {}", "窓".repeat(30)).unwrap();
    }
    file.into_inner().unwrap().sync_all().unwrap();
    let before = most_resident();
    let end = bench.well("read", &json!({ "path": "big", "offset": LINES, "limit": 10 }));
    assert!(end.starts_with("1000000\t00999999 窓") && end.contains("[end of big"), "{end}");
    let found = bench.well("grep", &json!({ "pattern": "00777777 " }));
    assert!(found.starts_with("big:777778:"), "{found}");
    let cancel = komado_provider::Cancel::default();
    let order = json!({ "command": "cat big" }).to_string();
    let answer = komado_agent::tools::ToolProvider::call(&mut bench.tools, "shell", &order, &cancel);
    let printed = std::io::copy(&mut answer.body.reader(), &mut std::io::sink()).unwrap();
    assert!(printed > 99_000_000, "{printed}");
    let grown = most_resident() - before;
    assert!(grown < 24 << 10, "{grown} kB");
}
