#include "app/window/headless.h"

#include <fmt/format.h>

#include <QGuiApplication>
#include <QImage>
#include <QPainter>
#include <filesystem>

#include "app/assets.h"
#include "app/canvas/paper_canvas.h"
#include "app/common/console.h"
#include "app/common/prompts.h"
#include "app/common/runtime_folder.h"
#include "app/figure/run_here.h"
#include "app/figure/view_picture.h"
#include "app/window/window_main.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"
#include "engine/run/not_finite.h"
#include "engine/run/reading.h"
#include "views/parts.h"
#include "views/view.h"

namespace statescope {
namespace {

constexpr float kTitle = 48;  // height of question and name above a view

/// One view with its title, as a PNG at twice the logical size. Where it has nothing to show there is no file, and it returns why.
std::string write_picture(const ViewRow& row, const Snapshot& snapshot, const Cursor& cursor, ReadRun& run,
                          const std::filesystem::path& path) {
  constexpr int pixels = 2;
  const Size size{1200, row.id == "token_strip" ? 320.0F : 720.0F};
  const Frame frame{light_theme(), 1};
  QImage image(static_cast<int>(size.w) * pixels, static_cast<int>(size.h) * pixels, QImage::Format_RGB32);
  const std::unique_ptr<View> view = row.make();
  view->build(snapshot, cursor, run.find_all(view->questions(snapshot, cursor)));
  if (view->arrays().empty()) {
    std::filesystem::remove(path);  // of another run
    return view->sentence();
  }
  {
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.scale(pixels, pixels);
    PaperCanvas canvas(painter, size);
    canvas.fill_rect({0, 0, size.w, size.h}, frame.theme.ground, 0);
    canvas.text({16, 18}, row.question, {.font = Font::label, .size = 16, .color = frame.theme.ink, .bold = true});
    canvas.text({16, 38}, row.title, {.font = Font::label, .size = 12, .color = frame.theme.faint});
    view->draw(canvas, {16, kTitle, size.w - 32, size.h - kTitle - 16}, frame);
  }
  if (!image.save(QString::fromStdString(path.string()))) throw Error(fmt::format("{}: cannot be written", path.string()));
  return "";
}

}  // namespace

int run_headless(int argc, char** argv, const WindowArguments& arguments) {
  const PromptInput prompt = first_prompt(arguments.prompt, arguments.checkpoint);
  const auto checkpoint = open_checkpoint(arguments.checkpoint.empty() ? default_run().checkpoint.string() : arguments.checkpoint);
  const WindowDevice device = open_window_device(arguments.device);
  if (!device.why_cpu.empty()) fmt::print(stderr, "{}\n", device.why_cpu);
  const auto model =
      Model::load(checkpoint, device.backend ? device.backend : std::shared_ptr<Backend>(make_cpu_backend(0, arguments.device.precision)));
  print_notes(model->notes());
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(*checkpoint, model->vocab());
  const auto reading = std::make_shared<Reading>(model, tokenizer, prompt);
  const std::int64_t last = reading->info()->prompt_length - 1;
  std::vector<std::int32_t> answer;
  for (std::int64_t i = 0; i < reading->to_generate(); ++i) {
    reading->generate_one();
    answer.push_back(reading->info()->tokens.back().id);
  }
  if (const NotFinite found = not_finite(reading->run())) print_note(found.text());
  const std::string text = tokenizer->decode(answer);
  fmt::print("{} reads {} tokens and answers: {}\n", printable(checkpoint->name), last + 1, printable_text(text));
  if (!prompt.expected.empty())
    fmt::print("expected: {}, {}\n", printable_text(prompt.expected), text == prompt.expected ? "right" : "wrong");

  const RuntimeFolder runtime_folder;
  const QGuiApplication application(argc, argv);
  const std::filesystem::path folder = "statescope-views";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(fmt::format("{}: {}", folder.string(), error.message()));
  RunHere run(
      reading, prompt, {}, [](double) { return true; }, arguments.device);
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == "needle_grid") continue;  // of hundreds of prompts, not of this one
    const std::filesystem::path path = folder / (std::string(row.id) + ".png");
    const std::int64_t layer = interesting_layer(reading->info()->model, row.id);
    const std::string why_none = write_picture(row, *reading->snapshot(layer, 0, last), {.token = last, .layer = layer}, run, path);
    fmt::print("{}\n", why_none.empty() ? "wrote " + path.string() : fmt::format("left out {}: {}", row.id, why_none));
  }
  return 0;
}

}  // namespace statescope
