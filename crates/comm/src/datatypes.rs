//! What datatypes are made of: of those with elements of one kind, how many of which (MPI calls this the type signature).
//!
//! ```text
//! MPI_Type_vector(4, 2, 16, MPI_DOUBLE)   8 MPI_DOUBLE
//! ```
//! Where elements lie does not matter between a send and its receive, what they are does (MPI 4.1, 3.3.1).
//! *Guarantees*: what is not known, and structures of several kinds, have no elements here. *Costs*: O(arguments) of the calls that
//! make datatypes.

use crate::communicators::Resolved;
use lockstep_api::mpi::predefined::{Datatype, Sort};
use lockstep_api::mpi::{Constructor, Kind};
use lockstep_trace::{Argument, Handle, Value};
use rustc_hash::FxHashMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

/// What is repeated: an element of the standard, or several of unlike kinds in their order. It is no repetition itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Unit(Word);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Word {
    One(Arc<str>),
    /// Two at least.
    Many(Arc<[Arc<str>]>),
}

impl Unit {
    /// Its elements by the standard's names; never none.
    #[must_use]
    pub fn elements(&self) -> &[Arc<str>] {
        match &self.0 {
            Word::One(name) => std::slice::from_ref(name),
            Word::Many(names) => names,
        }
    }

    /// How long so many of it are, in bytes, where that is known.
    #[must_use]
    pub fn bytes_of(&self, count: i64) -> Option<u64> {
        let bytes = |name: &Arc<str>| Datatype::named(name)?.bytes();
        let each = self.elements().iter().map(bytes).sum::<Option<i64>>()?;
        u64::try_from(count.checked_mul(each)?).ok()
    }

    /// The name, where it is one element.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Word::One(name) => Some(name),
            Word::Many(_) => None,
        }
    }
}

impl From<&str> for Unit {
    /// One element.
    fn from(name: &str) -> Self {
        Self(Word::One(name.into()))
    }
}

impl Display for Unit {
    /// `MPI_INT`, `{2 MPI_INT, MPI_DOUBLE}`.
    fn fmt(&self, into: &mut Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.name() {
            return into.write_str(name);
        }
        let runs = self.elements().chunk_by(|a, b| a == b);
        let runs = runs.map(|run| match run {
            [name] => name.to_string(),
            many => format!("{} {}", many.len(), many[0]),
        });
        write!(into, "{{{}}}", runs.collect::<Vec<_>>().join(", "))
    }
}

/// So many copies of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elements {
    pub count: i64,
    pub unit: Unit,
}

/// Elements of a unit; of longer ones nothing is known.
const LONGEST: usize = 256;

impl Elements {
    fn of(name: &str, count: i64) -> Self {
        let unit = name.into();
        Self { count, unit }
    }

    /// One behind the other.
    fn chain(all: &[Self]) -> Option<Self> {
        let first = all.first()?;
        if all.iter().all(|it| it.unit == first.unit) {
            let count = all
                .iter()
                .try_fold(0i64, |sum, it| sum.checked_add(it.count))?;
            let unit = first.unit.clone();
            return Some(Self { count, unit });
        }
        let mut word: Vec<Arc<str>> = Vec::new();
        for it in all {
            let (count, names) = (usize::try_from(it.count).ok()?, it.unit.elements());
            if count > LONGEST || word.len() + count * names.len() > LONGEST {
                return None;
            }
            (0..count).for_each(|_| word.extend(names.iter().cloned()));
        }
        let length = word.len();
        let repeats = |period: &usize| {
            length.is_multiple_of(*period)
                && word
                    .iter()
                    .skip(*period)
                    .eq(word.iter().take(length - period))
        };
        let period = (1..=length).find(repeats)?;
        let count = (length / period) as i64;
        word.truncate(period);
        let unit = match &*word {
            [name] => Word::One(name.clone()),
            _ => Word::Many(word.into()),
        };
        Some(Self {
            count,
            unit: Unit(unit),
        })
    }

    fn times(self, times: i64) -> Option<Self> {
        let count = self.count.checked_mul(times)?;
        Some(Self { count, ..self })
    }
}

/// Whether one begins with the other, as far as is looked.
pub fn agree(sent: (&Unit, i64), room: (&Unit, i64)) -> bool {
    fn first((unit, count): (&Unit, i64)) -> impl Iterator<Item = &Arc<str>> {
        let names = unit.elements();
        let count = usize::try_from(count).unwrap_or(0).min(LONGEST);
        names.iter().cycle().take(names.len() * count)
    }
    let both = first(sent).zip(first(room));
    both.into_iter().all(|(sent, room)| sent == room)
}

/// Whether what is sent in two datatypes, so many of each, is not what the other says: bytes and packed data stand for anything, and
/// structures may be told in several ways.
pub fn are_unlike(sent: (&Unit, i64), room: (&Unit, i64)) -> bool {
    let is_anything = |it: &Unit| it.name().and_then(sort).is_some_and(Sort::is_anything);
    let is_mixed = sent.0.name().is_none() || room.0.name().is_none();
    let may_be_alike = is_mixed && agree(sent, room);
    let are_plain = !is_anything(sent.0) && !is_anything(room.0);
    sent.0 != room.0 && are_plain && !may_be_alike
}

/// The kind of a predefined datatype.
fn sort(name: &str) -> Option<Sort> {
    Datatype::named(name).map(|it| it.sort)
}

/// The datatypes of a thread.
#[derive(Debug, Clone, Default)]
pub struct Datatypes(FxHashMap<i64, Elements>);

/// What a call that makes a datatype is given, until it returns.
pub type Recipe = Option<Elements>;

impl Datatypes {
    /// What one of a datatype is.
    pub fn elements(&self, handle: &Handle) -> Option<Elements> {
        let Some(name) = handle.name.as_deref() else {
            return self.0.get(&handle.raw).cloned();
        };
        Some(match Datatype::named(name).and_then(Datatype::half) {
            Some(half) => Elements::of(half, 2),
            None => Elements::of(name, 1),
        })
    }

    /// What a call would make.
    pub fn recipe(&self, constructor: Constructor, event: &Resolved) -> Recipe {
        if constructor == Constructor::Struct {
            return self.structure(event);
        }
        let each = self.elements(event.handle("oldtype")?)?;
        let product = |list: &[i64]| list.iter().try_fold(1i64, |all, it| all.checked_mul(*it));
        let sum = |list: &[i64]| list.iter().try_fold(0i64, |all, it| all.checked_add(*it));
        let count = event.number("count");
        let times = match constructor {
            Constructor::Contiguous => count?,
            Constructor::Vector
            | Constructor::HVector
            | Constructor::IndexedBlock
            | Constructor::HIndexedBlock => count?.checked_mul(event.number("blocklength")?)?,
            Constructor::Indexed | Constructor::HIndexed => sum(whole(event, "blocklengths")?)?,
            Constructor::Subarray => product(whole(event, "subsizes")?)?,
            Constructor::Copy | Constructor::Resized => 1,
            Constructor::Struct | Constructor::Darray | Constructor::Other => return None,
        };
        each.times(times)
    }

    fn structure(&self, event: &Resolved) -> Recipe {
        let lengths = whole(event, "blocklengths")?;
        let (Value::Handles(_, types), _) = event.get("types")? else {
            return None;
        };
        // Bytes may stand for anything, and bounds for nothing.
        let is_odd = |it: &Handle| {
            let sort = sort(it.name.as_deref().unwrap_or_default());
            sort.is_some_and(|it| it.is_anything() || it == Sort::Bound)
        };
        if lengths.len() != types.len() || types.iter().any(is_odd) {
            return None;
        }
        let all = lengths.iter().zip(types);
        let all: Option<Vec<Elements>> = all
            .map(|(length, it)| self.elements(it)?.times(*length))
            .collect();
        Elements::chain(&all?)
    }

    /// It was made, or something under the same handle.
    pub fn made(&mut self, recipe: Recipe, event: &Resolved) {
        let given = |it: &&Argument| it.kind == Kind::NewDatatype;
        let arguments = event.annotated.arguments.as_deref().unwrap_or_default();
        if let Some(Value::Handle(handle)) = arguments.iter().find(given).map(|it| &it.value) {
            self.0.remove(&handle.raw);
            self.0.extend(recipe.map(|it| (handle.raw, it)));
        }
    }
}

/// All of an array of numbers.
pub fn whole<'a>(event: &'a Resolved, name: &str) -> Option<&'a [i64]> {
    match event.get(name)?.0 {
        Value::Numbers(count, numbers) if usize::try_from(*count) == Ok(numbers.len()) => {
            Some(numbers)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::resolved;

    fn chain(all: &[(&str, i64)]) -> Option<(i64, Unit)> {
        let all: Vec<Elements> = all.iter().map(|it| Elements::of(it.0, it.1)).collect();
        Elements::chain(&all).map(|it| (it.count, it.unit))
    }

    #[test]
    fn units_are_no_repetitions() {
        let told = |all: &[(&str, i64)]| chain(all).map(|(count, it)| (count, it.to_string()));
        let found = told(&[("MPI_INT", 2), ("MPI_INT", 3)]);
        assert_eq!(found, Some((5, "MPI_INT".to_owned())));
        let found = told(&[
            ("MPI_INT", 2),
            ("MPI_CHAR", 1),
            ("MPI_INT", 2),
            ("MPI_CHAR", 1),
        ]);
        assert_eq!(found, Some((2, "{2 MPI_INT, MPI_CHAR}".to_owned())));
        assert_eq!(chain(&[("MPI_INT", 200), ("MPI_CHAR", 100)]), None);
        assert_eq!(chain(&[("MPI_INT", i64::MAX), ("MPI_INT", 1)]), None);
    }

    #[test]
    fn more_than_can_be_counted_is_not_known() {
        let indexed = |lengths: &[i64]| {
            let argument = |name, kind, value| Argument { name, kind, value };
            let all = Value::Numbers(lengths.len() as i64, lengths.to_vec());
            let handle = Handle {
                raw: 1,
                name: Some("MPI_INT".to_owned()),
            };
            let call = resolved(vec![
                argument("blocklengths", Kind::Ints, all),
                argument("oldtype", Kind::Datatype, Value::Handle(handle)),
            ]);
            let made = Datatypes::default().recipe(Constructor::Indexed, &call);
            made.map(|it| (it.count, it.unit))
        };
        assert_eq!(indexed(&[2, 3]), Some((5, "MPI_INT".into())));
        assert_eq!(indexed(&[i64::MAX, 1]), None);
    }

    #[test]
    fn what_is_sent_may_end_before_the_room_does() {
        let unit = |all: &[(&str, i64)]| chain(all).unwrap_or_else(|| unreachable!()).1;
        let pair = &unit(&[("MPI_INT", 1), ("MPI_DOUBLE", 1)]);
        let swapped = &unit(&[("MPI_DOUBLE", 1), ("MPI_INT", 1)]);
        let longer = &unit(&[("MPI_INT", 1), ("MPI_DOUBLE", 2)]);
        let (int, char) = (&"MPI_INT".into(), &"MPI_CHAR".into());
        assert!(agree((pair, 2), (pair, 4)));
        assert!(agree((int, 1), (pair, 4)));
        assert!(!agree((int, 2), (pair, 4)));
        assert!(!agree((pair, 1), (swapped, 1)));
        assert!(agree((pair, 1), (longer, 1)));
        assert!(agree((pair, 0), (char, 1)));
        assert!(are_unlike((int, 1), (char, 4)));
        assert!(!are_unlike((int, 1), (int, 2)) && !are_unlike((int, 1), (pair, 4)));
        assert!(!are_unlike((&"MPI_BYTE".into(), 4), (int, 1)));
    }
}
