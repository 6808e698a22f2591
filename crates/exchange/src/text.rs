//! Names of strangers in text formats.

/// `text` on one line, without the character that the format needs for itself.
pub(crate) fn plain(text: &str, special: char, instead: char) -> String {
    text.chars()
        .map(|c| match c {
            c if c == special => instead,
            c if c.is_control() => ' ',
            c => c,
        })
        .collect()
}
