#include "views/words.h"

#include <atomic>

namespace statescope {
namespace {

std::atomic<Translator> translator = nullptr;
thread_local int english_only = 0;

/// Null: the words are English.
Translator current_translator() { return english_only > 0 ? nullptr : translator.load(); }

/// How many arguments the pattern has a place for, {{ being a brace.
std::ptrdiff_t places(std::string_view pattern) {
  std::ptrdiff_t count = 0;
  for (std::size_t at = pattern.find('{'); at < pattern.size(); at = pattern.find('{', at + 1)) {
    if (pattern.substr(at).starts_with("{{"))
      ++at;
    else
      ++count;
  }
  return count;
}

}  // namespace

void set_translator(Translator of_program) { translator = of_program; }

InEnglish::InEnglish() { ++english_only; }

InEnglish::~InEnglish() { --english_only; }

std::string words(const char* context, const char* english) {
  const Translator translate = current_translator();
  return translate ? translate(context, english) : english;
}

std::string filled_words(const char* context, fmt::string_view english, fmt::format_args arguments) {
  if (const Translator translate = current_translator()) {
    const std::string pattern = translate(context, english.data());  // a literal: it ends with a zero
    try {
      if (places(pattern) >= places({english.data(), english.size()})) return fmt::vformat(pattern, arguments);
    } catch (const fmt::format_error&) {  // the translator's mistake
    }
  }
  return fmt::vformat(english, arguments);
}

}  // namespace statescope
