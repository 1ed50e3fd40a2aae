#include "capture/living_stacks.h"

#include <algorithm>
#include <boost/container_hash/hash.hpp>

namespace plimsoll::capture {

std::uint32_t LivingStacks::child(const Key& key, const std::shared_ptr<const cpython::CodeInfo>& code) {
  const auto [found, is_new] = known_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
  if (is_new) nodes_.push_back({key, code});
  return found->second;
}

void LivingStacks::allocated(std::uint64_t number, std::span<const SampleFrame> frames, Codes codes) {
  if (nodes_.size() >= drop_at_) drop_dead();
  // Most stacks begin as the one before: those frames are not looked up again.
  std::size_t depth = 0;
  std::uint32_t node = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (codes[i] == nullptr) continue;  // machine code
    const auto code = static_cast<std::uint32_t>(frames[i].code.index());
    const Key key{node, code, frames[i].at.line};
    const bool is_same = depth < last_.size() && nodes_[last_[depth]].key == key;
    if (!is_same) {
      last_.resize(depth);
      last_.push_back(child(key, codes[i]));
    }
    node = last_[depth++];
  }
  node_of_[number] = node;
}

bool LivingStacks::find(std::uint64_t number, std::vector<NamedFrame>& frames) const {
  frames.clear();
  const auto found = node_of_.find(number);
  if (found == node_of_.end()) return false;
  for (std::uint32_t node = found->second; node != 0; node = nodes_[node].key.parent)
    frames.push_back({nodes_[node].code, nodes_[node].key.line});
  return true;
}

// Parents stand before their children, so one pass marks and one moves.
void LivingStacks::drop_dead() {
  std::vector<std::uint32_t> place(nodes_.size(), 0);  // 1 = needed; then the new place
  for (const auto& [number, node] : node_of_) place[node] = 1;
  for (std::size_t i = nodes_.size(); i-- > 1;)
    if (place[i] != 0) place[nodes_[i].key.parent] = 1;
  std::uint32_t kept = 1;
  known_.clear();
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    if (place[i] == 0) continue;
    Node node = std::move(nodes_[i]);
    node.key.parent = node.key.parent == 0 ? 0 : place[node.key.parent];
    known_.emplace(node.key, kept);
    nodes_[kept] = std::move(node);
    place[i] = kept++;
  }
  nodes_.resize(kept);
  for (auto& [number, node] : node_of_) node = node == 0 ? 0 : place[node];
  last_.clear();
  drop_at_ = std::max(std::size_t{1} << 16U, 2 * nodes_.size());
}

}  // namespace plimsoll::capture
