// A panic three frames deep, caught; values dropped on the way; twice, and a panic inside a thread.
// A right trace shows deep > deep > deep, ended before `after` is called, and the drops; the thread's
// trace ends closed.
use std::panic;

struct Noisy(u32);
impl Drop for Noisy {
    #[inline(never)]
    fn drop(&mut self) {
        println!("dropped {}", self.0);
    }
}

#[inline(never)]
fn deep(depth: u32) -> u32 {
    let _noisy = Noisy(depth);
    if depth == 0 {
        panic!("deep");
    }
    deep(depth - 1) + 1
}

#[inline(never)]
fn after(what: &str, failed: bool) {
    println!("{what} failed: {failed}");
}

fn main() {
    panic::set_hook(Box::new(|_| println!("panicking")));
    for _ in 0..2 {
        after("call", panic::catch_unwind(|| deep(2)).is_err());
    }
    after("thread", std::thread::spawn(|| deep(1)).join().is_err());
}
