#include "app/jobs/intervene_job.h"

#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/run/not_finite.h"
#include "engine/run/reading.h"
#include "engine/run/sampling.h"

namespace statescope {
namespace {

constexpr std::int64_t kDefaultLength = 32;
constexpr std::int64_t kMostGenerated = 1'000'000;

/// Reads a prompt and generates, greedily.
std::shared_ptr<Run> read_run(const std::shared_ptr<Model>& model, const std::vector<std::int32_t>& ids, std::int64_t generate,
                              const RunOptions& options, const JobSite& site) {
  auto run = std::make_shared<Run>(model, options);
  const std::int64_t length = std::ssize(ids);
  const auto all = static_cast<double>(length + generate);
  run->read(ids, length, [&](std::int64_t tokens) { return site.goes_on(static_cast<double>(tokens) / all, "reading"); });
  if (run->tokens() < length) throw Cancelled();
  for (std::int64_t i = 0; i < generate; ++i) {
    const std::int32_t id = most_probable_id(run->logits(run->tokens() - 1));
    run->read({&id, 1}, length);
    site.say(static_cast<double>(run->tokens()) / all, "reading");
  }
  return run;
}

}  // namespace

Intervened do_job(const InterveneJob& job, const JobSite& site) {
  if (job.generate.value_or(0) < 0 || job.generate.value_or(0) > kMostGenerated) throw Error("so many tokens cannot be generated");
  const auto checkpoint = open_checkpoint(site.path);
  const std::shared_ptr<Model> model = Model::load(checkpoint, open_device(site.device));
  const auto tokenizer = make_tokenizer(*checkpoint, model->vocab());
  const std::vector<std::int32_t> ids = encode(job.prompt, *tokenizer).ids;
  const std::string& expected = job.prompt.expected;
  const std::int64_t wanted = expected.empty() ? kDefaultLength : std::ssize(tokenizer->encode(expected, kContinuation).ids);
  const std::int64_t generate = job.generate.value_or(wanted);
  for (const Intervention& intervention : job.interventions) changed_layers(intervention, *model, std::ssize(ids) + generate);

  const RunOptions options{.memory_budget = site.memory, .host_memory_budget = site.memory};
  Branches tree(read_run(model, ids, generate, options, site));
  for (const PromptInput& other : job.others) tree.add(read_run(model, encode(other, *tokenizer).ids, 0, tree[0].run->beside(), site));
  refuse_not_finite(not_finite(*tree[0].run), site.checkpoint, "comparison");
  Run& before = *tree[0].run;
  const std::int64_t branch = tree.intervene(job.interventions, [&](std::int64_t tokens) {
    return site.goes_on(static_cast<double>(tokens) / static_cast<double>(before.tokens()), "reading on");
  });
  Run& after = *tree[branch].run;
  refuse_not_finite(not_finite(after), site.checkpoint, "comparison, once the interventions have been made");
  Intervened found{.report = report_branches(tree, 0, branch, *tokenizer, expected),
                   .family = model->plan().family,
                   .device = model->backend().description(),
                   .notes = model->notes(),
                   .remarks = {},
                   .recording = before.recording(),
                   .tokens = before.tokens()};
  if (after.first() < after.tokens()) found.again_from = after.first();
  for (const Run* run : {&before, &after}) {
    if (const std::string remark = run->remark(); !remark.empty()) found.remarks.push_back(remark);
  }
  return found;
}

}  // namespace statescope
