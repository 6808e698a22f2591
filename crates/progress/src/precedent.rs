//! Earlier calls like one that was left out: their line is where the missing call should have been made.

use lockstep_calltree::{Forest, Item, Label, NodeId};

/// Children that are looked at, at most.
const MOST: usize = 1 << 20;

/// Calls that are found, at most.
const MOST_FOUND: usize = 64;

/// So many of calls, or rounds of a loop, that are alike and stand in a row: each may be for another neighbour.
const MOST_IN_A_ROW: usize = 8;

/// The events of the last calls in a tree that were made along this path of functions, outermost first, by name, in order: the
/// first frames of the path are any calls of these functions, in which the next is called.
///
/// Complexity: O(distinct children along the path), at most [`MOST`]; gives [`MOST_FOUND`] at most.
pub(crate) fn precedents(forest: &Forest, root: NodeId, path: &[&str]) -> Vec<u64> {
    let mut search = Search {
        forest,
        left: MOST,
        found: Vec::new(),
    };
    search.below(root, path, 0);
    search.found.reverse();
    search.found
}

struct Search<'a> {
    forest: &'a Forest,
    left: usize,
    found: Vec<u64>,
}

impl Search<'_> {
    /// From the last to the first; `before` is the number of events before the node's children.
    fn below(&mut self, id: NodeId, path: &[&str], before: u64) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        let node = self.forest.node(id);
        for (index, Item { node: child, times }) in node.items.iter().enumerate().rev() {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let begin = index.checked_sub(1).map_or(0, |it| node.ends[it]);
            let child_node = self.forest.node(*child);
            let is_meant = match child_node.label {
                Label::Loop(_) | Label::Iteration => None,
                Label::Call(call) if self.forest.function(call.function).name == *first => {
                    Some(rest.is_empty())
                }
                _ => continue,
            };
            for nth in (0..*times).rev().take(MOST_IN_A_ROW) {
                if self.left == 0 || self.found.len() == MOST_FOUND {
                    return;
                }
                let at = before + begin + nth * child_node.events;
                match is_meant {
                    None => self.below(*child, path, at),
                    Some(true) => self.found.push(at),
                    Some(false) => self.below(*child, rest, at + 1),
                }
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
        let each = |first: u64| (1..9).map(|it| first + 10 * it).collect::<Vec<u64>>();
        let received = events(&["main", "take", "MPI_Recv"]);
        assert_eq!(received, [each(6), vec![98]].concat());
        let sent = events(&["main", "give", "MPI_Send"]);
        assert_eq!(sent, [each(10), vec![94]].concat());
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
