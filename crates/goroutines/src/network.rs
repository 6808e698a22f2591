//! Whether a test failed because there is no network here: by what the `net` package says, which is what it prints.

use std::net::SocketAddr;

/// What `net` and the resolver say where nothing answers for a name, or no way leads to an address.
const MISSING: [&str; 5] = [
    ": no such host",
    ": server misbehaving",
    "Temporary failure in name resolution",
    ": network is unreachable",
    ": no route to host",
];

/// Whether this was said of a network that is not there.
#[must_use]
pub fn is_missing(said: &str) -> bool {
    MISSING.iter().any(|it| said.contains(it))
        || said.contains("lookup ") && is_of_names(said)
        || dialled(said).is_some_and(|it| !it.ip().is_loopback())
}

/// Of a server for names (port 53) that does not answer: `lookup db on 10.0.0.2:53: read udp ...: i/o timeout`.
fn is_of_names(said: &str) -> bool {
    let silent = [": i/o timeout", ": connection refused"];
    said.contains(":53: ") && silent.iter().any(|it| said.contains(it))
}

/// The address that nothing was heard from: `dial tcp 142.250.1.1:443: i/o timeout`. Who does not answer on this
/// machine itself is part of the test.
fn dialled(said: &str) -> Option<SocketAddr> {
    let (_, rest) = said.split_once("dial tcp ")?;
    let (address, why) = rest.split_once(": ")?;
    let is_silent = why.starts_with("i/o timeout");
    is_silent.then(|| address.parse().ok()).flatten()
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
            "dial tcp localhost:8080: i/o timeout",
            "a_test.go:9: lookup of a key: connection refused",
            "read tcp 192.0.2.1:1->192.0.2.2:2: i/o timeout",
        ];
        assert!(!said.into_iter().any(is_missing));
    }
}
