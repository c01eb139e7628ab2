//! Blobs: bytes under the name of what they are.

use super::make;
use komado_core::SessionId;
use komado_store::{BlobRef, BlobSweep, Error, Store};
use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Mutex;

fn put(store: &dyn Store, id: &SessionId, bytes: &[u8]) -> BlobRef {
    store.put_blob(id, &mut &*bytes).unwrap()
}

fn get(store: &dyn Store, id: &SessionId, blob: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.blob(id, blob).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

pub(crate) fn a_blob_comes_back_as_it_was_put(store: &dyn Store) {
    let (id, other) = (make(store, "s"), make(store, "o"));
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let lines = |bytes: &[u8]| bytes.split_inclusive(|b| *b == b'\n').count() as u64;
    let mut names = HashMap::new();
    for bytes in [&b""[..], b"\n", b"one", b"one\n", b"one\ntwo", b"\0\xff\n\n", &large] {
        let blob = put(store, &id, bytes);
        assert_eq!((blob.byte_size, blob.line_count), (bytes.len() as u64, lines(bytes)));
        assert!(blob.id.len() == 32 && blob.id.bytes().all(|b| b.is_ascii_hexdigit()), "{}", blob.id);
        assert_eq!(put(store, &id, bytes), blob, "the same bytes have the same name");
        assert_eq!(get(store, &id, &blob.id), bytes);
        assert_eq!(names.insert(blob.id, bytes), None, "other bytes have another name");
    }
    for (name, bytes) in &names {
        assert_eq!(get(store, &id, name), *bytes);
        assert!(matches!(store.blob(&other, name), Err(Error::NoBlob(..))), "blobs belong to a session");
    }
    let mut blob = store.blob(&id, &put(store, &id, &large).id).unwrap();
    let mut piece = [0; 100];
    blob.seek(SeekFrom::Start(2_999_900)).unwrap();
    blob.read_exact(&mut piece).unwrap();
    assert_eq!(piece[..], large[2_999_900..]);
}

pub(crate) fn what_is_no_blob_is_not_found(store: &dyn Store) {
    let id = make(store, "s");
    let blob = put(store, &id, b"bytes").id;
    let long = "a".repeat(10_000);
    let upper = blob.to_uppercase();
    let near = format!("{blob}/");
    let up = format!("../outputs/{blob}");
    let unknown = "0".repeat(32);
    for name in
        [&unknown, "", ".", "..", "../x", "../metadata.json", "/etc/passwd", &long, &upper, &near, &up]
    {
        let error = store.blob(&id, name).err();
        assert!(matches!(&error, Some(Error::NoBlob(session, _)) if *session == id), "{name:?}: {error:?}");
        assert!(error.unwrap().to_string().len() < 400, "a message is not a place for a long name");
    }
}

pub(crate) fn a_sweep_takes_what_nobody_wants(store: &dyn Store) {
    let id = make(store, "s");
    assert_eq!(store.sweep(&id, &|_| false).unwrap(), BlobSweep::default());
    let (kept, loose, empty) = (put(store, &id, b"kept"), put(store, &id, b"loose"), put(store, &id, b""));
    let asked = Mutex::new(Vec::new());
    let nothing = store.sweep(&id, &|blob| {
        asked.lock().unwrap().push(blob.to_owned());
        true
    });
    assert_eq!(nothing.unwrap(), BlobSweep::default());
    let mut asked = asked.into_inner().unwrap();
    let mut all = [&kept, &loose, &empty].map(|blob| blob.id.clone());
    asked.sort();
    all.sort();
    assert_eq!(asked, all);
    let swept = store.sweep(&id, &|blob| blob == kept.id).unwrap();
    assert_eq!(swept, BlobSweep { blobs: 2, bytes: 5 });
    assert_eq!(get(store, &id, &kept.id), b"kept");
    assert!(matches!(store.blob(&id, &loose.id), Err(Error::NoBlob(..))));
    assert_eq!(put(store, &id, b"loose"), loose, "it can come again");
    assert_eq!(get(store, &id, &loose.id), b"loose");
}
