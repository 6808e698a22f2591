//! What `lockstep report` shows of a Go program: a run of one, or a whole campaign and its worst run.

use super::coverage::expected;
use super::standing;
use crate::sources;
use anyhow::{Result, bail};
use lockstep_goroutines::coverage::Report;
use lockstep_goroutines::store::{self, Campaign, MARKER};
use lockstep_goroutines::{Coverage, Execution, Judgement, Tree, judge};
use lockstep_report::{GoPart, GoRun};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything that a part of a page borrows.
pub(crate) struct Go {
    /// The run that states and times are of.
    pub run: PathBuf,
    label: String,
    runs: Vec<GoRun>,
    execution: Execution,
    judgement: Judgement,
    tree: Tree,
    coverage: Report,
    sources: BTreeMap<String, Vec<String>>,
}

impl Go {
    /// Of a run, or of a campaign; `None` where it is neither of a Go program.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        if directory.join(MARKER).is_file() {
            return Self::of_campaign(directory).map(Some);
        }
        let Some(execution) = standing::execution(directory)? else {
            return Ok(None);
        };
        let mut found = Self::new(directory.to_owned(), execution);
        found.tree.add(&found.execution);
        let coverage = Coverage::of(&found.execution);
        Ok(Some(found.with(coverage)))
    }

    fn of_campaign(directory: &Path) -> Result<Self> {
        let campaign = Campaign::read(directory)?;
        let runs = campaign.runs.iter().enumerate();
        let worst = runs.max_by_key(|(index, row)| (row.verdict, usize::MAX - index));
        let Some((worst, _)) = worst else {
            bail!("expected runs, found none in {}", directory.display());
        };
        let execution = store::execution(directory, worst + 1)?;
        let mut found = Self::new(store::run(directory, worst + 1), execution);
        found.label = format!("run {}", worst + 1);
        let mut coverage = Coverage::new();
        for (index, row) in campaign.runs.iter().enumerate() {
            let package = campaign
                .programs
                .get(row.program)
                .map(|it| it.package.clone());
            found.runs.push(GoRun {
                number: index + 1,
                of: row.test.clone().or(package).unwrap_or_default(),
                verdict: row.verdict.to_string(),
                is_bug: row.verdict.is_bug(),
                sentence: row.sentence.clone(),
            });
            let execution = store::execution(directory, index + 1)?;
            coverage.add(&execution);
            found.tree.add(&execution);
        }
        if let Ok(usages) = expected(&campaign) {
            coverage.expect(usages);
        }
        Ok(found.with(coverage))
    }

    fn new(run: PathBuf, execution: Execution) -> Self {
        Self {
            label: run.display().to_string(),
            run,
            runs: Vec::new(),
            judgement: judge(&execution),
            execution,
            tree: Tree::default(),
            coverage: Coverage::new().report(),
            sources: BTreeMap::new(),
        }
    }

    fn with(mut self, coverage: Coverage) -> Self {
        self.coverage = coverage.report();
        let files = self.coverage.usages.iter().map(|it| it.file.clone());
        let sites = self.execution.sites.iter().map(|it| it.file.clone());
        self.sources = sources::read(files.chain(sites));
        self
    }

    /// The part of the page.
    pub fn part(&self) -> GoPart<'_> {
        GoPart {
            label: self.label.clone(),
            runs: self.runs.clone(),
            execution: &self.execution,
            judgement: &self.judgement,
            tree: &self.tree,
            coverage: &self.coverage,
            sources: &self.sources,
        }
    }
}
