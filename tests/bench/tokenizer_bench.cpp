// Times a tokenizer: its loading, a text whole and line by line, and one long word. compare_tokenizers.py sets the package beside it.
//   tokenizer_bench TOKENIZER TEXT WORD TIMES
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

#include "engine/checkpoint/file.h"
#include "engine/tokenizer/tokenizer.h"

using namespace statescope;

namespace {

double seconds_of(const auto& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The best of several times, each with a tokenizer that has seen nothing yet.
double best(const std::string& path, int times, const auto& work) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < times; ++i) {
    const auto tokenizer = open_tokenizer(path);
    least = std::min(least, seconds_of([&] { work(*tokenizer); }));
  }
  return least;
}

void encode_lines(const Tokenizer& tokenizer, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    tokenizer.encode(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string path = argv[1], text = read_file(argv[2], 1 << 30), word = read_file(argv[3], 1 << 30);
  const int times = std::stoi(argv[4]);
  double load = std::numeric_limits<double>::max();
  for (int i = 0; i < times; ++i) load = std::min(load, seconds_of([&] { open_tokenizer(path); }));
  fmt::print("{{\"tokens\": {}, \"load_s\": {}, \"encode_whole_s\": {}, \"encode_lines_s\": {}, \"word_s\": {}}}\n",
             open_tokenizer(path)->encode(text).ids.size(), load, best(path, times, [&](const Tokenizer& t) { t.encode(text); }),
             best(path, times, [&](const Tokenizer& t) { encode_lines(t, text); }),
             best(path, times, [&](const Tokenizer& t) { t.encode(word); }));
  return 0;
}
