#include "app/runs/breakpoints.h"

#include <QCoreApplication>
#include <algorithm>
#include <utility>

namespace statescope {
namespace {

/// Small ones (ASCII), without white space: some tokenizers keep it, others do not.
std::string letters_of(std::string_view text) {
  std::string letters;
  for (const char c : text)
    if (c != ' ' && c != '\n' && c != '\t') letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return letters;
}

bool span_begins(const RunInfo& run, SpanKind kind, std::int64_t token) {
  return std::ranges::any_of(run.spans, [&](const TokenSpan& span) { return span.kind == kind && span.begin == token; });
}

}  // namespace

QString words_of(const Breakpoint& breakpoint) {
  switch (breakpoint.kind) {
    case Breakpoint::Kind::token:
      return QCoreApplication::translate("Breakpoints", "token %1").arg(breakpoint.number);
    case Breakpoint::Kind::needle:
      return QCoreApplication::translate("Breakpoints", "a needle begins");
    case Breakpoint::Kind::question:
      return QCoreApplication::translate("Breakpoints", "a question begins");
    case Breakpoint::Kind::answer:
      return QCoreApplication::translate("Breakpoints", "an answer begins");
    case Breakpoint::Kind::text:
      return QCoreApplication::translate("Breakpoints", "the text “%1”").arg(QString::fromStdString(breakpoint.text));
    case Breakpoint::Kind::partition:
      return QCoreApplication::translate("Breakpoints", "partition %1 is chosen").arg(breakpoint.number);
    case Breakpoint::Kind::survival:
      return QCoreApplication::translate("Breakpoints", "less than %1 % is left of the needle").arg(breakpoint.number);
  }
  return {};
}

bool text_begins_at(const RunInfo& run, std::int64_t token, std::string_view text) {
  const std::string wanted = letters_of(text);
  if (wanted.empty()) return false;
  std::string here = letters_of(run.tokens[static_cast<std::size_t>(token)].text);
  const std::size_t own = here.size();
  for (auto t = static_cast<std::size_t>(token) + 1; t < run.tokens.size() && here.size() < own + wanted.size(); ++t)
    here += letters_of(run.tokens[t].text);
  return here.find(wanted) < own;
}

bool stops_at(const Breakpoint& breakpoint, const Known& known, std::int64_t token) {
  switch (breakpoint.kind) {
    case Breakpoint::Kind::token:
      return token == breakpoint.number;
    case Breakpoint::Kind::needle:
      return span_begins(known.run, SpanKind::needle, token);
    case Breakpoint::Kind::question:
      return span_begins(known.run, SpanKind::question, token);
    case Breakpoint::Kind::answer:
      return span_begins(known.run, SpanKind::answer, token);
    case Breakpoint::Kind::text:
      return text_begins_at(known.run, token, breakpoint.text);
    case Breakpoint::Kind::partition: {
      const std::int64_t partition = breakpoint.number - 1;  // partitions are called 1 … N
      return known.routing && partition >= 0 && partition < known.routing->partitions && token < known.routing->tokens() &&
             known.routing->selected_at(token, partition);
    }
    case Breakpoint::Kind::survival: {
      const std::int64_t at = token - known.kept_from;
      if (at < 0 || at >= std::ssize(known.kept)) return false;
      const auto less = [&](std::int64_t i) {
        return known.kept[static_cast<std::size_t>(i)] * 100 < static_cast<float>(breakpoint.number);
      };
      return less(at) && (at == 0 || !less(at - 1));
    }
  }
  return false;
}

const Breakpoint* breakpoint_at(std::span<const Breakpoint> breakpoints, const Known& known, std::int64_t token) {
  const auto found = std::ranges::find_if(breakpoints, [&](const Breakpoint& one) { return one.enabled && stops_at(one, known, token); });
  return found == breakpoints.end() ? nullptr : &*found;
}

std::optional<std::int64_t> next_stop(std::span<const Breakpoint> breakpoints, const Known& known, std::int64_t from, int direction) {
  const auto tokens = std::ssize(known.run.tokens);
  for (std::int64_t token = from + direction; token >= 0 && token < tokens; token += direction) {
    const bool marked = std::ranges::any_of(known.run.spans, [token](const TokenSpan& span) { return span.begin == token; });
    if (marked || breakpoint_at(breakpoints, known, token)) return token;
  }
  return {};
}

}  // namespace statescope
