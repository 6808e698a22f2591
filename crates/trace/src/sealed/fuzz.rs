//! Files that tell very much in few bytes, for whoever looks what readers make of them.

use super::differences::Teller;
use super::record::Bytes;
use super::seal::{assemble, none};
use lockstep_format::process::kind;
use lockstep_format::sealed::{Header, form};

/// Files that hold, checks and all: a process of so many chunks of half a megabyte, and so many processes that are alike.
#[must_use]
pub fn hostile(chunks: u64, processes: u64) -> [Vec<u8>; 2] {
    const USED: u64 = 1 << 19;
    let of = |record: Vec<u8>, processes: u64| {
        let mut threads = Bytes::default();
        threads.number(processes);
        let mut teller = Teller::default();
        for _ in 0..processes {
            // Records of this size are told.
            let _ = teller.put(record.clone(), &mut threads);
        }
        file(&threads)
    };
    [
        of(record(chunks, &[], USED), 1),
        of(record(2, &[], USED), processes),
    ]
}

/// A file without names and trees.
pub(super) fn file(threads: &Bytes) -> Vec<u8> {
    let header = Header {
        slots: 14,
        ..Header::default()
    };
    assemble(&header, &Bytes::default(), &none(), threads, &[], &[]).0
}

/// A process with so many chunks of a kind that are told by `payload`, and of which `used` bytes are used.
pub(super) fn record(chunks: u64, payload: &[u8], used: u64) -> Vec<u8> {
    let mut record = Bytes::default();
    record.bytes(b"node-1-1-0.lockstep");
    [0, 0].iter().for_each(|count| record.number(*count));
    record.sparse(&[]);
    record.number(chunks);
    for sequence in 0..chunks {
        let kind = u64::from(kind::ARGUMENTS);
        for number in [kind, 0, sequence, used, 0, form::PLAIN] {
            record.number(number);
        }
        record.sparse(payload);
    }
    record.number(0);
    record.0
}
