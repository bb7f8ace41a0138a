use super::*;
use std::cell::{Cell, RefCell};

/// A call of a bus, with the number of the locked memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    Lock(usize),
    Unlock(usize),
    Fill(usize),
    Empty(usize),
    Send(usize),
    Receive(usize),
    Wait(usize),
    SendPlain,
    ReceivePlain,
}

/// A copy that was begun: to the device or from it, the memory's number, the place on the device, bytes.
type Begun = (bool, usize, usize, usize);

/// A bus that does nothing before a wait for it.
#[derive(Default)]
struct Lazy {
    device: RefCell<Vec<u8>>,
    locked: RefCell<Vec<Vec<u8>>>,
    begun: RefCell<VecDeque<Begun>>,
    did: RefCell<Vec<Did>>,
    /// Pieces that can be locked.
    most: Cell<usize>,
    /// The copy, or the wait, that fails, counted from 1.
    failing: Cell<usize>,
}

impl Lazy {
    fn new(most: usize) -> Lazy {
        let lazy = Lazy::default();
        lazy.device.borrow_mut().resize(1 << 20, 0);
        lazy.most.set(most);
        lazy
    }

    fn did(&self, did: Did) {
        self.did.borrow_mut().push(did);
    }

    /// The calls since the last time.
    fn log(&self) -> Vec<Did> {
        std::mem::take(&mut self.did.borrow_mut())
    }

    fn may_fail(&self) -> Result<(), DeviceError> {
        let left = self.failing.get();
        self.failing.set(left.saturating_sub(1));
        match left {
            1 => Err(DeviceError::Failed {
                operation: "copying",
                message: "as the test wants it".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Does the oldest copy.
    fn advance(&self) -> Option<Begun> {
        let copy = self.begun.borrow_mut().pop_front()?;
        let (sends, number, place, bytes) = copy;
        let mut device = self.device.borrow_mut();
        let memory = &mut self.locked.borrow_mut()[number][..bytes];
        let there = &mut device[place..place + bytes];
        match sends {
            true => there.copy_from_slice(memory),
            false => memory.copy_from_slice(there),
        }
        Some(copy)
    }

    fn finish(&self) {
        while self.advance().is_some() {}
    }

    fn begin(&self, copy: Begun) {
        let used = self.begun.borrow().iter().any(|begun| begun.1 == copy.1);
        assert!(!used, "one copy at a time");
        assert!(copy.3 <= self.locked.borrow()[copy.1].len());
        self.begun.borrow_mut().push_back(copy);
    }

    fn must_be_free(&self, number: usize) {
        assert!(self.begun.borrow().iter().all(|copy| copy.1 != number));
    }
}

impl Bus for Lazy {
    type Memory = usize;

    fn lock(&self, bytes: usize) -> Option<usize> {
        let mut locked = self.locked.borrow_mut();
        if locked.len() >= self.most.get() {
            return None;
        }
        // The contents of new memory are arbitrary.
        locked.push(vec![0xee; bytes]);
        self.did(Did::Lock(bytes));
        Some(locked.len() - 1)
    }

    fn unlock(&self, memory: usize) {
        self.must_be_free(memory);
        self.did(Did::Unlock(memory));
    }

    fn fill(&self, memory: &mut usize, from: &[u8]) {
        self.must_be_free(*memory);
        self.locked.borrow_mut()[*memory][..from.len()].copy_from_slice(from);
        self.did(Did::Fill(*memory));
    }

    fn empty(&self, memory: &usize, to: &mut [u8]) {
        self.must_be_free(*memory);
        to.copy_from_slice(&self.locked.borrow()[*memory][..to.len()]);
        self.did(Did::Empty(*memory));
    }

    fn send(&self, memory: &usize, bytes: usize, to: Address) -> Result<(), DeviceError> {
        self.may_fail()?;
        self.begin((true, *memory, to.0 as usize, bytes));
        self.did(Did::Send(*memory));
        Ok(())
    }

    fn receive(&self, from: Address, memory: &usize, bytes: usize) -> Result<(), DeviceError> {
        self.may_fail()?;
        self.begin((false, *memory, from.0 as usize, bytes));
        self.did(Did::Receive(*memory));
        Ok(())
    }

    fn wait(&self, memory: &usize) -> Result<(), DeviceError> {
        self.may_fail()?;
        while self.begun.borrow().iter().any(|copy| copy.1 == *memory) {
            self.advance();
        }
        self.did(Did::Wait(*memory));
        Ok(())
    }

    fn send_plain(&self, bytes: &[u8], to: Address) -> Result<(), DeviceError> {
        self.finish();
        let to = to.0 as usize;
        self.device.borrow_mut()[to..to + bytes.len()].copy_from_slice(bytes);
        self.did(Did::SendPlain);
        Ok(())
    }

    fn receive_plain(&self, from: Address, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.finish();
        let from = from.0 as usize;
        bytes.copy_from_slice(&self.device.borrow()[from..from + bytes.len()]);
        self.did(Did::ReceivePlain);
        Ok(())
    }
}

const PLACE: Address = Address(64);

/// A size of pieces in which nothing comes out even.
const ODD: usize = 1000;

fn pattern(bytes: usize, seed: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + i / 251 + seed) as u8).collect()
}

fn sizes() -> impl Iterator<Item = usize> {
    [0, 1, 999, 1000, 1001, 2000, 2001, 3000, 9999].into_iter()
}

fn download(
    staging: &mut Staging<usize>,
    bus: &Lazy,
    bytes: usize,
) -> Result<Vec<u8>, DeviceError> {
    let mut out = vec![0x11; bytes];
    let begun = staging.begin(bus, PLACE, bytes)?;
    staging.end(bus, begun, &mut out)?;
    Ok(out)
}

#[test]
fn all_bytes_arrive() {
    for most in 0..=3 {
        let bus = Lazy::new(most);
        let mut staging = Staging::in_pieces(ODD);
        for (seed, bytes) in sizes().chain(sizes()).enumerate() {
            let sent = pattern(bytes, seed);
            let mut source = sent.clone();
            staging.upload(&bus, &source, PLACE).unwrap();
            // The sender may use the memory again.
            source.fill(0xaa);
            bus.finish();
            assert_eq!(bus.device.borrow()[64..64 + bytes], sent, "{most} {bytes}");
            assert_eq!(download(&mut staging, &bus, bytes), Ok(sent));
        }
    }
}

#[test]
fn stages_take_periods() {
    use Did::*;
    let bus = Lazy::new(2);
    let mut staging = Staging::in_pieces(ODD);
    staging.upload(&bus, &pattern(3500, 0), PLACE).unwrap();
    let expected = [
        Lock(1000),
        Fill(0),
        Send(0),
        Lock(1000),
        Fill(1),
        Send(1),
        Wait(0),
        Fill(0),
        Send(0),
        Wait(1),
        Fill(1),
        Send(1),
    ];
    assert_eq!(bus.log(), expected);
    // It begins when the stages are free, and goes on without the host up to there.
    let begun = staging.begin(&bus, PLACE, 3500).unwrap();
    assert_eq!(bus.log(), [Wait(0), Receive(0), Wait(1), Receive(1)]);
    let mut out = vec![0; 3500];
    staging.end(&bus, begun, &mut out).unwrap();
    assert_eq!(out, pattern(3500, 0));
    let expected = [
        Wait(0),
        Empty(0),
        Receive(0),
        Wait(1),
        Empty(1),
        Receive(1),
        Wait(0),
        Empty(0),
        Wait(1),
        Empty(1),
    ];
    assert_eq!(bus.log(), expected);
    // Nothing needs nothing.
    assert_eq!(download(&mut staging, &bus, 0), Ok(Vec::new()));
    staging.upload(&bus, &[], PLACE).unwrap();
    assert_eq!(bus.log(), []);
}

#[test]
fn no_more_is_locked_than_is_needed() {
    use Did::*;
    let bus = Lazy::new(usize::MAX);
    let mut staging = Staging::in_pieces(4 * SMALL);
    download(&mut staging, &bus, 3).unwrap();
    assert_eq!(bus.log(), [Lock(SMALL), Receive(0), Wait(0), Empty(0)]);
    download(&mut staging, &bus, SMALL + 1).unwrap();
    let expected = [Unlock(0), Lock(2 * SMALL), Receive(1), Wait(1), Empty(1)];
    assert_eq!(bus.log(), expected);
    download(&mut staging, &bus, 2 * SMALL).unwrap();
    assert_eq!(bus.log(), [Receive(1), Wait(1), Empty(1)]);
    assert_eq!(staging.into_memory().collect::<Vec<_>>(), [1]);
}

#[test]
fn copies_are_plain_where_nothing_is_locked() {
    use Did::*;
    let bus = Lazy::new(0);
    let mut staging = Staging::in_pieces(ODD);
    staging.upload(&bus, &pattern(1500, 3), PLACE).unwrap();
    assert_eq!(bus.log(), [SendPlain, SendPlain]);
    assert_eq!(download(&mut staging, &bus, 1500), Ok(pattern(1500, 3)));
    assert_eq!(bus.log(), [ReceivePlain]);
    // One piece serves all copies.
    let bus = Lazy::new(1);
    let mut staging = Staging::in_pieces(ODD);
    bus.device.borrow_mut()[64..64 + 1500].copy_from_slice(&pattern(1500, 4));
    assert_eq!(download(&mut staging, &bus, 1500), Ok(pattern(1500, 4)));
    let [first, second] = [[Receive(0), Wait(0), Empty(0)]; 2];
    assert_eq!(bus.log(), [&[Lock(1000)], &first[..], &second].concat());
}

#[test]
fn what_fails_is_said_and_leaves_the_stages_usable() {
    let sent = pattern(3500, 1);
    for failing in 1.. {
        let bus = Lazy::new(2);
        let mut staging = Staging::in_pieces(ODD);
        bus.failing.set(failing);
        let uploaded = staging.upload(&bus, &sent, PLACE);
        let downloaded = download(&mut staging, &bus, 3500);
        let failed = uploaded.is_err() || downloaded.is_err();
        // A copy that was begun is waited for before its memory is used again; the bus sees to that.
        bus.failing.set(0);
        let again = pattern(3500, 2);
        assert_eq!(staging.upload(&bus, &again, PLACE), Ok(()));
        assert_eq!(download(&mut staging, &bus, 3500), Ok(again));
        if !failed {
            assert!(failing > 12, "{failing}");
            return;
        }
    }
}

#[test]
fn what_is_read_has_the_size_that_was_asked_for() {
    let bus = Lazy::new(2);
    let mut staging = Staging::in_pieces(ODD);
    let begun = staging.begin(&bus, PLACE, 1500).unwrap();
    assert!(staging.end(&bus, begun, &mut [0; 1501]).is_err());
    assert_eq!(download(&mut staging, &bus, 1500), Ok(vec![0; 1500]));
}

#[test]
fn threads_copy_all_there_is() {
    for bytes in [
        0,
        1,
        WORTH_A_THREAD,
        WORTH_A_THREAD + 1,
        5 * WORTH_A_THREAD + 3,
        3 * THREADS * WORTH_A_THREAD - 1,
    ] {
        let from = pattern(bytes, 5);
        let mut to = vec![0; bytes];
        copy_widely(&from, &mut to);
        assert!(from == to, "{bytes}");
    }
}
