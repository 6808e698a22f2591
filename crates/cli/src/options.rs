//! The options that `loops`, `lattice`, `similarity`, `compare` and `diff` share.

use crate::run;
use anyhow::{Result, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use lockstep_compare::{
    Attributes, BScore, Distance, FilterName, Frequency, Linkage, ObjectName, Options, Part, roles,
};
use lockstep_trace::{NotASelection, Run, Selections, TraceName};
use std::collections::BTreeSet;
use std::str::FromStr;

/// One of the words of `$choice`, listed in the help.
macro_rules! word_of {
    ($choice:ty) => {
        PossibleValuesParser::new(<$choice>::ALL.iter().map(|value| value.word()))
            .try_map(|word| word.parse::<$choice>())
    };
}

fn at_least(least: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(least..=100_000)
}

/// What `-t` names.
#[derive(Debug, Clone)]
enum Wanted {
    Traces(Selections),
    /// `6.4@3`, one or several.
    Pieces(Vec<ObjectName>),
    /// `worker`, `role-4`.
    Role(String),
}

impl FromStr for Wanted {
    type Err = NotASelection;

    fn from_str(text: &str) -> Result<Self, NotASelection> {
        if text.contains('@') {
            let words = text.split([',', ' ']).filter(|word| !word.is_empty());
            let pieces: Result<Vec<ObjectName>, ()> = words.map(str::parse).collect();
            return match pieces {
                Ok(pieces) if pieces.iter().all(|it| it.piece.is_some()) => {
                    Ok(Self::Pieces(pieces))
                }
                _ => Err(NotASelection(text.to_owned())),
            };
        }
        let (word, number) = text.split_once('-').unwrap_or((text, "0"));
        let is_role = !word.is_empty()
            && word.chars().all(|c| c.is_ascii_lowercase())
            && number.chars().all(|c| c.is_ascii_digit());
        match is_role {
            true => Ok(Self::Role(text.to_owned())),
            false => text.parse().map(Self::Traces),
        }
    }
}

/// The traces that play a role: in the normal runs, where there are others.
fn of_role(runs: &[&Run], options: &Options, name: &str) -> Result<Vec<TraceName>> {
    let normals = &runs[..(runs.len() - 1).max(1)];
    let roles = roles(normals, options)?;
    match roles.iter().position(|role| role.name == name) {
        Some(place) => Ok(roles[place].traces.clone()),
        None => {
            let found: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
            bail!(
                "-t {name}: expected a trace such as 6.4, or a role that the traces play, found that they play {}",
                found.join(", ")
            )
        }
    }
}

#[derive(Debug, Args)]
pub struct Analysis {
    /// Functions that count: names joined by commas, or the papers' form (11.mem.ompcrit.cust.0K10)
    ///
    /// Names: mpi, mpi-all, mpi-internal, mpi-collectives, mpi-p2p, omp, omp-critical, omp-mutex, memory, network, poll,
    /// string, plt, custom (with --custom), everything.
    #[arg(long, value_name = "FILTER", help_heading = "What is looked at")]
    filter: Option<String>,
    /// Keep returns, as the token `return`
    #[arg(long, help_heading = "What is looked at")]
    keep_returns: bool,
    /// Keep functions whose names end in @plt (imported runs)
    #[arg(long, help_heading = "What is looked at")]
    keep_plt: bool,
    /// The functions of the filter `custom`
    #[arg(long, value_name = "REGEX", help_heading = "What is looked at")]
    custom: Option<String>,
    /// Only these traces: 6.4, '6.*', 0-3.1-4, 5~1.0, 1:6.4, 6.h1, 6.4,7.0, a role (worker), with --split-at pieces (6.4@3); repeatable
    #[arg(short = 't', value_name = "TRACE", help_heading = "What is looked at")]
    traces: Vec<Wanted>,
    /// Include processes that did not call MPI_Init
    #[arg(long, help_heading = "What is looked at")]
    pub all_processes: bool,
    /// Only from the first call of F on
    #[arg(long, value_name = "F", help_heading = "What is looked at")]
    from: Option<String>,
    /// Only up to the next call of F
    #[arg(long, value_name = "F", help_heading = "What is looked at")]
    to: Option<String>,
    /// One object P.T@k for each piece between calls of F
    #[arg(long, value_name = "F", help_heading = "What is looked at")]
    split_at: Option<String>,
    /// Longest loop body [default: 10]
    #[arg(short, value_name = "LENGTH", value_parser = at_least(1), help_heading = "How it is analysed")]
    k: Option<usize>,
    /// What an attribute is made of: an entry of the folded trace, two neighbours, a call with its caller, with all calls around it, or with the locks that are held [default: single]
    #[arg(long, value_parser = word_of!(Attributes), help_heading = "How it is analysed")]
    attributes: Option<Attributes>,
    /// What of its frequency an attribute carries [default: none]
    #[arg(long, value_parser = word_of!(Frequency), help_heading = "How it is analysed")]
    frequency: Option<Frequency>,
    /// Linkage of the clustering [default: ward]
    #[arg(long, value_parser = word_of!(Linkage), help_heading = "How it is analysed")]
    linkage: Option<Linkage>,
    /// How similarities become distances [default: by the linkage]
    #[arg(long, value_parser = word_of!(Distance), help_heading = "How it is analysed")]
    distance: Option<Distance>,
    /// Number of clusters, the papers' Thresh [default: 4]
    #[arg(long, value_name = "NUMBER", value_parser = at_least(2), help_heading = "How it is analysed")]
    clusters: Option<usize>,
    /// How two clusterings are compared [default: cut]
    #[arg(long, value_parser = word_of!(BScore), help_heading = "How it is analysed")]
    b_score: Option<BScore>,
    /// Members of clusters with at most one trace in so many are candidates [default: 8]
    #[arg(long, value_name = "NUMBER", value_parser = at_least(2), help_heading = "How it is analysed")]
    few: Option<usize>,
}

impl Analysis {
    /// These options for an analysis of `runs` with one set of options.
    pub fn options(&self, runs: &[&Run]) -> Result<Options> {
        let mut options = Options {
            sweep: false,
            ..Options::default()
        };
        match (&self.filter, &self.custom) {
            (Some(filter), _) => options.set_filter(filter)?,
            (None, Some(_)) => options.set_filter("custom")?,
            (None, None) => {}
        }
        if self.custom.is_none() && options.filter.names.contains(&FilterName::Custom) {
            bail!("--filter custom: expected a pattern too (--custom REGEX), found none");
        }
        options.filter.custom.clone_from(&self.custom);
        options.keep_returns |= self.keep_returns;
        options.keep_plt |= self.keep_plt;
        options.k = self.k.unwrap_or(options.k);
        options.attributes = self.attributes.unwrap_or(options.attributes);
        options.frequency = self.frequency.unwrap_or(options.frequency);
        options.linkage = self.linkage.unwrap_or(options.linkage);
        options.distance = self.distance;
        options.clusters = self.clusters.unwrap_or(options.clusters);
        options.b_score = self.b_score.unwrap_or(options.b_score);
        options.few = self.few.unwrap_or(options.few);
        options.part = Part {
            from: self.from.clone(),
            to: self.to.clone(),
            split_at: self.split_at.clone(),
        };
        self.choose(runs, &mut options)?;
        Ok(options)
    }

    /// The traces that `-t` means.
    fn choose(&self, runs: &[&Run], options: &mut Options) -> Result<()> {
        let mut lists = Vec::new();
        let mut found = BTreeSet::new();
        for wanted in &self.traces {
            match wanted {
                Wanted::Traces(list) => lists.push(list.clone()),
                Wanted::Role(name) => found.extend(of_role(runs, options, name)?),
                Wanted::Pieces(pieces) => {
                    if self.split_at.is_none() {
                        bail!("-t {}: expected --split-at too, found none", pieces[0]);
                    }
                    for piece in pieces {
                        let name = piece.trace.to_string();
                        lists.extend(name.parse::<Selections>());
                    }
                    options.pieces.extend_from_slice(pieces);
                }
            }
        }
        found.extend(run::selected(runs, &lists)?.unwrap_or_default());
        options.traces = (!self.traces.is_empty()).then(|| found.into_iter().collect());
        Ok(())
    }

    /// Whether an option of a single set was given, so that `compare` does not sweep.
    pub fn is_single_set(&self) -> bool {
        self.filter.is_some()
            || self.keep_returns
            || self.keep_plt
            || self.k.is_some()
            || self.attributes.is_some()
            || self.frequency.is_some()
            || self.linkage.is_some()
            || self.distance.is_some()
            || self.clusters.is_some()
            || self.b_score.is_some()
    }
}
