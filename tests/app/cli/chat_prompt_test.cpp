// --chat, --chat-file and --chat-set: a conversation by a folder's template, as ids of its tokenizer.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/pages/conversation.h"
#include "engine/chat/template_folder.h"
#include "engine/error.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace statescope::chat_prompt_test {
namespace {

/// A tokenizer of letters and three special tokens, with a chat template that writes its own first token.
class Folder {
 public:
  explicit Folder(const std::string& chat_template) {
    write("tokenizer.json", R"({"version": "1.0", "added_tokens": [
      {"id": 5, "content": "<s>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 6, "content": "<user>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false},
      {"id": 7, "content": "<model>", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
      "normalizer": null, "pre_tokenizer": null, "decoder": null,
      "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [5], "tokens": ["<s>"]}}},
      "model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3, "!": 4}, "merges": ["a b"]}})");
    write("tokenizer_config.json", R"({"bos_token": "<s>"})");
    if (!chat_template.empty()) write("chat_template.jinja", chat_template);
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name, std::ios::binary) << text; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::vector<std::int32_t> ids(const PromptArguments& arguments) const { return chat_prompt(arguments, folder_.path().string()).ids; }
  std::string refusal(const PromptArguments& arguments) const {
    try {
      ids(arguments);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

 private:
  test::TemporaryFolder folder_;
};

PromptArguments said(const std::string& text, std::vector<std::string> settings = {}) {
  return {.text = {}, .ids = {}, .file = {}, .chat = text, .chat_file = {}, .chat_settings = std::move(settings)};
}

PromptArguments filed(const std::string& path) {
  return {.text = {}, .ids = {}, .file = {}, .chat = {}, .chat_file = path, .chat_settings = {}};
}

const std::string kTemplate =
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{% if add_generation_prompt %}<model>{% endif %}"
    "{% if loud %}!{% endif %}";
using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("chat: one turn becomes the template's special tokens, and none comes beside them") {
  const Folder folder(kTemplate);
  CHECK(folder.ids(said("ab")) == Ids{5, 6, 3, 7});
  CHECK(folder.ids(said("ab", {"loud=true"})) == Ids{5, 6, 3, 7, 4});
  CHECK(folder.ids(said("ab", {"loud=false"})) == Ids{5, 6, 3, 7});
}

TEST_CASE("chat: a file holds several turns, or a whole line of statescope chat") {
  const Folder folder(kTemplate);
  folder.write("turns.json", "\xEF\xBB\xBF[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"model\", \"content\": \"b\"}]");
  CHECK(folder.ids(filed(folder.path("turns.json"))) == Ids{5, 6, 1, 7, 2, 7});
  folder.write("line.json", R"({"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": false, "kwargs": {"loud": 1}})");
  CHECK(folder.ids(filed(folder.path("line.json"))) == Ids{5, 6, 1, 4});
}

TEST_CASE("chat: the prompt page reads what is said as the command line does") {
  const Folder folder(kTemplate), angry("{{ raise_exception('only system') }}");
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(folder.path(""));
  CHECK(read_chat(*tokenizer, chat::TemplateFolder(folder.path("")), {{"user", "ab"}}).ids == folder.ids(said("ab")));
  folder.write("turns.json", R"([{"role": "user", "content": "a"}, {"role": "model", "content": "b"}, {"role": "user", "content": "!"}])");
  const std::vector<ChatTurn> turns{{"user", "a"}, {"model", "b"}, {"user", "!"}};
  CHECK(read_chat(*tokenizer, chat::TemplateFolder(folder.path("")), turns).ids == folder.ids(filed(folder.path("turns.json"))));
  const TextReading refused = read_chat(*tokenizer, chat::TemplateFolder(angry.path("")), {{"user", "ab"}});
  CHECK(refused.ids.empty());
  CHECK(refused.refused == "only system");
}

TEST_CASE("chat: marks move to where the template puts the words, trimmed or not, and cannot where it changes them") {
  const auto reading = [](const std::string& form, const std::vector<ChatTurn>& turns) {
    const Folder folder(form);
    return read_chat(*open_tokenizer(folder.path("")), chat::TemplateFolder(folder.path("")), turns);
  };
  const auto one = [](const std::string& text, std::size_t begin, std::size_t end) {
    return std::vector<ChatTurn>{{"user", text, {{SpanKind::needle, begin, end}}}};
  };
  const auto marked = [](const TextReading& read) {
    std::vector<std::string> words;
    for (const TextSpan& span : read.spans) words.push_back(read.chat.substr(span.begin, span.end - span.begin));
    return words;
  };
  using Words = std::vector<std::string>;
  const TextReading plain = reading(kTemplate, one(" ab! ", 1, 3));
  CHECK(plain.chat == "<s><user> ab! <model>");
  CHECK(marked(plain) == Words{"ab"});
  const std::string content = "{{ m.content }}";
  std::string trims = kTemplate, shouts = kTemplate;
  trims.replace(trims.find(content), content.size(), "{{ m.content | trim }}");
  shouts.replace(shouts.find(content), content.size(), "{{ m.content | replace('a', 'b') }}");
  CHECK(reading(trims, one(" ab! ", 1, 3)).chat == "<s><user>ab!<model>");
  CHECK(marked(reading(trims, one(" ab! ", 1, 3))) == Words{"ab"});
  CHECK(marked(reading(trims, one(" ab! ", 0, 5))) == Words{"ab!"});
  const TextReading own_word = reading(trims, one("user", 0, 4));
  CHECK(own_word.spans.at(0).begin == 9);  // not the template's own word
  const TextReading changed = reading(shouts, one("ab", 0, 1));
  CHECK(changed.lost_marks);
  CHECK_FALSE(changed.ids.empty());
  CHECK_FALSE(reading(shouts, {{"user", "ab"}}).lost_marks);
  const std::vector<ChatTurn> two{{"user", "ab", {{SpanKind::needle, 1, 2}}}, {"model", "a"}, {"user", "ab", {{SpanKind::question, 0, 1}}}};
  const TextReading several = reading(kTemplate, two);
  CHECK(several.chat == "<s><user>ab<model>a<user>ab<model>");
  CHECK(marked(several) == Words{"b", "a"});
  CHECK(several.spans.at(0).begin == 10);
  CHECK(several.spans.at(1).begin == 25);
}

TEST_CASE("chat: a JSON of messages is turns, and what no turn has is refused by name") {
  const auto roles = [](const std::string& json) {
    std::string all;
    const std::vector<ChatTurn> turns = turns_in(json, "f").value();
    for (const ChatTurn& turn : turns) all += turn.role + "=" + turn.text + ";";
    return all;
  };
  const auto refusal = [](const std::string& json) -> std::string {
    try {
      turns_in(json, "f");
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  CHECK(roles("\xEF\xBB\xBF[{\"role\": \"system\", \"content\": \"Be brief.\"}, {\"content\": \"\", \"role\": \"user\"}]") ==
        "system=Be brief.;user=;");
  CHECK(roles(R"({"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": true})") == "user=a;");
  for (const char* other : {"", "{", "[]", "[1]", R"({"text": "a"})", R"([{"text": "a"}])", "the role"}) CHECK_FALSE(turns_in(other, "f"));
  CHECK(refusal(R"([{"role": "user", "content": "a"}, {"role": "user"}])") == "f: message 2 has no \"content\"");
  CHECK(refusal(R"([{"role": "user", "content": "a"}, 7])") == "f: message 2 is not an object");
  CHECK(refusal(R"([{"role": "user", "content": [{"type": "image"}]}])") == "f: message 1: its \"content\" is not a text");
  CHECK(refusal(R"([{"role": "tool", "content": "a", "name": "x"}])") == "f: message 1: a turn has no 'name'");
  CHECK(refusal(R"({"messages": [{"role": "user", "content": "a"}], "tools": []})") == "f: 'tools' cannot be said in turns");
  CHECK(refusal(R"({"messages": [], "tools": []})") != "");
  CHECK(refusal(R"({"messages": []})") == "f: \"messages\" is not a list of one or more");
}

TEST_CASE("prompt: names of special tokens in a text are those tokens where that is asked for") {
  const Folder folder("");
  PromptArguments typed{.text = "a<user>", .ids = {}, .file = {}, .chat = {}, .chat_file = {}, .chat_settings = {}};
  CHECK(load_prompt(typed, "", folder.path("")).ids.empty());
  typed.special = true;
  CHECK(load_prompt(typed, "", folder.path("")).ids == Ids{5, 1, 6});
}

TEST_CASE("chat: what cannot become a prompt is one line") {
  const Folder folder("{{ raise_exception('only system') }}"), none("");
  CHECK(folder.refusal(said("a")) == "only system");
  CHECK(none.refusal(said("a")).find("has no chat template") != std::string::npos);
  CHECK(folder.refusal(said("a", {"loud"})) == "loud: write NAME=VALUE");
  CHECK(folder.refusal(filed(folder.path("nowhere.json"))) != "");
  CHECK_THROWS_AS(chat_prompt(said("a"), ""), Error);
}

}  // namespace statescope::chat_prompt_test
