//! A way to a server that loses answers, or lets something else happen before they arrive.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// What is to happen to an answer.
struct Plan {
    /// How many answers come before it.
    after: u32,
    is_lost: bool,
    meanwhile: Box<dyn FnOnce() + Send>,
}

/// Passes everything on, until it is told to lose an answer: then what was asked is passed on, and the connection is cut
/// when the answer comes.
pub(crate) struct Proxy {
    pub(crate) url: String,
    plan: Arc<Mutex<Option<Plan>>>,
    cuts: Arc<AtomicU32>,
}

impl Proxy {
    /// In front of the server at `redis://host:port`.
    pub(crate) fn to(url: &str) -> Self {
        let server = url.trim_start_matches("redis://").to_owned();
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", door.local_addr().unwrap());
        let (plan, cuts) = (Arc::default(), Arc::default());
        let proxy = Self { url, plan: Arc::clone(&plan), cuts: Arc::clone(&cuts) };
        std::thread::spawn(move || {
            for client in door.incoming().map_while(Result::ok) {
                let Ok(there) = TcpStream::connect(&server) else { continue };
                let (asks, answers) = (client.try_clone().unwrap(), there.try_clone().unwrap());
                let (plan, cuts) = (Arc::clone(&plan), Arc::clone(&cuts));
                std::thread::spawn(move || pass(asks, there, || false));
                std::thread::spawn(move || {
                    pass(answers, client, || {
                        let is_lost = due(&plan).is_some_and(|plan| {
                            (plan.meanwhile)();
                            plan.is_lost
                        });
                        cuts.fetch_add(u32::from(is_lost), Ordering::SeqCst);
                        is_lost
                    });
                });
            }
        });
        proxy
    }

    fn plan(&self, after: u32, is_lost: bool, meanwhile: impl FnOnce() + Send + 'static) {
        *self.plan.lock().unwrap() = Some(Plan { after, is_lost, meanwhile: Box::new(meanwhile) });
    }

    /// The next answer does not arrive.
    pub(crate) fn lose_the_next_answer(&self) {
        self.plan(0, true, || {});
    }

    /// The answer after `after` others does not arrive, and before that is noticed something else happens.
    pub(crate) fn lose_an_answer(&self, after: u32, meanwhile: impl FnOnce() + Send + 'static) {
        self.plan(after, true, meanwhile);
    }

    /// Something else happens before the answer after `after` others arrives.
    pub(crate) fn delay_an_answer(&self, after: u32, meanwhile: impl FnOnce() + Send + 'static) {
        self.plan(after, false, meanwhile);
    }

    /// True when what was planned has happened.
    pub(crate) fn is_done(&self) -> bool {
        self.plan.lock().unwrap().is_none()
    }

    /// How many answers were lost.
    pub(crate) fn lost(&self) -> u32 {
        self.cuts.load(Ordering::SeqCst)
    }
}

/// What is to happen to this answer, if anything.
fn due(plan: &Mutex<Option<Plan>>) -> Option<Plan> {
    let mut plan = plan.lock().unwrap();
    let after = &mut plan.as_mut()?.after;
    match after.checked_sub(1) {
        Some(less) => {
            *after = less;
            None
        }
        None => plan.take(),
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut is_lost: impl FnMut() -> bool) {
    let mut buffer = [0; 1 << 16];
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        if is_lost() || to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
