#include "app/inspect/inspecting.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "app/assets.h"
#include "app/common/console.h"
#include "app/common/own_task.h"
#include "app/eval/score.h"
#include "app/inspect/window_command.h"
#include "datasets/prompt.h"
#include "engine/analysis/predictions.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "engine/run/reading.h"
#include "engine/tokenizer/tokenizer.h"

namespace statescope {
namespace {

constexpr std::int64_t kLongest = 1'000'000, kMostSamples = 1000;
constexpr std::size_t kMostLengths = 1000;

struct Sequence {
  std::string name;
  ScoredSequence read;
  std::string reread;
};

/// Evaluation examples of the checkpoint's own task, `samples` of each length: a quarter of its training length, that length, twice as
/// long.
std::vector<Sequence> own_sequences(const Training& training, std::int64_t trained, const Tokenizer& tokenizer,
                                    std::vector<std::int64_t> lengths, std::int64_t samples) {
  if (lengths.empty()) lengths = {trained / 4, trained, 2 * trained};
  std::vector<Sequence> sequences;
  for (const std::int64_t length : lengths) {
    const std::unique_ptr<const Task> examples = make_task(own_task(training, length), assets_folder());
    const std::string name = fmt::format("{}, {} {}", training.task, length, examples->unit());
    for (std::int64_t i = 0; i < samples; ++i)
      sequences.push_back({name, tokens_of(examples->example(i), tokenizer).sequence, fmt::format("--example {} --number {}", length, i)});
  }
  return sequences;
}

ScoredSequence unscored(std::vector<std::int32_t> ids) { return {.ids = std::move(ids), .targets = {}}; }

std::string absolute_word(const std::string& path) { return shell_word(std::filesystem::absolute(path).lexically_normal()); }

/// Of a prompt given on the command line itself.
std::string reread_words(const PromptArguments& prompt) {
  std::string words;
  if (prompt.text) words = "--text " + shell_word(*prompt.text);
  if (prompt.chat) words = "--chat " + shell_word(*prompt.chat);
  if (!prompt.ids.empty() && prompt.ids != "-") words = "--ids " + absolute_word(prompt.ids);
  if (!prompt.chat_file.empty() && prompt.chat_file != "-") words = "--chat-file " + absolute_word(prompt.chat_file);
  for (const std::string& setting : prompt.chat_settings) words += " --chat-set " + shell_word(setting);
  return words;
}

/// A file of several examples stands for all of them, under its name.
std::vector<InspectText> texts_of(const std::vector<std::string>& paths) {
  std::vector<InspectText> texts;
  for (const std::string& path : paths) {
    const std::string name = path == "-" ? "standard input" : std::filesystem::path(path).filename().string();
    const std::string reread = path == "-" ? "" : "--prompt " + absolute_word(path);
    std::size_t number = 0;
    for (const Prompt& prompt : read_prompts(path)) {
      texts.push_back({name,
                       {.text = prompt.text, .spans = {}, .ids = prompt.ids, .expected = {}, .generate = {}, .in_chat = prompt.in_chat},
                       reread.empty() || number == 0 ? reread : fmt::format("{} --number {}", reread, number)});
      ++number;
    }
  }
  return texts;
}

std::vector<Sequence> sequences_of(const std::vector<InspectText>& texts, const Tokenizer& tokenizer) {
  std::vector<Sequence> sequences;
  for (const auto& [name, prompt, reread] : texts) sequences.push_back({name, unscored(encode(prompt, tokenizer).ids), reread});
  return sequences;
}

/// nat a token that the model needs on an example of its own task; unset where that is not known or none of it fits.
std::optional<double> own_nll(Model& model, const Training& training, std::int64_t trained, const Tokenizer& tokenizer) {
  const std::vector<Sequence> own = own_sequences(training, trained, tokenizer, {trained}, 1);
  const std::vector<double> nll = read_nll(model, own.front().read.ids);
  return std::accumulate(nll.begin(), nll.end(), 0.0) / static_cast<double>(nll.size());
}

/// Whether every number of the report that a model cannot help computing is there and finite.
bool is_finite(const SequenceReport& report) {
  const auto finite = [](double value) { return std::isfinite(value); };
  return (report.tokens < 2 || std::isfinite(report.predicting.nll)) && std::ranges::all_of(report.nll_by_eighth, finite) &&
         std::ranges::all_of(report.layers, finite, &LayerReport::residual_norm);
}

/// 3 of "model.layers.3.attn.q_proj.weight"
std::optional<std::int64_t> layer_of_tensor(const std::string& name) {
  constexpr std::string_view before = "layers.";
  const std::size_t place = name.find(before);
  std::int64_t layer = 0;
  if (place == std::string::npos) return {};
  const char* const first = name.data() + place + before.size();
  return std::from_chars(first, name.data() + name.size(), layer).ec == std::errc() ? std::optional(layer) : std::nullopt;
}

Diagnosis not_finite_diagnosis(const NotFinite& found, std::int64_t layers) {
  Diagnosis diagnosis{
      .illness = Illness::not_finite, .layers = {}, .heads = {}, .heads_by_layer = {}, .evidence = {}, .sentence = found.text() + "."};
  std::optional<std::int64_t> layer;
  if (found.activation) {
    if (found.activation->layer >= 0 && found.activation->layer < layers) layer = found.activation->layer;  // neither embedding nor head
    diagnosis.evidence = {{"token", static_cast<double>(found.activation->token)}};
  } else if (found.weight) {
    layer = layer_of_tensor(found.weight->tensor);
  }
  if (layer) {
    diagnosis.layers = {*layer};
    diagnosis.heads_by_layer = {{}};
    diagnosis.evidence.insert(diagnosis.evidence.begin(), {"layer", static_cast<double>(*layer)});
  }
  return diagnosis;
}

std::string words_of(const DeviceChoice& device) {
  const std::string name = device.name == "cpu" ? "" : " --device " + device.name;
  return device.precision == Precision::bfloat16 ? name + " --precision bfloat16" : name;
}

std::string names_text(const std::vector<std::string>& names) {
  std::vector<std::string> different;
  std::ranges::unique_copy(names, std::back_inserter(different));
  return fmt::format("{}", fmt::join(different, "; "));
}

}  // namespace

Inspected do_job(const InspectJob& job, const JobSite& site) {
  const auto is_long = [](std::int64_t length) { return length < 1 || length > kLongest; };
  if (job.samples < 1 || job.samples > kMostSamples || job.lengths.size() > kMostLengths || std::ranges::any_of(job.lengths, is_long))
    throw Error("there are no such examples");
  const auto checkpoint = open_checkpoint(site.path);
  const std::shared_ptr<Model> model = Model::load(checkpoint, open_device(site.device));
  const std::optional<Training> training = training_of(*checkpoint);
  Inspected inspected{.checkpoint = site.checkpoint,
                      .trained = trained_length(*checkpoint),
                      .steps = job.steps > 0 ? job.steps
                               : training    ? training->steps
                                             : 0,
                      .notes = model->notes()};
  const auto tokenizer = make_tokenizer(*checkpoint, model->vocab());
  ReadOn read{.trained_length = inspected.trained, .own_task = job.texts.empty()};
  const bool knows_task = training && (inspected.trained > 0 || !job.lengths.empty());
  if (read.own_task && !knows_task)
    throw Error(site.checkpoint + ": it does not say what it was trained on; give --prompt, --text or --ids");
  const std::vector<Sequence> sequences = read.own_task ? own_sequences(*training, inspected.trained, *tokenizer, job.lengths, job.samples)
                                                        : sequences_of(job.texts, *tokenizer);
  const auto reread_words = [&](const Sequence& sequence) { return sequence.reread.empty() ? "" : sequence.reread + job.reread_with; };
  const bool weights_are_finite = !find_not_finite(*model);
  for (const Sequence& sequence : sequences) {
    const std::vector<std::int32_t>& ids = sequence.read.ids;
    SequenceReport report;
    const auto tell_part = [&](double part) {
      return site.goes_on((static_cast<double>(inspected.sequences.size()) + part) / static_cast<double>(sequences.size()), sequence.name);
    };
    if (weights_are_finite) report = inspect_sequence(*model, ids, sequence.read.targets, tell_part);
    if (!weights_are_finite || !is_finite(report)) {
      inspected.judgement.diagnoses = {not_finite_diagnosis(not_finite(model, ids), model->layers())};
      inspected.read_on = sequence.name;
      inspected.names.clear();
      inspected.sequences.clear();
      inspected.reread = {reread_words(sequence)};
      return inspected;
    }
    inspected.names.push_back(sequence.name);
    inspected.sequences.push_back(std::move(report));
    inspected.reread.push_back(reread_words(sequence));
  }
  if (!read.own_task && training && inspected.trained > 0) read.own_nll = own_nll(*model, *training, inspected.trained, *tokenizer);
  inspected.read_on = names_text(inspected.names);
  inspected.judgement = judge(inspected.sequences, read);
  return inspected;
}

InspectJob inspect_job(const InspectArguments& arguments, const FoundCheckpoint& found,
                       const std::function<PromptInput(const PromptArguments&)>& prompt) {
  InspectJob job{.steps = found.steps,
                 .texts = texts_of(arguments.prompts),
                 .lengths = arguments.lengths,
                 .samples = arguments.samples,
                 .reread_with = words_of(arguments.device)};
  if (job.texts.empty() && arguments.prompt.given()) job.texts = {{"prompt", prompt(arguments.prompt), reread_words(arguments.prompt)}};
  return job;
}

Inspected inspect_checkpoint(const InspectArguments& arguments, const FoundCheckpoint& found, const std::function<bool(double)>& tell) {
  const std::filesystem::path path = checkpoint_at(found.path);
  const auto prompt = [&](const PromptArguments& of) { return load_prompt(of, "", path.string()); };
  Inspected inspected =
      do_job(inspect_job(arguments, found, prompt),
             {.checkpoint = found.path, .path = path, .device = arguments.device, .tell = [&](double part, const std::string&) {
                return tell(part);
              }});
  print_notes(inspected.notes);
  return inspected;
}

FoundCheckpoints do_job(const FindJob&, const JobSite& site) {
  FoundCheckpoints found = find_checkpoints({site.path.string()});
  const auto call = [&](std::string& path) { path.replace(0, site.path.string().size(), site.checkpoint); };
  for (FoundCheckpoint& one : found.checkpoints) call(one.path);
  std::ranges::for_each(found.skipped, call);
  return found;
}

}  // namespace statescope
