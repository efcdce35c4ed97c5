// Options of the commands that read a run, ask about it or change it.
#include <string>

#include "app/cli/setup/setup.h"
#include "engine/run/intervention.h"

namespace statescope {
namespace {

/// What a run is that is asked about.
void add_asked(CLI::App& command, AskArguments& ask) {
  command.add_option("checkpoint", ask.checkpoint, "an .h5 file or a Hugging Face folder");
  add_prompt(command, ask.prompt, false);
  command.add_option("--generate", ask.generate, "tokens to generate after the prompt (default: 0)")->check(CLI::Range(0, 1'000'000));
  command.add_option("--do", ask.interventions, "an intervention to make first, once for each (statescope intervene --help)")
      ->allow_extra_args(false)
      ->check(is_intervention());
  command.add_option("--token", ask.token, "below 0: counted from the prompt's end (default: -1, its last)")->check(whole_number());
  add_compute(command, ask.device);
  add_json(command, ask.json, "all of it");
  command.add_flag("--force", ask.force, "replace an existing file");
}

void need_run(const AskArguments& ask) {
  if (ask.checkpoint.empty()) throw CLI::RequiredError("checkpoint");
  if (!ask.prompt.given()) throw CLI::RequiredError("one of --text, --ids, --prompt, --chat");
}

}  // namespace

void add_run(CLI::App& app, RunArguments& run) {
  CLI::App& command = *app.add_subcommand("run", "read a prompt with a checkpoint and generate");
  command.add_option("checkpoint", run.checkpoint, "an .h5 file or a Hugging Face folder; none: that of the session");
  add_prompt(command, run.prompt, false);
  command.add_option("--generate", run.generate, "tokens to generate (default: as many as the prompt expects, else 32)")
      ->check(CLI::Range(0, 1'000'000));
  command.add_option("--temperature", run.sampling.temperature, "0: greedy")->check(CLI::Range(0.0, 1000.0));
  command.add_option("--top-p", run.sampling.top_p, "sample from the most probable tokens that hold this mass")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--seed", run.sampling.seed, "seed of the sampling");
  add_compute(command, run.device);
  command.add_option("--chunk", run.chunk_size, "tokens per chunk of the memories")->check(CLI::Range(1, 1'000'000));
  auto* dump = command.add_option("--dump", run.dump, "write everything that was computed to this HDF5 file");
  auto* session =
      command.add_option("--session", run.session, "record in this new .scope file; without a checkpoint, continue what it holds");
  session->excludes(dump);
  command.add_option("--branch", run.branch, "branch of the session: 0, or the n-th that --do made (default: the last one shown)")
      ->needs(session)
      ->check(at_least(0));
  command
      .add_option("--do", run.interventions,
                  "make a branch of the session with an intervention, once for each (statescope intervene --help)")
      ->needs(session)
      ->allow_extra_args(false)
      ->check(is_intervention());
  command.add_option("--other", run.others, "a prompt file, read as a further run of the session: its states can be imported")
      ->needs(session)
      ->allow_extra_args(false);
  command.add_option("--against", run.against, "compare the branch with this one: logits, states, answer")
      ->needs(session)
      ->check(at_least(0));
  add_memory(command, run.memory);
  command.get_option("--memory")->needs(session);
  command.add_option("--states", run.states, "tokens after which the dump keeps all states: 0,16,63")->delimiter(',')->check(at_least(0));
  add_json(command, run.json, "all of it");
  command.add_flag("--force", run.force, "replace existing files");
  command.callback([&run, &command] {
    if (run.checkpoint.empty() && run.session.empty()) throw CLI::RequiredError("checkpoint");
    if (!run.checkpoint.empty() && !run.prompt.given()) throw CLI::RequiredError("one of --text, --ids, --prompt, --chat");
    if (!run.checkpoint.empty()) return;
    for (const char* option : {"--text", "--ids", "--prompt", "--chat", "--chat-file", "--chat-set", "--temperature", "--top-p", "--seed",
                               "--device", "--precision", "--chunk"}) {
      if (command.count(option) > 0) throw CLI::ValidationError(option, "is the session's own where no checkpoint is given");
    }
  });
}

void add_observe(CLI::App& app, ObserveArguments& observe) {
  CLI::App& command = *app.add_subcommand("observe", "every quantity of a layer at a token, with how exact it is");
  add_asked(command, observe);
  command.add_option("--layer", observe.layer, "default: all")->check(at_least(0));
  command.add_option("--until", observe.until, "the last of several tokens, at most 512; counted as --token")->check(whole_number());
  command.add_option("--since", observe.since, "the token s of decay_since, kernel_since and remembered_since, as --token (default: 0)")
      ->check(whole_number());
  command.add_option("--only", observe.names, "names from --list: routing_entropy,load")->delimiter(',')->allow_extra_args(false);
  command.add_flag("--list", observe.list, "only list the quantities, with unit, equation and source");
  command.callback([&observe] {
    if (!observe.list) need_run(observe);
  });
}

void add_history(CLI::App& app, HistoryArguments& history) {
  CLI::App& command = *app.add_subcommand("history", "who wrote a partition, a row or a cell of a state: tokens that add up to it");
  add_asked(command, history);
  command.add_option("--layer", history.layer, "default: 0")->check(at_least(0));
  command.add_option("--slot", history.slot, "partition (0: the shared one), level, or part of a complex state (default: 0)")
      ->check(at_least(0));
  command.add_option("--head", history.head, "default: 0")->check(at_least(0));
  auto* row = command.add_option("--row", history.row, "default: all of them, the whole partition")->check(at_least(0));
  command.add_option("--column", history.column, "column of the row: one cell")->check(at_least(0))->needs(row);
  command.add_flag("--read", history.read, "of what the token reads of the partition, instead of the state")->excludes(row);
  command.add_option("--most", history.most, "tokens to show (default: 12)")->check(CLI::Range(1, 1'000'000));
  command.callback([&history] { need_run(history); });
}

void add_intervene(CLI::App& app, InterveneArguments& intervene) {
  CLI::App& command = *app.add_subcommand("intervene", "change a memory, a rule or a token at a token, and see what becomes of the rest");
  command.add_option("checkpoint", intervene.checkpoint, "an .h5 file or a Hugging Face folder")->required();
  add_prompt(command, intervene.prompt, true);
  command.add_option("--do", intervene.interventions, "an intervention, once for each (see below)")
      ->required()
      ->allow_extra_args(false)
      ->check(is_intervention());
  command.add_option("--other", intervene.others, "a prompt file, read as run 1, 2, …: its states can be imported")
      ->allow_extra_args(false);
  command.add_option("--generate", intervene.generate, "tokens to generate (default: as many as the prompt expects, else 32)")
      ->check(CLI::Range(0, 1'000'000));
  add_compute(command, intervene.device);
  add_memory(command, intervene.memory);
  add_json(command, intervene.json, "all of it");
  command.add_flag("--force", intervene.force, "replace an existing file");
  command.footer("Interventions: states change once token T has been read, rules hold from T on; without a layer, for all that can.\n\n" +
                 std::string(intervention_forms()));
}

}  // namespace statescope
