#include "app/lesson/lesson.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <sstream>
#include <utility>

#include "app/assets.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::uintmax_t most_bytes = 1 << 20;  // of a file
constexpr std::size_t most_steps = 200, most_choices = 9;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> listed(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (const std::string_view part = trimmed(text.substr(begin, end - begin)); !part.empty()) parts.push_back(part);
    begin = end + 1;
  }
  return parts;
}

struct KeyValue {
  std::string_view key, value;
};
/// "key: value", the key a word of small letters.
std::optional<KeyValue> key_value(std::string_view line) {
  const std::size_t colon = line.find(':');
  const std::string_view key = line.substr(0, colon);
  const bool is_key = colon != line.npos && !key.empty() && key.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == key.npos;
  return is_key ? std::optional(KeyValue{key, trimmed(line.substr(colon + 1))}) : std::nullopt;
}

double real_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    throw Error(fmt::format("\"{}\" is not a number", text));
  return value;
}
std::int64_t index_in(std::string_view text, std::int64_t most) {
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > most)
    throw Error(fmt::format("\"{}\" is not a number between 0 and {}", text, most));
  return value;
}

/// "0.1 .. 0.5", either side may be missing, or "= right".
Bounds bounds_in(std::string_view text) {
  if (text.starts_with('=')) return {.text = std::string(trimmed(text.substr(1)))};
  const std::size_t dots = text.find("..");
  if (dots == text.npos)
    throw Error(fmt::format("\"[{}]\" is not a range: write [low .. high], one of them may be left out, or [= word]", text));
  Bounds bounds;
  if (const auto low = trimmed(text.substr(0, dots)); !low.empty()) bounds.low = real_in(low);
  if (const auto high = trimmed(text.substr(dots + 2)); !high.empty()) bounds.high = real_in(high);
  if (!(bounds.low < bounds.high)) throw Error(fmt::format("\"[{}]\" is empty: the lower number comes first", text));
  return bounds;
}

/// Words, and the range in brackets at their end or nothing.
std::pair<std::string_view, std::optional<Bounds>> with_bounds(std::string_view text) {
  const std::size_t open = text.rfind('[');
  if (open == text.npos || !text.ends_with(']')) return {text, {}};
  return {trimmed(text.substr(0, open)), bounds_in(text.substr(open + 1, text.size() - open - 2))};
}

const ViewRow& view_called(std::string_view id) {
  std::string known;
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == "token_strip") continue;  // always below the stage
    if (row.id == id) return row;
    known += (known.empty() ? "" : ", ") + std::string(row.id);
  }
  throw Error(fmt::format("there is no view \"{}\": there are {}", id, known));
}

std::size_t mode_called(const ViewRow& row, std::string_view name) {
  const std::unique_ptr<View> view = row.make();
  const auto mode = std::ranges::find(view->modes(), name);
  if (mode != view->modes().end()) return static_cast<std::size_t>(mode - view->modes().begin());
  std::string known;
  for (const std::string_view each : view->modes()) known += (known.empty() ? "" : ", ") + std::string(each);
  throw Error(
      fmt::format("{} cannot be looked at as \"{}\": {}", row.id, name, known.empty() ? "there is only one" : "there are " + known));
}

Hideable hideable_called(std::string_view name) {
  constexpr std::pair<std::string_view, Hideable> all[] = {{"inspector", Hideable::inspector},
                                                           {"transport", Hideable::transport},
                                                           {"menu", Hideable::menu},
                                                           {"header", Hideable::header},
                                                           {"status", Hideable::status}};
  for (const auto& [known, part] : all)
    if (known == name) return part;
  throw Error(fmt::format("\"{}\" cannot be hidden: inspector, transport, menu, header and status can", name));
}

/// The choices of a number lie side by side from end to end, so that one of them is right whatever the run says.
void check_choices(const LessonQuestion& question) {
  const auto ranged = std::ranges::count_if(question.choices, [](const LessonChoice& choice) { return !choice.bounds.text; });
  if (question.choices.size() < 2 || question.choices.size() > most_choices)
    throw Error(fmt::format("a question has 2 to {} options, lines that begin with \"- \"", most_choices));
  if (ranged == 0) return;
  if (ranged != std::ssize(question.choices)) throw Error("either all options have a range in brackets, or none");
  double from = -std::numeric_limits<double>::infinity();
  for (const LessonChoice& choice : question.choices) {
    if (choice.bounds.low != from)
      throw Error(fmt::format("\"{}\" does not begin where the option before it ends: ranges ascend without gaps", choice.words));
    from = choice.bounds.high;
  }
  if (std::isfinite(from)) throw Error(fmt::format("the last option ends at {}: leave its upper number out", from));
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Lesson parse() {
    try {
      return read();
    } catch (const Error& error) {
      throw Error(fmt::format("{}:{}: {}", name_, line_, error.what()));
    }
  }

 private:
  bool at_end() const { return at_ > text_.size(); }
  std::string_view line() const { return text_.substr(at_, text_.find('\n', at_) - at_); }
  void advance() {
    at_ = std::min(text_.find('\n', at_), text_.size()) + 1;
    ++line_;
  }

  Lesson read() {
    if (text_.find('\0') != text_.npos) throw Error("this is not a text");
    if (trimmed(line()) != "---") throw Error("a lesson begins with a line ---, then title: and other keys, then a line ---");
    for (advance(); !at_end() && trimmed(line()) != "---"; advance()) take_header(trimmed(line()));
    if (at_end()) throw Error("the header does not end: a line --- is missing");
    advance();
    if (lesson_.title.empty()) throw Error("the header has no title: key");
    if (picture_.checkpoint.empty()) throw Error("the header has no checkpoint: key");
    if (picture_.prompt.empty() && picture_.text.empty()) throw Error("the header has neither prompt: nor text:");
    if (picture_.views.empty()) throw Error("the header has no views: key");
    while (!at_end()) read_step();
    if (lesson_.steps.empty()) throw Error("the lesson has no step: a step begins with ## and its title");
    return std::move(lesson_);
  }

  void take_header(std::string_view text) {
    if (text.empty()) return;
    const std::optional<KeyValue> entry = key_value(text);
    if (!entry) throw Error(fmt::format("\"{}\" is not \"key: value\"", text));
    const auto& [key, value] = *entry;
    if (key == "title") {
      lesson_.title = value;
    } else if (key == "about") {
      lesson_.about = value;
    } else if (key == "minutes") {
      lesson_.minutes = index_in(value, 600);
    } else if (key == "model") {
      if (value != "the open one") throw Error(fmt::format("model: is \"the open one\", not \"{}\"", value));
      lesson_.takes_open_model = true;
    } else if (key == "hide") {
      for (const std::string_view part : listed(value)) lesson_.hidden.push_back(hideable_called(part));
    } else if (!take_picture(key, value)) {
      throw Error(fmt::format("there is no key \"{}\" for a lesson", key));
    }
  }

  bool take_picture(std::string_view key, std::string_view value) {
    constexpr std::int64_t most_index = 1'000'000;
    if (key == "caption")
      picture_.caption = value;
    else if (key == "checkpoint")
      picture_.checkpoint = value;
    else if (key == "beside")
      picture_.beside = value == "none" ? "" : value;
    else if (key == "prompt")
      picture_.prompt = value, picture_.text.clear();
    else if (key == "text")
      picture_.text = value, picture_.prompt.clear();
    else if (key == "token")
      picture_.token = parse_token_place(value);
    else if (key == "play")
      picture_.play = parse_token_place(value);
    else if (key == "reference")
      picture_.reference = parse_token_place(value);
    else if (key == "layer")
      picture_.layer = index_in(value, most_index);
    else if (key == "head")
      picture_.head = index_in(value, most_index);
    else if (key == "slot")
      picture_.slot = value;
    else if (key == "row")
      picture_.row = index_in(value, most_index);
    else if (key == "column")
      picture_.column = index_in(value, most_index);
    else if (key == "views")
      take_views(value);
    else if (key == "mode")
      take_mode(value);
    else if (key == "knob")
      take_knob(value);
    else
      return false;
    return true;
  }

  void take_views(std::string_view value) {
    constexpr std::size_t most_views = 6;
    picture_.views.clear();
    for (const std::string_view id : listed(value)) picture_.views.push_back({.view = &view_called(id)});
    if (picture_.views.empty() || picture_.views.size() > most_views) throw Error(fmt::format("a step shows 1 to {} views", most_views));
  }

  /// The view of "view = value", and the value.
  std::pair<ViewLook*, std::string_view> look_at(std::string_view text) {
    const std::size_t equals = text.find('=');
    const ViewRow& row = view_called(trimmed(text.substr(0, equals)));
    const auto look = std::ranges::find(picture_.views, &row, &ViewLook::view);
    if (equals == text.npos) throw Error(fmt::format("\"{}\" is not \"view = value\"", text));
    if (look == picture_.views.end()) throw Error(fmt::format("{} is not among this step's views: name it in views: first", row.id));
    return {&*look, trimmed(text.substr(equals + 1))};
  }
  void take_mode(std::string_view text) {
    const auto [look, name] = look_at(text);
    look->mode = mode_called(*look->view, name);
  }
  void take_knob(std::string_view text) {
    const auto [look, value] = look_at(text);
    const std::optional<Knob> knob = look->view->make()->knob();
    if (!knob) throw Error(fmt::format("{} has no knob", look->view->id));
    look->knob = real_in(value);
    if (*look->knob < knob->low || *look->knob > knob->high)
      throw Error(fmt::format("{} of {} lies between {} and {}", knob->name, look->view->id, knob->low, knob->high));
  }

  void read_step() {
    const std::string_view heading = trimmed(line());
    if (heading.empty()) return advance();
    if (!heading.starts_with("## ")) throw Error("a step begins with ## and its title");
    if (lesson_.steps.size() == most_steps) throw Error(fmt::format("a lesson has at most {} steps", most_steps));
    LessonStep step;
    step.title = trimmed(heading.substr(3));
    picture_.caption.clear();  // these are of one step alone
    picture_.play.reset();
    picture_.reference.reset();
    for (advance(); !at_end() && !trimmed(line()).empty() && !is_heading(); advance()) take_directive(step, trimmed(line()));
    for (const LessonClaim& claim : step.claims) check_beside(claim.quantity);
    for (const LessonNote& note : step.notes) check_beside(note.quantity);
    step.picture = step.revealed = picture_;
    Prose* prose = &step.prose;
    for (; !at_end() && !is_heading();) {
      if (line().starts_with("predict:")) {
        if (step.question) throw Error("a step asks one question: begin another step with ##");
        step.question = read_question();
        read_reveal();
        step.revealed = picture_;
        prose = &step.reveal;
      } else {
        take_prose(*prose, std::string(line()) + "\n");
        advance();
      }
    }
    lesson_.steps.push_back(std::move(step));
  }

  void check_beside(const Quantity& quantity) const {
    if (quantity.of_beside && picture_.beside.empty())
      throw Error(fmt::format("\"{} of=beside\" needs a second model: the step names one with beside:", quantity.row->name));
  }

  bool is_heading() const { return line().starts_with("## "); }

  void take_directive(LessonStep& step, std::string_view text) {
    const std::optional<KeyValue> entry = key_value(text);
    if (!entry) throw Error(fmt::format("\"{}\" is not \"key: value\": an empty line separates a step's keys from its text", text));
    const auto& [key, value] = *entry;
    if (key == "note") {
      take_note(step, value);
    } else if (key == "holds") {
      const auto [words, bounds] = with_bounds(value);
      if (!bounds) throw Error("a claim is a quantity and its range, [low .. high], or its word, [= word]");
      step.claims.push_back({parse_quantity(words), *bounds, std::string(value)});
    } else if (!take_picture(key, value)) {
      throw Error(fmt::format("there is no key \"{}\" for a step; an empty line separates its keys from its text", key));
    }
  }

  void take_note(LessonStep& step, std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string name(trimmed(text.substr(0, equals)));
    const auto is_row = [&name](const QuantityRow& row) { return row.name == name; };
    if (equals == text.npos || name.empty()) throw Error("a note is \"name = quantity\"");
    if (std::ranges::any_of(quantities(), is_row)) throw Error(fmt::format("\"{}\" is a quantity: give the note another name", name));
    step.notes.push_back({name, parse_quantity(trimmed(text.substr(equals + 1)))});
    noted_.push_back(name);
  }

  void take_prose(Prose& prose, std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t open = std::min(text.find('{', at), text.size());
      if (prose.empty() || !std::holds_alternative<std::string>(prose.back())) prose.emplace_back(std::string());
      std::get<std::string>(prose.back()) += text.substr(at, open - at);
      if (open == text.size()) return;
      const std::size_t close = text.find('}', open);
      if (close == text.npos) throw Error("a { has no } in its line: a quantity belongs between them");
      const std::string_view inside = trimmed(text.substr(open + 1, close - open - 1));
      at = close + 1;
      if (std::ranges::find(noted_, inside) != noted_.end()) {
        prose.emplace_back(Recall{std::string(inside)});
        continue;
      }
      prose.emplace_back(parse_quantity(inside));
      check_beside(std::get<Quantity>(prose.back()));
    }
  }

  LessonQuestion read_question() {
    LessonQuestion question;
    question.words = key_value(line())->value;
    advance();
    for (; !at_end() && line().starts_with("- "); advance()) {
      const auto [words, bounds] = with_bounds(trimmed(line().substr(2)));
      question.choices.push_back({std::string(words), bounds.value_or(Bounds{})});
      if (!bounds) question.choices.back().bounds.text = std::string(words);
    }
    const std::optional<KeyValue> answer = at_end() ? std::nullopt : key_value(trimmed(line()));
    if (!answer || answer->key != "answer")
      throw Error("after predict: come the options, lines that begin with \"- \", then answer: and a quantity");
    question.answer = parse_quantity(answer->value);
    check_beside(question.answer);
    check_choices(question);
    advance();
    return question;
  }

  /// The lines after answer: change the picture, not the run.
  void read_reveal() {
    picture_.play.reset();
    for (; !at_end() && !trimmed(line()).empty(); advance()) {
      const std::optional<KeyValue> entry = key_value(trimmed(line()));
      static constexpr std::string_view of_runs[] = {"checkpoint", "beside", "prompt", "text"};
      const bool changes_run = entry && std::ranges::count(of_runs, entry->key) > 0;
      if (!entry || changes_run || !take_picture(entry->key, entry->value))
        throw Error("after answer: come an empty line and text, or keys that change the picture but not the run");
    }
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1;
  Lesson lesson_;
  LessonPicture picture_;
  std::vector<std::string> noted_;
};

/// "2-routing" is also called "routing".
std::string_view plain_name(std::string_view stem) {
  const std::size_t letters = stem.find_first_not_of("0123456789-");
  return letters == stem.npos ? stem : stem.substr(letters);
}

/// 10 of "10-real"; without a number, behind all that have one.
int number_before(const std::string& stem) {
  int number = std::numeric_limits<int>::max();
  std::from_chars(stem.data(), stem.data() + stem.size(), number);
  return number;
}

}  // namespace

bool Bounds::hold(const Measured& value) const { return text ? value.text == *text : value.number >= low && value.number < high; }

Lesson parse_lesson(std::string_view text, const std::string& name) { return Parser(text, name).parse(); }

Lesson load_lesson(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) throw Error(fmt::format("{}: {}", path.string(), error.message()));
  if (size > most_bytes) throw Error(fmt::format("{}: {} bytes are too many for a lesson", path.string(), size));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw Error(fmt::format("{}: cannot be read", path.string()));
  Lesson lesson = parse_lesson(text.str(), path.filename().string());
  lesson.file = path;
  return lesson;
}

void take_model(Lesson& lesson, const std::filesystem::path& checkpoint) {
  const std::string named = lesson.steps.front().picture.checkpoint;
  for (LessonStep& step : lesson.steps)
    for (LessonPicture* picture : {&step.picture, &step.revealed})
      if (picture->checkpoint == named) picture->checkpoint = checkpoint.string();
}

std::vector<std::filesystem::path> shipped_lessons() {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(assets_folder() / "lessons", error))
    if (entry.path().extension() == ".md" && entry.path().stem() != "README") files.push_back(entry.path());
  std::ranges::sort(files, {}, [](const std::filesystem::path& file) { return std::pair(number_before(file.stem().string()), file); });
  return files;
}

std::filesystem::path find_lesson(const std::string& name) {
  std::error_code error;
  if (std::filesystem::is_regular_file(name, error)) return name;
  std::string known;
  for (const std::filesystem::path& file : shipped_lessons()) {
    const std::string stem = file.stem().string();
    if (name == stem || name == plain_name(stem)) return file;
    known += (known.empty() ? "" : ", ") + std::string(plain_name(stem));
  }
  throw Error(fmt::format("there is no lesson \"{}\": give a file, or one of {}", name, known));
}

std::filesystem::path lesson_asset(const Lesson& lesson, const std::string& name, const char* folder) {
  std::error_code error;
  const std::filesystem::path beside = lesson.file.parent_path() / name;
  if (std::filesystem::exists(beside, error)) return beside;
  const std::filesystem::path shipped = assets_folder() / folder / name;
  return std::string_view(folder) == "checkpoints" ? checkpoint_at(shipped) : shipped;
}

}  // namespace statescope
