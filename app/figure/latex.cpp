#include "app/figure/latex.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "app/figure/print.h"
#include "engine/error.h"
#include "views/words.h"

namespace statescope {
namespace {

using Replacement = std::pair<std::string_view, std::string_view>;

constexpr auto kText = std::to_array<Replacement>({
    {"\\", "\\textbackslash{}"},
    {"{", "\\{"},
    {"}", "\\}"},
    {"$", "\\$"},
    {"&", "\\&"},
    {"#", "\\#"},
    {"%", "\\%"},
    {"_", "\\_"},
    {"^", "\\textasciicircum{}"},
    {"~", "\\textasciitilde{}"},
    {"<", "\\textless{}"},
    {">", "\\textgreater{}"},
    {"|", "\\textbar{}"},
    {"“", "``"},
    {"”", "''"},
    {"–", "--"},
    {"—", "---"},
    {"…", "\\ldots{}"},
    {"␣", "\\textvisiblespace{}"},
    {"⏎", "\\textbackslash{}n"},
    {"⇥", "\\textbackslash{}t"},
});
constexpr auto kMath = std::to_array<Replacement>({
    {"α", "\\alpha"},  {"β", "\\beta"},      {"γ", "\\gamma"}, {"δ", "\\delta"},  {"Δ", "\\Delta"},  {"κ", "\\kappa"},
    {"λ", "\\lambda"}, {"π", "\\pi"},        {"Π", "\\prod"},  {"ρ", "\\rho"},    {"σ", "\\sigma"},  {"Σ", "\\sum"},
    {"φ", "\\phi"},    {"ω", "\\omega"},     {"ℓ", "\\ell"},   {"−", "-"},        {"×", "\\times"},  {"·", "\\cdot"},
    {"±", "\\pm"},     {"⊙", "\\odot"},      {"√", "\\surd"},  {"∈", "\\in"},     {"≤", "\\le"},     {"≥", "\\ge"},
    {"∞", "\\infty"},  {"Ā", "\\bar{A}"},    {"‖", "\\|"},     {"⟨", "\\langle"}, {"⟩", "\\rangle"}, {"←", "\\leftarrow"},
    {"→", "\\to"},     {"ᵀ", "^{\\top}"},    {"′", "'"},       {"²", "^{2}"},     {"³", "^{3}"},     {"½", "\\frac{1}{2}"},
    {"⁻", "^{-}"},     {"⁰", "^{0}"},        {"¹", "^{1}"},    {"⁴", "^{4}"},     {"⁵", "^{5}"},     {"⁶", "^{6}"},
    {"⁷", "^{7}"},     {"⁸", "^{8}"},        {"⁹", "^{9}"},    {"₀", "_{0}"},     {"₁", "_{1}"},     {"₂", "_{2}"},
    {"ᵢ", "_{i}"},     {"↓", "\\downarrow"}, {"÷", "\\div"},
});
/// Behind a letter, over it.
constexpr auto kOver = std::to_array<Replacement>({{"\u0302", "\\hat"}, {"\u0304", "\\bar"}});

/// Whose first part the text begins with; null: none.
template <std::size_t N>
const Replacement* beginning(const std::array<Replacement, N>& all, std::string_view text) {
  const auto found = std::ranges::find_if(all, [&](const Replacement& one) { return text.starts_with(one.first); });
  return found == all.end() ? nullptr : &*found;
}

std::size_t length_of_character(std::string_view text) {
  std::size_t length = 1;
  while (length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80) ++length;
  return length;
}

/// Signs of mathematics stand in \ensuremath, each by itself, so that lines may break between them.
std::string on_the_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = length_of_character(text);
    const std::string_view letter = text.substr(0, length), behind = text.substr(length);
    const Replacement *over = beginning(kOver, behind), *math = beginning(kMath, text), *own = beginning(kText, text);
    if (over)
      out += fmt::format("\\ensuremath{{{}{{{}}}}}", over->second, math ? math->second : letter);
    else if (math)
      out += fmt::format("\\ensuremath{{{}}}", math->second);
    else
      out += own ? own->second : letter;
    text.remove_prefix(length + (over ? over->first.size() : 0));
  }
  return out;
}

/// A name of a column: what is in braces is one.
std::string column_name(const std::string& name) {
  std::string kept = name.empty() ? "y" : name;
  std::ranges::replace_if(
      kept, [](char c) { return std::string_view("{}\\\n\r\t").find(c) != std::string_view::npos; }, ' ');
  return kept.find_first_of(" ,;\"#%$&_^~") == kept.npos ? kept : "{" + kept + "}";
}

}  // namespace

std::string latex_text(std::string_view text) {
  std::string out;
  for (const SetPart& part : set_parts(printed_numbers(text, true))) {
    const std::string set = on_the_line(part.text);
    out += part.level == 0 ? set : fmt::format("\\ensuremath{{{}{{\\mathrm{{{}}}}}}}", part.level > 0 ? '^' : '_', set);
  }
  return out;
}

std::string latex_caption(const Figure& figure) {
  std::string text = latex_text(figure.caption());
  while (text.ends_with('\n')) text.pop_back();
  return "\\caption{%\n" + text + "}\n";
}

std::string pgf_table(const Figure& figure) {
  const InEnglish names;
  if (figure.panels().size() != 1 || figure.panels().front()->view() != nullptr)
    throw Error("a table for pgfplots (.dat) is of one chart; .csv and .h5 hold the numbers of every figure");
  const std::vector<Array> arrays = figure.panels().front()->arrays();
  const ArrayAxis &series = arrays.front().axes.front(), &places = arrays.front().axes.back();
  std::string table = column_name(places.name);
  for (std::size_t a = 0; a < arrays.size(); ++a) {
    const std::string end = a == 0 ? "" : a == 1 ? " low" : " high";
    for (const std::string& name : series.labels) table += " " + column_name(name + end);
  }
  table += "\n";
  for (std::int64_t place = 0; place < places.count; ++place) {
    table += fmt::format("{}", places.coordinates[static_cast<std::size_t>(place)]);
    for (const Array& array : arrays) {
      for (std::int64_t s = 0; s < series.count; ++s) {
        const float value = array.values[static_cast<std::size_t>(s * places.count + place)];
        table += std::isnan(value) ? " nan" : fmt::format(" {}", value);
      }
    }
    table += "\n";
  }
  return table;
}

}  // namespace statescope
