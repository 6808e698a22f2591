//! Text from strangers' programs, made fit to be shown: on a terminal, in a line of text, on a page.

use std::borrow::Cow;

/// Characters that show nothing, steer what shows them, or change the order in which others are shown: Unicode's
/// format characters (category Cf), line and paragraph separators, and two that XML forbids.
const HIDDEN: [(u32, u32); 23] = [
    (0xad, 0xad),
    (0x600, 0x605),
    (0x61c, 0x61c),
    (0x6dd, 0x6dd),
    (0x70f, 0x70f),
    (0x890, 0x891),
    (0x8e2, 0x8e2),
    (0x180e, 0x180e),
    (0x200b, 0x200f),
    (0x2028, 0x202e),
    (0x2060, 0x2064),
    (0x2066, 0x206f),
    (0xfeff, 0xfeff),
    (0xfff9, 0xfffb),
    (0xfffe, 0xffff),
    (0x1_10bd, 0x1_10bd),
    (0x1_10cd, 0x1_10cd),
    (0x1_3430, 0x1_343f),
    (0x1_bca0, 0x1_bca3),
    (0x1_d173, 0x1_d17a),
    (0xe_0001, 0xe_0001),
    (0xe_0020, 0xe_007f),
    (0x10_fffe, 0x10_ffff),
];

/// Whether a character must not reach whoever reads a text as it is.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    let number = u32::from(c);
    let is_among = || {
        let after = HIDDEN.partition_point(|(first, _)| *first <= number);
        let range = after.checked_sub(1).and_then(|at| HIDDEN.get(at));
        range.is_some_and(|(_, last)| number <= *last)
    };
    c.is_control() || !c.is_ascii() && is_among()
}

/// `text` in one line, with nothing in it that does not show: other characters stand as `\n`, `\u{202e}`.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    printable_but(text, |_| false)
}

/// The same, with those hidden characters left as they are that `is_meant` accepts.
pub fn printable_but(text: &str, is_meant: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_left = |c: char| !is_hidden(c) || is_meant(c);
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) || text.chars().all(is_left) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_left(c) {
            clean.push(c);
        } else {
            clean.extend(c.escape_default());
        }
    }
    Cow::Owned(clean)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_hidden_is_what_unicode_calls_so() {
        let known = regex::Regex::new(r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{fffe}\u{ffff}]$").unwrap();
        let plane_16 = ['\u{10fffe}', '\u{10ffff}'];
        for c in '\0'..=char::MAX {
            let expected = known.is_match(c.encode_utf8(&mut [0; 4])) || plane_16.contains(&c);
            assert_eq!(is_hidden(c), expected, "{c:?}");
        }
    }

    #[test]
    fn hidden_characters_are_spelled_out() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(printable("Köln <b> 名前"), "Köln <b> 名前");
        assert_eq!(
            printable("a\u{202e}b\u{2028}\u{200b}"),
            "a\\u{202e}b\\u{2028}\\u{200b}"
        );
        assert_eq!(printable_but("a\n\u{ad}", |c| c == '\n'), "a\n\\u{ad}");
    }
}
