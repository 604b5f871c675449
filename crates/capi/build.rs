//! Gives the shared library its name, by which programs that are linked with it need it: otherwise they need the path that the
//! linker was given.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libapus.so");
    }
}
