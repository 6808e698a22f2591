//! Images whose arrays make them span far more than a displacement reaches: what counts is where the code lies.

use lockstep_testkit::{Hazard, Recipe, tools};

/// The arrays of the program, in elements: 3 x 480 MB, and what needs another memory model.
const MORE: &str = "-DELEMENTS=120000000L";

fn source() -> Recipe {
    Recipe::new("c/large_arrays.c").flag("-O1")
}

fn works(recipe: &Recipe, options: &[&str]) {
    if !tools::require(&[recipe.compiler_name()]) {
        return;
    }
    let Some(unharmed) = Hazard::new(recipe).options(options).unharmed() else {
        return;
    };
    unharmed.exactly(&[("fill", 1), ("triad", 8), ("sum", 1)]);
    // With all images, what ends the process is recorded, and open.
    if options.is_empty() {
        unharmed.ended();
    }
    assert_eq!(unharmed.lost(), 0, "{}", recipe.describe());
}

#[test]
fn arrays_behind_the_code() {
    for compiler in ["gcc", "clang"] {
        for linking in [["-pie", "-fPIE"], ["-no-pie", "-fno-pie"]] {
            works(&source().compiler(compiler).flags(&linking), &[]);
        }
    }
    works(&source(), &["--images", "all"]);
}

#[test]
fn arrays_farther_than_a_displacement_reaches() {
    for model in ["-mcmodel=medium", "-mcmodel=large"] {
        for linking in [["-pie", "-fPIE"], ["-no-pie", "-fno-pie"]] {
            works(&source().flags(&[model, MORE]).flags(&linking), &[]);
        }
    }
}

#[test]
fn arrays_of_a_library() {
    if !tools::require(&["gcc"]) {
        return;
    }
    for flags in [&[][..], &["-mcmodel=medium", MORE]] {
        let library = source().shared().flags(flags).flag("-DLIBRARY").build();
        let library = library.display().to_string();
        for options in [&[][..], &["--images", "all"]] {
            works(&source().flags(&["-DPROGRAM", &library]), options);
        }
    }
}

#[test]
fn arrays_of_a_fortran_program() {
    if !tools::require(&["gfortran"]) {
        return;
    }
    for level in ["-O0", "-O2"] {
        let recipe = Recipe::new("fortran/large_arrays.f90")
            .compiler("gfortran")
            .flag(level);
        if let Some(unharmed) = Hazard::new(&recipe).unharmed() {
            unharmed.ended();
            assert_eq!(unharmed.lost(), 0, "{level}");
        }
    }
}
