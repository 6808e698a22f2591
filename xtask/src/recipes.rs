//! Recipes for the package managers of clusters, filled for one source archive.
//!
//! The recipes in `packaging/` hold `@NAME@` where a release puts what only it knows: the version, the archive's checksum,
//! and the crates of Cargo.lock with their checksums.

use crate::shell::{root, say};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where a recipe lies in `packaging/`, and the name that its package manager wants; `@VERSION@` stands for the version.
const RECIPES: [(&str, &str); 3] = [
    ("spack/lockstep/package.py", "spack/lockstep/package.py"),
    (
        "easybuild/lockstep.eb",
        "easybuild/lockstep-@VERSION@-GCCcore-14.3.0.eb",
    ),
    ("conda-forge/recipe.yaml", "conda-forge/recipe.yaml"),
];

/// A crate of Cargo.lock that comes from elsewhere.
struct Crate {
    name: String,
    version: String,
    checksum: String,
}

/// Fills the recipes for the archive with this SHA-256 sum and writes them below `place`. Each package manager that is here
/// checks its own.
pub fn write(place: &Path, version: &str, sha256: &str) -> Result<()> {
    let lock = fs::read_to_string(root().join("Cargo.lock"))?;
    let crates = crates(&lock)?;
    let names = lines(&crates, |it| {
        format!("    ('{}', '{}'),", it.name, it.version)
    });
    let sums = lines(&crates, |it| {
        format!(
            "    {{'{}-{}.tar.gz': '{}'}},",
            it.name, it.version, it.checksum
        )
    });
    let known = [
        ("@VERSION@", version),
        ("@SHA256@", sha256),
        ("@CRATES@", &names),
        ("@CRATE_CHECKSUMS@", &sums),
    ];
    for (from, to) in RECIPES {
        let source = root().join("packaging").join(from);
        let text = fs::read_to_string(&source).with_context(|| source.display().to_string())?;
        let file = place.join(fill(to, &known)?);
        fs::create_dir_all(file.parent().context("a file lies in a directory")?)?;
        fs::write(&file, fill(&text, &known)?)?;
        check(&file)?;
    }
    Ok(())
}

fn lines(crates: &[Crate], line: impl Fn(&Crate) -> String) -> String {
    crates.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Puts what is known in the place of `@NAME@`.
fn fill(text: &str, known: &[(&str, &str)]) -> Result<String> {
    let mut text = text.to_owned();
    for (name, value) in known {
        text = text.replace(name, value);
    }
    let unknown = text.split('@').skip(1).step_by(2).find(|word| {
        !word.is_empty() && word.bytes().all(|it| it.is_ascii_uppercase() || it == b'_')
    });
    match unknown {
        Some(word) => bail!("expected a word that a release knows, found @{word}@"),
        None => Ok(text),
    }
}

/// The crates of a lock file: its tables `[[package]]` with a checksum. Those of the workspace have none.
fn crates(lock: &str) -> Result<Vec<Crate>> {
    let mut found = Vec::new();
    for table in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = table
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
            line.map(|it| it.trim_matches('"').to_owned())
        };
        let Some(checksum) = value("checksum") else {
            continue;
        };
        let (name, version) = value("name")
            .zip(value("version"))
            .with_context(|| format!("Cargo.lock: expected a name and a version, found {table}"))?;
        found.push(Crate {
            name,
            version,
            checksum,
        });
    }
    Ok(found)
}

/// Renders a recipe as rattler-build's Python package does, with the variants that conda-forge's own machines set.
const RENDER: &str = "\
import rattler_build, sys
variants = 'c_compiler: [gcc]\\nc_stdlib: [sysroot]\\nrust_compiler: [rust]\\n'
recipe = rattler_build.Stage0Recipe.from_file(sys.argv[1])
assert recipe.render(rattler_build.VariantConfig.from_yaml(variants)), 'no variant'
";

/// Asks the package manager itself whether its recipe is right, and says which recipe nobody could check.
fn check(file: &Path) -> Result<()> {
    let (needs, words): (&[&str], &[&str]) = match file.extension().and_then(|it| it.to_str()) {
        Some("eb") => {
            let allow = "--allow-use-as-root-and-accept-consequences";
            (&["eb", "--version"], &["eb", allow, "--check-style"])
        }
        Some("yaml") => (
            &["python3", "-c", "import rattler_build"],
            &["python3", "-c", RENDER],
        ),
        _ => (&["python3", "--version"], &["python3", "-m", "py_compile"]),
    };
    let mut probe = Command::new(needs[0]);
    let asked = probe.args(&needs[1..]).output();
    if !asked.is_ok_and(|it| it.status.success()) {
        let needs = needs.join(" ");
        say(&format!(
            "NOT CHECKED: {} (`{needs}` failed)",
            file.display()
        ));
        return Ok(());
    }
    // What a check leaves beside the recipe is no part of the release.
    let mut command = Command::new(words[0]);
    command.env("PYTHONPYCACHEPREFIX", std::env::temp_dir());
    let output = command.args(&words[1..]).arg(file).output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // EasyBuild passes a parameter that it does not know with a warning.
    let unknown = text.contains("unknown easyconfig parameter");
    if !output.status.success() || unknown {
        bail!("{}: {} says\n{text}", file.display(), words[0]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn crates_are_those_with_a_checksum() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.2\"\nsource = \"x\"\nchecksum = \"ff\"\n\
                    dependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"0.1.0\"\n";
        let found = crates(lock).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].name.as_str(), found[0].version.as_str()),
            ("a", "1.2")
        );
        assert_eq!(found[0].checksum, "ff");
    }

    #[test]
    fn a_word_that_nobody_knows_is_an_error() {
        assert_eq!(fill("a @X@ b", &[("@X@", "1")]).unwrap(), "a 1 b");
        assert!(fill("a @Y@ b", &[("@X@", "1")]).is_err());
        assert_eq!(
            fill("me@here, you@there", &[]).unwrap(),
            "me@here, you@there"
        );
    }

    #[test]
    fn all_recipes_are_filled() {
        let place = std::env::temp_dir().join(format!("lockstep-recipes-{}", std::process::id()));
        let sum = "0f".repeat(32);
        write(&place, "0.1.0", &sum).unwrap();
        let easy = place.join("easybuild/lockstep-0.1.0-GCCcore-14.3.0.eb");
        let text = fs::read_to_string(easy).unwrap();
        assert!(text.contains("('clap', '"), "{text}");
        assert!(
            text.contains(&format!("{{'lockstep-0.1.0.tar.gz': '{sum}'}}")),
            "{text}"
        );
        fs::remove_dir_all(&place).unwrap();
    }
}
