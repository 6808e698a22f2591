//! A plan as it lies in memory, checked once, then read row by row.

use super::{
    Origins, Role, call_site, choice, closed, export, fixup, function, header, origin, refusal,
    section, site,
};
use crate::bytes::{array, u32_at, u64_at};
use crate::check;

/// Why bytes are not a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanError {
    /// The magic is not there.
    Magic,
    /// Another version, which is given.
    Version(u32),
    /// The checksum does not hold: cut off or damaged.
    Check,
    /// A section lies outside the file or is no whole number of rows.
    Section(usize),
    /// A row points outside what it points into: section and row.
    Row(usize, usize),
}

/// A checked plan. Every row's offsets lie within what they point into.
#[derive(Debug, Clone, Copy)]
pub struct Plan<'a> {
    bytes: &'a [u8],
    role: Role,
    sections: [&'a [u8]; section::COUNT],
}

/// A row of [`super::fixup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Fixup {
    pub at: u32,
    pub kind: u32,
    pub value: u64,
}

/// A row of [`super::site`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Site {
    pub address: u64,
    pub length: u32,
    pub field: u32,
    pub target: u32,
    pub group: u32,
    pub old: [u8; 16],
    pub new: [u8; 16],
}

/// A row of [`super::function`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Function<'a> {
    pub address: u64,
    pub length: u64,
    pub name: &'a [u8],
    pub origin: u32,
    pub mechanism: u32,
    pub call_site: u64,
}

/// A row of [`super::refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Refusal<'a> {
    pub address: u64,
    pub name: &'a [u8],
    pub reason: &'a [u8],
    pub kind: u32,
    pub counter: Option<u32>,
    pub more: bool,
}

/// A row of [`super::call_site`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CallSite {
    pub return_address: u64,
    pub caller: u32,
    pub callee: u32,
}

/// A row of [`super::choice`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Choice<'a> {
    pub kind: u32,
    pub found: u32,
    pub pattern: &'a [u8],
}

const ROW_SIZES: [usize; section::COUNT] = [
    1,
    fixup::SIZE,
    site::SIZE,
    function::SIZE,
    refusal::SIZE,
    call_site::SIZE,
    1,
    choice::SIZE,
    export::SIZE,
    closed::SIZE,
    origin::SIZE,
];

impl<'a> Plan<'a> {
    /// Checks `bytes` and every row in them.
    ///
    /// # Errors
    /// What is wrong first; nothing of a wrong plan can be used.
    pub fn new(bytes: &'a [u8]) -> Result<Self, PlanError> {
        Self::checked_by(bytes, check::extend)
    }

    /// The same with another implementation of [`check::extend`].
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn checked_by(
        bytes: &'a [u8],
        extend: impl Fn(u32, &[u8]) -> u32,
    ) -> Result<Self, PlanError> {
        let plan = Self::checked(bytes, super::VERSION, |_| true, extend)?;
        if plan.code().len() < 8 * super::routine::COUNT {
            return Err(PlanError::Section(section::CODE));
        }
        Ok(plan)
    }

    /// What a run keeps of a plan, or the plan itself while the run is being recorded: the sections of [`section::KEPT`], which
    /// are the same in every version from [`super::OLDEST_KEPT`] on. All others are empty.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn kept(bytes: &'a [u8], extend: impl Fn(u32, &[u8]) -> u32) -> Result<Self, PlanError> {
        let is_kept = |index| section::KEPT.contains(&index);
        Self::checked(bytes, super::OLDEST_KEPT, is_kept, extend)
    }

    fn checked(
        bytes: &'a [u8],
        oldest: u32,
        is_read: impl Fn(usize) -> bool,
        extend: impl Fn(u32, &[u8]) -> u32,
    ) -> Result<Self, PlanError> {
        if array::<8>(bytes, header::MAGIC) != Some(super::MAGIC) {
            return Err(PlanError::Magic);
        }
        let version = u32_at(bytes, header::VERSION).ok_or(PlanError::Check)?;
        if !(oldest..=super::VERSION).contains(&version) {
            return Err(PlanError::Version(version));
        }
        let body = bytes.get(header::SIZE..).ok_or(PlanError::Check)?;
        // The header's own fields are covered too, except magic, version and the check itself.
        let fields = bytes
            .get(header::ROLE..header::SIZE)
            .ok_or(PlanError::Check)?;
        if u32_at(bytes, header::CHECK) != Some(extend(extend(0, fields), body)) {
            return Err(PlanError::Check);
        }
        let role = u32_at(bytes, header::ROLE)
            .and_then(Role::from_number)
            .ok_or(PlanError::Check)?;
        let mut sections: [&[u8]; section::COUNT] = [&[]; section::COUNT];
        for (index, slot) in sections.iter_mut().enumerate().filter(|it| is_read(it.0)) {
            let row = header::SECTIONS + 8 * index;
            let read = |at| u32_at(bytes, at).map(|value| value as usize);
            *slot = read(row)
                .zip(read(row + 4))
                .and_then(|(start, length)| bytes.get(start..start.checked_add(length)?))
                .filter(|section| section.len().is_multiple_of(ROW_SIZES[index]))
                .ok_or(PlanError::Section(index))?;
        }
        let plan = Self {
            bytes,
            role,
            sections,
        };
        plan.check_rows()?;
        Ok(plan)
    }

    fn check_rows(&self) -> Result<(), PlanError> {
        let code = self.code().len();
        let functions = self.sections[section::FUNCTIONS].len() / function::SIZE;
        let head = self.head() as usize;
        if code > 0 && head > code || !head.is_multiple_of(4096) {
            return Err(PlanError::Section(section::CODE));
        }
        if self.symbols() as usize != functions {
            return Err(PlanError::Section(section::FUNCTIONS));
        }
        let strings = self.sections[section::STRINGS].len();
        let text_in = |row: &[u8], at| {
            u32_at(row, at)
                .zip(u32_at(row, at + 4))
                .is_some_and(|(start, length)| start as usize + length as usize <= strings)
        };
        for (index, row) in self.rows::<{ fixup::SIZE }>(section::FIXUPS).enumerate() {
            let kind = u32_at(row, fixup::KIND).unwrap_or(u32::MAX);
            let room = if matches!(kind, fixup::IMAGE_64 | fixup::ARENA_64) {
                8
            } else {
                4
            };
            let at = u32_at(row, fixup::AT).unwrap_or(u32::MAX) as usize;
            if at + room > code || kind > fixup::COUNTER_32 {
                return Err(PlanError::Row(section::FIXUPS, index));
            }
        }
        for (index, site) in self.sites().enumerate() {
            let is_field =
                site.field == site::NO_FIELD || site.field.saturating_add(4) <= site.length;
            if site.length > 16 || !is_field || site.target as usize >= code {
                return Err(PlanError::Row(section::SITES, index));
            }
        }
        for (index, row) in self
            .rows::<{ function::SIZE }>(section::FUNCTIONS)
            .enumerate()
        {
            if !text_in(row, function::NAME) {
                return Err(PlanError::Row(section::FUNCTIONS, index));
            }
        }
        for (index, row) in self
            .rows::<{ refusal::SIZE }>(section::REFUSALS)
            .enumerate()
        {
            if !text_in(row, refusal::NAME) || !text_in(row, refusal::REASON) {
                return Err(PlanError::Row(section::REFUSALS, index));
            }
        }
        for (index, row) in self.rows::<{ choice::SIZE }>(section::CHOICES).enumerate() {
            if !text_in(row, choice::PATTERN) {
                return Err(PlanError::Row(section::CHOICES, index));
            }
        }
        if let Some(index) = self.origins().wrong(code) {
            return Err(PlanError::Row(section::ORIGINS, index));
        }
        let known = |f: u32| (f as usize) < functions;
        for (index, row) in self.rows::<{ export::SIZE }>(section::EXPORTS).enumerate() {
            let function = u32_at(row, export::FUNCTION).unwrap_or(u32::MAX);
            if !text_in(row, export::NAME) || !known(function) {
                return Err(PlanError::Row(section::EXPORTS, index));
            }
        }
        for (index, site) in self.calls_and_takers().enumerate() {
            if !known(site.caller) || !(site.callee == u32::MAX || known(site.callee)) {
                return Err(PlanError::Row(section::CALL_SITES, index));
            }
        }
        Ok(())
    }

    /// The rows of a section, whose size the compiler knows: their fields lie inside without a question.
    fn rows<const SIZE: usize>(
        &self,
        index: usize,
    ) -> impl Iterator<Item = &'a [u8; SIZE]> + use<'a, SIZE> {
        debug_assert_eq!(SIZE, ROW_SIZES[index]);
        self.sections[index].as_chunks::<SIZE>().0.iter()
    }

    /// What the image is.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether the image's own functions are recorded.
    #[must_use]
    pub fn is_traced(&self) -> bool {
        u32_at(self.bytes, header::TRACED) == Some(1)
    }

    /// Whether the probe is told before this libc sets a signal's handler.
    #[must_use]
    pub fn tells_of_signals(&self) -> bool {
        u32_at(self.bytes, header::SIGNALS) == Some(1)
    }

    /// Number of symbols that the image needs.
    #[must_use]
    pub fn symbols(&self) -> u32 {
        u32_at(self.bytes, header::SYMBOLS).unwrap_or(0)
    }

    /// Addresses of the image in the file: lowest and end.
    #[must_use]
    pub fn extent(&self) -> (u64, u64) {
        let read = |at| u64_at(self.bytes, at).unwrap_or(0);
        (read(header::LOW), read(header::HIGH))
    }

    /// Addresses in the file that the arena must reach: lowest and highest. Below 0 they wrap.
    #[must_use]
    pub fn reach(&self) -> (u64, u64) {
        let read = |at| u64_at(self.bytes, at).unwrap_or(0);
        (read(header::REACH_LOW), read(header::REACH_HIGH))
    }

    /// Whether the image is loaded at the file's own addresses (not PIE).
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        u32_at(self.bytes, header::FIXED) == Some(1)
    }

    /// The image's build id; empty where it has none.
    #[must_use]
    pub fn build_id(&self) -> &'a [u8] {
        let length = u32_at(self.bytes, header::BUILD_ID_LENGTH)
            .unwrap_or(0)
            .min(32) as usize;
        self.bytes
            .get(header::BUILD_ID..header::BUILD_ID + length)
            .unwrap_or(&[])
    }

    /// The arena's initial bytes.
    #[must_use]
    pub fn code(&self) -> &'a [u8] {
        self.sections[section::CODE]
    }

    /// What to adjust in the arena.
    pub fn fixups(&self) -> impl Iterator<Item = Fixup> + use<'a> {
        self.rows::<{ fixup::SIZE }>(section::FIXUPS)
            .map(|row| Fixup {
                at: u32_at(row, fixup::AT).unwrap_or(0),
                kind: u32_at(row, fixup::KIND).unwrap_or(0),
                value: u64_at(row, fixup::VALUE).unwrap_or(0),
            })
    }

    /// What to rewrite in the image.
    pub fn sites(&self) -> impl Iterator<Item = Site> + use<'a> {
        self.rows::<{ site::SIZE }>(section::SITES).map(|row| Site {
            address: u64_at(row, site::ADDRESS).unwrap_or(0),
            length: u32_at(row, site::LENGTH).unwrap_or(0),
            field: u32_at(row, site::FIELD).unwrap_or(0),
            target: u32_at(row, site::TARGET).unwrap_or(0),
            group: u32_at(row, site::GROUP).unwrap_or(0),
            old: array(row, site::OLD).unwrap_or([0; 16]),
            new: array(row, site::NEW).unwrap_or([0; 16]),
        })
    }

    fn text(&self, row: &[u8], at: usize) -> &'a [u8] {
        u32_at(row, at)
            .zip(u32_at(row, at + 4))
            .and_then(|(start, length)| {
                let start = start as usize;
                self.sections[section::STRINGS].get(start..start.checked_add(length as usize)?)
            })
            .unwrap_or(&[])
    }

    /// The functions, in symbol order.
    pub fn functions(&self) -> impl Iterator<Item = Function<'a>> + use<'a> {
        let plan = *self;
        self.rows::<{ function::SIZE }>(section::FUNCTIONS)
            .map(move |row| Function {
                address: u64_at(row, function::ADDRESS).unwrap_or(0),
                length: u64_at(row, function::LENGTH).unwrap_or(0),
                name: plan.text(row, function::NAME),
                origin: u32_at(row, function::ORIGIN).unwrap_or(0),
                mechanism: u32_at(row, function::MECHANISM).unwrap_or(0),
                call_site: u64_at(row, function::CALL_SITE).unwrap_or(0),
            })
    }

    /// Whether calls of `name` from other images are recorded here.
    #[must_use]
    pub fn records_export(&self, name: &[u8]) -> bool {
        let (rows, _) = self.sections[section::EXPORTS].as_chunks::<{ export::SIZE }>();
        rows.binary_search_by(|row| self.text(row, export::NAME).cmp(name))
            .is_ok()
    }

    /// The names under which other images call recorded functions: name, and row of the function.
    pub fn exports(&self) -> impl Iterator<Item = (&'a [u8], u32)> + use<'a> {
        let plan = *self;
        self.rows::<{ export::SIZE }>(section::EXPORTS)
            .map(move |row| {
                let function = u32_at(row, export::FUNCTION).unwrap_or(0);
                (plan.text(row, export::NAME), function)
            })
    }

    /// The functions that are not recorded.
    pub fn refusals(&self) -> impl Iterator<Item = Refusal<'a>> + use<'a> {
        let plan = *self;
        self.rows::<{ refusal::SIZE }>(section::REFUSALS)
            .map(move |row| Refusal {
                address: u64_at(row, refusal::ADDRESS).unwrap_or(0),
                name: plan.text(row, refusal::NAME),
                reason: plan.text(row, refusal::REASON),
                kind: u32_at(row, refusal::KIND).unwrap_or(0),
                counter: u32_at(row, refusal::COUNTER).and_then(|counter| counter.checked_sub(1)),
                more: u32_at(row, refusal::MORE) != Some(0),
            })
    }

    /// The calls in the text and the jumps to other functions, by the address behind them.
    pub fn call_sites(&self) -> impl Iterator<Item = CallSite> + use<'a> {
        self.calls_and_takers()
            .filter(|site| site.return_address != 0)
    }

    /// Functions whose addresses are taken, each behind the function that takes it; behind itself where data has it.
    pub fn takers(&self) -> impl Iterator<Item = (u32, u32)> + use<'a> {
        self.calls_and_takers()
            .filter(|site| site.return_address == 0)
            .map(|site| (site.caller, site.callee))
    }

    fn calls_and_takers(&self) -> impl Iterator<Item = CallSite> + use<'a> {
        self.rows::<{ call_site::SIZE }>(section::CALL_SITES)
            .map(|row| CallSite {
                return_address: u64_at(row, call_site::RETURN).unwrap_or(0),
                caller: u32_at(row, call_site::CALLER).unwrap_or(0),
                callee: u32_at(row, call_site::CALLEE).unwrap_or(0),
            })
    }

    /// Bytes at the arena's start that stay writable and are no code: whole pages.
    #[must_use]
    pub fn head(&self) -> u32 {
        u32_at(self.bytes, header::HEAD).unwrap_or(0)
    }

    /// Entries of closed functions, ascending, each with the slot that must lead to another, or 0.
    pub fn closed(&self) -> impl ExactSizeIterator<Item = [u64; 2]> + use<'a> {
        let (rows, _) = self.sections[section::CLOSED].as_chunks::<{ closed::SIZE }>();
        rows.iter()
            .map(|row| [closed::ADDRESS, closed::SLOT].map(|at| u64_at(row, at).unwrap_or(0)))
    }

    /// What pieces of the arena stand for.
    #[must_use]
    pub fn origins(&self) -> Origins<'a> {
        Origins::new(
            self.sections[section::ORIGINS]
                .as_chunks::<{ origin::SIZE }>()
                .0,
        )
    }

    /// How many counters its refusals have.
    #[must_use]
    pub fn counters(&self) -> u32 {
        u32_at(self.bytes, header::COUNTERS).unwrap_or(0)
    }

    /// How many functions and library calls were not chosen to be recorded.
    #[must_use]
    pub fn left_out(&self) -> u32 {
        u32_at(self.bytes, header::LEFT_OUT).unwrap_or(0)
    }

    /// The expressions that chose.
    pub fn choices(&self) -> impl Iterator<Item = Choice<'a>> + use<'a> {
        let plan = *self;
        self.rows::<{ choice::SIZE }>(section::CHOICES)
            .map(move |row| Choice {
                kind: u32_at(row, choice::KIND).unwrap_or(0),
                found: u32_at(row, choice::FOUND).unwrap_or(0),
                pattern: plan.text(row, choice::PATTERN),
            })
    }
}
