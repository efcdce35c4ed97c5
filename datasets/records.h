// JSONL files of examples: one JSON object a line. Ours has everything an Example holds; RULER's has "input", "outputs" and more that is
// of no use here.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "datasets/task.h"

namespace statescope {

struct Record {
  std::string input;                 // what a model is given to read
  std::vector<std::string> outputs;  // what a right answer says
  Example example;                   // `text` is the input, and nothing is marked, where the file says no more
};

/// An example as a line, without its end. `in_chat`: its text has the form of a chat template.
std::string record_line(const Example& example, const TaskOptions& options, bool in_chat = false);

/// All records, or the one of a line (from 0; empty lines do not count). Both throw std::runtime_error with one line naming file and line.
std::vector<Record> read_records(const std::filesystem::path& path);
Record read_record(const std::filesystem::path& path, std::size_t index);
/// The same of an object; `where` says which part of the file it is.
Record record_of(const std::filesystem::path& path, const nlohmann::json& object, const std::string& where);

}  // namespace statescope
