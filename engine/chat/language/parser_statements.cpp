#include <fmt/format.h>

#include <utility>

#include "engine/chat/language/parser.h"

namespace statescope::chat {
namespace {

using StatementKind = Statement::Kind;
constexpr std::size_t kDeepestStatement = 100;

Statement statement_of(StatementKind kind, std::size_t line) {
  Statement out;
  out.kind = kind;
  out.line = line;
  return out;
}

/// Of Jinja, but not for templates from strangers, or not of this program.
const std::set<std::string> kRefused{"autoescape", "debug", "do", "extends", "from", "import", "include", "trans"};

bool assigns_loop(const Target& target) { return target.name == "loop" || std::ranges::any_of(target.parts, assigns_loop); }

}  // namespace

const Token& Parser::take() {
  const Token& token = here();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::is_sign(std::string_view sign, std::size_t ahead) const {
  return here(ahead).kind == Token::Kind::sign && here(ahead).text == sign;
}

bool Parser::is_name(std::string_view name, std::size_t ahead) const {
  return here(ahead).kind == Token::Kind::name && here(ahead).text == name;
}

bool Parser::skip_sign(std::string_view sign) {
  const bool is = is_sign(sign);
  if (is) take();
  return is;
}

bool Parser::skip_name(std::string_view name) {
  const bool is = is_name(name);
  if (is) take();
  return is;
}

void Parser::expect_sign(std::string_view sign) {
  if (!skip_sign(sign)) fail(fmt::format("expected '{}'{}", sign, here().text.empty() ? "" : fmt::format(", found '{}'", here().text)));
}

std::string Parser::expect_name() {
  if (here().kind != Token::Kind::name) fail("a name is expected");
  return take().text;
}

void Parser::expect(Token::Kind kind) {
  if (here().kind != kind) fail(here().text.empty() ? "the tag is not complete" : fmt::format("unexpected '{}'", here().text));
  take();
}

Parser::Deeper::Deeper(Parser& parser) : parser_(parser) {
  if (++parser_.depth_ > 3 * kDeepestStatement) parser_.fail("nested too deep");
}

void Parser::refuse_since(std::size_t count) const {
  if (unknown_.size() > count) throw SyntaxError(unknown_[count].line, unknown_[count].what);
}

Body Parser::parse() {
  Body body = statements({});
  refuse_since(0);
  return body;
}

/// Up to a tag of these names, which is next then; none: to the end.
Body Parser::statements(const std::set<std::string>& ends) {
  const Deeper deeper(*this);
  Body body;
  for (;;) {
    if (here().kind == Token::Kind::end) {
      if (!ends.empty()) fail(fmt::format("the template ends where '{}' is missing", *ends.rbegin()));
      return body;
    }
    if (here().kind == Token::Kind::block_begin && here(1).kind == Token::Kind::name && ends.contains(here(1).text)) {
      take();
      return body;
    }
    body.push_back(statement());
  }
}

/// Behind the rest of an opening tag.
Body Parser::tag_body(const std::set<std::string>& ends) {
  skip_sign(":");
  expect(Token::Kind::block_end);
  return statements(ends);
}

/// One in which unknown filters are refused even within an `if`.
Body Parser::scoped_body(const std::set<std::string>& ends) {
  const std::size_t known = unknown_.size();
  Body body = tag_body(ends);
  refuse_since(known);
  return body;
}

Statement Parser::statement() {
  const Token& token = take();
  if (token.kind == Token::Kind::data) {
    Statement out = statement_of(StatementKind::text, token.line);
    out.text = token.text;
    return out;
  }
  if (token.kind == Token::Kind::variable_begin) {
    Statement out = statement_of(StatementKind::print, token.line);
    out.expression = tuple(true);
    expect(Token::Kind::variable_end);
    return out;
  }
  if (here().kind != Token::Kind::name) fail("the name of a tag is expected");
  Statement out = tag(here().text);
  expect(Token::Kind::block_end);
  return out;
}

Statement Parser::tag(const std::string& name) {
  static const std::map<std::string, Statement (Parser::*)()> tags{{"if", &Parser::condition},    {"for", &Parser::loop},
                                                                   {"set", &Parser::set},         {"macro", &Parser::macro},
                                                                   {"call", &Parser::call_block}, {"filter", &Parser::filter_block},
                                                                   {"with", &Parser::with},       {"block", &Parser::block},
                                                                   {"print", &Parser::print},     {"generation", &Parser::generation}};
  if (name == "break") return jump(StatementKind::break_loop);
  if (name == "continue") return jump(StatementKind::continue_loop);
  if (kRefused.contains(name)) fail(fmt::format("the tag '{}' is not supported", name));
  const auto found = tags.find(name);
  if (found == tags.end()) fail(fmt::format("unknown tag '{}'", name));
  return (this->*found->second)();
}

Statement Parser::jump(StatementKind kind) {
  const Token& token = take();
  if (loops_ == 0) fail(fmt::format("'{}' outside a loop", token.text));
  return statement_of(kind, token.line);
}

Statement Parser::condition() {
  const std::size_t known = unknown_.size();
  Statement out = statement_of(StatementKind::condition, here().line);
  do {
    take();
    ExpressionPtr test = tuple(false);
    out.branches.emplace_back(std::move(test), tag_body({"elif", "else", "endif"}));
  } while (is_name("elif"));
  if (take().text == "else") {
    out.otherwise = tag_body({"endif"});
    take();
  }
  forgive_since(known);
  return out;
}

Statement Parser::loop() {
  Statement out = statement_of(StatementKind::loop, take().line);
  out.target = target(false, "in");
  if (assigns_loop(out.target)) fail("'loop' cannot be assigned to");
  if (!skip_name("in")) fail("'in' is missing in a for");
  out.expression = tuple(false, false, "recursive");
  const std::size_t known = unknown_.size();
  if (skip_name("if")) out.test = expression();
  refuse_since(known);
  out.recursive = skip_name("recursive");
  ++loops_;
  out.body = scoped_body({"endfor", "else"});
  --loops_;
  if (take().text == "else") {
    out.otherwise = scoped_body({"endfor"});
    take();
  }
  return out;
}

Target Parser::target_part(bool with_namespace) {
  if (skip_sign("(")) {
    Target out = target(with_namespace, ")");
    expect_sign(")");
    return out;
  }
  Target out;
  if (here().kind != Token::Kind::name) fail("only names can be assigned to");
  out.name = take().text;
  for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
    if (out.name == constant) fail(fmt::format("'{}' cannot be assigned to", constant));
  }
  if (with_namespace && skip_sign(".")) out.attribute = expect_name();
  return out;
}

/// Names with commas between them, up to the name or sign `end`, or where no comma follows.
Target Parser::target(bool with_namespace, const std::string& end) {
  const Deeper deeper(*this);
  Target out;
  do {
    if (!out.parts.empty() && (is_name(end) || is_sign(")") || here().kind == Token::Kind::block_end)) break;
    out.parts.push_back(target_part(with_namespace));
    out.tuple = out.tuple || is_sign(",");
  } while (skip_sign(","));
  if (out.tuple) return out;
  Target one = std::move(out.parts[0]);
  return one;
}

Statement Parser::set() {
  Statement out = statement_of(StatementKind::set, take().line);
  out.target = target(true);
  if (loops_ > 0 && assigns_loop(out.target)) fail("'loop' cannot be assigned to in a for");
  if (skip_sign("=")) {
    out.expression = tuple(true);
    return out;
  }
  out.kind = StatementKind::set_block;
  while (skip_sign("|")) out.expression = filter(std::move(out.expression));
  out.body = scoped_body({"endset"});
  take();
  return out;
}

void Parser::signature(MacroBody& macro) {
  expect_sign("(");
  while (!is_sign(")")) {
    if (!macro.parameters.empty()) expect_sign(",");
    Parameter parameter{expect_name(), nullptr};
    if (skip_sign("=")) {
      parameter.otherwise = expression();
    } else if (!macro.parameters.empty() && macro.parameters.back().otherwise) {
      fail("a parameter without a default follows one with a default");
    }
    macro.parameters.push_back(std::move(parameter));
  }
  expect_sign(")");
}

void Parser::macro_body(MacroBody& macro, const std::string& end) {
  auto before = mentions_;
  const std::size_t loops = std::exchange(loops_, 0);
  macro.body = scoped_body({end});
  take();
  loops_ = loops;
  const auto mentioned = [&](const char* name) {
    const bool own = std::ranges::any_of(macro.parameters, [&](const Parameter& parameter) { return parameter.name == name; });
    return !own && mentions_[name] > before[name];
  };
  macro.caller = mentioned("caller");
  macro.varargs = mentioned("varargs");
  macro.kwargs = mentioned("kwargs");
}

Statement Parser::macro() {
  Statement out = statement_of(StatementKind::macro, take().line);
  out.macro = std::make_shared<MacroBody>();
  out.macro->name = expect_name();
  const std::size_t known = unknown_.size();
  signature(*out.macro);
  refuse_since(known);
  macro_body(*out.macro, "endmacro");
  return out;
}

Statement Parser::call_block() {
  Statement out = statement_of(StatementKind::call_block, take().line);
  out.macro = std::make_shared<MacroBody>();
  if (is_sign("(")) signature(*out.macro);
  out.expression = expression();
  if (out.expression->kind != Expression::Kind::call) fail("a call is expected");
  macro_body(*out.macro, "endcall");
  return out;
}

Statement Parser::filter_block() {
  const std::size_t known = unknown_.size();
  Statement out = statement_of(StatementKind::filter, take().line);
  out.expression = filter(nullptr);
  while (skip_sign("|")) out.expression = filter(std::move(out.expression));
  out.body = tag_body({"endfilter"});
  take();
  refuse_since(known);
  return out;
}

Statement Parser::with() {
  Statement out = statement_of(StatementKind::with, take().line);
  while (here().kind != Token::Kind::block_end && !is_sign(":")) {
    if (!out.assignments.empty()) expect_sign(",");
    Target name = target_part(false);
    expect_sign("=");
    out.assignments.emplace_back(std::move(name), expression());
  }
  out.body = scoped_body({"endwith"});
  take();
  return out;
}

/// Prints its body: nothing extends this template.
Statement Parser::block() {
  Statement out = statement_of(StatementKind::block, take().line);
  const std::string name = expect_name();
  out.text = name;
  if (is_name("scoped") || is_name("required")) fail(fmt::format("a {} block is not supported", here().text));
  const std::size_t loops = std::exchange(loops_, 0);
  out.body = scoped_body({"endblock"});
  loops_ = loops;
  take();
  skip_name(name);
  return out;
}

Statement Parser::print() {
  const std::size_t line = take().line;
  Statement out = statement_of(StatementKind::print, line);
  out.expression = std::make_unique<Expression>();
  out.expression->kind = Expression::Kind::joined;
  out.expression->line = line;
  while (here().kind != Token::Kind::block_end) {
    if (!out.expression->parts.empty()) expect_sign(",");
    out.expression->parts.push_back(expression());
  }
  return out;
}

/// What the assistant wrote, marked for training: a call block around its body.
Statement Parser::generation() {
  Statement out = statement_of(StatementKind::scope, take().line);
  const std::size_t loops = std::exchange(loops_, 0);
  out.body = scoped_body({"endgeneration"});
  loops_ = loops;
  take();
  return out;
}

}  // namespace statescope::chat
