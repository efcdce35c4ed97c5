// What each command does, and the arguments it takes.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/eval/cells.h"
#include "app/figure/spec.h"
#include "app/film/film.h"
#include "datasets/task.h"
#include "engine/checkpoint/file.h"
#include "engine/device.h"
#include "engine/run/sampling.h"
#include "engine/run/session_file.h"

namespace statescope {

/// Of --text, --ids, --prompt, --chat, --chat-file and --example at most one is set.
struct PromptArguments {
  std::optional<std::string> text;
  std::string ids, file;
  std::optional<std::string> chat;         // what the user says
  std::string chat_file;                   // JSON: messages, or a line of `statescope chat`
  std::vector<std::string> chat_settings;  // NAME=VALUE for the chat template
  bool special = false;                    // names of special tokens in --text are those tokens
  std::int64_t example = 0;                // the length of an example of what the checkpoint was trained on; 0: none
  std::int64_t number = 0;                 // of that example, or of one in `file`, from 0
  bool is_chat() const { return chat || !chat_file.empty(); }
  bool given() const { return text || !ids.empty() || !file.empty() || is_chat() || example > 0; }
};

/// Reads what the arguments name; `fallback` is a prompt file for when they name nothing, `checkpoint` the path of that whose chat template
/// and tokenizer make a conversation into ids. Throws Error.
PromptInput load_prompt(const PromptArguments& arguments, const std::string& fallback = "", const std::string& checkpoint = "");
/// A conversation by the checkpoint's chat template, as ids: special tokens that it writes are those tokens, and none come beside it.
PromptInput chat_prompt(const PromptArguments& arguments, const std::string& checkpoint);
/// "note: …" on standard error, in one line whatever stands in it.
void print_note(const std::string& note);
void print_notes(const std::vector<std::string>& notes);
/// Model::load on the device asked for; says the model's notes.
std::shared_ptr<Model> load_model(std::shared_ptr<const Checkpoint> checkpoint, const DeviceChoice& device);
/// "statescope: …" on standard error, likewise: why a part of what was asked for is not there.
void print_failure(const std::string& why);

/// Runs a command, which prints nothing before it is done. Where `auto` chose a CUDA device and that fails or runs out of memory under way,
/// a note says so, the choice becomes the CPU, and the command runs once more. Throws what the command throws.
int run_with_fallback(DeviceChoice& device, const std::function<int()>& command);

/// What is read where nobody says it: an example of what the checkpoint was trained on, if it says that it is something else than needles,
/// else the usual needle prompt. `checkpoint`: a path, or empty. Throws Error.
PromptInput first_prompt(const PromptArguments& arguments, const std::string& checkpoint);

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
};
int bench_command(const BenchArguments& arguments);

/// The forms of SSE (app/bench/sse.h).
struct BenchSseArguments {
  std::vector<std::int64_t> lengths, partitions;  // empty: the usual sweeps
  std::string json;
  DeviceChoice device;
  bool force = false;
};
int bench_sse_command(const BenchSseArguments& arguments);

struct EvalArguments {
  std::vector<std::string> checkpoints;
  EvalLists lists;
  std::string grid;                  // a file of cells, instead of lists
  std::string suite;                 // a list of assets/tasks/scores.json, instead of lists
  std::vector<std::string> prompts;  // files whose prompts say what a right reply contains, instead of lists
  std::string json, csv;
  DeviceChoice device;
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

struct WindowArguments {
  std::string checkpoint;
  std::vector<std::string> beside;  // checkpoints to compare with it
  PromptArguments prompt;
  DeviceChoice device;
  std::int64_t memory = 0;  // MB of a recording; 0: a quarter of what is free
  std::string theme = "system", screenshot, size = "1600x1000";
  float scale = 0;
  bool software = false, no_autoplay = false;
  std::vector<std::string> views;  // an arrangement of its own (arrangement_of); empty: that of last time
  std::int64_t token = -1, layer = -1, head = -1, slot = -1;
  std::string watch;      // a training's folder
  std::string lesson;     // a file, or the name of a shipped one
  std::int64_t step = 1;  // of the lesson, in a screenshot
  bool revealed = false;  // its question answered
};
/// The window; without a display, the same job headless (headless.cpp).
int window_command(int argc, char** argv, const WindowArguments& arguments);

struct InspectArguments {
  std::vector<std::string> checkpoints;
  PromptArguments prompt;             // a text or ids; none, and no files: examples of the task that the checkpoint was trained on
  std::vector<std::string> prompts;   // prompt files; all examples of those that have several
  std::vector<std::int64_t> lengths;  // of its task's examples; empty: a quarter of the training length, that length, twice as long
  std::int64_t samples = 3;           // examples of each length
  std::string json, html, csv;
  bool check = false;    // end with 3 where something is ill
  bool watch = false;    // look for new checkpoints until it is interrupted
  double every = 10;     // seconds between two looks
  std::string when_ill;  // a command for the shell: what to run when a new checkpoint is ill
  DeviceChoice device;
  bool force = false;
};
int inspect_command(const InspectArguments& arguments);

struct NeedleArguments {
  std::string checkpoint;
  PromptArguments prompt;   // with a span that is a needle
  std::int64_t heads = 4;   // shown of each layer
  std::int64_t events = 3;  // of each head
  std::string json, html;
  DeviceChoice device;
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
  bool force = false;
};

struct ObserveArguments : AskArguments {
  std::optional<std::int64_t> layer;  // unset: all
  std::optional<std::int64_t> until;  // the last token; unset: that one alone
  std::int64_t since = 0;             // decay_since counts from it; as `token`
  std::vector<std::string> names;     // empty: all
  bool list = false;                  // only tell what there is
};
/// What a layer's quantities are at a token (engine/analysis/observables.h). JSON: {"format": "statescope-observables", "version": 1,
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
/// Who wrote a cell, a row, a partition, or what a token reads of it (engine/findings.h, History). JSON: {"format": "statescope-history",
/// "version": 1, "accuracy", "checkpoint", "device", "prompt_length", "interventions", "layer", "slot" (its name), "head", "row", "column"
/// (null: all), "token", "read", "shown", "sum", "writers": [{"token", "text", "contribution", "coefficient", "written"}]}, the largest
/// first.
int history_command(const HistoryArguments& arguments);

struct InterveneArguments {
  std::string checkpoint;
  PromptArguments prompt;
  std::vector<std::string> interventions;  // engine/run/intervention.h
  std::vector<std::string> others;         // prompt files, runs 1, 2, … that states are imported from
  std::optional<std::int64_t> generate;
  std::int64_t memory = 0;  // MB of a recording; 0: a quarter of what is free
  DeviceChoice device;
  std::string json;
  bool force = false;
};
int intervene_command(const InterveneArguments& arguments);

struct FigureArguments {
  std::string spec, from;                // a spec file; a figure to make again; both empty: what follows
  std::vector<std::string> checkpoints;  // of the panel
  PromptArguments prompt;
  FigurePanel panel;
  FigureSpec style;
  std::string output, data, caption;
  std::string preview;  // "protan", "deutan", "tritan", "grey"; empty: none
  std::string command;  // the line itself, without where its outputs go
  DeviceChoice device;
  bool force = false;

  /// Beside the output: "fig.protan.png".
  std::string preview_file() const;
  /// One panel, as the options have it. Throws Error.
  FigureSpec spec_of_options() const;
};
int figure_command(const FigureArguments& arguments);

struct FilmArguments {
  FigureArguments figure;  // what moves, how it looks, where it goes
  FilmOptions film;
};
int film_command(const FilmArguments& arguments);

struct BatchArguments {
  std::string file;
  int processes = 2;
  DeviceChoice device;
  bool force = false;
};
int batch_command(const BatchArguments& arguments);

struct ChatArguments {
  std::string path;                   // a checkpoint's folder, one of templates alone, or a template
  std::string template_name;          // empty: the default, or tool_use
  std::string now;                    // for strftime_now; empty: the clock's
  std::vector<std::string> settings;  // NAME=VALUE, for the template
};
/// Lines of conversations (engine/chat/request.h) from standard input into {"text": …} or {"error": …} each.
int chat_command(const ChatArguments& arguments);

/// `megabytes` of the device's memory, and of the host's beside it; 0: a quarter of what is free of each.
RunOptions recording_budgets(std::int64_t megabytes);
/// In a line: how far its keyframes are from each other, what it takes and what it may take.
std::string recording_text(const RecordingInfo& recording);
nlohmann::json recording_json(const RecordingInfo& recording);

/// Whether the first words of an answer are the expected ones, whatever white space is before them and whatever mark behind.
bool answers(const std::string& text, const std::string& expected);

/// A file that is to be written when all is done, or standard output for "-"; none for an empty path. Throws Error at once where it could
/// not be.
class ReportFile {
 public:
  ReportFile(const std::string& path, bool force);
  void write(const std::string& text);
  bool is_standard_output() const { return is_standard_output_; }

 private:
  std::optional<Draft> draft_;
  bool is_standard_output_ = false;
};

/// A report for people, on standard output where none of the files is that.
void print_report(const std::string& text, std::initializer_list<const ReportFile*> files);

/// A bar on the terminal's standard error; nothing where that is not a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `note` follows the percentage.
  void show(double fraction, const std::string& note = "");

 private:
  std::string what_;
  bool terminal_;
  int shown_ = -1;  // percent
};

}  // namespace statescope
