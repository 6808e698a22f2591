//! Text from strangers, made fit to be shown. (Escaping for HTML is maud's: nothing is ever spliced
//! into the page but through it.)

/// `text` without characters that would not show or would steer what shows it.
pub fn shown(text: &str) -> String {
    lockstep_trace::printable(text).into_owned()
}

/// A whole page or picture: nothing in it is hidden, wherever it comes from.
pub fn without_hidden(text: String) -> String {
    match lockstep_trace::printable_but(&text, |c| c == '\n') {
        std::borrow::Cow::Borrowed(_) => text,
        std::borrow::Cow::Owned(clean) => clean,
    }
}

/// At most `limit` characters of [`shown`], the end of a longer one replaced by an ellipsis.
pub fn shortened(text: &str, limit: usize) -> String {
    let text = shown(text);
    if text.chars().count() <= limit {
        return text;
    }
    let mut short: String = text.chars().take(limit.saturating_sub(1)).collect();
    short.push('…');
    short
}

/// A coordinate: one decimal is finer than any screen.
pub fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// 1234567 as `1,234,567`, as our output writes numbers.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_show_is_spelled_out() {
        assert_eq!(shown("a\u{0}b\u{202e}c\n"), "a\\u{0}b\\u{202e}c\\n");
        assert_eq!(shown("Köln <b>"), "Köln <b>");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abcd", 4), "abcd");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([px(3.0), px(0.25), px(-0.04)], ["3", "0.2", "-0"]);
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
