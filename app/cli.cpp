#include "app/cli.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "app/cli_commands.h"
#include "engine/error.h"

namespace statescope {
namespace {

void add_prompt(CLI::App& command, PromptArguments& prompt, bool required) {
  auto* group = command.add_option_group("prompt", "what the model reads");
  group->add_option("--text", prompt.text, "a text");
  group->add_option("--ids", prompt.ids, "a file of whitespace-separated token ids");
  group->add_option("--prompt", prompt.file, "a prompt file: text, or JSON with \"prompt\", \"expected\", \"spans\"");
  group->require_option(required ? 1 : 0, 1);
}

void add_run(CLI::App& app, RunArguments& run) {
  CLI::App& command = *app.add_subcommand("run", "read a prompt with a checkpoint and generate");
  command.add_option("checkpoint", run.checkpoint, "an .h5 file or a Hugging Face folder")->required();
  add_prompt(command, run.prompt, true);
  command.add_option("--generate", run.generate, "tokens to generate (default: as many as the prompt expects, else 32)")
      ->check(CLI::Range(0, 1'000'000));
  command.add_option("--temperature", run.sampling.temperature, "0: greedy")->check(CLI::Range(0.0, 1000.0));
  command.add_option("--top-p", run.sampling.top_p, "sample from the most probable tokens that hold this mass")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--seed", run.sampling.seed, "of the sampling");
  command.add_option("--device", run.device, "cpu")->check(CLI::IsMember({"cpu"}));
  command.add_option("--threads", run.threads, "0: one per core")->check(CLI::Range(0, 1024));
  command.add_option("--chunk", run.chunk_size, "tokens per chunk of the memories")->check(CLI::Range(1, 1'000'000));
  command.add_option("--dump", run.dump, "write everything that was computed to this HDF5 file");
  command.add_option("--states", run.states, "tokens after which the dump keeps all states: 0,16,63")
      ->delimiter(',')
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--json", run.json, "print one JSON object");
  command.add_flag("--force", run.force, "replace an existing dump");
}

void add_convert(CLI::App& app, ConvertArguments& convert) {
  CLI::App& command = *app.add_subcommand("convert", "Hugging Face folder to .h5, or .h5 to a folder");
  command.add_option("from", convert.from, "an .h5 file or a Hugging Face folder")->required();
  command.add_option("to", convert.to, "OUT.h5, or a folder")->required();
  command.add_option("--dtype", convert.dtype, "round matrices to this type")->check(CLI::IsMember({"f32", "f16", "bf16"}));
  command.add_flag("--force", convert.force, "replace what exists");
}

void add_bench(CLI::App& app, BenchArguments& bench) {
  CLI::App& command = *app.add_subcommand("bench", "measure loading, reading and decoding");
  command.add_option("checkpoints", bench.checkpoints, "checkpoints to measure (default: random models of 0.3 and 1 GB)");
  command.add_option("--threads", bench.threads, "0: one per core")->check(CLI::Range(0, 1024));
  command.add_option("--device", bench.device, "cpu")->check(CLI::IsMember({"cpu"}));
}

void add_window(CLI::App& app, WindowArguments& window) {
  app.add_option("--open", window.checkpoint, "checkpoint to open (default: the one shipped)");
  add_prompt(app, window.prompt, false);
  app.add_option("--theme", window.theme, "light, dark, system")->check(CLI::IsMember({"light", "dark", "system"}));
  app.add_option("--scale", window.scale, "of type and spacing, 1 to 3")->check(CLI::Range(1.0F, 3.0F));
  app.add_flag("--no-opengl", window.software, "draw without OpenGL");
  app.add_flag("--no-autoplay", window.no_autoplay, "do not start playing");
  app.add_option("--screenshot", window.screenshot, "write a PNG of the window at --token, --layer, --head, --slot and end");
  app.add_option("--token", window.token, "for the screenshot");
  app.add_option("--layer", window.layer, "for the screenshot");
  app.add_option("--head", window.head, "for the screenshot");
  app.add_option("--slot", window.slot, "for the screenshot");
  app.add_option("--size", window.size, "of the screenshot, WIDTHxHEIGHT");
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app("Statescope: a microscope for the memory of linear-attention language models.\nWithout a command, the window.",
               "statescope");
  app.set_version_flag("--version", "statescope " STATESCOPE_VERSION);
  app.require_subcommand(0, 1);
  RunArguments run;
  ConvertArguments convert;
  BenchArguments bench;
  WindowArguments window;
  add_run(app, run);
  add_convert(app, convert);
  add_bench(app, bench);
  add_window(app, window);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2;
  }
  try {
    if (app.got_subcommand("run")) return run_command(run);
    if (app.got_subcommand("convert")) return convert_command(convert);
    if (app.got_subcommand("bench")) return bench_command(bench);
    return window_command(argc, argv, window);
  } catch (const std::bad_alloc&) {
    std::cerr << "statescope: out of memory\n";
  } catch (const std::exception& error) {
    std::cerr << "statescope: " << error.what() << '\n';
  }
  return 1;
}

}  // namespace statescope
