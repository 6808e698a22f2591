//! Prints what would be recorded of a program, or of a library (`explain [ROLE] FILE`), and what not.

use std::io::Write;
use std::time::Instant;

use lockstep_format::plan::{Plan, Role};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let path = arguments.last().ok_or("usage: explain [ROLE] FILE")?;
    let role = Role::ALL
        .into_iter()
        .find(|role| arguments.len() > 1 && role.name() == arguments[0])
        .unwrap_or(Role::Main);
    let image = std::fs::read(path)?;
    let start = Instant::now();
    let scope = lockstep_patch::Scope {
        role,
        own_functions: true,
        library_calls: false,
        mpi_calls: false,
    };
    let bytes = lockstep_patch::plan(&image, scope, &lockstep_patch::Options::default())?;
    let elapsed = start.elapsed();
    let plan = Plan::new(&bytes).map_err(|error| format!("{error:?}"))?;
    let checked = lockstep_patch::check(&plan, &image, bias(&plan), bias(&plan) + 0x4000_0000)?;
    let text = lockstep_patch::explain(&plan);
    let mut out = std::io::stdout().lock();
    writeln!(out, "planned in {elapsed:?}, {} bytes", bytes.len())?;
    writeln!(out, "{checked:?}")?;
    out.write_all(text.as_bytes())?;
    Ok(())
}

fn bias(plan: &Plan<'_>) -> u64 {
    if plan.is_fixed() { 0 } else { 0x5555_5555_0000 }
}
