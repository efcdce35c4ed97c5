// Objects of our JSON formats: what is missing, of another kind, out of range or left over is refused by its name.
#include "engine/checkpoint/json_object.h"

#include <cstdint>

#include "tests/catch.h"

namespace statescope::json_object_test {
namespace {

using nlohmann::json;

template <class Read>
std::string refusal(const json& value, Read read) {
  try {
    JsonObject object(value, "f.json: cell 2");
    read(object);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const json kCell{{"name", "a"}, {"length", 64}, {"share", 0.5}, {"is_last", true}, {"layers", {1, 2}}, {"of", {{"seed", 3}}}};

}  // namespace

TEST_CASE("the keys of an object are read by kind") {
  JsonObject object(kCell, "");
  CHECK(object.text("name") == "a");
  CHECK(object.integer("length", 1, 64) == 64);
  CHECK(object.number("share", 0, 0.5) == 0.5);
  CHECK(object.number("length", 0, 100) == 64);  // a whole number is a number
  CHECK(object.flag("is_last"));
  CHECK(object.list("layers").size() == 2);
  std::optional<std::int64_t> seed, none;
  JsonObject of = object.object("of");
  of.take("seed", seed, 0, 9);
  of.take("other", none, 0, 9);
  CHECK(seed == 3);
  CHECK(!none);
  of.nothing_else("a draw");
  object.nothing_else("a cell");
}

TEST_CASE("what an object lacks, or has too much, is said with its place") {
  CHECK(refusal(json(3), [](JsonObject&) {}) == "f.json: cell 2: is not an object");
  CHECK(refusal(kCell, [](JsonObject& o) { o.text("title"); }) == "f.json: cell 2: has no \"title\"");
  CHECK(refusal(kCell, [](JsonObject& o) { o.text("length"); }) == "f.json: cell 2: \"length\" is not a text");
  CHECK(refusal({{"name", std::string("a\0b", 3)}}, [](JsonObject& o) { o.text("name"); }) == "f.json: cell 2: \"name\" is not a text");
  CHECK(refusal(kCell, [](JsonObject& o) { o.flag("name"); }) == "f.json: cell 2: \"name\" is not true or false");
  CHECK(refusal(kCell, [](JsonObject& o) { o.integer("length", 1, 63); }) ==
        "f.json: cell 2: \"length\" is not a whole number from 1 to 63");
  CHECK(refusal(kCell, [](JsonObject& o) { o.integer("share", 0, 1); }) == "f.json: cell 2: \"share\" is not a whole number from 0 to 1");
  CHECK(refusal({{"n", 18446744073709551615u}}, [](JsonObject& o) { o.integer("n", -1, 5); }) ==
        "f.json: cell 2: \"n\" is not a whole number from -1 to 5");
  CHECK(refusal(kCell, [](JsonObject& o) { o.number("share", 1, 2); }) == "f.json: cell 2: \"share\" is not a number from 1 to 2");
  CHECK(refusal(kCell, [](JsonObject& o) { o.list("of"); }) == "f.json: cell 2: \"of\" is not a list");
  CHECK(refusal(kCell, [](JsonObject& o) { o.object("of").nothing_else("a draw"); }) == "f.json: cell 2: of: 'seed' is no key of a draw");
  CHECK(refusal(kCell, [](JsonObject& o) {
          std::vector<std::string> names;
          o.take("name", names);
        }) == "f.json: cell 2: \"name\" is not a list of texts");
}

}  // namespace statescope::json_object_test
