#include "app/run_source.h"

#include <QCoreApplication>
#include <utility>

namespace statescope {
namespace {

class SessionSource final : public RunSource {
 public:
  explicit SessionSource(std::shared_ptr<Backend> device)
      : session_([](std::function<void()> work) { QMetaObject::invokeMethod(qApp, std::move(work), Qt::QueuedConnection); },
                 std::move(device)) {}

  void open(std::filesystem::path checkpoint, PromptInput prompt, Session::OpenCallbacks callbacks) override {
    session_.open(std::move(checkpoint), std::move(prompt), std::move(callbacks));
  }
  void read(PromptInput prompt, Session::OpenCallbacks callbacks) override { session_.read(std::move(prompt), std::move(callbacks)); }
  void cancel() override { session_.cancel(); }
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

std::unique_ptr<RunSource> make_session_source(std::shared_ptr<Backend> device) {
  return std::make_unique<SessionSource>(std::move(device));
}

}  // namespace statescope
