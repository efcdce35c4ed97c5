#include "engine/tokenizer/pipeline/pre_tokenizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/file.h"
#include "engine/error.h"
#include "engine/tokenizer/pipeline/json_fields.h"

namespace statescope {

const char* const kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

CutText CutText::of(AlignedText text) {
  CutText words{std::move(text), {}};
  if (!words.text.text().empty()) words.ranges.push_back({0, static_cast<std::uint32_t>(words.text.text().size())});
  return words;
}

namespace {

using nlohmann::json;

/// Puts the pieces of one word, which alternate between matches and what lies between them, where `how` says.
class Cutter {
 public:
  Cutter(Cut how, bool invert, std::vector<Range>& result) : how_(how), invert_(invert), result_(result) {}

  void begin(Range word) {
    at_ = word.begin;
    end_ = word.end;
    first_ = result_.size();
    was_cut_ = false;
  }
  void match(Range match) {
    if (match.begin > at_) piece({at_, match.begin}, invert_);
    piece(match, !invert_);
    at_ = match.end;
  }
  void finish() {
    if (at_ < end_) piece({at_, end_}, invert_);
  }

 private:
  void piece(Range piece, bool is_cut) {
    const bool follows_cut = was_cut_, is_first = result_.size() == first_;
    was_cut_ = is_cut;
    if (how_ == Cut::removed && is_cut) return;
    bool joins = false;
    if (!is_first) {
      if (how_ == Cut::contiguous) joins = is_cut == follows_cut;
      if (how_ == Cut::merged_with_previous) joins = is_cut && !follows_cut;
      if (how_ == Cut::merged_with_next) joins = !is_cut && follows_cut;
    }
    if (joins)
      result_.back().end = piece.end;
    else
      result_.push_back(piece);
  }

  Cut how_;
  bool invert_;
  std::vector<Range>& result_;
  std::uint32_t at_ = 0, end_ = 0;
  std::size_t first_ = 0;  // of this word's pieces in the result
  bool was_cut_ = false;   // the piece before
};

/// Cuts every word at each character of a class.
template <class IsCut>
void cut_at_characters(CutText& words, Cut how, IsCut is_cut) {
  std::vector<Range> result;
  Cutter cutter(how, false, result);
  const std::string& text = words.text.text();
  for (const Range word : words.ranges) {
    cutter.begin(word);
    for (std::uint32_t at = word.begin; at < word.end;) {
      const Character character = utf8::character_at(text, at);
      if (is_cut(character.code)) cutter.match({at, at + character.length});
      at += character.length;
    }
    cutter.finish();
  }
  words.ranges = std::move(result);
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}
bool is_punctuation(char32_t c) { return is_ascii_punctuation(c) || unicode::is_punctuation(c); }

/// Changes every word by itself; the words then lie one after the other in a new text.
template <class Change>
void change_each(CutText& words, Change change) {
  CutText result;
  for (const Range range : words.ranges) {
    AlignedText word = words.text.slice(range);
    change(word);
    const auto begin = static_cast<std::uint32_t>(result.text.text().size());
    result.text.append(std::move(word));
    const auto end = static_cast<std::uint32_t>(result.text.text().size());
    if (end > begin) result.ranges.push_back({begin, end});
  }
  words = std::move(result);
}

class Split final : public PreTokenizer {
 public:
  Split(SplitPattern pattern, Cut how, bool invert) : pattern_(std::move(pattern)), how_(how), invert_(invert) {}
  void cut(CutText& words) const override { cut_at(words, pattern_, how_, invert_); }

 private:
  SplitPattern pattern_;
  Cut how_;
  bool invert_;
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_space, bool use_pattern) : add_space_(add_space) {
    if (use_pattern) pattern_.emplace(kGpt2Pattern, RegexFlavour::oniguruma);
  }
  void cut(CutText& words) const override {
    if (add_space_) {
      change_each(words, [](AlignedText& word) {
        if (!word.text().starts_with(' ')) word.prepend(" ");
      });
    }
    if (pattern_) cut_at(words, *pattern_, Cut::isolated, false);
  }
  bool is_byte_level() const override { return true; }

 private:
  bool add_space_;
  std::optional<SplitPattern> pattern_;
};

enum class Prepend { always, first, never };

class Metaspace final : public PreTokenizer {
 public:
  Metaspace(std::string sign, Prepend prepend, bool split)
      : sign_(std::move(sign)), sign_pattern_(SplitPattern::literal(sign_)), prepend_(prepend), split_(split) {}

  void cut(CutText& words) const override {
    change_each(words, [this](AlignedText& word) {
      word.replace(spaces_of(word.text()), sign_);
      const bool is_first = word.origin_of({0, 0}).begin == 0;
      const bool wants_sign = prepend_ == Prepend::always || (prepend_ == Prepend::first && is_first);
      if (wants_sign && !word.text().starts_with(sign_)) word.prepend(sign_);
    });
    if (split_) cut_at(words, sign_pattern_, Cut::merged_with_next, false);
  }

 private:
  static std::vector<Range> spaces_of(const std::string& text) {
    std::vector<Range> spaces;
    for (std::size_t at = 0; (at = text.find(' ', at)) != text.npos; ++at)
      spaces.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + 1)});
    return spaces;
  }

  std::string sign_;
  SplitPattern sign_pattern_;
  Prepend prepend_;
  bool split_;
};

/// Cuts at a class of characters.
class AtCharacters final : public PreTokenizer {
 public:
  AtCharacters(std::function<bool(char32_t)> is_cut, Cut how) : is_cut_(std::move(is_cut)), how_(how) {}
  void cut(CutText& words) const override { cut_at_characters(words, how_, is_cut_); }

 private:
  std::function<bool(char32_t)> is_cut_;
  Cut how_;
};

Cut cut_called(const JsonFields& fields, const char* key, Cut otherwise) {
  const std::string name = fields.text(key, "");
  if (name.empty()) return otherwise;
  if (name == "Isolated") return Cut::isolated;
  if (name == "Removed") return Cut::removed;
  if (name == "MergedWithPrevious") return Cut::merged_with_previous;
  if (name == "MergedWithNext") return Cut::merged_with_next;
  if (name == "Contiguous") return Cut::contiguous;
  fields.refuse(fmt::format("{} {}", key, in_quotes(name)));
}

std::unique_ptr<PreTokenizer> read_metaspace(const JsonFields& fields) {
  const std::string sign = fields.text("replacement", "▁");
  const bool adds = fields.flag("add_prefix_space", true);
  const std::string scheme = fields.text("prepend_scheme", adds ? "always" : "never");
  const Prepend prepend = scheme == "first" ? Prepend::first : scheme == "never" ? Prepend::never : Prepend::always;
  if (prepend == Prepend::always && scheme != "always") fields.refuse(fmt::format("prepend_scheme {}", in_quotes(scheme)));
  return std::make_unique<Metaspace>(sign, prepend, fields.flag("split", true));
}

using List = std::vector<std::unique_ptr<PreTokenizer>>;

void read_into(List& list, const json& part) {
  const JsonFields fields("pre_tokenizer", part);
  const std::string type = fields.type();
  const auto add_cut = [&](std::function<bool(char32_t)> is_cut, Cut how) {
    list.push_back(std::make_unique<AtCharacters>(std::move(is_cut), how));
  };
  if (type == "Sequence") {
    for (const json& one : fields.list("pretokenizers")) read_into(list, one);
  } else if (type == "Split") {
    list.push_back(
        std::make_unique<Split>(fields.pattern("pattern"), cut_called(fields, "behavior", Cut::isolated), fields.flag("invert", false)));
  } else if (type == "ByteLevel") {
    list.push_back(std::make_unique<ByteLevel>(fields.flag("add_prefix_space", true), fields.flag("use_regex", true)));
  } else if (type == "Metaspace") {
    list.push_back(read_metaspace(fields));
  } else if (type == "Digits") {
    add_cut(unicode::is_number, fields.flag("individual_digits", false) ? Cut::isolated : Cut::contiguous);
  } else if (type == "Punctuation") {
    add_cut(is_punctuation, cut_called(fields, "behavior", Cut::isolated));
  } else if (type == "BertPreTokenizer") {
    add_cut(unicode::is_white_space, Cut::removed);
    add_cut(is_punctuation, Cut::isolated);
  } else if (type == "WhitespaceSplit") {
    add_cut(unicode::is_white_space, Cut::removed);
  } else if (type == "Whitespace") {
    list.push_back(std::make_unique<Split>(SplitPattern(R"(\w+|[^\w\s]+)", RegexFlavour::oniguruma), Cut::removed, true));
  } else if (type == "CharDelimiterSplit") {
    const std::string delimiter = fields.text("delimiter", "");
    if (utf8::count(delimiter) != 1) fields.refuse("delimiter");
    add_cut([code = utf8::character_at(delimiter, 0).code](char32_t c) { return c == code; }, Cut::removed);
  } else {
    fields.refuse_type();
  }
}

}  // namespace

void cut_at(CutText& words, const SplitPattern& pattern, Cut how, bool invert) {
  std::vector<Range> result;
  result.reserve(words.ranges.size() + words.text.text().size() / 4);
  Cutter cutter(how, invert, result);
  for (const Range word : words.ranges) {
    cutter.begin(word);
    pattern.each_match(words.text.text(), word, [&](Range match) { cutter.match(match); });
    cutter.finish();
  }
  words.ranges = std::move(result);
}

void to_byte_alphabet(CutText& words) {
  change_each(words, [](AlignedText& word) { word = word.in_byte_alphabet(); });
}

std::vector<std::unique_ptr<PreTokenizer>> read_pre_tokenizers(const json& part) {
  List list;
  if (!part.is_null()) read_into(list, part);
  return list;
}

}  // namespace statescope
