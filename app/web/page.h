// A page that needs nothing but a browser: recorded runs, and the lesson that they belong to, in one file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/web/recorder.h"

namespace statescope {

/// What is on the page at a time: views of one run, at a token of it.
struct PagePicture {
  std::size_t run = 0;
  std::vector<std::size_t> views;
  std::vector<std::string> letters;  // of their models, "A", "B"; empty: there is one model
  std::int64_t token = 0;
  std::optional<std::int64_t> play;  // plays from there to `token`
  std::string caption;               // what to look at
};

struct PageQuestion {
  std::string words;
  std::vector<std::string> choices;
  std::optional<std::size_t> right;        // unset: the run's answer is none of them
  std::string open, as_said, not_as_said;  // the run's answer, after no prediction, a right one, a wrong one
};

/// A step of a lesson, its words as the run has filled them: HTML where they were Markdown.
struct PageStep {
  std::string title, prose, reveal;
  std::optional<PageQuestion> question;
  std::string broken;  // what this run does not show; empty: all is shown
  PagePicture picture, revealed;
};

struct Page {
  std::string title, about;
  std::vector<RunInfo> runs;
  std::vector<RecordedView> views;
  PagePicture picture;          // of a run without a lesson
  std::vector<PageStep> steps;  // of a lesson; empty: there is none
  std::string theme;            // "light", "dark"; empty: as the reader's system has it
};

/// The file. Throws Error where it is larger than that.
std::string page_html(const Page& page, std::size_t most_bytes);

}  // namespace statescope
