//! CRC-32C by the processor's own instruction: the plans of all images are tens of megabytes, and every
//! process checks them.

use core::arch::x86_64::{__cpuid, _mm_crc32_u8, _mm_crc32_u64};
use core::sync::atomic::{AtomicU32, Ordering};
use lockstep_format::check;

/// As [`check::extend`].
pub fn extend(previous: u32, bytes: &[u8]) -> u32 {
    if has_instruction() {
        // SAFETY: it is there.
        unsafe { by_instruction(previous, bytes) }
    } else {
        check::extend(previous, bytes)
    }
}

/// Asked once: a virtual machine takes its time to say.
fn has_instruction() -> bool {
    const SSE4_2: u32 = 1 << 20;
    const KNOWN: u32 = 1;
    static FEATURES: AtomicU32 = AtomicU32::new(0);
    let mut features = FEATURES.load(Ordering::Relaxed);
    if features == 0 {
        features = __cpuid(1).ecx & SSE4_2 | KNOWN;
        FEATURES.store(features, Ordering::Relaxed);
    }
    features & SSE4_2 != 0
}

/// Bytes of a lane.
const LANE: usize = 4096;

/// What `LANE` zero bytes make of each bit of a state.
const ZEROS: [u32; 32] = {
    // One zero bit, then twice as many, up to 8 * LANE.
    let mut operator = [0u32; 32];
    operator[0] = 0x82f6_3b78;
    let mut bit = 1;
    while bit < 32 {
        operator[bit] = 1 << (bit - 1);
        bit += 1;
    }
    let mut bits = 1;
    while bits < 8 * LANE {
        let mut twice = [0u32; 32];
        let mut bit = 0;
        while bit < 32 {
            twice[bit] = applied(&operator, operator[bit]);
            bit += 1;
        }
        operator = twice;
        bits *= 2;
    }
    operator
};

const fn applied(operator: &[u32; 32], state: u32) -> u32 {
    let mut result = 0;
    let mut bit = 0;
    while bit < 32 {
        result ^= operator[bit] & 0u32.wrapping_sub(state >> bit & 1);
        bit += 1;
    }
    result
}

/// The instruction gives its result after three cycles and can begin in each: three lanes side by side.
#[target_feature(enable = "sse4.2")]
fn by_instruction(previous: u32, bytes: &[u8]) -> u32 {
    let mut state = u64::from(!previous);
    let (triples, bytes) = bytes.as_chunks::<{ 3 * LANE }>();
    for triple in triples {
        let (first, rest) = triple.split_at(LANE);
        let (second, third) = rest.split_at(LANE);
        let lanes = [first, second, third].map(|lane| lane.as_chunks::<8>().0);
        let [mut one, mut two, mut three] = [state, 0, 0];
        for ((a, b), c) in lanes[0].iter().zip(lanes[1]).zip(lanes[2]) {
            one = _mm_crc32_u64(one, u64::from_le_bytes(*a));
            two = _mm_crc32_u64(two, u64::from_le_bytes(*b));
            three = _mm_crc32_u64(three, u64::from_le_bytes(*c));
        }
        let both = applied(&ZEROS, one as u32) ^ two as u32;
        state = u64::from(applied(&ZEROS, both) ^ three as u32);
    }
    let (eights, rest) = bytes.as_chunks::<8>();
    for eight in eights {
        state = _mm_crc32_u64(state, u64::from_le_bytes(*eight));
    }
    let mut state = state as u32;
    for byte in rest {
        state = _mm_crc32_u8(state, *byte);
    }
    !state
}
