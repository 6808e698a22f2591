//! `bench/programs.list`: the programs of the campaign, one section each. The list explains itself.

use anyhow::{Context, Result, bail, ensure};
use regex::Regex;
use std::path::Path;

/// One program.
#[derive(Debug)]
pub struct Program {
    /// Its name in the list.
    pub name: String,
    /// Debian packages, separated by spaces.
    pub packages: String,
    /// Executables that must be here.
    pub needs: Vec<String>,
    /// What is compared, in words.
    pub compares: String,
    /// Programs that must have events.
    pub recorded: Vec<String>,
    /// What is never the same twice, and what stands for it.
    pub rules: Vec<(Regex, String)>,
    /// Files whose contents are not compared.
    pub ignored: Option<Regex>,
    /// Most seconds of a run.
    pub limit: u64,
    /// Whether it is nearly everywhere.
    pub is_sample: bool,
    /// What `sh` runs.
    pub script: String,
}

impl Program {
    /// Executables that are not here.
    pub fn missing(&self) -> Vec<&str> {
        super::absent(&self.needs)
    }
}

/// Reads the list.
pub fn read(path: &Path) -> Result<Vec<Program>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Program>> {
    let mut programs: Vec<Program> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            ensure!(
                programs.iter().all(|program| program.name != name),
                "line {}: [{name}] stands there twice",
                number + 1
            );
            programs.push(Program {
                name: name.to_owned(),
                packages: String::new(),
                needs: Vec::new(),
                compares: "output, status, files".to_owned(),
                recorded: Vec::new(),
                rules: Vec::new(),
                ignored: None,
                limit: 180,
                is_sample: false,
                script: String::new(),
            });
            continue;
        }
        let line_number = || format!("line {}", number + 1);
        let program = programs.last_mut().with_context(line_number)?;
        if let Some(script) = line.strip_prefix("    ") {
            program.script.push_str(script);
            program.script.push('\n');
            continue;
        }
        let (key, value) = line.split_once(':').with_context(line_number)?;
        let value = value.trim();
        let list = || value.split_whitespace().map(str::to_owned).collect();
        match key {
            "packages" => program.packages = value.to_owned(),
            "needs" => program.needs = list(),
            "recorded" => program.recorded = list(),
            "compares" => program.compares = value.to_owned(),
            "normalise" => {
                let (from, to) = value.split_once(" => ").with_context(line_number)?;
                let from = Regex::new(&format!("(?m){from}")).with_context(line_number)?;
                program.rules.push((from, to.to_owned()));
            }
            "ignore" => program.ignored = Some(Regex::new(value).with_context(line_number)?),
            "limit" => program.limit = value.parse().with_context(line_number)?,
            "sample" => program.is_sample = true,
            other => bail!("line {}: no key `{other}`", number + 1),
        }
    }
    for program in &programs {
        ensure!(
            !program.script.is_empty(),
            "[{}] runs nothing",
            program.name
        );
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::{parse, read};
    use lockstep_testkit::artifacts;

    #[test]
    fn the_list_holds_at_least_forty() -> anyhow::Result<()> {
        let programs = read(&artifacts::repository().join("bench/programs.list"))?;
        assert!(programs.len() >= 40, "{}", programs.len());
        assert!(programs.iter().filter(|program| program.is_sample).count() >= 8);
        for program in &programs {
            assert!(!program.packages.is_empty(), "{}", program.name);
            assert!(!program.recorded.is_empty(), "{}", program.name);
        }
        Ok(())
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for wrong in [
            "[a]\n",
            "x: y\n",
            "[a]\nfoo: bar\n    true\n",
            "[a]\n    true\n[a]\n    true\n",
            "[a]\nnormalise: x\n    true\n",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("[a]\n    true\n").is_ok_and(|list| list[0].script == "true\n"));
    }
}
