//! Prints what would be recorded of a program, and what not: `explain [ROLE] FILE`.

use std::io::Write;
use std::time::Instant;

use lockstep_format::plan::{Plan, Role};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.last().ok_or("usage: explain [ROLE] FILE")?;
    let role = (0..4)
        .filter_map(Role::from_number)
        .find(|role| arguments.len() > 1 && role.name() == arguments[0])
        .unwrap_or(Role::Main);
    let image = std::fs::read(path)?;
    let start = Instant::now();
    let bytes = lockstep_patch::plan(&image, role, &lockstep_patch::Options::default())?;
    let elapsed = start.elapsed();
    let plan = Plan::new(&bytes).map_err(|error| format!("{error:?}"))?;
    let text = lockstep_patch::explain(&plan);
    let mut out = std::io::stdout().lock();
    writeln!(out, "planned in {elapsed:?}, {} bytes", bytes.len())?;
    out.write_all(text.as_bytes())?;
    Ok(())
}
