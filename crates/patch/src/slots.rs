//! Slots of imports: which instructions use one, and the stubs that lead through them.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use lockstep_binary::Image;
use rustc_hash::FxHashMap;

use crate::flow::is_padding;
use crate::survey::{SlotUse, SlotUseKind};

/// What an instruction does with a slot.
pub(crate) fn slot_use(
    decoder: &Decoder<'_>,
    instruction: &Instruction,
    slots: &FxHashMap<u64, u32>,
) -> Option<SlotUse> {
    let has_memory =
        (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
    if !has_memory {
        return None;
    }
    let relative = instruction.is_ip_rel_memory_operand();
    let absolute = instruction.memory_base() == Register::None
        && instruction.memory_index() == Register::None
        && instruction.memory_segment() != Register::FS
        && instruction.memory_segment() != Register::GS;
    if !relative && !absolute {
        return None;
    }
    let slot = if relative {
        instruction.ip_rel_memory_address()
    } else {
        instruction.memory_displacement64()
    };
    slots.get(&slot)?;
    let kind = match instruction.code() {
        _ if !relative => SlotUseKind::Other,
        Code::Call_rm64 => SlotUseKind::Call,
        Code::Jmp_rm64 => SlotUseKind::Jump,
        Code::Mov_r64_rm64 => SlotUseKind::Load(instruction.op0_register()),
        _ => SlotUseKind::Other,
    };
    let offsets = decoder.get_constant_offsets(instruction);
    let is_wide = relative && offsets.displacement_size() == 4;
    Some(SlotUse {
        address: instruction.ip(),
        slot,
        length: instruction.len() as u8,
        field: if is_wide {
            offsets.displacement_offset() as u8
        } else {
            0
        },
        kind,
        is_in_plt: false,
    })
}

/// The stubs that lead into libraries: what uses a slot, and the addresses from which on it leads there. Linkers have many
/// forms of them; each is straight code up to a jump through a slot.
///
/// ```text
///  [endbr64]  [mov $index,%r11d]  jmp *slot(%rip)
///  mov slot(%rip),%r11 ; then code that jumps to what r11 holds (-z retpolineplt)
/// ```
pub(crate) fn decode_plt(
    image: &Image<'_>,
    slots: &FxHashMap<u64, u32>,
    start: u64,
    end: u64,
) -> (Vec<SlotUse>, Vec<(u64, u64)>) {
    let (mut uses, mut stubs) = (Vec::new(), Vec::new());
    let bytes = image.bytes_at(start, end.saturating_sub(start));
    let bytes = bytes.unwrap_or_default();
    let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
    let mut straight = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if is_padding(&instruction) {
            straight.clear();
            continue;
        }
        straight.push(instruction.ip());
        if let Some(mut slot_use) = slot_use(&decoder, &instruction, slots) {
            if let SlotUseKind::Load(register) = slot_use.kind
                && jumps_on(image, instruction.next_ip()) == Some(register)
            {
                slot_use.kind = SlotUseKind::Jump;
            }
            if slot_use.kind == SlotUseKind::Jump {
                stubs.extend(straight.iter().map(|at| (*at, slot_use.slot)));
            }
            slot_use.is_in_plt = true;
            uses.push(slot_use);
        }
        if instruction.flow_control() != FlowControl::Next {
            straight.clear();
        }
    }
    (uses, stubs)
}

/// The register whose value the code at `at` jumps to, whatever else it does: a jump, or one that no processor predicts.
///
/// ```text
///      call 1f          `-mindirect-branch=thunk`, `-mretpoline`
///  0:  pause ; lfence ; jmp 0b
///  1:  mov %register,(%rsp)
///      ret
/// ```
pub(crate) fn jumps_to_register(image: &Image<'_>, at: u64) -> Option<Register> {
    let first = decode(image, at)?;
    let first = match first.code() {
        Code::Endbr64 => decode(image, first.next_ip())?,
        _ => first,
    };
    match first.code() {
        Code::Jmp_rm64 if first.op0_kind() == OpKind::Register => Some(first.op0_register()),
        Code::Call_rel32_64 => {
            let store = decode(image, first.near_branch_target())?;
            let is_slot = store.code() == Code::Mov_rm64_r64
                && store.op0_kind() == OpKind::Memory
                && store.memory_base() == Register::RSP
                && store.memory_index() == Register::None
                && store.memory_displacement64() == 0
                && store.segment_prefix() == Register::None;
            let goes = decode(image, store.next_ip())?.code() == Code::Retnq;
            (is_slot && goes).then(|| store.op1_register())
        }
        _ => None,
    }
}

/// The same behind a load in a stub, which may jump to code that all stubs share.
fn jumps_on(image: &Image<'_>, at: u64) -> Option<Register> {
    let first = decode(image, at)?;
    match first.code() {
        Code::Jmp_rel32_64 | Code::Jmp_rel8_64 => {
            jumps_to_register(image, first.near_branch_target())
        }
        _ => jumps_to_register(image, at),
    }
}

fn decode(image: &Image<'_>, at: u64) -> Option<Instruction> {
    let bytes = image.bytes_from(at).filter(|_| image.is_code(at))?;
    let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}
