#include "engine/run/dump.h"

#include <fmt/format.h>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/hdf5_handle.h"

namespace statescope {
namespace {

/// "[heads, K] or [heads]" → "[token, heads, K] or [token, heads]"
std::string with_token_axis(std::string_view axes) {
  std::string all;
  for (const char c : axes) all += c == '[' ? std::string("[token, ") : std::string(1, c);
  return all;
}

}  // namespace

void Dump::append(Rows& rows, ConstTensor values) {
  Backend& backend = model_.backend();
  Buffer packed;
  if (!values.contiguous()) {
    packed = backend.allocate(static_cast<std::size_t>(values.shape.size()) * size_of(values.dtype));
    Tensor copy(packed.get(), values.dtype, values.shape);
    backend.copy(copy, values);
    values = copy;
  }
  if (rows.bytes.empty()) {
    rows.shape = values.shape;
    rows.shape[0] = 0;
    rows.dtype = values.dtype;
  }
  const std::size_t old = rows.bytes.size();
  rows.bytes.resize(old + static_cast<std::size_t>(values.shape.size()) * size_of(values.dtype));
  backend.download(Tensor(rows.bytes.data() + old, values.dtype, values.shape), values);
  rows.shape[0] += values.rows();
}

void Dump::residual(std::int64_t layer, ConstTensor x) {
  if (layer > 0) append(hidden_[layer - 1], x);
}

void Dump::channel(std::int64_t layer, std::string_view name, ConstTensor values) { append(channels_[layer][std::string(name)], values); }

void Dump::states(std::int64_t token, const ModelState& state) {
  for (std::size_t layer = 0; layer < state.layers.size(); ++layer) {
    const std::vector<MixerLayout::Memory>& memories = model_.layout(static_cast<std::int64_t>(layer)).memory;
    for (std::size_t m = 0; m < memories.size(); ++m) {
      const std::string place = m == 0 ? fmt::format("{}/{}", layer, token) : fmt::format("{}/{}/{}", layer, memories[m].name, token);
      append(states_[place], state.layers[layer].memory[m]);
    }
  }
}

void Dump::write(const std::filesystem::path& path, std::span<const std::int32_t> ids, bool overwrite,
                 const std::string& not_finite) const {
  Draft draft(path, overwrite);
  {
    const Hdf5Guard guard;
    const Hdf5Id file(H5Fcreate(draft.path().c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    if (!file) fail_hdf5(path, "cannot be written");
    const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links, 1);

    auto write_rows = [&](const std::string& name, const Rows& rows) {
      std::vector<hsize_t> extents;
      for (int axis = 0; axis < rows.shape.rank(); ++axis) extents.push_back(static_cast<hsize_t>(rows.shape[axis]));
      const Hdf5Id space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr), H5Sclose);
      const hid_t type = rows.dtype == DType::i32 ? H5T_STD_I32LE : H5T_IEEE_F32LE;
      Hdf5Id set(checked(H5Dcreate2(file, name.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT), path, "cannot be written"),
                 H5Dclose);
      checked(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.bytes.data()), path, "cannot be written");
      return set;
    };
    write_text_attribute(file, "format", "statescope-dump", path);
    write_text_attribute(file, "checkpoint", model_.checkpoint().path.string(), path);
    write_text_attribute(file, "config", model_.checkpoint().config, path);
    if (!not_finite.empty()) write_text_attribute(file, "not_finite", not_finite, path);
    Rows tokens;
    tokens.shape = {static_cast<std::int64_t>(ids.size())};
    tokens.dtype = DType::i32;
    const auto id_bytes = std::as_bytes(ids);
    tokens.bytes.assign(id_bytes.begin(), id_bytes.end());
    write_rows("/input_ids", tokens);
    write_text_attribute(write_rows("/logits", logits_), "equation", "RMSNorm(x; norm) · lm_headᵀ (spec §1.1)", path);
    for (const auto& [layer, rows] : hidden_) write_rows(fmt::format("/hidden/{}", layer), rows);
    for (const auto& [layer, channels] : channels_) {
      for (const auto& [name, rows] : channels) {
        const ChannelRow& row = channel_row(name);
        const Hdf5Id set = write_rows(fmt::format("/channels/{}/{}", layer, name), rows);
        write_text_attribute(set, "axes", with_token_axis(row.axes), path);
        write_text_attribute(set, "unit", row.unit, path);
        write_text_attribute(set, "equation", row.equation, path);
      }
    }
    for (const auto& [place, rows] : states_) {
      const Hdf5Id set = write_rows(fmt::format("/state/{}", place), rows);
      const MixerLayout& layout = model_.layout(std::stoll(place));  // a place begins with its layer
      write_text_attribute(set, "axes", fmt::format("[segment, head, {}, {}]", layout.row_name, layout.column_name), path);
    }
    checked(H5Fflush(file, H5F_SCOPE_GLOBAL), path, "cannot be written");
  }
  flush_to_disk(draft.path());
  draft.publish();
}

}  // namespace statescope
