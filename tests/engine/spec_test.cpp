// Every section that code, help and tests name stands in engine/models.md or engine/tokenizer.md.
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::spec_test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The first group of each match.
std::set<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) found.insert((*match)[1]);
  return found;
}

/// "4.3" of a heading, "12.5" of a paragraph that begins in bold, "16.3" of the third of §16's identities; "A7" of §13's rows.
std::set<std::string> sections_of(const std::string& document) {
  std::set<std::string> sections = matches(document, "(?:^|\n)#+ ([0-9]+(?:\\.[0-9]+)?)");
  sections.merge(matches(document, "\\*\\*([0-9]+\\.[0-9]+) "));
  sections.merge(matches(document, "\n\\| (A[0-9]+) \\|"));
  const std::size_t identities = document.find("\n## 16.");
  if (identities != std::string::npos) {
    const std::string part = document.substr(identities, document.find("\n## ", identities + 1) - identities);
    for (const std::string& number : matches(part, "\n([0-9]+)\\. ")) sections.insert("16." + number);
  }
  return sections;
}

std::set<std::string> references_in(const std::string& text) {
  std::set<std::string> references = matches(text, "§([0-9]+(?:\\.[0-9]+)?)");
  references.merge(matches(text, "\\[(A[0-9]+)\\]"));
  return references;
}

}  // namespace

TEST_CASE("spec: every section that is named anywhere is there") {
  const std::string models = text_of(from_source("engine/models.md")), tokenizer = text_of(from_source("engine/tokenizer.md"));
  const std::set<std::string> sections = sections_of(models), of_tokenizers = sections_of(tokenizer);
  REQUIRE(sections.size() > 80);
  CHECK((sections.contains("12.5") && sections.contains("16.3") && sections.contains("A7") && !sections.contains("12.99")));
  for (const std::string& named : references_in(tokenizer)) {
    INFO("tokenizer.md names §" << named);
    CHECK(of_tokenizers.contains(named));
  }
  std::size_t named_in_all = 0;
  const std::set<std::string> kinds{".cpp", ".h", ".cu", ".cuh", ".py", ".md", ".json"};
  for (const char* room : {"app", "engine", "kernels", "views", "datasets", "tests", "assets"}) {
    for (const auto& entry : fs::recursive_directory_iterator(from_source(room))) {
      const bool is_data = entry.path().string().find("/tests/golden/") != std::string::npos;
      if (!kinds.contains(entry.path().extension().string()) || is_data || entry.path().filename() == "tokenizer.md") continue;
      for (const std::string& named : references_in(text_of(entry.path()))) {
        INFO(entry.path() << " names §" << named);
        CHECK(sections.contains(named));
        ++named_in_all;
      }
    }
  }
  CHECK(named_in_all > 100);
}

}  // namespace statescope::spec_test
