//! Functions of MPI, of threads and of OpenMP are named in `api` alone: whoever wants to know what a call does asks its row.
//!
//! This reads the product's string literals. Comments are none, and code of tests is left out.

use crate::shell::root;
use lockstep_api::mpi;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines `FILE COUNT REASON`. The counts only go down.
const EXCEPTIONS: &str = include_str!("function_names.txt");
/// Tables of names; programs of tests; and what knows other libraries by their symbols, and depends on nothing.
const EXEMPT: [&str; 3] = ["api", "testkit", "probe"];
/// How functions of threads and of OpenMP begin.
const PREFIXES: [&str; 6] = [
    "pthread_",
    "__pthread_",
    "GOMP_",
    "gomp_",
    "__kmpc_",
    "omp_",
];

#[test]
fn functions_are_named_in_api_alone() {
    let found = names_by_file();
    let counts: BTreeMap<&str, usize> = EXCEPTIONS
        .lines()
        .filter_map(|line| {
            let (file, rest) = line.split_once(' ')?;
            let (count, reason) = rest.split_once(' ').unwrap_or((rest, ""));
            assert!(!reason.is_empty(), "{line}: expected FILE COUNT REASON");
            Some((file, count.parse().expect(line)))
        })
        .collect();
    let mut wrong = Vec::new();
    let files: BTreeSet<&str> = counts
        .keys()
        .copied()
        .chain(found.keys().map(String::as_str))
        .collect();
    for file in files {
        let names = found.get(file).map_or(&[][..], Vec::as_slice);
        let allowed = counts.get(file).copied().unwrap_or(0);
        if names.len() > allowed {
            wrong.push(format!(
                "{file}: {} names, of which {allowed} may be there: {}; ask api what the function does",
                names.len(),
                names.join(" ")
            ));
        } else if names.len() < allowed {
            wrong.push(format!(
                "{file}: {} names are left: say so in xtask/src/function_names.txt, which has {allowed}",
                names.len()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is named where.
fn names_by_file() -> BTreeMap<String, Vec<String>> {
    let crates = root().join("crates");
    let mut sources = Vec::new();
    for room in entries(&crates) {
        let name = room.file_name().unwrap_or_default().to_string_lossy();
        if !EXEMPT.contains(&&*name) {
            collect(&room.join("src"), &mut sources);
        }
    }
    let parsed: Vec<(PathBuf, Code)> = sources
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).expect("text");
            (path, Code::of(&text))
        })
        .collect();
    let of_tests: BTreeSet<PathBuf> = (parsed.iter())
        .flat_map(|(path, code)| {
            code.test_modules
                .iter()
                .flat_map(|name| files_of(path, name))
        })
        .collect();
    let is_test = |path: &Path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        name.ends_with("tests") || path.ancestors().any(|it| of_tests.contains(it))
    };
    let mut found = BTreeMap::new();
    for (path, code) in parsed.iter().filter(|(path, _)| !is_test(path)) {
        let names: Vec<String> = code.literals.iter().flat_map(|it| names_in(it)).collect();
        if !names.is_empty() {
            let file = path.strip_prefix(root()).expect("within the checkout");
            found.insert(file.to_string_lossy().into_owned(), names);
        }
    }
    found
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(directory).into_iter().flatten();
    all.flatten().map(|it| it.path()).collect()
}

fn collect(directory: &Path, sources: &mut Vec<PathBuf>) {
    for path in entries(directory) {
        if path.is_dir() {
            collect(&path, sources);
        } else if path.extension().is_some_and(|it| it == "rs") {
            sources.push(path);
        }
    }
}

/// Where the module `name` may lie that a file declares: a file, or a directory.
fn files_of(path: &Path, name: &str) -> [PathBuf; 3] {
    let directory = path.parent().unwrap_or(path);
    let own = directory.join(path.file_stem().unwrap_or_default());
    [
        directory.join(format!("{name}.rs")),
        own.join(format!("{name}.rs")),
        own.join(name),
    ]
}

/// Names of functions in a literal; all of it may be a name without `MPI_`.
fn names_in(literal: &str) -> Vec<String> {
    let is_word = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let is_mpi = |word: &str| mpi::Function::of(word.as_bytes()).is_some();
    let is_known = |word: &&str| is_mpi(word) || PREFIXES.iter().any(|it| word.starts_with(it));
    let is_bare = literal.starts_with(|it: char| it.is_ascii_uppercase())
        && !literal[1..].contains(|it: char| !it.is_ascii_lowercase() && it != '_')
        && is_mpi(&format!("MPI_{literal}"));
    // A regular expression spells several: `MPI_(Send|Recv)`.
    let spells = literal.to_ascii_lowercase().contains("mpi_(");
    let words = literal.split(|it| !is_word(it)).filter(is_known);
    let more = (is_bare || spells).then_some(literal);
    words.chain(more).map(str::to_owned).collect()
}

/// What is read of a source file.
#[derive(Default)]
struct Code {
    literals: Vec<String>,
    /// Modules of tests in files of their own.
    test_modules: Vec<String>,
}

impl Code {
    fn of(text: &str) -> Self {
        let (code, literals) = without_literals(text);
        let mut found = Self::default();
        let mut rest = code.as_str();
        while !rest.is_empty() {
            let (product, behind) = rest.split_once("#[cfg(test)]").unwrap_or((rest, ""));
            let kept = product.split(LITERAL).skip(1);
            let kept = kept.filter_map(|it| it.split_once(LITERAL_END)?.0.parse::<usize>().ok());
            found
                .literals
                .extend(kept.filter_map(|it| literals.get(it).cloned()));
            let end = end_of_item(behind);
            let item = &behind[..end];
            if let Some(name) = item.trim_end_matches(';').rsplit_once("mod ")
                && item.ends_with(';')
            {
                found.test_modules.push(name.1.trim().to_owned());
            }
            rest = &behind[end..];
        }
        found
    }
}

/// Around the number of a literal that was taken out.
const LITERAL: char = '\u{1}';
const LITERAL_END: char = '\u{2}';

/// Where the item ends that begins here: behind its `;`, or its last brace.
fn end_of_item(code: &str) -> usize {
    let mut depth = 0usize;
    for (at, letter) in code.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(letter, '}' | ';') {
            return at + 1;
        }
    }
    code.len()
}

/// The code, without comments and with numbers for its literals; and these, without escapes.
fn without_literals(text: &str) -> (String, Vec<String>) {
    let (mut code, mut literals) = (String::new(), Vec::<String>::new());
    let mut rest = text;
    while let Some(at) = rest.find(['/', '"', '\'']) {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |it| it + 2)
        } else if rest.starts_with('"') {
            let (length, literal) = match fence(&code) {
                Some(fence) => raw_literal(rest, &fence),
                None => plain_literal(rest),
            };
            code.push_str(&format!("{LITERAL}{}{LITERAL_END}", literals.len()));
            literals.push(literal);
            length
        } else if rest.starts_with('\'') {
            character(rest)
        } else {
            code.push('/');
            1
        };
        rest = &rest[length..];
    }
    code.push_str(rest);
    (code, literals)
}

/// What a literal behind this code ends with beside its quote, if it is a raw one.
fn fence(code: &str) -> Option<String> {
    let before = code.trim_end_matches('#');
    let is_raw = before.ends_with('r');
    is_raw.then(|| code[before.len()..].to_owned())
}

/// The length of a raw literal, and what it says.
fn raw_literal(text: &str, fence: &str) -> (usize, String) {
    let end = format!("\"{fence}");
    let length = text[1..].find(&end).unwrap_or(text.len() - 1);
    let behind = (1 + length + end.len()).min(text.len());
    (behind, text[1..=length].to_owned())
}

/// The length of a literal in quotes, and what it says.
fn plain_literal(text: &str) -> (usize, String) {
    let mut inner = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (at + 1, inner),
            '\\' => {
                letters.next();
                inner.push(' ');
            }
            _ => inner.push(letter),
        }
    }
    (text.len(), inner)
}

/// The length of a character, or of the sign of a lifetime.
fn character(text: &str) -> usize {
    let mut letters = text.char_indices().skip(1);
    let escaped = text[1..].starts_with('\\');
    if escaped {
        let end = text[2..].char_indices().skip(1).find(|it| it.1 == '\'');
        return end.map_or(text.len(), |(at, _)| at + 3);
    }
    match letters.nth(1) {
        Some((at, '\'')) => at + 1,
        _ => 1,
    }
}

#[test]
fn literals_of_the_product_are_read() {
    let code = Code::of(
        r##"
        // "MPI_Comment"
        const A: &str = "a \"MPI_Send\nMPI_Recv\"";
        const B: &[u8] = br#"say "pthread_join""#;
        fn f<'a>(it: &'a str) -> bool { it.contains('"') || it == "Win_fence" }
        #[cfg(test)]
        mod tests { fn g() { let _ = "MPI_Wait {"; } }
        #[cfg(test)]
        mod more_tests;
        const C: &str = r"^MPI_(Test|Probe)$";
        const D: &str = "MPI_SUM of MPI_Foo: Test omp_";
        "##,
    );
    let names: Vec<String> = code.literals.iter().flat_map(|it| names_in(it)).collect();
    let expected = [
        "MPI_Send",
        "MPI_Recv",
        "pthread_join",
        "Win_fence",
        "^MPI_(Test|Probe)$",
        "omp_",
    ];
    assert_eq!(names, expected);
    assert_eq!(code.test_modules, ["more_tests"]);
}
