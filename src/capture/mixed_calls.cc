// The stacks of a CallTree that are of both kinds of frames.
#include <algorithm>
#include <cstring>
#include <utility>

#include "capture/call_tree.h"
#include "capture/loop_calls.h"
#include "capture/tick_signals.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

constexpr memory::LocalReader kMemory;
// The position of an instruction, which no Python frame has.
constexpr std::int32_t kMachineCode = INT32_MIN + 2;

template <typename T>
bool are_same(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

CallNode CallTree::mixed_stack_of_caller(Chain& chain) {
  const Address state = interpreter_.thread_state_of_caller().address;
  const cpython::Walk walk = read_both(chain, state);
  if (!cpython::is_proven(walk.stop)) {
    chain.mixed.links.clear();
    chain.mixed.node = 0;
    return unproven(chain, walk.stop);
  }
  if (!is_as_before(chain)) {
    const bool has_all = walk.stop == cpython::WalkStop::kComplete;
    CallNode root = chain.root;
    if (is_null(state)) root = native_root(chain);
    if (!has_all || chain.mixed_now.head.stop == native::UnwindStop::kTruncated) {
      const std::lock_guard guard(mutex_);
      root = root_of(chain.thread, CallNodeInfo::Kind::kTruncated);
    }
    chain.mixed_now.node = mix(chain, root, walk.stop);
    std::swap(chain.mixed, chain.mixed_now);
  }
  const Mixed& found = chain.mixed;
  if (found.head.stop != native::UnwindStop::kComplete) sampler_.count_drop(reason_of(found.head.stop), 0);
  if (!found.is_matched) sampler_.count_drop(DropReason::kNativeUnmatched, 0);
  return found.node;
}

cpython::Walk CallTree::read_both(Chain& chain, Address state) {
  Mixed& now = chain.mixed_now;
  if (now.native_room.empty()) {
    now.native_room.resize(max_depth_);
    now.python_room.resize(2 * max_depth_);
  }
  now.deaths = seen_.deaths();
  now.unloads = modules_->unloads();
  Address leaf{};
  const bool counts = counts_calls(interpreter_.layout) && !is_null(state) &&
                      cpython::current_frame(kMemory, interpreter_.layout, state, leaf);
  {
    const RunningHandler uses_modules;
    const native::ModuleMap& modules = *modules_->current();
    const NativePlace place = caller_of_library(modules);
    const native::Unwind unwound = native::unwind(kMemory, modules, place.registers, now.native_room, place.known);
    now.head = {Address{place.registers.value[native::kStackPointer]}, unwound.count, unwound.stop, kNowhere, {}};
    if (counts) now.head.leaf = find_leaf(kMemory, modules, now.native(), leaf);
  }
  cpython::Walk walk;
  if (!is_null(state))
    walk = cpython::walk_thread(kMemory, interpreter_.layout, interpreter_.code_type, state, now.python_room,
                                cpython::EntryMarks{});
  now.python_count = cpython::is_proven(walk.stop) ? walk.count : 0;
  return walk;
}

bool CallTree::is_as_before(const Chain& chain) const {
  const Mixed& before = chain.mixed;
  const Mixed& now = chain.mixed_now;
  return before.node != 0 && before.deaths == now.deaths && before.unloads == now.unloads &&
         before.head.stop == now.head.stop && before.head.leaf == now.head.leaf &&
         are_same(before.native(), now.native()) && are_same(before.python(), now.python());
}

CallNode CallTree::mix(Chain& chain, CallNode root, cpython::WalkStop stop) {
  Mixed& now = chain.mixed_now;
  const NativeStack native{now.head, now.native()};
  const std::span<const cpython::PyFrame> python = now.python();
  if (counts_calls(interpreter_.layout)) {
    const RunningHandler uses_modules;
    now.is_matched = interleave_by_calls(native, *modules_->current(), python, stop, chain.items);
  } else {
    now.is_matched = interleave(native, python, stop, chain.items);
  }
  if (!now.is_matched) {
    chain.items.clear();
    for (std::uint32_t i = 0; i < python.size(); ++i)
      if (python[i].position != cpython::kEntryMark) chain.items.push_back({StackItem::Kind::kPython, i});
  }
  // As far out as it is as before, its nodes are known.
  const bool are_known = now.deaths == chain.mixed.deaths && now.unloads == chain.mixed.unloads;
  const std::vector<MixedLink>& before = chain.mixed.links;
  std::size_t same = are_known && !before.empty() && before.front().node == root ? 1 : 0;
  now.links.clear();
  now.links.push_back({{}, 0, root});
  CallNode node = root;
  for (auto item = chain.items.rbegin(); item != chain.items.rend(); ++item) {
    const bool is_python = item->kind == StackItem::Kind::kPython;
    cpython::PyFrame frame;
    if (is_python)
      frame = python[item->index];
    else
      frame = {native.frames[item->index].instruction, kMachineCode};
    const bool is_same =
        same != 0 && same < before.size() && before[same].code == frame.code && before[same].position == frame.position;
    same = is_same ? same + 1 : 0;
    if (is_same) {
      node = before[same - 1].node;
    } else {
      const std::lock_guard guard(mutex_);
      node = is_python ? node_of(node, frame) : machine_node_of(node, frame, now.unloads);
    }
    now.links.push_back({frame.code, frame.position, node});
  }
  return node;
}

CallNode CallTree::machine_node_of(CallNode parent, const cpython::PyFrame& at, std::uint32_t unloads) {
  const Key key{parent, at.position, raw(at.code) | std::uint64_t{unloads} << 48U};
  const auto known = nodes_.find(key);
  if (known != nodes_.end()) return known->second;
  CallNodeInfo info;
  info.kind = CallNodeInfo::Kind::kMachineCode;
  info.parent = parent;
  info.frame = at;
  const CallNode made = new_node(info);
  nodes_.emplace(key, made);
  return made;
}

}  // namespace plimsoll::capture
