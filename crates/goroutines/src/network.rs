//! Whether a test failed because there is no network here: by what the `net` package says, which is what it prints.

/// What `net` and the resolver say where nothing answers for a name, or no way leads to an address.
const MISSING: [&str; 5] = [
    ": no such host",
    ": server misbehaving",
    "Temporary failure in name resolution",
    ": network is unreachable",
    ": no route to host",
];

/// What they say of a server for names that does not answer.
const SILENT: [&str; 2] = [": i/o timeout", ": connection refused"];

/// Whether this was said of a network that is not there.
#[must_use]
pub fn is_missing(said: &str) -> bool {
    let any = |these: &[&str]| these.iter().any(|it| said.contains(it));
    any(&MISSING)
        || said.contains("lookup ") && any(&SILENT)
        || dialled(said).is_some_and(is_elsewhere)
}

/// The address that nothing was heard from: `dial tcp 142.250.1.1:443: i/o timeout`.
fn dialled(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("dial tcp ")?;
    let (address, why) = rest.split_once(": ")?;
    why.starts_with("i/o timeout").then_some(address)
}

/// Not this machine itself: who does not answer there is part of the test.
fn is_elsewhere(address: &str) -> bool {
    let is_here = |it: &str| {
        let it = it.trim_matches(['[', ']']);
        it.is_empty() || it == "localhost" || it == "::1" || it.starts_with("127.")
    };
    address.rsplit_once(':').is_some_and(|it| !is_here(it.0))
}

#[cfg(test)]
mod tests {
    use super::is_missing;

    #[test]
    fn what_says_that_there_is_none() {
        let said = [
            r#"a_test.go:3: Get "http://example.com": dial tcp: lookup example.com on 10.0.0.2:53: no such host"#,
            "lookup db: Temporary failure in name resolution",
            "dial tcp 192.0.2.1:443: connect: network is unreachable",
            "lookup db on [::1]:53: read udp [::1]:4->[::1]:53: read: connection refused",
            "dial tcp [2001:db8::1]:443: i/o timeout",
        ];
        assert!(said.into_iter().all(is_missing));
    }

    #[test]
    fn what_is_the_test_s_own() {
        let said = [
            "a_test.go:31: no result",
            "dial tcp 127.0.0.1:8080: connect: connection refused",
            "dial tcp 127.0.0.1:8080: i/o timeout",
            "dial tcp [::1]:8080: i/o timeout",
            "read tcp 192.0.2.1:1->192.0.2.2:2: i/o timeout",
        ];
        assert!(!said.into_iter().any(is_missing));
    }
}
