//! What opcodes have, and what they do, for [`crate::quick`]: those that compilers write most, and no others.

/// Bits of what follows; the number of a group in the lowest byte. 0: left to the library.
pub(crate) type Shape = u32;

/// It is a direct branch or a return.
pub(crate) const BRANCH: Shape = 1 << 8;
/// ModRM follows.
pub(crate) const MODRM: Shape = 1 << 9;
/// What it is says ModRM, too.
pub(crate) const GROUP: Shape = 1 << 10;
/// An immediate operand follows: of one byte, of 4 (of 2 where it is sized), and of up to 8.
pub(crate) const IMMEDIATE_8: Shape = 1 << 11;
pub(crate) const IMMEDIATE: Shape = 1 << 12;
pub(crate) const IMMEDIATE_WIDE: Shape = 1 << 13;
/// Operands that are general registers: in ModRM's two fields, where the second is no memory, and in the opcode.
pub(crate) const REG: Shape = 1 << 14;
pub(crate) const RM: Shape = 1 << 15;
pub(crate) const IN_OPCODE: Shape = 1 << 16;
/// Of these, the first one. Operands that are compared alone are none.
pub(crate) const TO_REG: Shape = 1 << 17;
pub(crate) const TO_RM: Shape = 1 << 18;
/// It writes its first operand, and does not read it.
pub(crate) const WRITES: Shape = 1 << 19;
/// It gives its first operand another value.
pub(crate) const COMPUTES: Shape = 1 << 20;
/// Its operands are bytes.
pub(crate) const BYTE: Shape = 1 << 21;
/// The operand-size prefix makes its operands half-words.
pub(crate) const SIZED: Shape = 1 << 22;
/// It sets all flags, and reads none.
pub(crate) const SETS_FLAGS: Shape = 1 << 23;
/// It leaves all flags alone.
pub(crate) const KEEPS_FLAGS: Shape = 1 << 24;
/// It clears a register that is both of its operands.
pub(crate) const CLEARS: Shape = 1 << 25;
pub(crate) const PADDING: Shape = 1 << 26;
pub(crate) const PUSHES: Shape = 1 << 27;
pub(crate) const POPS: Shape = 1 << 28;
/// It is a move, and a move from memory.
pub(crate) const MOVES: Shape = 1 << 29;
pub(crate) const LOADS: Shape = 1 << 30;
/// It means something else with some prefix or operand.
pub(crate) const ODD: Shape = 1 << 31;

/// The forms of arithmetic.
const TO_MEMORY: Shape = MODRM | REG | RM | TO_RM;
const FROM_MEMORY: Shape = MODRM | REG | RM | TO_REG;
const ADD: Shape = SETS_FLAGS | COMPUTES;
const MOVE: Shape = KEEPS_FLAGS | COMPUTES | WRITES;

const fn group(number: usize) -> Shape {
    MODRM | GROUP | number as Shape
}

/// By the first byte of an opcode.
pub(crate) static FIRST: [Shape; 256] = first();

const fn first() -> [Shape; 256] {
    let mut shapes = [0; 256];
    // add, or, and, sub, xor, cmp
    let kinds = [
        (0x00, ADD),
        (0x08, ADD),
        (0x20, ADD),
        (0x28, ADD | CLEARS),
        (0x30, ADD | CLEARS),
    ];
    let mut at = 0;
    while at < kinds.len() {
        let (opcode, kind) = kinds[at];
        shapes[opcode] = TO_MEMORY | BYTE | kind;
        shapes[opcode + 1] = TO_MEMORY | SIZED | kind;
        shapes[opcode + 2] = FROM_MEMORY | BYTE | kind;
        shapes[opcode + 3] = FROM_MEMORY | SIZED | kind;
        shapes[opcode + 4] = IMMEDIATE_8 | BYTE | kind;
        shapes[opcode + 5] = IMMEDIATE | SIZED | kind;
        at += 1;
    }
    let compare = MODRM | REG | RM | SETS_FLAGS;
    let mut at = 0;
    while at < 4 {
        shapes[0x38 + at] = compare | if at % 2 == 0 { BYTE } else { SIZED };
        at += 1;
    }
    shapes[0x3c] = IMMEDIATE_8 | BYTE | SETS_FLAGS;
    shapes[0x3d] = IMMEDIATE | SIZED | SETS_FLAGS;
    let mut at = 0;
    while at < 8 {
        shapes[0x50 + at] = IN_OPCODE | PUSHES | KEEPS_FLAGS;
        shapes[0x58 + at] = IN_OPCODE | POPS | WRITES | KEEPS_FLAGS;
        shapes[0xb0 + at] = IN_OPCODE | IMMEDIATE_8 | BYTE | MOVES | MOVE;
        shapes[0xb8 + at] = IN_OPCODE | IMMEDIATE_WIDE | SIZED | MOVES | MOVE;
        at += 1;
    }
    shapes[0x63] = FROM_MEMORY | SIZED | MOVE | ODD;
    shapes[0x68] = IMMEDIATE | PUSHES | KEEPS_FLAGS;
    shapes[0x69] = FROM_MEMORY | IMMEDIATE | SIZED | ADD | WRITES;
    shapes[0x6a] = IMMEDIATE_8 | PUSHES | KEEPS_FLAGS;
    shapes[0x6b] = FROM_MEMORY | IMMEDIATE_8 | SIZED | ADD | WRITES;
    let mut at = 0x70;
    while at < 0x80 {
        shapes[at] = BRANCH;
        at += 1;
    }
    shapes[0x80] = group(0);
    shapes[0x81] = group(1);
    shapes[0x83] = group(2);
    shapes[0x84] = compare | BYTE;
    shapes[0x85] = compare | SIZED;
    shapes[0x88] = TO_MEMORY | BYTE | MOVES | MOVE;
    shapes[0x89] = TO_MEMORY | SIZED | MOVES | MOVE;
    shapes[0x8a] = FROM_MEMORY | BYTE | MOVES | MOVE;
    shapes[0x8b] = FROM_MEMORY | SIZED | MOVES | LOADS | MOVE;
    shapes[0x8d] = MODRM | REG | TO_REG | SIZED | MOVE | ODD;
    shapes[0x90] = PADDING | KEEPS_FLAGS | ODD;
    shapes[0x98] = SIZED | KEEPS_FLAGS;
    shapes[0x99] = SIZED | KEEPS_FLAGS;
    shapes[0xa8] = IMMEDIATE_8 | BYTE | SETS_FLAGS;
    shapes[0xa9] = IMMEDIATE | SIZED | SETS_FLAGS;
    shapes[0xc0] = group(3);
    shapes[0xc1] = group(4);
    shapes[0xc3] = BRANCH;
    shapes[0xc6] = group(5);
    shapes[0xc7] = group(6);
    shapes[0xd0] = group(7);
    shapes[0xd1] = group(8);
    shapes[0xd2] = group(7);
    shapes[0xd3] = group(8);
    shapes[0xe8] = BRANCH;
    shapes[0xe9] = BRANCH;
    shapes[0xeb] = BRANCH;
    shapes[0xf6] = group(9);
    shapes[0xf7] = group(10);
    shapes[0xfe] = group(11);
    shapes[0xff] = group(12);
    shapes
}

/// By the number of a group and the middle bits of ModRM.
pub(crate) static GROUPS: [[Shape; 8]; 16] = groups();

const fn groups() -> [[Shape; 8]; 16] {
    let mut groups = [[0; 8]; 16];
    let one = MODRM | RM | TO_RM;
    let compare = MODRM | RM | SETS_FLAGS;
    let kinds = [BYTE | IMMEDIATE_8, SIZED | IMMEDIATE, SIZED | IMMEDIATE_8];
    let mut at = 0;
    while at < kinds.len() {
        let add = one | ADD | kinds[at];
        // add, or, and, sub, xor; cmp
        groups[at] = [add, add, 0, 0, add, add, add, compare | kinds[at]];
        at += 1;
    }
    // shl, shr, sar: what they do with flags depends on the count.
    let kinds = [
        (3, BYTE | IMMEDIATE_8),
        (4, SIZED | IMMEDIATE_8),
        (7, BYTE),
        (8, SIZED),
    ];
    let mut at = 0;
    while at < kinds.len() {
        let (number, kind) = kinds[at];
        let shift = one | COMPUTES | kind;
        groups[number] = [0, 0, 0, 0, shift, shift, 0, shift];
        at += 1;
    }
    groups[5][0] = one | BYTE | IMMEDIATE_8 | MOVES | MOVE;
    groups[6][0] = one | SIZED | IMMEDIATE | MOVES | MOVE;
    // test, not, neg; mul and div of other registers, imul that computes its operand all the same
    let kinds = [(9, BYTE, IMMEDIATE_8), (10, SIZED, IMMEDIATE)];
    let mut at = 0;
    while at < kinds.len() {
        let (number, kind, immediate) = kinds[at];
        groups[number][0] = compare | kind | immediate;
        groups[number][2] = one | kind | KEEPS_FLAGS | COMPUTES;
        groups[number][3] = one | kind | ADD;
        groups[number][4] = one | kind | SETS_FLAGS;
        groups[number][5] = one | kind | ADD;
        groups[number][6] = one | kind | SETS_FLAGS;
        groups[number][7] = one | kind | SETS_FLAGS;
        at += 1;
    }
    // inc, dec
    groups[11][0] = one | BYTE | COMPUTES;
    groups[11][1] = one | BYTE | COMPUTES;
    groups[12][0] = one | SIZED | COMPUTES;
    groups[12][1] = one | SIZED | COMPUTES;
    groups[13][0] = MODRM | RM | SIZED | PADDING | KEEPS_FLAGS;
    groups
}

/// By the byte behind 0f, for each prefix: none, 66, f3, f2.
pub(crate) static SECOND: [[Shape; 256]; 4] = [second(0), second(1), second(2), second(3)];

/// Those of xmm registers that are good behind no prefix and 66.
const TWO: [usize; 9] = [0x14, 0x15, 0x28, 0x29, 0x54, 0x55, 0x56, 0x57, 0x5b];

const fn second(prefix: usize) -> [Shape; 256] {
    let mut shapes = [0; 256];
    let vector = MODRM | KEEPS_FLAGS;
    if prefix < 2 {
        let mut at = 0;
        while at < 16 {
            shapes[0x40 + at] = FROM_MEMORY | SIZED;
            shapes[0x90 + at] = MODRM | RM | TO_RM | BYTE;
            at += 1;
        }
        shapes[0x1f] = group(13);
        shapes[0xaf] = FROM_MEMORY | SIZED | ADD;
        shapes[0xb6] = FROM_MEMORY | SIZED | MOVE;
        shapes[0xb7] = FROM_MEMORY | SIZED | MOVE;
        shapes[0xbe] = FROM_MEMORY | SIZED | MOVE;
        shapes[0xbf] = FROM_MEMORY | SIZED | MOVE;
        let mut at = 0;
        while at < TWO.len() {
            shapes[TWO[at]] = vector;
            at += 1;
        }
        shapes[0x2e] = MODRM | SETS_FLAGS;
        shapes[0x2f] = MODRM | SETS_FLAGS;
        shapes[0xc6] = vector | IMMEDIATE_8;
    }
    if prefix == 0 {
        let mut at = 0x80;
        while at < 0x90 {
            shapes[at] = BRANCH;
            at += 1;
        }
    }
    shapes[0x10] = vector;
    shapes[0x11] = vector;
    shapes[0x51] = vector;
    shapes[0x58] = vector;
    shapes[0x59] = vector;
    shapes[0x5a] = vector;
    let mut at = 0x5c;
    while at < 0x60 {
        shapes[at] = vector;
        at += 1;
    }
    if prefix > 1 {
        shapes[0x2a] = vector | RM;
        shapes[0x2c] = vector | REG | TO_REG | WRITES;
        shapes[0x2d] = vector | REG | TO_REG | WRITES;
    }
    match prefix {
        1 => integers(shapes),
        2 => {
            shapes[0x6f] = vector;
            shapes[0x7e] = vector;
            shapes[0x7f] = vector;
            shapes[0x70] = vector | IMMEDIATE_8;
            shapes
        }
        3 => {
            shapes[0x70] = vector | IMMEDIATE_8;
            shapes
        }
        _ => shapes,
    }
}

/// Those of xmm registers as integers, which 66 stands before.
const fn integers(mut shapes: [Shape; 256]) -> [Shape; 256] {
    let vector = MODRM | KEEPS_FLAGS;
    let spans = [
        (0x60, 0x6e),
        (0x74, 0x77),
        (0xd1, 0xd7),
        (0xd8, 0xe6),
        (0xe8, 0xf0),
        (0xf1, 0xf7),
        (0xf8, 0xff),
    ];
    let mut span = 0;
    while span < spans.len() {
        let (mut at, end) = spans[span];
        while at < end {
            shapes[at] = vector;
            at += 1;
        }
        span += 1;
    }
    shapes[0x6e] = vector | RM;
    shapes[0x6f] = vector;
    shapes[0x70] = vector | IMMEDIATE_8;
    shapes[0x7e] = vector | RM | TO_RM | WRITES;
    shapes[0x7f] = vector;
    shapes
}
