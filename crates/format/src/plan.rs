//! The patch plan of one image: what to write where, relocatable, made by `patch` (which decodes
//! instructions) and applied by the probe (which never does).
//!
//! Applying a plan: map an *arena* from which displacements reach [`header::REACH_LOW`] to [`header::REACH_HIGH`], copy [`section::CODE`] into it, apply every
//! [`fixup`], fill the routine table, make it executable; then for every [`site`] check that the
//! text holds the expected bytes, and write the new ones. All or nothing per *group*: sites of one
//! group are written only if all of them hold what they should.
//!
//! # The arena
//!
//! ```text
//! 0                 208                                               64-byte aligned
//! ┌─────────────────┬─────────────────────────┬──────────────────────┬────────┬────────┬────
//! │ routine table   │ shadow import slots     │ rows of leaves       │ stub   │ stub   │ ...
//! │ 26 x u64        │ u64 each -> stub        │ ([`leaf`])           │        │        │
//! └─────────────────┴─────────────────────────┴──────────────────────┴────────┴────────┴────
//! ```
//!
//! Where there are rows of leaves, all before the stubs is the arena's *head* ([`header::HEAD`]): whole pages that stay
//! writable and are no code.
//!
//! Shadow slot k belongs to the k-th imported function (imports stand behind own functions).
//! A rewritten displacement (`call *slot(%rip)`, `jmp *slot(%rip)`) points to a shadow slot, which
//! holds the address of the import's stub; the stub calls through the real slot, read at call time.
//! A patched function entry (`jmp rel32`) leads to the function's stub.
//!
//! # Stubs
//!
//! A stub begins at a multiple of 64, S, with the [`crate::symbol::event_word`] of its function's
//! symbol; it is entered at [`stub::ENTRY`] (or [`stub::INLINE`]) with the stack as at a function's
//! entry: `[rsp]` is the return address R, and rsp is the *slot*. Every routine preserves all
//! registers but the flags.
//!
//! ```text
//! call-through (own function or import)     instant, jump, vfork, hook (import or own)
//! S+0   event word (u32), 0 (u32)           S+0   event word, distance or 0 ([`stub::RANGE`])
//! S+8   ff 15 ..        call *[ENTER]       S+8   ff 15 ..   call *[routine]
//! S+14  48 8d 64 24 08  lea 8(%rsp),%rsp    S+14  e9 ..      jmp S+40
//! S+19  90 e8 ..        nop; call S+40      S+19  cc ...
//!   or  ff 15 ..        call *[real slot]   S+40  body
//! S+25  48 8d 64 24 f8  lea -8(%rsp),%rsp    S+34  length (u32), 0 of imports ([`stub::LENGTH`])
//! S+30  ff 15 ..        call *[EXIT]
//! S+36  c3              ret
//! S+40  body
//! ```
//! *body*: of an own function (or hooked entry) the relocated first instructions and a jump back
//! behind them; of an import `ff 25 ..`, `jmp *[real slot]`.
//!
//! ENTER finds its return address S + 14 at `[rsp]`: so the event word, the body, and the *hook*,
//! the address S + 25 that the callee will find as its return address. Where it must not record (the
//! recorder itself was interrupted), it goes on at the body with R in place: the stub is then a plain
//! jump. Otherwise it keeps (R, slot, S) on the private shadow stack and returns to S + 14. EXIT is
//! entered with rsp = slot - 8 (its own return address S + 36 there) and writes R back into the slot.
//!
//! ```text
//!  at the stub       after ENTER, lea     in the body          back, lea -8       EXIT done, ret
//!  rsp -> R          rsp -> caller args   rsp -> S + 25        rsp -> (old)       rsp -> R
//!         args                                   caller args          args               args
//! ```
//!
//! ## Arguments
//!
//! The stub of an import whose arguments are recorded ([`crate::capture`]) is a call-through with a body
//! that takes them, and EXIT_ARGUMENTS in the place of EXIT:
//!
//! ```text
//! S+40  ff 15 ..   call *[ENTER_ARGUMENTS]
//! S+46  ff 25 ..   jmp *[real slot]
//! S+52  the capture program
//! ```
//! Other code may stand before that. ENTER_ARGUMENTS takes nothing where the call was not recorded: where the
//! newest frame is not this one, or R and not S + 25 lies in the slot.
//!
//! ## Times
//!
//! The stub of an import that may wait is a call-through with ENTER_TIMED at its body's head and EXIT_TIMED in the place of
//! EXIT: the time is read when the call has been recorded, and when its return has been. Of a call that took less than
//! [`SHORT`] ticks both are forgotten, unless [`stub::WAITS`] says otherwise.
//!
//! ```text
//! S+4   1 where times of short calls are kept, else 0
//! S+40  ff 15 ..   call *[ENTER_TIMED]
//! S+46  ff 25 ..   jmp *[real slot]
//! ```
//!
//! ## Objects
//!
//! The stub of an import that takes or gives back what threads wait for ([`crate::hold`]) is the same with ENTER_HOLD and EXIT_HOLD, which
//! go on as ENTER_TIMED and EXIT_TIMED when they have noted the object; that of one that gives back ends with EXIT_TIMED. [`stub::OBJECT`] says
//! which object it is.
//!
//! ## Patched returns
//!
//! Where every way out of a function can be rewritten, its return address stays where it is: the
//! entry records the call and goes on, and each `ret` was overwritten by a jump to an *exit*, which
//! records the return. Nothing that such a function does depends on what is recorded. A function
//! that cannot call, loop or wait (a *leaf*) records call and return by one symbol at its entry.
//!
//! ```text
//! patched returns, leaf                     exit (one for each ret, behind the stub, aligned to 8)
//! S+0   event word, 0                       X+0   0f 1f 44 00 00  nop                 (slow)
//! S+8   0f 1f 44 00 00  nop                 X+5   4c 8b 54 24 f0  mov -16(%rsp),%r10
//! S+13  4c 8b 54 24 f0  mov -16(%rsp),%r10  X+10  4c 8b 5c 24 f8  mov  -8(%rsp),%r11
//! S+18  4c 8b 5c 24 f8  mov  -8(%rsp),%r11  X+15  ff 15 ..        call *[RETURN]
//! S+23  ff 15 ..   call *[OPEN | LEAF]      X+21  c3 | c2 ..      ret
//! S+29  e9 ..      jmp body                 X+24  the moved instructions before the ret
//! S+40  inline: record, or jmp S+8          ...   inline: record, or jmp X
//! ...   body                                ...   ret
//!
//! tail jump to an own function G            tail jump to any other stub G (or out of the image)
//! X+0   ... as above, call *[HAND_OVER]     X+0   ... as above, call *[HAND_OVER | RETURN]
//! X+21  e9 ..      jmp G's stub             X+21  e9 ..      jmp G
//! X+32  inline: TAIL and G's call, then     X+32  inline: mark the frame as handed over (or record
//!       jmp G's body; or jmp X                    the return), jmp G; or jmp X
//! ```
//! Inline code uses r11 and r10, and rax in tail jumps to own functions, and keeps them at rsp - 8, - 16, - 24, which are
//! dead at an entry and before a `ret`; `nop`s stand where the slow way need not load one. Where nobody waits for r11 and r10
//! (`lockstep-patch` knows) they are not kept at all. It finds the thread's block ([`block`]) through a thread-local pointer at a
//! fixed distance from the thread pointer ([`fixup::THREAD_32`]). It goes the slow way (to S+8 or X) where the pointer is null,
//! [`block::BUSY`] is not 0, the shadow stack's newest frame is not the one expected ([`block::ENTRY_KEY`]), or the staging area
//! is full.
//!
//! ## Library functions that are leaves
//!
//! A call of a library function is recorded as a leaf where the code that its slot leads to is *closed* ([`closed`]). Which
//! code that is is known when the slot is bound, often by the first call. So such an import has three stubs and two
//! symbols: one that is a call, and behind those of all imports one that is a leaf. The third stub is that of a leaf, which has a
//! *gate* before what it records.
//!
//! ```text
//! BIND stub, where the shadow slot leads at first     leaf, from S+40 on
//! S+0   event word, 0                                 mov slot(%rip),%r11        the gate
//! S+8   ff 15 ..   call *[BIND]                       cmp target(%rip),%r11      ([`leaf::TARGET`])
//! S+14  ff 25 ..   jmp *next      ([`leaf::NEXT`])    jne the call-through stub
//! S+24  address of the row of [`leaf`]                record, or jmp S+8
//! S+40  ff 25 ..   jmp *[real slot]                   jmp *target(%rip)
//! ```
//! Where somebody waits for r10 and r11 behind a call, the gate keeps both first, and gives r11 back to calls that do not pass.
//! BIND looks where the real slot leads. Into the image itself: it is not bound, and BIND comes again with the next call. To
//! closed code: that becomes the target, and this call and all others go on at the gate. Elsewhere: they go on at the
//! call-through stub. Where that is known the shadow slot leads there from now on. A slot that is bound anew later does not pass the gate.
//!
//! ## Faults
//!
//! What a fault is put into ([`crate::fault`]) calls [`routine::FAULT`] with the stack as at the function's entry: behind the recording,
//! at the head of the body, or, where the call is not to be made, before the stub.
//!
//! ```text
//! body                                      before the stub
//! B+0   ff 15 ..     call *[FAULT]          F+0   ff 15 ..     call *[FAULT]
//! B+6   0f 1f 80 ..  nop flags              F+6   0f 1f 80 ..  nop flags
//! B+13  the body                            F+13  e9 ..        jmp S's entry (or the body)
//!                                           F+18  e9 | ff 25   jmp the function called instead
//! ```
//! In a body that takes arguments, FAULT stands behind ENTER_ARGUMENTS, so that those of a call that hangs are known; but before it
//! where the fault changes an argument: what the function gets is recorded.
//!
//! The same before other stubs with [`routine::FOLLOW`]: of all functions, where a call is to be
//! exchanged with the next one; of those in which a thread may begin, where threads are told apart.

/// First bytes of a plan.
pub const MAGIC: [u8; 8] = *b"LSPLAN\0\0";
/// Version of everything in this module.
pub const VERSION: u32 = 14;
/// The oldest version of which runs keep plans that readers understand ([`Plan::kept`]).
pub const OLDEST_KEPT: u32 = 12;

/// Offsets in the header, [`header::SIZE`] bytes.
pub mod header {
    /// `[u8; 8]`
    pub const MAGIC: usize = 0;
    /// `u32`
    pub const VERSION: usize = 8;
    /// `u32`, CRC-32C of bytes 16 to the end of the file.
    pub const CHECK: usize = 12;
    /// `u32`, [`super::Role`] as a number.
    pub const ROLE: usize = 16;
    /// `u32`, number of symbols that the image needs (its functions and imports).
    pub const SYMBOLS: usize = 20;
    /// `u64`, lowest address of the image's loadable segments, as in the file (bias 0).
    pub const LOW: usize = 24;
    /// `u64`, end of its highest segment.
    pub const HIGH: usize = 32;
    /// `u32`, 1 where the file's addresses are absolute (not PIE).
    pub const FIXED: usize = 40;
    /// `u32`, bytes of build id in use, 0 where the image has none.
    pub const BUILD_ID_LENGTH: usize = 44;
    /// `[u8; 32]`
    pub const BUILD_ID: usize = 48;
    /// [`super::section::COUNT`] pairs of `u32`: offset from the file's start, length in bytes.
    pub const SECTIONS: usize = 80;
    /// `u32`, bytes at the arena's start that are data, which is written to while the program runs: whole
    /// pages. 0 where all of the arena is code.
    pub const HEAD: usize = 168;
    /// `u32`, how many counters its refusals have.
    pub const COUNTERS: usize = 176;
    /// `u32`, functions and library calls that were not chosen to be recorded.
    pub const LEFT_OUT: usize = 184;
    /// `u32`, 1 where the image's own functions are recorded; 0 where there are hooks at most.
    pub const TRACED: usize = 180;
    /// `u32`, 1 where [`super::routine::SIGNALS`] is called before a handler is set by this libc.
    pub const SIGNALS: usize = 188;
    /// `i64`, lowest address in the file that the arena must reach, and that must reach the arena; below 0 where an
    /// instruction names what lies before a position-independent image.
    pub const REACH_LOW: usize = 192;
    /// `i64`, the highest one.
    pub const REACH_HIGH: usize = 200;
    /// Size of the header.
    pub const SIZE: usize = 208;
}

/// Sections of a plan, by index in the header's table.
pub mod section {
    /// The arena's initial bytes, routine table included (as zeros).
    pub const CODE: usize = 0;
    /// Rows of [`super::fixup`].
    pub const FIXUPS: usize = 1;
    /// Rows of [`super::site`].
    pub const SITES: usize = 2;
    /// Rows of [`super::function`], one a symbol, in symbol order.
    pub const FUNCTIONS: usize = 3;
    /// Rows of [`super::refusal`].
    pub const REFUSALS: usize = 4;
    /// Rows of [`super::call_site`], by return address.
    pub const CALL_SITES: usize = 5;
    /// Text that rows point into (UTF-8 where the image's own names are).
    pub const STRINGS: usize = 6;
    /// Rows of [`super::choice`]; none where everything was chosen.
    pub const CHOICES: usize = 7;
    /// Rows of [`super::export`], by name.
    pub const EXPORTS: usize = 8;
    /// Entries of functions whose calls from other images may be recorded as leaves: rows of
    /// [`super::closed`], ascending.
    pub const CLOSED: usize = 9;
    /// Rows of [`super::origin`], by their place in the arena.
    pub const ORIGINS: usize = 10;
    /// Number of sections.
    pub const COUNT: usize = 11;
    /// What a run keeps when it has been recorded: what readers need. The others are for the probe alone.
    pub const KEPT: [usize; 5] = [FUNCTIONS, REFUSALS, CALL_SITES, STRINGS, CHOICES];
}

/// What the image is to the probe. Whether its own functions are recorded is another question
/// ([`header::TRACED`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Role {
    /// The main program: own functions and calls into libraries.
    Main = 0,
    /// libgcc_s and its like: the entries that begin to unwind restore the return addresses.
    Unwinder = 1,
    /// An MPI library: `MPI_Init` and `MPI_Init_thread` set a flag.
    Mpi = 2,
    /// libc: `_exit` tells how the process ended.
    Libc = 3,
    /// Any other library: nothing, unless its own functions are recorded.
    Library = 4,
    /// The dynamic linker: where it has changed its list of images, new ones are patched. Its own
    /// functions are never recorded.
    Linker = 5,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 6] = [
        Self::Main,
        Self::Unwinder,
        Self::Mpi,
        Self::Libc,
        Self::Library,
        Self::Linker,
    ];

    /// The role with this number.
    #[must_use]
    pub const fn from_number(number: u32) -> Option<Self> {
        if (number as usize) < Self::ALL.len() {
            Some(Self::ALL[number as usize])
        } else {
            None
        }
    }

    /// The role with this word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Its word in a facts line, in a plan's file name, and on the command line of `__plan`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Unwinder => "unwinder",
            Self::Mpi => "mpi",
            Self::Libc => "libc",
            Self::Library => "library",
            Self::Linker => "linker",
        }
    }

    /// The role that a library's file name gives it.
    #[must_use]
    pub fn of_library(file_name: &str) -> Self {
        let is = |stem: &str| {
            file_name
                .strip_prefix(stem)
                .is_some_and(|rest| rest.starts_with(".so"))
        };
        let any = |stems: &[&str]| stems.iter().any(|stem| is(stem));
        if any(&["libgcc_s", "libunwind", "libunwind-x86_64"]) {
            Self::Unwinder
        } else if is("libc") {
            Self::Libc
        } else if any(&["libmpi", "libmpich", "libmpi_cray", "libmpi_intel"]) {
            Self::Mpi
        } else if is("ld-linux-x86-64") || file_name.starts_with("ld-2.") {
            Self::Linker
        } else {
            Self::Library
        }
    }

    /// Whether the library of this file name is part of an MPI library (its Fortran interface, a component that it loads): its own calls of MPI are none of the program's.
    #[must_use]
    pub fn is_part_of_mpi(file_name: &str) -> bool {
        const STEMS: [&str; 5] = ["libmpi", "libpmpi", "libompi", "libromio", "mca_"];
        STEMS.iter().any(|stem| file_name.starts_with(stem))
    }

    /// Whether it has hooks of its own, whatever is recorded.
    #[must_use]
    pub const fn has_hooks(self) -> bool {
        !matches!(self, Self::Library)
    }
}

/// Ticks of the time stamp counter: a call that takes fewer does not wait. About a microsecond.
pub const SHORT: u64 = 1 << 11;

/// Index in the routine table at the arena's start.
pub mod routine {
    /// Record a call, take the return address.
    pub const ENTER: usize = 0;
    /// Record the return, put the return address back.
    pub const EXIT: usize = 1;
    /// Record a call and its return at once (functions that return twice or read their caller).
    pub const INSTANT: usize = 2;
    /// Record a call that stays open, restore all return addresses (longjmp, exit, throw).
    pub const JUMP: usize = 3;
    /// As INSTANT, and record nothing until the child of vfork is gone.
    pub const VFORK: usize = 4;
    /// Restore all return addresses; no event.
    pub const RESTORE: usize = 5;
    /// MPI is being initialised; no event.
    pub const MPI: usize = 6;
    /// The process ends with the status in edi; no event.
    pub const END: usize = 7;
    /// Slow way of an entry with patched returns: record a call, leave the return address.
    pub const OPEN: usize = 8;
    /// Slow way of a leaf's entry: record a call and its return by one symbol.
    pub const LEAF: usize = 9;
    /// Slow way of a patched `ret`: record the return.
    pub const RETURN: usize = 10;
    /// Slow way of a patched tail jump: the frame hands over to the call that follows.
    pub const HAND_OVER: usize = 11;
    /// Record nothing until this process's next event: a child may run in its memory; no event.
    pub const SUSPEND: usize = 12;
    /// The dynamic linker's list of images has changed, or is about to; no event.
    pub const LOADED: usize = 13;
    /// A call into which a fault may be put (see [`crate::fault`]): goes on, or does something else.
    pub const FAULT: usize = 14;
    /// Take the arguments of a call that ENTER recorded; no event.
    pub const ENTER_ARGUMENTS: usize = 15;
    /// Take what a call gave back, then as EXIT.
    pub const EXIT_ARGUMENTS: usize = 16;
    /// A call before which another may have been postponed: goes on, or makes both.
    pub const FOLLOW: usize = 17;
    /// A signal's handler may be about to be set: the signal in edi, libc's `struct sigaction` at rsi; no event.
    pub const SIGNALS: usize = 18;
    /// A call of a library function of which it is not known yet whether it is a leaf (see [`super::leaf`]); no event.
    pub const BIND: usize = 19;
    /// A program is about to be executed: its environment in rdx; no event.
    pub const EXEC: usize = 20;
    /// Read the time of a call that ENTER recorded; no event.
    pub const ENTER_TIMED: usize = 21;
    /// Read the time, then as EXIT.
    pub const EXIT_TIMED: usize = 22;
    /// Note which object a call takes or gives back, then as ENTER_TIMED.
    pub const ENTER_HOLD: usize = 23;
    /// Note whether it got it, then as EXIT_TIMED.
    pub const EXIT_HOLD: usize = 24;
    /// Number of entries, used or not.
    pub const COUNT: usize = 26;
}

/// Offsets in a stub.
pub mod stub {
    /// `u8`, in a stub that calls EXIT_TIMED, EXIT_HOLD or EXIT_ARGUMENTS: 1 where times of short calls are kept.
    pub const WAITS: u32 = 4;
    /// `[u8; 2]`, in a stub that calls ENTER_HOLD: [`crate::hold::code`].
    pub const OBJECT: u32 = 5;
    /// Where a call-through, instant, jump, vfork or hook stub is entered.
    pub const ENTRY: u32 = 8;
    /// Call-through: the address that the callee finds as its return address.
    pub const HOOK: u32 = 25;
    /// The body of a stub that is entered at [`ENTRY`]; where patched returns and leaves are entered.
    pub const INLINE: u32 = 40;
    /// Stubs begin at multiples of it.
    pub const ALIGNMENT: u32 = 64;
    /// From the return address of ENTER_ARGUMENTS to the capture program.
    pub const CAPTURE: u32 = 6;
    /// Return address of the routine called at [`ENTRY`].
    pub const AFTER_ENTRY: u32 = 14;
    /// Call-through: return address of EXIT, where the stack is again as at the entry.
    pub const AFTER_EXIT: u32 = 36;
    /// `i32`, in a stub that calls OPEN, or JUMP if its function is the image's own: from behind this field to the function's
    /// first byte.
    pub const RANGE: u32 = 4;
    /// Return address of OPEN and LEAF.
    pub const AFTER_OPEN: u32 = 29;
    /// `u32`, in such a stub: how many bytes the function has in one piece; 0 in that of an import.
    pub const LENGTH: u32 = 34;
    /// In a stub that calls BIND: `u64`, address of its row of [`super::leaf`].
    pub const LEAF_ROW: u32 = 24;
}

/// What becomes of the calls of a library function that may be a leaf; [`leaf::SIZE`] bytes in the arena's head.
pub mod leaf {
    /// `u64`, the code that its calls lead to, once that is known to be closed; 0 before.
    pub const TARGET: usize = 0;
    /// `u64`, address of the image's slot.
    pub const SLOT: usize = 8;
    /// `u64`, address of the shadow slot.
    pub const SHADOW: usize = 16;
    /// `u64`, entry of the leaf's stub: the gate.
    pub const GATE: usize = 24;
    /// `u64`, where its calls go on: at the entry of the stub that calls through, or at the gate.
    pub const NEXT: usize = 32;
    /// `u64`, lowest address of the image: a slot that leads into it is not bound yet.
    pub const LOW: usize = 40;
    /// `u64`, end of the image.
    pub const HIGH: usize = 48;
    /// `u64`, how often BIND found the slot unbound.
    pub const TRIES: usize = 56;
    /// Size of a row.
    pub const SIZE: usize = 64;
}

/// What a piece of the arena's code stands for in the image; [`origin::SIZE`] bytes. A row reaches to the next one.
///
/// ```text
///  AT            AT + BODY              AT + BODY + LENGTH      next row's AT
///  |  records    |  a copy of LENGTH    |  records, goes on     |
///  |             |  bytes at ADDRESS    |                       |
///  ADDRESS       ADDRESS + distance     ADDRESS + LENGTH          stands for
///  ADDRESS + LENGTH (EXIT)
/// ```
/// A signal handler is told the image's address; whoever goes on where the image's text was overwritten goes on in the copy.
pub mod origin {
    /// `u32`, offset in the arena, with flags from [`FLAGS`] up.
    pub const AT: usize = 0;
    /// `u16`, from there to the copy.
    pub const BODY: usize = 4;
    /// `u16`, bytes of the copy, which are as many in the image.
    pub const LENGTH: usize = 6;
    /// `u32`, from the image's lowest address; [`NOWHERE`] if the piece stands for nothing in the image.
    pub const ADDRESS: usize = 8;
    /// `u32`, of the row with this number in the order of addresses: which row of this section it is.
    pub const ORDER: usize = 12;
    /// Size of a row.
    pub const SIZE: usize = 16;
    /// See [`ADDRESS`].
    pub const NOWHERE: u32 = u32::MAX;
    /// Everything below is an offset.
    pub const FLAGS: u32 = 1 << 28;
    /// Flag: the stub replaces the return address: for some of its instructions the stack is not as in the image.
    pub const THROUGH: u32 = 1 << 28;
    /// Flag: a jump in the image leads to the copy's first byte, or to the stub of a function.
    pub const FIRST: u32 = 1 << 29;
    /// Flag: the piece stands for what the image's slot at the address leads to.
    pub const SLOT: u32 = 1 << 30;
    /// Flag: what follows the copy in the image was overwritten, too.
    pub const EXIT: u32 = 1 << 31;
}

/// The entry of a function that is *closed*: from there until it returns nothing but its own image's code runs,
/// which calls nothing else, loops nowhere and waits for nothing; [`closed::SIZE`] bytes. One that goes on where the
/// image's choice of an implementation leads is closed if that is: it has a row for each such slot.
pub mod closed {
    /// `u64`, address in the file.
    pub const ADDRESS: usize = 0;
    /// `u64`, address of a slot (`R_X86_64_IRELATIVE`) that must lead to a closed function; 0 where there is none.
    pub const SLOT: usize = 8;
    /// Size of a row.
    pub const SIZE: usize = 16;
}

/// What inline code knows of a thread's private block (the probe's, never in a file).
pub mod block {
    /// `u64`, where the next staging word goes.
    pub const CURSOR: i32 = 0;
    /// `u64`, end of the staging area: no room from there on.
    pub const LIMIT: i32 = 8;
    /// `u64`, stack pointer of the event being recorded, all ones in a thread that records no more,
    /// or 0.
    pub const BUSY: i32 = 16;
    /// `u64`, behind the newest entry of the shadow stack.
    pub const TOP: i32 = 4096 + 256;
    /// An entry of the shadow stack is four words; there is always room for as many as the staging
    /// area has words.
    pub const ENTRY: i32 = 32;
    /// The entry's return address.
    pub const ENTRY_RETURN: i32 = 0;
    /// Its *key*, which one comparison with the stack pointer asks everything of: the slot, where the return
    /// address stands there; one less, where a hook does; [`QUESTIONED`], where only the slow way can
    /// tell whether the frame is still there.
    ///
    /// ```text
    ///  an entry may be pushed on it   stack pointer below the key     never below QUESTIONED
    ///  a patched `ret` is its own     stack pointer equal to the key  never equal to a slot less one
    /// ```
    pub const ENTRY_KEY: i32 = 8;
    /// See [`ENTRY_KEY`].
    pub const QUESTIONED: u64 = 0;
    /// Its stub's address, with the flags below in the low bits.
    pub const ENTRY_STUB: i32 = 16;
    /// The slot, where the key is [`QUESTIONED`].
    pub const ENTRY_ASIDE: i32 = 24;
    /// Flag: the return address stands in its slot.
    pub const PLAIN: u64 = 1;
    /// Flag: the frame jumps away for good (`longjmp`, `exit`, throw).
    pub const JUMP: u64 = 2;
    /// Flag: the frame has jumped to the function whose event comes next.
    pub const HANDED_OVER: u64 = 4;
    /// Flag: it could not be proved of the frame, which is questioned, that it is there.
    pub const UNPROVED: u64 = 8;
    /// Flag: a frame that may jump away, and nothing is noted yet of the older frames that it may have ended.
    pub const PENDING: u64 = 16;
    /// Flag: its stub calls through, and does not say which code is the function's.
    pub const THROUGH: u64 = 32;
}

/// A place in the arena that depends on where things are loaded; [`fixup::SIZE`] bytes.
pub mod fixup {
    /// `u32`, offset in the arena.
    pub const AT: usize = 0;
    /// `u32`, one of the kinds below.
    pub const KIND: usize = 4;
    /// `u64`
    pub const VALUE: usize = 8;
    /// Size of a row.
    pub const SIZE: usize = 16;

    /// 32-bit field = bias + value - (arena + at), wrapping; value includes what the instruction
    /// adds (an address A as target of a field that ends its instruction is A - 4).
    pub const RELATIVE_32: u32 = 0;
    /// 64-bit field = bias + value: an address in the image.
    pub const IMAGE_64: u32 = 1;
    /// 64-bit field = arena + value: an address in the arena.
    pub const ARENA_64: u32 = 2;
    /// 32-bit field = event word of symbol (first symbol of the image + value).
    pub const SYMBOL_32: u32 = 3;
    /// The same as a leaf's.
    pub const LEAF_32: u32 = 4;
    /// 32-bit field = distance of the thread-local pointer from the thread pointer.
    pub const THREAD_32: u32 = 5;
    /// 32-bit field, the last of an instruction, that becomes the displacement to a counter: value is
    /// its number among the image's. The page of counters follows the last page of the arena.
    pub const COUNTER_32: u32 = 6;
}

/// A place in the image's text to rewrite; [`site::SIZE`] bytes.
pub mod site {
    /// `u64`, address in the file (bias 0).
    pub const ADDRESS: usize = 0;
    /// `u32`, bytes to rewrite, at most 16.
    pub const LENGTH: usize = 8;
    /// `u32`, offset within the new bytes of a 32-bit field that becomes
    /// arena + target - (bias + address + field + 4); [`NO_FIELD`] where there is none.
    pub const FIELD: usize = 12;
    /// `u32`, offset in the arena.
    pub const TARGET: usize = 16;
    /// `u32`, group: all sites of a group are written or none.
    pub const GROUP: usize = 20;
    /// `[u8; 16]`, bytes that must be there.
    pub const OLD: usize = 24;
    /// `[u8; 16]`, bytes to write, before the field is set.
    pub const NEW: usize = 40;
    /// Size of a row.
    pub const SIZE: usize = 56;
    /// The new bytes are written as they are: a short jump to another site.
    pub const NO_FIELD: u32 = u32::MAX;
}

/// A function of the image, or one that it imports; [`function::SIZE`] bytes.
pub mod function {
    /// `u64`, entry in the file (own), or address of its GOT slot (import).
    pub const ADDRESS: usize = 0;
    /// `u64`, size in bytes (own); 0 for imports.
    pub const LENGTH: usize = 8;
    /// `u32`, offset of the linkage name in the strings; a function without one has `+0x1234`.
    pub const NAME: usize = 16;
    /// `u32`, its length.
    pub const NAME_LENGTH: usize = 20;
    /// `u32`, [`OWN`] or [`IMPORT`].
    pub const ORIGIN: usize = 24;
    /// `u32`, [`super::mechanism`].
    pub const MECHANISM: usize = 28;
    /// `u64`, address behind the one call instruction that the symbol stands for; 0 where it stands
    /// for every call of the function (all rows today). A symbol for each call site fits in so.
    pub const CALL_SITE: usize = 32;
    /// Size of a row.
    pub const SIZE: usize = 40;
    /// The image's own function.
    pub const OWN: u32 = 0;
    /// A library function that the image calls.
    pub const IMPORT: u32 = 1;
}

/// How a function is recorded.
pub mod mechanism {
    /// Call and return, by call-through.
    pub const CALL_THROUGH: u32 = 0;
    /// Call and return at once.
    pub const INSTANT: u32 = 1;
    /// Call; its return is inferred at the next event of the thread.
    pub const JUMP: u32 = 2;
    /// As INSTANT; the child is silent.
    pub const VFORK: u32 = 3;
    /// Call at the entry, return at patched `ret`s and tail jumps.
    pub const PATCHED_RETURNS: u32 = 4;
    /// Call and return by one symbol at the entry: readers expand it, except directly after
    /// [`crate::symbol::TAIL`] and among a forked child's inherited calls, where it is the call only. An import's
    /// second symbol ([`super::leaf`]) has the name of the first.
    pub const LEAF: u32 = 5;
}

/// A function that is not recorded, and why; [`refusal::SIZE`] bytes.
pub mod refusal {
    /// `u64`, address in the file (0 where unknown).
    pub const ADDRESS: usize = 0;
    /// `u32`, offset of the name in the strings.
    pub const NAME: usize = 8;
    /// `u32`, its length.
    pub const NAME_LENGTH: usize = 12;
    /// `u32`, offset of the reason in the strings.
    pub const REASON: usize = 16;
    /// `u32`, its length.
    pub const REASON_LENGTH: usize = 20;
    /// `u32`, [`CALLS`] or [`POINTERS`].
    pub const KIND: usize = 24;
    /// `u32`, 1 + the number of the counter that its direct calls count in; 0 where none does.
    pub const COUNTER: usize = 28;
    /// `u32`, 1 where it may be called in ways that are not counted.
    pub const MORE: usize = 32;
    /// Size of a row.
    pub const SIZE: usize = 40;
    /// The function's calls are not recorded.
    pub const CALLS: u32 = 0;
    /// Its address is taken: calls through that pointer are not recorded, if there are any.
    pub const POINTERS: u32 = 1;
}

/// A call in the image's text, or a jump to another function; or that a function's address is taken there.
/// [`call_site::SIZE`] bytes.
///
/// Return addresses of open frames are looked up here, and a call that is not open any more is
/// placed by its caller and callee (exactly where the caller calls it in one place only). What the code could call tells
/// what a compiler inlined from what a run did not come to.
pub mod call_site {
    /// `u64`, address behind the call instruction or the jump. 0 where there is none: the caller takes the callee's address, or where
    /// both are one function, data has it.
    pub const RETURN: usize = 0;
    /// `u32`, calling function, as a row of [`super::section::FUNCTIONS`].
    pub const CALLER: usize = 8;
    /// `u32`, called function likewise; `u32::MAX` for an indirect call.
    pub const CALLEE: usize = 12;
    /// Size of a row.
    pub const SIZE: usize = 16;
}

/// A regular expression that chose functions by name, or a name; [`choice::SIZE`] bytes.
pub mod choice {
    /// `u32`, [`TRACE`] or [`SKIP`].
    pub const KIND: usize = 0;
    /// `u32`, how many functions and library calls of the image it found.
    pub const FOUND: usize = 4;
    /// `u32`, offset of the expression in the strings.
    pub const PATTERN: usize = 8;
    /// `u32`, its length.
    pub const PATTERN_LENGTH: usize = 12;
    /// Size of a row.
    pub const SIZE: usize = 16;
    /// Only what one of these finds is recorded.
    pub const TRACE: u32 = 0;
    /// What one of these finds is not recorded.
    pub const SKIP: u32 = 1;
    /// No expression but the name of the function that a fault is put into; found: where it can happen.
    pub const FAULT: u32 = 2;
}

/// Exit status of the planner, `lockstep __plan`: what kept it from making all plans that it was asked for.
pub mod planner {
    /// Nothing: all are there.
    pub const DONE: u8 = 0;
    /// An image that is none, or anything else.
    pub const FAILED: u8 = 1;
    /// It ended before it knew what it was asked for: with words that are right, for lack of memory.
    pub const NOT_BEGUN: u8 = 2;
    /// No memory (`RLIMIT_AS`).
    pub const MEMORY: u8 = 3;
    /// No room for its files.
    pub const DISK: u8 = 4;
    /// No file descriptor was free (`RLIMIT_NOFILE`).
    pub const DESCRIPTORS: u8 = 5;
    /// It was called in another way than the probe does.
    pub const USAGE: u8 = 125;
}

/// A name under which other images call a recorded function of this one; [`export::SIZE`] bytes.
///
/// A call from the main program into a library whose own functions are recorded is recorded there:
/// the probe leaves the main program's calls of these names as they are.
pub mod export {
    /// `u32`, offset of the name in the strings.
    pub const NAME: usize = 0;
    /// `u32`, its length.
    pub const NAME_LENGTH: usize = 4;
    /// `u32`, the function, as a row of [`super::section::FUNCTIONS`].
    pub const FUNCTION: usize = 8;
    /// Size of a row.
    pub const SIZE: usize = 12;
}

mod origins;
mod view;
pub use origins::{Origins, StandsFor};
pub use view::{CallSite, Choice, Fixup, Function, Plan, PlanError, Refusal, Site};
