// Any bytes as a JSONL file, as templates and as prose: refused with one line, or marks that lie within the text, and examples that can be
// made.
#include <cstdlib>
#include <stdexcept>

#include "datasets/needles.h"
#include "datasets/prompt.h"
#include "datasets/prose.h"
#include "datasets/records.h"
#include "tests/fuzz/input_file.h"
#include "tests/source.h"

namespace {

using namespace statescope;

template <class Try>
void attempt(Try what) try {
  what();
} catch (const std::runtime_error&) {
  return;
}

void check_range(TextRange range, const std::string& text) {
  if (range.begin >= range.end || range.end > text.size()) std::abort();
}

void check(const Example& example) {
  for (const TextRange& needle : example.needles) check_range(needle, example.text);
  for (const ExampleQuestion& question : example.questions) {
    check_range(question.asked, example.text);
    if (question.given.end > 0) check_range(question.given, example.text);
    for (const std::size_t needle : question.needles)
      if (needle >= example.needles.size()) std::abort();
  }
}

void records(const std::filesystem::path& path) {
  for (const Record& record : read_records(path)) check(record.example);
  const Prompt prompt = read_prompt(path);
  for (const PromptSpan& span : prompt.spans) check_range({span.begin, span.end}, prompt.text);
}

void templates(const std::filesystem::path& path) {
  const Templates templates = read_templates(path);
  attempt([&] { check(make_filler_needles({.length = 200, .needles = 0}, templates)->example(0)); });
  attempt([&] { check(make_prose_needles({.length = 900, .values = 2}, templates, std::string(1000, 'x'))->example(0)); });
}

void haystack(const std::filesystem::path& path) {
  static const Templates templates = read_templates(from_source("assets/tasks/needles.json"));
  for (const Split split : {Split::training, Split::evaluation}) {
    const std::string text = prose(path, split);
    attempt([&] { check(make_prose_needles({.length = 120}, templates, text)->example(0)); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const statescope::fuzz::InputFile file(data, size, ".jsonl");
  for (const auto& target : {records, templates, haystack}) attempt([&] { target(file.path()); });
  return 0;
}
