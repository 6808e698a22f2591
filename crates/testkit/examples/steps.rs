//! Prints what the oracle says of a program: `cargo run -p lockstep-testkit --example steps -- PROGRAM [ARGUMENT]...`
#![allow(clippy::print_stdout)]

use lockstep_testkit::{elf::Elf, stepper};
use std::path::Path;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, arguments)) = words.split_first() else {
        println!("expected a program");
        std::process::exit(2);
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let elf = Elf::read(Path::new(program));
    let (events, status) = stepper::events(&elf, Path::new(program), &arguments);
    for line in stepper::lines(&elf, &events) {
        println!("{line}");
    }
    println!("status {status}");
}
