#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <limits>

#include "app/cli_commands.h"
#include "datasets/prompt.h"
#include "engine/error.h"

namespace statescope {
namespace {

std::vector<std::int32_t> read_ids(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(fmt::format("{}: cannot be read", path));
  std::vector<std::int32_t> ids;
  for (std::string word; file >> word;) {
    std::size_t used = 0;
    long long id = -1;
    try {
      id = std::stoll(word, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used != word.size() || id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
      throw Error(fmt::format("{}: \"{}\" (number {}) is not a token id", path, word.substr(0, 40), ids.size() + 1));
    }
    ids.push_back(static_cast<std::int32_t>(id));
  }
  if (ids.empty()) throw Error(fmt::format("{}: no token ids", path));
  return ids;
}

SpanKind kind_of(PromptPart part) {
  return part == PromptPart::needle ? SpanKind::needle : part == PromptPart::question ? SpanKind::question : SpanKind::answer;
}

}  // namespace

PromptInput load_prompt(const PromptArguments& arguments, const std::string& fallback) {
  PromptInput input;
  if (arguments.text) {
    input.text = *arguments.text;
  } else if (!arguments.ids.empty()) {
    input.ids = read_ids(arguments.ids);
  } else if (const std::string file = arguments.file.empty() ? fallback : arguments.file; !file.empty()) {
    Prompt prompt = read_prompt(file);
    input.text = std::move(prompt.text);
    input.expected = std::move(prompt.expected);
    for (const PromptSpan& span : prompt.spans) input.spans.push_back({kind_of(span.part), span.begin, span.end});
  } else {
    throw Error("no prompt: give one of --text, --ids, --prompt");
  }
  return input;
}

ProgressBar::ProgressBar(std::string what) : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
  if (shown_ >= 0) std::fputs("\r\033[K", stderr);
}

void ProgressBar::show(double fraction) {
  const int percent = static_cast<int>(fraction * 100);
  if (!terminal_ || percent == shown_) return;
  shown_ = percent;
  const int filled = percent * 40 / 100;
  std::fputs(fmt::format("\r{} [{}{}] {:3}%", what_, std::string(static_cast<std::size_t>(filled), '#'),
                         std::string(static_cast<std::size_t>(40 - filled), ' '), percent)
                 .c_str(),
             stderr);
  std::fflush(stderr);
}

}  // namespace statescope
