//! What tells this patcher from every other one: a digest of everything that decides about a plan.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let crates = PathBuf::from("..");
    let mut files = Vec::new();
    for name in ["patch", "binary", "format"] {
        collect(&crates.join(name).join("src"), &mut files);
    }
    files.push(crates.join("../Cargo.lock"));
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in &files {
        println!("cargo:rerun-if-changed={}", file.display());
        for byte in fs::read(file).unwrap_or_default() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    println!("cargo:rustc-env=LOCKSTEP_PATCHER={hash:016x}");
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) {
    println!("cargo:rerun-if-changed={}", directory.display());
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}
