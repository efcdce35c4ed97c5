// Whether JSON is as a schema of ours says, by Python's jsonschema.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::test {

/// Says so where it is not there.
inline bool has_jsonschema() {
  if (std::system("python3 -c 'import jsonschema' 2>/dev/null") == 0) return true;
  WARN("skipped: there is no jsonschema for Python");
  return false;
}

/// The first complaint of app/schemas/NAME.schema.json about a report; empty: there is none.
inline std::string complaint(const nlohmann::json& report, const std::string& name) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "statescope-json-schema-test";
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "report.json") << report.dump();
  std::ofstream(folder / "check.py") << "import json, sys, jsonschema\n"
                                        "report, schema = (json.load(open(path)) for path in sys.argv[1:3])\n"
                                        "jsonschema.Draft202012Validator.check_schema(schema)\n"
                                        "error = next(jsonschema.Draft202012Validator(schema).iter_errors(report), None)\n"
                                        "open(sys.argv[3], 'w').write(error.message if error else '')\n";
  const std::string command = fmt::format("python3 {0}/check.py {0}/report.json {1} {0}/complaint", folder.string(),
                                          from_source("app/schemas/" + name + ".schema.json"));
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream answer(folder / "complaint");
  const std::string text{std::istreambuf_iterator<char>(answer), {}};
  std::filesystem::remove_all(folder);
  return text;
}

}  // namespace statescope::test
