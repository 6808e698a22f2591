//! The fault that is put into this process (`lockstep inject`): the slow way of the routine FAULT,
//! which the calls of one function go through.
//!
//! What is to be done ([`ORDER`]) is the same for a process and its forked children; what is known
//! of the process ([`Here`]) lies in pages that the kernel wipes in a child. In each thread a number
//! counts down to the chosen call (`Hot::fault_left`), so that a call costs four instructions until
//! then. What a process tells of it goes to a file of its own (`lockstep_format::fault::report`).
//!
//! Here it is decided what happens; a thread sleeps, hangs or returns on the program's own stack with
//! its signals as they were (`x86_64::fault`).

use crate::event;
use crate::image::Image;
use crate::lock::Lock;
use crate::planner;
use crate::process::{Process, map_extent, start_time};
use crate::program;
use crate::setup::Setup;
use crate::syscall::{
    self, AS_IT_IS, Errno, MADV_WIPEONFORK, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDONLY,
    O_RDWR, O_WRONLY, Stat,
};
use crate::text::{Text, decimal, file_name};
use crate::thread::{NO_SLOT, Thread};
use crate::x86_64::fault as act;
use crate::x86_64::slow::Frame;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use lockstep_format::bytes::put_u64;
use lockstep_format::fault::{Fault, Kind, Order, place, report};
use lockstep_format::launcher::STARTERS;

/// A number that no call count reaches.
const NEVER: i64 = i64::MAX;

/// What is to be done, where.
struct Plan {
    order: Order,
    /// The process's number where its launcher tells it.
    rank: Option<u32>,
    /// The program is a launcher: no process of the job.
    is_launcher: bool,
}

/// Images whose functions return addresses are looked up in.
const IMAGES: usize = 256;

/// A patched image: where it lies, its load bias, and the name of its plan.
struct Patched {
    extent: (u64, u64),
    bias: u64,
    plan: Text<192>,
}

/// Those that were patched, the last one last. What does not fit is not known.
struct AllPatched {
    count: AtomicU32,
    images: UnsafeCell<[MaybeUninit<Patched>; IMAGES]>,
}

// SAFETY: written by one at a time behind `count`, and read below it.
unsafe impl Sync for AllPatched {}

static PATCHED: AllPatched = AllPatched {
    count: AtomicU32::new(0),
    images: UnsafeCell::new([const { MaybeUninit::uninit() }; IMAGES]),
};

/// Notes an image that was patched as the plan of this name says, where the fault needs it.
///
/// # Safety
/// By one at a time.
pub unsafe fn know(plan_name: Text<192>, image: &Image) {
    let is_needed = plan().is_some_and(|plan| plan.order.kind == Kind::Swap);
    let count = PATCHED.count.load(Ordering::Relaxed) as usize;
    if !is_needed || count >= IMAGES {
        return;
    }
    let patched = Patched {
        extent: image.extent(),
        bias: image.bias,
        plan: plan_name,
    };
    let images = PATCHED.images.get().cast::<Patched>();
    // SAFETY: inside the array, and nobody reads it there yet; the caller's promise.
    unsafe { images.add(count).write(patched) };
    PATCHED.count.store(count as u32 + 1, Ordering::Release);
}

/// Where the patched function begins that an address lies in.
fn function_of(address: u64) -> Option<u64> {
    let count = PATCHED.count.load(Ordering::Acquire) as usize;
    // SAFETY: written up to there, and not changed any more.
    let images =
        unsafe { core::slice::from_raw_parts(PATCHED.images.get().cast::<Patched>(), count) };
    // The last, where others lay there before.
    let mut images = images.iter().rev();
    let image = images.find(|it| (it.extent.0..it.extent.1).contains(&address))?;
    let found = planner::read(image.plan).ok()?;
    let address = address.wrapping_sub(image.bias);
    let mut functions = found.plan.functions();
    let function = functions.find(|f| {
        f.origin == lockstep_format::plan::function::OWN
            && (f.address..f.address.saturating_add(f.length)).contains(&address)
    })?;
    Some(image.bias.wrapping_add(function.address))
}

struct Place(UnsafeCell<Option<Plan>>);

// SAFETY: written in the constructor only, before anything else of ours can run.
unsafe impl Sync for Place {}

static PLAN: Place = Place(UnsafeCell::new(None));

fn plan() -> Option<&'static Plan> {
    // SAFETY: nobody writes after the constructor.
    unsafe { (*PLAN.0.get()).as_ref() }
}

/// Takes the fault on that `text` describes; `rank` is the process's number where it is known. False
/// where the text is damaged.
///
/// # Safety
/// In the constructor only.
pub unsafe fn take_on(text: &[u8], rank: Option<u32>, program: &[u8]) -> bool {
    let fault = core::str::from_utf8(text).ok().and_then(Fault::parse);
    let (Some(fault), Ok(())) = (fault, Here::reserve()) else {
        return false;
    };
    let plan = Plan {
        order: fault.order,
        rank,
        is_launcher: rank.is_none() && STARTERS.iter().any(|s| s.as_bytes() == file_name(program)),
    };
    // SAFETY: the caller's promise.
    unsafe { *PLAN.0.get() = Some(plan) };
    // Numbers go by the order in which processes begin.
    if let Some(here) = Here::get() {
        here.number();
    }
    true
}

/// Whether this process is to be recorded.
pub fn records() -> bool {
    plan().is_none_or(|plan| plan.order.records)
}

/// What is known of this process. All zeros is one that nobody has looked at yet.
#[repr(C)]
struct Here {
    lock: Lock,
    pid: AtomicU32,
    /// The process's number plus 2; 1 where it has none.
    number: AtomicU32,
    /// The fault happened here, or in a process of the same number.
    is_over: AtomicU32,
    rows: AtomicU32,
    report: AtomicPtr<u8>,
    /// Threads that were seen in the program's code, and those that were not when they were waited
    /// for; other than the first one.
    noticed: Threads,
    strangers: Threads,
}

/// Kernel's numbers of threads. What does not fit is forgotten.
#[repr(C)]
struct Threads {
    count: AtomicU32,
    ids: [AtomicU32; 4096],
}

impl Threads {
    fn add(&self, id: u32) {
        let index = self.count.fetch_add(1, Ordering::AcqRel) as usize;
        if let Some(place) = self.ids.get(index) {
            place.store(id, Ordering::Release);
        }
    }

    fn all(&self) -> impl Iterator<Item = u32> + '_ {
        let count = self.count.load(Ordering::Acquire) as usize;
        let ids = self.ids.iter().take(count);
        ids.map(|id| id.load(Ordering::Acquire))
            .filter(|id| *id != 0)
    }

    fn has(&self, id: u32) -> bool {
        self.all().any(|other| other == id)
    }
}

static HERE: AtomicPtr<Here> = AtomicPtr::new(null_mut());
/// Where calls are counted that no report has room for.
static UNCOUNTED: AtomicU64 = AtomicU64::new(0);

impl Here {
    fn reserve() -> Result<(), Errno> {
        const LENGTH: usize = size_of::<Here>().next_multiple_of(4096);
        let at = syscall::map(LENGTH)?;
        // SAFETY: fresh memory of ours.
        unsafe { syscall::advise(at, LENGTH, MADV_WIPEONFORK)? };
        HERE.store(at.cast(), Ordering::Release);
        Ok(())
    }

    fn get() -> Option<&'static Self> {
        // SAFETY: null, or reserved for ever; zeros are a valid value.
        unsafe { HERE.load(Ordering::Acquire).as_ref() }
    }

    /// Whether this is the process that the pages belong to: not so in a child of `vfork`.
    fn is_own(&self) -> bool {
        let pid = syscall::pid();
        match self
            .pid
            .compare_exchange(0, pid, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => true,
            Err(found) => found == pid,
        }
    }

    /// The process's number: its rank, else its place in the order of start.
    fn number(&self) -> Option<u32> {
        let plan = plan()?;
        if self.number.load(Ordering::Acquire) == 0 {
            self.lock.with(|| {
                if self.number.load(Ordering::Acquire) == 0 {
                    let found = match plan.rank {
                        None if plan.is_launcher => None,
                        None => place_in_order(),
                        rank => rank,
                    };
                    let kept = found.map_or(1, |number| number.saturating_add(2));
                    self.number.store(kept, Ordering::Release);
                }
            });
        }
        self.number.load(Ordering::Acquire).checked_sub(2)
    }

    /// The report, made where it is missing; null where it cannot be.
    fn report(&self) -> *mut u8 {
        let none = core::ptr::dangling_mut::<u8>();
        if self.report.load(Ordering::Acquire).is_null() {
            let number = self.number();
            self.lock.with(|| {
                if self.report.load(Ordering::Acquire).is_null() {
                    let made = make_report(number).unwrap_or(none);
                    self.report.store(made, Ordering::Release);
                }
            });
        }
        match self.report.load(Ordering::Acquire) {
            found if found == none => null_mut(),
            found => found,
        }
    }

    /// Where a thread's calls are counted.
    fn row(&self, number: u32) -> *mut u64 {
        let report = self.report();
        let row = self.rows.fetch_add(1, Ordering::Relaxed) as usize;
        if report.is_null() || row >= report::MOST_ROWS {
            return UNCOUNTED.as_ptr();
        }
        // SAFETY: inside the report, aligned.
        unsafe {
            let at = report.add(report::FIRST_ROW + row * report::ROW);
            let place = at.add(report::ROW_THREAD).cast::<u32>();
            place.write_volatile(number.wrapping_add(1));
            word(report, report::ROWS).fetch_max(row as u32 + 1, Ordering::Release);
            at.add(report::ROW_CALLS).cast()
        }
    }
}

/// # Safety
/// `report` is one, and has an aligned word there.
unsafe fn word<'a>(report: *mut u8, at: usize) -> &'a AtomicU32 {
    // SAFETY: the caller's promise.
    unsafe { AtomicU32::from_ptr(report.add(at).cast()) }
}

/// The path of a file in the run's directory of reports, zero-terminated.
fn path_of(name: &[u8]) -> Text<4608> {
    let mut path = Text::new();
    path.push(Setup::get().run.bytes());
    path.push(b"/");
    path.push(report::DIRECTORY.as_bytes());
    path.push(b"/");
    path.push(name);
    path.push(b"\0");
    path
}

/// This process's place among those of the run by start; it takes the next if it has none.
fn place_in_order() -> Option<u32> {
    let mut own = [0u8; report::ORDER_ROW];
    put_u64(&mut own, 0, u64::from(syscall::pid()));
    put_u64(&mut own, 8, start_time());
    let path = path_of(report::ORDER.as_bytes());
    if let Some(found) = find_row(&path, &own) {
        // A program that replaced another is the same process.
        return Some(found);
    }
    let flags = O_WRONLY | O_CREAT | O_APPEND | AS_IT_IS;
    let file = syscall::open(path.bytes(), flags).ok()?;
    file.stat().ok().filter(Stat::is_regular)?;
    file.append(&own).ok()?;
    find_row(&path, &own)
}

fn find_row(path: &Text<4608>, own: &[u8; report::ORDER_ROW]) -> Option<u32> {
    let file = syscall::open(path.bytes(), O_RDONLY | AS_IT_IS).ok()?;
    file.stat().ok().filter(Stat::is_regular)?;
    let mut number = 0;
    let mut buffer = [0u8; 4096];
    let mut filled = 0;
    loop {
        let read = file.read(buffer.get_mut(filled..)?).ok()?;
        if read == 0 {
            return None;
        }
        filled += read;
        let whole = filled - filled % report::ORDER_ROW;
        for row in buffer.get(..whole)?.chunks_exact(report::ORDER_ROW) {
            if row == own {
                return Some(number);
            }
            number += 1;
        }
        buffer.copy_within(whole..filled, 0);
        filled -= whole;
    }
}

fn make_report(number: Option<u32>) -> Option<*mut u8> {
    let setup = Setup::get();
    let (pid, start) = (syscall::pid(), start_time());
    for count in 0..1000 {
        let mut name = Text::<256>::new();
        name.push(setup.host.bytes());
        for number in [u64::from(pid), start, count] {
            name.push(b"-");
            name.push_decimal(number);
        }
        name.push(report::SUFFIX.as_bytes());
        let path = path_of(name.bytes());
        let file = match syscall::open(path.bytes(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW) {
            Ok(file) => file,
            // A former program of this process.
            Err(Errno::EEXIST) => continue,
            Err(_) => return None,
        };
        let at = map_extent(&file, 0, report::SIZE as u64).ok()?;
        // SAFETY: just mapped, as long as this.
        unsafe {
            word(at, report::PROCESS).store(number.map_or(0, |n| n + 1), Ordering::Relaxed);
            let magic = at.add(report::MAGIC).cast::<[u8; 8]>();
            magic.write_volatile(report::MAGIC_VALUE);
        }
        return Some(at);
    }
    None
}

/// How long a thread waits for others that were made before it to reach the program's code.
const PATIENCE: u64 = 100_000_000;

/// What the planner knows of the place that a call comes from.
fn flags(frame: &Frame) -> u32 {
    // SAFETY: the call of the routine is followed by an instruction that holds the flags.
    unsafe { ((frame.slot + place::FLAGS as u64) as *const u32).read_unaligned() }
}

/// Remembers that a thread runs the program's code. A library's says nothing of that, but the first thread began there.
fn notice(thread: &mut Thread, frame: &Frame, here: &Here) {
    if flags(frame) & place::LIBRARY != 0 && syscall::tid() != syscall::pid() {
        return;
    }
    if thread.hot.fault_slot == 0 && here.is_own() {
        thread.hot.fault_slot = NO_SLOT;
        let id = syscall::tid();
        if id != syscall::pid() {
            here.noticed.add(id);
        }
    }
}

/// A thread's number: 0 for the one that started the process, then by creation among those that run
/// the program's code.
///
/// One that was made earlier and has not come there yet is waited for; if it does not come, it is a
/// library's helper.
fn thread_number(here: &Here, plan: &Plan, pid: u32, tid: u32) -> u32 {
    if tid == pid {
        return 0;
    }
    if !here.noticed.has(tid) {
        return report::HELPER;
    }
    let is_earlier = |other: u32| other.wrapping_sub(pid) < tid.wrapping_sub(pid);
    let start = syscall::monotonic();
    while plan.order.thread != Some(0) {
        let mut is_complete = true;
        let is_late = syscall::monotonic().saturating_sub(start) > PATIENCE;
        syscall::each_thread(|other| {
            let is_known = other == pid || here.noticed.has(other) || here.strangers.has(other);
            if is_earlier(other) && !is_known {
                is_complete = false;
                if is_late {
                    here.strangers.add(other);
                }
            }
        });
        if is_complete || is_late {
            break;
        }
        syscall::nap();
    }
    let earlier = here.noticed.all().filter(|other| is_earlier(*other));
    1 + earlier.count() as u32
}

/// The slow way of FAULT: a thread that nobody has looked at, or its chosen call.
///
/// `frame.stub` is where the routine ends, `frame.slot` the place behind its call, and the word behind
/// that the return address of the program's call.
// Its stack is larger than that of all events.
#[cold]
#[inline(never)]
pub fn fault(thread: &mut Thread, frame: &mut Frame) {
    let (Some(plan), Some(here)) = (plan(), Here::get()) else {
        return;
    };
    if !here.is_own() {
        // A child of `vfork`: what it does to the memory it does to its parent's.
        if thread.hot.fault_row.is_null() {
            thread.hot.fault_left = 0;
        } else {
            thread.hot.fault_left = thread.hot.fault_left.saturating_add(1);
        }
        return;
    }
    if thread.hot.fault_row.is_null() {
        begin(thread, frame, plan, here);
        thread.hot.fault_left -= 1;
    }
    // SAFETY: a counter in the report, or one of ours.
    unsafe { AtomicU64::from_ptr(thread.hot.fault_row) }.fetch_add(1, Ordering::Relaxed);
    if thread.hot.fault_slot > NO_SLOT {
        follow(thread, frame);
        let is_over = thread.hot.fault_slot == NO_SLOT;
        thread.hot.fault_left = if is_over { NEVER } else { 0 };
        return;
    }
    if thread.hot.fault_left > 0 {
        return;
    }
    thread.hot.fault_left = NEVER;
    if here.is_over.swap(1, Ordering::AcqRel) == 0 && claim(plan) {
        happen(thread, frame, plan, here);
    }
}

/// The first call in a thread.
fn begin(thread: &mut Thread, frame: &Frame, plan: &Plan, here: &Here) {
    if !records()
        && let Some(process) = Process::get()
    {
        thread.tid = syscall::tid();
        process.keep(thread);
    }
    let order = &plan.order;
    notice(thread, frame, here);
    let number = thread_number(here, plan, syscall::pid(), syscall::tid());
    let is_chosen = |chosen: Option<u32>, found: Option<u32>| chosen.is_none() || chosen == found;
    let is_here = is_chosen(order.process, here.number()) && !plan.is_launcher;
    let is_this = is_chosen(order.thread, Some(number));
    thread.hot.fault_thread = number;
    thread.hot.fault_row = here.row(number);
    thread.hot.fault_left = if is_here && is_this {
        i64::try_from(order.call).unwrap_or(NEVER)
    } else {
        NEVER
    };
}

/// Whether the fault happens here and in no other process of this number.
fn claim(plan: &Plan) -> bool {
    if plan.order.process.is_none() {
        return true;
    }
    let path = path_of(report::CLAIM.as_bytes());
    let made = syscall::open(path.bytes(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
    // Where it cannot be written, nobody else can either.
    !matches!(made, Err(Errno::EEXIST))
}

fn happen(thread: &mut Thread, frame: &mut Frame, plan: &Plan, here: &Here) {
    let order = &plan.order;
    tell(thread, here, order.call, report::HAPPENED);
    match order.kind {
        Kind::Hang if order.spins => frame.stub = act::spin as *const () as u64,
        Kind::Hang => frame.stub = act::hang as *const () as u64,
        Kind::Delay => {
            act::set_deadline(syscall::monotonic().saturating_add(order.nanoseconds));
            frame.stub = act::delay as *const () as u64;
        }
        Kind::Skip => {
            act::set_result(order.float);
            frame.set_result(order.value as u64);
            frame.stub = act::skip as *const () as u64;
        }
        Kind::Exit => {
            if let Some(process) = Process::get().filter(|_| order.records) {
                let slot = &raw const frame.slot as u64 + 8;
                event::finish(thread, process, slot, Some(order.value as u32));
            }
            syscall::exit_group(order.value as i32);
        }
        Kind::Argument => set_argument(frame, order),
        Kind::Redirect => frame.slot += place::OTHER as u64,
        Kind::Swap => {
            tell(thread, here, order.call, report::POSTPONED);
            let slot = &raw const frame.slot as u64 + 8;
            // SAFETY: the program's frame, and the registers that the routine found.
            unsafe { act::POSTPONED.keep(frame.of_call(), thread.vectors(), frame.slot, slot) };
            thread.hot.fault_slot = slot;
            // SAFETY: the program's return address.
            thread.hot.fault_return = unsafe { (slot as *const u64).read() };
            // Another call of this very function may be the next one.
            thread.hot.fault_left = 0;
            act::set_result(0);
            frame.set_result(0);
            frame.stub = act::skip as *const () as u64;
        }
    }
}

/// How far apart the return addresses of two calls from one frame may lie on the stack, for arguments
/// that are pushed.
const NEAR: u64 = 8 * act::STACK_WORDS as u64;

/// The slow way of FOLLOW: a thread is new, or a call has been postponed in this thread. If this one comes from the same
/// frame, both are made, this one first.
///
/// The frame is told by where its calls' return addresses stand: in one place, or nearly so where one
/// of the calls pushes arguments, and then they lie in one function. A frame that was entered since
/// has its own below, and what is above is there only when the frame is gone.
pub fn follow(thread: &mut Thread, frame: &mut Frame) {
    let Some((plan, here)) = plan().zip(Here::get()) else {
        return;
    };
    notice(thread, frame, here);
    if thread.hot.fault_slot <= NO_SLOT {
        return;
    }
    let (first, first_return) = (thread.hot.fault_slot, thread.hot.fault_return);
    let slot = &raw const frame.slot as u64 + 8;
    // SAFETY: the program's return address.
    let found = unsafe { (slot as *const u64).read() };
    let is_same = slot == first
        || slot.abs_diff(first) <= NEAR
            && function_of(found)
                .is_some_and(|function| function_of(first_return) == Some(function));
    if is_same {
        // SAFETY: a call is postponed in this thread.
        unsafe { act::POSTPONED.keep_first(slot) };
        frame.stub = act::both as *const () as u64;
        tell(thread, here, plan.order.call, report::HAPPENED);
        thread.hot.fault_slot = NO_SLOT;
    } else if slot > first {
        tell(thread, here, plan.order.call, report::ALONE);
        thread.hot.fault_slot = NO_SLOT;
    }
}

/// Says what happened.
fn tell(thread: &Thread, here: &Here, call: u64, state: u32) {
    let report = here.report();
    if report.is_null() {
        return;
    }
    // SAFETY: fields of the report.
    unsafe {
        word(report, report::THREAD).store(thread.hot.fault_thread, Ordering::Relaxed);
        AtomicU64::from_ptr(report.add(report::CALL).cast()).store(call, Ordering::Relaxed);
        word(report, report::STATE).store(state, Ordering::Release);
    }
}

/// What a Fortran callee finds instead of its argument.
static COPY: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];

fn set_argument(frame: &mut Frame, order: &Order) {
    let value = if flags(frame) & place::BY_REFERENCE == 0 {
        order.value as u64
    } else {
        let [copy, ..] = &COPY;
        copy.store(order.value as u64, Ordering::Relaxed);
        copy.as_ptr() as u64
    };
    if !frame.set_argument(order.argument, value) {
        // Behind the return address; these words belong to the callee.
        let slot = &raw const frame.slot as u64 + 8;
        let at = slot + 8 * u64::from(order.argument.saturating_sub(6));
        // Whoever chose this argument says that the function has it.
        program::write(at, value, slot);
    }
}

/// The number in an environment variable.
pub fn number(text: &[u8]) -> Option<u32> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| u32::try_from(decimal(text)).ok())?
}

/// The names of a directory of numbers, as `getdents64` gives them.
pub fn numbers_in(entries: &[u8], mut visit: impl FnMut(u32)) {
    let mut rest = entries;
    while let Some(head) = rest.get(..19) {
        let length = usize::from(u16::from_le_bytes([head[16], head[17]]));
        let Some(entry) = rest.get(19..length) else {
            return;
        };
        let name = crate::text::until_zero(entry);
        if let Some(number) = number(name) {
            visit(number);
        }
        rest = rest.get(length..).unwrap_or(&[]);
    }
}
