// Tokens into a tree, as Jinja's parser does.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/chat/language/lexer.h"
#include "engine/chat/language/syntax.h"

namespace statescope::chat {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  /// The whole template. Throws SyntaxError; what is not supported is named.
  Body parse();

 private:
  // parser_statements.cpp
  Body statements(const std::set<std::string>& ends);
  Body tag_body(const std::set<std::string>& ends);
  Body scoped_body(const std::set<std::string>& ends);
  Statement statement();
  Statement tag(const std::string& name);
  Statement condition();
  Statement loop();
  Statement set();
  Statement macro();
  Statement call_block();
  Statement filter_block();
  Statement with();
  Statement block();
  Statement print();
  Statement generation();
  Statement jump(Statement::Kind kind);
  void macro_body(MacroBody& macro, const std::string& end);
  void signature(MacroBody& macro);
  Target target(bool with_namespace, const std::string& end = "");
  Target target_part(bool with_namespace);

  // parser_expressions.cpp
  ExpressionPtr tuple(bool with_condition, bool parentheses = false, const std::string& end = "");
  ExpressionPtr expression(bool with_condition = true);
  ExpressionPtr conditional();
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr joined();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filter = true);
  ExpressionPtr primary();
  ExpressionPtr named(const Token& token);
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr subscript(ExpressionPtr value);
  ExpressionPtr bracket(ExpressionPtr value);
  ExpressionPtr call(ExpressionPtr value);
  ExpressionPtr filters(ExpressionPtr value);
  ExpressionPtr filter(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  ExpressionPtr chain(std::initializer_list<std::string_view> signs, ExpressionPtr (Parser::*next)());
  GivenArguments arguments();
  std::string dotted_name();

  const Token& here(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& take();
  bool is_sign(std::string_view sign, std::size_t ahead = 0) const;
  bool is_name(std::string_view name, std::size_t ahead = 0) const;
  bool skip_sign(std::string_view sign);
  bool skip_name(std::string_view name);
  void expect_sign(std::string_view sign);
  std::string expect_name();
  void expect(Token::Kind kind);
  [[noreturn]] void fail(const std::string& what) const { throw SyntaxError(here().line, what); }

  /// Throws beyond a depth of trees that recursion can follow.
  class Deeper {
   public:
    explicit Deeper(Parser& parser);
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Parser& parser_;
  };

  /// Filters and tests that nobody knows. In an `if`, and only there, they are an error no sooner than they are reached.
  struct Unknown {
    std::size_t line;
    std::string what;
  };
  void forgive_since(std::size_t count) { unknown_.resize(std::min(count, unknown_.size())); }
  void refuse_since(std::size_t count) const;

  std::vector<Token> tokens_;
  std::size_t at_ = 0, depth_ = 0, loops_ = 0;
  std::vector<Unknown> unknown_;
  std::map<std::string, std::size_t> mentions_;  // how often caller, varargs, kwargs were named so far
};

}  // namespace statescope::chat
