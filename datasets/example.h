// One drawn example of a task: a text, where its needles lie, what is asked and what a right answer says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace statescope {

/// Bytes [begin, end) of an example's text.
struct TextRange {
  std::size_t begin = 0, end = 0;
};

/// A question and its answer. Where the task writes the answer after the question (needles, copying), `given` is where; a model is scored
/// on predicting it token by token. Where it does not (associative recall: the next token is noise), `given` is empty and the answer is
/// what the model must predict after the last token of the question.
struct ExampleQuestion {
  TextRange asked;
  std::string answer;
  TextRange given;
  std::vector<std::size_t> needles;  // indices of the needles that hold the answer
  double depth = 0;                  // where the first of them begins: 0 at the start of the text, 1 where the questions begin
};

struct Example {
  std::int64_t index = 0;
  std::int64_t length = 0;  // of `text` with every answer in it, in the task's unit: words, or bytes of prose
  std::string text;
  std::vector<TextRange> needles;  // in order of their numbers, not of their places
  std::vector<ExampleQuestion> questions;
};

}  // namespace statescope
