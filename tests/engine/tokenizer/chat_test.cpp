// Chat templates against what Transformers makes of them (tests/golden/chat), byte by byte.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engine/chat/chat_template.h"
#include "engine/chat/request.h"
#include "engine/chat/values/json.h"
#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::chat_test {
namespace {

namespace fs = std::filesystem;
using chat::Dict;
using chat::Value;

std::string golden(const std::string& name) { return from_source("tests/golden/chat/" + name); }

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Dict object(const std::string& text) { return chat::parse_json(text, "test").dict(); }
std::string text_at(const Dict& dict, const std::string& key) {
  const Value* found = dict.find(key);
  return found ? found->text() : "";
}

bool has(const Dict& dict, const std::string& key) { return dict.find(key) != nullptr; }

Dict answer(const std::string& line, const std::string& folder, const Dict& variables = {}) {
  const chat::RequestDefaults defaults{"", chat::parse_time("2026-03-04T05:06:07"), variables};
  return object(chat::answer(line, chat::TemplateFolder(folder), defaults));
}

/// What is wrong with an answer to a case; empty: nothing.
std::string wrong(const Dict& wanted, const Dict& got) {
  if (has(wanted, "text"))
    return has(got, "text") && text_at(got, "text") == text_at(wanted, "text") ? "" : chat::json_text(Value::dict(got), {});
  if (!has(got, "error")) return "no error: " + text_at(got, "text");
  const bool exact = text_at(wanted, "error_from") == "raise_exception";
  return !exact || text_at(got, "error") == text_at(wanted, "error") ? "" : text_at(got, "error");
}

void check_cases(const std::string& name, const Dict& variables = {}) {
  for (const std::string& line : lines_of(golden(name + "/cases.jsonl"))) {
    const Dict wanted = object(line);
    INFO(name << ": " << text_at(wanted, "name"));
    const std::string folder = text_at(wanted, "folder");
    CHECK(wrong(wanted, answer(line, golden(folder.empty() ? name : name + "/" + folder), variables)) == "");
  }
}

std::string rendered(const std::string& source, const std::string& variables = "{}") {
  return chat::ChatTemplate(source).render(object(variables), chat::parse_time("2026-03-04"));
}

/// The one line in which a template ends.
std::string refusal(const std::string& source) {
  try {
    return "rendered: " + rendered(source);
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK(text.find('\n') == std::string::npos);
    return text;
  }
}

}  // namespace

TEST_CASE("chat: every construct as the reference has it") { check_cases("features", object(read(golden("features/context.json")))); }

TEST_CASE("chat: conversations in the manner of published templates") {
  for (const char* family : {"qwen35", "granite4", "mistral"}) check_cases(family);
}

TEST_CASE("chat: where folders keep their templates") { check_cases("loading"); }

TEST_CASE("chat: special tokens of older folders, and of the conversation's own") {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "special_tokens_map.json") << R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>"})";
  std::ofstream(folder / "tokenizer_config.json")
      << R"({"eos_token": "<end>", "chat_template": "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}"})";
  const std::string messages = R"("messages": [{"role": "user", "content": "x"}])";
  CHECK(text_at(answer("{" + messages + "}", folder.path().string()), "text") == "<s><end>False");
  CHECK(text_at(answer("{" + messages + R"(, "kwargs": {"eos_token": "E", "pad_token": ""}})", folder.path().string()), "text") ==
        "<s>ETrue");
}

TEST_CASE("chat: a message's nulls are gone, its reasoning has both names") {
  const std::string line =
      R"({"template": "{{ messages }}", "messages": [{"role": "a", "content": null, "reasoning": "r"}, {"thinking": "t"}]})";
  CHECK(text_at(answer(line, golden("loading/no_template")), "text") ==
        "[{'role': 'a', 'reasoning': 'r', 'reasoning_content': 'r', 'thinking': 'r'}, {'thinking': 't', 'reasoning_content': 't'}]");
}

TEST_CASE("chat: lines that are no conversation are one error") {
  for (const char* line : {"", "{", "[]", R"({"messages": []})", R"({"messages": 3})", R"({"messages": [{}], "kwargs": {"tools": 1}})",
                           R"({"messages": [{}], "now": "yesterday"})", R"({"messages": [{}], "template": 5})"}) {
    INFO(line);
    const Dict got = answer(line, golden("qwen35"));
    CHECK(text_at(got, "error") != "");
    CHECK(text_at(got, "error").find('\n') == std::string::npos);
  }
}

TEST_CASE("chat: integers beyond 64 bits, floats and order are kept") {
  CHECK(rendered("{{ x }} {{ x.b + 1 }}", R"({"x": {"b": 18446744073709551616, "a": 1.0}})") ==
        "{'b': 18446744073709551616, 'a': 1.0} 18446744073709551617");
  CHECK(refusal("{{ 2 ** 200 }}") == "line 1: integers beyond 128 bits are not supported");
}

TEST_CASE("chat: what differs easily from Jinja") {
  CHECK(rendered("{{ 1250 | round(-2) }} {{ 1350 | round(-2) }} {{ 1250.0 | round(-2) }} {{ 2.675 | round(2) }}") ==
        "1200 1400 1200.0 2.67");
  CHECK(rendered("{{ 'abcdefghij klmno' | truncate(9) }}|{{ 'abc def' | truncate(4, leeway=0) }}|{{ [1] | truncate }}") ==
        "abcdef...|a...|[1]");
  CHECK(rendered("{{ 0 | map('upper') | list }}{{ none | select | list }}") == "[][]");
  CHECK(refusal("{{ nope | int }}") == "line 1: 'nope' is undefined");
  CHECK(refusal("{{ nope | float }}") == "line 1: 'nope' is undefined");
  CHECK(refusal("{{ nope | indent }}") == "line 1: 'nope' is undefined");
  CHECK(rendered("{{ 2.0 is even }} {{ 2.5 is odd }} {{ 7.5 is divisibleby 2.5 }}") == "True False True");
  CHECK(rendered("{{ '%c%c' % (65, 'é') }}") == "Aé");
  CHECK(rendered("{{ 1 if 5 is divisibleby 5 else 2 }}{{ 'a' if x is defined else 'b' }}") == "1b");
  CHECK(rendered("{{ 'é'.encode() }} {{ \"it's\".encode() }}") == "b'\\xc3\\xa9' b\"it's\"");
  CHECK(rendered("{{ 'a\\u2028b\\x0bc' | indent(1) }}") == "a\n b\n c");
  CHECK(refusal("{% for x in [1] %}{{ x | nofilter }}{% endfor %}") == "line 1: no filter named 'nofilter'");
  CHECK(refusal("{% if false %}{% for x in [1] %}{{ x is notest }}{% endfor %}{% endif %}") == "line 1: no test named 'notest'");
  CHECK(rendered("{% if false %}{{ x is notest }}{% endif %}") == "");
  CHECK(rendered("{{ {'items': 1}['items'] }}{{ {'a': 1}['get']('a') }}{{ {'_x': 2}._x }}") == "112");
  CHECK(rendered("{{ 'ΑΣ ΟΔΟΣ'.lower() }} {{ 'ﬁx'.upper() }} {{ 'ǆ'.title() }}") == "ας οδος FIX ǅ");
  CHECK(rendered("{% set g = [1, 2] | map('string') %}{{ g | list }}{{ g | list }}") == "['1', '2'][]");
  CHECK(rendered("{% for x in [[1, [2]], [3]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}") == "123");
}

TEST_CASE("chat: what goes beyond is refused by its name") {
  CHECK(refusal("{% include 'x' %}") == "line 1: the tag 'include' is not supported");
  CHECK(refusal("a\n{{ 'x' | wordwrap(3) }}") == "line 2: the filter 'wordwrap' is not supported");
  CHECK(refusal("{{ 'x'.translate({}) }}") == "line 1: str.translate is not supported");
  CHECK(refusal("{{ self.x() }}") == "line 1: 'self' is not supported");
  CHECK(refusal("{{ '\\N{DASH}' }}") == "line 1: \\N{…} in a string is not supported");
  CHECK(refusal("{{ '\\ud83d' }}") == "line 1: a lone surrogate in a string is not supported");
  CHECK(refusal("{{ lipsum() }}") == "line 1: lipsum is not supported");
}

TEST_CASE("chat: templates without an end end with one line") {
  const std::vector<std::string> hostile{
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{{ 'x' * 1000000000000 }}",
      "{{ [0] * 1000000000000 }}",
      "{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
      "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
      "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}{% set ns.l = [ns.l] %}{% endfor %}",
      "{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}",
      "{{ 'x'.center(10**15) }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ '%.1000000000f' % 1.5 }}",
      "{{ '{:>999999999999}'.format('x') }}",
      "{{ ('a' * 9000000).replace('', 'b' * 9000000) }}",
      "{{ [1] | tojson(indent=100000000000) }}",
      "{{ [1, 2] | batch(1000000000000, 0) | list }}",
      "{{ [1, 2] | slice(1000000000000) | list }}",
      "{{ strftime_now('%999999999d') }}",
      "{% set ns = namespace(g=[1]) %}{% for i in range(99999) %}{% set ns.g = ns.g | map('string') %}{% endfor %}{{ ns.g | list }}",
      "{{ " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }}",
      "{{ " + std::string(100000, '-') + "1 }}",
      "{{ 1" +
          [] {
            std::string sum;
            for (int i = 0; i < 100000; ++i) sum += " + 1";
            return sum;
          }() +
          " }}",
      [] {
        std::string tags;
        for (int i = 0; i < 10000; ++i) tags += "{% if true %}";
        return tags;
      }()};
  for (const std::string& source : hostile) {
    INFO(source.substr(0, 100));
    CHECK_FALSE(refusal(source).starts_with("rendered"));
  }
}

TEST_CASE("chat: templates cut off at every byte end with a text or one line") {
  for (const char* name : {"qwen35/template.jinja", "mistral/template.jinja"}) {
    const std::string source = read(golden(name));
    for (std::size_t size = 0; size < source.size(); ++size) refusal(source.substr(0, size));
  }
  const std::string config = read(golden("loading/token_objects/tokenizer_config.json"));
  const test::TemporaryFolder folder;
  for (std::size_t size = 0; size < config.size(); ++size) {
    std::ofstream(folder / "tokenizer_config.json", std::ios::binary | std::ios::trunc) << config.substr(0, size);
    CHECK_THROWS_AS(chat::TemplateFolder(folder.path()), Error);
  }
}

TEST_CASE("chat: a time is a date, or a date and an hour") {
  CHECK(chat::parse_time("2026-03-04T05:06:07").tm_hour == 5);
  CHECK(chat::parse_time("2024-02-29").tm_yday == 59);
  for (const char* text : {"", "2026", "2026-02-30", "2026-03-04T", "2026-03-04T05:06:07Z"}) CHECK_THROWS_AS(chat::parse_time(text), Error);
}

}  // namespace statescope::chat_test
