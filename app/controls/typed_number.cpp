#include "app/controls/typed_number.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <charconv>
#include <cmath>

namespace statescope {
namespace {

/// Digits of other scripts as 0 … 9, U+2212 as a hyphen, the Arabic decimal separator as a comma.
std::string ascii(const QString& text) {
  std::string plain;
  for (const QChar c : text.trimmed()) {
    if (c.isDigit())
      plain += static_cast<char>('0' + c.digitValue());
    else if (c == QChar(0x2212))
      plain += '-';
    else if (c == QChar(0x066B))
      plain += ',';
    else
      plain += c.unicode() < 128 ? static_cast<char>(c.unicode()) : '?';
  }
  return plain;
}

/// "1,234" and "12,345": a decimal comma for some, thousands for others.
bool may_be_thousands(const std::string& text) {
  static const QRegularExpression thousands(QStringLiteral("^[+-]?[1-9][0-9]{0,2},[0-9]{3}$"));
  return thousands.match(QString::fromStdString(text)).hasMatch();
}

}  // namespace

std::optional<double> typed_number(const QString& text) {
  std::string plain = ascii(text);
  if (may_be_thousands(plain)) return {};
  if (const std::size_t comma = plain.find(','); comma != plain.npos && plain.find('.') == plain.npos) plain[comma] = '.';
  if (plain.starts_with('+') && !plain.starts_with("+-")) plain.erase(0, 1);
  double number = 0;
  const char* const end = plain.data() + plain.size();
  const auto [read, error] = std::from_chars(plain.data(), end, number);
  const bool is_number = error == std::errc() && read == end && std::isfinite(number);
  return is_number ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> typed_whole(const QString& text) {
  constexpr double most = 9007199254740992.0;  // 2⁵³: every whole number up to here is a double
  const std::optional<double> number = typed_number(text);
  if (!number || *number != std::floor(*number) || std::abs(*number) > most) return {};
  return static_cast<std::int64_t>(*number);
}

QString why_no_number(const QString& text) {
  if (text.trimmed().isEmpty()) return QCoreApplication::translate("TypedNumber", "Type a number, such as 0.25 or -2.");
  if (may_be_thousands(ascii(text)))
    return QCoreApplication::translate("TypedNumber", "“%1” may be %2 or %3: type one of them.")
        .arg(text.trimmed(), QString(text.trimmed()).replace(',', '.'), text.trimmed().remove(','));
  return QCoreApplication::translate("TypedNumber", "“%1” is not a number. Type one such as 0.25 or -2.").arg(text.trimmed());
}

QString why_no_whole(const QString& text) {
  return typed_number(text) ? QCoreApplication::translate("TypedNumber", "“%1” is not a whole number.").arg(text.trimmed())
                            : why_no_number(text);
}

NumberBox::NumberBox(QWidget* parent) : QDoubleSpinBox(parent) { setKeyboardTracking(false); }

/// Without the unit, which may have been typed as well.
QString NumberBox::bare(const QString& text) const {
  const QString unit = suffix().trimmed();
  QString number = text.trimmed();
  while (!unit.isEmpty() && number.endsWith(unit)) number = number.chopped(unit.size()).trimmed();
  return number;
}

/// Nothing where it is none, or none of this field's.
std::optional<double> NumberBox::read(const QString& text) const {
  std::optional<double> number = typed_number(bare(text));
  if (decimals() == 0 && !typed_whole(bare(text))) number.reset();
  return number && *number >= minimum() && *number <= maximum() ? number : std::nullopt;
}

QString NumberBox::why_refused(const QString& text) const {
  const QString number = bare(text);
  const bool is_one = decimals() == 0 ? typed_whole(number).has_value() : typed_number(number).has_value();
  const QString why = !is_one && decimals() == 0 ? why_no_whole(number)
                      : !is_one                  ? why_no_number(number)
                                                 : QCoreApplication::translate("TypedNumber", "“%1” is not between %2 and %3.")
                                      .arg(number, textFromValue(minimum()), textFromValue(maximum()) + suffix());
  return QStringLiteral("%1: %2").arg(accessibleName(), why);
}

bool NumberBox::take_typed() {
  if (!read(text())) {
    Q_EMIT refused(why_refused(text()));
    selectAll();
    return false;
  }
  interpretText();
  return true;
}

QValidator::State NumberBox::validate(QString& text, int&) const { return read(text) ? QValidator::Acceptable : QValidator::Intermediate; }

double NumberBox::valueFromText(const QString& text) const { return read(text).value_or(value()); }

/// Where the field is left with something else in it.
void NumberBox::fixup(QString& text) const {
  Q_EMIT refused(why_refused(text));
  text = textFromValue(value()) + suffix();
}

}  // namespace statescope
