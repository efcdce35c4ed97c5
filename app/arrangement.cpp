#include "app/arrangement.h"

#include <QCoreApplication>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <algorithm>
#include <array>

#include "app/view_panel.h"

namespace statescope {
namespace {

constexpr std::string_view first_views[] = {"routing", "state"};

/// The large one has three fifths of the upper row.
float usual_width(std::size_t place) { return place == 0 ? 1.5f : 1.0f; }

bool can_stand(std::string_view id) { return id != strip_view && find_view(id) != nullptr; }

}  // namespace

Arrangement arrangement_of(std::span<const std::string_view> views) {
  Arrangement result;
  for (const std::string_view id : views) {
    if (!can_stand(id) || result.views.size() == most_views) continue;
    result.widths.push_back(usual_width(result.views.size()));
    result.views.emplace_back(id);
  }
  if (!result.views.empty()) return result;
  result = {{std::begin(first_views), std::end(first_views)}, {5, 6}};
  return result;
}

std::span<const Preset> presets() {
  static const std::array<Preset, 6> all = {{
      {"opening", QT_TRANSLATE_NOOP("Commands", "Routing and state"), {}},
      {"teaching", QT_TRANSLATE_NOOP("Commands", "Teaching"), {"state", "routing", "predictions"}},
      {"needle", QT_TRANSLATE_NOOP("Commands", "Needle"), {"needle", "attention", "predictions", "routing"}},
      {"collapse", QT_TRANSLATE_NOOP("Commands", "Collapse"), {"similarity", "spectrum", "timeline", "decay"}},
      {"head-gates", QT_TRANSLATE_NOOP("Commands", "Head gates"), {"head_gates", "state", "decay"}},
      {"delta-rule", QT_TRANSLATE_NOOP("Commands", "Delta rule"), {"delta_rule", "state", "decay"}},
  }};
  return all;
}

QString to_text(const Arrangement& arrangement) {
  QJsonArray views, widths;
  for (const std::string& id : arrangement.views) views.append(QString::fromStdString(id));
  for (const float width : arrangement.widths) widths.append(static_cast<double>(width));
  const QJsonObject object{{"views", views}, {"widths", widths}, {"upper", static_cast<double>(arrangement.upper)}};
  return QString::fromUtf8(QJsonDocument(object).toJson(QJsonDocument::Compact));
}

std::optional<Arrangement> arrangement_from(const QString& text) {
  const QJsonObject object = QJsonDocument::fromJson(text.toUtf8()).object();
  const QJsonArray views = object["views"].toArray(), widths = object["widths"].toArray();
  Arrangement result;
  for (qsizetype i = 0; i < views.size() && result.views.size() < most_views; ++i) {
    const std::string id = views[i].toString().toStdString();
    const double width = widths.at(i).toDouble();
    if (!can_stand(id) || width <= 0) continue;
    result.views.push_back(id);
    result.widths.push_back(static_cast<float>(width));
  }
  if (result.views.empty()) return {};
  result.upper = std::clamp(static_cast<float>(object["upper"].toDouble(0.64)), 0.1f, 0.9f);
  return result;
}

}  // namespace statescope
