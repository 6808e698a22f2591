//! Two builds of a program: functions that a compiler cloned have other names in each (`post`, `post.constprop.0`).
//!
//! *Guarantees*: a function goes by the name of one of the run only where each build has just one of that base name. *Not
//! for*: what one build inlined and the other did not, which is there in one tree only.

use lockstep_trace::{Function, Run, base_name};
use rustc_hash::FxHashMap;

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
                let known = bases.entry(base_name(&it.0).to_owned());
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
