#include "engine/config/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "engine/checkpoint/file.h"
#include "engine/checkpoint/passed_over.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::string_view kCompiled = "_orig_mod.";

bool has(const std::vector<StoredTensor>& tensors, std::string_view name) {
  return std::ranges::find(tensors, name, &StoredTensor::name) != tensors.end();
}

/// torch.compile puts it before each part that it compiled.
void take_off_compiled(std::vector<StoredTensor>& tensors, std::vector<std::string>& notes) {
  std::size_t count = 0;
  for (StoredTensor& tensor : tensors) {
    const std::string before = tensor.name;
    for (std::size_t at = 0; (at = tensor.name.find(kCompiled, at)) != std::string::npos;) {
      const bool starts_a_part = at == 0 || tensor.name[at - 1] == '.';
      starts_a_part ? void(tensor.name.erase(at, kCompiled.size())) : void(at += kCompiled.size());
    }
    if (tensor.name != before) ++count;
  }
  if (count > 0) notes.push_back(fmt::format("\"_orig_mod.\" (torch.compile) taken off the names of {} tensors", count));
}

/// The last two parts of a name: "embed_tokens.weight".
std::string_view leaf(std::string_view name) {
  const std::size_t last = name.rfind('.');
  const std::size_t before = last == 0 || last == name.npos ? name.npos : name.rfind('.', last - 1);
  return before == name.npos ? name : name.substr(before + 1);
}

/// What stands before `end` in a name that ends with it as a part of its own.
std::optional<std::string> before(std::string_view name, std::string_view end) {
  if (!name.ends_with(end)) return std::nullopt;
  const std::string_view root = name.substr(0, name.size() - end.size());
  return root.empty() || root.ends_with('.') ? std::optional(std::string(root)) : std::nullopt;
}

/// The roots of what may be the embedding table: of its planned name, else of its other names.
std::set<std::string> roots_of_table(const std::vector<StoredTensor>& tensors, std::string_view planned) {
  std::set<std::string> roots;
  for (const std::string_view name : {planned, std::string_view("embed_tokens.weight"), std::string_view("embedding.weight")}) {
    for (const StoredTensor& tensor : tensors) {
      const auto root = passed_over_as(tensor.name).empty() ? before(tensor.name, name) : std::nullopt;
      if (root && root->find("layers.") == root->npos) roots.insert(*root);
    }
    if (!roots.empty()) break;
  }
  return roots;
}

void rename_root(std::vector<StoredTensor>& tensors, const std::string& from, const std::string& to, const std::string& head,
                 std::vector<std::string>& notes) {
  std::size_t count = 0;
  for (StoredTensor& tensor : tensors) {
    if (!tensor.name.starts_with(from) || tensor.name == head || !passed_over_as(tensor.name).empty()) continue;
    tensor.name = to + tensor.name.substr(from.size());
    ++count;
  }
  notes.push_back(from.empty() ? fmt::format("the names of {} tensors lack \"{}\": a base model without its head's wrapper", count, to)
                               : fmt::format("the prefix \"{}\" of {} tensors' names is read as \"{}\"", one_line(from, 100), count, to));
}

/// The head stands beside the text model, so under a beginning of its root.
void rename_head(std::vector<StoredTensor>& tensors, const std::string& root, const std::string& head, std::vector<std::string>& notes) {
  for (std::size_t end = root.size(); end > 0 && !has(tensors, head); end = end < 2 ? 0 : root.rfind('.', end - 2) + 1) {
    const auto found = std::ranges::find(tensors, root.substr(0, end) + head, &StoredTensor::name);
    if (found == tensors.end()) continue;
    notes.push_back(fmt::format("tensor {} is read as {}", in_quotes(found->name), head));
    found->name = head;
  }
}

}  // namespace

void take_planned_names(std::vector<StoredTensor>& tensors, const std::string& embeddings, const std::string& head,
                        std::vector<std::string>& notes) {
  take_off_compiled(tensors, notes);
  const std::string planned_root = embeddings.substr(0, embeddings.size() - leaf(embeddings).size());
  const std::set<std::string> roots = roots_of_table(tensors, leaf(embeddings));
  if (roots.empty() || roots.contains(planned_root)) return rename_head(tensors, planned_root, head, notes);
  if (roots.size() > 1)
    throw Error(fmt::format("the embedding table may be under {} or {}; {} was expected", in_quotes(*roots.begin()),
                            in_quotes(*std::next(roots.begin())), in_quotes(embeddings)));
  const std::string& root = *roots.begin();
  rename_head(tensors, root, head, notes);
  rename_root(tensors, root, planned_root, head, notes);
}

}  // namespace statescope
