#include "datasets/templates.h"

#include "tests/datasets/input_file.h"
#include "tests/source.h"

namespace statescope::templates_test {
using test::contains;
using test::InputFile;

namespace {

const std::string small =
    R"({"words": {"name": ["ann", "bo"], "digit": ["0", "1"]}, "filler": ["{name} sings .", "so ."], "needle": "{name}  {digit} {digit} {digit} {digit} .",)"
    R"( "question": "what of {name}", "prose": {"needle": "{name} is {value}. ", "question": "{name}? "}})";

std::string replaced(std::string part, const std::string& by) {
  std::string text = small;
  REQUIRE(text.find(part) != text.npos);
  return text.replace(text.find(part), part.size(), by);
}

std::string error_of(const std::string& text) { return test::error_of(InputFile("needles.json", text), read_templates); }

}  // namespace

TEST_CASE("templates are read") {
  const Templates templates = read_templates(InputFile("needles.json", small).path);
  CHECK(templates.classes[templates.names] == std::vector<std::string>{"ann", "bo"});
  REQUIRE(templates.filler.size() == 2);
  CHECK(templates.filler[0][0].one_of == templates.names);
  CHECK_FALSE(templates.filler[0][1].one_of);
  CHECK(templates.needle == "{name} {digit} {digit} {digit} {digit} .");
  CHECK(filled(templates.needle, "ann", "0123") == "ann 0 1 2 3 .");
  CHECK(filled("{name}{name} {value}!", "{value}", "7") == "{value}{value} 7!");
}

TEST_CASE("the shipped templates are sound") {
  const Templates templates = read_templates(from_source("assets/tasks/needles.json"));
  CHECK(templates.classes[templates.names].size() == 124);
  CHECK(templates.filler.size() == 8);
}

TEST_CASE("what is no templates is refused") {
  contains(error_of("[]"), "is not a JSON object");
  contains(error_of("{}"), "no classes of words");
  contains(error_of(replaced(R"(["ann", "bo"])", "[]")), "class \"name\" is not a list of words");
  contains(error_of(replaced(R"("bo")", R"("b o")")), "is not one word");
  contains(error_of(replaced(R"("bo")", R"("{bo}")")), "is not one word");
  contains(error_of(replaced(R"("bo")", R"("")")), "is not one word");
  contains(error_of(replaced(R"("bo")", "7")), "is not one word");
  contains(error_of(replaced(R"("name":)", R"("names":)")), "no class \"name\"");
  contains(error_of(replaced("{name} sings", "{singer} sings")), "names no class");
  contains(error_of(replaced("{name} sings", "{name}s sing")), "names no class");
  contains(error_of(replaced(R"("so .")", R"(" ")")), "without words");
  contains(error_of(replaced(R"("so .")", "1")), "not a list of sentences");
  contains(error_of(replaced(R"("so .")",
                             "\"{name} {name} {name} {name} {name} {name} {name} {name} {name} {name} {name} {name} {name} {name} {name} "
                             "{name} {name}\"")),
           "more than 16");
  contains(error_of(replaced("{digit} .", "7 .")), "\"needle\" needs {name}, 4 times {digit}");
  contains(error_of(replaced("what of {name}", "what")), "\"question\" needs {name}");
  contains(error_of(replaced("{value}. ", "{value}.")), "does not end in a space");
  contains(error_of(replaced("{value}. ", "{value}}. ")), "no other braces");
  contains(error_of(replaced(R"("prose")", R"("verse")")), "no text under \"needle\"");
}

TEST_CASE("templates cut short at any byte are refused") {
  for (std::size_t size = 0; size < small.size(); ++size) error_of(small.substr(0, size));
}

}  // namespace statescope::templates_test
