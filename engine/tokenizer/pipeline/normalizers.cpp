#include "engine/tokenizer/pipeline/normalizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/pipeline/json_fields.h"
#include "engine/tokenizer/text/base64.h"
#include "engine/tokenizer/text/charsmap.h"

namespace statescope {
namespace {

using nlohmann::json;
using unicode::Changed;

std::u32string characters_of(const std::string& text) {
  std::u32string characters;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = utf8::character_at(text, at);
    characters += character.code;
    at += character.length;
  }
  return characters;
}

bool is_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Nothing is done, and no bytes need places of their own, where no character changes.
void transform(AlignedText& text, const std::u32string& before, const std::vector<Changed>& changed) {
  const bool is_same =
      std::ranges::equal(before, changed, [](char32_t c, const Changed& part) { return part.code == c && part.change == 0; });
  if (!is_same) text.transform(changed);
}

/// Every character becomes what `change` lists for it: the first in its place, the others put in.
template <class Change>
void change_characters(AlignedText& text, Change change) {
  const std::u32string before = characters_of(text.text());
  std::vector<Changed> changed;
  changed.reserve(before.size());
  for (const char32_t c : before) {
    int put_in = 0;
    for (const char32_t part : change(c)) changed.push_back({part, put_in++ > 0 ? 1 : 0});
  }
  transform(text, before, changed);
}

void to_form(AlignedText& text, unicode::Form form) {
  if (is_ascii(text.text())) return;
  const std::u32string before = characters_of(text.text());
  transform(text, before, unicode::normal_form(before, form));
}

void to_lower(AlignedText& text) {
  change_characters(text, [](char32_t c) { return unicode::lower(c); });
}

void strip_accents(AlignedText& text) {
  text.filter([](char32_t c) { return !unicode::is_mark_without_space(c); });
}

class InForm final : public Normalizer {
 public:
  explicit InForm(unicode::Form form) : form_(form) {}
  void apply(AlignedText& text) const override { to_form(text, form_); }

 private:
  unicode::Form form_;
};

/// One of those that need nothing but the text.
class Simple final : public Normalizer {
 public:
  explicit Simple(void (*change)(AlignedText&)) : change_(change) {}
  void apply(AlignedText& text) const override { change_(text); }

 private:
  void (*change_)(AlignedText&);
};

class ByteLevel final : public Normalizer {
 public:
  void apply(AlignedText& text) const override { text = text.in_byte_alphabet(); }
  double growth() const override { return 2; }
  bool is_byte_level() const override { return true; }
};

class Replace final : public Normalizer {
 public:
  Replace(SplitPattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(AlignedText& text) const override {
    std::vector<Range> matches;
    pattern_.each_match(text.text(), {0, static_cast<std::uint32_t>(text.text().size())}, [&](Range match) { matches.push_back(match); });
    text.replace(matches, content_);
  }
  double growth() const override { return static_cast<double>(content_.size()); }

 private:
  SplitPattern pattern_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string content) : content_(std::move(content)) {}
  void apply(AlignedText& text) const override { text.prepend(content_); }

 private:
  std::string content_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(AlignedText& text) const override {
    const std::string& whole = text.text();
    std::size_t begin = whole.size(), end = 0;
    for (std::size_t at = 0; at < whole.size();) {
      const Character character = utf8::character_at(whole, at);
      if (!unicode::is_white_space(character.code)) {
        begin = std::min(begin, at);
        end = at + character.length;
      }
      at += character.length;
    }
    if (!left_) begin = 0;
    if (!right_) end = whole.size();
    if (begin > 0 || end < whole.size())
      text = text.slice({static_cast<std::uint32_t>(std::min(begin, end)), static_cast<std::uint32_t>(end)});
  }

 private:
  bool left_, right_;
};

/// sentencepiece's table as Hugging Face applies it: whole grapheme clusters by their shortest key.
class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const std::string& bytes) : map_(bytes) {}
  void apply(AlignedText& text) const override {
    const std::u32string before = characters_of(text.text());
    std::vector<Changed> changed;
    int state = 0;
    for (std::size_t begin = 0; begin < before.size();) {
      std::size_t end = begin + 1;
      while (end < before.size() && !unicode::is_cluster_break(before[end - 1], before[end], state)) ++end;
      cluster(before.substr(begin, end - begin), changed);
      begin = end;
    }
    transform(text, before, changed);
  }

 private:
  static constexpr std::size_t kLongestCluster = 5;  // bytes

  void cluster(const std::u32string& characters, std::vector<Changed>& changed) const {
    std::string bytes;
    for (const char32_t c : characters) utf8::append(bytes, c);
    if (bytes.size() <= kLongestCluster) {
      if (const auto match = map_.shortest(bytes)) return put(match->value, characters.size(), changed);
    }
    for (const char32_t c : characters) {
      const std::string one = utf8::of(c);
      if (const auto match = map_.shortest(one))
        put(match->value, 1, changed);
      else
        changed.push_back({c, 0});
    }
  }

  /// `value` takes the place of so many characters: one by one, the last for all that are left, or put in.
  static void put(std::string_view value, std::size_t characters, std::vector<Changed>& changed) {
    const std::u32string after = characters_of(utf8::repaired(value));
    const auto more = static_cast<std::ptrdiff_t>(after.size()) - static_cast<std::ptrdiff_t>(characters);
    for (std::size_t i = 0; i < after.size(); ++i)
      changed.push_back({after[i], static_cast<std::ptrdiff_t>(after.size() - i) <= more ? 1 : 0});
    if (more < 0 && !changed.empty()) changed.back().change += static_cast<int>(more);
  }

  Charsmap map_;
};

bool is_chinese(char32_t c) {
  const auto within = [c](char32_t first, char32_t last) { return c >= first && c <= last; };
  return within(0x4E00, 0x9FFF) || within(0x3400, 0x4DBF) || within(0x20000, 0x2A6DF) || within(0x2A700, 0x2B73F) ||
         within(0x2B740, 0x2B81F) || within(0x2B920, 0x2CEAF) || within(0xF900, 0xFAFF) || within(0x2F800, 0x2FA1F);
}

class Bert final : public Normalizer {
 public:
  Bert(bool clean, bool chinese, bool accents, bool lower) : clean_(clean), chinese_(chinese), accents_(accents), lower_(lower) {}
  void apply(AlignedText& text) const override {
    if (clean_) clean(text);
    if (chinese_) change_characters(text, [](char32_t c) { return is_chinese(c) ? std::u32string{U' ', c, U' '} : std::u32string{c}; });
    if (accents_) {
      to_form(text, unicode::Form::nfd);
      strip_accents(text);
    }
    if (lower_) to_lower(text);
  }

 private:
  static void clean(AlignedText& text) {
    text.filter([](char32_t c) {
      if (c == '\t' || c == '\n' || c == '\r') return true;
      return c != 0 && c != kReplacement && !unicode::is_control(c);
    });
    change_characters(text, [](char32_t c) { return std::u32string{unicode::is_white_space(c) ? U' ' : c}; });
  }

  bool clean_, chinese_, accents_, lower_;
};

/// sentencepiece's own changes before its table: control characters away, spaces of all kinds one kind.
void nmt(AlignedText& text) {
  text.filter(
      [](char32_t c) { return !((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F); });
  change_characters(text, [](char32_t c) {
    const bool is_space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
                          c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == kReplacement;
    return std::u32string{is_space ? U' ' : c};
  });
}

using List = std::vector<std::unique_ptr<Normalizer>>;

void read_into(List& list, const json& part) {
  const JsonFields fields("normalizer", part);
  const std::string type = fields.type();
  if (type == "Sequence") {
    for (const json& one : fields.list("normalizers")) read_into(list, one);
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    using enum unicode::Form;
    list.push_back(std::make_unique<InForm>(type == "NFC" ? nfc : type == "NFD" ? nfd : type == "NFKC" ? nfkc : nfkd));
  } else if (type == "Lowercase") {
    list.push_back(std::make_unique<Simple>(to_lower));
  } else if (type == "StripAccents") {
    list.push_back(std::make_unique<Simple>(strip_accents));
  } else if (type == "ByteLevel") {
    list.push_back(std::make_unique<ByteLevel>());
  } else if (type == "Nmt") {
    list.push_back(std::make_unique<Simple>(nmt));
  } else if (type == "Replace") {
    list.push_back(std::make_unique<Replace>(fields.pattern("pattern"), fields.text("content")));
  } else if (type == "Prepend") {
    list.push_back(std::make_unique<Prepend>(fields.text("prepend")));
  } else if (type == "Strip") {
    list.push_back(std::make_unique<Strip>(fields.flag("strip_left", true), fields.flag("strip_right", true)));
  } else if (type == "Precompiled") {
    const auto bytes = from_base64(fields.text("precompiled_charsmap", ""));
    if (!bytes) fields.refuse("a precompiled_charsmap that is no base64");
    list.push_back(std::make_unique<Precompiled>(*bytes));
  } else if (type == "BertNormalizer") {
    const bool lower = fields.flag("lowercase", true);
    list.push_back(std::make_unique<Bert>(fields.flag("clean_text", true), fields.flag("handle_chinese_chars", true),
                                          fields.flag("strip_accents", lower), lower));
  } else {
    fields.refuse_type();
  }
}

}  // namespace

List read_normalizers(const json& part) {
  List list;
  if (!part.is_null()) read_into(list, part);
  check_growth("normalizer", list);
  return list;
}

}  // namespace statescope
