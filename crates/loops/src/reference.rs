//! The rules followed to the letter: slow, short, and what the fast folding is tested against.

use crate::body::{Bodies, Key};
use crate::element::{Element, Inner, Loop};
use crate::{COPIES, Mode};

/// As [`crate::fold`], by trying every body length at every step: up to K² comparisons a token.
pub fn fold(
    tokens: impl IntoIterator<Item = u32>,
    k: usize,
    mode: Mode,
    bodies: &mut Bodies,
) -> Vec<Element> {
    let mut stack: Vec<Element> = Vec::new();
    for token in tokens {
        stack.push(Element::Symbol(token));
        while merge(&mut stack)
            || extend(&mut stack, k, mode, bodies)
            || create(&mut stack, k, mode, bodies)
        {}
    }
    stack
}

fn keys(elements: &[Element], mode: Mode) -> Vec<Key> {
    elements.iter().map(|element| element.key(mode)).collect()
}

/// Rule M.
fn merge(stack: &mut Vec<Element>) -> bool {
    let [.., Element::Loop(below), Element::Loop(top)] = stack.as_mut_slice() else {
        return false;
    };
    if below.body != top.body {
        return false;
    }
    below.count += top.count;
    below.inner.append(&mut top.inner);
    stack.pop();
    true
}

/// Rule E.
fn extend(stack: &mut Vec<Element>, k: usize, mode: Mode, bodies: &Bodies) -> bool {
    for length in 1..=k.min(stack.len().saturating_sub(1)) {
        let start = stack.len() - length;
        let Element::Loop(looped) = &stack[start - 1] else {
            continue;
        };
        if bodies.keys(looped.body) != keys(&stack[start..], mode) {
            continue;
        }
        let block = stack.split_off(start);
        if let Some(Element::Loop(looped)) = stack.last_mut() {
            looped.count += 1;
            looped.inner.append(&mut trips(vec![block]));
        }
        return true;
    }
    false
}

/// Rule F.
fn create(stack: &mut Vec<Element>, k: usize, mode: Mode, bodies: &mut Bodies) -> bool {
    for length in 1..=k.min(stack.len() / COPIES) {
        let start = stack.len() - COPIES * length;
        let body = keys(&stack[start..start + length], mode);
        if stack[start..]
            .chunks(length)
            .any(|block| keys(block, mode) != body)
        {
            continue;
        }
        let mut blocks = Vec::new();
        for copy in (0..COPIES).rev() {
            blocks.insert(0, stack.split_off(start + copy * length));
        }
        stack.push(Element::Loop(Loop {
            body: bodies.intern(&body),
            count: COPIES as u64,
            inner: trips(blocks),
        }));
        return true;
    }
    false
}

/// The trip counts in equal blocks: for each loop of the block its counts, block after block.
fn trips(blocks: Vec<Vec<Element>>) -> Inner {
    let mut all = Inner::default();
    for block in blocks {
        let loops = block.into_iter().filter_map(|element| match element {
            Element::Loop(looped) => Some(looped),
            Element::Symbol(_) => None,
        });
        let mut loops: Vec<Loop> = loops.collect();
        if all.all().is_empty() {
            all = Inner::new(loops.len());
        }
        all.enter(&mut loops);
    }
    all
}
