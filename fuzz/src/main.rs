//! `lockstep-fuzz TARGET [FILE]...` gives files to a reader, for a look at what was found; `lockstep-fuzz --seeds DIR`
//! writes what each reader should accept. With the feature `libfuzzer` it is libFuzzer's program, and the target
//! stands in `LOCKSTEP_FUZZ`.
#![cfg_attr(feature = "libfuzzer", no_main)]

/// The target of this name.
///
/// # Panics
/// Where there is none.
fn target(name: &str) -> lockstep_fuzz::Target {
    let names = lockstep_fuzz::TARGETS.map(|target| target.name).join(", ");
    lockstep_fuzz::target(name).unwrap_or_else(|| panic!("expected one of {names}, found {name:?}"))
}

#[cfg(feature = "libfuzzer")]
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    static TARGET: std::sync::LazyLock<lockstep_fuzz::Target> =
        std::sync::LazyLock::new(|| target(&std::env::var("LOCKSTEP_FUZZ").unwrap_or_default()));
    (TARGET.body)(input);
});

#[cfg(not(feature = "libfuzzer"))]
fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [flag, directory] if flag == "--seeds" => {
            for target in lockstep_fuzz::TARGETS {
                let place = std::path::Path::new(directory).join(target.name);
                std::fs::create_dir_all(&place)?;
                for (number, seed) in (target.seeds)().into_iter().enumerate() {
                    std::fs::write(place.join(format!("seed-{number}")), seed)?;
                }
            }
        }
        [name, files @ ..] => {
            let target = target(name);
            for file in files {
                (target.body)(&std::fs::read(file)?);
            }
        }
        [] => {
            let _ = target("");
        }
    }
    Ok(())
}
