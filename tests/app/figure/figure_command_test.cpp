// statescope figure on shipped models: files of every kind, the same bytes again, and failures that leave nothing.
#include <QDir>
#include <QFile>
#include <QImage>
#include <QProcess>
#include <QRegularExpression>
#include <QTemporaryDir>
#include <cmath>
#include <fstream>

#include "app/cli/commands.h"
#include "app/figure/figure.h"
#include "engine/error.h"
#include "tests/app/figure/golden_picture.h"
#include "tests/app/window/qt_application.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::figure_command_test {
namespace {

const std::string kAssets = from_source("assets/");

FigureArguments similarity(const QTemporaryDir& folder, const char* output) {
  FigureArguments arguments;
  arguments.panel.view = "similarity";
  arguments.panel.layer = 1;
  arguments.checkpoints = {"niah-sse-gla-n4k1.h5"};
  arguments.prompt.file = "needle.json";
  arguments.command = "statescope figure similarity";
  arguments.output = folder.filePath(output).toStdString();
  return arguments;
}

/// A file of token ids.
std::string ids_of(const QTemporaryDir& folder) {
  const std::string path = folder.filePath("ids").toStdString();
  std::ofstream file(path);
  for (int i = 0; i < 60; ++i) file << (i * i + 3 * i) % 97 << ' ';
  return path;
}

QByteArray bytes(const std::string& path) {
  QFile file(QString::fromStdString(path));
  REQUIRE(file.open(QIODevice::ReadOnly));
  return file.readAll();
}

std::string error_of(const FigureArguments& arguments) {
  qt_application();
  try {
    figure_command(arguments);
  } catch (const std::runtime_error& error) {
    CHECK(std::string_view(error.what()).find('\n') == std::string_view::npos);
    return error.what();
  }
  return "";
}

/// What the program prints; unset where it is not installed.
std::optional<QString> printed(const char* program, const QStringList& arguments) {
  QProcess process;
  process.setProcessChannelMode(QProcess::MergedChannels);
  process.start(program, arguments);
  if (!process.waitForStarted()) {
    WARN(program << " is not installed: not tested");
    return {};
  }
  REQUIRE(process.waitForFinished());
  const QString text = QString::fromUtf8(process.readAll());
  INFO(program << ": " << text.toStdString());
  CHECK(process.exitCode() == 0);
  return text;
}

/// SVG Tiny 1.2, as far as figures use it.
void check_svg(const std::string& path) {
  printed("xmllint", {"--noout", "--nonet", "--schema", QString::fromStdString(from_source("tests/app/figure/svg_tiny.xsd")),
                      QString::fromStdString(path)});
}

constexpr std::int64_t kSide = 2048;

/// Numbers of which no two neighbours are alike.
class Noise : public PanelPicture {
 public:
  Noise() {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = std::sin(static_cast<float>(i * 2654435761U % 1000003));
  }
  void draw(Canvas& canvas, Rect area, const Frame&) const override {
    canvas.heatmap(area, {kSide, kSide, values_, {ColorMap::diverging, -1, 1}});
  }
  std::vector<Array> arrays() const override { return {}; }
  std::string caption() const override { return ""; }

 private:
  std::vector<float> values_ = std::vector<float>(static_cast<std::size_t>(kSide * kSide));
};

}  // namespace

TEST_CASE("figure: the same bytes twice, and again from the file itself", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  for (const char* ending : {"pdf", "svg", "png"}) {
    INFO(ending);
    FigureArguments first = similarity(folder, ("first." + std::string(ending)).c_str()), second = first, again;
    second.output = folder.filePath(QString("second.") + ending).toStdString();
    REQUIRE(figure_command(first) == 0);
    REQUIRE(figure_command(second) == 0);
    CHECK(bytes(first.output) == bytes(second.output));
    again.from = first.output;
    again.output = folder.filePath(QString("again.") + ending).toStdString();
    REQUIRE(figure_command(again) == 0);
    CHECK(bytes(first.output) == bytes(again.output));
    const Provenance provenance = read_provenance(first.output);
    CHECK(provenance.command == "statescope figure similarity");
    REQUIRE(provenance.sources.size() == 1);
    CHECK(provenance.sources[0].sha256.size() == 64);
    CHECK(provenance.spec.panels[0].input->text.size() > 100);  // the prompt itself
    CHECK(provenance.spec.panels[0].token >= 0);
  }
}

TEST_CASE("figure: PDF is sound, its type is TrueType, its page as large as asked", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  FigureArguments arguments = similarity(folder, "figure.pdf");
  set_size(arguments.style, "89x70mm");
  REQUIRE(figure_command(arguments) == 0);
  const QString pdf = QString::fromStdString(arguments.output);
  if (const auto fonts = printed("pdffonts", {pdf})) {
    CHECK(fonts->count("CID TrueType") >= 1);
    CHECK_FALSE(fonts->contains("Type 3"));
    CHECK_FALSE(fonts->contains(QRegularExpression(" no +(yes|no) +(yes|no) ")));  // all embedded
  }
  if (const auto info = printed("pdfinfo", {pdf})) CHECK(info->contains("Page size:       252"));
  printed("qpdf", {"--check", pdf});
  if (const auto names = printed("pdfdetach", {"-list", pdf})) CHECK(names->contains("figure.json"));
}

TEST_CASE("figure: SVG is what its schema asks for", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  const FigureArguments arguments = similarity(folder, "figure.svg");
  REQUIRE(figure_command(arguments) == 0);
  CHECK(bytes(arguments.output).contains("<svg width=\"89mm\""));
  check_svg(arguments.output);
}

TEST_CASE("figure: every view of a real run, compared with its stored picture", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == "remembered") continue;  // no shipped model keeps coefficients
    INFO(row.id);
    FigureArguments arguments = similarity(folder, (std::string(row.id) + ".svg").c_str());
    arguments.panel.view = row.id;
    if (row.id == "delta_rule") arguments.checkpoints = {"niah-gated-deltanet.h5"};
    if (row.id == "head_gates") arguments.checkpoints = {"niah-sla-gla.h5"};
    if (row.id == "choices") {
      arguments.checkpoints = {"mqar-nsa.h5"};
      arguments.prompt.file.clear();  // an example of what it was trained on
    }
    if (row.id == "experts") {  // no shipped model has any; of this one layer 1
      arguments.checkpoints = {from_source("tests/golden/models/nemotron_h")};
      arguments.panel.layer.reset();
      arguments.prompt = {.ids = ids_of(folder)};
    }
    if (row.id == "difference") arguments.checkpoints.push_back("niah-sse-gla-n4k2.h5");
    if (row.id == "needle_grid") arguments.panel.mode = "Quick";
    if (row.id == "branches") arguments.panel.interventions = {"zero partition 4 at 240"};
    REQUIRE(figure_command(arguments) == 0);
    CHECK(bytes(arguments.output).count("<text") > 5);
    check_svg(arguments.output);
    arguments.output = folder.filePath("picture.png").toStdString();
    arguments.style.dpi = 150;
    arguments.force = true;
    REQUIRE(figure_command(arguments) == 0);
    const QImage picture(QString::fromStdString(arguments.output));
    check_golden_picture("figures", std::string(row.id) + "_run", picture.convertToFormat(QImage::Format_RGB32), 0.02);
  }
}

TEST_CASE("figure: EPS, where pdftops is", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  const FigureArguments arguments = similarity(folder, "figure.eps");
  if (!printed("pdftops", {"-v"})) {
    CHECK(error_of(arguments).find("poppler-utils") != std::string::npos);
    return;
  }
  REQUIRE(figure_command(arguments) == 0);
  CHECK(bytes(arguments.output).startsWith("%!PS-Adobe-3.0 EPSF-3.0"));
}

TEST_CASE("figure: numbers, caption and preview lie beside it", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  FigureArguments arguments = similarity(folder, "figure.png");
  arguments.panel.mode = "Partitions";
  arguments.style.dpi = 100;
  arguments.data = folder.filePath("figure.csv").toStdString();
  arguments.caption = folder.filePath("figure.txt").toStdString();
  arguments.preview = "deutan";
  REQUIRE(figure_command(arguments) == 0);
  const QList<QByteArray> lines = bytes(arguments.data).trimmed().split('\n');
  REQUIRE(lines.size() == 1 + 5 * 5);  // the shared one and four partitions
  CHECK(lines[1].startsWith("a,cosine,,partition,0,"));
  CHECK(lines[1].split(',').back().toDouble() == Approx(1));  // with itself
  CHECK(lines[2].split(',').back().toDouble() == lines[6].split(',').back().toDouble());
  const QString caption = QString::fromUtf8(bytes(arguments.caption));
  for (const char* word : {"niah-sse-gla-n4k1 (sse), layer 1, head 0, after token", "SSE Def. 1"}) CHECK(caption.contains(word));
  CHECK(QImage(folder.filePath("figure.deutan.png")).width() > 400);

  arguments.force = true;
  arguments.data = folder.filePath("figure.h5").toStdString();
  REQUIRE(figure_command(arguments) == 0);
  const QByteArray once = bytes(arguments.data);
  REQUIRE(figure_command(arguments) == 0);
  CHECK(once == bytes(arguments.data));
}

TEST_CASE("figure: a grid from a spec shares one range; letters, titles and a view that shows nothing", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  FigureArguments arguments;
  arguments.spec = folder.filePath("grid.json").toStdString();
  arguments.output = folder.filePath("grid.svg").toStdString();
  std::ofstream(arguments.spec) << R"({"size": "double", "shared_range": true, "panels": [{"view": "state", "prompt": "needle.json",
    "checkpoint": "niah-gla.h5", "layer": [0, 2], "head": [0, 1]}]})";
  REQUIRE(figure_command(arguments) == 0);
  const QByteArray svg = bytes(arguments.output);
  CHECK(svg.count("<image") == 0);  // few cells are shapes
  for (const char* text : {">a<", ">d<", ">layer 2<", ">head 1<"}) CHECK(svg.contains(text));
  arguments.output = folder.filePath("none.svg").toStdString();
  std::ofstream(arguments.spec) << R"({"panels": [{"view": "state", "prompt": "needle.json", "checkpoint": "niah-transformer.h5"}]})";
  CHECK(error_of(arguments).find("keeps no matrix state") != std::string::npos);
}

TEST_CASE("figure: attention of one partition, a way to look that only its layer has, and again from the file itself", "[figure]") {
  const QTemporaryDir folder;
  FigureArguments arguments = similarity(folder, "all.svg");
  arguments.panel.view = "attention";
  REQUIRE(figure_command(arguments) == 0);
  const QByteArray all = bytes(arguments.output);
  arguments.output = folder.filePath("one.svg").toStdString();
  arguments.panel.mode = "Only partition 1";
  REQUIRE(figure_command(arguments) == 0);
  const QByteArray one = bytes(arguments.output);
  CHECK(one.contains("Only partition 1"));
  CHECK(one != all);
  FigureArguments again;
  again.from = arguments.output;
  again.output = folder.filePath("again.svg").toStdString();
  REQUIRE(figure_command(again) == 0);
  CHECK(bytes(again.output) == one);
  arguments.output = folder.filePath("none.svg").toStdString();
  arguments.panel.mode = "Only partition 99";
  CHECK(error_of(arguments).find("attention has no mode 'Only partition 99': there are ") != std::string::npos);
}

TEST_CASE("figure: any head of softmax attention, and what RWKV-7 erases", "[figure]") {
  const QTemporaryDir folder;
  FigureArguments arguments = similarity(folder, "figure.svg");
  arguments.panel.view = "attention";
  arguments.checkpoints = {"niah-transformer.h5"};
  arguments.force = true;
  std::vector<QByteArray> weights;
  for (const std::int64_t head : {0, 1}) {
    arguments.panel.head = head;
    arguments.data = folder.filePath("weights.csv").toStdString();
    REQUIRE(figure_command(arguments) == 0);
    weights.push_back(bytes(arguments.data));
  }
  CHECK(weights[0] != weights[1]);
  FigureArguments beside = similarity(folder, "beside.svg");
  beside.panel = {.view = "attention", .mode = "Attention beside the memory"};
  beside.checkpoints = {from_source("tests/golden/models/falcon_h1")};
  beside.prompt = {};
  beside.prompt.ids = ids_of(folder);
  CHECK(error_of(beside).empty());
  beside.checkpoints = {from_source("tests/golden/models/hymba")};
  beside.panel.head = 3;
  beside.force = true;
  CHECK(error_of(beside).empty());
  beside.panel.view = "state";
  beside.panel.mode = "";
  CHECK(error_of(beside).find("The memory of layer 0 has no head 3. It has 1 head; the softmax attention beside it has 4 heads.") !=
        std::string::npos);
  beside.panel.head = 4;
  CHECK(error_of(beside).find("there is no head 4 (heads are 0 to 3)") != std::string::npos);
  beside.panel = {.view = "attention", .layer = 0};
  beside.checkpoints = {from_source("tests/golden/models/lfm2")};
  CHECK(error_of(beside).find("The nearest layer that does is layer 1.") != std::string::npos);
  beside.panel.layer.reset();
  CHECK(error_of(beside).empty());
  beside.panel.view = "choices";
  beside.checkpoints = {from_source("tests/golden/models/dsa")};
  beside.caption = folder.filePath("caption.txt").toStdString();
  CHECK(error_of(beside).empty());
  CHECK(bytes(beside.caption).contains("layer 0, all heads"));
  FigureArguments erased = similarity(folder, "erased.svg");
  erased.panel.view = "state";
  erased.panel.mode = "Erase";
  erased.checkpoints = {"niah-rwkv7.h5"};
  CHECK(error_of(erased).empty());
}

TEST_CASE("figure: a failure is one line and leaves nothing", "[figure]") {
  const QTemporaryDir folder;
  const FigureArguments sound = similarity(folder, "figure.pdf");
  const auto fails = [&](const char* words, const std::function<void(FigureArguments&)>& change) {
    FigureArguments arguments = sound;
    change(arguments);
    const std::string error = error_of(arguments);
    INFO(error);
    CHECK(error.find(words) != std::string::npos);
    CHECK(QDir(folder.path()).isEmpty());
  };
  fails("must end in .pdf, .svg, .png or .eps", [](FigureArguments& a) { a.output += ".gif"; });
  fails("No such file or directory", [&](FigureArguments& a) { a.output = folder.filePath("no/figure.pdf").toStdString(); });
  fails("there is no typeface 'Comic Papyrus'", [](FigureArguments& a) { a.style.family = "Comic Papyrus"; });
  fails("have no room for all that is shown", [](FigureArguments& a) { set_size(a.style, "20x20mm"), a.style.type_pt = 12; });
  fails("there is no layer 99 (layers are 0 to 3)", [](FigureArguments& a) { a.panel.layer = 99; });
  fails("there is no head 99 (heads are 0 to 3)", [](FigureArguments& a) { a.panel.head = 99; });
  fails("there is no such file", [](FigureArguments& a) { a.checkpoints = {"missing.h5"}; });
  fails("compares two models", [](FigureArguments& a) { a.panel.view = "difference"; });
  fails("data are .h5 or .csv", [&](FigureArguments& a) { a.data = folder.filePath("x.xls").toStdString(); });
  fails("does not say what it was made from", [](FigureArguments& a) { a.from = kAssets + "pictures/needle.png"; });
  fails("has no colours whose range", [](FigureArguments& a) { a.panel.view = "spectrum", a.panel.range.fit = RangeChoice::Fit::full; });
  fails("cannot be written", [](FigureArguments& a) { a.output = "/proc/figure.pdf"; });
}

TEST_CASE("figure: work ends where it is told to", "[figure]") {
  FigureSpec spec;
  spec.panels.push_back({.view = "needle", .chart = {}, .checkpoints = {"niah-gla.h5"}, .data = {}, .prompt = "needle.json"});
  for (const double most : {-1.0, 0.1, 0.5, 0.99}) {
    FigureRuns runs({}, {}, [most](double fraction, const std::string&) { return fraction <= most; });
    CHECK_THROWS_WITH(build_figure(spec, runs), "cancelled");
  }
}

TEST_CASE("figure: what exists is replaced only when asked for", "[figure]") {
  const QTemporaryDir folder;
  FigureArguments arguments = similarity(folder, "figure.svg");
  CHECK(error_of(arguments).empty());
  CHECK_FALSE(error_of(arguments).empty());
  arguments.force = true;
  CHECK(error_of(arguments).empty());
}

TEST_CASE("figure: a checkpoint that is another one now is refused", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  const QString copy = folder.filePath("model.h5");
  REQUIRE(QFile::copy(QString::fromStdString(kAssets + "checkpoints/niah/niah-gla.h5"), copy));
  FigureArguments arguments = similarity(folder, "figure.png");
  arguments.style.dpi = 100;
  arguments.checkpoints = {copy.toStdString()};
  REQUIRE(figure_command(arguments) == 0);
  REQUIRE(QFile::remove(copy));
  REQUIRE(QFile::copy(QString::fromStdString(kAssets + "checkpoints/niah/niah-retnet.h5"), copy));
  FigureArguments again;
  again.from = arguments.output;
  again.output = folder.filePath("again.png").toStdString();
  CHECK(error_of(again).find("is another file now") != std::string::npos);
}

TEST_CASE("figure: a PNG that ends early says so in a line", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  FigureArguments arguments = similarity(folder, "figure.png");
  arguments.style.dpi = 50;
  REQUIRE(figure_command(arguments) == 0);
  const QByteArray whole = bytes(arguments.output);
  FigureArguments again;
  again.from = folder.filePath("part.png").toStdString();
  again.output = folder.filePath("again.png").toStdString();
  for (qsizetype length = 0; length < 1000; length += 13) {  // provenance stands in front of the pixels
    QFile part(QString::fromStdString(again.from));
    REQUIRE(part.open(QIODevice::WriteOnly));
    part.write(whole.left(length));
    part.close();
    INFO(length);
    CHECK_FALSE(error_of(again).empty());
  }
}

TEST_CASE("figure: golden figures, as pdftoppm draws the PDF", "[figure]") {
  qt_application();
  const QTemporaryDir folder;
  struct Golden {
    const char *name, *panels;
  };
  constexpr Golden all[] = {
      {"similarity", R"("view": "similarity", "layer": 1, "checkpoint": ["niah-gla.h5", "niah-sse-gla-n4k1.h5"])"},
      {"state", R"("view": "state", "checkpoint": "niah-gla.h5", "layer": [0, 2], "head": [0, 1])"},
      {"timeline", R"("view": "timeline", "checkpoint": "niah-sse-gla-n4k1.h5")"},
      {"needle", R"("view": "needle", "checkpoint": "niah-sse-gla-n4k1.h5")"},
      {"attention", R"("view": "attention", "checkpoint": "niah-gated-deltanet.h5", "layer": 2)"},
  };
  for (const auto& [name, panels] : all) {
    FigureArguments arguments;
    arguments.spec = folder.filePath(QString("spec-%1.json").arg(name)).toStdString();
    arguments.output = folder.filePath(QString(name) + ".pdf").toStdString();
    std::ofstream(arguments.spec) << R"({"size": "double", "aspect": 1.8, "panels": [{"prompt": "needle.json", )" << panels << "}]}";
    REQUIRE(figure_command(arguments) == 0);
    const QString picture = folder.filePath(name);
    if (!printed("pdftoppm", {"-r", "110", "-png", "-singlefile", QString::fromStdString(arguments.output), picture})) return;
    check_golden_picture("figures", name, QImage(picture + ".png").convertToFormat(QImage::Format_RGB32), 0.02);
  }
}

TEST_CASE("figure: a heatmap of 2048 × 2048 noisy cells is a PDF of 5 MB at most", "[figure]") {
  qt_application();
  FigureSpec spec;
  spec.aspect = 1;
  std::vector<std::unique_ptr<PanelPicture>> panels;
  panels.push_back(std::make_unique<Noise>());
  const QByteArray pdf = figure_bytes(Figure(spec, std::move(panels)), FigureFormat::pdf, nullptr);
  CHECK(pdf.size() > 500'000);
  CHECK(pdf.size() <= 5'000'000);
}

}  // namespace statescope::figure_command_test
