// What the parser knows of each command: its options, what they mean, which go together. What commands do: commands.h.
#pragma once

#include "app/cli/options.h"

namespace statescope {

// Runs (runs.cpp): read, asked about, changed.
void add_run(CLI::App& app, RunArguments& run);
void add_observe(CLI::App& app, ObserveArguments& observe);
void add_history(CLI::App& app, HistoryArguments& history);
void add_intervene(CLI::App& app, InterveneArguments& intervene);

// Judgements (judgements.cpp): how right, how healthy, how exact, how fast.
void add_eval(CLI::App& app, EvalArguments& eval);
void add_inspect(CLI::App& app, InspectArguments& inspect);
void add_needle(CLI::App& app, NeedleArguments& needle);
void add_check(CLI::App& app, CheckArguments& check);
void add_bench(CLI::App& app, BenchArguments& bench, BenchSseArguments& sse);

// Files and texts (texts.cpp).
void add_model(CLI::App& app, ModelArguments& model);
void add_convert(CLI::App& app, ConvertArguments& convert);
void add_tokenize(CLI::App& app, TokenizeArguments& tokenize);
void add_chat(CLI::App& app, ChatArguments& chat);
void add_dataset(CLI::App& app, DatasetArguments& dataset);
void add_manual(CLI::App& app, std::string& shell);

// Pictures (pictures.cpp): the window, without a command; figures, films and pages.
void add_window(CLI::App& app, WindowArguments& window);
void add_figure(CLI::App& app, FigureArguments& figure);
void add_film(CLI::App& app, FilmArguments& film);
/// `engine`: which one the command line names.
void add_page(CLI::App& app, PageArguments& page, const EngineArguments& engine);
void add_batch(CLI::App& app, BatchArguments& batch);

// Other machines (engines.cpp).
void add_serve(CLI::App& app, ServeArguments& serve);
/// Which engine the window talks to.
void add_engine(CLI::App& app, EngineArguments& engine);
/// Says in the help of a command that it takes one, too.
void name_engine(CLI::App& command, EngineArguments& engine);

}  // namespace statescope
