#include "engine/session/session.h"

#include "engine/session/session_worker.h"

namespace statescope {

Session::Session(std::function<void(std::function<void()>)> post, OpenDevice open_device, DeviceChoice name, std::size_t memory)
    : worker_(std::make_unique<Worker>(std::move(post), std::move(open_device), std::move(name), memory)) {}
Session::~Session() = default;

void Session::open(std::filesystem::path checkpoint, PromptInput prompt, OpenCallbacks callbacks) {
  worker_->request(Worker::Opening{std::move(checkpoint), std::move(prompt)}, std::move(callbacks));
}
void Session::read(PromptInput prompt, OpenCallbacks callbacks) {
  worker_->request(Worker::Opening{{}, std::move(prompt)}, std::move(callbacks));
}
void Session::generate(std::int64_t tokens, OpenCallbacks callbacks) { worker_->request(Worker::Generating{tokens}, std::move(callbacks)); }
std::shared_ptr<const Model> Session::model() const { return worker_->model(); }
std::shared_ptr<const Tokenizer> Session::tokenizer() const { return worker_->tokenizer(); }
void Session::cancel() { worker_->cancel(); }
void Session::intervene(std::vector<Intervention> interventions, OpenCallbacks callbacks) {
  worker_->request(Worker::Intervening{std::move(interventions)}, std::move(callbacks));
}
void Session::add_run(PromptInput prompt, OpenCallbacks callbacks) {
  worker_->request(Worker::Adding{std::move(prompt)}, std::move(callbacks));
}
void Session::undo(OpenCallbacks callbacks) { worker_->request(Worker::Step::undo, std::move(callbacks)); }
void Session::redo(OpenCallbacks callbacks) { worker_->request(Worker::Step::redo, std::move(callbacks)); }
void Session::go_to_branch(std::int64_t branch, OpenCallbacks callbacks) {
  worker_->request(Worker::GoingTo{branch}, std::move(callbacks));
}
void Session::save(std::filesystem::path path, std::function<void()> saved, std::function<void(std::string)> failed) {
  worker_->save({std::move(path), std::move(saved), std::move(failed)});
}
void Session::stand(RunPlace place) { worker_->stand(std::move(place)); }
void Session::open_session(std::filesystem::path path, OpenCallbacks callbacks, std::vector<std::filesystem::path> places) {
  worker_->request(Worker::Reopening{std::move(path), std::move(places)}, std::move(callbacks));
}
void Session::show(std::int64_t layer, std::int64_t head, std::int64_t token, std::function<void(std::shared_ptr<const Snapshot>)> done) {
  worker_->show({nullptr, layer, head, token, std::move(done)});
}
void Session::show_beside(std::shared_ptr<const RunInfo> run, std::int64_t layer, std::int64_t head, std::int64_t token,
                          std::function<void(std::shared_ptr<const Snapshot>)> done) {
  worker_->show({std::move(run), layer, head, token, std::move(done)});
}
void Session::ask(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
                  std::function<void(Question, Finding)> tell) {
  worker_->ask(asker, std::move(run), std::move(questions), std::move(tell), false);
}
void Session::ask_beside(int asker, std::shared_ptr<const RunInfo> run, std::vector<Question> questions,
                         std::function<void(Question, Finding)> tell) {
  worker_->ask(asker, std::move(run), std::move(questions), std::move(tell), true);
}

}  // namespace statescope
