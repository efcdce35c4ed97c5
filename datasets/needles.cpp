#include "datasets/needles.h"

#include <algorithm>
#include <vector>

#include "datasets/draws.h"
#include "datasets/files.h"
#include "datasets/prose.h"
#include "datasets/values.h"

namespace statescope {
namespace {

enum Stream : std::uint32_t { name_stream, value_stream, place_stream, asked_stream, sentence_stream, word_stream, end_stream };
constexpr std::uint32_t draws_per_sentence = 16;

/// How needles, questions and answers are written into a kind of haystack.
struct Wording {
  std::string needle, question;              // end in a space
  std::string between_values, between_keys;  // of the answers
  bool spaced_digits = false;                // in answers
  bool capital_names = false;
};

std::string spaced(const std::string& value) {
  std::string text;
  for (const char c : value) text += (text.empty() ? "" : " ") + std::string(1, c);
  return text;
}

/// What one example says, before it is known where.
struct Facts {
  std::vector<std::string> names;    // of the keys
  std::vector<std::string> needles;  // sentences, of key i / values
  std::vector<std::string> answers;  // of the needles, as the end of the text spells them
  std::vector<std::uint32_t> asked;  // keys
};

class Needles : public Task {
 public:
  Needles(const TaskOptions& options, const Templates& templates, Wording wording);
  Example example(std::int64_t index) const override;

 protected:
  /// `text`, which may end in a space, in the task's unit.
  virtual std::int64_t units(std::string_view text) const = 0;
  /// `room` units of haystack, cut where needles may stand: after each piece.
  virtual std::vector<std::string> haystack(const Draws& draws, std::int64_t room) const = 0;
  /// Fills in "as many as fit", and throws where no example fits.
  void fit();

  TaskOptions options_;
  Templates templates_;

 private:
  std::size_t key_of(std::size_t needle) const { return needle / static_cast<std::size_t>(options_.values); }
  std::string written(std::string name) const;
  Facts facts(const Draws& draws) const;
  std::string question(const std::string& name) const { return filled(wording_.question, name, ""); }
  std::vector<std::size_t> needles_of(std::size_t key, const std::vector<std::uint32_t>& order) const;
  std::int64_t tail_units(const Facts& facts) const;
  std::vector<std::uint32_t> places(const Draws& draws, const Facts& facts, std::size_t count) const;
  static void write_needles(Example& example, const Facts& facts, const std::vector<std::string>& pieces,
                            const std::vector<std::uint32_t>& places, const std::vector<std::uint32_t>& order);
  void write_questions(Example& example, const Facts& facts, const std::vector<std::uint32_t>& order) const;
  std::int64_t needed_units(std::int64_t keys) const;

  Wording wording_;
};

[[noreturn]] void refuse_options(const std::string& what) { throw OptionsError("niah: " + what); }

void check(const TaskOptions& options, std::size_t names) {
  if (!value_forms().contains(options.value)) refuse_options("a value is a code, a number or a uuid, not " + options.value);
  if (options.needles < 0 || options.needles > static_cast<std::int64_t>(names))
    refuse_options(std::to_string(options.needles) + " keys; there are names for 0 (as many as fit) to " + std::to_string(names));
  if (options.values < 1 || options.values > options.length)
    refuse_options(std::to_string(options.values) + " values per key; give at least 1, and no more than the length");
  if (options.queries < 1 || (options.needles > 0 && options.queries > options.needles))
    refuse_options(std::to_string(options.queries) + " queries; give at least 1, and no more than there are keys");
  if (options.depth_percent && (*options.depth_percent < 0 || *options.depth_percent > 100))
    refuse_options("a depth of " + std::to_string(*options.depth_percent) + " is not a percentage");
  if (options.depth_percent && options.queries != 1) refuse_options("a depth is that of one asked key; give it with 1 query");
}

Needles::Needles(const TaskOptions& options, const Templates& templates, Wording wording)
    : options_(options), templates_(templates), wording_(std::move(wording)) {
  check(options_, templates_.classes[templates_.names].size());
}

std::string Needles::written(std::string name) const {
  if (wording_.capital_names && name[0] >= 'a' && name[0] <= 'z') name[0] = static_cast<char>(name[0] - 'a' + 'A');
  return name;
}

Facts Needles::facts(const Draws& draws) const {
  const std::vector<std::string>& names = templates_.classes[templates_.names];
  const std::vector<std::uint32_t> order = shuffled(names.size(), draws, name_stream);
  const auto keys = static_cast<std::size_t>(options_.needles);
  Facts facts;
  for (std::size_t j = 0; j < keys; ++j) facts.names.push_back(written(names[order[j]]));
  for (std::size_t i = 0; i < keys * static_cast<std::size_t>(options_.values); ++i) {
    const std::string value = drawn_value(value_forms().at(options_.value), draws, value_stream, i);
    facts.needles.push_back(filled(wording_.needle, facts.names[key_of(i)], value));
    facts.answers.push_back(wording_.spaced_digits ? spaced(value) : value);
  }
  facts.asked = shuffled(keys, draws, asked_stream);
  facts.asked.resize(static_cast<std::size_t>(options_.queries));
  return facts;
}

/// In the order in which they stand in the text.
std::vector<std::size_t> Needles::needles_of(std::size_t key, const std::vector<std::uint32_t>& order) const {
  std::vector<std::size_t> found;
  for (const std::uint32_t needle : order)
    if (key_of(needle) == key) found.push_back(needle);
  return found;
}

/// The same for every order of the needles.
std::int64_t Needles::tail_units(const Facts& facts) const {
  Example tail;
  write_questions(tail, facts, ordered(facts.needles.size(), [](std::uint32_t i) { return i; }));
  return units(tail.text);
}

std::vector<std::uint32_t> Needles::places(const Draws& draws, const Facts& facts, std::size_t count) const {
  std::vector<std::uint32_t> places;
  for (std::size_t i = 0; i < facts.needles.size(); ++i) {
    const bool fixed = options_.depth_percent && key_of(i) == facts.asked[0];
    const auto last = static_cast<std::uint32_t>(count - 1);
    places.push_back(fixed ? (static_cast<std::uint32_t>(*options_.depth_percent) * last + 50) / 100
                           : draws.below(last + 1, place_stream, static_cast<std::uint32_t>(i)));
  }
  return places;
}

void Needles::write_needles(Example& example, const Facts& facts, const std::vector<std::string>& pieces,
                            const std::vector<std::uint32_t>& places, const std::vector<std::uint32_t>& order) {
  example.needles.resize(facts.needles.size());
  auto next = order.begin();
  for (std::size_t place = 0; place < pieces.size(); ++place) {
    example.text += pieces[place];
    for (; next != order.end() && places[*next] == place; ++next) {
      const std::size_t begin = example.text.size();
      example.text += facts.needles[*next];
      example.needles[*next] = {begin, example.text.find_last_not_of(' ') + 1};
    }
  }
}

void Needles::write_questions(Example& example, const Facts& facts, const std::vector<std::uint32_t>& order) const {
  for (const std::uint32_t key : facts.asked) {
    if (!example.questions.empty()) example.text += wording_.between_keys;
    ExampleQuestion asked{.asked = {}, .answer = {}, .given = {}, .needles = needles_of(key, order), .depth = 0};
    asked.asked.begin = example.text.size();
    example.text += question(facts.names[key]);
    asked.asked.end = example.text.find_last_not_of(' ') + 1;
    for (const std::size_t needle : asked.needles)
      asked.answer += (asked.answer.empty() ? "" : wording_.between_values) + facts.answers[needle];
    asked.given = {example.text.size(), example.text.size() + asked.answer.size()};
    example.text += asked.answer;
    example.questions.push_back(std::move(asked));
  }
}

Example Needles::example(std::int64_t index) const {
  const Draws draws(options_.seed, options_.split, static_cast<std::uint64_t>(index));
  const Facts facts = this->facts(draws);
  std::int64_t room = options_.length - tail_units(facts);
  for (const std::string& needle : facts.needles) room -= units(needle);
  const std::vector<std::string> pieces = haystack(draws, room);
  const std::vector<std::uint32_t> places = this->places(draws, facts, pieces.size());
  const std::vector<std::uint32_t> order = ordered(places.size(), [&](std::uint32_t i) { return places[i]; });

  Example example{.index = index, .length = 0, .text = {}, .needles = {}, .questions = {}};
  write_needles(example, facts, pieces, places, order);
  const std::size_t end = example.text.size();
  write_questions(example, facts, order);
  const std::string_view text(example.text);
  const auto length_before = static_cast<double>(units(text.substr(0, end)));
  for (ExampleQuestion& question : example.questions)
    question.depth = static_cast<double>(units(text.substr(0, example.needles[question.needles[0]].begin))) / length_before;
  example.length = units(text);
  return example;
}

/// What `keys` keys and the questions take, were every name as long as the longest.
std::int64_t Needles::needed_units(std::int64_t keys) const {
  const std::vector<std::string>& names = templates_.classes[templates_.names];
  const auto shorter = [](const std::string& a, const std::string& b) { return a.size() < b.size(); };
  const std::string name = written(*std::max_element(names.begin(), names.end(), shorter));
  const std::string value = value_forms().at(options_.value), answer = wording_.spaced_digits ? spaced(value) : value;
  const std::int64_t between = units(wording_.between_values);
  const std::int64_t ask = units(question(name)) + options_.values * (units(answer) + between) - between;
  return keys * options_.values * units(filled(wording_.needle, name, value)) + options_.queries * ask +
         (options_.queries - 1) * units(wording_.between_keys);
}

void Needles::fit() {
  const std::int64_t questions = needed_units(0), per_key = needed_units(1) - questions;
  const auto names = static_cast<std::int64_t>(templates_.classes[templates_.names].size());
  if (options_.needles == 0)
    options_.needles = std::clamp<std::int64_t>((options_.length - questions) / per_key, std::min(options_.queries, names), names);
  if (options_.queries > options_.needles) refuse_options(std::to_string(options_.queries) + " queries; there are fewer keys");
  const std::int64_t needed = needed_units(options_.needles);
  if (needed > options_.length)
    refuse_options("needles and questions need " + std::to_string(needed) + " " + unit() + "; the length is " +
                   std::to_string(options_.length));
}

class FillerNeedles : public Needles {
 public:
  FillerNeedles(const TaskOptions& options, const Templates& templates) : Needles(options, templates, wording(templates)) {
    if (options.value != "code")
      refuse_options("a " + options.value + " is no word of the filler's; choose code, or prose as the haystack");
    fit();
  }
  std::string unit() const override { return "words"; }

 private:
  static Wording wording(const Templates& templates) {
    return {templates.needle + " ", templates.question + " ", " ", " . ", /*spaced_digits=*/true, /*capital_names=*/false};
  }

  std::int64_t units(std::string_view text) const override {
    const std::int64_t spaces = std::count(text.begin(), text.end(), ' ');
    return text.empty() || text.back() == ' ' ? spaces - text.starts_with(' ') : spaces + 1;
  }

  std::string sentence(const Draws& draws, std::uint32_t number) const {
    const auto templates = static_cast<std::uint32_t>(templates_.filler.size());
    std::uint32_t next = number * draws_per_sentence;
    std::string text;
    for (const TemplateWord& word : templates_.filler[draws.below(templates, sentence_stream, number)]) {
      const std::vector<std::string>* words = word.one_of ? &templates_.classes[*word.one_of] : nullptr;
      text += words ? (*words)[draws.below(static_cast<std::uint32_t>(words->size()), word_stream, next++)] : word.word;
      text += ' ';
    }
    return text;
  }

  /// Whole sentences but for the first words, of which as many are left out as are too many.
  std::vector<std::string> haystack(const Draws& draws, std::int64_t room) const override {
    std::vector<std::string> pieces{""};
    std::int64_t excess = -room;
    for (std::uint32_t number = 0; excess < 0; ++number) {
      pieces.push_back(sentence(draws, number));
      excess += units(pieces.back());
    }
    for (std::size_t piece = 1; excess > 0; --excess) {
      while (pieces[piece].empty()) ++piece;
      pieces[piece].erase(0, pieces[piece].find(' ') + 1);
    }
    return pieces;
  }
};

class ProseNeedles : public Needles {
 public:
  ProseNeedles(const TaskOptions& options, const Templates& templates, std::string text)
      : Needles(options, templates, wording(templates)), text_(std::move(text)), boundaries_(sentence_boundaries(text_)) {
    fit();
    if (static_cast<std::int64_t>(text_.size()) < options.length)
      refuse_options("the haystack has " + std::to_string(text_.size()) + " bytes for this split; the length is " +
                     std::to_string(options.length));
  }
  std::string unit() const override { return "bytes"; }

 private:
  static Wording wording(const Templates& templates) {
    return {templates.prose_needle, templates.prose_question, ", ", ". ", /*spaced_digits=*/false, /*capital_names=*/true};
  }

  std::int64_t units(std::string_view text) const override { return static_cast<std::int64_t>(text.size()); }

  std::vector<std::string> haystack(const Draws& draws, std::int64_t room) const override {
    const auto size = static_cast<std::size_t>(room);
    const auto first = std::lower_bound(boundaries_.begin(), boundaries_.end(), size);
    const std::size_t end = first[draws.below(static_cast<std::uint32_t>(boundaries_.end() - first), end_stream, 0)];
    std::size_t begin = end - size;
    while (begin < end && splits_character(text_, begin)) ++begin;
    std::vector<std::string> pieces;
    for (auto at = std::lower_bound(boundaries_.begin(), boundaries_.end(), begin); at != boundaries_.end() && *at <= end; ++at) {
      pieces.push_back(text_.substr(begin, *at - begin));
      begin = *at;
    }
    return pieces;
  }

  std::string text_;
  std::vector<std::size_t> boundaries_;
};

}  // namespace

std::unique_ptr<const Task> make_filler_needles(const TaskOptions& options, const Templates& templates) {
  return std::make_unique<FillerNeedles>(options, templates);
}

std::unique_ptr<const Task> make_prose_needles(const TaskOptions& options, const Templates& templates, std::string text) {
  return std::make_unique<ProseNeedles>(options, templates, std::move(text));
}

}  // namespace statescope
