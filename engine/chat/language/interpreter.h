// Renders a template's tree.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/chat/language/syntax.h"
#include "engine/chat/values/print.h"
#include "engine/chat/values/runtime.h"

namespace statescope::chat {

/// The names of one scope: they hide those of the scopes around it.
struct Frame {
  std::shared_ptr<Frame> parent;
  std::vector<std::pair<std::string, Value>> names;

  const Value* find(const std::string& name) const;
  void set(const std::string& name, Value value);
};
using FramePtr = std::shared_ptr<Frame>;

class Interpreter : public Runtime {
 public:
  /// The tree has to outlive it.
  Interpreter(const Body& body, const Dict& variables, const std::tm& now);
  ~Interpreter() override;
  /// The text. Throws Complaint for raise_exception, else Error with the line.
  std::string run();

  Value filter(const std::string& name, const Value& value, const Arguments& arguments) override;
  bool test(const std::string& name, const Value& value, const Arguments& arguments) override;
  void charge(std::size_t steps) override;
  void keep(std::shared_ptr<Object> object) override { kept_.push_back(std::move(object)); }
  const std::tm& now() const override { return now_; }

  /// A macro's text. `frame`: where it was defined.
  Value call_macro(const MacroBody& macro, const FramePtr& frame, Arguments arguments);

 private:
  enum class Flow { on, broken, continued };  // how a body ended

  /// Throws Error beyond what recursion can follow.
  class Deeper {
   public:
    explicit Deeper(Interpreter& interpreter);
    ~Deeper() { --interpreter_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Interpreter& interpreter_;
  };

  /// Names are set in, and looked up from, this frame until it ends.
  class Scope {
   public:
    Scope(Interpreter& interpreter, FramePtr frame)
        : interpreter_(interpreter), before_(std::exchange(interpreter.frame_, std::move(frame))) {}
    ~Scope() { interpreter_.frame_ = std::move(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Interpreter& interpreter_;
    FramePtr before_;
  };

  // interpreter.cpp: statements
  Flow run(const Body& body);
  Flow run(const Statement& statement);
  Flow condition(const Statement& statement);
  Flow loop(const Statement& statement, const Value& iterable, std::size_t depth0);
  Flow pass(const Statement& statement, const FramePtr& outer, const Value& loop, const Value& item);
  Next passing(const Statement& statement, const Value& iterable);
  void set(const Statement& statement);
  Flow set_block(const Statement& statement);
  void call_block(const Statement& statement);
  Flow filter_block(const Statement& statement);
  Flow with(const Statement& statement);
  Flow scope(const Body& body, const FramePtr& parent);
  void assign(const Target& target, const Value& value);
  Value macro_value(const std::shared_ptr<MacroBody>& macro);
  FramePtr frame_of_call(const MacroBody& macro, const FramePtr& frame, Arguments arguments);
  /// What the body prints, in a scope of its own; how it ended.
  std::pair<std::string, Flow> captured(const Body& body);
  void write(const std::string& text);

  // interpreter_expressions.cpp
  Value evaluate(const Expression& expression);
  Value evaluate_deeper(const Expression& expression);
  Value sequence(const Expression& expression);
  Value dict(const Expression& expression);
  Value condition(const Expression& expression);
  Value comparison(const Expression& expression);
  Value binary_of(const Expression& expression);
  Value joined(const Expression& expression);
  Value sliced(const Expression& expression);
  Value call(const Expression& expression, const Value* caller);
  Value filters(const Expression& expression, const std::string& innermost);
  Value name(const std::string& name);
  Arguments arguments(const GivenArguments& given);
  Value made(Value value);

  const Body& body_;
  std::tm now_;
  FramePtr root_, frame_;
  Builder out_;
  std::size_t steps_ = 0, depth_ = 0, calls_ = 0, line_ = 1;
  std::vector<std::shared_ptr<Object>> kept_;  // what could hold itself is emptied in the end
  std::vector<FramePtr> frames_;               // of macros, likewise
};

}  // namespace statescope::chat
