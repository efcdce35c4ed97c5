#include "app/controls/table_model.h"

#include <utility>

namespace statescope {

bool TableModel::set(Table table) {
  const bool same_shape = table.columns == table_.columns && table.rows.size() == table_.rows.size();
  if (!same_shape) beginResetModel();
  table_ = std::move(table);
  if (!same_shape)
    endResetModel();
  else if (!table_.rows.empty() && !table_.columns.empty())
    Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
  return !same_shape;
}

int TableModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(table_.rows.size()); }

int TableModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(table_.columns.size()); }

QVariant TableModel::data(const QModelIndex& index, int role) const {
  if (role != Qt::DisplayRole || !index.isValid()) return {};
  const std::vector<std::string>& row = table_.rows[static_cast<std::size_t>(index.row())];
  const auto column = static_cast<std::size_t>(index.column());
  return column < row.size() ? QString::fromStdString(row[column]) : QString();
}

QVariant TableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignLeft | Qt::AlignVCenter);
  if (role != Qt::DisplayRole || orientation != Qt::Horizontal || section >= columnCount()) return {};
  return QString::fromStdString(table_.columns[static_cast<std::size_t>(section)]);
}

}  // namespace statescope
