//! `cargo xtask bench plan`: how long the plans of the largest images take.
//!
//! *Costs* counted: the whole of `lockstep __plan` with an empty cache: reading the file, deciding, writing the plan. All own
//! functions and library calls are recorded, as `--images all` has it.

use crate::measure;
use crate::rows::Rows;
use crate::run::{Job, empty};
use crate::words::Words;
use anyhow::{Context, Result};
use lockstep_binary::{Image, Kind};
use lockstep_testkit::artifacts;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench plan [OPTION]... [IMAGE]...

Seconds that planning takes for 100 MB of text, all functions recorded, worst first. Without IMAGE: the largest programs and
libraries of /usr/bin and /usr/lib. Takes about a minute.

  --count N      how many of the largest (12)
  --rounds N     plans of each (3); the median counts
  --label NAME   rows in plan-NAME.csv (own)
  --fresh        forget the rows that are there
";

const HEADS: [&str; 8] = [
    "image", "text", "round", "wall", "cpu", "plan", "status", "peak",
];

/// Smaller files are not looked at.
const SMALLEST: u64 = 8 << 20;

struct Subject {
    path: PathBuf,
    /// Bytes of sections with code.
    text: u64,
    role: &'static str,
    build_id: String,
}

impl Subject {
    /// An image that can be planned and that its build id names.
    fn read(path: &Path) -> Option<Self> {
        let bytes = std::fs::read(path).ok()?;
        let image = Image::parse(&bytes).ok()?;
        let role = match image.kind() {
            Kind::Static => return None,
            Kind::Library => "library",
            Kind::Pie | Kind::Fixed => "main",
        };
        let id = image.build_id();
        Some(Self {
            path: path.to_owned(),
            text: image.code_sections().iter().map(|it| it.1 - it.0).sum(),
            role,
            build_id: id.iter().map(|byte| format!("{byte:02x}")).collect(),
        })
        .filter(|_| id.len() >= 8)
    }
}

/// Runs it.
pub fn run(words: &[String]) -> Result<()> {
    let given = Words::read(words, &["--count", "--rounds", "--label"], &["--fresh"])?;
    let directory = measure::results_directory()?;
    let label = given.text("--label", "own");
    let path = directory.join(format!("plan-{label}.csv"));
    let mut rows = Rows::open(&path, &HEADS, given.has("--fresh"))?;
    let rounds: usize = given.number("--rounds", 3)?;
    let mut subjects = Vec::new();
    if given.rest.is_empty() {
        let mut seen = BTreeSet::new();
        for place in ["/usr/bin", "/usr/lib"] {
            find(Path::new(place), &mut subjects, &mut seen);
        }
        subjects.sort_by_key(|it| std::cmp::Reverse(it.text));
        subjects.truncate(given.number("--count", 12)?);
    }
    for image in &given.rest {
        let subject = Subject::read(Path::new(image));
        subjects.push(subject.with_context(|| format!("{image}: no image with a build id"))?);
    }
    let mut lines = Vec::new();
    for subject in &subjects {
        for round in 0..rounds {
            measure_one(&mut rows, subject, round)?;
        }
        let (image, text) = (subject.path.display().to_string(), subject.text.to_string());
        let key = [image.as_str(), text.as_str()];
        let of = |head: &str| -> Vec<f64> { rows.find(&key).map(|row| row.number(head)).collect() };
        let hundreds = subject.text as f64 / 1e8;
        let (wall, cpu) = (measure::median(&of("wall")), measure::median(&of("cpu")));
        let (least, most) = measure::span(&of("wall"));
        let failed = of("status").iter().filter(|status| **status != 0.0).count();
        let mut line = format!(
            "{:>8.2}{:>9.2}{:>9.1}{wall:>9.2}{:>15}{cpu:>8.2}{:>9.1}  {image}",
            wall / hundreds,
            cpu / hundreds,
            subject.text as f64 / 1e6,
            format!("({least:.2}-{most:.2})"),
            measure::median(&of("plan")) / 1e6,
        );
        if failed > 0 {
            let _ = write!(line, "  {failed} plans failed");
        }
        lines.push((wall / hundreds, line));
    }
    lines.sort_by(|one, other| other.0.total_cmp(&one.0));
    let mut report = format!("{}\n\nseconds for 100 MB of text\n", measure::machine());
    let heads = ["wall", "cpu", "text MB", "wall s", "", "cpu s", "plan MB"];
    let [a, b, c, d, e, f, g] = heads;
    let _ = writeln!(report, "{a:>8}{b:>9}{c:>9}{d:>9}{e:>15}{f:>8}{g:>9}  image");
    for (_, line) in &lines {
        let _ = writeln!(report, "{line}");
    }
    print!("{report}");
    std::fs::write(directory.join(format!("plan-{label}.txt")), &report)?;
    println!("rows in {}", path.display());
    Ok(())
}

/// The images below a directory, each file once.
fn find(directory: &Path, found: &mut Vec<Subject>, seen: &mut BTreeSet<u64>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(data) = entry.metadata() else { continue };
        if data.is_dir() {
            find(&entry.path(), found, seen);
        } else if data.is_file() && data.len() >= SMALLEST && seen.insert(data.ino()) {
            found.extend(Subject::read(&entry.path()));
        }
    }
}

fn measure_one(rows: &mut Rows, subject: &Subject, round: usize) -> Result<()> {
    let image = subject.path.display().to_string();
    let (text, number) = (subject.text.to_string(), round.to_string());
    let key = [image.as_str(), text.as_str(), number.as_str()];
    if rows.has(&key) {
        return Ok(());
    }
    let (run, cache) = (empty("plan-run")?, empty("plan-cache")?);
    std::fs::create_dir(run.join("plans"))?;
    let name = format!("{}-{}.plan", subject.build_id, subject.role);
    let words = [
        artifacts::lockstep().display().to_string(),
        "__plan".to_owned(),
        "--run".to_owned(),
        run.display().to_string(),
        subject.role.to_owned(),
        name.clone(),
        image.clone(),
    ];
    let job = Job::plain(&words).with("XDG_CACHE_HOME", &cache.display().to_string());
    let ran = job.with("LOCKSTEP_IMAGES", "all").run()?;
    let plan = run.join("plans").join(name).metadata();
    let cells = [
        image.clone(),
        text.clone(),
        number.clone(),
        format!("{:.6}", ran.wall),
        format!("{:.6}", ran.cpu),
        plan.map_or(0, |data| data.len()).to_string(),
        ran.status.to_string(),
        ran.peak.to_string(),
    ];
    rows.add(&cells)
}
