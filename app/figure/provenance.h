// What a figure was made from, written into its file: enough to make it again.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "app/figure/runs.h"
#include "app/figure/spec.h"

namespace statescope {

/// A file that the figure was made from.
struct FigureSource {
  std::string name;    // as in the spec
  std::string sha256;  // of its bytes; of a folder, of its files' names and bytes in order
  std::string config;  // of a checkpoint, verbatim; else empty

  bool operator==(const FigureSource&) const = default;
};

struct Provenance {
  FigureSpec spec;                    // settled: with its prompts in it
  std::vector<FigureSource> sources;  // each once
  std::string command;                // the line that made it, without where its outputs went
  std::string program;                // version
  std::string device;                 // what the models ran on
};

/// Throws Error.
std::vector<FigureSource> sources_of(const FigureSpec& spec, FigureRuns& runs);

/// ASCII.
std::string to_json(const Provenance& provenance);
/// Throws Error in one line, naming `name`.
Provenance parse_provenance(std::string_view text, const std::string& name);

/// Of a .pdf, .svg or .png that has it. Throws Error in one line.
Provenance read_provenance(const std::filesystem::path& figure);

/// The JSON as an element of XML, and back: the first such element in a file's bytes. Throws Error.
std::string provenance_element(std::string_view json);
std::string provenance_in(std::string_view file, const std::string& name);
/// Under this name a PNG has the JSON, written without any space: Qt shortens those of a text.
inline constexpr const char* kProvenanceText = "Statescope";
std::string without_spaces(std::string_view json);

/// Without folders, the command line and what configs say of where they came from: files keep their own names, by which the figure calls
/// them.
Provenance anonymous(Provenance provenance);

/// The same with each file that is no longer where its name says under the name of one that has its digest: in the figure's `folder`, where
/// the program was started, or among the assets. Those of which there is none stay.
Provenance found_again(Provenance provenance, const std::filesystem::path& folder);

}  // namespace statescope
