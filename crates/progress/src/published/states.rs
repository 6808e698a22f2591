//! The states of the published methods, read from call trees: before and after each MPI call, by call stack.
//!
//! Where a task calls much more of its own than of MPI, every so-many-th call of a function in which MPI is
//! never called is a state, too (the published markers in other functions, with a sampling rate).

use super::model::{StateId, Walked};
use crate::counted::{counts, is_mpi};
use crate::nesting::{ENTRY, Place as At};
use crate::place::Program;
use lockstep_calltree::{Forest, FunctionKey, Item, Label, NodeId};
use rustc_hash::FxHashMap;

/// A state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    /// Open calls, outermost first; the last is the MPI function, or the function with a marker.
    pub stack: Vec<String>,
    /// What of it.
    pub moment: Moment,
}

/// When, at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Moment {
    /// Before or in an MPI call.
    Before,
    /// After it, in the program's own code.
    After,
    /// At a marker.
    Marker,
}

/// A call stack: that of its caller, and a call there.
type Path = (u32, FunctionKey, At);

/// The states of all tasks, each once.
#[derive(Debug, Default)]
pub struct States {
    paths: FxHashMap<Path, u32>,
    path_list: Vec<Path>,
    ids: FxHashMap<(u32, Moment), StateId>,
    list: Vec<(u32, Moment)>,
    /// For each path of a marker, calls since the last.
    marked: FxHashMap<u32, u64>,
}

/// Of calls that are no MPI, one in so many is a state, where markers are wanted.
const SAMPLED: u64 = 1000;
/// Markers are wanted where a task makes more calls than this for each of MPI.
const RARE: u64 = 10_000;

/// Where a walk over a tree is.
struct Cursor<'f> {
    items: &'f [Item],
    index: usize,
    times: u64,
    is_frame: bool,
}

impl<'f> Cursor<'f> {
    fn new(items: &'f [Item], is_frame: bool) -> Self {
        Self {
            items,
            index: 0,
            times: 0,
            is_frame,
        }
    }
}

/// A call that is open in a walk.
struct Frame {
    function: Option<FunctionKey>,
    path: u32,
    at: At,
}

impl States {
    /// How often a task went from which state to which. O(its calls around MPI calls).
    pub(crate) fn walk(&mut self, forest: &Forest, program: &Program<'_>, root: NodeId) -> Walked {
        let mpi = mpi_calls(forest);
        let of = |id: NodeId| mpi.get(id.0 as usize).copied().unwrap_or(0);
        let wants_markers = forest.node(root).events / 2 / RARE > of(root);
        self.marked.clear();
        let mut walked = Walked::default();
        let mut frames = vec![Frame {
            function: None,
            path: 0,
            at: ENTRY,
        }];
        let mut cursors = vec![Cursor::new(forest.node(root).items, true)];
        while let (Some(cursor), Some(frame)) = (cursors.last_mut(), frames.last_mut()) {
            let Some(item) = cursor.items.get(cursor.index) else {
                if cursor.is_frame {
                    frames.pop();
                }
                cursors.pop();
                continue;
            };
            if cursor.times == item.times {
                (cursor.index, cursor.times) = (cursor.index + 1, 0);
                continue;
            }
            cursor.times += 1;
            let node = forest.node(item.node);
            match node.label {
                Label::Loop(_) | Label::Iteration => cursors.push(Cursor::new(node.items, false)),
                Label::Call(call) if counts(forest, call.function) => {
                    frame.at = program.after(frame.function, frame.at, call.function);
                    let path = self.path((frame.path, call.function, frame.at));
                    if is_mpi(forest, call.function) {
                        walked.step(self.state(path, Moment::Before));
                        if !call.open {
                            walked.step(self.state(path, Moment::After));
                        }
                    } else if of(item.node) > 0 || call.open {
                        cursors.push(Cursor::new(node.items, true));
                        frames.push(Frame {
                            function: Some(call.function),
                            path,
                            at: ENTRY,
                        });
                    } else if wants_markers && self.is_sampled(path) {
                        walked.step(self.state(path, Moment::Marker));
                    }
                }
                Label::Call(_) | Label::Trace | Label::Return => {}
            }
        }
        walked
    }

    fn is_sampled(&mut self, path: u32) -> bool {
        let calls = self.marked.entry(path).or_default();
        *calls += 1;
        *calls % SAMPLED == 1
    }

    /// The number of a path, from 1; 0 is that of the thread.
    fn path(&mut self, path: Path) -> u32 {
        *self.paths.entry(path).or_insert_with(|| {
            self.path_list.push(path);
            self.path_list.len() as u32
        })
    }

    fn state(&mut self, path: u32, moment: Moment) -> StateId {
        *self.ids.entry((path, moment)).or_insert_with(|| {
            self.list.push((path, moment));
            (self.list.len() - 1) as StateId
        })
    }

    /// All states in words, in the order of their numbers: a frame is `function`, or `function#2` for
    /// another place of its caller that calls it.
    #[must_use]
    pub fn list(&self, forest: &Forest) -> Vec<State> {
        let mut nth: FxHashMap<(u32, FunctionKey), Vec<At>> = FxHashMap::default();
        for (parent, function, at) in &self.path_list {
            nth.entry((*parent, *function)).or_default().push(*at);
        }
        let frame = |path: &Path| {
            let places = nth.get(&(path.0, path.1)).into_iter().flatten();
            let before = places.take_while(|at| **at != path.2).count();
            let name = &forest.function(path.1).name;
            match before {
                0 => name.clone(),
                before => format!("{name}#{}", before + 1),
            }
        };
        self.list
            .iter()
            .map(|(path, moment)| {
                let mut stack = Vec::new();
                let mut next = *path;
                while let Some(path) = (next as usize).checked_sub(1).map(|it| &self.path_list[it])
                {
                    stack.push(frame(path));
                    next = path.0;
                }
                stack.reverse();
                State {
                    stack,
                    moment: *moment,
                }
            })
            .collect()
    }
}

/// For each node the MPI calls in it.
fn mpi_calls(forest: &Forest) -> Vec<u64> {
    let mut calls: Vec<u64> = Vec::with_capacity(forest.len());
    for index in 0..forest.len() as u32 {
        let node = forest.node(NodeId(index));
        let inside = node.items.iter().map(|item| {
            let each = calls.get(item.node.0 as usize).copied().unwrap_or(0);
            each.saturating_mul(item.times)
        });
        let own = matches!(node.label, Label::Call(call) if is_mpi(forest, call.function));
        let sum = inside.fold(u64::from(own), u64::saturating_add);
        calls.push(sum);
    }
    calls
}
