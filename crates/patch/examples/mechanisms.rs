//! Counts how the own functions of images are recorded, and why returns are not patched:
//! `mechanisms [-v] FILE...`, with -v each function that is recorded by call-through.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use lockstep_format::plan::{Plan, Role, function, mechanism};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    let is_verbose = std::env::args().any(|argument| argument == "-v");
    for path in std::env::args().skip(1).filter(|a| a != "-v") {
        let image = std::fs::read(&path)?;
        let name = path.rsplit('/').next().unwrap_or_default();
        let role = match name.contains(".so") {
            true => Role::of_library(name),
            false => Role::Main,
        };
        let scope = lockstep_patch::Scope {
            role,
            own_functions: true,
            library_calls: false,
            mpi_calls: false,
        };
        let start = Instant::now();
        let made = lockstep_patch::plan_with_reasons(&image, scope, &Default::default());
        let elapsed = start.elapsed();
        let made = match made {
            Ok(made) => made,
            Err(failure) => {
                writeln!(out, "{path}: {failure}")?;
                continue;
            }
        };
        let plan = Plan::new(&made.plan).map_err(|error| format!("{error:?}"))?;
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for f in plan.functions().filter(|f| f.origin == function::OWN) {
            *counts.entry(f.mechanism).or_default() += 1;
        }
        let count = |number: u32| counts.get(&number).copied().unwrap_or(0);
        let refused = plan
            .refusals()
            .filter(|r| !String::from_utf8_lossy(r.reason).contains("take its address"));
        let mut reasons = Vec::new();
        for refusal in refused {
            let name = String::from_utf8_lossy(refusal.name);
            let reason = String::from_utf8_lossy(refusal.reason);
            if is_verbose {
                writeln!(out, "{:#x} {name}: refused: {reason}", refusal.address)?;
            }
            reasons.push(without_numbers(&reason));
        }
        let refused = reasons;
        let total: usize = counts.values().sum::<usize>() + refused.len();
        let call_through = count(mechanism::CALL_THROUGH) + count(mechanism::JUMP);
        writeln!(
            out,
            "{path}: {total} functions: leaf {}, patched {}, call-through {call_through}, instant {}, \
             refused {}; {elapsed:.2?}, arena {} kB of plan {} kB",
            count(mechanism::LEAF),
            count(mechanism::PATCHED_RETURNS),
            count(mechanism::INSTANT) + count(mechanism::VFORK),
            refused.len(),
            plan.code().len() / 1024,
            made.plan.len() / 1024,
        )?;
        let mut by_reason: BTreeMap<String, usize> = BTreeMap::new();
        let functions: Vec<_> = plan.functions().collect();
        for lockstep_patch::Unpatched { row, reason } in &made.unpatched {
            if is_verbose {
                let f = &functions[*row as usize];
                let name = String::from_utf8_lossy(f.name);
                writeln!(out, "{:#x} {name}: {reason}", f.address)?;
            }
            *by_reason.entry(without_numbers(reason)).or_default() += 1;
        }
        for reason in refused {
            *by_reason.entry(format!("refused: {reason}")).or_default() += 1;
        }
        let mut by_reason: Vec<_> = by_reason.into_iter().collect();
        by_reason.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (reason, count) in by_reason {
            writeln!(out, "    {count:6} {reason}")?;
        }
    }
    Ok(())
}

fn without_numbers(reason: &str) -> String {
    let word = |word: &str| match word.starts_with(|c: char| c.is_ascii_digit()) {
        true => "N".to_owned(),
        false => word.to_owned(),
    };
    reason.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
