//! An earlier call like one that was left out: its line is where the missing call should have been made.

use lockstep_calltree::{Forest, Item, Label, NodeId};

/// Children that are looked at, at most.
const MOST: usize = 1 << 20;

/// The event of the first call in a tree that was made along this path of functions, outermost first, by name: the first
/// frames of the path are any calls of these functions, in which the next is called.
///
/// Complexity: O(distinct children along the path), at most [`MOST`].
pub(crate) fn precedent(forest: &Forest, root: NodeId, path: &[&str]) -> Option<u64> {
    let mut left = MOST;
    let search = &mut Search {
        forest,
        left: &mut left,
    };
    search.below(root, path, 0)
}

struct Search<'a, 'b> {
    forest: &'a Forest,
    left: &'b mut usize,
}

impl Search<'_, '_> {
    /// `before` is the number of events before the node's children.
    fn below(&mut self, id: NodeId, path: &[&str], before: u64) -> Option<u64> {
        let (first, rest) = path.split_first()?;
        let node = self.forest.node(id);
        let begins = std::iter::once(0).chain(node.ends.iter().copied());
        for (Item { node: child, .. }, begin) in node.items.iter().zip(begins) {
            *self.left = self.left.checked_sub(1)?;
            let at = before + begin;
            let found = match self.forest.node(*child).label {
                // Of many times the first one is as good as any.
                Label::Loop(_) | Label::Iteration => self.below(*child, path, at),
                Label::Call(call) if self.forest.function(call.function).name == *first => {
                    match rest.is_empty() {
                        true => Some(at),
                        false => self.below(*child, rest, at + 1),
                    }
                }
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree_tests::tree;

    #[test]
    fn the_first_call_along_a_path() {
        let mut forest = Forest::new();
        let step = "give( ) take( MPI_Recv ) give( MPI_Send ) ";
        let text = format!("main( init {} take( MPI_Recv(", step.repeat(9));
        let root = tree(&mut forest, &text);
        let event = |path: &[&str]| precedent(&forest, root, path);
        // main, init and its return, give and its return, ...
        assert_eq!(event(&["main", "init"]), Some(1));
        assert_eq!(event(&["main", "take", "MPI_Recv"]), Some(6));
        assert_eq!(event(&["main", "give", "MPI_Send"]), Some(10));
        assert_eq!(event(&["main", "MPI_Send"]), None);
        assert_eq!(event(&[]), None);
    }
}
