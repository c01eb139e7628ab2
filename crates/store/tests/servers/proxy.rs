//! A way to a server that breaks: a request never arrives, an answer is lost, or something else happens before it comes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    There,
    Back,
}

/// How many of so many bytes are passed on; where that is fewer, the connection is cut after them.
pub(crate) type Rule = Arc<dyn Fn(Way, usize) -> usize + Send + Sync>;

/// Stands before the server at `url`, with a rule for each connection; gives where the server seems to be.
pub(crate) fn stand_before(url: &str, mut rule: impl FnMut() -> Rule + Send + 'static) -> String {
    let (before, rest) = url.split_once("127.0.0.1:").unwrap();
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let server = format!("127.0.0.1:{}", &rest[..digits]);
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let seen = format!("{before}{}{}", door.local_addr().unwrap(), &rest[digits..]);
    // It ends with the test: nobody is left who would connect.
    std::thread::spawn(move || {
        for client in door.incoming().flatten() {
            let rule = rule();
            let Ok(server) = TcpStream::connect(&server) else { continue };
            let (client, server) = (Arc::new(client), Arc::new(server));
            for (from, to, way) in [(&client, &server, Way::There), (&server, &client, Way::Back)] {
                let (from, to, rule) = (Arc::clone(from), Arc::clone(to), Arc::clone(&rule));
                std::thread::spawn(move || pass(&from, &to, &|bytes| rule(way, bytes)));
            }
        }
    });
    seen
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, rule: &dyn Fn(usize) -> usize) {
    let mut buffer = [0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let passed = rule(read);
        if to.write_all(&buffer[..passed]).is_err() || passed < read {
            break;
        }
    }
    for end in [from, to] {
        let _ = end.shutdown(Shutdown::Both);
    }
}

/// What is to happen once.
struct Plan {
    way: Way,
    /// How often something goes that way before.
    after: u32,
    is_lost: bool,
    meanwhile: Box<dyn FnOnce() + Send>,
}

/// Passes everything on, until it is told to lose something: then the connection is cut.
pub(crate) struct Proxy {
    /// Where the server seems to be.
    pub(crate) url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    plan: Mutex<Option<Plan>>,
    lost: AtomicU32,
}

impl Proxy {
    /// Before the server at `url`.
    pub(crate) fn before(url: &str) -> Self {
        let state = Arc::<State>::default();
        let shared = Arc::clone(&state);
        let rule: Rule = Arc::new(move |way, bytes| shared.passed(way, bytes));
        Self { url: stand_before(url, move || Arc::clone(&rule)), state }
    }

    fn plan(&self, way: Way, after: u32, is_lost: bool, meanwhile: impl FnOnce() + Send + 'static) {
        let plan = Plan { way, after, is_lost, meanwhile: Box::new(meanwhile) };
        *self.state.plan.lock().unwrap() = Some(plan);
    }

    /// The next request never reaches the server.
    pub(crate) fn lose_the_request(&self) {
        self.plan(Way::There, 0, true, || {});
    }

    /// The next answer never comes back.
    pub(crate) fn lose_the_answer(&self) {
        self.plan(Way::Back, 0, true, || {});
    }

    /// The answer after `after` others does not arrive, and before that is noticed something else happens.
    pub(crate) fn lose_an_answer(&self, after: u32, meanwhile: impl FnOnce() + Send + 'static) {
        self.plan(Way::Back, after, true, meanwhile);
    }

    /// Something else happens before the answer after `after` others arrives.
    pub(crate) fn delay_an_answer(&self, after: u32, meanwhile: impl FnOnce() + Send + 'static) {
        self.plan(Way::Back, after, false, meanwhile);
    }

    /// True when what was planned has happened.
    pub(crate) fn is_done(&self) -> bool {
        self.state.plan.lock().unwrap().is_none()
    }

    /// How much was lost.
    pub(crate) fn lost(&self) -> u32 {
        self.state.lost.load(SeqCst)
    }
}

impl State {
    fn passed(&self, way: Way, bytes: usize) -> usize {
        let Some(plan) = self.due(way) else { return bytes };
        (plan.meanwhile)();
        self.lost.fetch_add(u32::from(plan.is_lost), SeqCst);
        if plan.is_lost { 0 } else { bytes }
    }

    /// What is to happen to what goes this way now, if anything.
    fn due(&self, way: Way) -> Option<Plan> {
        let mut plan = self.plan.lock().unwrap();
        let next = plan.as_mut().filter(|plan| plan.way == way)?;
        match next.after.checked_sub(1) {
            Some(less) => {
                next.after = less;
                None
            }
            None => plan.take(),
        }
    }
}
