//! Builds the programs of `programs/` in the variants that tests ask for.

use crate::artifacts::{repository, target};
use crate::command;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// How to build one program.
#[derive(Debug, Clone, Hash)]
pub struct Recipe {
    source: PathBuf,
    name: String,
    compiler: String,
    flags: Vec<String>,
    stripped: bool,
}

impl Recipe {
    /// The program with this path under `programs/`, with its language's first compiler: gcc, g++,
    /// gfortran or rustc.
    ///
    /// # Panics
    /// If it has no source that we know how to compile.
    #[must_use]
    pub fn new(source: &str) -> Self {
        let source = repository().join("programs").join(source);
        let extension = source.extension().unwrap_or_default().to_string_lossy();
        let compiler = match &*extension {
            "c" | "S" => "gcc",
            "cpp" => "g++",
            "f90" => "gfortran",
            "rs" => "rustc",
            _ => panic!("{}: no compiler known", source.display()),
        };
        Self {
            name: source
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            compiler: compiler.to_owned(),
            flags: Vec::new(),
            stripped: false,
            source,
        }
    }

    /// Another compiler.
    #[must_use]
    pub fn compiler(mut self, compiler: &str) -> Self {
        self.compiler = compiler.to_owned();
        self
    }

    /// One more flag.
    #[must_use]
    pub fn flag(mut self, flag: &str) -> Self {
        self.flags.push(flag.to_owned());
        self
    }

    /// More flags.
    #[must_use]
    pub fn flags(mut self, flags: &[&str]) -> Self {
        self.flags
            .extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// Without any symbol that is not needed at run time.
    #[must_use]
    pub fn stripped(mut self) -> Self {
        self.stripped = true;
        self
    }

    /// A shared library instead of a program: `lib` and the source's name and `.so`.
    #[must_use]
    pub fn shared(mut self) -> Self {
        self.name = format!("lib{}.so", self.name);
        self.flags(&["-shared", "-fPIC"])
    }

    /// What `-l` calls the library that it makes.
    #[must_use]
    pub fn library_name(&self) -> &str {
        self.name
            .strip_prefix("lib")
            .and_then(|name| name.strip_suffix(".so"))
            .unwrap_or(&self.name)
    }

    /// The compiler's name.
    #[must_use]
    pub fn compiler_name(&self) -> &str {
        &self.compiler
    }

    /// In words, for a test's messages.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "{} ({} {}{})",
            self.name,
            self.compiler,
            self.flags.join(" "),
            if self.stripped { ", stripped" } else { "" }
        )
    }

    /// The built program, made now if it was not there. Its file name is that of the source.
    ///
    /// # Panics
    /// If it cannot be built, with what the compiler said.
    #[must_use]
    pub fn build(&self) -> PathBuf {
        let text = std::fs::read_to_string(&self.source)
            .unwrap_or_else(|error| panic!("{}: {error}", self.source.display()));
        let mut hasher = DefaultHasher::new();
        (self, &text).hash(&mut hasher);
        let directory = target().join("testkit/programs").join(format!(
            "{}-{:016x}",
            self.name,
            hasher.finish()
        ));
        let program = directory.join(&self.name);
        if !program.exists() {
            std::fs::create_dir_all(&directory).expect("the target directory can be written");
            self.compile(&text, &directory, &program);
        }
        program
    }

    /// Compiles beside `program` and renames, so that nobody ever sees half a program.
    fn compile(&self, text: &str, directory: &Path, program: &Path) {
        let thread = format!("{:?}", std::thread::current().id());
        let mine = directory.join(format!("making-{}-{thread}", std::process::id()));
        std::fs::create_dir_all(&mine).expect("the target directory can be written");
        let made = mine.join(&self.name);
        let mut compiler = command::command(&[&self.compiler]);
        // Compilers leave module files in the directory where they run.
        compiler.current_dir(&mine);
        if self.compiler == "rustc" {
            compiler.args(["--edition", "2024"]);
        }
        compiler.arg(&self.source).arg("-o").arg(&made);
        // Libraries come after the source that needs them.
        compiler.args(needed_flags(text)).args(&self.flags);
        let _ = command::run(&mut compiler).success();
        if self.stripped {
            let _ = command::run(command::command(&["strip"]).arg(&made)).success();
        }
        std::fs::rename(&made, program).expect("a file can be renamed in its directory");
        // Only module files are left in it.
        let _ = std::fs::remove_dir_all(&mine);
    }
}

/// The flags that the program's first comment says it needs.
fn needed_flags(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| {
            line.trim_start_matches(['/', '!', ' '])
                .strip_prefix("build: ")
        })
        .flat_map(str::split_whitespace)
}
