#include "kernels/passes/uses.h"

#include <algorithm>

namespace statescope::program {

Uses::Uses(const Program& program) : makers_(program.values.size()), readers_(program.values.size()), shown_(program.values.size(), false) {
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    for (const Value v : results(program.operations[i])) makers_[index(program, v)].push_back(i);
    for (const Value v : operands(program.operations[i])) readers_[index(program, v)].push_back(i);
  }
  for (const Channel& channel : program.channels) shown_[index(program, channel.value)] = true;
  if (program.result) shown_[index(program, program.result)] = true;
}

Operation* Uses::maker(Program& program, Value v) const {
  const std::vector<std::size_t>& makers = makers_[index(program, v)];
  return makers.size() == 1 ? &program.operations[makers.front()] : nullptr;
}

bool Uses::is_private(const Program& program, Value v) const {
  const std::size_t whole = index(program, v);
  return makers_[whole].size() == 1 && readers_[whole].size() == 1 && !shown_[whole] && program.width(v) == program.width(program.whole(v));
}

void remove_operations(Program& program, std::vector<std::size_t> indices) {
  std::ranges::sort(indices);
  std::vector<Operation> kept;
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    if (!std::ranges::binary_search(indices, i)) kept.push_back(std::move(program.operations[i]));
  }
  program.operations = std::move(kept);
}

}  // namespace statescope::program
