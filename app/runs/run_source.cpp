#include "app/runs/run_source.h"

#include <QCoreApplication>
#include <utility>

#include "app/assets.h"
#include "app/common/plain_words.h"
#include "app/eval/needle_grid.h"
#include "app/runs/branch_source.h"
#include "app/runs/post.h"
#include "engine/error.h"
#include "engine/run/sample_ids.h"

namespace statescope {
namespace {

constexpr int grid_niceness = 10;  // stepping through the run stays smooth

/// Null where there is no chat template, or none that can be read.
std::shared_ptr<const chat::TemplateFolder> chat_of(const Checkpoint& checkpoint) {
  try {
    auto folder = std::make_shared<const chat::TemplateFolder>(checkpoint.path);
    return folder->has_templates() ? folder : nullptr;
  } catch (const Error&) {
    return nullptr;
  }
}

class SessionSource final : public RunSource {
 public:
  SessionSource(Session::OpenDevice open_device, DeviceChoice name, std::size_t memory)
      : beside_(open_device ? name : DeviceChoice{.precision = name.precision}),
        session_(post, std::move(open_device), std::move(name), memory) {}
  ~SessionSource() override { *alive_ = false; }

  void open(std::filesystem::path checkpoint, PromptInput prompt, Session::OpenCallbacks callbacks) override {
    session_.open(std::move(checkpoint), std::move(prompt), watched(std::move(callbacks)));
  }
  void read(PromptInput prompt, Session::OpenCallbacks callbacks) override { session_.read(std::move(prompt), std::move(callbacks)); }
  void generate(std::int64_t tokens, Session::OpenCallbacks callbacks) override { session_.generate(tokens, std::move(callbacks)); }
  void cancel() override { session_.cancel(); }
  void intervene(std::vector<Intervention> interventions, Session::OpenCallbacks callbacks) override {
    session_.intervene(std::move(interventions), std::move(callbacks));
  }
  void add_run(PromptInput prompt, Session::OpenCallbacks callbacks) override { session_.add_run(std::move(prompt), std::move(callbacks)); }
  void undo(Session::OpenCallbacks callbacks) override { session_.undo(std::move(callbacks)); }
  void redo(Session::OpenCallbacks callbacks) override { session_.redo(std::move(callbacks)); }
  void go_to_branch(std::int64_t branch, Session::OpenCallbacks callbacks) override { session_.go_to_branch(branch, std::move(callbacks)); }
  void save(std::filesystem::path path, std::function<void()> saved, std::function<void(std::string)> failed) override {
    session_.save(std::move(path), std::move(saved), std::move(failed));
  }
  void stand_at(RunPlace place) override { session_.stand(std::move(place)); }
  void open_session(std::filesystem::path path, std::filesystem::path located, Session::OpenCallbacks callbacks) override {
    std::vector<std::filesystem::path> places = checkpoint_places();
    if (!located.empty()) places.insert(places.begin(), std::move(located));
    session_.open_session(std::move(path), watched(std::move(callbacks)), std::move(places));
  }
  void show(std::int64_t layer, std::int64_t head, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) override {
    session_.show(layer, head, token, std::move(done));
  }
  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
           std::function<void(Question, Finding)> tell) override {
    ask_beside(asker, questions, tell);
    session_.ask(asker, std::move(run), std::move(questions), std::move(tell));
  }
  ModelFacts facts() const override {
    const std::shared_ptr<const Model> model = session_.model();
    if (!model) return {};
    ModelFacts facts{.no_text = {}, .vocab = model->vocab(), .tokenizer = session_.tokenizer()};
    if (const std::string why = why_no_text(*facts.tokenizer); !why.empty()) facts.no_text = without_options(why);
    facts.chat = chat_of(model->checkpoint());
    return facts;
  }
  std::unique_ptr<RunSource> beside(std::shared_ptr<const RunInfo> run) override {
    return std::make_unique<BranchSource>(
        std::move(run),
        [this](auto branch, std::int64_t layer, std::int64_t head, std::int64_t token, auto done) {
          session_.show_beside(std::move(branch), layer, head, token, std::move(done));
        },
        [this](int asker, auto branch, auto questions, auto tell) {
          session_.ask_beside(asker, std::move(branch), std::move(questions), std::move(tell));
        });
  }

 private:
  /// What is shown says of which checkpoint it is.
  Session::OpenCallbacks watched(Session::OpenCallbacks callbacks) {
    callbacks.branches = [this, hear = std::move(callbacks.branches)](std::shared_ptr<const BranchTree> branches) {
      checkpoint_ = branches->checkpoint;
      if (hear) hear(std::move(branches));
    };
    return callbacks;
  }

  /// Takes out of the questions those that are about the checkpoint.
  void ask_beside(int asker, std::vector<Question>& questions, const std::function<void(Question, Finding)>& tell) {
    std::vector<NeedleGridQuestion> grids;
    for (const Question& question : questions) {
      if (const auto* grid = std::get_if<NeedleGridQuestion>(&question)) grids.push_back(*grid);
    }
    std::erase_if(questions, [](const Question& question) { return std::holds_alternative<NeedleGridQuestion>(question); });
    if (grids.empty() && !grid_reader_) return;
    if (!grid_reader_) grid_reader_ = std::make_unique<NeedleGridReader>(assets_folder(), beside_, grid_niceness);
    NeedleGridReader::Subject subject{session_.model(), session_.tokenizer()};
    const bool is_shown =
        subject.model && subject.tokenizer && subject.model->checkpoint().path == checkpoint_ && session_.model() == subject.model;
    if (!is_shown) grids.clear();  // of a run that is already on its way here: asked anew then
    grid_reader_->ask(asker, std::move(subject), std::move(grids),
                      [alive = alive_, tell](const NeedleGridQuestion& question, Finding finding) {
                        post([alive, tell, question, finding] {
                          if (*alive) tell(question, finding);
                        });
                      });
  }

  const DeviceChoice beside_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // read and written on the interface thread alone
  std::filesystem::path checkpoint_;                            // of the run shown
  Session session_;
  std::unique_ptr<NeedleGridReader> grid_reader_;  // null until somebody asks
};

}  // namespace

std::unique_ptr<RunSource> make_session_source(Session::OpenDevice open_device, DeviceChoice name, std::size_t memory) {
  return std::make_unique<SessionSource>(std::move(open_device), std::move(name), memory);
}

}  // namespace statescope
