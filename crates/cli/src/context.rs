//! Formal contexts that somebody has: FILE.cxt (Burmeister's format), FILE.csv, or FILE.json with a list of attributes for
//! each object (`{"6.4": ["holds lock a", "region heap"]}`).

use anyhow::{Context as _, Result, bail};
use lockstep_concepts::{Context, csv, cxt};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Whether a path is meant as a context, and not as a run.
pub fn is_context(path: &Path) -> bool {
    let known =
        |extension: &std::ffi::OsStr| ["cxt", "csv", "json"].iter().any(|it| extension == *it);
    path.extension().is_some_and(known) && !path.is_dir()
}

/// Reads a context, by the ending of its file's name.
pub fn read(file: &Path) -> Result<Context> {
    let name = file.display();
    let text =
        fs::read_to_string(file).with_context(|| format!("{name}: expected a formal context"))?;
    match file.extension().and_then(|it| it.to_str()) {
        Some("cxt") => cxt::read(&text).with_context(|| name.to_string()),
        Some("csv") => csv::read(&text).with_context(|| name.to_string()),
        Some("json") => {
            let sets: BTreeMap<String, Vec<String>> = serde_json::from_str(&text).with_context(|| {
                format!("{name}: expected an object with a list of attributes for each trace, such as {{\"6.4\": [\"holds lock a\"]}}")
            })?;
            Ok(Context::from_sets(sets))
        }
        _ => bail!("{name}: expected a name that ends in .cxt, .csv or .json"),
    }
}

/// The attributes of each object of a context.
pub fn sets(file: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let context = read(file)?;
    let attributes = context.attributes();
    let set = |row| {
        let own = lockstep_concepts::ones(context.incidence().row(row));
        own.map(|it| attributes[it].clone()).collect()
    };
    let objects = context.objects().iter().cloned();
    Ok(objects.zip((0..).map(set)).collect())
}

/// A context with somebody's own attributes of its objects.
pub fn join(context: &Context, file: &Path) -> Result<Context> {
    let own = read(file)?;
    if let Some(other) = own
        .objects()
        .iter()
        .find(|it| !context.objects().contains(it))
    {
        bail!(
            "{}: expected attributes of {}, found some of {other}",
            file.display(),
            lockstep_trace::names_in_short(context.objects())
        );
    }
    Ok(context.joined(&own))
}
