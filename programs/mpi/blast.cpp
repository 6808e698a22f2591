// build: -fopenmp
// A point blast in a box: an explicit hydrodynamics code in the manner of larger ones, C++ with MPI and OpenMP. Ranks lie
// in a box (MPI_Dims_create), each has a cube of cells. A step: the smallest time step of all ranks (from the second step
// on), forces at the nodes and their sums over the faces of the neighbours, motion, strains, an exchange of gradients,
// viscosity, the equation of state region by region, the limits on the next step (in each thread, joined in a critical
// section).
//
//   blast [--steps N] [--threads N] [--bug NAME] [--at R.T.S]     rank R, thread T, from step S on (0.1.20)
//
//   skip       rank R leaves step S's advance() out: it is ahead, and its neighbours wait
//   extra      rank R's equation of state iterates once more in every region
//   operation  rank R's time step is the largest of all (MPI_MAX for MPI_MIN)
//   critical   thread T of rank R joins its limit without the critical section
//   swap       rank R exchanges gradients before it computes strains
//   hang       thread T of rank R never ends the limits of step S
//   count      rank R sends one number fewer to each neighbour than these expect
//
// A right trace has --steps (40) calls of Domain::advance() in thread 0 of every rank, and as many of GOMP_critical_start
// in every thread.

#include <mpi.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

enum class Bug { none, skip, extra, operation, critical, swap, hang, count };
constexpr std::array<const char *, 8> names{"none", "skip",     "extra", "operation",
                                            "critical", "swap", "hang",  "count"};

struct Place {
  int rank = 0, thread = 1, step = 20;
};

// No call may differ between healthy and faulty runs but those that the bug is about: options are read by hand.
inline __attribute__((always_inline)) bool same(const char *a, const char *b) {
  while (*a && *a == *b)
    a++, b++;
  return *a == *b;
}

struct Options {
  int steps = 40, threads = 3;
  Bug bug = Bug::none;
  Place at;

  inline __attribute__((always_inline)) static int number(const char *&text) {
    int value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
      value = 10 * value + *text - '0';
    if (*text == '.')
      text++;
    return value;
  }

  inline __attribute__((always_inline)) Options(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
      const char *value = argv[i + 1];
      if (same(argv[i], "--steps"))
        steps = number(value);
      else if (same(argv[i], "--threads"))
        threads = number(value);
      else if (same(argv[i], "--bug")) {
        for (size_t bug_number = 0; bug_number < names.size(); bug_number++)
          if (same(value, names[bug_number]))
            bug = static_cast<Bug>(bug_number);
      } else if (same(argv[i], "--at")) {
        at.rank = number(value);
        at.thread = number(value);
        at.step = number(value);
      }
    }
  }
};

class Mesh {
public:
  explicit Mesh(MPI_Comm world) {
    int ranks = 0;
    MPI_Comm_size(world, &ranks);
    std::array<int, 3> periods{};
    MPI_Dims_create(ranks, 3, sides_.data());
    MPI_Cart_create(world, 3, sides_.data(), periods.data(), 0, &box_);
    MPI_Comm_rank(box_, &rank_);
    for (int axis = 0; axis < 3; axis++) {
      int down = 0, up = 0;
      MPI_Cart_shift(box_, axis, 1, &down, &up);
      if (down != MPI_PROC_NULL)
        neighbours_.push_back({down, 2 * axis});
      if (up != MPI_PROC_NULL)
        neighbours_.push_back({up, 2 * axis + 1});
    }
  }
  ~Mesh() { MPI_Comm_free(&box_); }
  Mesh(const Mesh &) = delete;
  Mesh &operator=(const Mesh &) = delete;

  // What faces of a field say to the neighbours, and what these say, added.
  void exchange(std::vector<double> &field, int tag, size_t missing) {
    std::vector<std::vector<double>> in(neighbours_.size()), out(neighbours_.size());
    std::vector<MPI_Request> requests;
    requests.reserve(2 * neighbours_.size());
    for (size_t i = 0; i < neighbours_.size(); i++)
      receive(in[i], neighbours_[i], tag, requests);
    for (size_t i = 0; i < neighbours_.size(); i++)
      send(field, out[i], neighbours_[i], tag, missing, requests);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < neighbours_.size(); i++)
      unpack(field, in[i], neighbours_[i]);
  }

  double smallest(double own, bool wrong) {
    double all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, wrong ? MPI_MAX : MPI_MIN, box_);
    return all;
  }

  int rank() const { return rank_; }
  static constexpr size_t face = 16;

private:
  struct Neighbour {
    int rank, side;
  };

  void receive(std::vector<double> &in, const Neighbour &from, int tag, std::vector<MPI_Request> &requests) {
    in.resize(face);
    requests.emplace_back();
    // The neighbour's side is the other one of the axis.
    MPI_Irecv(in.data(), face, MPI_DOUBLE, from.rank, tag + (from.side ^ 1), box_, &requests.back());
  }

  void send(const std::vector<double> &field, std::vector<double> &out, const Neighbour &to, int tag, size_t missing,
            std::vector<MPI_Request> &requests) {
    out.assign(field.begin(), field.begin() + face);
    requests.emplace_back();
    MPI_Isend(out.data(), static_cast<int>(face - missing), MPI_DOUBLE, to.rank, tag + to.side, box_, &requests.back());
  }

  void unpack(std::vector<double> &field, const std::vector<double> &in, const Neighbour &from) {
    for (size_t i = 0; i < in.size(); i++)
      field[i + from.side] += 1e-3 * in[i];
  }

  MPI_Comm box_ = MPI_COMM_NULL;
  int rank_ = 0;
  std::array<int, 3> sides_{};
  std::vector<Neighbour> neighbours_;
};

// How matter answers to compression.
class Material {
public:
  virtual ~Material() = default;
  virtual double pressure(double energy, double density) const = 0;
};

class Gas final : public Material {
public:
  __attribute__((noinline)) double pressure(double energy, double density) const override {
    return 0.4 * energy * density;
  }
};

class Stiff final : public Material {
public:
  __attribute__((noinline)) double pressure(double energy, double density) const override {
    return 0.4 * energy * density - 0.1 * (1 - density);
  }
};

class Domain {
public:
  Domain(const Options &options, Mesh &mesh)
      : options_(options), mesh_(mesh), force_(cells), position_(cells), energy_(cells), strain_(cells),
        pressure_(cells) {
    if (mesh.rank() == 0)
      energy_[0] = 3.9e3;
    materials_.push_back(std::make_unique<Gas>());
    materials_.push_back(std::make_unique<Stiff>());
  }

  __attribute__((noinline)) void advance(int step) {
    nodal(step);
    elements(step);
  }

  // The next step's size by this rank, from each thread's limits.
  __attribute__((noinline)) double limits(int step) {
    double least = 1e-2;
#pragma omp parallel num_threads(options_.threads)
    {
      int thread = omp_get_thread_num();
      double own = courant(thread);
      volatile bool stays = has(Bug::hang, thread) && step == options_.at.step;
      while (stays)
        ;
      if (has(Bug::critical, thread) && step >= options_.at.step) {
        join(least, own);
      } else {
#pragma omp critical
        join(least, own);
      }
    }
    return least;
  }

  double step_size = 1e-3;
  bool has(Bug bug, int thread = -1) const {
    return options_.bug == bug && options_.at.rank == mesh_.rank() && (thread < 0 || options_.at.thread == thread);
  }

private:
  static constexpr size_t cells = 512;

  __attribute__((noinline)) void nodal(int step) {
    integrate_stress();
    control_hourglass();
    mesh_.exchange(force_, 100, has(Bug::count) && step >= options_.at.step ? 1 : 0);
    accelerate();
  }

  __attribute__((noinline)) void elements(int step) {
    if (has(Bug::swap) && step >= options_.at.step) {
      mesh_.exchange(strain_, 200, 0);
      strains();
    } else {
      strains();
      mesh_.exchange(strain_, 200, 0);
    }
    viscosity();
    for (int region = 0; region < 4; region++)
      equation_of_state(region, step);
  }

  __attribute__((noinline)) void integrate_stress() {
#pragma omp parallel for num_threads(options_.threads)
    for (size_t i = 1; i < cells - 1; i++)
      force_[i] = pressure_[i - 1] - pressure_[i + 1];
  }

  __attribute__((noinline)) void control_hourglass() {
    for (size_t i = 2; i < cells - 2; i++)
      force_[i] -= 1e-2 * (force_[i - 2] + force_[i + 2]);
  }

  __attribute__((noinline)) void accelerate() {
    for (size_t i = 0; i < cells; i++)
      position_[i] += step_size * step_size * force_[i];
  }

  __attribute__((noinline)) void strains() {
    for (size_t i = 1; i < cells; i++)
      strain_[i] = position_[i] - position_[i - 1];
  }

  __attribute__((noinline)) void viscosity() {
#pragma omp parallel for num_threads(options_.threads)
    for (size_t i = 0; i < cells; i++)
      pressure_[i] += 1e-2 * std::abs(strain_[i]);
  }

  __attribute__((noinline)) void equation_of_state(int region, int step) {
    // Regions differ in cost.
    int rounds = region + 1 + (has(Bug::extra) && step >= options_.at.step ? 1 : 0);
    for (int round = 0; round < rounds; round++)
      compress(region);
  }

  __attribute__((noinline)) void compress(int region) {
    const Material &material = *materials_[region % materials_.size()];
    for (size_t i = region; i < cells; i += 64)
      pressure_[i] = material.pressure(energy_[i], 1 + 1e-3 * strain_[i]);
  }

  __attribute__((noinline)) double courant(int thread) {
    double most = 1e-9;
    for (size_t i = thread; i < cells; i += 3)
      most = std::max(most, std::abs(strain_[i]));
    return std::min(1e-2, 1e-3 / most);
  }

  __attribute__((noinline)) static void join(double &least, double own) { least = std::min(least, own); }

  const Options &options_;
  Mesh &mesh_;
  std::vector<double> force_, position_, energy_, strain_, pressure_;
  std::vector<std::unique_ptr<Material>> materials_;
};

} // namespace

int main(int argc, char **argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  Options options(argc, argv);
  {
    Mesh mesh(MPI_COMM_WORLD);
    Domain domain(options, mesh);
    double next = domain.step_size;
    for (int step = 0; step < options.steps; step++) {
      if (step > 0)
        domain.step_size = mesh.smallest(next, domain.has(Bug::operation));
      if (!(domain.has(Bug::skip) && step == options.at.step))
        domain.advance(step);
      next = domain.limits(step);
    }
  }
  MPI_Finalize();
  return 0;
}
