// A template as a tree.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/chat/values/value.h"

namespace statescope::chat {

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

/// Of calls, filters and tests.
struct GivenArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr all_positional, all_named;  // *list, **dict; null: none
};

struct Expression {
  enum class Kind {
    constant,    // value
    name,        // name
    list,        // parts
    tuple,       // parts
    dict,        // parts: key, value, key, value, …
    condition,   // parts: if true, condition, if false (may be null)
    both,        // parts: and
    either,      // parts: or
    negation,    // parts: not
    comparison,  // parts, signs between them
    binary,      // parts: left, right; name: the sign
    joined,      // parts: ~
    negative,    // parts
    positive,    // parts
    attribute,   // parts; name
    item,        // parts: value, key
    slice,       // parts: value, from, to, step (null: not given)
    call,        // parts: what is called; arguments
    filter,      // parts: value (null in a filter block); name, arguments
    test         // parts: value; name, arguments
  };
  Kind kind;
  std::size_t line;
  std::vector<ExpressionPtr> parts;
  std::string name;
  Value value;
  std::vector<std::string> signs;
  GivenArguments arguments;
  std::size_t depth = 1;
};

/// What is assigned to: a name, an attribute of a namespace, or several in a tuple.
struct Target {
  std::string name, attribute;
  std::vector<Target> parts;
  bool tuple = false;
};

struct Statement;
using Body = std::vector<Statement>;

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // null: none
};

/// A macro, or the body of a call block.
struct MacroBody {
  std::string name;
  std::vector<Parameter> parameters;
  bool caller = false, varargs = false, kwargs = false;  // named in it
  Body body;
};

struct Statement {
  enum class Kind {
    text,        // text
    print,       // expression
    condition,   // branches, otherwise
    loop,        // target, expression, test (may be null), recursive, body, otherwise
    set,         // target, expression
    set_block,   // target, expression (filters, may be null), body
    macro,       // macro
    call_block,  // expression (a call), macro
    filter,      // expression (filters), body
    with,        // assignments, body
    block,       // body, which sees the top level's names
    scope,       // body
    break_loop,
    continue_loop
  };
  Kind kind;
  std::size_t line;
  std::string text;
  Target target;
  ExpressionPtr expression, test;
  bool recursive = false;
  Body body, otherwise;
  std::shared_ptr<MacroBody> macro;
  std::vector<std::pair<Target, ExpressionPtr>> assignments;
  std::vector<std::pair<ExpressionPtr, Body>> branches;
};

}  // namespace statescope::chat
