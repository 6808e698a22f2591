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

#[target_feature(enable = "sse4.2")]
fn by_instruction(previous: u32, bytes: &[u8]) -> u32 {
    let mut state = u64::from(!previous);
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
