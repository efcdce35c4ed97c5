// Words in another language: what a translator may do, and that no text of a view is left in English.
#include "views/words.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/source.h"
#include "tests/views/catalogue_cases.h"
#include "views/attention.h"

namespace statescope::words_test {
namespace {

using Text = std::pair<std::string, std::string>;  // context, English

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// A language whose letters are none of a to z: "{} зиж {:.3g}". It remembers what it was asked for.
std::set<Text> asked;
std::string in_other_letters(const char* context, const char* english) {
  asked.insert({context, english});
  std::string text;
  bool place = false;
  for (const char c : std::string_view(english)) {
    place = c == '{' || (place && c != '}');
    if (!is_letter(c) || place)
      text += c;
    else
      text += {'\xD0', static_cast<char>(0x90 + (c & 0x1F))};  // а … я, Cyrillic in UTF-8
  }
  return text;
}

/// For as long as it lives.
struct OtherLanguage {
  explicit OtherLanguage(Translator translator) { set_translator(translator); }
  ~OtherLanguage() { set_translator(nullptr); }
  OtherLanguage(const OtherLanguage&) = delete;
  OtherLanguage& operator=(const OtherLanguage&) = delete;
};

/// What is data: names, units, symbols, a command, and lines that the engine has put together.
std::vector<std::string> data_of(const CatalogueCase& c) {
  std::vector<std::string> data = {"statescope eval",
                                   "--task niah",
                                   "--length",
                                   "--needles",
                                   "--depth",
                                   "--samples",
                                   "2 needles do not fit into 128 words",
                                   "cos(π, v)",
                                   "bfloat16",
                                   "float32",
                                   "kB",
                                   "MB",
                                   "nan",
                                   "AG",
                                   "model.layers.",
                                   "attn.q_proj.weight",
                                   "attn.k_proj.weight",
                                   "attn.gk_proj.0.0.weight",
                                   "mlp.gate_proj.weight",
                                   "readout · [64, 32]ᵀ",
                                   "S_t = diag(α_t) S_{t−1} + k_tᵀ v_t (GLA eq. 3)",
                                   "mill"};
  if (!c.snapshot.run) return data;
  const RunInfo& run = *c.snapshot.run;
  data.insert(data.end(), {run.model.name, run.model.family, run.model.device});
  data.insert(data.end(), run.branch.interventions.begin(), run.branch.interventions.end());
  for (const LayerInfo& layer : run.model.layers) {
    data.insert(data.begin(), layer.mixer);
    if (layer.has_state()) data.push_back(layer.slot_names.front());
  }
  return data;
}

/// The text, from its first word of two letters and more that is neither translated nor data.
std::string untranslated(std::string text, const std::vector<std::string>& data) {
  if (text.ends_with("…")) text.erase(text.find_last_of(" \n") + 1);  // cut somewhere in a word
  for (const std::string& name : data)
    for (std::size_t at = text.find(name); !name.empty() && at != std::string::npos; at = text.find(name, at)) text.erase(at, name.size());
  const auto word = std::ranges::adjacent_find(text, [](char a, char b) { return is_letter(a) && is_letter(b); });
  return {word, text.end()};
}

/// Tokens that read like numbers: what is in letters is a word of the view.
CatalogueCase with_numbers_for_tokens(CatalogueCase c) {
  if (!c.snapshot.run) return c;
  RunInfo run = *c.snapshot.run;
  for (TokenInfo& token : run.tokens) token.text = " " + std::to_string(token.id);
  c.snapshot.run = std::make_shared<const RunInfo>(std::move(run));
  return c;
}

/// All that a view draws, says and tells of where the pointer may stand.
std::vector<std::string> texts_of(const View& view) {
  constexpr float w = 1600, h = 1000, step = 40;
  std::vector<std::string> texts = {view.describe()};
  TextCanvas canvas({w, h});
  view.draw(canvas, {0, 0, w, h}, {light_theme(), 1});
  for (const TextCanvas::Placed& placed : canvas.texts()) texts.push_back(placed.text);
  std::set<Hit> hits;
  for (float y = 0; y < h; y += step)
    for (float x = 0; x < w; x += step)
      if (const auto hit = canvas.hits().at({x, y})) hits.insert(*hit);
  for (const Hit& hit : hits) texts.push_back(view.tooltip(hit));
  const Table table = view.table();
  texts.insert(texts.end(), table.columns.begin(), table.columns.end());
  constexpr std::size_t most = 64;
  for (std::size_t i = 0; i < std::min(most, table.rows.size()); ++i) {
    const std::vector<std::string>& row = table.rows[table.rows.size() - 1 - i];
    texts.insert(texts.end(), row.begin(), row.end());
  }
  return texts;
}

std::string unescaped(std::string text) {
  for (const auto& [code, letter] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}})
    for (std::size_t at = text.find(code); at != std::string::npos; at = text.find(code, at + 1))
      text.replace(at, std::string_view(code).size(), letter);
  return text;
}

/// What translators are given.
std::set<Text> texts_to_translate() {
  std::ifstream file(from_source("assets/translations/statescope_en.ts"));
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::set<Text> texts;
  std::string context;
  for (std::size_t at = all.find('<'); at != std::string::npos; at = all.find('<', at + 1)) {
    const auto content = [&](std::string_view tag) {
      const std::size_t begin = at + tag.size();
      return unescaped(all.substr(begin, all.find("</", begin) - begin));
    };
    if (all.compare(at, 6, "<name>") == 0) context = content("<name>");
    if (all.compare(at, 8, "<source>") == 0) texts.insert({context, content("<source>")});
  }
  return texts;
}

}  // namespace

TEST_CASE("a translation may change the order of what stands in a pattern; one that does not fit is not used") {
  static std::string translation;
  const OtherLanguage language([](const char*, const char*) { return translation; });
  const auto said = [](const char* pattern) {
    translation = pattern;
    return Views::tr("head {} of {:.1f}", 3, 0.25);
  };
  CHECK(said("{1:.2f}: Kopf {0}") == "0.25: Kopf 3");
  CHECK(said("{{Kopf}} {} von {}") == "{Kopf} 3 von 0.25");
  CHECK(said("Kopf {}") == "head 3 of 0.2");                // one is missing
  CHECK(said("Kopf {} von {} und {}") == "head 3 of 0.2");  // one too many
  CHECK(said("Kopf {1:d} von {0}") == "head 3 of 0.2");     // not a whole number
  CHECK(said("Kopf {} von {") == "head 3 of 0.2");
  translation = "{Zeile}";
  CHECK(Views::tr("row") == "{Zeile}");
}

TEST_CASE("without a translator, and on a thread that makes a figure, words are English") {
  CHECK(Views::tr("row {}", 7) == "row 7");
  const OtherLanguage language([](const char*, const char*) { return std::string("Zeile {}"); });
  CHECK(Views::tr("row {}", 7) == "Zeile 7");
  {
    const InEnglish outer;
    { const InEnglish inner; }
    CHECK(Views::tr("row {}", 7) == "row 7");
    std::string elsewhere;
    std::thread([&] { elsewhere = Views::tr("row {}", 7); }).join();
    CHECK(elsewhere == "Zeile 7");
  }
  CHECK(Views::tr("row {}", 7) == "Zeile 7");
}

TEST_CASE("every text that a view draws, says or has in its table is translated, and translators are given it") {
  asked.clear();
  const OtherLanguage language(in_other_letters);
  for (const CatalogueCase& c : catalogue_cases()) {
    const std::vector<std::string> data = data_of(c);
    for (const auto& [name, view] : built_views(with_numbers_for_tokens(c))) {
      for (const std::string& text : texts_of(*view)) {
        INFO(c.name << ", " << name << ": " << text);
        CHECK(untranslated(text, data) == "");
      }
    }
  }
  const std::set<Text> known = texts_to_translate();
  for (const auto& [context, english] : asked) {
    INFO(context << ": " << english << "\nnot in assets/translations/statescope_en.ts; the target update_translations writes it there");
    CHECK(known.contains({context, english}));
  }
}

TEST_CASE("ways of looking that a view names by the layer's partitions are translated where it names them") {
  const OtherLanguage language(in_other_letters);
  const auto view = make_attention();
  const std::size_t always = view->modes().size();
  view->build(Sample({.tokens = 4}).at(3), {.token = 3});
  REQUIRE(view->modes().size() == always + 5);
  for (const std::string_view mode : view->modes().subspan(always)) CHECK(untranslated(std::string(mode), {"shared"}) == "");
}

TEST_CASE("numbers beside a figure have the same names in every language") {
  for (const CatalogueCase& c : catalogue_cases()) {
    const std::vector<BuiltView> plain = built_views(c);
    const OtherLanguage language(in_other_letters);
    const InEnglish paper;
    const std::vector<BuiltView> elsewhere = built_views(c);
    for (std::size_t i = 0; i < plain.size(); ++i) {
      INFO(c.name << ", " << plain[i].name);
      CHECK(plain[i].view->sentence() == elsewhere[i].view->sentence());
      const std::vector<Array> one = plain[i].view->arrays(), other = elsewhere[i].view->arrays();
      REQUIRE(one.size() == other.size());
      for (std::size_t a = 0; a < one.size(); ++a) CHECK(one[a].name == other[a].name);
    }
  }
}

}  // namespace statescope::words_test
