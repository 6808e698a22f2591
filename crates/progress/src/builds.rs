//! Two builds of a program: functions that a compiler cloned have other names in each (`post`, `post.constprop.0`).
//!
//! *Guarantees*: a function goes by the name of one of the run only where each build has just one of that base name. *Not
//! for*: what one build inlined and the other did not, which is there in one tree only.

use lockstep_trace::{Function, Run};
use rustc_hash::FxHashMap;

/// What compilers append to the names of clones and parts.
const CLONES: [&str; 10] = [
    "part",
    "constprop",
    "isra",
    "cold",
    "clone",
    "lto_priv",
    "localalias",
    "llvm",
    "specialized",
    "argprom",
];

/// A name without what a compiler appended: `sort` of `sort.constprop.1.isra.0`. The number of an outlined region says which
/// one it is, and stays.
pub(crate) fn base(name: &str) -> &str {
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let mut base = name;
    loop {
        let numbered = base.rsplit_once('.').filter(|it| is_number(it.1));
        let without = numbered.map_or(base, |it| it.0);
        match without.rsplit_once('.') {
            Some((rest, word)) if CLONES.contains(&word) && !rest.is_empty() => base = rest,
            _ => return base,
        }
    }
}

/// Name and linkage name by which functions of a normal run go in the other.
#[derive(Debug, Default)]
pub(crate) struct Renamed(FxHashMap<String, (String, String)>);

impl Renamed {
    /// Of functions that each of the two runs has one of by their base name, and by other names.
    pub fn new(run: &Run, normal: &Run) -> Self {
        let of = |run: &Run| {
            let own = run.functions.iter().filter(|it| !it.imported);
            own.map(|it| (it.linkage.clone(), it.name.clone()))
                .collect()
        };
        Self::of(of(run), of(normal))
    }

    fn of(run: Vec<(String, String)>, normal: Vec<(String, String)>) -> Self {
        let bases = |all: &[(String, String)]| {
            let mut bases: FxHashMap<String, Option<(String, String)>> = FxHashMap::default();
            for it in all {
                let known = bases.entry(base(&it.0).to_owned());
                known
                    .and_modify(|known| *known = known.take().filter(|known| known == it))
                    .or_insert_with(|| Some(it.clone()));
            }
            bases
        };
        let (here, there) = (bases(&run), bases(&normal));
        let renamed = there.into_iter().filter_map(|(base, only)| {
            let (only, here) = (only?, here.get(&base)?.clone()?);
            let (linkage, (name, known_as)) = (only.0, (here.1, here.0));
            (linkage != known_as).then_some((linkage, (name, known_as)))
        });
        Self(renamed.collect())
    }

    /// Name and linkage name of a function of the normal run, if it goes by another.
    pub fn known_as(&self, function: &Function) -> Option<(String, String)> {
        match function.imported {
            true => None,
            false => self.0.get(&function.linkage).cloned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_have_base_names_and_regions_their_numbers() {
        for (name, expected) in [
            ("post", "post"),
            ("post.constprop.0", "post"),
            ("sort.constprop.1.isra.0", "sort"),
            ("f.part.0.cold", "f"),
            ("foo(int).constprop.0", "foo(int)"),
            ("main._omp_fn.12", "main._omp_fn.12"),
            ("main._omp_fn.12.constprop.0", "main._omp_fn.12"),
            (".cold", ".cold"),
        ] {
            assert_eq!(base(name), expected);
        }
    }

    #[test]
    fn one_of_each_goes_by_the_name_of_the_run() {
        let all = |names: &[&str]| {
            names
                .iter()
                .map(|it| ((*it).into(), (*it).into()))
                .collect()
        };
        let known = |run: &[&str], normal: &[&str], name: &str| {
            let it = Renamed::of(all(run), all(normal));
            it.0.get(name).map(|it| it.1.clone())
        };
        let post = known(
            &["post", "main"],
            &["post.constprop.0", "main"],
            "post.constprop.0",
        );
        assert_eq!(post.as_deref(), Some("post"));
        let step = known(&["step.isra.0"], &["step"], "step");
        assert_eq!(step.as_deref(), Some("step.isra.0"));
        // Of two, nobody knows which; and what both have stays.
        assert_eq!(known(&["f"], &["f.part.0", "f.part.1"], "f.part.0"), None);
        assert_eq!(known(&["f.isra.0"], &["f.isra.0"], "f.isra.0"), None);
    }
}
