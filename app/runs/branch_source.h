// A branch beside the one that another source shows: nothing but to be looked at.
#pragma once

#include <utility>

#include "app/runs/post.h"
#include "app/runs/run_source.h"

namespace statescope {

class BranchSource final : public RunSource {
 public:
  using Show = std::function<void(std::shared_ptr<const RunInfo> run, std::int64_t layer, std::int64_t head, std::int64_t token,
                                  std::function<void(std::shared_ptr<const Snapshot>)> done)>;
  using Ask = std::function<void(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
                                 std::function<void(Question, Finding)> tell)>;

  BranchSource(std::shared_ptr<const RunInfo> run, Show show, Ask ask)
      : run_(std::move(run)), show_(std::move(show)), ask_(std::move(ask)) {}

  void open(std::filesystem::path, PromptInput prompt, Session::OpenCallbacks callbacks) override {
    read(std::move(prompt), std::move(callbacks));
  }
  void read(PromptInput, Session::OpenCallbacks callbacks) override {
    post([callbacks = std::move(callbacks), run = run_] {
      callbacks.run(run);
      callbacks.done();
    });
  }
  void show(std::int64_t layer, std::int64_t head, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) override {
    show_(run_, layer, head, token, std::move(done));
  }
  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
           std::function<void(Question, Finding)> tell) override {
    ask_(asker, std::move(run), std::move(questions), std::move(tell));
  }
  void generate(std::int64_t, Session::OpenCallbacks) override {}
  void cancel() override {}
  void intervene(std::vector<Intervention>, Session::OpenCallbacks) override {}
  void add_run(PromptInput, Session::OpenCallbacks) override {}
  void undo(Session::OpenCallbacks) override {}
  void redo(Session::OpenCallbacks) override {}
  void go_to_branch(std::int64_t, Session::OpenCallbacks) override {}
  void save(std::filesystem::path, std::function<void()>, std::function<void(std::string)>) override {}
  void open_session(std::filesystem::path, std::filesystem::path, Session::OpenCallbacks) override {}

 private:
  const std::shared_ptr<const RunInfo> run_;
  const Show show_;
  const Ask ask_;
};

}  // namespace statescope
