#include "engine/tokenizer/files/tokenizer_json_text.h"

#include <fmt/format.h>

#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace {

using nlohmann::json;

/// Takes what the JSON parser finds, value after value.
class Reader {
 public:
  explicit Reader(TokenizerJsonText& result) : result_(result) {}

  bool null() { return scalar(nullptr); }
  bool boolean(bool value) { return scalar(value); }
  bool number_integer(json::number_integer_t value) { return number(value); }
  bool number_unsigned(json::number_unsigned_t value) { return number(value); }
  bool number_float(json::number_float_t value, const std::string&) {
    if (part_ == Part::scores) return score(value);
    return scalar(value);
  }
  bool binary(json::binary_t&) { return false; }

  bool string(std::string& value) {
    if (part_ == Part::merges) return merge_text(value);
    if (part_ == Part::scores && depth_ == kPart + 2 && field_ == 0) {
      ++field_;
      result_.vocabulary.add_or_replace(value, static_cast<std::int64_t>(result_.scores.size()));
      return true;
    }
    return scalar(std::move(value));
  }

  bool key(std::string& name) {
    key_ = std::move(name);
    return true;
  }

  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool parse_error(std::size_t place, const std::string&, const json::exception&) {
    throw Error(fmt::format("is not JSON from byte {} on", place));
  }

 private:
  enum class Part { none, vocabulary, scores, merges };
  static constexpr int kPart = 2;  // how deep the large lists lie: in the model, which is in the file

  bool open(json value) {
    ++depth_;
    if (part_ != Part::none) return open_within();
    if (depth_ == kPart + 1 && in_model_ && (key_ == "vocab" || key_ == "merges")) {
      const bool is_list = value.is_array();
      if (key_ == "merges" && !is_list) throw Error("model: merges is not a list");
      part_ = key_ == "merges" ? Part::merges : is_list ? Part::scores : Part::vocabulary;
      result_.has_merges = result_.has_merges || part_ == Part::merges;
      result_.has_scores = result_.has_scores || part_ == Part::scores;
      return true;
    }
    if (depth_ == kPart) in_model_ = key_ == "model" && value.is_object();
    json* parent = stack_.empty() ? nullptr : stack_.back();
    stack_.push_back(put(parent, std::move(value)));
    return true;
  }

  bool open_within() {
    const bool is_pair = depth_ == kPart + 2 && (part_ == Part::scores || part_ == Part::merges);
    if (!is_pair) throw Error("model: a piece or a merge is not what it should be");
    field_ = 0;
    return true;
  }

  bool close() {
    --depth_;
    if (part_ == Part::none) {
      if (depth_ == kPart - 1) in_model_ = false;
      stack_.pop_back();
    } else if (depth_ == kPart) {
      part_ = Part::none;
    } else if (field_ != 2) {
      throw Error(part_ == Part::merges ? "model: a merge has not two parts" : "model: a piece has no score");
    }
    return true;
  }

  template <class Number>
  bool number(Number value) {
    if (part_ == Part::scores) return score(static_cast<double>(value));
    if (part_ != Part::vocabulary) return scalar(value);
    result_.vocabulary.add(key_, std::cmp_less(value, kMostIds) ? static_cast<std::int64_t>(value) : kMostIds);
    return true;
  }

  bool score(double value) {
    if (depth_ != kPart + 2 || field_++ != 1) throw Error("model: a piece has no score");
    result_.scores.push_back(value);
    return true;
  }

  /// "a b" as a whole, or one of the two parts of ["a", "b"].
  bool merge_text(const std::string& text) {
    if (result_.merge_text.size() + text.size() > 0xFFFFFFFF) throw Error("model: the merges are too long");
    const auto begin = static_cast<std::uint32_t>(result_.merge_text.size()), size = static_cast<std::uint32_t>(text.size());
    if (depth_ == kPart + 2) {
      if (++field_ == 1) result_.merges.push_back({begin, size, 0});
      if (field_ == 2) result_.merges.back().right = size;
      result_.merge_text += text;
      return true;
    }
    const std::size_t space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos)
      throw Error(fmt::format("model: merge {} is not two pieces: {}", result_.merges.size() + 1, in_quotes(text)));
    result_.merges.push_back({begin, static_cast<std::uint32_t>(space), size - static_cast<std::uint32_t>(space) - 1});
    result_.merge_text.append(text, 0, space).append(text, space + 1);
    return true;
  }

  bool scalar(json value) {
    if (part_ != Part::none)
      throw Error(part_ == Part::vocabulary ? fmt::format("model: the id of piece {} is not a number", in_quotes(key_))
                                            : "model: a piece or a merge is not what it should be");
    put(stack_.empty() ? nullptr : stack_.back(), std::move(value));
    return true;
  }

  json* put(json* parent, json value) {
    if (!parent) return &(result_.rest = std::move(value));
    if (parent->is_object()) return &((*parent)[key_] = std::move(value));
    parent->push_back(std::move(value));
    return &parent->back();
  }

  TokenizerJsonText& result_;
  std::vector<json*> stack_;  // open objects and lists of the rest
  std::string key_;
  Part part_ = Part::none;
  int depth_ = 0, field_ = 0;
  bool in_model_ = false;
};

}  // namespace

TokenizerJsonText read_tokenizer_json_text(const std::string& text) {
  TokenizerJsonText result;
  Reader reader(result);
  if (!json::sax_parse(text, &reader) || !result.rest.is_object()) throw Error("is not a JSON object");
  return result;
}

}  // namespace statescope
