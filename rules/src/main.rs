//! `cargo xtask sizes | circles | lengths | limits | prose`: what the rules of the house measure.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use anyhow::{Result, bail};
use lockstep_rules::sizes::Sizes;
use lockstep_rules::{circles, lengths, limits, prose, sources};
use std::path::Path;

fn main() -> Result<()> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    match std::env::args().nth(1).as_deref() {
        Some("sizes") => print!("{}", Sizes::of(&sources(root)?).text()),
        Some("circles") => {
            for circle in circles::circles(&sources(root)?) {
                println!(
                    "{}: {} files: {}",
                    circle.room,
                    circle.files.len(),
                    circle.files.join(" ")
                );
                for (from, line, to) in circle.arrows {
                    println!("    {from}:{line} -> {to}");
                }
            }
        }
        Some("lengths") => {
            for long in lengths::long(&sources(root)?) {
                let reason = if long.has_reason {
                    " (has a reason)"
                } else {
                    ""
                };
                println!("{}{reason}", long.what);
            }
        }
        Some("prose") => {
            println!("median  90 %  longest  over {}  document", prose::WORDS);
            for document in prose::documents(root)? {
                let [median, most, longest] = [0.5, 0.9, 1.0].map(|it| document.quantile(it));
                println!(
                    "{median:>6} {most:>5} {longest:>8} {:>8}  {}",
                    document.long.len(),
                    document.path
                );
                for (line, words, begin) in &document.long {
                    println!("    {}:{line} {words} words: {begin}", document.path);
                }
            }
        }
        Some("limits") => print!("{}", limits::text(&limits::measured(root)?)),
        other => bail!("expected sizes, circles, lengths, limits or prose, found {other:?}"),
    }
    Ok(())
}
