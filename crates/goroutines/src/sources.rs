//! The program's own calls of the functions of `sync/atomic`.
//!
//! `atomic.AddInt64(&x, 1)` becomes an instruction in the code of whoever calls, where nothing of ours can stand. While
//! a program is built, such a call in its own sources, or in those of a dependency that can be overlaid, names a
//! function of ours instead, which is a place for delays and then does the same. Only the name changes: lines stay,
//! and the sources themselves are not touched.

use crate::overlay::ATOMIC_PREFIX;
use std::ops::Range;

/// Types that the functions are of.
pub(crate) const TYPES: [(&str, &str); 6] = [
    ("Int32", "int32"),
    ("Int64", "int64"),
    ("Uint32", "uint32"),
    ("Uint64", "uint64"),
    ("Uintptr", "uintptr"),
    ("Pointer", "unsafe.Pointer"),
];

/// What the functions do.
pub(crate) const OPERATIONS: [&str; 5] = ["Load", "Store", "Swap", "CompareAndSwap", "Add"];

/// Whether there is a function of ours for that of `sync/atomic`.
fn is_ours(function: &str) -> bool {
    TYPES.iter().any(|(suffix, _)| {
        let operation = function.strip_suffix(suffix);
        operation
            .is_some_and(|it| OPERATIONS.contains(&it) && !(it == "Add" && *suffix == "Pointer"))
    })
}

/// A Go source that calls our functions where it calls those of `sync/atomic`; `None` where it calls none, and where
/// the package's name may mean something else.
pub(crate) fn with_places(source: &str) -> Option<String> {
    let tokens = tokens(source);
    let text = |index: usize| tokens.get(index).map(|it| &source[it.clone()]);
    let end = (0..tokens.len())
        .find(|it| matches!(text(*it), Some("func" | "type" | "var" | "const")))?;
    let mut names = Vec::new();
    for index in 1..end {
        if !matches!(text(index), Some("\"sync/atomic\"" | "`sync/atomic`")) {
            continue;
        }
        match text(index - 1)? {
            "." => return None,
            "_" => {}
            before if before == "import" || !before.starts_with(is_letter) => names.push("atomic"),
            name => names.push(name),
        }
    }
    let mut out = String::with_capacity(source.len() + 256);
    let mut copied = 0;
    for index in end..tokens.len() {
        if !names.iter().any(|it| text(index) == Some(it)) || text(index - 1) == Some(".") {
            continue;
        }
        if text(index + 1) != Some(".") {
            return None; // something else of that name
        }
        if let Some(function) = tokens.get(index + 2)
            && is_ours(&source[function.clone()])
        {
            out.push_str(&source[copied..function.start]);
            out.push_str(ATOMIC_PREFIX);
            copied = function.start;
        }
    }
    out.push_str(&source[copied..]);
    (copied > 0).then_some(out)
}

fn is_letter(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// Names, literals and signs of a Go source, without its comments. A sign has one character; `...` has three signs.
fn tokens(source: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let rest = &source[at..];
        let until = |end: &str| rest.find(end).map_or(rest.len(), |it| it + end.len());
        let (length, counts) = if first.is_whitespace() {
            (first.len_utf8(), false)
        } else if rest.starts_with("//") {
            (until("\n"), false)
        } else if rest.starts_with("/*") {
            (until("*/"), false)
        } else if first == '`' {
            (rest[1..].find('`').map_or(rest.len(), |it| it + 2), true)
        } else if first == '"' || first == '\'' {
            (quoted(rest, first), true)
        } else if is_letter(first) || first.is_numeric() {
            let end = rest.find(|c| !(is_letter(c) || c.is_numeric()));
            (end.unwrap_or(rest.len()), true)
        } else {
            (first.len_utf8(), true)
        };
        if counts {
            found.push(at..at + length);
        }
        at += length;
    }
    found
}

/// Length of the literal that `text` begins with.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (index, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote || c == '\n' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn calls_of_functions_name_ours() {
        let source = "\
package p // import \"sync/atomic\"

import (
\t\"sync/atomic\"
\tother \"fmt\"
)

var n int64

/* atomic.AddInt64 */
func f() string {
\tatomic.AddInt64(&n, 1)
\tg := atomic.LoadInt64
\tvar x atomic.Int64
\tatomic.AndInt64(&n, '\\'')
\tx.atomic.AddInt64(&n, 1)
\treturn \"\\\"atomic.AddInt64\" + `atomic.AddInt64`
}
";
        let expected = source
            .replace("\tatomic.AddInt64(", "\tatomic.LockstepAddInt64(")
            .replace("atomic.LoadInt64", "atomic.LockstepLoadInt64");
        assert_eq!(with_places(source), Some(expected));
    }

    #[test]
    fn the_package_may_have_another_name() {
        let source = "package p\nimport a `sync/atomic`\nfunc f() { a.StorePointer(&p, q); atomic.AddInt32(x, 1) }";
        let expected = source.replace("a.Store", "a.LockstepStore");
        assert_eq!(with_places(source), Some(expected));
    }

    #[test]
    fn what_may_mean_something_else_is_left_alone() {
        for source in [
            "package p\nimport \"sync/atomic\"\nfunc f(atomic T) { atomic.AddInt32(x, 1) }",
            "package p\nimport \"sync/atomic\"\nfunc f() { atomic := 1; atomic.AddInt32(x, 1) }",
            "package p\nimport . \"sync/atomic\"\nfunc f() { AddInt32(x, 1) }",
            "package p\nimport \"my/atomic\"\nfunc f() { atomic.AddInt32(x, 1) }",
            "package p\nimport \"sync/atomic\"\nvar x atomic.Int32",
            "package p\nvar import_ = \"sync/atomic\"\nfunc f() { atomic.AddInt32(x, 1) }",
        ] {
            assert_eq!(with_places(source), None, "{source}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(package|import|func|atomic|AddInt32|sync/atomic|[ -~\\n'\"`é.*/\\\\]){0,40}") {
            if let Some(edited) = with_places(&text) {
                prop_assert_eq!(edited.replace(ATOMIC_PREFIX, ""), text.replace(ATOMIC_PREFIX, ""));
            }
        }
    }
}
