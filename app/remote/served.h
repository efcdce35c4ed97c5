// One client's session on an engine: its runs, and what is still to be told of them.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "app/remote/about_checkpoints.h"
#include "app/remote/describing.h"
#include "app/remote/outgoing.h"
#include "app/remote/root.h"
#include "app/remote/run_table.h"
#include "app/runs/run_source.h"
#include "engine/remote/transport.h"

namespace statescope {

/// Lives on the thread of the running QCoreApplication, where it is made and destroyed; its streams talk on theirs. Outlives a stream.
class Served : public std::enable_shared_from_this<Served> {
 public:
  using MakeSource = std::function<std::unique_ptr<RunSource>()>;

  /// The source is made when the first thing is asked of it.
  Served(std::string id, ServedRoot root, MakeSource make_source, AboutCheckpoints about = {});
  ~Served();

  const std::string& id() const { return id_; }
  /// A new stream, which begins with a welcome; the one before it ends. Of any thread.
  std::shared_ptr<remote::EngineEnd> attach(std::uint64_t heard, bool resumed);
  /// Nobody has been there since then; none: somebody is there. Of any thread.
  std::optional<std::chrono::steady_clock::time_point> alone_since() const;
  /// It has found things out, or works, and reads no run that somebody might come back for.
  bool is_of_command() const { return describing_ && !source_; }
  /// The client has said that it does not come back, or has to be given up. Of any thread.
  bool is_over() const;
  /// Ends its stream. Of any thread.
  void end();

  /// What a client asks; what is wrong with it is told.
  void perform(remote::Request request);

 private:
  class Stream;
  struct Wanted {  // the newest snapshot that was not sent yet
    std::uint64_t id = 0;
    std::shared_ptr<const Snapshot> snapshot;
  };
  struct Beside {
    std::uint64_t run = 0;
    std::unique_ptr<RunSource> source;
  };

  void perform(std::uint64_t id, remote::Open& open);
  void perform(std::uint64_t id, remote::Ask& ask);
  void perform(std::uint64_t id, const remote::Show& show);
  void perform(std::uint64_t id, const remote::Describe& describe);
  void perform(std::uint64_t id, const remote::MakePrompt& make);
  void perform(std::uint64_t id, const remote::Work& work);
  /// Beside all else.
  void find_out(std::uint64_t id, std::function<Describing::Told(const std::function<bool()>& goes_on)> work);
  Session::OpenCallbacks callbacks(std::uint64_t id, bool looks = true);
  /// What the client calls `name` there. Throws Error.
  std::filesystem::path existing(const std::string& name);
  /// With the names by which the client asked, instead of where things lie here.
  std::string as_called(const std::string& text) const;
  remote::Failed failed(Failure failure) const;
  RunSource& source();
  /// Of a branch; null where there is none of that number.
  RunSource* beside(std::uint64_t run);

  template <class Told>
  void tell(std::uint64_t id, Told told);
  void tell_progress(std::uint64_t id, double fraction, const std::string& what);
  void tell_run(std::uint64_t id, const std::shared_ptr<const RunInfo>& run);
  void tell_branches(std::uint64_t id, const BranchTree& tree);
  void send_snapshot(std::size_t on_the_way);

  const std::string id_;
  const ServedRoot root_;
  const MakeSource make_source_;
  const AboutCheckpoints about_;
  std::unique_ptr<RunSource> source_;
  Beside beside_;
  std::shared_ptr<const RunInfo> shown_;                 // that facts were told of
  std::map<std::filesystem::path, std::string> called_;  // what the client has asked for, by where it lies
  std::atomic<bool> over_ = false;
  std::unique_ptr<Describing> describing_;  // null until somebody asks

  mutable std::mutex mutex_;  // of all that follows; before that of what goes out
  TellingRuns runs_;
  std::array<Wanted, 2> wanted_;  // of the run shown, and of the one beside it
  std::array<std::uint64_t, 2> newest_show_{};
  std::optional<std::chrono::steady_clock::time_point> alone_since_;
  Outgoing<remote::Event> out_;
};

}  // namespace statescope
