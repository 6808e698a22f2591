//! Splits a line into words as a shell does: blanks separate, `'...'` and `"..."` keep them
//! together, a backslash takes the next character as it is (inside double quotes only before `"`,
//! `\`, `$` and `` ` ``). Nothing is expanded.

/// The words of `line`; `None` where a quote is not closed or the line ends in a backslash.
pub fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match rest.next()? {
                        '"' => break,
                        '\\' => match rest.next()? {
                            c @ ('"' | '\\' | '$' | '`') => word.push(c),
                            c => word.extend(['\\', c]),
                        },
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(rest.next()?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::split;

    #[test]
    fn as_a_shell_does() {
        assert_eq!(split("").unwrap(), Vec::<String>::new());
        assert_eq!(split("  -k 10\t--json\n").unwrap(), ["-k", "10", "--json"]);
        assert_eq!(split("-o 'a b'c").unwrap(), ["-o", "a bc"]);
        assert_eq!(
            split(r#"--custom "^a\"b\d""#).unwrap(),
            ["--custom", r#"^a"b\d"#]
        );
        assert_eq!(split(r"a\ b '' \'").unwrap(), ["a b", "", "'"]);
    }

    #[test]
    fn what_is_not_closed_is_refused() {
        for line in ["'", "\"a", "a\\", "\"\\"] {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
