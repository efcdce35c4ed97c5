// A lesson as its file has it: steps of prose, each with the picture that belongs to it, questions that the run itself answers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/lesson/quantity.h"

namespace statescope {

/// How one view of a step is looked at.
struct ViewLook {
  const ViewRow* view = nullptr;
  std::size_t mode = 0;
  std::optional<double> knob;  // unset: as the view has it

  bool operator==(const ViewLook&) const = default;
};

/// All that a step shows. What a step does not say is as in the step before it, but for `caption`, `play` and `reference`.
struct LessonPicture {
  std::string caption;                   // what to look at
  std::string checkpoint, prompt, text;  // names as in the file; one of prompt and text is empty
  std::string beside;                    // a checkpoint that is compared with it; empty: none
  TokenPlace token;
  std::optional<TokenPlace> play, reference;  // plays from there to `token`; the token to compare with
  std::int64_t layer = 0, head = 0, row = -1, column = -1;
  std::string slot;  // empty: the first
  std::vector<ViewLook> views;
};

/// The name of a number that the lesson noted at an earlier step: one run's beside another's.
struct Recall {
  std::string name;
};
using ProsePart = std::variant<std::string, Quantity, Recall>;
using Prose = std::vector<ProsePart>;  // Markdown with gaps

/// Which values something is said of: low ≤ x < high, or exactly `text`.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  std::optional<std::string> text;

  bool hold(const Measured& value) const;
};

struct LessonChoice {
  std::string words;
  Bounds bounds;
};
struct LessonQuestion {
  std::string words;
  std::vector<LessonChoice> choices;  // 2 … 9
  Quantity answer;
};

/// What a step's words rely on.
struct LessonClaim {
  Quantity quantity;
  Bounds bounds;
  std::string words;  // as in the file
};
struct LessonNote {
  std::string name;
  Quantity quantity;
};

struct LessonStep {
  std::string title;
  LessonPicture picture;
  Prose prose;
  std::optional<LessonQuestion> question;
  LessonPicture revealed;  // of the same run, once the question is answered; without a question it is `picture`
  Prose reveal;            // stands after the question
  std::vector<LessonClaim> claims;
  std::vector<LessonNote> notes;
};

/// What a lesson may hide.
enum class Hideable { inspector, transport, menu, header, status };

struct Lesson {
  std::string title, about;
  std::int64_t minutes = 0;
  bool takes_open_model = false;  // where one is open that reads any text
  std::vector<Hideable> hidden;
  std::vector<LessonStep> steps;  // at least one
  std::filesystem::path file;     // empty: of no file
};

/// Throws Error with `name`, the line and what to do. Knows the views and quantities, not the files that the lesson names.
Lesson parse_lesson(std::string_view text, const std::string& name);
Lesson load_lesson(const std::filesystem::path& path);

/// With this checkpoint in place of the one that its header names.
void take_model(Lesson& lesson, const std::filesystem::path& checkpoint);

/// Those that ship with the program, in the order of the numbers before their names; empty where there are none.
std::vector<std::filesystem::path> shipped_lessons();
/// A file that exists, or the name of a shipped lesson with or without its number: "forgetting". Throws Error.
std::filesystem::path find_lesson(const std::string& name);

/// The file that a lesson means: beside it, or among the program's assets in `folder` ("checkpoints", "prompts").
std::filesystem::path lesson_asset(const Lesson& lesson, const std::string& name, const char* folder);

}  // namespace statescope
