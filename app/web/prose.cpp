#include "app/web/prose.h"

#include <QFont>
#include <QString>
#include <QTextBlock>
#include <QTextDocument>
#include <QTextList>

#include "app/common/page.h"

namespace statescope {
namespace {

std::string fragment_html(const QTextFragment& fragment) {
  std::string words = escaped(fragment.text().replace(QChar::LineSeparator, '\n').toStdString());
  const QTextCharFormat format = fragment.charFormat();
  if (format.fontFixedPitch()) words = "<code>" + words + "</code>";
  if (format.fontItalic()) words = "<em>" + words + "</em>";
  if (format.fontWeight() > QFont::Normal) words = "<strong>" + words + "</strong>";
  return words;
}

std::string block_html(const QTextBlock& block) {
  std::string words;
  for (auto part = block.begin(); !part.atEnd(); ++part) words += fragment_html(part.fragment());
  return words;
}

}  // namespace

std::string html_of_markdown(const std::string& markdown) {
  QTextDocument document;
  document.setMarkdown(QString::fromStdString(markdown).trimmed());
  std::string html, list;  // list: the element that is open
  const auto change_list = [&](const std::string& wanted) {
    if (list == wanted) return;
    if (!list.empty()) html += "</" + list + ">\n";
    if (!wanted.empty()) html += "<" + wanted + ">\n";
    list = wanted;
  };
  for (QTextBlock block = document.begin(); block.isValid(); block = block.next()) {
    const QTextList* const in = block.textList();
    change_list(!in ? "" : in->format().style() == QTextListFormat::ListDecimal ? "ol" : "ul");
    const std::string words = block_html(block);
    if (!words.empty()) html += in ? "<li>" + words + "</li>\n" : "<p>" + words + "</p>\n";
  }
  change_list("");
  return html;
}

}  // namespace statescope
