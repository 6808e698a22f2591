//! Names as the rows have them.

/// No name in a row of C++ is longer.
const LONGEST: usize = 96;

/// Namespaces that no program names: versions of the library.
const INLINE: [&[u8]; 4] = [b"__1", b"__cxx11", b"__ndk1", b"_V2"];

/// A function of C++'s standard library, without what its templates are made for and what it is given.
///
/// ```text
///  std::__1::unique_lock<std::__1::mutex>::lock()     std::unique_lock::lock
///  _ZNSt18condition_variable4waitERSt11unique_...     std::condition_variable::wait
/// ```
pub(super) struct Path {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Path {
    /// `None` if it is none, or so long that no row has it.
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        let mut path = Self {
            bytes: [0; LONGEST],
            length: 0,
        };
        match name.strip_prefix(b"_Z") {
            Some(rest) => path.take_mangled(rest)?,
            None if name.starts_with(b"std::") => path.take(name)?,
            None => return None,
        }
        Some(path)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn push(&mut self, join: &[u8], word: &[u8]) -> Option<()> {
        if !INLINE.contains(&word) {
            let end = self.length + join.len() + word.len();
            let (before, behind) = self
                .bytes
                .get_mut(self.length..end)?
                .split_at_mut(join.len());
            before.copy_from_slice(join);
            behind.copy_from_slice(word);
            self.length = end;
        }
        Some(())
    }

    /// Adds the words of a name that can be read.
    fn take(&mut self, name: &[u8]) -> Option<()> {
        let (mut join, mut from, mut angles): (&[u8], _, _) = (b"", 0, 0_u32);
        // The word ends at a template's arguments already.
        let mut end = None;
        for (at, byte) in name.iter().enumerate() {
            match byte {
                b'<' => {
                    end = end.or(Some(at));
                    angles += 1;
                }
                b'>' => angles = angles.checked_sub(1)?,
                _ if angles > 0 => {}
                // What follows is given; a function inside of it is another one.
                b'(' => {
                    self.push(join, &name[from..end.unwrap_or(at)])?;
                    return (!is_around(&name[at..])).then_some(());
                }
                b':' if name[at..].starts_with(b"::") => {
                    self.push(join, &name[from..end.take().unwrap_or(at)])?;
                    (join, from) = (b"::", at + 2);
                }
                _ => {}
            }
        }
        self.push(join, &name[from..end.unwrap_or(name.len())])
    }

    /// Adds the words of a symbol's name behind `_Z`, up to a template's arguments.
    fn take_mangled(&mut self, name: &[u8]) -> Option<()> {
        let (nested, rest) = match name.strip_prefix(b"N") {
            Some(rest) => (true, rest.strip_prefix(b"K").unwrap_or(rest)),
            None => (false, name),
        };
        let mut rest = rest.strip_prefix(b"St")?;
        self.push(b"", b"std")?;
        let mut last: &[u8] = b"";
        loop {
            let digits = rest.iter().take_while(|it| it.is_ascii_digit()).count();
            let join: &[u8] = if rest.starts_with(b"D") {
                b"::~"
            } else {
                b"::"
            };
            (last, rest) = match rest {
                [b'C' | b'D', b'0'..=b'9', behind @ ..] if nested => (last, behind),
                _ if digits > 0 => {
                    let length = core::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
                    rest[digits..].split_at_checked(length)?
                }
                _ => return Some(()),
            };
            self.push(join, last)?;
            if !nested {
                return Some(());
            }
        }
    }
}

/// Whether a name goes on behind what its function is given, up to the bracket that closes it.
fn is_around(given: &[u8]) -> bool {
    let mut depth = 0_u32;
    for (at, byte) in given.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => {
                let behind = &given[at + 1..];
                let behind = behind.strip_prefix(b" const").unwrap_or(behind);
                return behind.starts_with(b"::");
            }
            b')' => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Whether a name is as a pattern has it: `*` stands for any letters, or none.
pub(super) fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where to go on if the last star is to stand for a letter more.
    let mut again = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                again = Some((p, n));
            }
            Some(letter) if *letter == name[n] => (p, n) = (p + 1, n + 1),
            _ => match again {
                Some((behind, from)) => {
                    (p, n) = (behind, from + 1);
                    again = Some((behind, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|it| *it == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_standard_library() {
        let cases = [
            ("std::__1::mutex::lock()", "std::mutex::lock"),
            ("_ZNSt3__15mutex4lockEv", "std::mutex::lock"),
            (
                "std::unique_lock<std::mutex>::~unique_lock()",
                "std::unique_lock::~unique_lock",
            ),
            ("_ZNSt11unique_lockISt5mutexED2Ev", "std::unique_lock"),
            ("_ZNSt7jthreadD1Ev", "std::jthread::~jthread"),
            ("_ZNSt6threadC1EOS_", "std::thread::thread"),
            ("_ZSt9terminatev", "std::terminate"),
            ("_ZNKSt6thread8joinableEv", "std::thread::joinable"),
            (
                "_ZNSt11this_thread9sleep_forIlSt5ratioILl1ELl1000EEEEvRKNSt6chrono8durationIT_T0_EE",
                "std::this_thread::sleep_for",
            ),
            (
                "std::this_thread::sleep_for<long, std::ratio<1l, 1000l> >(std::chrono::duration<long> const&)",
                "std::this_thread::sleep_for",
            ),
            (
                "std::__shared_ptr<State, (__gnu_cxx::_Lock_policy)2>::unique() const",
                "std::__shared_ptr::unique",
            ),
            (
                "std::chrono::_V2::system_clock::now()",
                "std::chrono::system_clock::now",
            ),
        ];
        for (name, expected) in cases {
            let path = Path::of(name.as_bytes()).expect(name);
            assert_eq!(String::from_utf8_lossy(path.as_bytes()), expected, "{name}");
        }
        let none = [
            "main",
            "_ZN6Solver4stepEv",
            "_ZNSo5flushEv",
            "std::call_once<void (&)()>(std::once_flag&, void (&)())::{lambda()#1}::operator()() const",
        ];
        assert!(none.iter().all(|it| Path::of(it.as_bytes()).is_none()));
    }

    #[test]
    fn patterns() {
        let fits = |pattern: &str, name: &str| super::fits(pattern.as_bytes(), name.as_bytes());
        assert!(fits("poll", "poll") && fits("GOMP_*", "GOMP_") && fits("a*b*c", "abbbcc"));
        assert!(fits("*::wait*", "std::latch::wait") && fits("*dynamic*", "x_dynamic"));
        assert!(!fits("poll", "ppoll") && !fits("a*b", "abc") && !fits("poll", "pol"));
    }
}
