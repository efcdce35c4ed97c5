#include "engine/tokenizer/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/nearest.h"

namespace statescope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
constexpr std::string_view white_space = " \t\r\n\v\f";
constexpr std::int64_t byte_values = 256;

template <class TextOf>
std::string joined(std::span<const std::int32_t> ids, std::string_view separator, TextOf text_of) {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) text += separator;
    text += text_of(ids[i]);
  }
  return text;
}

class WordTokenizer final : public Tokenizer {
 public:
  /// `words`: word → id, ids unique.
  explicit WordTokenizer(std::map<std::string, std::int32_t, std::less<>> words) : ids_(std::move(words)) {
    for (const auto& [word, id] : ids_) words_[id] = word;
    info_.kind = "words";
    info_.size = words_.empty() ? 0 : words_.rbegin()->first + 1;
  }

  Encoding encode(std::string_view text, const EncodeOptions&) const override {
    Encoding encoding;
    std::size_t end = 0;
    for (std::size_t begin; (begin = text.find_first_not_of(white_space, end)) != text.npos;) {
      end = std::min(text.find_first_of(white_space, begin), text.size());
      const std::string_view word = text.substr(begin, end - begin);
      const auto found = ids_.find(word);
      if (found == ids_.end())
        throw UnknownWordError(fmt::format("text: word {} (number {}, byte {}) is not among the {} words of this model{}", in_quotes(word),
                                           encoding.ids.size() + 1, begin, ids_.size(), advice(word)));
      encoding.ids.push_back(found->second);
      encoding.begin.push_back(begin);
      encoding.end.push_back(end);
    }
    return encoding;
  }
  std::string text_of(std::int32_t id) const override {
    const auto found = words_.find(id);
    return found == words_.end() ? number_of(id) : found->second;
  }
  std::string decode(std::span<const std::int32_t> ids, bool) const override {
    return joined(ids, " ", [this](std::int32_t id) { return text_of(id); });
  }

 private:
  /// The words that look most like it, where there are some.
  std::string advice(std::string_view word) const {
    constexpr std::size_t most = 3;
    std::vector<std::string> known;
    for (const auto& [each, id] : ids_) known.push_back(each);
    const std::vector<std::string> near = nearest(word, known, most);
    return near.empty() ? "" : fmt::format("; the nearest are {}", one_line(fmt::format("{}", fmt::join(near, ", ")), 200));
  }

  std::map<std::string, std::int32_t, std::less<>> ids_;
  std::map<std::int32_t, std::string> words_;
};

class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer() {
    info_.kind = "bytes";
    info_.size = byte_values;
  }

  Encoding encode(std::string_view text, const EncodeOptions&) const override {
    Encoding encoding;
    for (std::size_t i = 0; i < text.size(); ++i) {
      encoding.ids.push_back(static_cast<unsigned char>(text[i]));
      encoding.begin.push_back(i);
      encoding.end.push_back(i + 1);
    }
    return encoding;
  }
  std::string text_of(std::int32_t id) const override {
    return id >= 0 && id < byte_values ? std::string(1, static_cast<char>(id)) : number_of(id);
  }
  std::string decode(std::span<const std::int32_t> ids, bool) const override {
    return joined(ids, "", [this](std::int32_t id) { return text_of(id); });
  }
  std::optional<std::string> bytes_of(std::int32_t id, bool) const override { return text_of(id); }
};

class NumbersOnly final : public Tokenizer {
 public:
  explicit NumbersOnly(std::string refusal) { info_.refusal = std::move(refusal); }

  Encoding encode(std::string_view, const EncodeOptions&) const override {
    throw Error(info_.refusal + "; give token ids with --ids instead");
  }
  std::string text_of(std::int32_t id) const override { return number_of(id); }
  std::string decode(std::span<const std::int32_t> ids, bool) const override { return joined(ids, " ", number_of); }
};

}  // namespace

std::string number_of(std::int32_t id) { return fmt::format("<{}>", id); }

std::unique_ptr<Tokenizer> word_tokenizer(const fs::path& source, const json& object, std::int64_t vocab_size) {
  std::map<std::string, std::int32_t, std::less<>> words;
  std::map<std::int32_t, std::string> taken;
  for (const auto& [word, id] : object.items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= static_cast<std::uint64_t>(std::max<std::int64_t>(vocab_size, 0)))
      fail(source, fmt::format("tokenizer.json: the id of word {} is not an integer below {}", in_quotes(word), vocab_size));
    const auto [other, is_new] = taken.emplace(id.get<std::int32_t>(), word);
    if (!is_new)
      fail(source,
           fmt::format("tokenizer.json: words {} and {} have the same id {}", in_quotes(other->second), in_quotes(word), other->first));
    words[word] = other->first;
  }
  return std::make_unique<WordTokenizer>(std::move(words));
}

std::unique_ptr<Tokenizer> byte_tokenizer(const fs::path& source, std::int64_t vocab_size) {
  if (vocab_size < byte_values) fail(source, fmt::format("tokenizer.json says bytes, but the model has only {} token ids", vocab_size));
  return std::make_unique<ByteTokenizer>();
}

std::unique_ptr<Tokenizer> numbers_only(std::string refusal) { return std::make_unique<NumbersOnly>(std::move(refusal)); }

}  // namespace statescope
