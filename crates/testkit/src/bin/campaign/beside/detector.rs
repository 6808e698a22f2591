//! Detectors that are built into a program, and what a run says under them.

use anyhow::{Context, Result, ensure};
use lockstep_testkit::artifacts;
use lockstep_testkit::zoo::Kernel;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than any kernel takes by itself, and longer than a detector waits for a lock.
const LIMIT: Duration = Duration::from_millis(1500);
/// Hangs after which a kernel is given up.
const HANGS: u32 = 3;
/// A detector that is built into the program.
pub struct Detector {
    /// As in the table.
    pub name: &'static str,
    /// Modules that it needs.
    modules: &'static [&'static str],
    /// What `sync` is imported as.
    sync: Option<&'static str>,
    /// A file of each kernel's package, behind `package NAME`.
    file: &'static str,
    /// The test that is run.
    test: &'static str,
    environment: &'static [(&'static str, &'static str)],
}

/// All of them.
pub const DETECTORS: [Detector; 5] = [
    Detector {
        name: "go test",
        modules: &[],
        sync: None,
        file: "",
        test: "TestBug",
        environment: &[],
    },
    Detector {
        name: "goleak",
        modules: &["go.uber.org/goleak@v1.3.0"],
        sync: None,
        file: "
import (\"testing\"; \"go.uber.org/goleak\")
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
",
        test: "TestBug",
        environment: &[],
    },
    Detector {
        name: "leak profile",
        modules: &[],
        sync: None,
        file: "
import (\"os\"; \"runtime/pprof\"; \"strings\"; \"testing\"; \"time\")
func look() {
	var text strings.Builder
	pprof.Lookup(\"goroutineleak\").WriteTo(&text, 2)
	if strings.Contains(text.String(), \"(leaked)\") {
		os.Exit(3)
	}
}
func TestMain(m *testing.M) {
	time.AfterFunc(500*time.Millisecond, look)
	code := m.Run()
	look()
	os.Exit(code)
}
",
        test: "TestBug",
        environment: &[("GOEXPERIMENT", "goroutineleakprofile")],
    },
    Detector {
        name: "go-deadlock",
        modules: &["github.com/sasha-s/go-deadlock@v0.3.5"],
        sync: Some("github.com/sasha-s/go-deadlock"),
        file: "
import (\"os\"; \"testing\"; \"time\"; \"github.com/sasha-s/go-deadlock\")
func TestMain(m *testing.M) {
	deadlock.Opts.DeadlockTimeout = 500 * time.Millisecond
	os.Exit(m.Run())
}
",
        test: "TestBug",
        environment: &[],
    },
    Detector {
        name: "synctest",
        modules: &[],
        sync: None,
        file: "
import (\"testing\"; \"testing/synctest\")
func TestInBubble(t *testing.T) { synctest.Test(t, TestBug) }
",
        test: "TestInBubble",
        environment: &[("GODEBUG", "asynctimerchan=0")],
    },
];

impl Detector {
    /// Its copy of the modules of the zoo.
    pub fn place(&self) -> Result<PathBuf> {
        let place = artifacts::target()
            .join("beside")
            .join(self.name.replace(' ', "-"));
        for module in ["zoo", "zoo121"] {
            let to = place.join(module);
            fs::create_dir_all(&to)?;
            let from = artifacts::repository().join("programs/go").join(module);
            fs::copy(from.join("go.mod"), to.join("go.mod"))?;
            for name in self.modules {
                self.go(&to, &["get", name])?;
            }
        }
        Ok(place)
    }

    /// The test binary of a kernel.
    pub fn build(&self, place: &Path, kernel: &Kernel) -> Result<PathBuf> {
        let mut source = kernel.source()?;
        let mut more = format!("package {}\n{}", kernel.name, self.file);
        if let Some(sync) = self.sync {
            if !source.contains("\"sync\"") {
                // Nothing to replace, and nothing that it could see.
                more = format!("package {}\n", kernel.name);
            }
            source = source.replace("\"sync\"", &format!("sync \"{sync}\""));
        }
        let module = place.join(kernel.module());
        let directory = module.join(&kernel.name);
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("kernel_test.go"), source)?;
        fs::write(directory.join("detector_test.go"), more)?;
        let file = directory.join("kernel.test");
        let mut words = vec!["test", "-c", "-vet=off", "-o"];
        let (path, package) = (file.to_string_lossy(), format!("./{}", kernel.name));
        words.push(&path);
        if kernel.needs_race() {
            words.push("-race");
        }
        words.push(&package);
        self.go(&module, &words)?;
        Ok(file)
    }

    fn go(&self, directory: &Path, words: &[&str]) -> Result<()> {
        let output = Command::new("go")
            .args(words)
            .env("GOFLAGS", "-mod=mod")
            .envs(
                self.environment
                    .iter()
                    .filter(|it| it.0 == "GOEXPERIMENT")
                    .copied(),
            )
            .current_dir(directory)
            .output()
            .context("go was not started")?;
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said
            .lines()
            .find(|it| !it.starts_with('#'))
            .unwrap_or_default();
        ensure!(output.status.success(), "go {}: {line}", words[0]);
        Ok(())
    }

    /// In which run it says something.
    pub fn found(&self, file: &Path, runs: u64) -> u64 {
        let mut hangs = 0;
        for number in 1..=runs {
            match self.says(file) {
                Some(true) => return number,
                Some(false) => {}
                None => hangs += 1,
            }
            if hangs == HANGS {
                break;
            }
        }
        0
    }

    /// Whether a run says that something is wrong; `None` where it hangs.
    fn says(&self, file: &Path) -> Option<bool> {
        let mut child = Command::new(file)
            .arg(format!("-test.run=^{}$", self.test))
            .arg("-test.timeout=0")
            // Else the race detector waits a second at each exit.
            .env("GORACE", "atexit_sleep_ms=0")
            .envs(self.environment.iter().copied())
            .current_dir(file.parent()?)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            if let Ok(Some(status)) = child.try_wait() {
                return Some(!status.success());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = child.kill();
        let _ = child.wait();
        None
    }
}
