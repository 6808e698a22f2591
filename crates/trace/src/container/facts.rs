//! Facts chunks: lines of text about the process.

use super::{Chunk, Finding, ProcessFile};
use lockstep_format::check;
use lockstep_format::process::{PAGE, fact, kind};

/// Lines of the facts chunks, by what they tell. Text that is not UTF-8 is shown with replacements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub host: Option<String>,
    pub program: Option<String>,
    pub environment: Vec<(String, String)>,
    pub images: Vec<ImageFact>,
    pub untraced: Vec<(String, String)>,
    /// First counters of images, by plan.
    pub counters: Vec<(String, u32)>,
    /// Symbols of an MPI library's predefined objects, and their addresses.
    pub handles: Vec<(String, u64)>,
    pub trace: Vec<String>,
    pub skip: Vec<String>,
}

/// An image that has a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageFact {
    pub path: String,
    pub plan: String,
    pub role: String,
    pub first: u32,
    pub count: u32,
    pub bias: u64,
}

/// Reads every facts chunk, in order.
pub(super) fn read_facts(bytes: &[u8], chunks: &[Chunk], file: &mut ProcessFile) {
    let mut sorted: Vec<&Chunk> = chunks
        .iter()
        .filter(|chunk| chunk.kind == kind::FACTS)
        .collect();
    sorted.sort_by_key(|chunk| chunk.sequence);
    for (expected, chunk) in sorted.iter().enumerate() {
        if chunk.sequence as usize != expected {
            file.findings.push(chunk.finding(format!(
                "expected facts chunk {expected}, found {}",
                chunk.sequence
            )));
        }
        let text = bytes
            .get(chunk.payload.clone())
            .and_then(|payload| payload.get(..chunk.used as usize));
        match text {
            Some(text) if check::crc32c(text) == chunk.payload_check => {
                file.facts.read(text, chunk.at, &mut file.findings);
            }
            Some(text) => file.findings.push(chunk.finding(format!(
                "expected facts with check {:08x}, found {:08x}",
                chunk.payload_check,
                check::crc32c(text)
            ))),
            None => file.findings.push(chunk.finding(format!(
                "expected {} bytes of facts, found {}",
                chunk.used,
                chunk.payload.len()
            ))),
        }
    }
    if sorted.is_empty() {
        file.findings.push(Finding {
            at: PAGE,
            text: "expected facts about the process, found none".to_owned(),
        });
    }
}

impl Facts {
    fn read(&mut self, text: &[u8], at: usize, findings: &mut Vec<Finding>) {
        for line in text.split(|byte| *byte == b'\n') {
            let fields: Vec<String> = line.split(|byte| *byte == b'\t').map(unescape).collect();
            let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
            match fields[..] {
                [fact::HOST, host] => self.host = Some(host.to_owned()),
                [fact::PROGRAM, path] => self.program = Some(path.to_owned()),
                [fact::ENVIRONMENT, name, value] => {
                    self.environment.push((name.to_owned(), value.to_owned()));
                }
                [fact::COUNTERS, plan, first] => {
                    if let Ok(first) = first.parse() {
                        self.counters.push((plan.to_owned(), first));
                    }
                }
                [fact::HANDLE, name, address] => {
                    if let Ok(address) = u64::from_str_radix(address, 16) {
                        self.handles.push((name.to_owned(), address));
                    }
                }
                [fact::TRACE, pattern] => self.trace.push(pattern.to_owned()),
                [fact::SKIP, pattern] => self.skip.push(pattern.to_owned()),
                [fact::UNTRACED, path, reason] => {
                    self.untraced.push((path.to_owned(), reason.to_owned()));
                }
                [fact::IMAGE, path, plan, role, first, count, bias] => {
                    let bias = bias.strip_prefix("0x").unwrap_or(bias);
                    let numbers = (first.parse(), count.parse(), u64::from_str_radix(bias, 16));
                    if let (Ok(first), Ok(count), Ok(bias)) = numbers {
                        self.images.push(ImageFact {
                            path: path.to_owned(),
                            plan: plan.to_owned(),
                            role: role.to_owned(),
                            first,
                            count,
                            bias,
                        });
                    } else {
                        findings.push(Finding {
                            at: at as u64,
                            text: format!(
                                "expected first, count and bias of image {path}, found {fields:?}"
                            ),
                        });
                    }
                }
                // What a later version adds is no damage.
                _ => {}
            }
        }
    }
}

fn unescape(field: &[u8]) -> String {
    let bytes: Vec<u8> = fact::unescaped(field).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
