//! What kind of program a file is, and why it cannot be recorded.

use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};

use crate::image::{Header, LE};

/// What an x86-64 ELF file is to the loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A dynamically linked program that can be loaded anywhere.
    Pie,
    /// A dynamically linked program with addresses of its own.
    Fixed,
    /// A shared library (also one that can be run, like libc).
    Library,
    /// A statically linked program, position independent or not.
    Static,
}

/// Why a file is not a program that can be recorded. The texts complete "PATH: ...".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsuitable {
    /// `#!`: the program is the interpreter.
    #[error("a script, run by {interpreter}")]
    Script {
        /// The interpreter's path as the first line gives it, without its argument.
        interpreter: String,
    },
    /// Some other file.
    #[error("neither an ELF file nor a script with a `#!` line (it begins with {found})")]
    NotElf {
        /// Its first bytes, as hex.
        found: String,
    },
    /// A 32-bit program.
    #[error("a 32-bit program; expected a 64-bit x86-64 one")]
    Bits32,
    /// For another processor.
    #[error("a program for {machine}; expected x86-64")]
    Machine {
        /// The processor's name.
        machine: String,
    },
    /// An object file, a core dump...
    #[error("{what}, not an executable program")]
    NotExecutable {
        /// What it is.
        what: String,
    },
    /// No dynamic loader takes part, so that nothing can be loaded into it.
    #[error(
        "statically linked: no library, and so no recorder, can be loaded into it; link it dynamically"
    )]
    Static,
    /// A shared library.
    #[error("a shared library, not a program")]
    Library,
    /// The headers contradict the file.
    #[error("a damaged ELF file: {what}")]
    Damaged {
        /// What is wrong first.
        what: String,
    },
}

/// Whether the program in `bytes` can be recorded: its kind ([`Kind::Pie`] or [`Kind::Fixed`]).
/// The beginning of the file is enough, if the program headers are in it. The file's mode (execute
/// permission, setuid) is the caller's to check.
///
/// # Errors
/// Precisely why it cannot.
pub fn check_program(bytes: &[u8]) -> Result<Kind, Unsuitable> {
    check_magic(bytes)?;
    let header = Header::parse(bytes).map_err(damaged)?;
    let file_type = check_type(header)?;
    let programs = header.program_headers(LE, bytes).map_err(damaged)?;
    let has = |kind: elf::ProgramType| programs.iter().any(|p| p.p_type(LE) == kind);
    match (has(elf::PT_INTERP), file_type) {
        (true, elf::ET_EXEC) => Ok(Kind::Fixed),
        (true, _) => Ok(Kind::Pie),
        // A position independent static program relocates itself; libraries begin nowhere.
        (false, elf::ET_DYN) if header.e_entry(LE) == 0 => Err(Unsuitable::Library),
        (false, _) => Err(Unsuitable::Static),
    }
}

/// ET_EXEC or ET_DYN.
pub(crate) fn check_type(header: &Header) -> Result<elf::FileType, Unsuitable> {
    let what = match header.e_type(LE) {
        kind @ (elf::ET_EXEC | elf::ET_DYN) => return Ok(kind),
        elf::ET_REL => "an object file".to_owned(),
        elf::ET_CORE => "a core dump".to_owned(),
        other => format!("an ELF file of type {}", other.0),
    };
    Err(Unsuitable::NotExecutable { what })
}

pub(crate) fn damaged(error: object::read::Error) -> Unsuitable {
    Unsuitable::Damaged {
        what: error.to_string(),
    }
}

/// What stands in the way of parsing at all, by the first bytes of the file.
pub(crate) fn check_magic(bytes: &[u8]) -> Result<(), Unsuitable> {
    const MACHINE: usize = 18;
    if let Some(line) = bytes.strip_prefix(b"#!") {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let interpreter = line
            .split(|byte| byte.is_ascii_whitespace())
            .find(|word| !word.is_empty())
            .unwrap_or_default();
        let interpreter = &interpreter[..interpreter.len().min(4096)];
        return Err(Unsuitable::Script {
            interpreter: String::from_utf8_lossy(interpreter).into_owned(),
        });
    }
    if !bytes.starts_with(b"\x7fELF") {
        let found = match bytes {
            [] => "nothing: it is empty".to_owned(),
            some => some
                .iter()
                .take(4)
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
                .join(" "),
        };
        return Err(Unsuitable::NotElf { found });
    }
    let machine = |big: bool| {
        let field = bytes.get(MACHINE..MACHINE + 2).unwrap_or(&[0, 0]);
        let field = [field[0], field[1]];
        if big {
            u16::from_be_bytes(field)
        } else {
            u16::from_le_bytes(field)
        }
    };
    let big = bytes.get(5) == Some(&2);
    match machine(big) {
        62 if bytes.get(4) == Some(&2) && !big => Ok(()),
        // 3 is i386; 62 in a 32-bit file is x32.
        3 | 62 => Err(Unsuitable::Bits32),
        other => Err(Unsuitable::Machine {
            machine: machine_name(other),
        }),
    }
}

fn machine_name(machine: u16) -> String {
    match machine {
        2 | 18 | 43 => "SPARC".into(),
        8 => "MIPS".into(),
        20 => "PowerPC".into(),
        21 => "64-bit PowerPC".into(),
        22 => "IBM S/390".into(),
        40 => "32-bit ARM".into(),
        183 => "64-bit ARM".into(),
        243 => "RISC-V".into(),
        258 => "LoongArch".into(),
        other => format!("another processor (machine {other})"),
    }
}
