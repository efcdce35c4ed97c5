// Passes: each turns a program into one that computes the same values with fewer launches. None knows what a mixer is, and no mixer knows
// that they exist.
#pragma once

#include <vector>

#include "kernels/program/program.h"

namespace statescope::program {

/// What a program is compiled for.
struct Purpose {
  std::vector<bool> wanted;  // of each channel: somebody asks for it
  bool state_only = false;   // the layer's state is to come forward; its result is not wanted, nor what only that or a channel needs
  bool one_token = false;
  bool operator==(const Purpose&) const = default;
};

/// All passes, in the order below. Channels that nobody wants, or that are not worked out on the way, are gone.
Program compiled(Program program, const Purpose& purpose);

/// Leaves out what neither the result, nor a wanted channel, nor a state needs.
void drop_dead_values(Program& program, const Purpose& purpose);
/// A product of which everybody reads a part of its own becomes a product for each part, so that what follows one may be its epilogue.
void parts_into_products(Program& program);
/// RMSNorm(x) ⊙ act(gate) becomes the prologue of the product that alone reads it, else one operation.
void norms_into_products(Program& program);
/// Products of one x, and products of those, become one operation, with activations, decays and convolutions as their epilogues.
void products_together(Program& program);
/// A forget gate that only a memory reads is made by the memory.
void decays_into_memories(Program& program);
/// L2 norms of q and k that only a delta rule reads are done by it.
void norms_into_delta_rules(Program& program);
/// The norm between a delta rule of unit keys and the product of its output is done by the memory.
void readouts_into_delta_rules(Program& program);
/// Pairs, gate and choice that a sparse state alone needs are made with it, and its decays where `with_decays`.
void choices_into_sparse_memories(Program& program, bool with_decays);
/// What is only stacked is made in its place.
void stacks_in_place(Program& program);
/// An operation on each number alone overwrites its operand where nobody needs that any more.
void overwrite_operands(Program& program);

}  // namespace statescope::program
