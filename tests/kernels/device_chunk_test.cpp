// The chunk form of the decayed outer product on a CUDA device against the CPU. Its products are rounded to bfloat16, so results are
// compared by the norm of their difference.
#include "kernels/decayed_outer_product.h"
#include "tests/kernels/device_cases.h"
#include "tests/kernels/memory_cases.h"

using namespace statescope;
using namespace statescope::testing;

namespace {

constexpr double rounding = 1e-2;

enum class Kind { absent, per_head, per_channel, per_column };
constexpr const char* kind_names[] = {"absent", "per head", "per channel", "per column"};
constexpr Kind kinds[] = {Kind::absent, Kind::per_head, Kind::per_channel};

/// Decays are drawn from [low, high]; where it is `broken` every fifth is −1100 and every eleventh −∞.
struct Decay {
  const char* name;
  float low, high;
  bool broken = false;
};
constexpr Decay none{"0", 0, 0}, weak{"-0.001", -0.001F, -0.001F}, mild{"mild", -0.2F, 0}, strong{"strong", -6, -4},
    broken{"broken", -0.2F, 0, true}, wiped{"-1100", -1100, -1100};

struct Heads {
  std::int64_t state, q, k, v, decay;
};
Heads same(std::int64_t heads) { return {heads, heads, heads, heads, heads}; }

struct Problem {
  Packed segments;
  Kind kind;
  Decay decay;
  float scale = 0.5F;
  Numbers q, k, v, log_decay, initial;

  Problem(Packed segments_, const Heads& heads, std::int64_t K, std::int64_t V, Kind kind_, const Decay& decay_)
      : segments(std::move(segments_)), kind(kind_), decay(decay_) {
    Random random(1);
    const std::int64_t rows = segments.rows();
    q = random.uniform({rows, heads.q, K});
    k = random.uniform({rows, heads.k, K});
    v = random.uniform({rows, heads.v, V});
    initial = random.uniform({segments.slots, heads.state, K, V});
    Shape shape{rows, heads.decay};
    if (kind == Kind::per_channel) shape.push_back(K);
    if (kind == Kind::per_column) shape.push_back(V);
    log_decay = random.uniform(shape, decay.low, decay.high);
    for (std::size_t i = 0; decay.broken && i < log_decay.values.size(); ++i) {
      if (i % 5 == 2) log_decay.values[i] = -1100;
      if (i % 11 == 7) log_decay.values[i] = -std::numeric_limits<float>::infinity();
    }
  }

  DecayedOuterProduct op(Numbers& final_state, Numbers& o) const {
    DecayedOuterProduct op;
    op.q = q.view(), op.k = k.view(), op.v = v.view();
    if (kind != Kind::absent) op.log_decay = log_decay.view();
    if (kind == Kind::per_column) op.decay_axis = DecayAxis::columns;
    op.scale = scale, op.segments = segments.view();
    op.initial_state = initial.view(), op.final_state = final_state.view(), op.o = o.view();
    return op;
  }
  static void apply(const DecayedOuterProduct& op, std::int64_t chunk_size) { decayed_outer_product_chunk(op, chunk_size); }

  std::string name() const {
    return "rows " + std::to_string(segments.rows()) + ", segments " + std::to_string(segments.view().count()) + ", " +
           initial.shape.to_string() + ", decay " + kind_names[static_cast<std::size_t>(kind)] + ", " + decay.name;
  }
};

/// Tensors on a device, their rows `gap` numbers apart, with NaN between them.
class Device {
 public:
  Device(Backend& backend, std::int64_t gap) : backend_(backend), gap_(gap) {}

  Tensor rows(const Numbers& x) { return put(x, gap_); }
  Tensor whole(const Numbers& x) { return put(x, 0); }

  Numbers fetch(const Tensor& x) const {
    Numbers image({x.rows(), x.stride}), result(x.shape);
    backend_.download(image.view(), ConstTensor(x.data, DType::f32, image.shape));
    for (std::int64_t row = 0; row < x.rows(); ++row) std::copy_n(image.row(row), x.row_size(), result.row(row));
    return result;
  }

 private:
  Tensor put(const Numbers& x, std::int64_t gap) {
    const std::int64_t rows = x.shape[0], width = x.shape.row_size();
    Numbers image = poisoned({rows, width + gap});
    for (std::int64_t row = 0; row < rows; ++row) std::copy_n(x.row(row), width, image.row(row));
    const Buffer& memory = memory_.emplace_back(backend_.allocate(image.values.size() * sizeof(float)));
    backend_.upload(Tensor(memory.get(), DType::f32, image.shape), image.view());
    return {memory.get(), DType::f32, x.shape, width + gap};
  }

  Backend& backend_;
  std::int64_t gap_;
  std::vector<Buffer> memory_;
};

/// As run() of memory_cases.h, on the device; slots of no segment must keep their bits.
Result<float> run_on(Backend& backend, const Problem& p, std::int64_t gap, bool in_place) {
  Numbers o = poisoned({p.segments.rows(), p.initial.shape[1], p.initial.shape[3]}),
          final_state = in_place ? p.initial : poisoned(p.initial.shape);
  Device device(backend, gap);
  DecayedOuterProduct op = p.op(final_state, o);
  op.q = device.rows(p.q), op.k = device.rows(p.k), op.v = device.rows(p.v);
  if (op.log_decay) op.log_decay = device.rows(p.log_decay);
  op.final_state = device.whole(final_state), op.o = device.rows(o);
  op.initial_state = in_place ? op.final_state : device.whole(p.initial);
  backend.decayed_outer_product(op, 64);
  Numbers found = device.fetch(op.final_state);
  for (std::int64_t slot = 0; slot < p.segments.slots; ++slot) {
    if (p.segments.owns(slot)) continue;
    const auto size = static_cast<std::size_t>(found.shape.row_size());
    CHECK(same_bits({found.row(slot), size}, {final_state.row(slot), size}));
    std::copy_n(p.initial.row(slot), size, found.row(slot));
  }
  return {device.fetch(op.o).values, found.values};
}

void compare(Backend& backend, const Problem& p, double tolerance = rounding) {
  const Result<float> truth = run(p, 64);
  for (const std::int64_t gap : {0, 3}) {
    for (const bool in_place : {false, true}) {
      INFO(p.name() << (gap > 0 ? ", rows apart" : "") << (in_place ? ", in place" : ""));
      check_close(run_on(backend, p, gap, in_place), truth, tolerance);
    }
  }
}

const Packed mixed_lengths({5, 0, 1, 70, 600, 17}, {6, 2, 0, 3, 7, 5}, 8);
const Packed many_segments({256, 0, 0, 257, 64, 1, 511, 128}, {}, 8);

}  // namespace

TEST_CASE("device: decayed outer product in chunks, shapes", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Kind kind : kinds) {
    for (const std::int64_t T : {1, 2, 31, 32, 33, 63, 64, 65, 130, 1000}) {
      for (const std::int64_t K : {16, 60, 64, 128}) compare(*backend, Problem(Packed(T), same(3), K, K, kind, mild));
      for (const std::int64_t H : {1, 8}) compare(*backend, Problem(Packed(T), same(H), 64, 64, kind, mild));
    }
    for (const std::int64_t T : {65, 600}) {
      for (const auto& [K, V] : {std::pair{60, 1}, {1, 60}, {16, 128}, {128, 20}, {100, 256}, {128, 130}, {256, 64}}) {
        compare(*backend, Problem(Packed(T), same(3), K, V, kind, mild));
      }
    }
    compare(*backend, Problem(Packed(std::int64_t{0}), same(3), 16, 16, kind, mild));
    compare(*backend, Problem(Packed(std::int64_t{8192}), same(8), 128, 128, kind, mild));
  }
  compare(*backend, Problem(Packed(std::int64_t{130}), same(3), 60, 20, Kind::per_column, mild));
}

TEST_CASE("device: decayed outer product in chunks, decays", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Kind kind : {Kind::per_head, Kind::per_channel}) {
    for (const std::int64_t T : {65, 1000}) {
      for (const Decay& decay : {none, weak, mild, strong, broken, wiped}) {
        for (const std::int64_t K : {60, 128}) compare(*backend, Problem(Packed(T), same(3), K, 20, kind, decay));
      }
    }
  }
}

TEST_CASE("device: decayed outer product in chunks, segments and grouped heads", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Kind kind : kinds) {
    for (const Heads& heads : {same(3), Heads{4, 2, 4, 1, 2}, Heads{4, 4, 1, 2, 4}, Heads{6, 3, 2, 6, 1}}) {
      for (const Packed* segments : {&mixed_lengths, &many_segments}) {
        for (const Decay& decay : {mild, broken}) compare(*backend, Problem(*segments, heads, 60, 20, kind, decay));
      }
    }
  }
}

// Every product and every sum is a small integer, so that bfloat16 holds all of them.
TEST_CASE("device: decayed outer product in chunks, numbers that need no rounding", "[device]") {
  const std::shared_ptr<Backend> backend = cuda_backend(Precision::bfloat16);
  if (!backend) return;
  for (const Kind kind : kinds) {
    for (const std::int64_t T : {64, 130, 600}) {
      for (const std::int64_t K : {64, 128}) {
        Problem p(Packed(T), same(2), K, 64, kind, none);
        p.scale = 1;
        for (Numbers* x : {&p.q, &p.v, &p.initial}) {
          for (float& number : x->values) number = std::round(1.5F * number);
        }
        std::fill(p.k.values.begin(), p.k.values.end(), 0.F);
        for (std::int64_t t = 0; t < T; ++t) {
          for (std::int64_t h = 0; h < 2; ++h) p.k.row(t)[h * K + (7 * t + 3 * h) % K] = 1;
        }
        compare(*backend, p, 1e-6);
      }
    }
  }
}
