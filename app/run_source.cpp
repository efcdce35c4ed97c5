#include "app/run_source.h"

#include <QCoreApplication>
#include <utility>

namespace statescope {
namespace {

class SessionSource final : public RunSource {
 public:
  SessionSource(std::shared_ptr<Backend> device, DeviceChoice name)
      : session_([](std::function<void()> work) { QMetaObject::invokeMethod(qApp, std::move(work), Qt::QueuedConnection); },
                 std::move(device), std::move(name)) {}

  void open(std::filesystem::path checkpoint, PromptInput prompt, Session::OpenCallbacks callbacks) override {
    session_.open(std::move(checkpoint), std::move(prompt), std::move(callbacks));
  }
  void read(PromptInput prompt, Session::OpenCallbacks callbacks) override { session_.read(std::move(prompt), std::move(callbacks)); }
  void generate(std::int64_t tokens, Session::OpenCallbacks callbacks) override { session_.generate(tokens, std::move(callbacks)); }
  void cancel() override { session_.cancel(); }
  void intervene(std::vector<Intervention> interventions, Session::OpenCallbacks callbacks) override {
    session_.intervene(std::move(interventions), std::move(callbacks));
  }
  void undo(Session::OpenCallbacks callbacks) override { session_.undo(std::move(callbacks)); }
  void redo(Session::OpenCallbacks callbacks) override { session_.redo(std::move(callbacks)); }
  void go_to_branch(std::int64_t branch, Session::OpenCallbacks callbacks) override { session_.go_to_branch(branch, std::move(callbacks)); }
  void save(std::filesystem::path path, std::function<void()> saved, std::function<void(std::string)> failed) override {
    session_.save(std::move(path), std::move(saved), std::move(failed));
  }
  void open_session(std::filesystem::path path, Session::OpenCallbacks callbacks) override {
    session_.open_session(std::move(path), std::move(callbacks));
  }
  void show(std::int64_t layer, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) override {
    session_.show(layer, token, std::move(done));
  }
  void ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
           std::function<void(Question, Finding)> tell) override {
    session_.ask(asker, std::move(run), std::move(questions), std::move(tell));
  }

 private:
  Session session_;
};

}  // namespace

std::unique_ptr<RunSource> make_session_source(std::shared_ptr<Backend> device, DeviceChoice name) {
  return std::make_unique<SessionSource>(std::move(device), std::move(name));
}

}  // namespace statescope
