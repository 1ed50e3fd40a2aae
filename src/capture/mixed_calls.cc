// The stacks of a CallTree that are of both kinds of frames.
#include <algorithm>
#include <bit>
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
  chain.is_whole = false;
  const Address state = interpreter_.thread_state_of_caller().address;
  MixedLook& look = chain.look;
  read_both(look, state);
  if (!cpython::is_proven(look.facts.stop)) return unproven(chain, look.facts.stop);
  MixedStack& found = place_of(chain);
  if (!is_same(found, look)) mix(chain, found);
  if (found.facts.head.stop != native::UnwindStop::kComplete) sampler_.count_drop(reason_of(found.facts.head.stop), 0);
  if (!found.is_matched) sampler_.count_drop(DropReason::kNativeUnmatched, 0);
  chain.is_whole = found.facts.head.stop == native::UnwindStop::kComplete && found.is_matched &&
                   found.facts.stop == cpython::WalkStop::kComplete;
  return found.node;
}

void CallTree::find_machine_code(Chain& chain) const {
  const native::Registers here = native::registers_here();
  const std::uint32_t unloads = modules_->unloads();
  if (chain.proven == nullptr) [[unlikely]]
    chain.proven = std::make_unique<native::ProvenStacks>();
  chain.machine_code = chain.proven->find(kMemory, here, unloads);
  if (chain.machine_code != nullptr) [[likely]]
    return;
  const RunningHandler uses_modules;
  chain.machine_code = chain.proven->add(kMemory, *modules_->current(), here, unloads);
}

CallNode CallTree::mixed_stack_of(Chain& chain, StackKey key) {
  if (!key.is_none()) return static_cast<CallNode>(key.at);
  const CallNode node = mixed_stack_of_caller(chain);
  const MixedKey met = std::exchange(chain.unmet, {});
  if (met.native == 0 || !chain.is_whole) return node;
  if (chain.mixed_nodes.size() >= kMostMixed) chain.mixed_nodes.clear();
  chain.mixed_nodes[met] = node;
  return node;
}

void CallTree::read_both(MixedLook& look, Address state) {
  if (look.native_room.empty()) {
    look.native_room.resize(max_depth_);
    look.python_room.resize(2 * max_depth_);
  }
  MixedFacts& facts = look.facts;
  facts.deaths = seen_.deaths();
  facts.unloads = modules_->unloads();
  facts.has_state = !is_null(state);
  Address leaf{};
  const bool counts = counts_calls(interpreter_.layout) && facts.has_state &&
                      cpython::current_frame(kMemory, interpreter_.layout, state, leaf);
  {
    const RunningHandler uses_modules;
    const native::ModuleMap& modules = *modules_->current();
    const NativePlace place = caller_of_library(modules);
    const native::Unwind unwound = native::unwind(kMemory, modules, place.registers, look.native_room, place.known);
    facts.head = {Address{place.registers.value[native::kStackPointer]}, unwound.count, unwound.stop, kNowhere, {}};
    if (counts) facts.head.leaf = find_leaf(kMemory, modules, look.native(), leaf);
  }
  cpython::Walk walk;
  if (facts.has_state)
    walk = cpython::walk_thread(kMemory, interpreter_.layout, interpreter_.code_type, state, look.python_room,
                                cpython::EntryMarks{});
  facts.stop = walk.stop;
  look.python_count = cpython::is_proven(walk.stop) ? walk.count : 0;
}

CallTree::MixedStack& CallTree::place_of(Chain& chain) {
  if (chain.mixed == nullptr) chain.mixed = std::make_unique<MixedStacks>();
  const std::span<const native::NativeFrame> native = chain.look.native();
  const std::span<const cpython::PyFrame> python = chain.look.python();
  if (native.size() + python.size() > kDeepMixed) return chain.mixed->front();
  // The innermost frames tell most of what is at other places; how many there are, recursion.
  constexpr std::size_t kTold = 8;
  std::uint64_t sum = native.size() << 32U | python.size();
  for (const native::NativeFrame& frame : native.first(std::min(native.size(), kTold)))
    sum = std::rotl(sum, 5) ^ raw(frame.instruction);
  for (const cpython::PyFrame& frame : python.first(std::min<std::size_t>(python.size(), 2)))
    sum = std::rotl(sum, 5) ^ (raw(frame.code) + static_cast<std::uint32_t>(frame.position));
  return (*chain.mixed)[sum * 0x9e3779b97f4a7c15U >> (64U - kMixedBits)];
}

bool CallTree::is_same(const MixedStack& stack, const MixedLook& look) {
  return stack.node != 0 && stack.facts == look.facts && are_same<native::NativeFrame>(stack.native, look.native()) &&
         are_same<cpython::PyFrame>(stack.python, look.python());
}

CallNode CallTree::mixed_root(Chain& chain) {
  const MixedFacts& facts = chain.look.facts;
  if (facts.stop != cpython::WalkStop::kComplete || facts.head.stop == native::UnwindStop::kTruncated) {
    const std::lock_guard guard(mutex_);
    return root_of(chain.thread, CallNodeInfo::Kind::kTruncated);
  }
  return facts.has_state ? chain.root : native_root(chain);
}

void CallTree::mix(Chain& chain, MixedStack& stack) {
  const MixedLook& look = chain.look;
  stack.node = 0;  // until all of it is there
  const NativeStack native{look.facts.head, look.native()};
  const std::span<const cpython::PyFrame> python = look.python();
  if (counts_calls(interpreter_.layout)) {
    const RunningHandler uses_modules;
    stack.is_matched = interleave_by_calls(native, *modules_->current(), python, look.facts.stop, chain.items);
  } else {
    stack.is_matched = interleave(native, python, look.facts.stop, chain.items);
  }
  if (!stack.is_matched) {
    chain.items.clear();
    for (std::uint32_t i = 0; i < python.size(); ++i)
      if (python[i].position != cpython::kEntryMark) chain.items.push_back({StackItem::Kind::kPython, i});
  }
  const CallNode node = mixed_node(chain, mixed_root(chain));
  stack.facts = look.facts;
  stack.native.assign(native.frames.begin(), native.frames.end());
  stack.python.assign(python.begin(), python.end());
  stack.node = node;
}

CallNode CallTree::mixed_node(Chain& chain, CallNode root) {
  const MixedLook& look = chain.look;
  MixedLinks& next = chain.next_links;
  next.deaths = look.facts.deaths;
  next.unloads = look.facts.unloads;
  // As far out as it is as what was looked up last, its nodes are known.
  const bool are_known = next.deaths == chain.mixed_links.deaths && next.unloads == chain.mixed_links.unloads;
  const std::vector<MixedLink>& before = chain.mixed_links.links;
  std::size_t same = are_known && !before.empty() && before.front().node == root ? 1 : 0;
  next.links.clear();
  next.links.push_back({{}, 0, root});
  CallNode node = root;
  for (auto item = chain.items.rbegin(); item != chain.items.rend(); ++item) {
    const bool is_python = item->kind == StackItem::Kind::kPython;
    const cpython::PyFrame frame =
        is_python ? look.python()[item->index] : cpython::PyFrame{look.native()[item->index].instruction, kMachineCode};
    const bool is_same =
        same != 0 && same < before.size() && before[same].code == frame.code && before[same].position == frame.position;
    same = is_same ? same + 1 : 0;
    if (is_same) {
      node = before[same - 1].node;
    } else {
      const std::lock_guard guard(mutex_);
      node = is_python ? node_of(chain, node, frame) : machine_node_of(node, frame, next.unloads);
    }
    next.links.push_back({frame.code, frame.position, node});
  }
  std::swap(chain.mixed_links, chain.next_links);
  return node;
}

CallNode CallTree::machine_node_of(CallNode parent, const cpython::PyFrame& at, std::uint32_t unloads) {
  const Key key{parent, at.position, raw(at.code), unloads};
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
