// Who makes the values of a program, and who reads them.
#pragma once

#include <vector>

#include "kernels/program/program.h"

namespace statescope::program {

/// Indices are those of Program::operations. Values count as the whole that they are a view of.
class Uses {
 public:
  explicit Uses(const Program& program);

  /// The operation that makes v, null where it is an input, or where several make parts of it.
  Operation* maker(Program& program, Value v) const;
  /// The same if it is an Op.
  template <class Op>
  Op* maker_as(Program& program, Value v) const {
    Operation* const op = maker(program, v);
    return op ? std::get_if<Op>(op) : nullptr;
  }
  std::size_t maker_index(const Program& program, Value v) const { return makers_[index(program, v)].front(); }
  const std::vector<std::size_t>& readers(const Program& program, Value v) const { return readers_[index(program, v)]; }
  /// Whether a channel shows a part of it, or it is the result.
  bool is_shown(const Program& program, Value v) const { return shown_[index(program, v)]; }
  /// Whether v is all of what its operation makes, and a single operand of a single operation reads that: no channel shows it, and it is
  /// not the result.
  bool is_private(const Program& program, Value v) const;

 private:
  static std::size_t index(const Program& program, Value v) { return static_cast<std::size_t>(program.whole(v).index); }

  std::vector<std::vector<std::size_t>> makers_, readers_;
  std::vector<bool> shown_;
};

/// Removes the operations at these indices.
void remove_operations(Program& program, std::vector<std::size_t> indices);

}  // namespace statescope::program
