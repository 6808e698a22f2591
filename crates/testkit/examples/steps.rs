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
    let (events, status) = stepper::events(Path::new(program), &arguments);
    let address_or_name = |function: &lockstep_testkit::elf::Function| {
        let address = || format!("{:#x}", function.range.0);
        function.name.clone().unwrap_or_else(address)
    };
    for line in stepper::lines(&elf, &events, address_or_name) {
        println!("{line}");
    }
    println!("status {status}");
}
