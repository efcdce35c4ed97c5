// app/run: whether the CUDA module is built on this machine, and what is said of a GPU. The script runs in a copy of its folder, among
// programs that only pretend: cmake writes down what it is asked for.
#include <QProcess>
#include <fstream>

#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::run_script_test {
namespace {

namespace fs = std::filesystem;

/// A machine with nothing but what the script needs, and what is put there.
class Machine {
 public:
  Machine() {
    fs::create_directories(folder_ / "app");
    fs::create_directories(folder_ / "bin");
    for (const char* file : {"run", "build.sh", "cuda.sh", "packages"}) fs::copy(from_source("app") + "/" + file, folder_ / "app");
    for (const char* tool :
         {"bash", "cat", "chmod", "cut", "dirname", "env", "find", "grep", "head", "mkdir", "realpath", "sed", "sort", "tr"}) {
      fs::create_symlink(fs::exists(fs::path("/bin") / tool) ? fs::path("/bin") / tool : fs::path("/usr/bin") / tool,
                         folder_ / "bin" / tool);
    }
    put("apt-get", "exit 1");
    put("dpkg-query", "echo installed");
    put("cmake", R"(echo "$*" >> asked
[ "$1" = --build ] || exit 0
case "$* $CUDA_FAILS" in *statescope-cuda*yes) exit 1 ;; esac
mkdir -p "build/$3" && printf '#!/bin/bash\necho "started of $PWD: $*"' > "build/$3/statescope" && chmod +x "build/$3/statescope")");
  }

  void put(const std::string& program, const std::string& script) const {
    const fs::path path = folder_ / "bin" / program;
    std::ofstream(path) << "#!/bin/bash\n" << script << '\n';
    fs::permissions(path, fs::perms::owner_all);
  }
  void put_driver(const std::string& capabilities, const std::string& cuda = "13.0") const {
    put("nvidia-smi",
        "case \"$1\" in --query-gpu=compute_cap) printf '" + capabilities + "' ;; *) echo '| CUDA Version: " + cuda + " |' ;; esac");
  }
  void put_compiler(const std::string& version) const {
    put("nvcc", "case \"$1\" in --version) echo 'Cuda compilation tools, release " + version +
                    ", V1' ;; --list-gpu-arch) printf 'compute_80\\ncompute_86\\ncompute_90\\n' ;; esac");
  }

  struct Outcome {
    int status = -1;
    std::string out, errors, asked;  // asked: of cmake

    bool built(const std::string& preset) const { return asked.find("--build --preset " + preset) != asked.npos; }
  };
  Outcome run(const QString& variable = {}) const {
    QProcess process;
    process.setWorkingDirectory(QString::fromStdString(folder_.path().string()));
    process.setProcessEnvironment([&] {
      QProcessEnvironment environment;
      environment.insert("PATH", QString::fromStdString((folder_ / "bin").string()));
      environment.insert("CUDA_HOME", "/nowhere");
      if (!variable.isEmpty()) environment.insert(variable, "yes");
      return environment;
    }());
    process.start(QString::fromStdString((folder_ / "bin/bash").string()), {"app/run", "--open", "a b"});
    process.waitForFinished(20'000);
    std::ifstream asked(folder_ / "asked");
    return {process.exitCode(), process.readAllStandardOutput().toStdString(), process.readAllStandardError().toStdString(),
            std::string(std::istreambuf_iterator<char>(asked), {})};
  }
  std::string path(const std::string& name) const { return fs::canonical(folder_ / name).string(); }

 private:
  test::TemporaryFolder folder_;
};

void runs_on_cpu(const Machine::Outcome& outcome, const std::string& said) {
  INFO(outcome.errors << outcome.asked);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.ends_with(": --open a b\n"));
  CHECK((outcome.built("release") && !outcome.built("cuda")));
  CHECK(outcome.errors == said);
}

}  // namespace

TEST_CASE("app/run: where no driver answers nothing is said of a GPU, whether or not there is a compiler") {
  const Machine machine;
  runs_on_cpu(machine.run(), "");
  machine.put_compiler("13.0");
  runs_on_cpu(machine.run(), "");
  machine.put("nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9");
  runs_on_cpu(machine.run(), "");
}

TEST_CASE("app/run: with a driver and a compiler the CUDA module is built for this machine's GPUs, and a line says so") {
  const Machine machine;
  machine.put_driver("9.0\\n8.6\\n9.0\\n");
  machine.put_compiler("12.4");
  const Machine::Outcome outcome = machine.run();
  INFO(outcome.errors);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.ends_with(": --open a b\n"));
  const std::string compiler = machine.path("bin/nvcc");
  CHECK(outcome.errors == "app/run: builds for this machine's GPU too (86-real 90-real, " + compiler + "); --device cuda uses it\n");
  CHECK(outcome.asked == "--preset cuda -DCMAKE_CUDA_COMPILER=" + compiler +
                             " -DSTATESCOPE_CUDA_ARCHITECTURES=86-real;90-real\n"
                             "--build --preset cuda --target statescope statescope-cuda\n");
}

TEST_CASE("app/run: the driver's library is asked where nvidia-smi is missing") {
  const Machine machine;
  machine.put_compiler("12.4");
  machine.put("__nvcc_device_query", "echo 80,90");
  CHECK(machine.run().asked.find("ARCHITECTURES=80-real;90-real\n") != std::string::npos);
}

TEST_CASE("app/run: a GPU that cannot be used is told of in a line, and the program runs on the CPU") {
  const Machine machine;
  const std::string why = "app/run: the GPU is not used: ";
  machine.put_driver("9.0\\n");
  const std::string none = "no CUDA compiler is here (nvcc of CUDA 12 or later: README.md, \"On a GPU\", says how to install one)\n";
  runs_on_cpu(machine.run(), why + none);
  machine.put_compiler("11.8");
  runs_on_cpu(machine.run(), why + none);
  machine.put_compiler("14.0");
  const std::string compiler = machine.path("bin/nvcc");
  runs_on_cpu(machine.run(), why + "the driver knows CUDA 13, the compiler " + compiler + " is of CUDA 14.0\n");
  machine.put_compiler("13.0");
  machine.put_driver("7.5\\n");
  runs_on_cpu(machine.run(), why + "the GPU has compute capability 7.5, less than 8.0\n");
  machine.put_driver("12.0\\n");
  runs_on_cpu(machine.run(), why + compiler + " (CUDA 13.0) is too old for compute capability 12.0\n");
}

TEST_CASE("app/run: where the CUDA module cannot be built the program is, and says that it runs on the CPU") {
  const Machine machine;
  machine.put_driver("9.0\\n");
  machine.put_compiler("13.0");
  const Machine::Outcome outcome = machine.run("CUDA_FAILS");
  CHECK(outcome.status == 0);
  CHECK((outcome.built("cuda") && outcome.built("release")));
  CHECK(outcome.errors.ends_with("\napp/run: the GPU is not used: the CUDA module could not be built, as said above\n"));
  CHECK(outcome.out.ends_with(": --open a b\n"));
}

TEST_CASE("app/run: pip's CUDA toolkit is found, and its libraries by the names that they have there") {
  const Machine machine;
  machine.put_driver("9.0\\n");
  machine.put_compiler("13.0");
  const fs::path toolkit = fs::path(machine.path("bin")).parent_path() / "build/cuda-toolkit/nvidia/cu13";
  fs::create_directories(toolkit / "bin");
  fs::create_directories(toolkit / "lib");
  fs::rename(machine.path("bin/nvcc"), toolkit / "bin/nvcc");
  for (const char* library : {"libcublasLt.so.13", "libcudart.so.13"}) std::ofstream(toolkit / "lib" / library);
  const std::string asked = machine.run().asked;
  INFO(asked);
  CHECK(asked.find("-DCMAKE_CUDA_COMPILER=" + (toolkit / "bin/nvcc").string()) != asked.npos);
  CHECK(asked.find("lib/libcublasLt.so.13") != asked.npos);
  CHECK(asked.find("-DCUDA_CUDART=") != asked.npos);
  CHECK(asked.find("lib/libcudart.so.13") != asked.npos);
}

}  // namespace statescope::run_script_test
