//! Writes process files for tests, store by store as the commit protocol says, so that it can stop
//! behind any of them: what a killed process leaves. Says nothing about speed.
#![allow(clippy::unwrap_used)]

use crate::stream::Growing;
use lockstep_format::bytes::{put, put_u32, put_u64};
use lockstep_format::check;
use lockstep_format::codec::{AnyEncoder, Kind, Sink};
use lockstep_format::process::{
    BYTE_ORDER, DATA_CHUNK, MAGIC, PAGE, THREAD_CHUNK, VERSION, chunk, extent_end, header, kind,
    state, thread,
};
use lockstep_format::symbol::staging_word;
use std::fs::File;
use std::os::unix::fs::FileExt;

pub(crate) struct Writer {
    bytes: Vec<u8>,
    /// First byte that no chunk has.
    free: usize,
    codec: Kind,
    /// How many more stores happen before the process is killed.
    stores: u64,
    threads: Vec<ThreadWriter>,
    /// Where every store happens too, for somebody who reads meanwhile.
    live: Option<File>,
}

struct ThreadWriter {
    chunk: usize,
    encoder: Box<AnyEncoder<Growing, Growing>>,
    /// Where the stream goes on, and up to where there is room.
    next: usize,
    end: usize,
    chunks: u32,
    committed: u64,
    symbols: u64,
    check: u32,
    staged: Vec<u32>,
    /// Events whose store happened before the process was killed.
    pub stored: Vec<u32>,
}

struct Output(Vec<u8>);

impl Sink for Output {
    fn put(&mut self, byte: u8) {
        self.0.push(byte);
    }
}

/// What a process is, for its header.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Identity {
    pub pid: u32,
    pub start_time: u64,
    pub created: u64,
    pub exec_count: u32,
    pub flags: u32,
    pub end: (u32, u32),
}

impl Writer {
    /// A file of a process that is killed after `stores` stores into its threads.
    pub fn new(codec: Kind, identity: Identity, facts: &str, stores: u64) -> Self {
        let mut writer = Self {
            bytes: vec![0; extent_end(0) as usize],
            free: PAGE as usize,
            codec,
            stores: u64::MAX,
            threads: Vec::new(),
            live: None,
        };
        let file = &mut writer.bytes;
        put(file, header::MAGIC, &MAGIC);
        put_u32(file, header::VERSION, VERSION);
        put_u32(file, header::BYTE_ORDER, BYTE_ORDER);
        put_u32(file, header::CODEC, codec as u32);
        put_u32(file, header::PID, identity.pid);
        put_u32(file, header::EXEC_COUNT, identity.exec_count);
        put_u64(file, header::START_TIME, identity.start_time);
        put_u64(file, header::CREATED, identity.created);
        let sum = check::crc32c(&file[..header::CHECK]);
        put_u32(file, header::CHECK, sum);
        put_u32(file, header::FLAGS, identity.flags);
        put_u32(file, header::END_KIND, identity.end.0);
        put_u32(file, header::END_CODE, identity.end.1);
        let at = writer.take(PAGE);
        put(&mut writer.bytes, at + chunk::SIZE, facts.as_bytes());
        writer.seal(at, kind::FACTS, PAGE, 0, 0, facts.as_bytes());
        writer.stores = stores;
        writer
    }

    /// From now on, `file` is kept as the bytes are.
    pub fn go_live(&mut self, file: File) {
        file.write_all_at(&self.bytes, 0).unwrap();
        self.live = Some(file);
    }

    /// Begins a thread; its index.
    pub fn thread(&mut self, tid: u32, inherited: u32) -> usize {
        let at = self.take(THREAD_CHUNK);
        let mut head = [0; thread::CHECK + 4 - thread::TID];
        put_u32(&mut head, 0, tid);
        put_u32(&mut head, thread::INHERITED - thread::TID, inherited);
        put_u64(&mut head, thread::STARTED - thread::TID, u64::from(tid));
        put_u32(
            &mut head,
            thread::FIRST - thread::TID,
            self.threads.len() as u32,
        );
        let sum = check::crc32c(&head[..thread::CHECK - thread::TID]);
        put_u32(&mut head, thread::CHECK - thread::TID, sum);
        self.store(at + thread::TID, &head);
        let index = self.threads.len();
        self.seal(at, kind::THREAD, THREAD_CHUNK, index as u32, 0, &[]);
        self.threads.push(ThreadWriter {
            chunk: at,
            encoder: Box::default(),
            next: at + thread::DATA,
            end: at + THREAD_CHUNK as usize,
            chunks: 0,
            committed: 0,
            symbols: 0,
            check: 0,
            staged: Vec::new(),
            stored: Vec::new(),
        });
        index
    }

    /// One event of a thread.
    pub fn event(&mut self, index: usize, symbol: u32) {
        self.call(index, symbol, 0);
    }

    /// A call that returns to `address`.
    pub fn call(&mut self, index: usize, symbol: u32, address: u32) {
        if self.threads[index].staged.len() == thread::STAGING_WORDS {
            self.commit(index);
        }
        let thread = &self.threads[index];
        let at = thread.chunk + thread::STAGING + 8 * thread.staged.len();
        let word = staging_word(symbol) | u64::from(address) << 32;
        let happened = self.store(at, &word.to_le_bytes());
        let thread = &mut self.threads[index];
        thread.staged.push(symbol);
        if happened {
            thread.stored.push(symbol);
        }
    }

    /// Return address of the call that is open at `depth` at the commit that follows.
    pub fn mirror(&mut self, index: usize, depth: usize, address: u64) {
        let at = self.threads[index].chunk + thread::MIRROR + 8 * (depth % thread::MIRROR_WORDS);
        self.store(at, &address.to_le_bytes());
    }

    /// Encodes and commits what is staged.
    pub fn commit(&mut self, index: usize) {
        let codec = self.codec;
        let thread = &mut self.threads[index];
        let staged = std::mem::take(&mut thread.staged);
        let mut output = Output(Vec::new());
        for symbol in &staged {
            assert!(thread.encoder.push(codec, *symbol, &mut output));
        }
        let tail = thread.encoder.tail(codec);
        self.append(index, &output.0);

        let thread = &mut self.threads[index];
        thread.committed += output.0.len() as u64;
        thread.symbols += staged.len() as u64;
        thread.check = check::extend(thread.check, &output.0);
        let mut area = [0; state::SIZE];
        put_u64(&mut area, state::BYTES, thread.committed);
        put_u64(&mut area, state::SYMBOLS, thread.symbols);
        put_u32(&mut area, state::STREAM_CHECK, thread.check);
        put_u32(&mut area, state::TAIL_LENGTH, tail.length as u32);
        put(&mut area, state::TAIL, &tail.bytes);
        let sum = check::crc32c(&area[..state::CHECK]);
        put_u32(&mut area, state::CHECK, sum);

        let at = thread.chunk;
        // The states are more than one store each.
        for half in [0, state::SIZE / 2] {
            self.store(
                at + thread::INTENT + half,
                &area[half..half + state::SIZE / 2],
            );
        }
        self.store(at + thread::PHASE, &1u32.to_le_bytes());
        for half in [0, state::SIZE / 2] {
            self.store(
                at + thread::COMMITTED + half,
                &area[half..half + state::SIZE / 2],
            );
        }
        for word in 0..staged.len() {
            self.store(at + thread::STAGING + 8 * word, &[0; 8]);
        }
        self.store(at + thread::PHASE, &0u32.to_le_bytes());
    }

    fn append(&mut self, index: usize, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.threads[index].next == self.threads[index].end {
                let at = self.take(DATA_CHUNK);
                self.threads[index].chunks += 1;
                let sequence = self.threads[index].chunks;
                self.seal(at, kind::DATA, DATA_CHUNK, index as u32, sequence, &[]);
                self.threads[index].next = at + chunk::SIZE;
                self.threads[index].end = at + DATA_CHUNK as usize;
            }
            let thread = &mut self.threads[index];
            let at = thread.next;
            let (now, rest) = bytes.split_at(bytes.len().min(thread.end - at));
            thread.next += now.len();
            self.store(at, now);
            bytes = rest;
        }
    }

    fn take(&mut self, length: u64) -> usize {
        let mut at = self.free as u64;
        if at + length > extent_end(at) {
            at = extent_end(at);
        }
        self.free = (at + length) as usize;
        if self.free > self.bytes.len() {
            self.bytes.resize(extent_end(at) as usize, 0);
            if let Some(file) = &self.live {
                file.set_len(self.bytes.len() as u64).unwrap();
            }
        }
        at as usize
    }

    /// A chunk of a kind that nobody knows yet.
    pub fn unknown(&mut self) {
        let at = self.take(PAGE);
        self.seal(at, 77, PAGE, 0, 0, b"of a later version");
        self.store(at + chunk::SIZE, b"of a later version");
    }

    fn seal(&mut self, at: usize, kind: u32, length: u64, index: u32, sequence: u32, used: &[u8]) {
        let mut head = [0; 32];
        put_u32(&mut head, chunk::MAGIC, chunk::MAGIC_VALUE);
        put_u32(&mut head, chunk::KIND, kind);
        put_u32(&mut head, chunk::LENGTH, length as u32);
        put_u32(&mut head, chunk::THREAD, index);
        put_u32(&mut head, chunk::SEQUENCE, sequence);
        put_u32(&mut head, chunk::USED, used.len() as u32);
        put_u32(&mut head, chunk::PAYLOAD_CHECK, check::crc32c(used));
        let sum = check::crc32c(&head[..chunk::CHECK]);
        put_u32(&mut head, chunk::CHECK, sum);
        self.store(at, &head);
    }

    fn store(&mut self, at: usize, bytes: &[u8]) -> bool {
        if self.stores == 0 {
            return false;
        }
        self.stores -= 1;
        if let Some(file) = &self.live {
            file.write_all_at(bytes, at as u64).unwrap();
        }
        put(&mut self.bytes, at, bytes)
    }

    /// Events of each thread that must be read: those whose store happened, if the thread's chunk
    /// was there by then.
    pub fn stored(&self) -> Vec<Vec<u32>> {
        self.threads
            .iter()
            .map(|thread| thread.stored.clone())
            .collect()
    }

    /// The file, without the unused end of its last extent.
    pub fn short(&self) -> &[u8] {
        &self.bytes[..self.free]
    }

    /// The file as it lies on disk.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
