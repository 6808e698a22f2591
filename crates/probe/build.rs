//! Link options of the probe.

fn main() {
    // Its constructor runs before every other object's, so that theirs are recorded too.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,initfirst");
    // Nothing of the C compiler's own start-up objects or libraries: no needed library, no symbol
    // that the host could bind to something else.
    println!("cargo:rustc-cdylib-link-arg=-nostartfiles");
    println!("cargo:rustc-cdylib-link-arg=-nostdlib");
    println!("cargo:rerun-if-changed=build.rs");
}
