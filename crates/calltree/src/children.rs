//! The children of an open call, and what calls with few of them became before.
//!
//! Most calls have few children, and are what another call with these children was. So the first ones are kept as they come; a
//! list that folds is made where there are more, or where it is not known yet what they become.

use crate::K;
use crate::forest::Forest;
use crate::node::{Call, Item, NodeId};
use crate::pieces::{Piece, Pieces};
use lockstep_loops::{Mode, Stack};

/// So many children are few.
const FEW: usize = 4;
/// Stands where a call has fewer.
const NONE: NodeId = NodeId(u32::MAX);

/// Child lists of calls that are gone: their memory serves those that come.
pub(crate) type Spare = Vec<Box<Stack<Piece>>>;

/// The children of a call that may get more.
#[derive(Debug, Clone)]
pub(crate) struct Children {
    few: [NodeId; FEW],
    count: usize,
    /// All of them, where there are more or somebody asked for it.
    folded: Option<Box<Stack<Piece>>>,
}

impl Children {
    pub const EMPTY: Self = Self {
        few: [NONE; FEW],
        count: 0,
        folded: None,
    };

    /// How many there are; in a list that folds, how many elements it has.
    pub fn len(&self) -> usize {
        let folded = self.folded.as_ref();
        folded.map_or(self.count, |it| it.items().len())
    }

    /// Adds one.
    #[inline]
    pub fn push(&mut self, node: NodeId, scratch: &mut Scratch<'_>) {
        if self.folded.is_none()
            && let Some(place) = self.few.get_mut(self.count)
        {
            *place = node;
            self.count += 1;
            return;
        }
        add(self.fold(scratch), node, scratch);
    }

    /// The list that folds.
    pub fn fold(&mut self, scratch: &mut Scratch<'_>) -> &mut Stack<Piece> {
        let few = self.few.get(..self.count).unwrap_or(&[]);
        let list = self.folded.get_or_insert_with(|| {
            let new = || Box::new(Stack::new(K, Mode::Shape));
            let mut list = scratch.spare.pop().unwrap_or_else(new);
            for node in few {
                add(&mut list, *node, scratch);
            }
            list
        });
        self.count = 0;
        list
    }

    /// The call is over.
    pub fn give_back(self, spare: &mut Spare) {
        if let Some(mut list) = self.folded {
            list.clear();
            spare.push(list);
        }
    }

    /// All of them, where they are few.
    fn few(&self) -> Option<&[NodeId; FEW]> {
        self.folded.is_none().then_some(&self.few)
    }
}

/// What it takes to fold.
pub(crate) struct Scratch<'a> {
    pub forest: &'a mut Forest,
    pub items: &'a mut Vec<Item>,
    pub spare: &'a mut Spare,
}

fn add(list: &mut Stack<Piece>, node: NodeId, scratch: &mut Scratch<'_>) {
    let Forest { nodes, bodies, .. } = &mut *scratch.forest;
    let shape = nodes.shape(node);
    let items = &mut *scratch.items;
    list.push(
        shape.0,
        Piece::Node(node),
        bodies,
        &mut Pieces { nodes, items },
    );
}

/// A call that returned, with few children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Small {
    call: Call,
    children: [NodeId; FEW],
}

impl Small {
    /// Of a call that has returned.
    #[inline]
    pub fn new(call: Call, children: &Children) -> Option<Self> {
        let children = *children.few()?;
        Some(Self { call, children })
    }

    fn place(&self) -> u64 {
        let [a, b, c, d] = self.children.map(|it| u64::from(it.0));
        let own = u64::from(self.call.function.0) << 1 | u64::from(self.call.tail);
        let mixed = (own ^ a << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = mixed.wrapping_add((b ^ c << 32).wrapping_mul(0xc2b2_ae3d_27d4_eb4f));
        mixed.wrapping_add(d.wrapping_mul(0x1656_67b1_9e37_79f9)) >> 32
    }
}

/// Which nodes some small calls are. Each has one place in a table that grows while it has to forget; what it forgets is looked
/// up in the forest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    slots: Vec<Option<(Small, NodeId)>>,
    /// Calls that were put where it is.
    puts: usize,
}

/// Slots at first, and at most; powers of two.
const FIRST: usize = 64;
const MOST: usize = 1 << 13;

impl Known {
    #[inline]
    pub fn get(&self, small: &Small) -> Option<NodeId> {
        let at = small.place() as usize & self.slots.len().checked_sub(1)?;
        let (known, node) = self.slots.get(at)?.as_ref()?;
        (known == small).then_some(*node)
    }

    pub fn put(&mut self, small: Small, node: NodeId) {
        let size = self.slots.len();
        if self.puts >= size && size < MOST {
            let larger = (4 * size).clamp(FIRST, MOST);
            let old = std::mem::replace(&mut self.slots, vec![None; larger]);
            self.puts = 0;
            old.into_iter()
                .flatten()
                .for_each(|it| self.put(it.0, it.1));
        }
        self.puts += 1;
        let at = small.place() as usize & (self.slots.len() - 1);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = Some((small, node));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::FunctionKey;

    #[test]
    fn what_is_known_is_right_or_forgotten() {
        let small = |number: u32| {
            let mut children = Children::EMPTY;
            let mut forest = Forest::new();
            let (mut items, mut spare) = (Vec::new(), Spare::new());
            let mut scratch = Scratch {
                forest: &mut forest,
                items: &mut items,
                spare: &mut spare,
            };
            for child in 0..number % (FEW as u32 + 1) {
                children.push(NodeId(child * number), &mut scratch);
            }
            let call = Call {
                function: FunctionKey(number),
                open: false,
                tail: false,
            };
            Small::new(call, &children).expect("few")
        };
        let mut known = Known::default();
        assert_eq!(known.get(&small(5)), None);
        let mut kept = 0;
        for number in 0..3 * MOST as u32 {
            known.put(small(number), NodeId(number));
            assert_eq!(known.get(&small(number)), Some(NodeId(number)));
            let other = known.get(&small(number / 2));
            kept += usize::from(other.is_some());
            assert!(other.is_none_or(|it| it == NodeId(number / 2)), "{number}");
        }
        assert!(kept > MOST, "{kept}");
        assert_eq!(known.slots.len(), MOST);
    }
}
