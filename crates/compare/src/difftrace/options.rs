//! What a comparison can be told: the options of the command line, as values.

use crate::{Error, Filter, ObjectName};
use lockstep_trace::TraceName;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::str::FromStr;

/// Everything that [`crate::loops()`], [`crate::lattice()`], [`crate::similarity()`] and [`crate::compare`]
/// can be told. The defaults are the command line's.
// Long: one field for each option of the command line.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Which functions count.
    pub filter: Filter,
    /// Keep returns, as the token `return`.
    pub keep_returns: bool,
    /// Keep functions whose names end in `@plt` (imported runs).
    pub keep_plt: bool,
    /// Longest loop body, in elements; at least 1.
    pub k: usize,
    /// What an attribute is made of.
    pub attributes: Attributes,
    /// What of its frequency an attribute carries.
    pub frequency: Frequency,
    /// Linkage of the clustering.
    pub linkage: Linkage,
    /// How a similarity matrix is read as distances; by the linkage where `None`.
    pub distance: Option<Distance>,
    /// Number of clusters; at least 2.
    pub clusters: usize,
    /// How two clusterings are compared.
    pub b_score: BScore,
    /// Members of clusters that have at most one object in so many are candidates (a single object always
    /// is); at least 2.
    pub few: usize,
    /// Attributes that somebody knows of traces (or pieces), by their names; one for each run, the normal ones first.
    pub own: Vec<BTreeMap<String, Vec<String>>>,
    /// The traces to look at; all that [`lockstep_trace::Run::traces`] gives where `None`.
    pub traces: Option<Vec<TraceName>>,
    /// With [`Part::split_at`] the pieces to look at, of traces of which some are named; of the others all.
    pub pieces: Vec<ObjectName>,
    /// The part of each trace to look at.
    pub part: Part,
    /// Regular expressions of functions that are left out.
    pub ignore: Vec<String>,
    /// `compare`: whether trip counts alone make runs differ.
    pub counts: bool,
    /// `compare`: level of the empirical p-value below which runs differ (several normal runs).
    pub level: f64,
    /// `compare`: sweep over filters and attributes instead of this one set.
    pub sweep: bool,
}

/// The papers list clusters of 5 among 40 traces, and none of 6.
const FEW: usize = 8;

impl Default for Options {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            keep_returns: false,
            keep_plt: false,
            k: 10,
            attributes: Attributes::Single,
            frequency: Frequency::None,
            linkage: Linkage::Ward,
            distance: None,
            clusters: 4,
            b_score: BScore::Cut,
            few: FEW,
            own: Vec::new(),
            traces: None,
            pieces: Vec::new(),
            part: Part::default(),
            ignore: Vec::new(),
            counts: false,
            level: 0.05,
            sweep: true,
        }
    }
}

impl Attributes {
    /// Those of the papers, which a sweep tries.
    pub const PAPERS: [Self; 2] = [Self::Single, Self::Double];
}

impl Options {
    /// Takes a `--filter`: names joined by commas, or the papers' form (`11.mem.ompcrit.cust.0K10`),
    /// which sets what happens to returns and `@plt` names, and K, as well. A custom pattern that was
    /// set before stays.
    ///
    /// # Errors
    /// A name that is none of the filters.
    pub fn set_filter(&mut self, text: &str) -> Result<(), Error> {
        let custom = self.filter.custom.take();
        let parsed = Filter::parse(text)?;
        self.filter = parsed.filter;
        self.filter.custom = custom;
        if let Some((keep_returns, keep_plt, k)) = parsed.paper {
            self.keep_returns = keep_returns;
            self.keep_plt = keep_plt;
            self.k = k;
        }
        Ok(())
    }
}

/// Which part of each trace is looked at; patterns are regular expressions on function names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// From the first call of this function on.
    pub from: Option<String>,
    /// Up to the next call of this function.
    pub to: Option<String>,
    /// One object for each piece between calls of this function.
    pub split_at: Option<String>,
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident($option:literal) { $($(#[$item:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        pub enum $name {
            $($(#[$item])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every value, in the order of the command line's help.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Its word on the command line.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.word())
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Self::ALL.iter().copied().find(|value| value.word() == text).ok_or_else(|| Error::Value {
                    option: $option,
                    expected: format!("one of {}", [$($text,)*].join(", ")),
                    found: text.to_owned(),
                })
            }
        }
    };
}

choice! {
    /// What an attribute is made of (`--attributes`).
    Attributes("--attributes") {
        /// Each entry of the folded trace.
        Single = "single",
        /// Each pair of consecutive entries.
        Double = "double",
        /// Each pair of a calling and a called function.
        Callers = "callers",
        /// Each call with the calls around it.
        Paths = "paths",
        /// Each call with the locks that are held.
        Locks = "locks",
    }
}

choice! {
    /// What an attribute says about its frequency (`--frequency`).
    Frequency("--frequency") {
        /// The number of occurrences.
        Actual = "actual",
        /// The integer part of that number's decimal logarithm.
        Log10 = "log10",
        /// Nothing (noFreq and orig in the papers).
        None = "none",
    }
}

choice! {
    /// How the distance of two clusters follows from their members (`--linkage`).
    Linkage("--linkage") {
        /// Distance of the nearest members.
        Single = "single",
        /// Distance of the farthest members.
        Complete = "complete",
        /// Mean over all pairs (UPGMA).
        Average = "average",
        /// Mean of the distances to the two merged parts (WPGMA).
        Weighted = "weighted",
        /// Distance of the centroids (UPGMC). A merge can be lower than the one before.
        Centroid = "centroid",
        /// Distance of the midpoints (WPGMC). A merge can be lower than the one before.
        Median = "median",
        /// Smallest growth of variance.
        Ward = "ward",
    }
}

choice! {
    /// How a similarity matrix becomes the input of the linkage (`--distance`).
    Distance("--distance") {
        /// `1 - J`.
        OneMinus = "1-j",
        /// `sqrt(1 - J)`, which is Euclidean.
        Sqrt = "sqrt",
        /// Euclidean distance between the rows of J, as when a square matrix is given for observations.
        Rows = "rows",
    }
}

choice! {
    /// How two clusterings are compared (`--b-score`).
    BScore("--b-score") {
        /// Fowlkes-Mallows B at the number of clusters.
        Cut = "cut",
        /// Mean over every number of clusters.
        Mean = "mean",
        /// B at the number of clusters, adjusted for chance: (B-E)/(1-E).
        Adjusted = "adjusted",
    }
}

impl Linkage {
    /// The reading that its formulas assume: those that square distances want Euclidean ones.
    #[must_use]
    pub const fn distance(self) -> Distance {
        match self {
            Self::Single | Self::Complete | Self::Average | Self::Weighted => Distance::OneMinus,
            Self::Centroid | Self::Median | Self::Ward => Distance::Sqrt,
        }
    }
}
