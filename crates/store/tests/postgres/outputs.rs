//! Outputs: large ones pass through without ever being held whole.

use super::{fresh, make, open, sql};
use komado_store::Blobs;
use std::io::{self, Read, Seek, SeekFrom};

/// Twenty megabytes and a bit that are nowhere.
const SIZE: u64 = (20 << 20) + 77;

/// Bytes made as they are read.
struct Made(u64);

fn byte(at: u64) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 7) as u8
}

impl Read for Made {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = into.len().min((SIZE - self.0) as usize);
        into[..n].iter_mut().zip(self.0..).for_each(|(to, at)| *to = byte(at));
        self.0 += n as u64;
        Ok(n)
    }
}

#[test]
fn a_large_output_is_kept_in_rows_of_a_bounded_size_and_read_from_anywhere() {
    let url = fresh();
    let store = open(&url);
    let id = make(&store, "s");
    let blob = store.put_blob(&id, &mut Made(0)).unwrap();
    assert_eq!(blob.byte_size, SIZE);
    assert_eq!(store.put_blob(&id, &mut Made(0)).unwrap(), blob, "the same bytes are kept once");
    let rows =
        sql(&url, "SELECT count(*), max(octet_length(bytes)), sum(octet_length(bytes)) FROM blob_chunks");
    assert_eq!(rows, [[Some("81".to_owned()), Some("262144".to_owned()), Some(SIZE.to_string())]]);
    let mut reader = store.blob(&id, &blob.id).unwrap();
    let (mut at, mut buffer) = (0, vec![0; 100_003]);
    loop {
        let n = reader.read(&mut buffer).unwrap();
        if n == 0 {
            break;
        }
        assert!(buffer[..n].iter().zip(at..).all(|(found, at)| *found == byte(at)), "after {at}");
        at += n as u64;
    }
    assert_eq!(at, SIZE);
    reader.seek(SeekFrom::End(-3)).unwrap();
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, [byte(SIZE - 3), byte(SIZE - 2), byte(SIZE - 1)]);
}
