#include "views/parts.h"

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"

namespace statescope::parts_test {

TEST_CASE("white space and unprintable bytes are visible") {
  CHECK(visible_text(" anna") == "␣anna");
  CHECK(visible_text("a\n\tb") == "a⏎⇥b");
  CHECK(visible_text("müßig €") == "müßig␣€");
  CHECK(visible_text("\x1b[") == "\\x1b[");
  CHECK(visible_text("\xe2\x82") == "⟨E2⟩⟨82⟩");  // a part of € (tokens that are bytes)
  CHECK(visible_text("\x80"
                     "a\xff") == "⟨80⟩a⟨FF⟩");
  CHECK(visible_text("\xed\xa0") == "⟨ED⟩⟨A0⟩");
  CHECK(visible_text("\xc2\x9b[2J") == "\\x9b[2J");  // U+009B begins a terminal's command like \x1b[
  CHECK(visible_text("\xc2\xa0") == "\xc2\xa0");
  CHECK(visible_text("").empty());
}

TEST_CASE("text for a terminal keeps its white space and gives no commands") {
  CHECK(printable_text("the code\n\tis 8\r\x1b]0;title\x07") == "the code\n\tis 8\\x0d\\x1b]0;title\\x07");
  CHECK(printable_text("müßig \xc2\x9b") == "müßig \\x9b");
}

TEST_CASE("a sentence that has no room loses its last clauses, then size, and an ellipsis comes last of all") {
  const TextStyle style{.size = 10};  // 6 units per character
  const auto drawn = [&](const char* text, float width) {
    TextCanvas canvas({400, 100});
    clauses_text(canvas, {0, 10}, text, style, width, true);
    REQUIRE(canvas.lines().size() == 1);
    return canvas.lines().front();
  };
  const char* text = "Layer 1, head 2, after “a, b; c”";
  CHECK(drawn(text, 200).find(text) != std::string::npos);
  CHECK(drawn(text, 191).find("Layer 1, head 2") != std::string::npos);
  CHECK(drawn(text, 191).find("after") == std::string::npos);
  CHECK(drawn(text, 50).find("Layer 1") != std::string::npos);
  CHECK(drawn(text, 50).find("head") == std::string::npos);
  CHECK(drawn(text, 36).find("Layer 1") != std::string::npos);  // with smaller type
  CHECK(drawn(text, 30).find("…") != std::string::npos);
  TextCanvas canvas({400, 100});
  clauses_text(canvas, {0, 10}, "3 of 4, 2 of 4 · layer 0; head 1", style, 150);
  CHECK(canvas.lines().front().find("'3 of 4, 2 of 4 · layer 0'") != std::string::npos);
}

TEST_CASE("text is shortened to its place, by characters and not by bytes") {
  const TextCanvas canvas({100, 100});
  const TextStyle style{.size = 10};  // 6 units per character
  CHECK(elided(canvas, "abcdef", style, 36) == "abcdef");
  CHECK(elided(canvas, "abcdef", style, 35) == "abcd…");
  CHECK(elided(canvas, "äöüäöü", style, 24) == "äöü…");
  CHECK(elided(canvas, "aäb", style, 12) == "a…");
  CHECK(elided(canvas, "abc", style, 6).empty());
  CHECK(elided(canvas, "at 505 x", style, 36) == "at…");  // not 50…
  CHECK(elided(canvas, "at 505 x", style, 42) == "at 505…");
  CHECK(elided(canvas, "505", style, 12).empty());
  CHECK(elided(canvas, "0.1234", style, 30) == "0.12…");
  CHECK(elided(canvas, "k138", style, 18) == "k1…");
  CHECK(elided(canvas, "", style, 6).empty());
  std::string umlauts;
  for (int i = 0; i < 3000; ++i) umlauts += "ä";
  CHECK(elided(canvas, std::string(5000, 'a'), style, 36) == "aaaaa…");
  CHECK(elided(canvas, umlauts, style, 36) == "äääää…");
  CHECK(elided(canvas, umlauts, style, 6 * 3000) == umlauts);
}

TEST_CASE("lines break at spaces") {
  const TextCanvas canvas({100, 100});
  const TextStyle style{.size = 10};
  CHECK(wrapped(canvas, "one two three", style, 42) == std::vector<std::string>{"one two", "three"});
  CHECK(wrapped(canvas, "unbreakable", style, 12) == std::vector<std::string>{"unbreakable"});
  CHECK(wrapped(canvas, "", style, 12).empty());
}

TEST_CASE("what does not fit: the important first, then the lowest, in order") {
  CHECK(choose_shown(5, 9, std::vector<bool>(5)) == std::vector<std::int64_t>{0, 1, 2, 3, 4});
  CHECK(choose_shown(5, 3, {false, false, false, false, true}) == std::vector<std::int64_t>{0, 1, 4});
  CHECK(choose_shown(5, 1, {false, false, true, true, false}) == std::vector<std::int64_t>{2});
  CHECK(choose_shown(0, 3, {}).empty());
}

TEST_CASE("words") {
  CHECK(layer_list({}, "no layer") == "no layer");
  CHECK(layer_list({4}, "") == "layer 4");
  CHECK(layer_list({0, 2, 5}, "") == "layers 0, 2 and 5");
  CHECK(number(0.1f, 9) == "0.100000001");
  CHECK(slot_title(0, "shared") == "shared");
  CHECK(slot_title(3, "3") == "partition 3");
  CHECK(slot_title(5, "level 5") == "level 5");
}

TEST_CASE("slots have the identity of their partition, with and without a shared one") {
  const LayerInfo sse{.mixer = "", .memory = "", .slot_names = {"shared", "1", "2"}, .partitions = 2, .has_shared_slot = true};
  const LayerInfo mom{.mixer = "", .memory = "", .slot_names = {"1", "2"}, .partitions = 2};
  const LayerInfo gla{.mixer = "", .memory = "", .slot_names = {"state"}};
  CHECK(slot_identity(sse, 0) == 0);
  CHECK(slot_identity(sse, 2) == 2);
  CHECK(slot_identity(mom, 0) == 1);
  CHECK(slot_identity(gla, 0) == 0);
  CHECK(slot_name(sse, 1) == "1");
  CHECK(slot_name(sse, 7) == "7");
}

}  // namespace statescope::parts_test
