// Closures, iterators, trait objects and a growing vector.
// A right trace shows `area` once for each shape under `total`, and the closure under `apply`.
trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Strip(u64, u64);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}
impl Shape for Strip {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * self.1
    }
}

#[inline(never)]
fn total(shapes: &[Box<dyn Shape>]) -> u64 {
    shapes.iter().map(|shape| shape.area()).sum()
}

#[inline(never)]
fn apply(f: &dyn Fn(u64) -> u64, x: u64) -> u64 {
    f(x)
}

fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(3)), Box::new(Strip(2, 5)), Box::new(Square(4))];
    let sum = total(&shapes);
    println!("{sum}");
    println!("{}", apply(&|x| x * sum, 2));
}
