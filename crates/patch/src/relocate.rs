//! Moving instructions into the arena.
//!
//! A block is encoded as if the arena lay at a made-up address from which every displacement into the window of
//! [`crate::reach`] fits; then the result is decoded again, and each displacement that leads out of the
//! block becomes a link. So the block may lie anywhere in the arena, and the arena anywhere in reach
//! of the image when the plan is applied.

use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code as Opcode, ConstantOffsets, Decoder, DecoderOptions,
    Encoder, FlowControl, Instruction, InstructionBlock, MemoryOperand, Register,
};

use crate::arena::{Code, Link};
use crate::part::has_near_branch;
use crate::reach::Window;

/// Size of each half of the made-up arena: shadow slots and exits, then the block.
const HALF: u64 = 1 << 24;

/// From the lowest address that may be referred to up to the made-up arena: a displacement reaches so far from all of it.
const DISTANCE: u64 = (1 << 31) - (1 << 20) - 2 * HALF;

/// The encoder takes whatever refers to the address of an instruction in the block as referring to
/// its copy. That is right for branches and wrong for `lea self(%rip)`, whose result is a pointer;
/// so the instructions get addresses that nothing refers to, and the branches among them likewise.
const FORMER: u64 = 1 << 62;

/// The former address of instructions that had none.
const NOWHERE: u64 = 1 << 61;

/// The made-up addresses of an arena, and in it of the block to encode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    arena: u64,
    /// What the block may refer to.
    window: Window,
}

/// A moved block.
#[derive(Debug, Clone)]
pub(crate) struct Moved {
    pub code: Code,
    /// Offset of each instruction in the code, by its former address; `None` where it became
    /// several and is no target any more.
    pub offsets: Vec<(u64, Option<u32>)>,
    /// Fields that lead to exits, and the index of each exit's way out among those given.
    pub exits: Vec<(u32, usize)>,
}

impl Moved {
    /// Where the instruction that was at `address` begins now.
    pub(crate) fn offset_of(&self, address: u64) -> Option<u32> {
        let found = self.offsets.iter().find(|(from, _)| *from == address);
        found.and_then(|(_, offset)| *offset)
    }
}

impl Place {
    /// For code that refers to this window.
    pub(crate) fn new(window: Window) -> Self {
        let arena = (window.0 as u64).wrapping_add(DISTANCE) & !0xfff;
        Self { arena, window }
    }

    /// Where the block lies: far enough from the arena's start that shadow slots have room.
    fn address(&self) -> u64 {
        self.arena + HALF
    }

    /// Stands for the exit of a way out, by its index. Shadow slots lie below.
    fn exit(&self, index: usize) -> u64 {
        self.arena + HALF / 2 + index as u64
    }

    /// Stands for a shadow slot.
    fn slot(&self, offset: u64) -> Result<u64, String> {
        if offset < HALF / 2 {
            Ok(self.arena + offset)
        } else {
            Err("it calls one library function too many".into())
        }
    }

    fn is_arena(&self, target: u64) -> bool {
        (self.arena..self.arena + 2 * HALF).contains(&target)
    }

    /// Whether an arena that has a place reaches `target`.
    fn is_reached(&self, target: u64) -> bool {
        (self.window.0..self.window.1).contains(&(target as i64))
    }
}

/// Moves `instructions`, which stand one behind the other and end at `end`, to `place`. Where
/// execution can reach `end`, a jump there follows. `shadow` gives the arena offset of the shadow
/// slot that an instruction shall use instead of the slot it names. The instructions at `ways_out`
/// become jumps to exits.
///
/// A call may only stand last. The address behind it in the image is pushed, then comes a jump:
/// whoever unwinds or looks up its caller finds the place where the image has the call.
///
/// # Errors
/// Why an instruction cannot be moved.
pub(crate) fn relocate(
    instructions: &[Instruction],
    end: u64,
    place: Place,
    shadow: impl Fn(u64) -> Option<u64>,
    ways_out: &[u64],
) -> Result<Moved, String> {
    let mut block = Vec::with_capacity(instructions.len() + 2);
    let mut literal = None;
    for instruction in instructions {
        let mut moved = *instruction;
        check(&moved, place)?;
        if let Some(slot) = shadow(moved.ip()) {
            moved.set_memory_displacement64(place.slot(slot)?);
        }
        let target = moved.near_branch_target();
        let is_moved = |target| instructions.iter().any(|other| other.ip() == target);
        if has_near_branch(&moved) && moved.flow_control() != FlowControl::Call && is_moved(target)
        {
            moved.set_near_branch64(target | FORMER);
        }
        let way_out = ways_out.iter().position(|way| *way == moved.ip());
        if let Some(index) = way_out {
            let exit = place.exit(index);
            if moved.flow_control() == FlowControl::ConditionalBranch {
                moved.set_near_branch64(exit);
            } else {
                moved = branch(Opcode::Jmp_rel32_64, exit, NOWHERE)?;
            }
        }
        moved.set_ip(instruction.ip() | FORMER);
        let is_call = matches!(
            moved.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        );
        if is_call {
            if instruction.next_ip() != end {
                return Err("a call among its first bytes returns into them".into());
            }
            literal = Some(end);
            block.push(push_literal(place.address(), moved.ip())?);
            block.push(jump_like(&moved, NOWHERE)?);
        } else {
            block.push(moved);
        }
    }
    let ends = |instruction: &Instruction| {
        matches!(
            instruction.flow_control(),
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return
        )
    };
    if !block.last().is_some_and(ends) {
        block.push(branch(Opcode::Jmp_rel32_64, end, NOWHERE)?);
    }
    encode_with_literal(block, literal, place)
}

/// Moves straight instructions, and conditional branches among them, to where something follows.
///
/// # Errors
/// Why an instruction cannot be moved.
pub(crate) fn relocate_before(
    instructions: &[Instruction],
    place: Place,
    shadow: impl Fn(u64) -> Option<u64>,
) -> Result<Moved, String> {
    let mut block = Vec::with_capacity(instructions.len());
    for instruction in instructions {
        let mut moved = *instruction;
        check(&moved, place)?;
        if let Some(slot) = shadow(moved.ip()) {
            moved.set_memory_displacement64(place.slot(slot)?);
        }
        moved.set_ip(instruction.ip() | FORMER);
        block.push(moved);
    }
    if block.is_empty() {
        return Ok(Moved {
            code: Code::default(),
            offsets: Vec::new(),
            exits: Vec::new(),
        });
    }
    encode(&block, place)
}

fn encode_with_literal(
    mut block: Vec<Instruction>,
    literal: Option<u64>,
    place: Place,
) -> Result<Moved, String> {
    let mut moved = encode(&block, place)?;
    if let Some(address) = literal {
        // The literal follows the code, whose length does not depend on where the literal is.
        let at = moved.code.bytes.len() as u64;
        for instruction in &mut block {
            if instruction.code() == Opcode::Push_rm64
                && instruction.is_ip_rel_memory_operand()
                && instruction.ip_rel_memory_address() == place.address()
            {
                instruction.set_memory_displacement64(place.address() + at);
            }
        }
        moved = encode(&block, place)?;
        moved
            .code
            .links
            .push((at as u32, Link::Literal { address }));
        moved.code.bytes.extend_from_slice(&[0; 8]);
    }
    Ok(moved)
}

fn check(instruction: &Instruction, place: Place) -> Result<(), String> {
    let refuse = |what: &str| Err(format!("{what} at {:#x} cannot be moved", instruction.ip()));
    match instruction.flow_control() {
        FlowControl::XbeginXabortXend => return refuse("a transaction"),
        FlowControl::Call | FlowControl::IndirectCall => match instruction.code() {
            Opcode::Call_rel32_64 => {}
            Opcode::Call_rm64 if instruction.memory_base() != Register::RSP => {}
            _ => return refuse("this form of call"),
        },
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
            if !has_near_branch(instruction) =>
        {
            return refuse("a far jump");
        }
        FlowControl::IndirectBranch if instruction.code() != Opcode::Jmp_rm64 => {
            return refuse("a far jump");
        }
        _ => {}
    }
    let target = if instruction.is_ip_rel_memory_operand() {
        instruction.ip_rel_memory_address()
    } else if has_near_branch(instruction) {
        instruction.near_branch_target()
    } else {
        return Ok(());
    };
    if place.is_reached(target) {
        Ok(())
    } else {
        refuse("an instruction that refers to what lies too far from free memory")
    }
}

fn unexpected(error: &impl ToString) -> String {
    format!(
        "its first instructions cannot be encoded elsewhere: {}",
        error.to_string()
    )
}

fn branch(code: Opcode, target: u64, at: u64) -> Result<Instruction, String> {
    let mut instruction = Instruction::with_branch(code, target).map_err(|e| unexpected(&e))?;
    instruction.set_ip(at);
    Ok(instruction)
}

fn push_literal(literal: u64, at: u64) -> Result<Instruction, String> {
    let operand = MemoryOperand::with_base_displ(Register::RIP, literal as i64);
    let push = Instruction::with1(Opcode::Push_rm64, operand);
    let mut push = push.map_err(|e| unexpected(&e))?;
    push.set_ip(at);
    Ok(push)
}

/// The jump to where a call goes.
fn jump_like(call: &Instruction, at: u64) -> Result<Instruction, String> {
    if call.code() == Opcode::Call_rel32_64 {
        return branch(Opcode::Jmp_rel32_64, call.near_branch_target(), at);
    }
    let mut jump = *call;
    jump.set_code(Opcode::Jmp_rm64);
    jump.set_ip(at);
    Ok(jump)
}

fn encode(block: &[Instruction], place: Place) -> Result<Moved, String> {
    if let Some(moved) = encode_straight(block, place) {
        return Ok(moved);
    }
    let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
    let result = BlockEncoder::encode(64, InstructionBlock::new(block, place.address()), options)
        .map_err(|error| unexpected(&error))?;
    let bytes = result.code_buffer;
    let offsets = block.iter().zip(result.new_instruction_offsets);
    let offsets = offsets
        .map(|(instruction, at)| (instruction.ip() & !FORMER, (at != u32::MAX).then_some(at)))
        .collect();
    let mut moved = Moved {
        code: Code::default(),
        offsets,
        exits: Vec::new(),
    };
    let start = place.address();
    let mut decoder = Decoder::with_ip(64, &bytes, start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        let fields = decoder.get_constant_offsets(&instruction);
        let at = (instruction.ip() - start) as u32;
        moved.add_link(&instruction, at, fields, place)?;
    }
    moved.code.bytes = bytes;
    Ok(moved)
}

/// The same for a block without branches into itself, and without those that have no near form: most blocks. They need no
/// block encoder, which makes the same bytes of them.
fn encode_straight(block: &[Instruction], place: Place) -> Option<Moved> {
    let mut encoder = Encoder::new(64);
    let mut moved = Moved {
        code: Code::default(),
        offsets: Vec::with_capacity(block.len()),
        exits: Vec::new(),
    };
    let mut at = 0;
    for instruction in block {
        let mut instruction = *instruction;
        if has_near_branch(&instruction) {
            let code = instruction.code();
            let has_near_form = code.is_jcc_short_or_near() || code.is_jmp_short_or_near();
            if !has_near_form || instruction.near_branch_target() & FORMER != 0 {
                return None;
            }
            instruction.set_code(code.as_near_branch());
        }
        let former = instruction.ip() & !FORMER;
        moved.offsets.push((former, Some(at)));
        let place_of_it = place.address() + u64::from(at);
        let length = encoder.encode(&instruction, place_of_it).ok()?;
        // The instruction may have another length here; its address is of no use any more.
        instruction.set_len(length);
        let fields = encoder.get_constant_offsets();
        moved.add_link(&instruction, at, fields, place).ok()?;
        at += length as u32;
    }
    moved.code.bytes = encoder.take_buffer();
    Some(moved)
}

impl Moved {
    /// Notes where the instruction's displacement leads, if that is out of the block. It is encoded at offset `at`.
    fn add_link(
        &mut self,
        instruction: &Instruction,
        at: u32,
        fields: ConstantOffsets,
        place: Place,
    ) -> Result<(), String> {
        let is_branch = has_near_branch(instruction);
        let (address, field, size) = if is_branch {
            let target = instruction.near_branch_target();
            (target, fields.immediate_offset(), fields.immediate_size())
        } else if instruction.is_ip_rel_memory_operand() {
            let target = instruction.ip_rel_memory_address();
            let field = fields.displacement_offset();
            (target, field, fields.displacement_size())
        } else {
            return Ok(());
        };
        // Inside the block, literal included.
        if (place.address()..place.arena + 2 * HALF).contains(&address) {
            return Ok(());
        }
        if size != 4 {
            return Err("its first instructions have no near form".into());
        }
        let trailing = (instruction.len() - field - 4) as u8;
        let at = at + field as u32;
        if is_branch && place.is_arena(address) {
            self.exits.push((at, (address - place.exit(0)) as usize));
            return Ok(());
        }
        let link = if is_branch {
            Link::Branch { address }
        } else if !place.is_arena(address) {
            Link::Image { address, trailing }
        } else if trailing == 0 {
            let offset = address - place.arena;
            Link::Arena { offset }
        } else {
            return Err("an instruction with a shadow slot has an immediate operand".into());
        };
        self.code.links.push((at, link));
        Ok(())
    }
}
