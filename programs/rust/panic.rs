// A panic that nobody catches, with the backtrace that the standard library prints if asked to.
// A right trace shows main > fail, all ended; status 101.
#[inline(never)]
fn fail(n: u32) {
    assert!(n == 0, "n is {n}");
}

fn main() {
    fail(std::env::args().count() as u32);
}
