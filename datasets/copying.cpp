#include "datasets/copying.h"

#include <vector>

#include "datasets/words.h"

namespace statescope {
namespace {

enum Stream : std::uint32_t { word_stream };
constexpr std::uint32_t word_count = 256;
const std::string mark = "n0";

class Copying : public Task {
 public:
  explicit Copying(const TaskOptions& options) : options_(options) {
    if (options.length < 3 || options.length % 2 == 0)
      throw OptionsError("copy: a length of " + std::to_string(options.length) + " is not odd and at least 3: n words, the mark, n words");
  }

  Example example(std::int64_t index) const override {
    const auto n = static_cast<std::size_t>(options_.length) / 2;
    const Draws draws(options_.seed, options_.split, static_cast<std::uint64_t>(index));
    std::vector<std::string> words(2 * n + 1, mark);
    for (std::size_t i = 0; i < n; ++i)
      words[i] = words[n + 1 + i] = "v" + std::to_string(draws.below(word_count, word_stream, static_cast<std::uint32_t>(i)));
    const WordText joined = join(words);
    const TextRange copy = joined.range(n + 1, n);
    return {.index = index,
            .length = options_.length,
            .text = joined.text,
            .needles = {joined.range(0, n)},
            .questions = {{.asked = joined.range(n), .answer = joined.at(copy), .given = copy, .needles = {0}, .depth = 0}}};
  }

  std::string unit() const override { return "words"; }

 private:
  TaskOptions options_;
};

}  // namespace

std::unique_ptr<const Task> make_copying(const TaskOptions& options) { return std::make_unique<Copying>(options); }

}  // namespace statescope
