//! What the runs that benches write have in common: one program on one host.

use anyhow::Result;
use lockstep_writer::{Builder, FunctionNumber, Named, ProcessFacts};

const PROGRAM: &str = "/app";

/// Functions of the program; those of MPI are calls into a library.
pub fn functions(
    builder: &mut Builder,
    names: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<Vec<FunctionNumber>> {
    let mut numbers = Vec::new();
    for name in names {
        let name = name.as_ref();
        numbers.push(builder.function(&Named {
            image: PROGRAM,
            name,
            imported: name.starts_with("MPI_"),
            source: None,
        })?);
    }
    Ok(numbers)
}

/// A process that ended well: a rank, or one alone; and its first thread is begun.
pub fn begin(builder: &mut Builder, rank: Option<u32>) -> Result<usize> {
    let pid = 1000 + rank.unwrap_or(0);
    let process = builder.process(ProcessFacts {
        host: "node".to_owned(),
        program: PROGRAM.to_owned(),
        pid,
        rank,
        status: Some(0),
    })?;
    // Who has the number of its process is the first thread.
    builder.begin(process, pid)?;
    Ok(process)
}
