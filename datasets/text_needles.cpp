#include "datasets/text_needles.h"

#include <algorithm>

#include "datasets/draws.h"
#include "datasets/prose.h"
#include "datasets/values.h"

namespace statescope {
namespace {

enum Stream : std::uint32_t { key_stream, value_stream, place_stream, asked_stream, begin_stream };

[[noreturn]] void refuse_options(const std::string& what) { throw OptionsError("niah: " + what); }

void put(std::string& text, const std::string& place, const std::string& words) {
  if (const std::size_t at = text.find(place); at != text.npos) text.replace(at, place.size(), words);
}

/// "the", "the and the", "the, the and the"
std::string listed(const std::vector<std::string>& words, const std::string& between, const std::string& last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += (i == 0 ? "" : i + 1 == words.size() ? last : between) + words[i];
  return text;
}

/// What one example says, before it is known where.
struct Notes {
  std::vector<std::string> keys, values;  // needle i is of key i / values of a key
  std::vector<std::uint32_t> asked;       // keys
};

/// A prompt, and where its parts lie in it.
struct TextPrompt {
  std::string text;
  std::vector<TextRange> needles;
  TextRange question;
};

class TextNeedles final : public Task {
 public:
  TextNeedles(const TaskOptions& options, TextTemplates templates, const std::string& text, TextReader reader)
      : options_(options), templates_(std::move(templates)), reader_(std::move(reader)) {
    check();
    cut(options_.haystack == "filler" ? templates_.filler : text);
    fit();
  }
  std::string unit() const override { return "tokens"; }

  Example example(std::int64_t index) const override {
    const Draws draws(options_.seed, options_.split, static_cast<std::uint64_t>(index));
    const Notes notes = this->notes(draws);
    const TextPrompt prompt = longest(draws, notes);
    Example example{.index = index, .length = reader_.count(prompt.text), .text = prompt.text, .needles = prompt.needles, .questions = {}};
    const auto before = static_cast<double>(std::max<std::size_t>(prompt.question.begin, 1));
    for (const std::size_t needle : asked_needles(notes, prompt)) {
      const std::size_t begin = example.text.size();
      example.text += (example.questions.empty() ? " " : ", ") + notes.values[needle];
      example.questions.push_back({.asked = prompt.question,
                                   .answer = notes.values[needle],
                                   .given = {begin, example.text.size()},
                                   .needles = {needle},
                                   .depth = static_cast<double>(prompt.needles[needle].begin) / before});
    }
    return example;
  }

 private:
  void check() const {
    const auto keys = static_cast<std::int64_t>(templates_.first.size() * templates_.second.size());
    if (!value_forms().contains(options_.value)) refuse_options("a value is a code, a number or a uuid, not " + options_.value);
    if (options_.needles < 0 || options_.needles > keys)
      refuse_options(std::to_string(options_.needles) + " keys; there are names for 0 (as many as fit) to " + std::to_string(keys));
    if (options_.values < 1 || options_.values > options_.length)
      refuse_options(std::to_string(options_.values) + " values per key; give at least 1, and no more than the length");
    if (options_.queries < 1 || (options_.needles > 0 && options_.queries > options_.needles))
      refuse_options(std::to_string(options_.queries) + " queries; give at least 1, and no more than there are keys");
    if (options_.depth_percent && (*options_.depth_percent < 0 || *options_.depth_percent > 100))
      refuse_options("a depth of " + std::to_string(*options_.depth_percent) + " is not a percentage");
    if (options_.depth_percent && options_.queries != 1) refuse_options("a depth is that of one asked key; give it with 1 query");
  }

  /// The haystack into sentences, each with the space behind it, and how many tokens each has about.
  void cut(const std::string& haystack) {
    const std::vector<std::size_t> bounds = sentence_boundaries(haystack);
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
      std::string sentence = haystack.substr(bounds[i], bounds[i + 1] - bounds[i]);
      if (!sentence.ends_with(' ')) sentence += ' ';
      lengths_.push_back(reader_.count(sentence));
      sentences_.push_back(std::move(sentence));
    }
    if (sentences_.empty()) refuse_options("the haystack has no sentence");
  }

  /// Finds as many keys as fit, and throws where no example fits.
  void fit() {
    const auto needed = [&](std::int64_t keys) {
      options_.needles = keys;
      const Draws draws(options_.seed, options_.split, 0);
      return reader_.count(prompt(draws, notes(draws), 0).text);
    };
    if (options_.needles == 0) {
      const std::int64_t least = needed(options_.queries), more = std::max<std::int64_t>(needed(options_.queries + 8) - least, 1);
      const auto keys = static_cast<std::int64_t>(templates_.first.size() * templates_.second.size());
      options_.needles = std::clamp(options_.queries + 8 * (options_.length - least) / more, options_.queries, keys);
      while (options_.needles > options_.queries && needed(options_.needles) > options_.length) --options_.needles;
    }
    if (const std::int64_t tokens = needed(options_.needles); tokens > options_.length)
      refuse_options("needles and questions need " + std::to_string(tokens) + " tokens; the length is " + std::to_string(options_.length));
  }

  std::size_t key_of(std::size_t needle) const { return needle / static_cast<std::size_t>(options_.values); }

  Notes notes(const Draws& draws) const {
    const std::vector<std::uint32_t> order = shuffled(templates_.first.size() * templates_.second.size(), draws, key_stream);
    const auto keys = static_cast<std::size_t>(options_.needles);
    Notes notes;
    for (std::size_t j = 0; j < keys; ++j)
      notes.keys.push_back(templates_.first[order[j] / templates_.second.size()] + " " +
                           templates_.second[order[j] % templates_.second.size()]);
    for (std::size_t i = 0; i < keys * static_cast<std::size_t>(options_.values); ++i)
      notes.values.push_back(drawn_value(value_forms().at(options_.value), draws, value_stream, i));
    notes.asked = shuffled(keys, draws, asked_stream);
    notes.asked.resize(static_cast<std::size_t>(options_.queries));
    return notes;
  }

  /// Of all keys asked, in the order in which they stand in the text.
  std::vector<std::size_t> asked_needles(const Notes& notes, const TextPrompt& prompt) const {
    std::vector<std::size_t> found;
    for (const std::uint32_t key : notes.asked) {
      std::vector<std::size_t> of_key;
      for (std::size_t i = 0; i < notes.values.size(); ++i)
        if (key_of(i) == key) of_key.push_back(i);
      std::ranges::sort(of_key, {}, [&](std::size_t i) { return prompt.needles[i].begin; });
      found.insert(found.end(), of_key.begin(), of_key.end());
    }
    return found;
  }

  /// A template with everything put in that it has a place for.
  std::string filled(std::string text, const std::string& keys, const std::string& value = "") const {
    const auto& [one, several] = templates_.kinds.at(options_.value);
    put(text, "{kinds}", several);
    put(text, "{kind}", one);
    put(text, "{keys}", keys);
    put(text, "{key}", keys);
    put(text, "{value}", value);
    return text;
  }

  /// Before which sentence each needle stands; `count`: behind the last.
  std::vector<std::uint32_t> places(const Draws& draws, const Notes& notes, std::uint32_t count) const {
    std::vector<std::uint32_t> places;
    for (std::size_t i = 0; i < notes.values.size(); ++i) {
      const bool fixed = options_.depth_percent && key_of(i) == notes.asked[0];
      places.push_back(fixed ? (static_cast<std::uint32_t>(*options_.depth_percent) * count + 50) / 100
                             : draws.below(count + 1, place_stream, static_cast<std::uint32_t>(i)));
    }
    return places;
  }

  /// With so many sentences of haystack.
  TextPrompt prompt(const Draws& draws, const Notes& notes, std::int64_t count) const {
    TextPrompt all;
    std::string& text = all.text = filled(templates_.introduction, "");
    const auto places = this->places(draws, notes, static_cast<std::uint32_t>(count));
    const auto order = ordered(places.size(), [&](std::uint32_t i) { return places[i]; });
    const std::uint32_t first = draws.below(static_cast<std::uint32_t>(sentences_.size()), begin_stream, 0);
    all.needles.resize(places.size());
    auto next = order.begin();
    for (std::size_t place = 0; place <= static_cast<std::size_t>(count); ++place) {
      for (; next != order.end() && places[*next] == place; ++next) {
        const std::size_t begin = text.size();
        text += filled(templates_.needle, notes.keys[key_of(*next)], notes.values[*next]);
        all.needles[*next] = {begin, text.find_last_not_of(' ') + 1};
      }
      if (place < static_cast<std::size_t>(count)) text += sentences_[(first + place) % sentences_.size()];
    }
    text.resize(text.find_last_not_of(' ') + 1);
    ask(all, notes);
    return all;
  }

  /// Puts the question behind the text, the text into the chat form, and the beginning of the answer behind all.
  void ask(TextPrompt& prompt, const Notes& notes) const {
    std::vector<std::string> keys;
    for (const std::uint32_t key : notes.asked) keys.push_back(notes.keys[key]);
    const std::string asked = listed(keys, ", the ", " and the ");
    const bool several = options_.values * options_.queries > 1;
    const std::string question = filled(several ? templates_.questions : templates_.question, asked);
    prompt.question = {prompt.text.size() + question.find_first_not_of('\n'), prompt.text.size() + question.size()};
    prompt.text += question;
    std::string beginning = filled(several ? templates_.answers : templates_.answer, asked);
    if (reader_.in_chat) {
      put_in_chat(prompt);
      beginning.erase(0, beginning.find_first_not_of(' '));  // the answer is a turn of its own
    }
    prompt.text += beginning;
  }

  void put_in_chat(TextPrompt& prompt) const {
    const std::string chat = reader_.in_chat(prompt.text);
    const std::size_t moved = chat.find(prompt.text);
    if (moved == chat.npos) refuse_options("the chat template does not leave a user's words as they are");
    const auto move = [&](TextRange& range) { range = {range.begin + moved, range.end + moved}; };
    std::ranges::for_each(prompt.needles, move);
    move(prompt.question);
    prompt.text = chat;
  }

  /// The longest prompt of whole sentences that is not longer than asked.
  TextPrompt longest(const Draws& draws, const Notes& notes) const {
    const std::uint32_t first = draws.below(static_cast<std::uint32_t>(sentences_.size()), begin_stream, 0);
    const auto tokens_of = [&](std::int64_t count) { return reader_.count(prompt(draws, notes, count).text); };
    std::int64_t count = 0;
    for (std::int64_t room = options_.length - tokens_of(0); room > 0; ++count)
      room -= std::max<std::int64_t>(lengths_[(first + static_cast<std::size_t>(count)) % lengths_.size()], 1);
    while (count > 0 && tokens_of(count) > options_.length) --count;
    while (tokens_of(count + 1) <= options_.length) ++count;
    return prompt(draws, notes, count);
  }

  TaskOptions options_;
  TextTemplates templates_;
  TextReader reader_;
  std::vector<std::string> sentences_;
  std::vector<std::int64_t> lengths_;  // of each, in tokens, when it stands alone
};

}  // namespace

std::unique_ptr<const Task> make_text_needles(const TaskOptions& options, TextTemplates templates, const std::string& text,
                                              TextReader reader) {
  return std::make_unique<TextNeedles>(options, std::move(templates), text, std::move(reader));
}

}  // namespace statescope
