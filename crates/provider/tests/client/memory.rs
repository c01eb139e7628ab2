//! A request is never in memory. The test has a process of its own: the peak it
//! looks at is that of the whole process.

#[cfg(target_os = "linux")]
#[test]
fn a_large_request_is_sent_in_little_memory() {
    use crate::client::server::{Script, Server, whole};
    use crate::own_process::{is_inside, peak};
    use komado_provider::{Cancel, Client, ClientBody, ClientTimeouts};

    if !is_inside("client::memory::a_large_request_is_sent_in_little_memory", &[]) {
        return;
    }

    const SMALL: u64 = 1 << 20;
    const LARGE: u64 = 256 << 20;
    let take = |len: u64| -> Script {
        Box::new(move |peer| {
            assert_eq!(peer.head().get("content-length"), Some(len.to_string().as_str()));
            peer.skip(len);
            peer.say(&whole("200 OK", "", ""));
        })
    };
    let server = Server::play(vec![take(SMALL), take(LARGE)]);
    let (to, client) = (server.provider(), Client::new(ClientTimeouts::default()).unwrap());
    let send = |len: u64| {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(len).unwrap();
        let body = ClientBody::File { path: file.path(), len };
        assert_eq!(client.post(&to, body, &Cancel::default(), &mut |_| {}).unwrap().status, 200);
    };
    send(SMALL);
    let before = peak();
    send(LARGE);
    let grown = peak() - before;
    assert!(grown < 8 << 10, "sent 256 MB, held {grown} KB more than for 1 MB");
    server.done();
}
