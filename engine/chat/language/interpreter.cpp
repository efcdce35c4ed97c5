#include "engine/chat/language/interpreter.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/chat/language/loop.h"
#include "engine/chat/values/objects.h"
#include "engine/chat/values/operators.h"

namespace statescope::chat {
namespace {

constexpr std::size_t kMostSteps = 20'000'000;
constexpr std::size_t kMostCalls = 200;
constexpr std::size_t kDeepest = 2'000;  // of expressions and statements within each other, calls included

class Macro : public Object {
 public:
  Macro(Interpreter& interpreter, std::shared_ptr<MacroBody> body, FramePtr frame)
      : interpreter_(interpreter), body_(std::move(body)), frame_(std::move(frame)) {}
  std::string type() const override { return "Macro"; }
  std::string repr() const override { return fmt::format("<Macro {}>", body_->name.empty() ? "anonymous" : quoted(body_->name)); }
  bool callable() const override { return true; }
  Value call(Runtime&, const Arguments& arguments) override { return interpreter_.call_macro(*body_, frame_, arguments); }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<MacroBody> body_;
  FramePtr frame_;
};

FramePtr frame_in(FramePtr parent) { return std::make_shared<Frame>(Frame{std::move(parent), {}}); }

/// The value that was given by this name, which is taken out.
std::optional<Value> taken(Arguments& arguments, const std::string& name) {
  const auto found = std::ranges::find(arguments.named, name, &std::pair<std::string, Value>::first);
  if (found == arguments.named.end()) return std::nullopt;
  Value value = std::move(found->second);
  arguments.named.erase(found);
  return value;
}

}  // namespace

const Value* Frame::find(const std::string& name) const {
  for (const Frame* frame = this; frame; frame = frame->parent.get()) {
    for (const auto& [known, value] : frame->names) {
      if (known == name) return &value;
    }
  }
  return nullptr;
}

void Frame::set(const std::string& name, Value value) {
  const auto found = std::ranges::find(names, name, &std::pair<std::string, Value>::first);
  if (found != names.end()) {
    found->second = std::move(value);
  } else {
    names.emplace_back(name, std::move(value));
  }
}

Interpreter::Deeper::Deeper(Interpreter& interpreter) : interpreter_(interpreter) {
  if (++interpreter_.depth_ <= kDeepest) return;
  --interpreter_.depth_;
  throw Error("the template is nested, or calls itself, too deep");
}

Interpreter::Interpreter(const Body& body, const Dict& variables, const std::tm& now)
    : body_(body), now_(now), root_(frame_in(nullptr)), frame_(root_) {
  for (const auto& [name, value] : variables.entries) root_->names.emplace_back(name.text(), value);
}

Interpreter::~Interpreter() {
  for (const auto& object : kept_) std::static_pointer_cast<Namespace>(object)->clear();
  for (const FramePtr& frame : frames_) frame->names.clear();
}

std::string Interpreter::run() try {
  run(body_);
  return out_.take();
} catch (const Complaint&) {
  throw;
} catch (const Error& error) {
  throw Error(fmt::format("line {}: {}", line_, error.what()));
}

void Interpreter::charge(std::size_t steps) {
  steps_ += std::min(steps, kMostSteps + 1);
  if (steps_ > kMostSteps) throw Error(fmt::format("the template takes more than {} million steps", kMostSteps / 1'000'000));
}

void Interpreter::write(const std::string& text) {
  charge(1 + text.size() / 64);
  out_.add(text);
}

Interpreter::Flow Interpreter::run(const Body& body) {
  const Deeper deeper(*this);
  for (const Statement& statement : body) {
    const Flow flow = run(statement);
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::run(const Statement& statement) {
  charge(1);
  line_ = statement.line;
  using Kind = Statement::Kind;
  switch (statement.kind) {
    case Kind::text:
      write(statement.text);
      return Flow::on;
    case Kind::print:
      write(printed(evaluate(*statement.expression)));
      return Flow::on;
    case Kind::condition:
      return condition(statement);
    case Kind::loop:
      return loop(statement, evaluate(*statement.expression), 0);
    case Kind::set:
      set(statement);
      return Flow::on;
    case Kind::set_block:
      return set_block(statement);
    case Kind::macro:
      frame_->set(statement.macro->name, macro_value(statement.macro));
      return Flow::on;
    case Kind::call_block:
      call_block(statement);
      return Flow::on;
    case Kind::filter:
      return filter_block(statement);
    case Kind::with:
      return with(statement);
    case Kind::block:
      return scope(statement.body, root_);
    case Kind::scope:
      return scope(statement.body, frame_);
    case Kind::break_loop:
      return Flow::broken;
    case Kind::continue_loop:
      return Flow::continued;
  }
  return Flow::on;
}

Interpreter::Flow Interpreter::condition(const Statement& statement) {
  for (const auto& [test, body] : statement.branches) {
    if (truth(evaluate(*test))) return run(body);
  }
  return run(statement.otherwise);
}

/// The elements for which the condition of the for holds; it is asked when they are reached.
Next Interpreter::passing(const Statement& statement, const Value& iterable) {
  Next next = iterate(iterable);
  if (!statement.test) return next;
  return [this, &statement, next = std::move(next), outer = frame_]() -> std::optional<Value> {
    for (auto item = next(); item; item = next()) {
      const Scope scope(*this, frame_in(outer));
      assign(statement.target, *item);
      if (truth(evaluate(*statement.test))) return item;
    }
    return std::nullopt;
  };
}

Interpreter::Flow Interpreter::pass(const Statement& statement, const FramePtr& outer, const Value& loop, const Value& item) {
  charge(1);
  const Scope scope(*this, frame_in(outer));
  frame_->set("loop", loop);
  assign(statement.target, item);
  return run(statement.body);
}

Interpreter::Flow Interpreter::loop(const Statement& statement, const Value& iterable, std::size_t depth0) {
  const FramePtr outer = frame_;
  Loop::Recurse recurse;
  if (statement.recursive) {
    recurse = [this, &statement, outer](const Value& inner, std::size_t depth) {
      if (++calls_ > kMostCalls) throw Error(fmt::format("loops within each other more than {} deep", kMostCalls));
      const Scope scope(*this, outer);
      Builder text = std::exchange(out_, {});
      loop(statement, inner, depth);
      --calls_;
      return Value(std::exchange(out_, std::move(text)).take());
    };
  }
  const bool counted = !statement.test && has_length(iterable);
  const auto state =
      std::make_shared<Loop>(passing(statement, iterable), counted ? std::optional(length_of(iterable)) : std::nullopt, depth0, recurse);
  const Value self = std::shared_ptr<Object>(state);
  bool any = false;
  while (state->advance()) {
    any = true;
    if (pass(statement, outer, self, state->current()) == Flow::broken) break;
  }
  state->end();
  return any ? Flow::on : scope(statement.otherwise, outer);
}

Interpreter::Flow Interpreter::scope(const Body& body, const FramePtr& parent) {
  const Scope scope(*this, frame_in(parent));
  return run(body);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (target.tuple) {
    const Items items = items_of(defined(value));
    if (items.size() != target.parts.size()) throw Error(fmt::format("{} names for {} values", target.parts.size(), items.size()));
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
  } else if (target.attribute.empty()) {
    frame_->set(target.name, value);
  } else {
    const Value owner = name(target.name);
    auto* space = owner.object_as<Namespace>();
    if (!space) throw Error("only attributes of a namespace can be set");
    space->set(target.attribute, value);
  }
}

void Interpreter::set(const Statement& statement) { assign(statement.target, evaluate(*statement.expression)); }

std::pair<std::string, Interpreter::Flow> Interpreter::captured(const Body& body) {
  Builder before = std::exchange(out_, {});
  const Flow flow = scope(body, frame_);
  return {std::exchange(out_, std::move(before)).take(), flow};
}

Interpreter::Flow Interpreter::set_block(const Statement& statement) {
  auto [text, flow] = captured(statement.body);
  if (flow == Flow::on) assign(statement.target, statement.expression ? filters(*statement.expression, text) : made(text));
  return flow;
}

Interpreter::Flow Interpreter::filter_block(const Statement& statement) {
  auto [text, flow] = captured(statement.body);
  if (flow == Flow::on) write(printed(filters(*statement.expression, text)));
  return flow;
}

Interpreter::Flow Interpreter::with(const Statement& statement) {
  const FramePtr inner = frame_in(frame_);
  for (const auto& [target, expression] : statement.assignments) inner->set(target.name, evaluate(*expression));
  const Scope scope(*this, inner);
  return run(statement.body);
}

Value Interpreter::macro_value(const std::shared_ptr<MacroBody>& macro) {
  charge(20);
  if (std::ranges::find(frames_, frame_) == frames_.end()) frames_.push_back(frame_);
  return std::make_shared<Macro>(*this, macro, frame_);
}

void Interpreter::call_block(const Statement& statement) {
  const Value caller = macro_value(statement.macro);
  write(printed(call(*statement.expression, &caller)));
}

/// The frame in which a macro's body runs: its parameters, as Jinja fills them.
FramePtr Interpreter::frame_of_call(const MacroBody& macro, const FramePtr& frame, Arguments arguments) {
  FramePtr inner = frame_in(frame);
  const Scope scope(*this, inner);
  std::vector<std::optional<Value>> values;
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    values.push_back(i < arguments.positional.size() ? arguments.positional[i] : taken(arguments, macro.parameters[i].name));
  }
  if (macro.caller) inner->set("caller", taken(arguments, "caller").value_or(Value::undefined("no caller is defined")));
  Items more(arguments.positional.begin() + static_cast<std::ptrdiff_t>(std::min(values.size(), arguments.positional.size())),
             arguments.positional.end());
  if (!macro.kwargs && !arguments.named.empty()) {
    throw Error(fmt::format("the macro '{}' takes no keyword argument '{}'", macro.name, arguments.named[0].first));
  }
  if (!macro.varargs && !more.empty())
    throw Error(fmt::format("the macro '{}' takes not more than {} arguments", macro.name, values.size()));
  Dict named;
  for (auto& [name, value] : arguments.named) named.set(name, std::move(value));
  if (macro.kwargs) inner->set("kwargs", Value::dict(std::move(named)));
  if (macro.varargs) inner->set("varargs", Value::tuple(std::move(more)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    if (!values[i])
      values[i] = parameter.otherwise ? evaluate(*parameter.otherwise)
                                      : Value::undefined(fmt::format("the parameter '{}' was not provided", parameter.name));
    inner->set(parameter.name, *values[i]);
  }
  return inner;
}

Value Interpreter::call_macro(const MacroBody& macro, const FramePtr& frame, Arguments arguments) {
  if (calls_ >= kMostCalls) throw Error(fmt::format("calls within each other more than {} deep", kMostCalls));
  ++calls_;
  const Scope scope(*this, frame_of_call(macro, frame, std::move(arguments)));
  Builder before = std::exchange(out_, {});
  run(macro.body);
  --calls_;
  return made(std::exchange(out_, std::move(before)).take());
}

}  // namespace statescope::chat
