//! try
fn main(){let t=lockstep_goroutines::toolchain::Toolchain::of(std::path::Path::new(".")).unwrap();
let o=lockstep_goroutines::overlay::prepare(&t,std::path::Path::new("/tmp/goat/cache"),None).unwrap();println!("{} {:?}",o.file.display(),o.missing);}
