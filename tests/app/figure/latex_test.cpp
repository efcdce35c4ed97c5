// What is written for LaTeX, as LaTeX reads it.
#include <QProcess>
#include <QStandardPaths>

#include "app/figure/latex.h"
#include "tests/app/window/place.h"

namespace statescope::latex_test {
namespace {

using namespace test::place;

/// The signs of captions that are not ASCII.
const std::string kSigns =
    "α β γ δ Δ κ λ π Π ρ σ Σ φ ω ℓ − × · ± ⊙ √ ∈ ≤ ≥ ∞ Ā ‖ ⟨ ⟩ ← → ↓ ÷ ᵀ ′ ² ³ ½ ⁻ ⁰ ¹ ⁴ ⁵ ⁶ ⁷ ⁸ ⁹ ₀ ₁ ₂ ᵢ κ̂ Ā S̄ “a” – — … ␣ ⏎ ⇥ é û § a|b "
    "<c> "
    "~ ^ _ & # % $ { } \\";

/// Whether pdflatex makes a PDF of it, and what it says.
std::pair<bool, std::string> compiled(const Place& place, const std::string& body) {
  place.write("paper.tex", "\\documentclass{article}\n\\usepackage{pgfplots}\n\\pgfplotsset{compat=1.16}\n\\begin{document}\n" + body +
                               "\n\\end{document}\n");
  QProcess latex;
  latex.setWorkingDirectory(QString::fromStdString(place.folder.path().string()));
  latex.setProcessChannelMode(QProcess::MergedChannels);
  latex.start("pdflatex", {"-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "paper.tex"});
  constexpr int most_ms = 120'000;
  const bool ended = latex.waitForFinished(most_ms) && latex.exitCode() == 0;
  return {ended && std::filesystem::exists(place.folder / "paper.pdf"), latex.readAll().toStdString()};
}

bool has_latex() {
  QProcess found;
  found.start("kpsewhich", {"pgfplots.sty"});
  return !QStandardPaths::findExecutable("pdflatex").isEmpty() && found.waitForFinished() && found.exitCode() == 0;
}

}  // namespace

TEST_CASE("LaTeX: every sign that captions have is one that it knows") {
  for (const char c : latex_text(kSigns)) {
    INFO(latex_text(kSigns));
    const bool is_ascii = (static_cast<unsigned char>(c) & 0x80) == 0;
    if (!is_ascii) CHECK(std::string("é û §").find(c) != std::string::npos);  // of text, which LaTeX has by itself
  }
}

TEST_CASE("LaTeX: captions and tables compile") {
  if (!has_latex()) {
    WARN("skipped: there is no pdflatex with pgfplots");
    return;
  }
  const Place place;
  REQUIRE(place.run("figure attention " + kReading + " --size double -o a.svg --caption a.tex").status == 0);
  REQUIRE(place.run("figure --spec " + kAssets + "figures/entropy.json -o b.svg --caption b.tex").status == 0);
  REQUIRE(place.run("figure --spec " + kAssets + "figures/receptive-field.json -o c.svg --data c.dat").status == 0);
  const std::string figures = "\\begin{figure}\\input{a.tex}\\end{figure}\n\\begin{figure}\\input{b.tex}\\end{figure}\n";
  const std::string plot =
      "\\begin{tikzpicture}\\begin{axis}\n\\addplot table [x=layer, y={sse-gla-n4k1, shared}] {c.dat};\n"
      "\\addplot table [x=layer, y=gla] {c.dat};\n\\end{axis}\\end{tikzpicture}\n";
  const auto [made, said] = compiled(place, figures + plot + latex_text(kSigns));
  INFO(said);
  CHECK(made);
}

}  // namespace statescope::latex_test
