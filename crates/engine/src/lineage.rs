//! Which thread goes on from which.
//!
//! A fork shares its first entries with the thread it left, which may be a fork itself. Everything that asks whose an
//! entry is, or how far two threads are one, follows the headers here.

use komado_core::thread::{Header, Moment};
use komado_core::{Seq, ThreadId};

/// The thread and the threads before it, each with the last entry of it that can be seen from `moment`.
pub(crate) fn line(headers: &[Header], moment: Moment) -> Vec<Moment> {
    let mut line = vec![moment];
    // No line is longer than there are threads; a damaged header that leads in a circle ends here.
    while let Some(last) = line.last().filter(|_| line.len() <= headers.len()) {
        let header = headers.iter().find(|header| header.thread == last.thread);
        let Some(base) = header.and_then(|header| header.base.as_ref()) else { break };
        line.push(Moment { thread: base.thread.clone(), seq: base.seq.min(last.seq) });
    }
    line
}

/// The thread whose own journal holds what `thread` knows as entry `seq`.
pub(crate) fn owner(headers: &[Header], thread: &ThreadId, seq: Seq) -> ThreadId {
    let is_own = |moment: &&Moment| {
        let header = headers.iter().find(|header| header.thread == moment.thread);
        header.is_none_or(|header| header.base_seq() < seq || header.base.is_none())
    };
    let line = line(headers, Moment { thread: thread.clone(), seq });
    line.iter().find(is_own).map_or_else(|| thread.clone(), |moment| moment.thread.clone())
}

/// The last entry that two moments of one session share, number for number; 0 for none.
pub(crate) fn shared(headers: &[Header], a: Moment, b: Moment) -> Seq {
    let (a, b) = (line(headers, a), line(headers, b));
    let meet = a.iter().find_map(|x| b.iter().find(|y| y.thread == x.thread).map(|y| x.seq.min(y.seq)));
    meet.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use komado_core::SessionId;

    fn header(name: &str, base: Option<(&str, Seq)>) -> Header {
        let mut header = Header::root(SessionId::new("s").unwrap(), "");
        header.thread = ThreadId::new(name).unwrap();
        header.base = base.map(|(thread, seq)| moment(thread, seq));
        header
    }

    fn moment(thread: &str, seq: Seq) -> Moment {
        Moment { thread: ThreadId::new(thread).unwrap(), seq }
    }

    fn family() -> Vec<Header> {
        vec![
            header("root", None),
            header("c", Some(("b", 20))),
            header("b", Some(("root", 10))),
            header("d", Some(("c", 15))),
            header("e", Some(("root", 4))),
            header("alone", None),
        ]
    }

    #[test]
    fn an_entry_belongs_to_the_thread_that_wrote_it() {
        let owner = |thread: &str, seq| owner(&family(), &ThreadId::new(thread).unwrap(), seq).to_string();
        assert_eq!(owner("d", 30), "d");
        assert_eq!(owner("d", 15), "b");
        assert_eq!(owner("d", 10), "root");
        assert_eq!(owner("c", 20), "b");
        assert_eq!(owner("c", 21), "c");
        assert_eq!(owner("root", 1), "root");
    }

    #[test]
    fn two_threads_share_what_came_before_their_ways_parted() {
        let shared = |a: (&str, Seq), b: (&str, Seq)| {
            let (x, y) = (moment(a.0, a.1), moment(b.0, b.1));
            assert_eq!(shared(&family(), x.clone(), y.clone()), shared(&family(), y.clone(), x.clone()));
            shared(&family(), x, y)
        };
        assert_eq!(shared(("root", 40), ("b", 30)), 10);
        assert_eq!(shared(("c", 40), ("b", 30)), 20);
        assert_eq!(shared(("c", 40), ("b", 17)), 17);
        assert_eq!(shared(("d", 40), ("root", 40)), 10);
        assert_eq!(shared(("d", 40), ("c", 40)), 15);
        assert_eq!(shared(("d", 40), ("b", 40)), 15);
        assert_eq!(shared(("d", 40), ("e", 40)), 4);
        assert_eq!(shared(("b", 12), ("b", 30)), 12);
        assert_eq!(shared(("alone", 5), ("root", 5)), 0);
    }
}
