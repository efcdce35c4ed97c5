#include "app/panels/arrangement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <QCoreApplication>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>
#include <array>

#include "app/panels/view_panel.h"

namespace statescope {
namespace {

constexpr std::string_view first_views[] = {"routing", "state"};

/// The large one has three fifths of the upper row.
float usual_width(std::size_t place) { return place == 0 ? 1.5f : 1.0f; }

bool can_stand(std::string_view id) { return id != strip_view && find_view(id) != nullptr; }

/// The view's way of looking called `name`; the first where it has none of that name.
std::size_t mode_called(std::string_view id, std::string_view name) {
  const std::unique_ptr<View> view = find_view(id)->make();
  const auto found = std::ranges::find(view->modes(), name);
  return found == view->modes().end() ? 0 : static_cast<std::size_t>(found - view->modes().begin());
}

}  // namespace

Arrangement arrangement_of(std::span<const std::string_view> views) {
  Arrangement result;
  for (const std::string_view named : views) {
    const auto slash = named.find('/');
    const std::string_view id = named.substr(0, slash);
    if (!can_stand(id) || result.views.size() == most_views) continue;
    result.widths.push_back(usual_width(result.views.size()));
    result.views.emplace_back(id);
    result.modes.push_back(slash == named.npos ? 0 : mode_called(id, named.substr(slash + 1)));
  }
  if (!result.views.empty()) return result;
  result = {.views = {std::begin(first_views), std::end(first_views)}, .widths = {5, 6}, .modes = {0, 0}};
  return result;
}

std::string wrong_view(std::string_view named) {
  const auto slash = named.find('/');
  const std::string_view id = named.substr(0, slash);
  std::vector<std::string_view> known;
  if (!can_stand(id)) {
    for (const ViewRow& row : view_catalogue()) {
      if (can_stand(row.id)) known.push_back(row.id);
    }
    return fmt::format("there is no view \"{}\": there are {}", id, fmt::join(known, ", "));
  }
  const std::unique_ptr<View> view = find_view(id)->make();
  const auto modes = view->modes();
  if (slash == named.npos || std::ranges::count(modes, named.substr(slash + 1)) > 0) return "";
  if (modes.empty()) return fmt::format("{} has only one mode", id);
  return fmt::format("{} has no mode \"{}\": it has {}", id, named.substr(slash + 1), fmt::join(modes, "; "));
}

OpeningViews opening_views(std::span<const ModelInfo* const> models) {
  const auto all_have = [&](const auto& some) {
    return std::ranges::all_of(models, [&](const ModelInfo* model) { return std::ranges::any_of(model->layers, some); });
  };
  if (!all_have(&LayerInfo::has_state)) return {"attention", "predictions"};
  if (all_have([](const LayerInfo& layer) { return layer.partitions > 0; })) return {"routing", "state"};
  if (all_have(&LayerInfo::head_gates)) return {"head_gates", "state"};
  if (all_have([](const LayerInfo& layer) { return layer.memory == "gated delta rule"; })) return {"delta_rule", "state"};
  return {"decay", "state"};
}

Arrangement reopened(Arrangement arrangement, const OpeningViews& before, const OpeningViews& wanted) {
  if (!std::ranges::equal(arrangement.views, before)) return arrangement;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (arrangement.views[i] == wanted[i]) continue;
    arrangement.views[i] = wanted[i];
    arrangement.modes[i] = 0;
  }
  return arrangement;
}

std::span<const Preset> presets() {
  static const std::array<Preset, 6> all = {{
      {"opening", QT_TRANSLATE_NOOP("Commands", "Routing and state"), {}},
      {"teaching", QT_TRANSLATE_NOOP("Commands", "Teaching"), {"state", "routing", "predictions"}},
      {"needle", QT_TRANSLATE_NOOP("Commands", "Needle"), {"needle", "attention", "predictions", "routing"}},
      {"collapse", QT_TRANSLATE_NOOP("Commands", "Collapse"), {"similarity", "spectrum/Rank of partitions", "timeline", "decay"}},
      {"head-gates", QT_TRANSLATE_NOOP("Commands", "Head gates"), {"head_gates", "state", "decay"}},
      {"delta-rule", QT_TRANSLATE_NOOP("Commands", "Delta rule"), {"delta_rule", "state", "decay"}},
  }};
  return all;
}

Arrangement arrangement_of(const Preset& preset, const ModelInfo& model) {
  Arrangement result = arrangement_of(preset.views);
  const ModelInfo* const models[] = {&model};
  const OpeningViews wanted = opening_views(models);
  if (preset.views.empty()) result.views = {wanted[0], wanted[1]};
  const auto routing = std::ranges::find(result.views, first_views[0]);
  if (routing != result.views.end() && std::ranges::count(result.views, wanted[0]) == 0) *routing = wanted[0];
  return result;
}

QString to_text(const Arrangement& arrangement) {
  QJsonArray views, widths, modes;
  for (const std::string& id : arrangement.views) views.append(QString::fromStdString(id));
  for (const float width : arrangement.widths) widths.append(static_cast<double>(width));
  for (const std::size_t mode : arrangement.modes) modes.append(static_cast<int>(mode));
  const QJsonObject object{{"views", views}, {"widths", widths}, {"modes", modes}, {"upper", static_cast<double>(arrangement.upper)}};
  return QString::fromUtf8(QJsonDocument(object).toJson(QJsonDocument::Compact));
}

std::optional<Arrangement> arrangement_from(const QString& text) {
  const QJsonObject object = QJsonDocument::fromJson(text.toUtf8()).object();
  const QJsonArray views = object["views"].toArray(), widths = object["widths"].toArray(), modes = object["modes"].toArray();
  Arrangement result;
  for (qsizetype i = 0; i < views.size() && result.views.size() < most_views; ++i) {
    const std::string id = views[i].toString().toStdString();
    const double width = widths.at(i).toDouble();
    if (!can_stand(id) || width <= 0) continue;
    result.views.push_back(id);
    result.widths.push_back(static_cast<float>(width));
    result.modes.push_back(static_cast<std::size_t>(std::max(modes.at(i).toInt(), 0)));
  }
  if (result.views.empty()) return {};
  result.upper = std::clamp(static_cast<float>(object["upper"].toDouble(0.64)), 0.1f, 0.9f);
  return result;
}

}  // namespace statescope
