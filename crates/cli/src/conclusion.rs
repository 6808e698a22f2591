//! What `record` says last: what `progress` makes of the run, and which command shows more.
//!
//! The answer comes from `lockstep progress` in a process of its own. That one can be ended when it takes too long,
//! and whatever it meets (no memory, no more processes) changes nothing of the status that the command ended with.
//! It looks at how processes ended first, and at events only if they can change the sentence.

use crate::output;
use crate::progress::Document;
use lockstep_progress::Activity;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Between two looks at whether the answer has come.
const STEP: Duration = Duration::from_millis(2);

/// The most time for it, where nobody says how much: a tenth of the time that the command took, within these bounds.
const SHARE: u32 = 10;
const LEAST: Duration = Duration::from_millis(500);
const MOST: Duration = Duration::from_secs(10);

/// The most time for the answer about a command that took so long.
pub fn patience(took: Duration) -> Duration {
    (took / SHARE).clamp(LEAST, MOST)
}

/// What is known of a run at its end.
#[derive(Debug, Default)]
pub struct Conclusion {
    /// The document of `progress`, of a run that is over; nothing where it did not come in time.
    found: Option<Document>,
}

impl Conclusion {
    /// Asks for it, for so long at most.
    pub fn of(run: &Path, patience: Duration) -> Self {
        let found = answer(run, patience).filter(|it| !it.running);
        Self { found }
    }

    /// Whether these ranks, or threads, came to their end by themselves; of none in particular, whether all did.
    pub fn have_finished(&self, tasks: &[u32]) -> bool {
        let Some(found) = &self.found else {
            return false;
        };
        let is_wanted = |of: &[u32]| tasks.is_empty() || of.iter().any(|it| tasks.contains(it));
        let mut wanted = found.groups.iter().filter(|it| is_wanted(&it.processes));
        wanted.all(|it| it.activity == Activity::Finished)
    }

    /// `no task hangs: all 4 ranks came to their end. Next: lockstep calls run`.
    pub fn sentence(&self, run: &Path, status: u8) -> String {
        let command = if self.is_well(status) {
            "calls"
        } else {
            "progress"
        };
        let next = format!(
            "Next: lockstep {command} {}",
            quoted(&run.display().to_string())
        );
        match &self.found {
            Some(found) => format!("{}. {next}", found.verdict),
            None => next,
        }
    }

    /// Whether nothing is wrong that `progress` would show.
    fn is_well(&self, status: u8) -> bool {
        let Some(found) = &self.found else {
            return false;
        };
        let is_quiet = !found.hang && found.stuck.is_empty() && found.causes.is_empty();
        let sentences = [&found.mismatches, &found.loose_ends];
        let fits = sentences.into_iter().all(Vec::is_empty) && found.potential_deadlock.is_none();
        status == 0 && is_quiet && fits
    }
}

/// The document, if it comes in time.
fn answer(run: &Path, patience: Duration) -> Option<Document> {
    let begin = Instant::now();
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(["progress", "--at-the-end", "--"]).arg(run);
    command.env_remove("LOCKSTEP_OPTIONS");
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).spawn().ok()?;
    let mut pipe = child.stdout.take()?;
    let reader = lockstep_record::thread(lockstep_record::STACK).and_then(|it| {
        it.spawn(move || {
            let mut bytes = Vec::new();
            pipe.read_to_end(&mut bytes).map(|_| bytes)
        })
    });
    let is_over = loop {
        match child.try_wait() {
            Ok(None) if begin.elapsed() < patience => std::thread::sleep(STEP),
            Ok(Some(_)) => break true,
            _ => break false,
        }
    };
    if !is_over {
        let _ = child.kill();
        let _ = child.wait();
    }
    let bytes = reader.ok()?.join().ok()?.ok()?;
    serde_json::from_slice(&bytes).ok().filter(|_| is_over)
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:,@%=".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", output::printable(word).replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::GroupRow;

    #[test]
    fn the_last_line_takes_no_more_than_its_share() {
        let seconds = Duration::from_secs;
        assert_eq!(patience(seconds(60)), seconds(6));
        assert_eq!(patience(seconds(0)), LEAST);
        assert_eq!(patience(seconds(86_400)), MOST);
    }

    #[test]
    fn what_follows_depends_on_what_was_found() {
        let group = |processes: &[u32], activity| GroupRow {
            id: 0,
            processes: processes.to_vec(),
            stack: Vec::new(),
            source: None,
            loops: Vec::new(),
            activity,
            leaf: None,
        };
        let well = Document {
            verdict: "all came to their end".to_owned(),
            groups: vec![
                group(&[0, 2], Activity::Finished),
                group(&[1], Activity::Ended),
            ],
            ..Document::default()
        };
        // It passes through the pipe, as the other process writes it.
        let text = output::Document::new(&well).text().unwrap_or_default();
        let well: Document = serde_json::from_str(&text).expect("what is written can be read");
        let mut amiss = well.clone();
        amiss.loose_ends.push("a message".to_owned());
        let of = |found| Conclusion { found: Some(found) };
        let (run, well) = (Path::new("a run"), of(well));
        let says = "all came to their end. Next: lockstep calls 'a run'";
        assert_eq!(well.sentence(run, 0), says);
        assert!(well.sentence(run, 1).contains("lockstep progress"));
        assert!(of(amiss).sentence(run, 0).contains("lockstep progress"));
        assert!(well.have_finished(&[0, 2]) && !well.have_finished(&[0, 1]));
        assert!(!well.have_finished(&[]));
        let unknown = Conclusion::default();
        assert_eq!(
            unknown.sentence(Path::new("r/1"), 0),
            "Next: lockstep progress r/1"
        );
        assert!(!unknown.have_finished(&[0]));
    }
}
