//! `lockstep __schema`: the JSON Schemas of what `--json` prints, made from the types that are printed, and a page that lists
//! them. Not for people, who find both in `docs/schema`.

use crate::output::Document;
use crate::{calls, compare, doctor, events, go, info, progress, prune, runs, seal};
use crate::{stack, tree};
use anyhow::{Context, Result};
use clap::Args;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

/// Write the JSON Schemas of what --json prints
#[derive(Debug, Args)]
pub struct Schemas {
    /// Write info.json and so on, and README.md, into this directory
    #[arg(short, value_name = "DIR")]
    output: PathBuf,
}

type Make = fn() -> Schema;

/// What each command prints, by its words.
const DOCUMENTS: [(&str, Make); 21] = [
    ("info", of::<info::Document>),
    ("events", of::<events::Document>),
    ("tree", of::<tree::Document>),
    ("calls", of::<calls::Document>),
    ("stack", of::<stack::Document>),
    ("loops", of::<lockstep_compare::Loops>),
    ("lattice", of::<lockstep_compare::Lattice>),
    ("similarity", of::<lockstep_compare::Similarity>),
    ("compare", of::<compare::Answer>),
    ("diff", of::<lockstep_compare::Diff>),
    ("outliers", of::<lockstep_compare::Outliers>),
    ("baseline check", of::<compare::Answer>),
    ("progress", of::<progress::Document>),
    ("seal", of::<seal::Document>),
    ("go test", of::<go::OfTests>),
    ("go run", of::<go::OfProgram>),
    ("go usages", of::<go::usages::Document>),
    ("go coverage", of::<lockstep_goroutines::coverage::Report>),
    ("doctor", of::<doctor::Document>),
    ("runs", of::<runs::Document>),
    ("runs prune", of::<prune::Document>),
];

/// The schema of a document with these fields.
fn of<T: JsonSchema>() -> Schema {
    // What `record` does not read back of a document is no less a part of it.
    let plain = |schema: &mut Schema| {
        schema.remove("readOnly");
        schema.remove("default");
    };
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let settings = settings.with_transform(RecursiveTransform(plain));
    let mut generator = settings.into_generator();
    let what = T::json_schema(&mut generator).remove("description");
    let mut schema = generator.into_root_schema_for::<Document<T>>();
    schema.insert("description".to_owned(), what.into());
    schema
}

/// Before the list of documents.
const INTRODUCTION: &str = "\
# What `--json` prints

This page and the files beside it are generated from the types that the commands print. To change them, change a type,
then run `cargo xtask pages`.

Each command prints one object. Its [JSON Schema](https://json-schema.org) (draft 2020-12) gives the meaning and the
unit of each field. The tables below list the fields at the top of each object.

* A trace is what one thread did. Its name is `P.T`: process and thread. The process is the MPI rank; without MPI, its
  number in the order of start.
* A task is a rank, or without MPI a thread.
* Events count from 0; lines, iterations and runs count from 1.
";

impl Schemas {
    pub fn run(self) -> Result<ExitCode> {
        fs::create_dir_all(&self.output)
            .with_context(|| format!("{}: expected a directory", self.output.display()))?;
        let mut page = INTRODUCTION.to_owned();
        let mut files = Vec::new();
        for (command, schema) in DOCUMENTS {
            let mut schema = schema();
            schema.insert(
                "title".to_owned(),
                format!("lockstep {command} --json").into(),
            );
            let file = format!("{}.json", command.replace(' ', "-"));
            page.push_str(&section(command, &file, &schema));
            files.push((file, serde_json::to_string_pretty(&schema)? + "\n"));
        }
        files.push(("README.md".to_owned(), page));
        for (name, text) in files {
            let file = self.output.join(name);
            fs::write(&file, text)
                .with_context(|| format!("{}: could not be written", file.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// What the page has of a document.
fn section(command: &str, file: &str, schema: &Schema) -> String {
    let text = |it: Option<&Value>| {
        it.and_then(Value::as_str)
            .unwrap_or_default()
            .replace('\n', " ")
    };
    let mut page = format!(
        "\n## lockstep {command}\n\n{} [The schema]({file}).\n\n| field | meaning |\n|---|---|\n",
        text(schema.get("description"))
    );
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "schema")
    {
        // Writing to a text does not fail.
        let _ = writeln!(page, "| `{name}` | {} |", text(field.get("description")));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments;
    use clap::Command;
    use std::collections::BTreeSet;

    /// The words of commands with `--json`, at any depth.
    fn with_json(command: &Command, words: &str, found: &mut BTreeSet<String>) {
        let mut options = command.get_arguments();
        if options.any(|it| it.get_long() == Some("json")) {
            found.insert(words.to_owned());
        }
        for inner in command.get_subcommands() {
            let words = format!("{words} {}", inner.get_name());
            with_json(inner, words.trim_start(), found);
        }
    }

    #[test]
    fn every_command_with_json_has_a_schema() {
        let mut expected = BTreeSet::new();
        with_json(&arguments::command(), "", &mut expected);
        let found: BTreeSet<String> = DOCUMENTS.iter().map(|it| it.0.to_owned()).collect();
        assert_eq!(found, expected);
    }
}
