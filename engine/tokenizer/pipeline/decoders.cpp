#include "engine/tokenizer/pipeline/decoders.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/pipeline/json_fields.h"
#include "engine/tokenizer/text/byte_alphabet.h"
#include "engine/tokenizer/text/utf8.h"

namespace statescope {

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  int byte = -1;
  const auto [end, error] = std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16);
  return error == std::errc() && end == piece.data() + 5 ? byte : -1;
}

namespace {

using nlohmann::json;
using Pieces = std::vector<std::string>;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
}

class ByteLevel final : public Decoder {
 public:
  void apply(Pieces& pieces) const override {
    std::string bytes;
    for (std::string& piece : pieces) bytes += shown(std::move(piece));
    pieces = {utf8::repaired(bytes)};
  }
  std::string shown(std::string piece) const override {
    std::optional<std::string> bytes = byte_alphabet::bytes_of(piece);
    return bytes ? std::move(*bytes) : std::move(piece);
  }
  bool joins_bytes() const override { return true; }
};

/// The first piece stands at the text's beginning, where ▁ was put in.
class Metaspace final : public Decoder {
 public:
  Metaspace(std::string sign, bool prepends) : sign_(std::move(sign)), prepends_(prepends) {}
  void apply(Pieces& pieces) const override {
    for (std::size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], sign_, i == 0 && prepends_ ? "" : " ");
  }
  std::string shown(std::string piece) const override {
    replace_all(piece, sign_, " ");
    return piece;
  }

 private:
  std::string sign_;
  bool prepends_;
};

class Replace final : public Decoder {
 public:
  Replace(SplitPattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(Pieces& pieces) const override {
    for (std::string& piece : pieces) piece = shown(std::move(piece));
  }
  std::string shown(std::string piece) const override {
    std::string result;
    std::size_t at = 0;
    pattern_.each_match(piece, {0, static_cast<std::uint32_t>(piece.size())}, [&](Range match) {
      result.append(piece, at, match.begin - at).append(content_);
      at = match.end;
    });
    return result.append(piece, at);
  }
  double growth() const override { return static_cast<double>(content_.size()); }

 private:
  SplitPattern pattern_;
  std::string content_;
};

class Fuse final : public Decoder {
 public:
  void apply(Pieces& pieces) const override {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    pieces = {std::move(all)};
  }
};

/// Up to so many copies of a character off both ends of each piece.
class Strip final : public Decoder {
 public:
  Strip(std::string content, std::int64_t start, std::int64_t stop) : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(Pieces& pieces) const override {
    for (std::string& piece : pieces) {
      for (std::int64_t i = 0; i < start_ && piece.starts_with(content_); ++i) piece.erase(0, content_.size());
      for (std::int64_t i = 0; i < stop_ && piece.ends_with(content_); ++i) piece.resize(piece.size() - content_.size());
    }
  }

 private:
  std::string content_;
  std::int64_t start_, stop_;
};

/// Runs of byte pieces are text, or U+FFFD for each byte where they are none.
class ByteFallback final : public Decoder {
 public:
  void apply(Pieces& pieces) const override {
    Pieces result;
    std::string bytes;
    const auto flush = [&] {
      if (utf8::is_valid(bytes)) {
        if (!bytes.empty()) result.push_back(bytes);
      } else {
        result.insert(result.end(), bytes.size(), utf8::of(kReplacement));
      }
      bytes.clear();
    };
    for (std::string& piece : pieces) {
      if (const int byte = byte_of_piece(piece); byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush();
      result.push_back(std::move(piece));
    }
    flush();
    pieces = std::move(result);
  }
  std::string shown(std::string piece) const override {
    const int byte = byte_of_piece(piece);
    return byte < 0 ? piece : std::string(1, static_cast<char>(byte));
  }
};

class WordPiece final : public Decoder {
 public:
  WordPiece(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void apply(Pieces& pieces) const override {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      std::string& piece = pieces[i];
      const bool goes_on = !prefix_.empty() && piece.starts_with(prefix_);
      if (i > 0 && goes_on) piece.erase(0, prefix_.size());
      if (i > 0 && !goes_on) piece.insert(0, " ");
      if (cleanup_) clean(piece);
    }
  }

 private:
  static void clean(std::string& piece) {
    static constexpr std::array<std::pair<const char*, const char*>, 11> changes{{{" .", "."},
                                                                                  {" ?", "?"},
                                                                                  {" !", "!"},
                                                                                  {" ,", ","},
                                                                                  {" ' ", "'"},
                                                                                  {" n't", "n't"},
                                                                                  {" 'm", "'m"},
                                                                                  {" do not", " don't"},
                                                                                  {" 's", "'s"},
                                                                                  {" 've", "'ve"},
                                                                                  {" 're", "'re"}}};
    for (const auto& [from, to] : changes) replace_all(piece, from, to);
  }

  std::string prefix_;
  bool cleanup_;
};

/// A piece with the suffix ends a word.
class WordEnds final : public Decoder {
 public:
  explicit WordEnds(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(Pieces& pieces) const override {
    for (std::size_t i = 0; i < pieces.size(); ++i) replace_all(pieces[i], suffix_, i + 1 < pieces.size() ? " " : "");
  }

 private:
  std::string suffix_;
};

using List = std::vector<std::unique_ptr<Decoder>>;

std::string not_empty(const JsonFields& fields, const char* key, const std::string& otherwise) {
  const std::string text = fields.text(key, otherwise);
  if (text.empty()) fields.refuse(fmt::format("an empty {}", key));
  return text;
}

void read_into(List& list, const json& part) {
  const JsonFields fields("decoder", part);
  const std::string type = fields.type();
  if (type == "Sequence") {
    for (const json& one : fields.list("decoders")) read_into(list, one);
  } else if (type == "ByteLevel") {
    list.push_back(byte_level_decoder());
  } else if (type == "Metaspace") {
    const bool prepends = fields.text("prepend_scheme", fields.flag("add_prefix_space", true) ? "always" : "never") != "never";
    list.push_back(std::make_unique<Metaspace>(not_empty(fields, "replacement", "▁"), prepends));
  } else if (type == "Replace") {
    list.push_back(std::make_unique<Replace>(fields.pattern("pattern"), fields.text("content")));
  } else if (type == "Fuse") {
    list.push_back(std::make_unique<Fuse>());
  } else if (type == "Strip") {
    list.push_back(std::make_unique<Strip>(not_empty(fields, "content", ""), fields.number("start", 0), fields.number("stop", 0)));
  } else if (type == "ByteFallback") {
    list.push_back(std::make_unique<ByteFallback>());
  } else if (type == "WordPiece") {
    list.push_back(std::make_unique<WordPiece>(fields.text("prefix", "##"), fields.flag("cleanup", true)));
  } else if (type == "BPEDecoder") {
    list.push_back(std::make_unique<WordEnds>(not_empty(fields, "suffix", "</w>")));
  } else {
    fields.refuse_type();
  }
}

}  // namespace

std::unique_ptr<Decoder> byte_level_decoder() { return std::make_unique<ByteLevel>(); }

List read_decoders(const json& part) {
  List list;
  if (!part.is_null()) read_into(list, part);
  check_growth("decoder", list);
  return list;
}

}  // namespace statescope
