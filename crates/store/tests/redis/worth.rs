//! Large things, and what the server promises.

use super::servers::{Kind, Server};
use super::{how, make, open, place, rows, writer};
use komado_store::{Blobs, StoreFigures};
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes without an end that are never held as a whole.
struct Stream(u64);

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        for byte in into.iter_mut() {
            *byte = (self.0.wrapping_mul(2_654_435_761) >> 13) as u8;
            self.0 += 1;
        }
        Ok(into.len())
    }
}

#[test]
fn an_output_of_twenty_megabytes_streams_in_and_out_and_is_kept_once() {
    let store = open(&place(), &how("large"));
    let id = make(&store, "s");
    const SIZE: u64 = 20_000_000;
    let blob = store.put_blob(&id, &mut Stream(0).take(SIZE)).unwrap();
    assert_eq!(blob.byte_size, SIZE);
    assert_eq!(store.put_blob(&id, &mut Stream(0).take(SIZE)).unwrap(), blob);
    let mut out = store.blob(&id, &blob.id).unwrap();
    let (mut there, mut here) = (blake3::Hasher::new(), blake3::Hasher::new());
    io::copy(&mut out, &mut there).unwrap();
    io::copy(&mut Stream(0).take(SIZE), &mut here).unwrap();
    assert_eq!(there.finalize(), here.finalize());
    out.seek(SeekFrom::End(-3)).unwrap();
    let mut end = Vec::new();
    out.read_to_end(&mut end).unwrap();
    let mut expected = Vec::new();
    Stream(SIZE - 3).take(3).read_to_end(&mut expected).unwrap();
    assert_eq!(end, expected);
}

#[test]
fn a_server_says_what_it_keeps_and_warns_of_what_it_throws_away() {
    let kept = open(&place(), &how("asking")).vitals().unwrap();
    assert!(!kept.may_lose && kept.durability.contains("process and machine"), "{kept:?}");
    assert!(kept.memory_bytes > Some(0) && kept.keys.is_some() && kept.disk_bytes.is_some());
    let loose = Server::start(Kind::Redis, &["--appendonly", "no", "--maxmemory-policy", "allkeys-lru"]);
    let loose = open(&loose.url, &how("asking")).vitals().unwrap();
    assert!(loose.may_lose && loose.durability.contains("set noeviction"), "{loose:?}");
}

#[test]
fn an_entry_waits_for_the_replicas_that_were_asked_for() {
    let (main, copy) = (Server::start(Kind::Redis, &[]), Server::start(Kind::Redis, &[]));
    let port = |server: &Server| server.url.rsplit(':').next().unwrap().to_owned();
    let store = open(&format!("{}?wait=1", main.url), &how("careful"));
    let mut line = redis::Client::open(copy.url.as_str()).unwrap().get_connection().unwrap();
    let _: () = redis::cmd("REPLICAOF").arg("127.0.0.1").arg(port(&main)).query(&mut line).unwrap();
    let id = make(&store, "s");
    writer(&store, &id).append(0, &rows(&["写し"])).unwrap();
    let kept: Option<String> =
        redis::cmd("HGET").arg("{komado:s}").arg("last:root").query(&mut line).unwrap();
    assert_eq!(kept.as_deref(), Some("1"), "it is there when the append returns");
}
