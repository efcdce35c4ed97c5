#include "app/runs/interventions.h"

#include <QCoreApplication>
#include <algorithm>

#include "views/parts.h"

namespace statescope {
namespace {

using enum InterventionKind;

constexpr InterventionRow rows[] = {
    {zero_row, QT_TRANSLATE_NOOP("Interventions", "Zero this row"), ""},
    {zero_head, QT_TRANSLATE_NOOP("Interventions", "Zero this head"), ""},
    {zero_partition, QT_TRANSLATE_NOOP("Interventions", "Zero this partition"), ""},
    {scale_row, QT_TRANSLATE_NOOP("Interventions", "Scale this row"), QT_TRANSLATE_NOOP("Interventions", "Times")},
    {scale_head, QT_TRANSLATE_NOOP("Interventions", "Scale this head"), QT_TRANSLATE_NOOP("Interventions", "Times")},
    {scale_partition, QT_TRANSLATE_NOOP("Interventions", "Scale this partition"), QT_TRANSLATE_NOOP("Interventions", "Times")},
    {freeze_decay, QT_TRANSLATE_NOOP("Interventions", "Freeze the decay"), ""},
    {scale_decay, QT_TRANSLATE_NOOP("Interventions", "Scale the decay"), QT_TRANSLATE_NOOP("Interventions", "log α times")},
    {top_k, QT_TRANSLATE_NOOP("Interventions", "Change the number of partitions (top-k)"),
     QT_TRANSLATE_NOOP("Interventions", "Partitions")},
    {writers, QT_TRANSLATE_NOOP("Interventions", "Change the number of writers"), QT_TRANSLATE_NOOP("Interventions", "Partitions")},
    {readers, QT_TRANSLATE_NOOP("Interventions", "Change the number of readers"), QT_TRANSLATE_NOOP("Interventions", "Partitions")},
    {route, QT_TRANSLATE_NOOP("Interventions", "Route everything to a partition"), QT_TRANSLATE_NOOP("Interventions", "Partition")},
    {sharpen_gates, QT_TRANSLATE_NOOP("Interventions", "Sharpen or flatten the head gates"),
     QT_TRANSLATE_NOOP("Interventions", "λ (1: as is)")},
    {replace_token, QT_TRANSLATE_NOOP("Interventions", "Replace this token"), QT_TRANSLATE_NOOP("Interventions", "By")},
    {import_state, QT_TRANSLATE_NOOP("Interventions", "Import the state of another run"), QT_TRANSLATE_NOOP("Interventions", "From")},
};

/// S ← factor · S of the cursor's partition; of all that the layer keeps where it has none.
ScaleState scaled_partition(const LayerInfo& layer, const Cursor& cursor, float factor) {
  ScaleState scale{.partition = {}, .head = {}, .row = {}, .factor = factor};
  if (layer.partitions > 0) scale.partition = slot_identity(layer, cursor.slot);
  return scale;
}
ScaleState scaled_row(const LayerInfo& layer, const Cursor& cursor, float factor) {
  ScaleState scale = scaled_partition(layer, cursor, factor);
  scale.row = std::max<std::int64_t>(cursor.row, 0);
  scale.head = cursor.head;
  return scale;
}
ScaleState scaled_head(const Cursor& cursor, float factor) { return {.partition = {}, .head = cursor.head, .row = {}, .factor = factor}; }

Change change_here(InterventionKind kind, const LayerInfo& layer, const Cursor& cursor, double value) {
  const auto factor = static_cast<float>(value);
  const auto count = static_cast<std::int64_t>(value);
  switch (kind) {
    case zero_row:
      return scaled_row(layer, cursor, 0);
    case zero_head:
      return scaled_head(cursor, 0);
    case zero_partition:
      return scaled_partition(layer, cursor, 0);
    case scale_row:
      return scaled_row(layer, cursor, factor);
    case scale_head:
      return scaled_head(cursor, factor);
    case scale_partition:
      return scaled_partition(layer, cursor, factor);
    case freeze_decay:
      return ScaleDecay{0};
    case scale_decay:
      return ScaleDecay{factor};
    case top_k:
      return ChangeTopK{count, count};
    case writers:
      return ChangeTopK{count, {}};
    case readers:
      return ChangeTopK{{}, count};
    case route:
      return ForceRouting{{count}};
    case sharpen_gates:
      return SharpenGates{factor};
    case replace_token:
      return ReplaceToken{static_cast<std::int32_t>(value)};
    case import_state:
      return ImportState{count, {}};
  }
  return ScaleDecay{factor};
}

}  // namespace

std::span<const InterventionRow> intervention_rows() { return rows; }

Intervention intervention_here(InterventionKind kind, const LayerInfo& layer, const Cursor& cursor, double value) {
  Intervention intervention{.change = change_here(kind, layer, cursor, value), .at = cursor.token, .until = {}, .layer = {}};
  if (kind != replace_token) intervention.layer = cursor.layer;
  return intervention;
}

QString words_of_branch(const BranchInfo& branch) {
  if (branch.number == 0) return {};
  return QCoreApplication::translate("Interventions", "branch %1: %2")
      .arg(branch.number)
      .arg(QString::fromStdString(joined(branch.interventions, " and ")));
}

}  // namespace statescope
