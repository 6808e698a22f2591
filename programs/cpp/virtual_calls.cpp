// Virtual calls, a diamond of bases (thunks adjust `this`), and a destructor through a base pointer.
// A right trace shows for each shape area and then its destructor.
#include <cstdio>
#include <memory>
#include <vector>

struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Named {
    virtual ~Named() = default;
    virtual const char *name() const = 0;
};
struct Square final : Shape, Named {
    double side;
    explicit Square(double s) : side(s) {}
    ~Square() override { std::puts("square gone"); }
    double area() const override { return side * side; }
    const char *name() const override { return "square"; }
};
struct Circle final : Named, Shape {
    double radius;
    explicit Circle(double r) : radius(r) {}
    ~Circle() override { std::puts("circle gone"); }
    double area() const override { return 3 * radius * radius; }
    const char *name() const override { return "circle"; }
};
__attribute__((noinline)) void describe(const Shape &shape) {
    std::printf("%s %.1f\n", dynamic_cast<const Named &>(shape).name(), shape.area());
}

int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.push_back(std::make_unique<Square>(2));
    shapes.push_back(std::make_unique<Circle>(1));
    for (const auto &shape : shapes) describe(*shape);
    return 0;
}
