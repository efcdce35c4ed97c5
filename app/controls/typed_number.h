// Numbers as people type them into the window. What is no number is never taken for one.
#pragma once

#include <QDoubleSpinBox>
#include <QString>
#include <cstdint>
#include <optional>

namespace statescope {

/// "0.25", "0,25", "-3", "1e-3", in the digits of any script. Nothing where it is not a finite number, or not clear which: "1,234" may be
/// 1.234 or 1234.
std::optional<double> typed_number(const QString& text);
/// The same of a whole number: nothing for "1.5".
std::optional<std::int64_t> typed_whole(const QString& text);

/// Why `text` is no number, and what would be one.
QString why_no_number(const QString& text);
QString why_no_whole(const QString& text);

/// A field with arrows that reads what is typed as typed_number does, once it has been typed; without decimals, as typed_whole. What is no
/// number, or too large or too small, is refused and gives back the value of before.
class NumberBox : public QDoubleSpinBox {
  Q_OBJECT

 public:
  explicit NumberBox(QWidget* parent = nullptr);
  /// What was typed becomes the value. False where it cannot: that is said, and what was typed stays to be mended.
  bool take_typed();

 Q_SIGNALS:
  void refused(const QString& why) const;

 protected:
  QValidator::State validate(QString& text, int& position) const override;
  double valueFromText(const QString& text) const override;
  void fixup(QString& text) const override;

 private:
  QString bare(const QString& text) const;
  std::optional<double> read(const QString& text) const;
  QString why_refused(const QString& text) const;
};

}  // namespace statescope
