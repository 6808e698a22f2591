//! A judgement as text.

use super::options::from_here;
use crate::output;
use lockstep_goroutines::prediction::Finding;
use lockstep_goroutines::verdict::Judgement;
use std::io::{self, Write};

/// The sentence and a line for each goroutine.
pub fn explain(out: &mut impl Write, judgement: &Judgement) -> io::Result<()> {
    writeln!(
        out,
        "  {}",
        output::wrapped(&output::printable(&judgement.sentence), 2)
    )?;
    for goroutine in &judgement.goroutines {
        let mut line = format!("goroutine {} {}", goroutine.id, goroutine.state);
        if let Some(at) = &goroutine.blocked_at {
            line.push_str(&format!(" at {}", from_here(at)));
        }
        if let Some(at) = &goroutine.created_at {
            // What `go test` generates is nowhere to be found.
            let at = from_here(at);
            match at.contains("_testmain.go:") {
                true => line.push_str(", the test itself"),
                false => line.push_str(&format!(", made at {at}")),
            }
        }
        writeln!(out, "    {}", output::printable(&line))?;
        for wait in &goroutine.waits_for {
            let whom: Vec<String> = wait.goroutines.iter().map(u64::to_string).collect();
            let whom = if whom.is_empty() {
                String::new()
            } else {
                format!(" (goroutine {})", whom.join(", "))
            };
            writeln!(out, "      {}{whom}", output::printable(&wait.why))?;
        }
    }
    Ok(())
}

/// More suspicions than this are only counted.
const MOST: usize = 3;

/// What healthy runs make suspicious, each with the test that shows it.
pub fn suspicions(out: &mut impl Write, all: &[(&str, &Finding)]) -> io::Result<()> {
    if all.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "  suspicious in a run that passed, and not confirmed by any:"
    )?;
    for (test, finding) in all.iter().take(MOST) {
        let line = format!("{test}: {}: {}", finding.suspicion.name(), finding.sentence);
        writeln!(out, "    {}", output::wrapped(&output::printable(&line), 4))?;
    }
    if all.len() > MOST {
        writeln!(out, "    and {} more, with --json", all.len() - MOST)?;
    }
    Ok(())
}
