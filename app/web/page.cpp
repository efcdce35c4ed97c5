#include "app/web/page.h"

#include <fmt/format.h>

#include <QFile>
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/common/page.h"
#include "engine/error.h"
#include "views/colormaps.h"
#include "views/parts.h"

// The resources of a static library are there only if somebody asks for them; the macro wants the global namespace.
static void init_page_resources() { Q_INIT_RESOURCE(assets); }

namespace statescope {
namespace {

using nlohmann::json;

QByteArray asset(const char* name) {
  init_page_resources();
  QFile file(QStringLiteral(":/page/") + QLatin1String(name));
  if (!file.open(QIODevice::ReadOnly)) throw Error(fmt::format("the program has no page/{} in it", name));
  return file.readAll();
}

/// Four bytes are five letters between # and z, without those that mean something in HTML: of a number to the base 85, the highest first.
std::string base85(std::string bytes) {
  static const std::string letters = [] {
    std::string all;
    for (char letter = '#'; letter <= 'z'; ++letter)
      if (letter != '&' && letter != '<' && letter != '\\') all += letter;
    return all;
  }();
  bytes.resize((bytes.size() + 3) / 4 * 4);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    std::uint32_t number = 0;
    for (std::size_t k = 0; k < 4; ++k) number = number << 8 | static_cast<unsigned char>(bytes[i + k]);
    std::array<char, 5> five{};
    for (std::size_t k = 5; k-- > 0; number /= 85) five[k] = letters[number % 85];
    text.append(five.begin(), five.end());
  }
  return text;
}

std::string base64(const std::string& bytes) { return QByteArray::fromStdString(bytes).toBase64().toStdString(); }

/// Three bytes a colour, 256 colours, of each map in the order of ColorMap.
json color_maps() {
  json maps = json::array();
  for (const ColorMap map : {ColorMap::viridis, ColorMap::cividis, ColorMap::diverging, ColorMap::diverging_dark}) {
    std::string bytes;
    for (const Color c : color_table(map)) bytes += {static_cast<char>(c.r), static_cast<char>(c.g), static_cast<char>(c.b)};
    maps.push_back(base64(bytes));
  }
  return maps;
}

std::string color(Color c) { return fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b); }

/// As CSS's own variables.
std::string colors(const Theme& theme) {
  return fmt::format(
      "color-scheme:{};--ground:{};--panel:{};--ink:{};--faint:{};--line:{};--accent:{};--on-accent:{};--needle:{};--question:{};"
      "--answer:{}",
      theme.dark ? "dark" : "light", color(theme.ground), color(theme.panel), color(theme.ink), color(theme.faint), color(theme.line),
      color(theme.accent), color(readable_on(theme.accent)), color(theme.needle), color(theme.question), color(theme.answer));
}

std::string theme_rules() {
  return fmt::format(
      ":root{{{0}}}\n@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{1}}}}}\n:root[data-theme=dark]{{{1}}}\n",
      colors(light_theme()), colors(dark_theme()));
}

const char* kind_name(SpanKind kind) { return kind == SpanKind::needle ? "needle" : kind == SpanKind::question ? "question" : "answer"; }

json run_json(const RunInfo& run) {
  json tokens = json::array(), spans = json::array();
  for (std::size_t i = 0; i < run.tokens.size(); ++i) tokens.push_back(visible_token(run, static_cast<std::int64_t>(i)));
  for (const TokenSpan& span : run.spans) spans.push_back({kind_name(span.kind), span.begin, span.end});
  return {{"model", run.model.name}, {"family", run.model.family}, {"prompt", run.prompt_length}, {"tokens", tokens}, {"spans", spans}};
}

json view_json(const RecordedView& view) {
  return {{"question", view.question},          {"title", view.title}, {"place", view.place},  {"model", view.model},
          {"size", {view.size.w, view.size.h}}, {"first", view.first}, {"tokens", view.tokens}};
}

json picture_json(const PagePicture& picture) {
  return {{"run", picture.run},
          {"views", picture.views},
          {"letters", picture.letters},
          {"token", picture.token},
          {"play", picture.play ? json(*picture.play) : json()},
          {"caption", picture.caption}};
}

json question_json(const PageQuestion& question) {
  return {{"words", question.words}, {"choices", question.choices}, {"right", question.right ? json(*question.right) : json()},
          {"open", question.open},   {"asSaid", question.as_said},  {"notAsSaid", question.not_as_said}};
}

json step_json(const PageStep& step) {
  return {{"title", step.title},
          {"prose", step.prose},
          {"reveal", step.reveal},
          {"question", step.question ? question_json(*step.question) : json()},
          {"broken", step.broken},
          {"picture", picture_json(step.picture)},
          {"revealed", picture_json(step.revealed)}};
}

/// Inside an element of the page: nothing there ends it.
std::string embedded(const json& value) {
  const std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string safe;
  for (const char c : text) safe += c == '<' ? "\\u003c" : std::string(1, c);
  return safe;
}

std::string data_of(const Page& page) {
  json all = {{"title", page.title},   {"about", page.about},    {"unit", WebCanvas::fineness_of_units},  {"maps", color_maps()},
              {"runs", json::array()}, {"views", json::array()}, {"picture", picture_json(page.picture)}, {"steps", json::array()}};
  for (const RunInfo& run : page.runs) all["runs"].push_back(run_json(run));
  for (const RecordedView& view : page.views) {
    const auto same = std::ranges::find(page.views, view.packed, &RecordedView::packed);
    all["views"].push_back(view_json(view));
    all["views"].back()["data"] = same - page.views.begin();  // one that is recorded alike is there once
  }
  for (const PageStep& step : page.steps) all["steps"].push_back(step_json(step));
  return embedded(all);
}

}  // namespace

std::string page_html(const Page& page, std::size_t most_bytes) {
  std::string views;
  for (auto view = page.views.begin(); view != page.views.end(); ++view) {
    const bool again = std::ranges::find(page.views.begin(), view, view->packed, &RecordedView::packed) != view;
    views += fmt::format("<script type=\"text/plain\" class=\"view-data\" data-bytes=\"{}\">{}</script>\n", view->packed.size(),
                         again ? "" : base85(view->packed));
  }
  const std::pair<std::string, std::string> parts[] = {
      {"{{theme}}", page.theme.empty() ? "" : fmt::format(" data-theme=\"{}\"", page.theme)},
      {"{{title}}", escaped(page.title)},
      {"{{colors}}", theme_rules()},
      {"{{style}}", asset("page.css").toStdString()},
      {"{{data}}", data_of(page)},
      {"{{views}}", views},
      {"{{script}}", (asset("reel.js") + asset("drawing.js") + asset("player.js")).toStdString()}};
  const std::string frame = asset("page.html").toStdString();
  std::string html;
  for (std::size_t at = 0; at < frame.size();) {
    const auto part = std::ranges::find_if(parts, [&](const auto& one) { return frame.compare(at, one.first.size(), one.first) == 0; });
    if (part == std::end(parts)) {
      html += frame[at++];
      continue;
    }
    html += part->second;
    at += part->first.size();
  }
  if (html.size() > most_bytes)
    throw Error(fmt::format("the page would have {:.1f} MB, more than {:.1f}: take fewer tokens or views, or --max-size {:.0f}",
                            static_cast<double>(html.size()) / 1e6, static_cast<double>(most_bytes) / 1e6,
                            std::ceil(static_cast<double>(html.size()) / 1e6)));
  return html;
}

}  // namespace statescope
