// What each command does, and the arguments it takes.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "app/common/prompts.h"
#include "app/eval/cells.h"
#include "app/figure/spec.h"
#include "app/film/film.h"
#include "app/inspect/arguments.h"
#include "app/web/recorder_options.h"
#include "app/window/arguments.h"
#include "datasets/task.h"
#include "engine/device.h"
#include "engine/run/sampling.h"
#include "engine/session/session_file.h"

namespace statescope {

struct RunArguments {
  std::string checkpoint;  // empty: the session's
  PromptArguments prompt;
  std::optional<std::int64_t> generate;
  SamplingOptions sampling;
  DeviceChoice device;
  std::int64_t chunk_size = 64;
  std::string dump;
  std::vector<std::int64_t> states;
  std::string session;                                          // the file that it is recorded in, or gone on with
  std::chrono::milliseconds interval = SessionFile::kInterval;  // between two savings of the session
  std::vector<std::string> interventions;                       // by which the session's branch is left in the end
  std::vector<std::string> others;                              // prompt files, read as runs of the session: their states can be imported
  std::optional<std::int64_t> branch;                           // of the session; unset: the one that was current
  std::optional<std::int64_t> against;                          // the branch to compare that one with
  std::int64_t memory = 0;                                      // MB of the session's recording; 0: a quarter of what is free
  std::string json;
  EngineArguments engine;
  bool force = false;
};
int run_command(const RunArguments& arguments);

struct ConvertArguments {
  std::string from, to, dtype;
  bool force = false;
};
int convert_command(const ConvertArguments& arguments);

struct TokenizeArguments {
  std::string path;                 // a checkpoint, or a folder or file of a tokenizer alone
  std::optional<std::string> text;  // unset: lines of standard input
  bool ids = false;                 // the other way: ids to text
  bool plain = false, recognise_specials = false, skip_specials = false;
};
/// Reads lines {"text": …} and writes {"ids": […], "offsets": [[begin, end], …] in bytes, "decoded": …} for each; with `ids`, reads
/// {"ids": […]} and writes {"text": …, "decoded": …}, which are the same.
int tokenize_command(const TokenizeArguments& arguments);

struct BenchArguments {
  std::vector<std::string> checkpoints;
  std::string only;  // what is measured: all whose name has this in it
  DeviceChoice device;
  bool placement = false;                        // instead, on paper: `checkpoints` are configs, or folders that hold one
  std::vector<int> gpus;                         // so many at once; empty: 1, 2, 4, 8
  std::vector<double> memory;                    // GB of each; empty: 24, 80, 141
  double bandwidth = 0, link = 0;                // GB/s; 0: by the memory
  double host_memory = 0, host_bandwidth = 200;  // GB of the host for what has no room, GB/s
  std::int64_t context = 8192;                   // tokens before the one that is decoded
};
int bench_command(const BenchArguments& arguments);

/// The forms of SSE (app/bench/sse.h).
struct BenchSseArguments {
  std::vector<std::int64_t> lengths, partitions;  // empty: the usual sweeps
  std::string json;
  DeviceChoice device;
  bool force = false;
};
int bench_placement_command(const BenchArguments& arguments);
int bench_sse_command(const BenchSseArguments& arguments);

struct EvalArguments {
  std::vector<std::string> checkpoints;
  EvalLists lists;
  std::string grid;                  // a file of cells, instead of lists
  std::string suite;                 // a list of assets/tasks/scores.json, instead of lists
  std::vector<std::string> prompts;  // files whose prompts say what a right reply contains, instead of lists
  std::string json, csv, hdf5;
  DeviceChoice device;
  EngineArguments engine;
  std::int64_t memory = 0;  // MB of states and caches of what is read at a time; 0: as many as they take
  bool force = false;
};
int eval_command(const EvalArguments& arguments);

struct DatasetArguments {
  TaskOptions task;
  std::int64_t samples = 500;
  std::string output;     // "-": standard output
  std::string ruler;      // one of ruler_tasks(), instead of the task's own options
  std::string tokenizer;  // of niah in real text: a checkpoint, or a folder or file of a tokenizer alone; empty: words or bytes
  bool chat = false;      // with `tokenizer`: in the form of its chat template
  bool force = false;
};
/// Of RULER's needles (Hsieh et al., COLM 2024): single_1, …, multiquery.
const std::vector<std::string>& ruler_tasks();
int dataset_command(const DatasetArguments& arguments);

/// The window; without a display, the same job headless (headless.cpp).
int window_command(int argc, char** argv, const WindowArguments& arguments);

int inspect_command(const InspectArguments& arguments);

struct NeedleArguments {
  std::string checkpoint;
  PromptArguments prompt;   // with a span that is a needle
  std::int64_t heads = 4;   // shown of each layer
  std::int64_t events = 3;  // of each head
  std::string json, html;
  DeviceChoice device;
  EngineArguments engine;
  bool force = false;
};
int needle_command(const NeedleArguments& arguments);

/// A run that is asked about.
struct AskArguments {
  std::string checkpoint;
  PromptArguments prompt;
  std::int64_t generate = 0;               // tokens behind the prompt
  std::vector<std::string> interventions;  // engine/run/intervention.h
  std::int64_t token = -1;                 // below 0: counted from the prompt's end
  std::string json;
  DeviceChoice device;
  EngineArguments engine;
  bool force = false;
};

struct ObserveArguments : AskArguments {
  std::optional<std::int64_t> layer;  // unset: all
  std::optional<std::int64_t> until;  // the last token; unset: that one alone
  std::int64_t since = 0;             // s of decay_since, kernel_since and remembered_since; as `token`
  std::vector<std::string> names;     // empty: all
  bool list = false;                  // only tell what there is
};
/// What a layer's quantities are at a token (engine/answers/observables.h). JSON: {"format": "statescope-observables", "version": 1,
/// "checkpoint", "device", "prompt_length", "interventions", "tokens": [{"token", "text"}], "layers": [{"layer", "mixer", "slots": names,
/// "quantities": [{"name", "axes", "unit", "equation", "accuracy", "shape": [tokens, …], "values"}]}]}; a number that does not exist is
/// null, an infinite one "inf".
int observe_command(const ObserveArguments& arguments);

struct HistoryArguments : AskArguments {
  std::int64_t layer = 0, slot = 0, head = 0;
  std::optional<std::int64_t> row, column;  // unset: all rows; the whole row
  bool read = false;                        // what the token reads there, instead of the state
  std::int64_t most = 12;                   // tokens shown
};
/// Who wrote a cell, a row, a partition, or what a token reads of it (engine/findings/findings.h, History). JSON: {"format":
/// "statescope-history", "version": 1, "accuracy", "checkpoint", "device", "prompt_length", "interventions", "layer", "slot" (its name),
/// "head", "row", "column" (null: all), "token", "read", "shown", "sum", "writers": [{"token", "text", "contribution", "coefficient",
/// "written"}]}, the largest first; with "step", from 1, where a token writes several times.
int history_command(const HistoryArguments& arguments);

struct CheckArguments {
  std::string checkpoint;
  PromptArguments prompt;
  std::vector<std::string> devices{"cpu", "cuda"};  // two
  std::optional<Precision> other_precision;         // of the second; unset: as the first
  double tolerance = 1e-4;                          // of the largest number of a value
  std::int64_t steps = 16;                          // of the tokens, one by one
  DeviceChoice device;                              // precision and threads
};
/// Ends with 3 where the devices differ.
int check_command(const CheckArguments& arguments);

struct ModelArguments {
  std::string checkpoint;
  bool program = false;               // what the layers compute, line by line; else a row for each layer
  std::optional<std::int64_t> layer;  // of the program; unset: each kind of layer once
  bool after_passes = false, one_token = false;
  DeviceChoice device;  // where it would live
  EngineArguments engine;
};
int model_command(const ModelArguments& arguments);

struct InterveneArguments {
  std::string checkpoint;
  PromptArguments prompt;
  std::vector<std::string> interventions;  // engine/run/intervention.h
  std::vector<std::string> others;         // prompt files, runs 1, 2, … that states are imported from
  std::optional<std::int64_t> generate;
  std::int64_t memory = 0;  // MB of a recording; 0: a quarter of what is free
  DeviceChoice device;
  EngineArguments engine;
  std::string json;
  bool force = false;
};
int intervene_command(const InterveneArguments& arguments);

class RunReader;

struct FigureArguments {
  std::string spec, from;                // a spec file; a figure to make again; both empty: what follows
  std::vector<std::string> checkpoints;  // of the panel
  PromptArguments prompt;
  FigurePanel panel;
  FigureSpec style;
  std::string output, data, caption;
  bool anonymous = false;
  std::string format;   // "pdf", "svg", "png", "eps"; empty: by the output's name
  std::string preview;  // "protan", "deutan", "tritan", "grey"; empty: none
  std::string command;  // the line itself, without where its outputs go
  DeviceChoice device;
  EngineArguments engine;
  std::int64_t memory = 0;  // MB of each recording; 0: a quarter of what is free
  bool force = false;

  /// Beside the output: "fig.protan.png".
  std::string preview_file() const;
  /// One panel, as the options have it. `reader`: has the checkpoints; null: this program. Throws Error.
  FigureSpec spec_of_options(RunReader* reader = nullptr) const;
};
int figure_command(const FigureArguments& arguments);

struct FilmArguments {
  FigureArguments figure;  // what moves, how it looks, where it goes
  FilmOptions film;
};
int film_command(const FilmArguments& arguments);

struct PageArguments {
  std::vector<std::string> what;   // a lesson, a spec file, or checkpoints side by side
  std::vector<std::string> views;  // as the window names them; empty: those that a run opens with
  FigureArguments figure;          // where in a run, and where it goes
  RecorderOptions recorder;
  std::string theme;  // "light", "dark"; empty: the reader's

  enum class Kind { lesson, spec, checkpoints };
  /// By the name's ending, or what lies there. Throws Error.
  Kind kind() const;
};
int page_command(const PageArguments& arguments);

struct BatchArguments {
  std::string file;
  int processes = 2;
  DeviceChoice device;
  EngineArguments engine;
  bool force = false;
};
int batch_command(const BatchArguments& arguments);

struct ServeArguments {
  std::string listen = "127.0.0.1:7453", root = ".", token_file;
  std::string certificate, key;  // PEM files
  DeviceChoice device;
  std::int64_t memory = 0;  // MB of all recordings; 0: a quarter of what is free, of each
  int most_clients = 8;
};
/// Until it is told to end.
int serve_command(const ServeArguments& arguments);

struct ChatArguments {
  std::string path;                   // a checkpoint's folder, one of templates alone, or a template
  std::string template_name;          // empty: the default, or tool_use
  std::string now;                    // for strftime_now; empty: the clock's
  std::vector<std::string> settings;  // NAME=VALUE, for the template
};
/// Lines of conversations (engine/chat/request.h) from standard input into {"text": …} or {"error": …} each.
int chat_command(const ChatArguments& arguments);

}  // namespace statescope
