#include <fmt/format.h>

#include <utility>

#include "engine/chat/filters/filters.h"
#include "engine/chat/filters/tests_of_values.h"
#include "engine/chat/language/parser.h"

namespace statescope::chat {
namespace {

using Kind = Expression::Kind;
constexpr std::size_t kDeepestExpression = 400;

ExpressionPtr node(Kind kind, std::size_t line, std::string name = "") {
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->line = line;
  out->name = std::move(name);
  return out;
}

/// Measures how deep it is now that it has all its parts. Throws SyntaxError beyond what recursion can follow.
ExpressionPtr whole(ExpressionPtr out) {
  const auto measure = [&](const ExpressionPtr& part) {
    if (part) out->depth = std::max(out->depth, part->depth + 1);
  };
  for (const auto& part : out->parts) measure(part);
  for (const auto& part : out->arguments.positional) measure(part);
  for (const auto& [name, part] : out->arguments.named) measure(part);
  measure(out->arguments.all_positional);
  measure(out->arguments.all_named);
  if (out->depth > kDeepestExpression) throw SyntaxError(out->line, "an expression that is nested too deep");
  return out;
}

template <class... Parts>
ExpressionPtr node_of(Kind kind, std::size_t line, Parts... parts) {
  ExpressionPtr out = node(kind, line);
  (out->parts.push_back(std::move(parts)), ...);
  return whole(std::move(out));
}

ExpressionPtr constant(std::size_t line, Value value) {
  ExpressionPtr out = node(Kind::constant, line);
  out->value = std::move(value);
  return out;
}

}  // namespace

ExpressionPtr Parser::tuple(bool with_condition, bool parentheses, const std::string& end) {
  const std::size_t line = here().line;
  const auto at_end = [&] {
    return here().kind == Token::Kind::variable_end || here().kind == Token::Kind::block_end || is_sign(")") ||
           (!end.empty() && is_name(end));
  };
  ExpressionPtr out = node(Kind::tuple, line);
  bool comma = false;
  while (!at_end()) {
    out->parts.push_back(expression(with_condition));
    if (!is_sign(",")) break;
    comma = true;
    take();
  }
  if (!comma && !out->parts.empty()) return std::move(out->parts[0]);
  if (!comma && !parentheses) fail("an expression is missing");
  return whole(std::move(out));
}

ExpressionPtr Parser::expression(bool with_condition) { return with_condition ? conditional() : either(); }

ExpressionPtr Parser::conditional() {
  const Deeper deeper(*this);
  const std::size_t line = here().line, known = unknown_.size();
  ExpressionPtr out = either();
  while (skip_name("if")) {
    ExpressionPtr test = either();
    ExpressionPtr otherwise = skip_name("else") ? conditional() : nullptr;
    out = node_of(Kind::condition, line, std::move(out), std::move(test), std::move(otherwise));
    forgive_since(known);
  }
  return out;
}

ExpressionPtr Parser::either() {
  ExpressionPtr left = both();
  while (is_name("or")) {
    const std::size_t line = take().line;
    left = node_of(Kind::either, line, std::move(left), both());
  }
  return left;
}

ExpressionPtr Parser::both() {
  ExpressionPtr left = negation();
  while (is_name("and")) {
    const std::size_t line = take().line;
    left = node_of(Kind::both, line, std::move(left), negation());
  }
  return left;
}

ExpressionPtr Parser::negation() {
  const Deeper deeper(*this);
  if (!is_name("not")) return comparison();
  const std::size_t line = take().line;
  return node_of(Kind::negation, line, negation());
}

ExpressionPtr Parser::comparison() {
  ExpressionPtr out = node(Kind::comparison, here().line);
  out->parts.push_back(sum());
  const auto sign = [&]() -> std::string {
    for (const std::string_view one : {"==", "!=", "<", "<=", ">", ">="}) {
      if (skip_sign(one)) return std::string(one);
    }
    if (skip_name("in")) return "in";
    if (!is_name("not") || !is_name("in", 1)) return "";
    at_ += 2;
    return "not in";
  };
  for (std::string one = sign(); !one.empty(); one = sign()) {
    out->signs.push_back(one);
    out->parts.push_back(sum());
  }
  return out->signs.empty() ? std::move(out->parts[0]) : whole(std::move(out));
}

ExpressionPtr Parser::chain(std::initializer_list<std::string_view> signs, ExpressionPtr (Parser::*next)()) {
  ExpressionPtr left = (this->*next)();
  while (std::ranges::any_of(signs, [&](std::string_view sign) { return is_sign(sign); })) {
    const Token& sign = take();
    ExpressionPtr out = node(Kind::binary, sign.line, sign.text);
    out->parts.push_back(std::move(left));
    out->parts.push_back((this->*next)());
    left = whole(std::move(out));
  }
  return left;
}

ExpressionPtr Parser::sum() { return chain({"+", "-"}, &Parser::joined); }

ExpressionPtr Parser::joined() {
  ExpressionPtr out = node(Kind::joined, here().line);
  do {
    out->parts.push_back(product());
  } while (skip_sign("~"));
  return out->parts.size() == 1 ? std::move(out->parts[0]) : whole(std::move(out));
}

ExpressionPtr Parser::product() { return chain({"*", "/", "//", "%"}, &Parser::power); }

ExpressionPtr Parser::power() {
  ExpressionPtr left = unary();
  while (is_sign("**")) {
    ExpressionPtr out = node(Kind::binary, take().line, "**");
    out->parts.push_back(std::move(left));
    out->parts.push_back(unary());
    left = whole(std::move(out));
  }
  return left;
}

ExpressionPtr Parser::unary(bool with_filter) {
  const Deeper deeper(*this);
  const std::size_t line = here().line;
  ExpressionPtr out;
  if (is_sign("-") || is_sign("+")) {
    const bool minus = take().text == "-";
    out = node_of(minus ? Kind::negative : Kind::positive, line, unary(false));
  } else {
    out = primary();
  }
  out = postfix(std::move(out));
  return with_filter ? filters(std::move(out)) : std::move(out);
}

ExpressionPtr Parser::named(const Token& token) {
  const std::string& name = token.text;
  if (name == "true" || name == "True") return constant(token.line, true);
  if (name == "false" || name == "False") return constant(token.line, false);
  if (name == "none" || name == "None") return constant(token.line, {});
  if (name == "caller" || name == "varargs" || name == "kwargs") ++mentions_[name];
  return node(Kind::name, token.line, name);
}

ExpressionPtr Parser::primary() {
  if (here().kind == Token::Kind::name) return named(take());
  if (here().kind == Token::Kind::number) {
    const Token& token = take();
    return constant(token.line, token.number);
  }
  if (here().kind == Token::Kind::string) {
    const std::size_t line = here().line;
    std::string text;
    while (here().kind == Token::Kind::string) text += take().text;
    return constant(line, text);
  }
  if (is_sign("[")) return list();
  if (is_sign("{")) return dict();
  if (!skip_sign("(")) fail(here().text.empty() ? "an expression is missing" : fmt::format("unexpected '{}'", here().text));
  ExpressionPtr out = tuple(true, true);
  expect_sign(")");
  return out;
}

ExpressionPtr Parser::list() {
  ExpressionPtr out = node(Kind::list, take().line);
  while (!is_sign("]")) {
    if (!out->parts.empty()) expect_sign(",");
    if (is_sign("]")) break;
    out->parts.push_back(expression());
  }
  expect_sign("]");
  return whole(std::move(out));
}

ExpressionPtr Parser::dict() {
  ExpressionPtr out = node(Kind::dict, take().line);
  while (!is_sign("}")) {
    if (!out->parts.empty()) expect_sign(",");
    if (is_sign("}")) break;
    out->parts.push_back(expression());
    expect_sign(":");
    out->parts.push_back(expression());
  }
  expect_sign("}");
  return whole(std::move(out));
}

ExpressionPtr Parser::postfix(ExpressionPtr value) {
  for (;;) {
    if (is_sign(".") || is_sign("[")) {
      value = subscript(std::move(value));
    } else if (is_sign("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr Parser::subscript(ExpressionPtr value) {
  const Token& mark = take();
  if (mark.text == "[") return bracket(std::move(value));
  const Token& name = take();
  if (name.kind == Token::Kind::name) {
    ExpressionPtr out = node(Kind::attribute, mark.line, name.text);
    out->parts.push_back(std::move(value));
    return whole(std::move(out));
  }
  if (name.kind != Token::Kind::number || !name.number.is_integer())
    throw SyntaxError(name.line, "a name or a number is expected after '.'");
  return node_of(Kind::item, mark.line, std::move(value), constant(name.line, name.number));
}

/// Behind `[`: a key, several (a tuple), or from:to:step.
ExpressionPtr Parser::bracket(ExpressionPtr value) {
  const std::size_t line = here().line;
  const auto bound = [&]() -> ExpressionPtr { return is_sign(":") || is_sign("]") || is_sign(",") ? nullptr : expression(); };
  ExpressionPtr from = is_sign(":") ? nullptr : expression();
  if (is_sign(":")) {
    take();
    ExpressionPtr to = bound();
    ExpressionPtr step = skip_sign(":") ? bound() : nullptr;
    if (is_sign(",")) fail("a slice among several keys is not supported");
    expect_sign("]");
    return node_of(Kind::slice, line, std::move(value), std::move(from), std::move(to), std::move(step));
  }
  if (skip_sign("]")) return node_of(Kind::item, line, std::move(value), std::move(from));
  ExpressionPtr keys = node_of(Kind::tuple, line, std::move(from));
  while (skip_sign(",")) keys->parts.push_back(expression());
  expect_sign("]");
  return node_of(Kind::item, line, std::move(value), whole(std::move(keys)));
}

GivenArguments Parser::arguments() {
  GivenArguments out;
  const auto ensure = [&](bool right) {
    if (!right) fail("invalid syntax for a call");
  };
  expect_sign("(");
  for (bool first = true; !is_sign(")"); first = false) {
    if (!first) expect_sign(",");
    if (is_sign(")")) break;
    if (skip_sign("*")) {
      ensure(!out.all_positional && !out.all_named);
      out.all_positional = expression();
    } else if (skip_sign("**")) {
      ensure(!out.all_named);
      out.all_named = expression();
    } else if (here().kind == Token::Kind::name && is_sign("=", 1)) {
      ensure(!out.all_named);
      std::string name = take().text;
      take();
      ensure(std::ranges::none_of(out.named, [&](const auto& other) { return other.first == name; }));
      out.named.emplace_back(std::move(name), expression());
    } else {
      ensure(!out.all_positional && !out.all_named && out.named.empty());
      out.positional.push_back(expression());
    }
  }
  expect_sign(")");
  return out;
}

ExpressionPtr Parser::call(ExpressionPtr value) {
  ExpressionPtr out = node(Kind::call, here().line);
  out->parts.push_back(std::move(value));
  out->arguments = arguments();
  return whole(std::move(out));
}

ExpressionPtr Parser::filters(ExpressionPtr value) {
  for (;;) {
    if (is_sign("|")) {
      take();
      value = filter(std::move(value));
    } else if (is_name("is")) {
      value = test(std::move(value));
    } else if (is_sign("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

std::string Parser::dotted_name() {
  std::string name = expect_name();
  while (skip_sign(".")) name += "." + expect_name();
  return name;
}

/// Behind `|`.
ExpressionPtr Parser::filter(ExpressionPtr value) {
  ExpressionPtr out = node(Kind::filter, here().line);
  out->name = dotted_name();
  if (!is_filter(out->name)) unknown_.push_back({out->line, fmt::format("no filter named '{}'", out->name)});
  out->parts.push_back(std::move(value));
  if (is_sign("(")) out->arguments = arguments();
  return whole(std::move(out));
}

ExpressionPtr Parser::test(ExpressionPtr value) {
  ExpressionPtr out = node(Kind::test, take().line);
  const bool negated = skip_name("not");
  out->name = dotted_name();
  if (!is_test(out->name)) unknown_.push_back({out->line, fmt::format("no test named '{}'", out->name)});
  out->parts.push_back(std::move(value));
  const Token::Kind kind = here().kind;
  const bool operand =
      kind == Token::Kind::name || kind == Token::Kind::string || kind == Token::Kind::number || is_sign("[") || is_sign("{");
  if (is_sign("(")) {
    out->arguments = arguments();
  } else if (operand && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) fail("tests with 'is' cannot be chained");
    out->arguments.positional.push_back(postfix(primary()));
  }
  out = whole(std::move(out));
  if (!negated) return out;
  const std::size_t line = out->line;
  return node_of(Kind::negation, line, std::move(out));
}

}  // namespace statescope::chat
