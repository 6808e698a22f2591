//! Whether anything outside of a program may let go on who waits in it: another process, or a connection to one.
//!
//! What `/proc` tells of it: its children, and where its sockets and pipes have their other ends. Where both ends of
//! all of them are in the program itself, its goroutines can only be let go on by one another. In doubt the answer is
//! yes: Unix sockets (whose other ends are not told), terminals, what is unknown. A listening socket on which nothing
//! comes, and signals, do not count.
//!
//! *Costs*: one pass over `/proc`, at the time limit of a run that does not move any more.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// States of TCP sockets by the kernel's numbers: the other end has closed, and it listens.
const CLOSE_WAIT: &str = "08";
const LISTEN: &str = "0A";

/// A socket as the tables of the network have it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Socket {
    local: String,
    remote: String,
    state: String,
    is_tcp: bool,
}

/// Whether something outside of the process may let it go on.
pub(crate) fn reaches_in(process: u32) -> bool {
    has_children(process) || has_other_ends(process).unwrap_or(true)
}

/// Whether it has a child that runs.
fn has_children(process: u32) -> bool {
    let Ok(all) = fs::read_dir("/proc") else {
        return true;
    };
    let parent = process.to_string();
    all.flatten().any(|it| {
        let Ok(told) = fs::read_to_string(it.path().join("stat")) else {
            return false;
        };
        // The name before may hold anything.
        let mut behind = told.rsplit(") ").next().unwrap_or("").split(' ');
        let (state, of) = (behind.next(), behind.next());
        of == Some(&*parent) && state != Some("Z")
    })
}

/// Whether a file that it has open leads out of it; `None` where that cannot be seen.
fn has_other_ends(process: u32) -> Option<bool> {
    let place = Path::new("/proc").join(process.to_string());
    let (mut sockets, mut pipes) = (Vec::new(), BTreeMap::<String, usize>::new());
    let mut ours = Vec::new();
    for entry in fs::read_dir(place.join("fd")).ok()?.flatten() {
        let Ok(to) = fs::read_link(entry.path()) else {
            continue;
        };
        // What whoever began us left open, the program does not know of.
        let is_inherited = || {
            let own = Path::new("/proc/self/fd").join(entry.file_name());
            fs::read_link(own).is_ok_and(|it| it == to)
        };
        if entry.file_name() != "0" && is_inherited() {
            continue;
        }
        let to = to.to_string_lossy().into_owned();
        let is_output = entry.file_name() == "1" || entry.file_name() == "2";
        if let Some(inode) = numbered(&to, "socket:[") {
            sockets.push(inode.to_owned());
        } else if numbered(&to, "pipe:[").is_some() {
            match is_output {
                true => ours.push(to),
                false => *pipes.entry(to).or_default() += 1,
            }
        } else if let Some(kind) = to.strip_prefix("anon_inode:") {
            // Those of the runtime; a look at files or at another process is none.
            if !["[eventpoll]", "[eventfd]"].contains(&kind) {
                return Some(true);
            }
        } else if !is_output && to != "/dev/null" && is_stream(&entry.path()) {
            return Some(true);
        }
    }
    pipes.retain(|it, _| !ours.contains(it));
    if pipes.values().any(|ends| *ends < 2) {
        return Some(true);
    }
    let table = ["tcp", "tcp6", "udp", "udp6"].map(|it| {
        let told = fs::read_to_string(place.join("net").join(it));
        (it.starts_with("tcp"), told.unwrap_or_default())
    });
    Some(lead_out(&sockets, &table))
}

/// Whether something may come in of which nobody has both ends.
fn is_stream(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |it| {
        let it = it.file_type();
        it.is_fifo() || it.is_char_device() || it.is_socket()
    })
}

/// `17` of `socket:[17]`
fn numbered<'a>(link: &'a str, kind: &str) -> Option<&'a str> {
    link.strip_prefix(kind)?.strip_suffix(']')
}

/// Whether one of a process's sockets has its other end, or could get one, in another.
fn lead_out(inodes: &[String], tables: &[(bool, String)]) -> bool {
    let mut known = BTreeMap::new();
    for (is_tcp, table) in tables {
        known.extend(table.lines().skip(1).filter_map(|it| socket(it, *is_tcp)));
    }
    let own: Vec<&Socket> = inodes.iter().filter_map(|it| known.get(it)).collect();
    own.len() < inodes.len()
        || own.iter().any(|it| {
            let is_open = it.remote.ends_with(":0000");
            let meets = || {
                own.iter().any(|other| {
                    other.is_tcp == it.is_tcp
                        && other.local == it.remote
                        && (!it.is_tcp || other.remote == it.local)
                })
            };
            match it.is_tcp {
                true => it.state != LISTEN && it.state != CLOSE_WAIT && !meets(),
                false if is_open => !is_loopback(&it.local),
                false => !meets(),
            }
        })
}

/// A line of a table: the socket's number, and what it is.
fn socket(line: &str, is_tcp: bool) -> Option<(String, Socket)> {
    let mut words = line.split_whitespace().skip(1);
    let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
    let inode = words.nth(5)?;
    let socket = Socket {
        local: as_v4(local),
        remote: as_v4(remote),
        state: state.to_owned(),
        is_tcp,
    };
    Some((inode.to_owned(), socket))
}

/// What a table of version 6 says of an address of version 4, as that of version 4 does.
fn as_v4(address: &str) -> String {
    let short = address.strip_prefix("0000000000000000FFFF0000");
    short.unwrap_or(address).to_owned()
}

fn is_loopback(address: &str) -> bool {
    let host = address.split(':').next().unwrap_or("");
    host.len() == 8 && host.ends_with("7F") || host == "00000000000000000000000001000000"
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::process::{Command, Stdio};

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";

    fn line(local: &str, remote: &str, state: &str, inode: &str) -> String {
        format!(
            "   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0 100 0 0 10 0\n"
        )
    }

    fn leads_out(of: &[&str], tcp: &str, tcp6: &str) -> bool {
        let of: Vec<String> = of.iter().map(|it| (*it).to_owned()).collect();
        lead_out(&of, &[(true, tcp.to_owned()), (true, tcp6.to_owned())])
    }

    #[test]
    fn a_connection_of_a_program_with_itself_leads_nowhere() {
        let listens = line("0100007F:1F90", "00000000:0000", LISTEN, "1");
        let asks = line("0100007F:C000", "0100007F:1F90", "01", "2");
        let serves = line("0100007F:1F90", "0100007F:C000", "01", "3");
        let table = format!("{HEAD}{listens}{asks}{serves}");
        assert!(!leads_out(&["1", "2", "3"], &table, HEAD));
        // The other end is somebody else's.
        assert!(leads_out(&["1", "3"], &table, HEAD));
        assert!(leads_out(&["2"], &table, HEAD));
        // Not a socket of the network: a Unix socket, say.
        assert!(leads_out(&["1", "9"], &table, HEAD));
        // Who accepts on both versions has addresses of the longer kind.
        let mapped = "0000000000000000FFFF00000100007F";
        let serves = line(
            &format!("{mapped}:1F90"),
            &format!("{mapped}:C000"),
            "01",
            "3",
        );
        assert!(!leads_out(
            &["2", "3"],
            &format!("{HEAD}{asks}"),
            &format!("{HEAD}{serves}")
        ));
        // The other end has closed: nobody waits there for more than the end.
        let left = line("0100007F:C000", "0100007F:1F90", CLOSE_WAIT, "2");
        assert!(!leads_out(&["2"], &format!("{HEAD}{left}"), HEAD));
    }

    /// A process that holds what this one has open, without a child of its own.
    fn holder() -> std::process::Child {
        Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    #[test]
    fn processes_are_looked_at_as_they_are() {
        let mut child = holder();
        // It reads what we write.
        assert!(reaches_in(child.id()));
        // We have it.
        assert!(has_children(std::process::id()));
        assert!(!has_children(child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
        let alone = Command::new("sleep")
            .arg("60")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut alone = alone.unwrap();
        assert!(!reaches_in(alone.id()), "{}", alone.id());
        alone.kill().unwrap();
        alone.wait().unwrap();
    }

    #[test]
    fn the_tables_of_this_kernel_are_read() {
        let listens = TcpListener::bind("127.0.0.1:0").unwrap();
        let asks = TcpStream::connect(listens.local_addr().unwrap()).unwrap();
        let (serves, _) = listens.accept().unwrap();
        let bound = UdpSocket::bind("127.0.0.1:0").unwrap();
        let inode = |it: &dyn std::os::fd::AsRawFd| {
            let link = fs::read_link(format!("/proc/self/fd/{}", it.as_raw_fd())).unwrap();
            numbered(&link.to_string_lossy(), "socket:[")
                .unwrap()
                .to_owned()
        };
        let tables = ["tcp", "udp"].map(|it| {
            let told = fs::read_to_string(format!("/proc/self/net/{it}")).unwrap();
            (it == "tcp", told)
        });
        let all = [inode(&listens), inode(&asks), inode(&serves), inode(&bound)];
        assert!(!lead_out(&all, &tables));
        assert!(lead_out(&all[..2], &tables));
    }
}
