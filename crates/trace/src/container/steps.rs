//! Facts with addresses that differ from process to process by where the system put the images: told one after the other by how far
//! each is from the one before, ranks of one program have the same, but for the first one of each image.

use lockstep_format::process::fact;

/// Their lines end with an address.
const PLACED: [&str; 2] = [fact::HANDLE, fact::IMAGE];

/// Facts with addresses told so; `None` where [`without_steps`] would not give these very bytes again.
pub(crate) fn with_steps(facts: &[u8]) -> Option<Vec<u8>> {
    let mut before = 0;
    let told = rewritten(facts, |address| {
        let address = hexadecimal(address)?;
        let step = address.wrapping_sub(before).cast_signed();
        before = address;
        let sign = if step < 0 { '-' } else { '+' };
        Some(format!("{sign}{:x}", step.unsigned_abs()))
    });
    (without_steps(&told) == facts).then_some(told)
}

/// The other direction.
pub(crate) fn without_steps(told: &[u8]) -> Vec<u8> {
    let mut before = 0u64;
    rewritten(told, |step| {
        let (sign, digits) = step.split_first()?;
        let digits = hexadecimal(digits)?;
        before = match sign {
            b'+' => before.wrapping_add(digits),
            b'-' => before.wrapping_sub(digits),
            _ => return None,
        };
        Some(format!("{before:x}"))
    })
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Every address another text, where there is one.
fn rewritten(facts: &[u8], mut address: impl FnMut(&[u8]) -> Option<String>) -> Vec<u8> {
    let mut text = Vec::with_capacity(facts.len());
    for line in facts.split_inclusive(|byte| *byte == b'\n') {
        let word = line.split(|byte| *byte == b'\t').next();
        let is_placed = PLACED.iter().any(|placed| word == Some(placed.as_bytes()));
        let (line, end) = match line.split_last() {
            Some((b'\n', rest)) => (rest, &b"\n"[..]),
            _ => (line, &[][..]),
        };
        let field = line.iter().rposition(|byte| *byte == b'\t');
        let (head, field) = line.split_at(field.map_or(0, |tab| tab + 1));
        let (prefix, digits) = match field.strip_prefix(b"0x") {
            Some(digits) => (&b"0x"[..], digits),
            None => (&[][..], field),
        };
        match is_placed.then(|| address(digits)).flatten() {
            Some(other) => [head, prefix, other.as_bytes(), end]
                .iter()
                .for_each(|part| text.extend_from_slice(part)),
            None => [line, end]
                .iter()
                .for_each(|part| text.extend_from_slice(part)),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    const FACTS: &str = "host\tnode\nenvironment\tRANK\t7\nhandle\ta\t55550010\nhandle\tb\t55550000\nimage\t/app\tk\tmain\t16\t4\t0x55540000\nprogram\t/app";

    #[test]
    fn addresses_are_steps() {
        let told = with_steps(FACTS.as_bytes()).unwrap();
        let text = String::from_utf8(told.clone()).unwrap();
        assert_eq!(
            text,
            "host\tnode\nenvironment\tRANK\t7\nhandle\ta\t+55550010\nhandle\tb\t-10\nimage\t/app\tk\tmain\t16\t4\t0x-10000\nprogram\t/app"
        );
        assert_eq!(without_steps(&told), FACTS.as_bytes());
    }

    #[test]
    fn what_would_come_back_otherwise_is_left() {
        for facts in ["handle\ta\t+10", "handle\ta\t0010", "handle\ta\tAB\n"] {
            assert_eq!(with_steps(facts.as_bytes()), None, "{facts}");
        }
        assert_eq!(with_steps(b"handle\ta\tx\n").unwrap(), b"handle\ta\tx\n");
    }

    proptest! {
        #[test]
        fn whatever_is_told_comes_back(facts in "((handle|image|host)(\t(0x)?[-+]?[0-9a-fx]{0,17}){0,3}\n?){0,6}") {
            if let Some(told) = with_steps(facts.as_bytes()) {
                prop_assert_eq!(without_steps(&told), facts.as_bytes());
            }
        }
    }
}
