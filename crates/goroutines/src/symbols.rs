//! What a Go program's addresses mean: whose code stands there, and where in the source.
//!
//! Records hold offsets into the text. Before a run, each 32 bytes of it (what functions are aligned to) are told
//! apart by [`Program::classes`], so that the hooks decide by one look whether a usage counts; after it,
//! [`Symbols`] turns offsets into places.

use crate::execution::Site;
use lockstep_binary::{DebugSections, Frame, Frames, Image};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Nobody's that counts.
pub const OTHER: u8 = 0;
/// The program's.
pub const USER: u8 = 1;
/// A wrapper: its caller counts.
pub const WRAPPER: u8 = 2;
/// A library's: it counts, at the place in the program that called.
pub const LIBRARY: u8 = 3;

/// Debug information beyond this is not read.
const MOST_DEBUG: usize = 1 << 30;
/// What functions are aligned to.
const GRAIN: u64 = 32;

/// Standard packages whose usages others wait for.
const LIBRARIES: [&str; 7] = [
    "context",
    "io",
    "net",
    "net/http",
    "database/sql",
    "os/exec",
    "vendor/golang.org/x/net/http2",
];

/// Methods that are usages: a promoted one is called from a wrapper.
const METHODS: [&str; 13] = [
    "Lock",
    "Unlock",
    "RLock",
    "RUnlock",
    "TryLock",
    "TryRLock",
    "Add",
    "Done",
    "Wait",
    "Go",
    "Do",
    "Signal",
    "Broadcast",
];

/// Why a program cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The file.
    #[error("{} cannot be read: {reason}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It is none of ours.
    #[error("expected a Go program with its symbols, found {}: {reason}", path.display())]
    Unsuitable {
        /// Which.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// A Go program's functions and debug information.
#[derive(Debug)]
pub struct Program {
    text: u64,
    end: u64,
    functions: Vec<(u64, String)>,
    sections: DebugSections,
    bytes: Vec<u8>,
    standard: PathBuf,
    tested: Option<String>,
}

impl Program {
    /// Reads the program at `path`, built by the toolchain at `root`. `tested` is a standard package that is under
    /// test itself, and so the program's.
    ///
    /// # Errors
    /// Where it cannot be read or has no symbols.
    pub fn open(path: &Path, root: &Path, tested: Option<&str>) -> Result<Self, ProgramError> {
        let bytes = std::fs::read(path).map_err(|error| ProgramError::Read {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        let unsuitable = |reason: String| ProgramError::Unsuitable {
            path: path.to_owned(),
            reason,
        };
        let image = Image::parse(&bytes).map_err(|error| unsuitable(error.to_string()))?;
        let mut functions: Vec<(u64, String)> = image
            .function_symbols()
            .iter()
            .map(|it| (it.address, String::from_utf8_lossy(it.name).into_owned()))
            .collect();
        let of = |name: &str| functions.iter().find(|it| it.1 == name).map(|it| it.0);
        let (Some(text), Some(end)) = (of("runtime.text"), of("runtime.etext")) else {
            return Err(unsuitable(
                "no symbol table (built with -ldflags=-s?)".into(),
            ));
        };
        functions.retain(|it| it.1 != "runtime.text" && it.1 != "runtime.etext");
        functions.sort();
        functions.dedup_by_key(|it| it.0);
        let sections = DebugSections::of(&image, MOST_DEBUG);
        Ok(Self {
            text,
            end,
            functions,
            sections,
            bytes,
            standard: root.join("src"),
            tested: tested.map(str::to_owned),
        })
    }

    /// A program of which no more is known than where functions begin.
    pub(crate) fn of_functions(names: &[&str], size: u64) -> Self {
        let starts = (0..).map(|it: u64| it * size);
        Self {
            text: 0,
            end: size * names.len() as u64,
            functions: starts
                .zip(names.iter().map(|it| (*it).to_owned()))
                .collect(),
            sections: DebugSections::default(),
            bytes: Vec::new(),
            standard: PathBuf::new(),
            tested: None,
        }
    }

    /// The class of each 32 bytes of the text.
    #[must_use]
    pub fn classes(&self) -> Vec<u8> {
        let length = self.end.saturating_sub(self.text).min(1 << 31);
        let mut classes = vec![OTHER; (length / GRAIN + 1) as usize];
        let symbols = Symbols::of(self);
        for (index, (address, name)) in self.functions.iter().enumerate() {
            if *address < self.text || *address >= self.end {
                continue;
            }
            let class = symbols.class(*address, name);
            if class == OTHER {
                continue;
            }
            let end = self
                .functions
                .get(index + 1)
                .map_or(self.end, |next| next.0.min(self.end));
            let first = ((address - self.text) / GRAIN) as usize;
            let last = (end.saturating_sub(self.text).div_ceil(GRAIN) as usize).min(classes.len());
            if let Some(part) = classes.get_mut(first..last) {
                part.fill(class);
            }
        }
        classes
    }

    /// The function around an address.
    fn function(&self, address: u64) -> Option<&(u64, String)> {
        let after = self.functions.partition_point(|it| it.0 <= address);
        self.functions.get(after.checked_sub(1)?)
    }
}

/// Places of a program's addresses; each is looked up once.
pub struct Symbols<'a> {
    program: &'a Program,
    frames: Option<Frames<'a>>,
    standard: RefCell<HashMap<String, bool>>,
    known: RefCell<HashMap<u32, Vec<Site>>>,
}

impl std::fmt::Debug for Symbols<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").finish_non_exhaustive()
    }
}

impl<'a> Symbols<'a> {
    /// Those of `program`.
    #[must_use]
    pub fn of(program: &'a Program) -> Self {
        Self {
            program,
            frames: Frames::new(&program.sections),
            standard: RefCell::default(),
            known: RefCell::default(),
        }
    }

    /// The places of a return address, the innermost first; nothing for 0.
    #[must_use]
    pub fn places(&self, offset: u32) -> Vec<Site> {
        if offset == 0 {
            return Vec::new();
        }
        if let Some(found) = self.known.borrow().get(&offset) {
            return found.clone();
        }
        let address = self.program.text + u64::from(offset) - 1;
        let mut found: Vec<Site> = self
            .frames_at(address)
            .into_iter()
            .map(|frame| Site {
                function: unrenamed(plain(&frame.function)),
                file: frame.file,
                line: frame.line,
            })
            .collect();
        if found.is_empty()
            && let Some((_, name)) = self.program.function(address)
        {
            found.push(Site {
                function: unrenamed(plain(name)),
                file: String::new(),
                line: 0,
            });
        }
        self.known.borrow_mut().insert(offset, found.clone());
        found
    }

    /// The program's innermost place of a return address; the innermost of all where there is none of the program's.
    #[must_use]
    pub fn place(&self, offset: u32) -> Option<Site> {
        let places = self.places(offset);
        let users = places.iter().find(|it| self.is_user(&it.function));
        users.or(places.first()).cloned()
    }

    /// Whether the function that begins at the offset is the program's or a library's, and what it is called.
    /// What `go f(x)` makes is told by `f`.
    #[must_use]
    pub fn entry(&self, offset: u32) -> String {
        let address = self.program.text + u64::from(offset).saturating_sub(1);
        let Some((start, name)) = self.program.function(address) else {
            return String::new();
        };
        if name.contains(".gowrap") {
            return self.wrapped(*start).unwrap_or_else(|| name.clone());
        }
        unrenamed(name)
    }

    /// What the wrapper that begins there calls, or had inlined.
    fn wrapped(&self, start: u64) -> Option<String> {
        let image = Image::parse(&self.program.bytes).ok()?;
        let next = self.program.functions.partition_point(|it| it.0 <= start);
        let end = self.program.functions.get(next)?.0.min(start + 1024);
        let code = image.bytes_at(start, end - start)?;
        for at in 0..code.len() as u64 {
            let frames = self.frames_at(start + at);
            if let [.., inlined, _] = frames.as_slice() {
                return Some(inlined.function.clone());
            }
        }
        let calls = code.windows(5).enumerate().filter(|(_, it)| it[0] == 0xe8);
        for (at, call) in calls {
            let distance = i32::from_le_bytes([call[1], call[2], call[3], call[4]]);
            let target = (start + at as u64 + 5).wrapping_add_signed(i64::from(distance));
            if let Ok(index) = self
                .program
                .functions
                .binary_search_by_key(&target, |it| it.0)
            {
                let name = &self.program.functions[index].1;
                if !name.starts_with("runtime.") {
                    return Some(name.clone());
                }
            }
        }
        None
    }

    fn frames_at(&self, address: u64) -> Vec<Frame> {
        self.frames
            .as_ref()
            .map(|it| it.at(address))
            .unwrap_or_default()
    }

    /// An offset in each 32 bytes of the functions with such names.
    #[must_use]
    pub fn offsets(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<u32> {
        let functions = &self.program.functions;
        let ends = functions.iter().skip(1).map(|it| it.0);
        let mut found = Vec::new();
        for ((start, name), end) in functions.iter().zip(ends) {
            if is_wanted(name) && *start >= self.program.text {
                let of = |address: u64| u32::try_from(address - self.program.text + 1);
                let grains = (*start..end).step_by(GRAIN as usize);
                found.extend(grains.filter_map(|it| of(it).ok()));
            }
        }
        found
    }

    /// Whether a function is the program's own.
    #[must_use]
    pub fn is_user(&self, function: &str) -> bool {
        match package(function) {
            Some(package) => !self.is_standard(&package),
            None => false,
        }
    }

    fn is_standard(&self, package: &str) -> bool {
        if self.program.tested.as_deref() == Some(package) {
            return false;
        }
        if let Some(known) = self.standard.borrow().get(package) {
            return *known;
        }
        let found = package != "main" && self.program.standard.join(package).is_dir();
        self.standard.borrow_mut().insert(package.to_owned(), found);
        found
    }

    fn class(&self, address: u64, name: &str) -> u8 {
        let Some(package) = package(name) else {
            return OTHER;
        };
        if package == "sync" {
            return match name {
                _ if name.ends_with("-fm") => WRAPPER,
                _ if [
                    "sync.(*rlocker).",
                    "sync.Once",
                    "sync.(*Map).",
                    "sync.lockstepHere",
                ]
                .iter()
                .any(|it| name.starts_with(it)) =>
                {
                    WRAPPER
                }
                _ if name.starts_with("sync.(*Cond).lockstepWait") => LIBRARY,
                _ if name.starts_with("sync.(*WaitGroup).lockstepGo.") => LIBRARY,
                _ => OTHER,
            };
        }
        if package == "sync/atomic"
            && [
                "sync/atomic.(*",
                "sync/atomic.Lockstep",
                "sync/atomic.lockstepHere",
            ]
            .iter()
            .any(|it| name.starts_with(it))
        {
            return WRAPPER;
        }
        if self.is_standard(&package) {
            return if LIBRARIES.contains(&package.as_str()) {
                LIBRARY
            } else {
                OTHER
            };
        }
        // What stands for a method that is a usage itself (`T.Lock` of an embedded lock, as a value or promoted) has
        // nothing else in it; that of a method of the program's own with such a name may hold its code, inlined.
        let method = name.rsplit('.').next().unwrap_or_default();
        let is_value = method.ends_with("-fm");
        if METHODS.contains(&method.trim_end_matches("-fm"))
            && (is_value
                || self
                    .frames_at(address)
                    .first()
                    .is_some_and(|it| it.file == "<autogenerated>"))
            && !self.holds_own_code(address)
        {
            return WRAPPER;
        }
        USER
    }

    /// Whether something of the program's that stands in its source was inlined into the function that begins there.
    fn holds_own_code(&self, start: u64) -> bool {
        let next = self.program.functions.partition_point(|it| it.0 <= start);
        let end = self.program.functions.get(next).map_or(start, |it| it.0);
        let is_own = |it: &Frame| it.file != "<autogenerated>" && self.is_user(&it.function);
        (start..end.min(start + 4096)).any(|at| match self.frames_at(at).as_slice() {
            [inlined @ .., _] => inlined.iter().any(is_own),
            [] => false,
        })
    }
}

/// The path of the package that a function is of: `example.com/m/p` of `example.com/m/p.(*T).Do[...]`.
#[must_use]
pub fn package(function: &str) -> Option<String> {
    if function.starts_with("type:") || function.starts_with("go:") {
        return None;
    }
    let plain = function.split('[').next().unwrap_or(function);
    let last = plain.rfind('/').map_or(0, |at| at + 1);
    let dot = plain[last..].find('.')? + last;
    (dot > 0).then(|| plain[..dot].replace("%2e", "."))
}

/// A function's name without what the compiler adds for wrappers.
fn plain(name: &str) -> &str {
    let mut name = name.strip_suffix("-fm").unwrap_or(name);
    for mark in [".deferwrap", ".gowrap"] {
        if let Some(at) = name.rfind(mark)
            && name[at + mark.len()..]
                .bytes()
                .all(|it| it.is_ascii_digit())
        {
            name = &name[..at];
        }
    }
    name
}

/// A function of package sync by the name that it has without the overlay.
fn unrenamed(name: &str) -> String {
    match name.starts_with("sync.") {
        true => name.replace(").lockstep", ")."),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_functions() {
        let of = |name| package(name).unwrap_or_default();
        assert_eq!(of("main.main"), "main");
        assert_eq!(of("example.com/m/p.(*T).Do"), "example.com/m/p");
        assert_eq!(of("gopkg.in/yaml%2ev3.parse"), "gopkg.in/yaml.v3");
        assert_eq!(of("main.Map[go.shape.int,example.com/x.T]"), "main");
        assert_eq!(of("type:.eq.main.T"), "");
        assert_eq!(of("_rt0_amd64_linux"), "");
    }

    #[test]
    fn wrappers_are_called_as_what_they_wrap() {
        assert_eq!(plain("main.f.deferwrap1"), "main.f");
        assert_eq!(plain("main.f.func1.gowrap12"), "main.f.func1");
        assert_eq!(plain("main.(*T).Lock-fm"), "main.(*T).Lock");
        assert_eq!(plain("main.f.gowrapped"), "main.f.gowrapped");
    }
}
