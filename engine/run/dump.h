// Everything a run computed, as one HDF5 file (layout: design, "Files"; readable with h5py in three lines).
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/model/model.h"

namespace statescope {

/// Collects a run on the host as it goes, and writes it.
class Dump final : public Observer {
 public:
  explicit Dump(const Model& model) : model_(model) {}

  void residual(std::int64_t layer, ConstTensor x) override;
  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override;
  bool wants_all() const override { return true; }
  /// Rows [T, V] of the tokens that follow those seen so far.
  void logits(ConstTensor values) { append(logits_, values); }
  /// All memories of all layers, after `token` has been read.
  void states(std::int64_t token, const ModelState& state);

  /// /input_ids [T] int32, /logits [T, V], /hidden/<l> [T, D], /channels/<l>/<name> [T, …] (attributes unit, axes, equation),
  /// /state/<l>/<t> [segments, H, K, V]; a layer's further memories as /state/<l>/<name>/<t>. `not_finite`, where it is not empty, becomes
  /// the file's attribute of that name. The file appears whole or not at all. Throws Error.
  void write(const std::filesystem::path& path, std::span<const std::int32_t> ids, bool overwrite,
             const std::string& not_finite = "") const;

 private:
  /// Rows of one shape, gathered over passes.
  struct Rows {
    Shape shape;  // [T, …]
    DType dtype = DType::f32;
    std::vector<std::byte> bytes;
  };
  void append(Rows& rows, ConstTensor values);

  const Model& model_;
  Rows logits_;
  std::map<std::int64_t, Rows> hidden_;
  std::map<std::int64_t, std::map<std::string, Rows>> channels_;
  std::map<std::string, Rows> states_;  // by path below /state
};

}  // namespace statescope
