// A view's table for Qt: the keyboard's and the screen reader's way to the values.
#pragma once

#include <QAbstractTableModel>

#include "views/view.h"

namespace statescope {

class TableModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  using QAbstractTableModel::QAbstractTableModel;

  /// Keeps selection and scrolling where the shape stays the same; true where it does not.
  bool set(Table table);

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  Table table_;
};

}  // namespace statescope
