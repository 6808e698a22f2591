//! Loop bodies, stored once and addressed by what they contain.

use crate::hash::Hasher128;
use rustc_hash::FxHashMap;

/// A loop body, as an index into its [`Bodies`] table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BodyId(pub u32);

/// What an element is, as far as equality goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Key {
    /// A token of the input.
    Symbol(u32),
    /// A loop, whatever its count ([`crate::Mode::Shape`]).
    Loop(BodyId),
    /// A loop with this count ([`crate::Mode::Exact`]).
    Times(BodyId, u64),
}

/// A number that is equal for equal keys, and seldom for others but for loops of one body.
#[inline]
pub(crate) fn code(key: Key) -> u32 {
    match key {
        Key::Symbol(symbol) => symbol,
        Key::Loop(body) | Key::Times(body, _) => !body.0,
    }
}

/// A table of loop bodies, each once, shared by any number of sequences.
///
/// Tokens must mean the same in all sequences that share a table. The [hash](Self::hash) of a body
/// depends on its contents alone, so it can be compared across tables.
#[derive(Debug, Clone, Default)]
pub struct Bodies {
    keys: Vec<Key>,
    /// Of the keys.
    codes: Vec<u32>,
    bodies: Vec<Body>,
    by_hash: FxHashMap<u128, BodyId>,
    /// Some bodies, each at the place that a cheap hash of it says; as many as there are bodies, a power of two.
    known: Vec<Option<BodyId>>,
}

#[derive(Debug, Clone, Copy)]
struct Body {
    start: usize,
    end: usize,
    hash: u128,
    loops: usize,
}

impl Bodies {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of bodies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// The elements of a body.
    ///
    /// # Panics
    /// If `id` is of another table.
    #[must_use]
    pub fn keys(&self, id: BodyId) -> &[Key] {
        let body = &self.bodies[id.0 as usize];
        &self.keys[body.start..body.end]
    }

    /// The codes of its elements.
    #[inline]
    pub(crate) fn codes(&self, id: BodyId) -> &[u32] {
        let body = &self.bodies[id.0 as usize];
        &self.codes[body.start..body.end]
    }

    /// How many of its elements are loops.
    #[inline]
    pub(crate) fn loops(&self, id: BodyId) -> usize {
        self.bodies[id.0 as usize].loops
    }

    /// The content address of a body: equal bodies have equal hashes in every table.
    ///
    /// # Panics
    /// If `id` is of another table.
    #[must_use]
    pub fn hash(&self, id: BodyId) -> u128 {
        self.bodies[id.0 as usize].hash
    }

    /// The family of a body: a hash that is equal for two bodies if one is a rotation of the other
    /// (`send recv` and `recv send`).
    #[must_use]
    pub fn family(&self, id: BodyId) -> u128 {
        let hashes: Vec<u128> = self
            .keys(id)
            .iter()
            .map(|key| self.key_hash(*key))
            .collect();
        let start = least_rotation(&hashes);
        let mut hasher = Hasher128::new();
        for index in 0..hashes.len() {
            hasher.hash(hashes[(start + index) % hashes.len()]);
        }
        hasher.finish()
    }

    /// The body with these elements; added if new.
    pub fn intern(&mut self, keys: &[Key]) -> BodyId {
        let place = place(keys);
        if let Some(mask) = self.known.len().checked_sub(1)
            && let Some(id) = self.known[place & mask]
            && self.keys(id) == keys
        {
            return id;
        }
        let id = self.look_up(keys);
        if self.known.len() < self.bodies.len() {
            self.known = vec![None; self.bodies.len().next_power_of_two().max(64)];
        }
        let mask = self.known.len() - 1;
        self.known[place & mask] = Some(id);
        id
    }

    fn look_up(&mut self, keys: &[Key]) -> BodyId {
        let mut hasher = Hasher128::new();
        for key in keys {
            hasher.hash(self.key_hash(*key));
        }
        loop {
            let hash = hasher.finish();
            match self.by_hash.get(&hash) {
                Some(id) if self.keys(*id) == keys => return *id,
                // Another body with the same 128 bits: the next address is as good.
                Some(_) => hasher.number(0),
                None => {
                    let start = self.keys.len();
                    self.keys.extend_from_slice(keys);
                    self.codes.extend(keys.iter().map(|key| code(*key)));
                    let id = BodyId(self.bodies.len() as u32);
                    self.bodies.push(Body {
                        start,
                        end: self.keys.len(),
                        hash,
                        loops: keys
                            .iter()
                            .filter(|it| !matches!(it, Key::Symbol(_)))
                            .count(),
                    });
                    self.by_hash.insert(hash, id);
                    return id;
                }
            }
        }
    }

    fn key_hash(&self, key: Key) -> u128 {
        match key {
            Key::Symbol(symbol) => u128::from(symbol),
            Key::Loop(body) => self.hash(body),
            Key::Times(body, count) => {
                let mut hasher = Hasher128::new();
                hasher.hash(self.hash(body));
                hasher.number(count);
                hasher.finish()
            }
        }
    }
}

/// A hash of few instructions; its lower bits are the good ones.
fn place(keys: &[Key]) -> usize {
    let mix = |hash: u64, key: &Key| {
        (hash ^ u64::from(code(*key)))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    keys.iter().fold(0, mix) as usize
}

/// Where the least rotation of `items` begins: Booth's algorithm in its two-candidate form, linear.
fn least_rotation(items: &[u128]) -> usize {
    let length = items.len();
    let (mut best, mut other, mut common) = (0, 1, 0);
    while best < length && other < length && common < length {
        let a = items[(best + common) % length];
        let b = items[(other + common) % length];
        if a == b {
            common += 1;
            continue;
        }
        // Every start within the common part of the greater one is beaten as well.
        if a > b {
            best += common + 1;
        } else {
            other += common + 1;
        }
        if best == other {
            other += 1;
        }
        common = 0;
    }
    best.min(other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_bodies_are_stored_once_and_hash_alike_in_other_tables() {
        let ab = [Key::Symbol(7), Key::Symbol(9)];
        let mut one = Bodies::new();
        let mut two = Bodies::new();
        two.intern(&[Key::Symbol(1)]);
        let (a, b) = (one.intern(&ab), two.intern(&ab));
        assert_eq!(one.intern(&ab), a);
        assert_ne!(a, b);
        assert_eq!(one.hash(a), two.hash(b));
        let nested = (
            one.intern(&[Key::Loop(a), Key::Symbol(3)]),
            two.intern(&[Key::Loop(b), Key::Symbol(3)]),
        );
        assert_eq!(one.hash(nested.0), two.hash(nested.1));
        assert_eq!(one.keys(nested.0), [Key::Loop(a), Key::Symbol(3)]);
    }

    #[test]
    fn a_count_is_part_of_an_exact_body_only() {
        let mut bodies = Bodies::new();
        let a = bodies.intern(&[Key::Symbol(1)]);
        let ids = [
            bodies.intern(&[Key::Loop(a)]),
            bodies.intern(&[Key::Times(a, 2)]),
            bodies.intern(&[Key::Times(a, 3)]),
        ];
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
    }

    #[test]
    fn rotations_are_a_family() {
        let mut bodies = Bodies::new();
        let mut of = |text: &str| {
            let keys: Vec<Key> = text.bytes().map(|byte| Key::Symbol(byte.into())).collect();
            let id = bodies.intern(&keys);
            bodies.family(id)
        };
        assert_eq!(of("ab"), of("ba"));
        assert_eq!(of("aabab"), of("babaa"));
        assert_ne!(of("aabb"), of("abab"));
    }

    proptest! {
        #[test]
        fn least_rotation_is_the_least(items in prop::collection::vec(0u128..3, 1..20)) {
            let rotated = |start: usize| [&items[start..], &items[..start]].concat();
            let start = least_rotation(&items);
            prop_assert!(start < items.len());
            prop_assert!((0..items.len()).all(|other| rotated(start) <= rotated(other)));
        }
    }
}
