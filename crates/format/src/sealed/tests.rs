#![allow(clippy::unwrap_used)]
use super::bits::{Broken, Coder, Predictor, Reader, Writer};
use super::grammar::{Grammar, Tree, label};
use super::text::Text;
use super::*;
use std::collections::HashMap;
use std::vec::Vec;

type Words = Vec<u32>;

/// Small numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.0 >> 33) as u32) % most
    }
}

/// Nodes, equal ones once.
#[derive(Default)]
struct Nodes {
    nodes: Vec<(u32, Vec<(u32, u64)>)>,
    ids: HashMap<(u32, Vec<(u32, u64)>), u32>,
    known: HashMap<u32, u32>,
}

impl Nodes {
    fn add(&mut self, label: u32, items: Vec<(u32, u64)>) -> u32 {
        let next = self.nodes.len() as u32;
        let key = (label, items);
        let id = *self.ids.entry(key.clone()).or_insert(next);
        if id == next {
            self.nodes.push(key);
        }
        id
    }

    fn call(&mut self, name: u32, items: Vec<(u32, u64)>) -> u32 {
        self.add(label::CALL | name << label::NAME, items)
    }

    fn is_same(&self, node: u32, grammar: &Grammar<Words>, told: u32) -> bool {
        let (label, items) = &self.nodes[node as usize];
        *label == grammar.label(told)
            && items.len() == grammar.count(told)
            && items.iter().enumerate().all(|(index, (child, times))| {
                let (other, again) = grammar.item(told, index).unwrap();
                *times == again && self.is_same(*child, grammar, other)
            })
    }
}

impl Tree for Nodes {
    fn label(&mut self, node: u32) -> u32 {
        self.nodes[node as usize].0
    }

    fn item(&self, node: u32, index: usize) -> Option<(u32, u64)> {
        self.nodes[node as usize].1.get(index).copied()
    }

    fn known(&self, node: u32) -> Option<u32> {
        self.known.get(&node).copied()
    }

    fn define(&mut self, node: u32, number: u32) {
        self.known.insert(node, number);
    }
}

fn forest(random: &mut Random, size: u32) -> (Nodes, Vec<u32>) {
    let mut nodes = Nodes::default();
    let leaf = nodes.call(0, vec![]);
    let mut calls = vec![leaf, nodes.add(label::RETURN, vec![])];
    for _ in 0..size {
        let mut items: Vec<(u32, u64)> = Vec::new();
        for _ in 0..random.below(6) {
            let mut child = calls[random.below(calls.len() as u32) as usize];
            let other = calls[random.below(calls.len() as u32) as usize];
            if child != other && random.below(4) == 0 {
                let body = nodes.add(label::ITERATION, vec![(child, 1), (other, 1)]);
                let times = u64::from(random.below(7)) + 1;
                child = nodes.add(
                    label::LOOP,
                    vec![(body, times), (leaf, 1 << (random.below(63)))],
                );
            }
            if items.last().is_none_or(|(last, _)| *last != child) {
                items.push((child, 1));
            }
        }
        let flags = if random.below(5) == 0 { label::OPEN } else { 0 };
        let name = random.below(9);
        let call = nodes.add(label::CALL | flags | name << label::NAME, items);
        calls.push(call);
    }
    let mut roots: Vec<_> = calls.iter().rev().take(3).map(|call| (*call, 1)).collect();
    roots.dedup();
    let root = nodes.add(label::TRACE, roots);
    let plain = vec![(leaf, 1 << 10), (calls[1], 3), (leaf, 2)];
    let other = nodes.add(label::TRACE | label::PLAIN, plain);
    (nodes, vec![root, other])
}

fn written(nodes: &mut Nodes, roots: &[u32]) -> (Vec<u8>, u64) {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let mut grammar = Grammar::<Words>::new(14);
    for root in roots {
        grammar.write(&mut writer, nodes, *root).unwrap();
    }
    writer.finish();
    (bytes, grammar.elements())
}

#[test]
fn trees_are_given_back() {
    let mut random = Random(1);
    for size in [0, 1, 2, 5, 20, 100, 1000] {
        let (mut nodes, roots) = forest(&mut random, size);
        let (bytes, _) = written(&mut nodes, &roots);
        let mut source = &bytes[..];
        let mut reader = Reader::new(&mut source);
        let mut grammar = Grammar::<Words>::new(14);
        for root in &roots {
            let told = grammar.read(&mut reader, 1 << 20).unwrap();
            assert!(nodes.is_same(*root, &grammar, told));
        }
    }
}

#[test]
fn a_tree_can_be_as_deep_as_one_likes() {
    let mut nodes = Nodes::default();
    let mut call = nodes.call(0, vec![]);
    for depth in 0..100_000 {
        call = nodes.call(depth % 3, vec![(call, 1)]);
    }
    let (bytes, elements) = written(&mut nodes, &[call]);
    assert!(bytes.len() < 4000, "{}", bytes.len());
    let mut source = &bytes[..];
    let mut reader = Reader::new(&mut source);
    let mut grammar = Grammar::<Words>::new(14);
    let told = grammar.read(&mut reader, elements + 1).unwrap();
    assert_eq!(told, 100_000);
}

#[test]
fn any_bytes_end_without_a_panic() {
    let mut random = Random(7);
    let (mut nodes, roots) = forest(&mut random, 10);
    let (bytes, elements) = written(&mut nodes, &roots);
    let read = |bytes: &[u8]| -> Result<(), Broken> {
        let mut source = bytes;
        let mut reader = Reader::new(&mut source);
        let mut grammar = Grammar::<Words>::new(14);
        for _ in &roots {
            grammar.read(&mut reader, elements)?;
        }
        Ok(())
    };
    for length in 0..bytes.len() {
        let _ = read(&bytes[..length]);
    }
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let _ = read(&flipped);
    }
    for length in 0..200 {
        let noise: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        let _ = read(&noise);
    }
}

#[test]
fn text_is_given_back() {
    let mut random = Random(3);
    let mut text: Vec<u8> = Vec::new();
    for line in 0..300 {
        text.extend(format!("function_{}\tlibrary\t{line}\n", random.below(20)).bytes());
    }
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let mut coder = Text::<Words>::new(16);
    for byte in &text {
        coder.byte(&mut writer, *byte).unwrap();
    }
    writer.finish();
    assert!(bytes.len() * 10 < text.len(), "{}", bytes.len());
    let mut source = &bytes[..];
    let mut reader = Reader::new(&mut source);
    let mut coder = Text::<Words>::new(16);
    for byte in &text {
        assert_eq!(coder.byte(&mut reader, 0), Ok(*byte));
    }
}

#[test]
fn numbers_are_given_back() {
    let numbers = [
        0,
        1,
        2,
        3,
        4,
        255,
        256,
        1 << 20,
        u64::from(u32::MAX),
        u64::MAX - 1,
        u64::MAX,
    ];
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let mut predictor = Predictor::<Words>::new(12);
    for number in numbers {
        predictor.number(&mut writer, &[1, 2], 0, number).unwrap();
    }
    writer.finish();
    let mut source = &bytes[..];
    let mut reader = Reader::new(&mut source);
    let mut predictor = Predictor::<Words>::new(12);
    for number in numbers {
        assert_eq!(predictor.number(&mut reader, &[1, 2], 0, 0), Ok(number));
    }
}

#[test]
fn what_follows_the_bytes_does_not_matter() {
    for count in 0..40u32 {
        for pattern in [0u64, u64::MAX, 0x5555_5555_5555_5555, 0x1234_5678_9abc_def0] {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            for index in 0..count {
                writer.bit(20_000, pattern >> index & 1 == 1).unwrap();
            }
            writer.finish();
            for behind in [0, 255] {
                let mut longer = bytes.clone();
                longer.extend([behind; 4]);
                let mut source = &longer[..];
                let mut reader = Reader::new(&mut source);
                for index in 0..count {
                    let bit = reader.bit(20_000, false).unwrap();
                    assert_eq!(bit, pattern >> index & 1 == 1);
                }
            }
        }
    }
}

/// A whole file with nothing in it.
fn small_file() -> Vec<u8> {
    let contents: [&[u8]; section::COUNT] = [b"", b"names", b"threads", b"nodes", b"raw"];
    let sections = contents.map(|content| (content.len() as u64, crc32c(content)));
    let told = Header {
        slots: 14,
        nodes: 3,
        trees: 1,
        elements: 9,
        base_nodes: 0,
    };
    let mut file = header(&told, &sections).to_vec();
    contents.iter().for_each(|content| file.extend(*content));
    file
}

#[test]
fn every_truncation_and_every_flipped_bit_is_told() {
    let file = small_file();
    let (told, sections) = open(&file).unwrap();
    assert_eq!((told.nodes, told.elements), (3, 9));
    assert_eq!(&file[sections[section::NODES].clone()], b"nodes");
    for length in 0..file.len() {
        assert!(open(&file[..length]).is_err());
    }
    for bit in 0..8 * file.len() {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&flipped).is_err(), "bit {bit}");
    }
    let mut longer = file;
    longer.push(0);
    assert!(open(&longer).is_err());
}
