//! The bench's command line.

/// What `--help` prints.
pub const USAGE: &str = "\
Usage: cargo xtask bench [OPTION]... [PROGRAM]...
       cargo xtask bench slowdown|call|startup|stall|coverage|memory [OPTION]...    (--help says more)

    cargo xtask bench --launcher 'mpirun -n 4' --pairs 5 ~/npb/bt.W.4 ~/npb/cg.W.4
    cargo xtask bench 'mine --size 100'

Each PROGRAM is a path, with arguments if it has spaces. Without any, programs of ours are measured.

  --launcher WORDS   what starts the ranks of every PROGRAM, e.g. 'mpirun -n 4'
  --pairs N          pairs of a plain and a traced run for each tool (3)
  --tools LIST       of lockstep, callgrind, uftrace (all that are here)
  --save NAME        keep the text in bench/results/DATE-MACHINE/NAME.txt
";

/// One program to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// What starts its ranks; empty for a plain program.
    pub launcher: Vec<String>,
    /// Its path and arguments.
    pub words: Vec<String>,
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What starts the ranks.
    pub launcher: Vec<String>,
    /// The programs.
    pub programs: Vec<Subject>,
    /// Pairs for each tool.
    pub pairs: usize,
    /// Tools by name; empty for all.
    pub tools: Vec<String>,
    /// Name under which the result is kept.
    pub save: Option<String>,
}

/// Reads the command line; `None` if help is asked for.
pub fn parse(words: &[String]) -> Result<Option<Options>, String> {
    let mut options = Options {
        launcher: Vec::new(),
        programs: Vec::new(),
        pairs: 3,
        tools: Vec::new(),
        save: None,
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let mut value = || rest.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--help" | "-h" => return Ok(None),
            "--launcher" => options.launcher = split(value()?),
            "--tools" => options.tools = value()?.split(',').map(str::to_owned).collect(),
            "--save" => options.save = Some(value()?.clone()),
            "--pairs" => {
                let number = value()?;
                options.pairs =
                    number
                        .parse()
                        .ok()
                        .filter(|pairs| *pairs > 0)
                        .ok_or_else(|| {
                            format!("--pairs: expected a number from 1, found `{number}`")
                        })?;
            }
            option if option.starts_with('-') => return Err(format!("no option `{option}`")),
            program => options.programs.push(Subject {
                launcher: Vec::new(),
                words: split(program),
            }),
        }
    }
    for program in &mut options.programs {
        program.launcher.clone_from(&options.launcher);
    }
    Ok(Some(options))
}

fn split(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}
