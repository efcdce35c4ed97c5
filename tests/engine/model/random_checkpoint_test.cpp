#include "engine/model/random_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "kernels/cpu/parallel.h"
#include "tests/catch.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::random_checkpoint_test {
namespace {

constexpr std::int64_t vocab = 40'000;  // an embedding of two and a half blocks of weights

std::span<const float> embeddings(const Checkpoint& checkpoint) {
  const auto found = std::ranges::find(checkpoint.tensors, "model.embeddings.weight", &StoredTensor::name);
  return {reinterpret_cast<const float*>(found->data), static_cast<std::size_t>(found->size())};
}

}  // namespace

TEST_CASE("random weights are the same however many threads draw them, and no block repeats another") {
  const Config config(small_config("gla", {{"vocab_size", vocab}}));
  const auto checkpoint = random_checkpoint(config, 3);
  const std::span<const float> all = embeddings(*checkpoint);
  {
    const ThreadLimit alone(1);
    CHECK(std::ranges::equal(embeddings(*random_checkpoint(config, 3)), all));
  }
  CHECK(!std::ranges::equal(embeddings(*random_checkpoint(config, 4)), all));
  constexpr std::size_t block = std::size_t{1} << 20;
  CHECK(!std::ranges::equal(all.first(block), all.subspan(block, block)));
  double sum = 0, squares = 0;
  for (const float x : all) sum += x, squares += static_cast<double>(x) * x;
  const double mean = sum / static_cast<double>(all.size()), deviation = std::sqrt(squares / static_cast<double>(all.size()));
  CHECK(std::abs(mean) < 1e-3);
  CHECK(std::abs(deviation - 0.125) < 1e-3);  // 1 / √64
}

}  // namespace statescope::test::random_checkpoint_test
