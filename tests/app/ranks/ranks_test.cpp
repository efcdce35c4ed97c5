// One command on several processes: the same bytes as of one, whoever did what, and whoever was killed meanwhile.
#include <fmt/format.h>
#include <signal.h>

#include <QProcess>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "app/ranks/place.h"
#include "kernels/cpu/beside.h"
#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::ranks_test {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

/// Variables as a launcher sets them, while it lives.
using Variables = std::map<std::string, std::string>;
class Launched {
 public:
  explicit Launched(Variables variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Launched() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
  }
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

 private:
  Variables variables_;
};

/// Whether nothing can be started here, and what there is not.
bool is_missing() {
#ifdef STATESCOPE_SANITIZE
  const std::string what = "Open MPI under sanitizers";
#else
  const std::string what = !fs::exists(beside_program("libstatescope-mpi.so"))    ? "libstatescope-mpi.so"
                           : std::system("mpirun --version >/dev/null 2>&1") != 0 ? "mpirun"
                                                                                  : "";
#endif
  if (!what.empty()) WARN("skipped: there is no " << what);
  return !what.empty();
}

struct Ended {
  int status = -1;
  std::string out, err;
};

/// The program on `ranks` processes; 1: by itself.
class Job {
 public:
  Job(int ranks, const std::string& words, const std::vector<std::string>& options = {}) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("STATESCOPE_NO_SETTINGS", "1");
    environment.insert("OMPI_ALLOW_RUN_AS_ROOT", "1");
    environment.insert("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    environment.insert("OMPI_MCA_plm", "isolated");  // this machine alone, where there may be no ssh
    environment.insert("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
    process_.setProcessEnvironment(environment);
    QStringList all;
    for (const std::string& option : options) all << QString::fromStdString(option);
    if (ranks > 1)
      all << "--oversubscribe"
          << "-n" << QString::number(ranks) << QString::fromStdString(program());
    all << QString::fromStdString(words).split(' ');
    process_.setWorkingDirectory(QString::fromStdString(from_source("")));
    process_.start(ranks > 1 ? "mpirun" : QString::fromStdString(program()), all);
    REQUIRE(process_.waitForStarted());
  }
  Ended end() {
    if (!process_.waitForFinished(60'000)) {
      process_.kill();
      FAIL("no end after a minute");
    }
    return {process_.exitCode(), process_.readAllStandardOutput().toStdString(), process_.readAllStandardError().toStdString()};
  }
  /// The computing process of a rank, once it computes.
  pid_t worker(std::size_t rank) {
    constexpr long busy = 5;  // hundredths of a second
    for (int i = 0; i < 3000; ++i) {
      const std::vector<pid_t> ranks = children(static_cast<pid_t>(process_.processId()));
      if (ranks.size() > rank) {
        const std::vector<pid_t> workers = children(ranks[rank]);
        if (workers.size() == 1 && ticks(workers.front()) >= busy) return workers.front();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    FAIL("no rank computes");
    return 0;
  }

 private:
  static std::string program() { return beside_program("statescope").string(); }

  static std::vector<pid_t> children(pid_t process) {
    std::vector<pid_t> all;
    std::error_code gone;
    for (const auto& task : fs::directory_iterator(fmt::format("/proc/{}/task", process), gone)) {
      std::ifstream list(task.path() / "children");
      for (pid_t child = 0; list >> child;) all.push_back(child);
    }
    std::ranges::sort(all);
    return all;
  }
  static long ticks(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/stat", process));
    std::string text((std::istreambuf_iterator<char>(file)), {});
    std::istringstream words(text.substr(std::min(text.size(), text.rfind(')') + 1)));
    std::string word;
    for (int i = 0; i < 12; ++i) words >> word;  // the twelfth behind the name: time in user mode
    return std::atol(word.c_str());
  }

  QProcess process_;
};

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string kEval =
    "eval assets/checkpoints/niah/niah-gla.h5 assets/checkpoints/niah/niah-mom.h5 --task niah --length 128,256,4 --needles 1,4 --threads "
    "1 ";

}  // namespace

TEST_CASE("ranks: a process knows its place from whoever started it") {
  CHECK(!rank_place());
  {
    const Launched launched(Variables{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
    const std::optional<RankPlace> place = rank_place();
    REQUIRE(place);
    CHECK(place->rank == 3);
    CHECK(place->size == 4);
    CHECK(place->local == 1);
    CHECK(!place->is_first());
    forget_rank_place();
    CHECK(!rank_place());
  }
  {
    const Launched step(Variables{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "0"}});
    CHECK(rank_place()->size == 8);
  }
  const Launched alone(Variables{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}});
  const Launched script(Variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}});  // a job's script is one process
  const Launched damaged(Variables{{"PMI_RANK", "9"}, {"PMI_SIZE", "4"}});
  CHECK(!rank_place());
}

TEST_CASE("ranks: each takes the GPU of its place on the node, and its part of the cores") {
  const RankPlace third{.rank = 6, .size = 8, .local = 2, .local_size = 4};
  CHECK(device_of_rank({.name = "auto"}, third, 4).name == "cuda:2");
  CHECK(device_of_rank({.name = "cuda"}, third, 2).name == "cuda:0");
  CHECK(device_of_rank({.name = "auto"}, third, 0).name == "cpu");
  CHECK(device_of_rank({.name = "cuda"}, third, 0).name == "cuda");  // which fails and says so
  CHECK(device_of_rank({.name = "cuda:1"}, third, 4).name == "cuda:1");
  CHECK(device_of_rank({.name = "cpu"}, third, 4).name == "cpu");
  CHECK(device_of_rank({.name = "cpu", .threads = 3}, third, 4).threads == 3);
  CHECK(device_of_rank({.name = "cpu"}, third, 4).threads >= 1);
  CHECK(device_of_rank({.name = "cpu"}, {.rank = 0, .size = 2}, 4).threads == 0);
  const Launched two(Variables{{"CUDA_VISIBLE_DEVICES", "4,7"}});
  CHECK(visible_gpus() == 2);
  const Launched none(Variables{{"CUDA_VISIBLE_DEVICES", "-1"}});
  CHECK(visible_gpus() == 0);
}

TEST_CASE("ranks: scores and inspections of several processes are those of one, to the byte") {
  if (is_missing()) return;
  const TemporaryFolder folder;
  const auto reports = [&](int ranks, const std::string& words) {
    const fs::path own = folder / fmt::to_string(ranks);
    fs::create_directories(own);
    std::string all = fmt::format("{} --json {} --csv {} --force", words, (own / "a.json").string(), (own / "a.csv").string());
    if (words.starts_with("eval")) all += " --hdf5 " + (own / "a.h5").string();
    const Ended ended = Job(ranks, all).end();
    INFO(ranks << " processes: " << ended.err);
    CHECK(ended.status == 0);
    return std::vector{ended.out, read(own / "a.json"), read(own / "a.csv"), read(own / "a.h5")};
  };
  for (const std::string& words :
       {kEval + "--samples 10", std::string("inspect assets/checkpoints/niah/niah-gla.h5 assets/checkpoints/niah/niah-mom.h5 "
                                            "assets/checkpoints/niah/niah-retnet.h5 --samples 1 "
                                            "--length 128 --threads 1")}) {
    const std::vector<std::string> one = reports(1, words);
    CHECK(one[1].size() > 100);
    for (const int ranks : {2, 4}) CHECK(reports(ranks, words) == one);
  }
}

TEST_CASE("ranks: what a killed process was at, another takes") {
  if (is_missing()) return;
  const std::string words = kEval + "--samples 60 --json";
  const std::string one = Job(1, words).end().out;
  for (const std::size_t rank : {0, 1}) {
    Job job(3, words);
    ::kill(job.worker(rank), SIGKILL);
    const Ended ended = job.end();
    INFO(ended.err);
    CHECK(ended.status == 0);
    CHECK(ended.out == one);
    CHECK(ended.err.find("of the job is lost: ended by signal 9 (Killed); another takes what it was at") != std::string::npos);
  }
}

TEST_CASE("ranks: figures of a batch") {
  if (is_missing()) return;
  const TemporaryFolder folder;
  std::ofstream(folder / "batch.json") << R"({"figures": [")" << from_source("assets/figures/row-cosine.json") << R"("], "checkpoints": [")"
                                       << from_source("assets/checkpoints/niah/niah-sse-gla-n4k1.h5") << R"(", ")"
                                       << from_source("assets/checkpoints/niah/niah-sse-gla-n4k2.h5") << R"("], "format": "svg"})";
  const std::string words = "batch " + (folder / "batch.json").string();
  CHECK(Job(1, words).end().out.starts_with("2 made, 0 there already, 0 failed, in "));
  fs::rename(folder / "figures", folder / "of one");
  const Ended ended = Job(2, words).end();
  INFO(ended.err);
  CHECK(ended.out.starts_with("2 made, 0 there already, 0 failed, in "));
  for (const auto& entry : fs::directory_iterator(folder / "of one"))
    CHECK(read(entry.path()) == read(folder / "figures" / entry.path().filename()));
  CHECK(Job(2, words).end().out.starts_with("0 made, 2 there already, 0 failed, in "));
}

TEST_CASE("ranks: what is wrong is said once") {
  if (is_missing()) return;
  const auto said = [](const std::string& words) {
    const Ended ended = Job(3, words, {"-q"}).end();
    CHECK(ended.status != 0);
    CHECK(ended.out.empty());
    std::string own;  // without the launcher's remarks
    std::istringstream lines(ended.err);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("statescope: ")) own += line + "\n";
    }
    return own;
  };
  const std::string none = said("eval assets/checkpoints/none.h5 --task niah");
  CHECK(none.starts_with("statescope: assets/checkpoints/none.h5: "));
  CHECK(std::ranges::count(none, '\n') == 1);
  CHECK(said("eval assets/checkpoints/niah/niah-gla.h5 --prompt -") ==
        "statescope: several processes cannot all read standard input; give a file\n");
  CHECK(said("inspect assets/checkpoints/niah/niah-gla.h5 --watch") ==
        "statescope: --watch is for one process: start it without mpirun or srun\n");
  CHECK(said("eval assets/checkpoints/mqar/mqar-gla.h5 --task niah --samples 4")
            .starts_with("statescope: assets/checkpoints/mqar/mqar-gla.h5: cannot do task niah"));
}

}  // namespace statescope::ranks_test
