//! Earlier calls like one that was left out: their line is where the missing call should have been made.

use lockstep_calltree::{Forest, Item, Label, NodeId};

/// Children that are looked at, at most.
const MOST: usize = 1 << 20;

/// Calls that are found, at most.
const MOST_FOUND: usize = 64;

/// So many of calls that are alike and stand in a row: each may be for another neighbour.
const MOST_IN_A_ROW: u64 = 8;

/// The events of the calls in a tree that were made along this path of functions, outermost first, by name, in order: the
/// first frames of the path are any calls of these functions, in which the next is called. Of a loop, those of its first round.
///
/// Complexity: O(distinct children along the path), at most [`MOST`]; gives [`MOST_FOUND`] at most.
pub(crate) fn precedents(forest: &Forest, root: NodeId, path: &[&str]) -> Vec<u64> {
    let mut search = Search {
        forest,
        left: MOST,
        found: Vec::new(),
    };
    search.below(root, path, 0);
    search.found
}

struct Search<'a> {
    forest: &'a Forest,
    left: usize,
    found: Vec<u64>,
}

impl Search<'_> {
    /// `before` is the number of events before the node's children.
    fn below(&mut self, id: NodeId, path: &[&str], before: u64) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let node = self.forest.node(id);
        let begins = std::iter::once(0).chain(node.ends.iter().copied());
        for (Item { node: child, times }, begin) in node.items.iter().zip(begins) {
            if self.left == 0 || self.found.len() == MOST_FOUND {
                return;
            }
            self.left -= 1;
            let at = before + begin;
            match self.forest.node(*child).label {
                // Of many times the first one is as good as any.
                Label::Loop(_) | Label::Iteration => self.below(*child, path, at),
                Label::Call(call) if self.forest.function(call.function).name == *first => {
                    match rest.is_empty() {
                        true => {
                            let each = self.forest.node(*child).events;
                            let in_a_row =
                                (0..(*times).min(MOST_IN_A_ROW)).map(|it| at + it * each);
                            let room = MOST_FOUND - self.found.len();
                            self.found.extend(in_a_row.take(room));
                        }
                        false => self.below(*child, rest, at + 1),
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree_tests::tree;

    #[test]
    fn calls_along_a_path() {
        let mut forest = Forest::new();
        let step = "give( ) take( MPI_Recv ) give( MPI_Send ) ";
        let text = format!(
            "main( init {} give( MPI_Send ) take( MPI_Recv(",
            step.repeat(9)
        );
        let root = tree(&mut forest, &text);
        let events = |path: &[&str]| precedents(&forest, root, path);
        // main, init and its return, give and its return, ...
        assert_eq!(events(&["main", "init"]), [1]);
        assert_eq!(events(&["main", "take", "MPI_Recv"]), [6, 98]);
        assert_eq!(events(&["main", "give", "MPI_Send"]), [10, 94]);
        assert!(events(&["main", "MPI_Send"]).is_empty());
        assert!(events(&[]).is_empty());
    }

    #[test]
    fn calls_in_a_row_are_found_one_by_one() {
        let mut forest = Forest::new();
        let text = "main( both( MPI_Isend MPI_Isend MPI_Waitall ) both( MPI_Isend MPI_Waitall(";
        let root = tree(&mut forest, text);
        let found = precedents(&forest, root, &["main", "both", "MPI_Isend"]);
        assert_eq!(found, [2, 4, 10]);
    }
}
