//! Decides what to rewrite in an image, and how: the relocatable patch plan that the probe applies.
//!
//! The principal function is [`plan`]: the bytes of an ELF file in, the bytes of a plan out (its
//! layout, and what the stubs look like, is [`lockstep_format::plan`]). [`explain`] prints a plan.
//!
//! *Guarantees*: pure and deterministic (same bytes, same plan); no `unsafe`; no panic on any input.
//! Every function of the image (every frame description that is a function) is either recorded or
//! has a refusal with a reason; what is recorded keeps its meaning: no branch of the image reaches
//! a byte that was overwritten, except through the stub, and the ways out of a function are all
//! rewritten or none. [`check`] applies a plan to a copy of its image and decodes the result again;
//! tests hold every plan against it.
//!
//! *How a function is recorded*, the first that can be: as a leaf, by one event; at its entry and at
//! every way out, which are rewritten; by call-through, which replaces its return address; at its
//! entry alone, where its name says that it returns twice or elsewhere; else not, with a reason.
//! [`plan_with_reasons`] says why a function's returns are not patched.
//! A library function is recorded by call-through, or as a leaf where the code that its slot leads to is *closed*: the plan of a
//! library whose own functions are not recorded lists those, and the probe compares when it is called.
//! *Costs*: one linear decode of the image's functions, on as many threads as there are processors; about 0.2 s for 20,000 functions.
//! *Not for*: writing into memory (the probe does, byte by byte as the plan says).
#![forbid(unsafe_code)]

mod arena;
mod before;
mod bind;
mod capture;
mod change;
mod check;
mod choice;
mod closed;
mod computed;
mod counted;
mod domain;
mod entry;
mod exits;
mod explain;
mod fate;
mod fault;
mod flow;
mod hoisted;
mod imports;
mod inline;
mod leaf;
mod library;
mod make;
mod names;
mod origins;
mod own;
mod padding;
mod parallel;
mod part;
mod quick;
mod reach;
mod relocate;
mod scratch;
mod sensitive;
mod shapes;
mod sheet;
mod slots;
mod sorted;
mod stubs;
mod survey;
mod tables;
mod write;

use lockstep_format::plan::Role;

pub use check::{Checked, check};
pub use choice::Options;
pub use explain::explain;
pub use fault::{Fault, is_named};

/// Why there is no plan for an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanFailure {
    /// The file is not an image that can be recorded.
    #[error(transparent)]
    Unsuitable(#[from] lockstep_binary::Unsuitable),
    /// A regular expression that does not parse.
    #[error("the pattern '{pattern}' is not a regular expression: {reason}")]
    Pattern {
        /// The expression.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// What a plan is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scope {
    /// What the image is to the probe.
    pub role: Role,
    /// Of a library: record its own functions. (Those of the main program always are.)
    pub own_functions: bool,
    /// Of a library whose own functions are recorded: record its calls into other libraries, too. (Those of
    /// the main program always are.) Where all images are recorded, they are the others' own functions.
    pub library_calls: bool,
    /// Of a library whose own functions are not recorded: record its calls of MPI, and the functions that make them. So a program
    /// that leaves communication to a library is in MPI as any other is.
    pub mpi_calls: bool,
}

impl From<Role> for Scope {
    /// Hooks alone, but for the main program.
    fn from(role: Role) -> Self {
        Self {
            role,
            own_functions: false,
            library_calls: false,
            mpi_calls: false,
        }
    }
}

/// Makes the plan of an image in the bytes of its file. Names come from its symbol tables, and from the
/// compressed one that a stripped file may have.
///
/// # Errors
/// Why there can be no plan. A function that cannot be recorded is no error but a refusal in the plan.
pub fn plan(
    bytes: &[u8],
    scope: impl Into<Scope>,
    options: &Options,
) -> Result<Vec<u8>, PlanFailure> {
    Ok(make::make(bytes, None, scope.into(), options)?.plan)
}

/// The same with the names of `debug`, a file of debug information for the image.
///
/// # Errors
/// As [`plan`].
pub fn plan_with_names(
    bytes: &[u8],
    debug: &[u8],
    scope: impl Into<Scope>,
    options: &Options,
) -> Result<Vec<u8>, PlanFailure> {
    Ok(make::make(bytes, Some(debug), scope.into(), options)?.plan)
}

/// A plan, and what it does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The plan's bytes.
    pub plan: Vec<u8>,
    /// The own functions that are recorded by call-through, though less would do.
    pub unpatched: Vec<Unpatched>,
}

/// A function whose returns are not patched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpatched {
    /// Its row in the plan's functions.
    pub row: u32,
    /// Why not.
    pub reason: String,
}

/// As [`plan`], and tells why returns are not patched.
///
/// # Errors
/// As [`plan`].
pub fn plan_with_reasons(
    bytes: &[u8],
    scope: impl Into<Scope>,
    options: &Options,
) -> Result<Made, PlanFailure> {
    make::make(bytes, None, scope.into(), options)
}

/// What identifies a file that has no build id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity<'a> {
    /// Its path as the loader has it.
    pub path: &'a [u8],
    /// Its size in bytes.
    pub size: u64,
    /// When it was last modified: seconds and nanoseconds.
    pub modified: (i64, i64),
}

/// The name of an image's plan, without `.plan`: the build id in hex, else something of the file's
/// identity and this tool's version.
#[must_use]
pub fn image_key(build_id: &[u8], file: &FileIdentity<'_>) -> String {
    use lockstep_format::check::{crc32c, extend};
    if build_id.len() >= 8 {
        return build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    }
    let (seconds, nanoseconds) = file.modified;
    let check = extend(crc32c(file.path), &seconds.to_le_bytes());
    let check = extend(check, &nanoseconds.to_le_bytes());
    let check = extend(check, env!("CARGO_PKG_VERSION").as_bytes());
    format!(
        "file-{:x}-{:08x}",
        file.size,
        extend(check, &lockstep_format::plan::VERSION.to_le_bytes())
    )
}

/// The file name of the plan of the image with this key, made with this choice: `KEY-ROLE.plan` where
/// nothing is left out, else `KEY-ROLE-DIGEST.plan`. All processes of a run record the same images, so
/// that it need not tell whether the image's own functions are recorded.
#[must_use]
pub fn plan_name(key: &str, role: Role, options: &Options) -> String {
    let role = role.name();
    match options.digest() {
        digest if digest.is_empty() => format!("{key}-{role}.plan"),
        digest => format!("{key}-{role}-{digest}.plan"),
    }
}

/// What tells this patcher from others: another one may make another plan of the same image.
#[must_use]
pub fn patcher() -> &'static str {
    env!("LOCKSTEP_PATCHER")
}
