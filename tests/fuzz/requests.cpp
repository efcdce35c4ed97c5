// What a client sends, as gRPC hands it over: messages, each behind two bytes of its length. A session on an engine takes all of them, told
// of a run that is not there.
#include <QCoreApplication>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "app/remote/served.h"
#include "engine/remote/grpc/proto.h"

namespace {

using namespace statescope;

/// Hears everything, says nothing.
class Nobody final : public RunSource {
 public:
  void open(std::filesystem::path path, PromptInput, Session::OpenCallbacks) override {
    if (!path.is_absolute()) std::abort();
  }
  void read(PromptInput, Session::OpenCallbacks) override {}
  void generate(std::int64_t, Session::OpenCallbacks) override {}
  void cancel() override {}
  void intervene(std::vector<Intervention>, Session::OpenCallbacks) override {}
  void add_run(PromptInput, Session::OpenCallbacks) override {}
  void undo(Session::OpenCallbacks) override {}
  void redo(Session::OpenCallbacks) override {}
  void go_to_branch(std::int64_t, Session::OpenCallbacks) override {}
  void save(std::filesystem::path path, std::function<void()>, std::function<void(std::string)>) override {
    if (path.parent_path() != "/usr/share/doc") std::abort();
  }
  void open_session(std::filesystem::path, std::filesystem::path, Session::OpenCallbacks) override {}
  void show(std::int64_t, std::int64_t, std::int64_t, std::function<void(std::shared_ptr<const Snapshot>)>) override {}
  void ask(int, std::shared_ptr<const RunInfo>, std::vector<Question>, std::function<void(Question, Finding)>) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static int argc = 0;
  static const QCoreApplication application(argc, nullptr);  // what is found out beside is told on its thread
  static const ServedRoot root("/usr/share/doc");
  const auto served = std::make_shared<Served>("id", root, [] { return std::make_unique<Nobody>(); });
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  while (bytes.size() >= 2) {
    const std::size_t length = static_cast<std::uint8_t>(bytes[0]) + (std::size_t{static_cast<std::uint8_t>(bytes[1])} << 8);
    bytes.remove_prefix(2);
    remote::Request request;
    if (remote::proto::read(bytes.substr(0, length), request)) served->perform(std::move(request));
    bytes.remove_prefix(std::min(length, bytes.size()));
  }
  QCoreApplication::processEvents();
  return 0;
}
