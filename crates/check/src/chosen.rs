//! Which of MPI's rules are told of.

use lockstep_api::mpi::rules::{RULES, Rule};

/// Which rules are told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen(Vec<&'static str>);

impl Default for Chosen {
    fn default() -> Self {
        Self(RULES.iter().map(|it| it.id).collect())
    }
}

impl Chosen {
    /// Reads a list of ids and severities, parted by commas: those alone, or with `-` before each all but those.
    ///
    /// # Errors
    ///
    /// The first word that is neither.
    pub fn parse(list: &str) -> Result<Self, String> {
        let words = list.split(',').map(str::trim).filter(|it| !it.is_empty());
        let words: Vec<&str> = words.collect();
        let leaves_out = words.iter().all(|it| it.starts_with('-'));
        let mut named = Vec::new();
        for word in words {
            let name = if leaves_out { &word[1..] } else { word };
            let is_it = |it: &&&Rule| name == "all" || [it.id, it.severity.name()].contains(&name);
            let before = named.len();
            named.extend(RULES.iter().filter(is_it).map(|it| it.id));
            if named.len() == before && name != "none" {
                return Err(word.to_owned());
            }
        }
        let all = RULES.iter().map(|it| it.id);
        let is_chosen = |it: &&str| named.contains(it) != leaves_out;
        Ok(Self(all.filter(is_chosen).collect()))
    }

    /// Whether a rule is told of.
    #[must_use]
    pub fn has(&self, rule: &Rule) -> bool {
        self.0.contains(&rule.id)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use lockstep_api::mpi::rules::{CONFLICT, FREED, NEVER_FREED, NOT_READY, PAST};

    #[test]
    fn some_of_them() {
        let of = |list: &str| Chosen::parse(list).unwrap();
        let freed = of("freed, luck");
        assert!(freed.has(FREED) && freed.has(CONFLICT) && !freed.has(PAST));
        let others = of("-never-freed,-luck");
        assert!(others.has(FREED) && !others.has(NEVER_FREED) && !others.has(NOT_READY));
        assert_eq!(of("all"), Chosen::default());
        assert!(!of("none").has(FREED));
        assert_eq!(Chosen::parse("fred"), Err("fred".to_owned()));
        assert_eq!(Chosen::parse("freed,-luck"), Err("-luck".to_owned()));
    }
}
