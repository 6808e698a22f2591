//! What is told by bytes is what the library tells.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::change::Change;
use crate::fate::{Use, use_of};
use crate::sensitive::Walk;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpKind,
    Register, RflagsBits,
};
use lockstep_binary::Image;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

const FLAGS: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// Compares what is known of the bytes at `at`; whether anything is.
fn compare(bytes: &[u8; BYTES], at: u64, is_live: bool) -> bool {
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    let real = decoder.decode();
    let what = || format!("{bytes:02x?} {:?}", real.code());
    let plain = match read(bytes, at, is_live) {
        None => return false,
        Some(Quick::Plain(plain)) => plain,
        Some(Quick::Branch(turn)) => {
            compare_turn(&turn, &decoder, &real, is_live, &what());
            return true;
        }
    };
    let Some(scratch) = plain.scratch() else {
        return false;
    };
    assert_eq!(plain.length(), real.len(), "{}", what());
    assert_eq!(real.flow_control(), FlowControl::Next, "{}", what());
    assert!(!crate::flow::is_special(&real), "{}", what());
    if is_live {
        let (reads, sets) = (real.rflags_read() & FLAGS, real.rflags_modified() & FLAGS);
        let expected = if plain.sets_flags() { FLAGS } else { 0 };
        assert_eq!((reads, sets), (0, expected), "{}", what());
    }
    let change = match plain.is_padding() {
        true => Change::Padding,
        false => plain.change(),
    };
    assert_eq!(change, Change::of(&real), "{}", what());
    let mut factory = InstructionInfoFactory::new();
    let mut uses = (0, 0);
    for (register, bit) in crate::fate::REGISTERS {
        match use_of(&mut factory, &real, register) {
            Use::None => {}
            Use::Read => uses.0 |= bit,
            Use::Written => uses.1 |= bit,
        }
    }
    assert_eq!(scratch, uses, "{}", what());
    let mentions = crate::fate::mentioned(&real);
    assert_eq!(scratch.0 | scratch.1, mentions, "{}", what());
    compare_operands(&plain, at, &real, &what());
    compare_stack(&plain, &real, &what());
    true
}

fn compare_turn(turn: &Turn, decoder: &Decoder<'_>, real: &Instruction, live: bool, what: &str) {
    let flow = match turn.way {
        Way::Call => FlowControl::Call,
        Way::Jump => FlowControl::UnconditionalBranch,
        Way::Conditional => FlowControl::ConditionalBranch,
        Way::Return => FlowControl::Return,
    };
    assert_eq!(flow, real.flow_control(), "{what}");
    assert!(!live || flow != FlowControl::ConditionalBranch, "{what}");
    assert_eq!((turn.at, turn.end()), (real.ip(), real.next_ip()), "{what}");
    if turn.way == Way::Return {
        assert_eq!(real.code(), Code::Retnq, "{what}");
        return;
    }
    assert_eq!(turn.target, real.near_branch_target(), "{what}");
    let offsets = decoder.get_constant_offsets(real);
    let is_wide = offsets.immediate_size() == 4;
    let field = if is_wide {
        offsets.immediate_offset()
    } else {
        0
    };
    assert_eq!(usize::from(turn.field), field, "{what}");
}

fn compare_operands(plain: &Plain<'_>, at: u64, real: &Instruction, what: &str) {
    let address = real.is_ip_rel_memory_operand().then(|| {
        let target = real.ip_rel_memory_address();
        match real.code() {
            Code::Lea_r64_m => Address::Taken(target),
            _ => Address::Used(target),
        }
    });
    assert_eq!(plain.address(at), address, "{what}");
    let is_memory = |operand| real.op_kind(operand) == OpKind::Memory;
    let is_absolute = real.memory_base() == Register::None && (0..real.op_count()).any(is_memory);
    assert!(!is_absolute, "{what}");
    let is_wide = |operand: &u32| {
        matches!(
            real.op_kind(*operand),
            OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64
        )
    };
    let immediate = (0..real.op_count()).find(is_wide);
    let immediate = immediate.map(|operand| real.immediate(operand));
    assert_eq!(plain.immediate(), immediate, "{what}");
    let into_slot = real.op_count() > 1
        && real.op0_kind() == OpKind::Memory
        && real.memory_base() == Register::RSP
        && real.memory_index() == Register::None
        && real.memory_displacement64() == 0;
    let pushes = real.mnemonic() == iced_x86::Mnemonic::Push;
    assert!(plain.may_push() || !into_slot && !pushes, "{what}");
}

/// Whatever was before, the stack is then as the instruction itself leaves it.
fn compare_stack(plain: &Plain<'_>, real: &Instruction, what: &str) {
    let stack = plain.stack();
    let displacement = real.memory_displacement64() as i64;
    for depth in [None, Some(0), Some(8), Some(24), Some(displacement)] {
        for has_frame_pointer in [false, true] {
            let mut one = Walk::at(depth, has_frame_pointer);
            let mut other = Walk::at(depth, has_frame_pointer);
            if one.take_plain(stack) {
                other.take(real);
                assert_eq!(one.state(), other.state(), "{what} at {depth:?}");
            }
        }
    }
}

fn images(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(data) = entry.metadata() else { continue };
        if data.is_dir() {
            images(&entry.path(), found);
        } else if data.is_file() && data.len() > 4096 {
            found.push(entry.path());
        }
    }
}

/// Compares all instructions of an image; how many there are, and how many are known.
fn compare_image(path: &Path) -> (usize, usize) {
    let (mut all, mut known) = (0, 0);
    let bytes = std::fs::read(path).unwrap_or_default();
    let Ok(image) = Image::parse(&bytes) else {
        return (0, 0);
    };
    for range in image.ranges() {
        let code = image.bytes_from(range.address).unwrap();
        let mut at = 0;
        while at < range.size as usize {
            let ip = range.address + at as u64;
            let length = Decoder::with_ip(64, &code[at..], ip, DecoderOptions::NONE)
                .decode()
                .len();
            if let Some(window) = code[at..].first_chunk() {
                known += usize::from(compare(window, ip, false));
                compare(window, ip, true);
            }
            all += 1;
            at += length;
        }
    }
    (all, known)
}

#[test]
fn instructions_of_this_program() {
    let (all, known) = compare_image(&std::env::current_exe().unwrap());
    // Else nothing is saved.
    assert!(all > 10_000 && known > all / 10 * 8, "{known} of {all}");
}

#[test]
#[ignore = "long: instructions of a sample of this machine's images"]
fn instructions_of_images_of_this_machine() {
    let mut paths = Vec::new();
    for place in [
        "/usr/bin",
        "/usr/sbin",
        "/usr/lib",
        "/usr/libexec",
        "/usr/local",
        "/opt",
    ] {
        images(Path::new(place), &mut paths);
    }
    paths.sort();
    // All of them take an hour.
    let sample = paths.iter().step_by(64);
    let counts = sample.map(|path| compare_image(path));
    let (all, known) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(
        known * 10 > all * 8,
        "{known} of {all} are told by their bytes"
    );
}

proptest! {
    #[test]
    fn any_bytes(bytes: [u8; BYTES], at in 0..1u64 << 46, is_live: bool) {
        compare(&bytes, at, is_live);
    }

    /// Those that begin as instructions do.
    #[test]
    fn prefixes_and_opcodes(
        prefix in prop::sample::select(&[0x66u8, 0xf2, 0xf3, 0x90][..]),
        rex in prop::option::of(0x40..0x50u8),
        is_second: bool,
        rest: [u8; BYTES],
        is_live: bool,
    ) {
        let mut bytes: Vec<u8> = Vec::new();
        bytes.extend((prefix != 0x90).then_some(prefix));
        bytes.extend(rex);
        bytes.extend(is_second.then_some(0x0f));
        bytes.extend(rest);
        compare(bytes.first_chunk().unwrap(), 0x40_1000, is_live);
    }
}
