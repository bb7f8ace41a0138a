//! Fast checksums of 64 bits against accidents (not against attacks).
//!
//! XXH64: Y. Collet, "xxHash fast digest algorithm", specification version 0.2.0.
//! [`words`]: for bytes that come in any order.

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

/// The checksum of bytes that come in pieces; the seed is 0.
#[derive(Clone, Debug)]
pub struct Xxh64 {
    lanes: [u64; 4],
    /// Bytes that do not fill a stripe yet.
    rest: [u8; 32],
    held: usize,
    total: u64,
}

impl Default for Xxh64 {
    fn default() -> Self {
        Self {
            lanes: [P1.wrapping_add(P2), P2, 0, P1.wrapping_neg()],
            rest: [0; 32],
            held: 0,
            total: 0,
        }
    }
}

impl Xxh64 {
    /// The checksum of one piece.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut sum = Self::default();
        sum.update(bytes);
        sum.value()
    }

    /// Adds a piece.
    pub fn update(&mut self, mut bytes: &[u8]) {
        self.total = self.total.wrapping_add(bytes.len() as u64);
        if self.held > 0 {
            let n = bytes.len().min(32 - self.held);
            self.rest[self.held..self.held + n].copy_from_slice(&bytes[..n]);
            self.held += n;
            bytes = &bytes[n..];
            if self.held < 32 {
                return;
            }
            let stripe = self.rest;
            self.stripe(&stripe);
        }
        let (stripes, rest) = bytes.as_chunks::<32>();
        for stripe in stripes {
            self.stripe(stripe);
        }
        self.rest[..rest.len()].copy_from_slice(rest);
        self.held = rest.len();
    }

    /// The checksum of all pieces so far.
    pub fn value(&self) -> u64 {
        let [a, b, c, d] = self.lanes;
        let mut sum = if self.total < 32 {
            P5
        } else {
            let mut sum = a
                .rotate_left(1)
                .wrapping_add(b.rotate_left(7))
                .wrapping_add(c.rotate_left(12))
                .wrapping_add(d.rotate_left(18));
            for lane in self.lanes {
                sum = (sum ^ round(0, lane)).wrapping_mul(P1).wrapping_add(P4);
            }
            sum
        };
        sum = sum.wrapping_add(self.total);
        let (words, rest) = self.rest[..self.held].as_chunks::<8>();
        for word in words {
            sum ^= round(0, u64::from_le_bytes(*word));
            sum = sum.rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
        }
        let (halves, rest) = rest.as_chunks::<4>();
        for half in halves {
            sum ^= u64::from(u32::from_le_bytes(*half)).wrapping_mul(P1);
            sum = sum.rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        }
        for &byte in rest {
            sum ^= u64::from(byte).wrapping_mul(P5);
            sum = sum.rotate_left(11).wrapping_mul(P1);
        }
        sum = (sum ^ sum >> 33).wrapping_mul(P2);
        sum = (sum ^ sum >> 29).wrapping_mul(P3);
        sum ^ sum >> 32
    }

    fn stripe(&mut self, stripe: &[u8; 32]) {
        for (lane, word) in self.lanes.iter_mut().zip(stripe.as_chunks::<8>().0) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(P2))
        .rotate_left(31)
        .wrapping_mul(P1)
}

/// A checksum of bytes of which some are at a place of a file, in whole words: the sum, modulo 2^64, of each word times
/// an odd number that its place determines. Sums of parts add up to that of the whole, in any order. A part whose
/// length or place is no whole number of words has none.
pub fn words(at: u64, bytes: &[u8]) -> Option<u64> {
    let (words, rest) = bytes.as_chunks::<8>();
    if !at.is_multiple_of(8) || !rest.is_empty() {
        return None;
    }
    let sums = (at / 8..).zip(words);
    Some(sums.fold(0, |sum: u64, (place, word)| {
        let mut factor = (place ^ place >> 29).wrapping_add(1).wrapping_mul(P1);
        factor = (factor ^ factor >> 32).wrapping_mul(P2);
        sum.wrapping_add(u64::from_le_bytes(*word).wrapping_mul((factor ^ factor >> 29) | 1))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(Xxh64::of(b""), 0xEF46_DB37_51D8_E999);
        assert_eq!(Xxh64::of(b"a"), 0xD24E_C4F1_A98C_6E5B);
        assert_eq!(Xxh64::of(b"abc"), 0x44BC_2CF5_AD77_0999);
        let text = b"Nobody inspects the spammish repetition";
        assert_eq!(Xxh64::of(text), 0xFBCE_A83C_8A37_8BF1);
    }

    #[test]
    fn pieces_do_not_matter() {
        let bytes: Vec<u8> = (0..500u32).map(|i| (i * i) as u8).collect();
        for n in [0, 1, 31, 32, 33, 64, 499] {
            let mut sum = Xxh64::default();
            for piece in bytes.chunks(n.max(1)) {
                sum.update(piece);
            }
            assert_eq!(sum.value(), Xxh64::of(&bytes));
        }
    }
}
