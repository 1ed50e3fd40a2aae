#include "capture/call_tree.h"

#include <utility>

#include "base/clock.h"
#include "cpython/walk.h"
#include "memory/local.h"

namespace plimsoll::capture {
namespace {

// The chain of the calling thread, and which tree it belongs to. Without a destructor: the tree owns it.
struct KnownChain {
  std::uint32_t session = 0;
  void* chain = nullptr;
};
[[gnu::tls_model("initial-exec")]] thread_local constinit KnownChain known_chain;
std::atomic<std::uint32_t> last_tree{0};

constexpr memory::LocalReader kMemory;

}  // namespace

CallTree::CallTree(const Interpreter& interpreter, CpuSampler& sampler, SeenFilter& seen, std::size_t max_depth,
                   const native::Modules* modules)
    : interpreter_(interpreter),
      max_depth_(max_depth),
      session_(last_tree.fetch_add(1, std::memory_order_relaxed) + 1),
      is_narrow_(interpreter.layout.position_style != cpython::PositionStyle::kInstruction),
      modules_(modules),
      sampler_(sampler),
      seen_(seen) {}

CallTree::~CallTree() = default;

inline CallTree::Chain& CallTree::chain_of_caller() {
  return known_chain.session == session_ ? *static_cast<Chain*>(known_chain.chain) : new_chain();
}

CallTree::Chain& CallTree::new_chain() {
  auto made = std::make_unique<Chain>();
  made->deaths = seen_.deaths();
  made->thread = sampler_.serial_of_caller();
  const std::lock_guard guard(mutex_);
  made->root = root_of(made->thread, CallNodeInfo::Kind::kThread);
  made->nodes.set_number(0, made->root);
  chains_.push_back(std::move(made));
  known_chain = {session_, chains_.back().get()};
  return *chains_.back();
}

inline bool CallTree::load_previous(Address frame, Address& previous) const {
  return (raw(frame) & 7U) == 0 &&
         memory::load_address(kMemory, offset_by(frame, interpreter_.layout.frame.previous), previous);
}

inline bool CallTree::load_words(Address frame, FrameWords& words) const {
  const auto& layout = interpreter_.layout;
  const Address at = offset_by(frame, layout.frame.position);
  if (!is_narrow_) {
    if (!kMemory.load(at, words.position)) return false;
  } else {
    std::uint32_t narrow = 0;
    if (!kMemory.load(at, narrow)) return false;
    words.position = narrow;
  }
  return kMemory.load(offset_by(frame, layout.frame.executable), words.executable);
}

inline std::uint16_t CallTree::deaths_of(const FrameWords& words) const {
  return seen_.deaths_at(Address{words.executable & ~interpreter_.layout.executable_tag_mask});
}

inline std::size_t CallTree::count_same(const Chain& chain, std::size_t count) const {
  const std::uint64_t previous_at = interpreter_.layout.frame.previous;
  const std::uint64_t position_at = interpreter_.layout.frame.position;
  const std::uint64_t executable_at = interpreter_.layout.frame.executable;
  const bool is_narrow = is_narrow_;
  const Link* const links = chain.links.data();
  Address around{};
  for (std::size_t i = 0; i < count; ++i) {
    const Link& link = links[i];
    Address previous{};
    if (!memory::load_address(kMemory, offset_by(link.frame, previous_at), previous) || previous != around) return i;
    if (!is_narrow) {
      std::uint64_t position = 0;
      if (!kMemory.load(offset_by(link.frame, position_at), position) || position != link.position) return i;
    } else {
      std::uint32_t position = 0;
      std::uint64_t executable = 0;
      if (!kMemory.load(offset_by(link.frame, position_at), position) || position != link.position ||
          !kMemory.load(offset_by(link.frame, executable_at), executable) || executable != link.executable)
        return i;
    }
    around = link.frame;
  }
  return count;
}

inline void CallTree::push(Chain& chain, const Link& link) {
  if (chain.depth == chain.links.size()) [[unlikely]]
    chain.links.resize(2 * chain.depth + 16);
  chain.index_of_frame[frame_row(link.frame)] = static_cast<std::uint32_t>(chain.depth);
  chain.links[chain.depth++] = link;
}

inline CallNode CallTree::find_nearby(Chain& chain, Address frame) {
  const std::size_t index = chain.index_of_frame[frame_row(frame)];
  if (index >= chain.depth || chain.links[index].frame != frame || count_same(chain, index) != index) return 0;
  Link& link = chain.links[index];
  const Address around = index == 0 ? Address{} : chain.links[index - 1].frame;
  Address previous{};
  FrameWords words;
  if (!load_previous(frame, previous) || previous != around || !load_words(frame, words)) return 0;
  if (words.position != link.position || words.executable != link.executable) {
    words.deaths = deaths_of(words);
    const FrameNodes::Place found = chain.nodes.find(index == 0 ? 0 : chain.links[index - 1].place, words);
    if (found == 0) return 0;
    link.position = words.position;
    link.executable = words.executable;
    link.place = found;
    link.node = chain.nodes.number(found);
  }
  chain.depth = index + 1;
  return link.node;
}

CallNode CallTree::stack_of_caller() {
  Chain& chain = chain_of_caller();
  if (modules_ != nullptr) return mixed_stack_of_caller(chain);
  const Address state = interpreter_.thread_state_of_caller().address;
  Address frame{};
  if (is_null(state)) return native_root(chain);
  if (!cpython::current_frame(kMemory, interpreter_.layout, state, frame))
    return unproven(chain, cpython::WalkStop::kUnreadable);
  if (chain.deaths != seen_.deaths()) [[unlikely]] {
    chain.depth = 0;
    chain.deaths = seen_.deaths();
  }
  const CallNode nearby = find_nearby(chain, frame);
  return nearby != 0 ? nearby : walk(chain, frame);
}

CallNode CallTree::walk(Chain& chain, Address frame) {
  chain.fresh.clear();
  const Address innermost = frame;
  std::size_t kept = 0;
  std::size_t same = 0;
  bool is_compared = false;
  while (!is_null(frame)) {
    const std::size_t index = chain.index_of_frame[frame_row(frame)];
    if (index < chain.depth && chain.links[index].frame == frame) {
      if (!std::exchange(is_compared, true)) same = count_same(chain, index + 1);
      if (index < same) {
        kept = index + 1;
        break;
      }
    }
    if (chain.fresh.size() == max_depth_) return truncated(chain, innermost);
    chain.fresh.push_back(frame);
    if (!load_previous(frame, frame)) return unproven(chain, cpython::WalkStop::kUnreadable);
  }
  if (kept + chain.fresh.size() > max_depth_) return truncated(chain, innermost);
  return extend(chain, kept);
}

CallNode CallTree::extend(Chain& chain, std::size_t kept) {
  chain.depth = kept;
  FrameNodes::Place place = kept == 0 ? 0 : chain.links[kept - 1].place;
  CallNode node = kept == 0 ? chain.root : chain.links[kept - 1].node;
  for (std::size_t i = chain.fresh.size(); i > 0; --i) {
    const Address frame = chain.fresh[i - 1];
    FrameWords words;
    if (!load_words(frame, words)) return unproven(chain, cpython::WalkStop::kUnreadable);
    words.deaths = deaths_of(words);
    FrameNodes::Place found = chain.nodes.find(place, words);
    if (found == 0) [[unlikely]] {
      auto stop = cpython::WalkStop::kComplete;
      found = prove(chain, frame, words, place, stop);
      // The innermost may be between two states, and is left out.
      const bool is_half_made = stop == cpython::WalkStop::kNotCode && i == 1;
      if (stop != cpython::WalkStop::kComplete && !is_half_made) return unproven(chain, stop);
    }
    if (found != place) node = chain.nodes.number(found);
    place = found;
    push(chain, {frame, words.position, words.executable, place, node});
  }
  return node;
}

FrameNodes::Place CallTree::prove(Chain& chain, Address frame, const FrameWords& words, FrameNodes::Place below,
                                  cpython::WalkStop& stop) {
  cpython::PyFrame found;
  const auto look =
      cpython::internal::look_at_frame(kMemory, interpreter_.layout, interpreter_.code_type, frame, found);
  stop = look.stop;
  if (stop != cpython::WalkStop::kComplete) return below;
  CallNode number = chain.nodes.number(below);  // of an entry from C, which is no frame of Python code
  if (look.found) {
    seen_.mark(found.code);
    CallNodeInfo info;
    info.parent = number;
    info.frame = found;
    const std::lock_guard guard(mutex_);
    number = new_node(info);
  }
  return chain.nodes.add(below, words, number);
}

CallNode CallTree::truncated(Chain& chain, Address frame) {
  chain.depth = 0;
  chain.fresh.clear();
  while (!is_null(frame) && chain.fresh.size() < max_depth_) {
    chain.fresh.push_back(frame);
    if (!load_previous(frame, frame)) return unproven(chain, cpython::WalkStop::kUnreadable);
  }
  const std::lock_guard guard(mutex_);
  CallNode node = root_of(chain.thread, CallNodeInfo::Kind::kTruncated);
  for (std::size_t i = chain.fresh.size(); i > 0; --i) {
    cpython::PyFrame found;
    const auto look = cpython::internal::look_at_frame(kMemory, interpreter_.layout, interpreter_.code_type,
                                                       chain.fresh[i - 1], found);
    if (look.found) node = node_of(node, found);
  }
  return node;
}

CallNode CallTree::unproven(Chain& chain, cpython::WalkStop stop) {
  chain.depth = 0;
  sampler_.count_drop(reason_of(stop), 0);
  return chain.root;
}

CallNode CallTree::node_of(CallNode parent, const cpython::PyFrame& frame) {
  const Key key{parent, frame.position, raw(frame.code) | std::uint64_t{seen_.deaths_at(frame.code)} << 48U};
  const auto known = nodes_.find(key);
  if (known != nodes_.end()) return known->second;
  seen_.mark(frame.code);
  CallNodeInfo info;
  info.parent = parent;
  info.frame = frame;
  const CallNode made = new_node(info);
  nodes_.emplace(key, made);
  return made;
}

CallNode CallTree::native_root(Chain& chain) {
  if (chain.native_root != 0) return chain.native_root;
  const std::lock_guard guard(mutex_);
  return chain.native_root = root_of(chain.thread, CallNodeInfo::Kind::kNative);
}

CallNode CallTree::root_of(ThreadSerial thread, CallNodeInfo::Kind kind) {
  auto& roots = kind == CallNodeInfo::Kind::kThread   ? thread_roots_
                : kind == CallNodeInfo::Kind::kNative ? native_roots_
                                                      : truncated_roots_;
  const std::size_t row = thread.is_none() ? 0 : thread.index() + 1U;
  if (row >= roots.size()) roots.resize(row + 1);
  if (roots[row] != 0) return roots[row];
  CallNodeInfo info;
  info.kind = kind;
  info.thread = thread;
  return roots[row] = new_node(info);
}

CallNode CallTree::new_node(const CallNodeInfo& info) {
  // Times are to tell code objects that were at one address apart: between two deaths any will do.
  if (const std::uint32_t deaths = seen_.deaths(); met_ns_ == 0 || deaths != met_deaths_) {
    met_deaths_ = deaths;
    met_ns_ = monotonic_ns();
  }
  new_.push_back(info);
  new_.back().time_ns = met_ns_;
  return ++last_node_;
}

void CallTree::take_new(std::vector<CallNodeInfo>& out) {
  out.clear();
  const std::lock_guard guard(mutex_);
  out.swap(new_);
}

}  // namespace plimsoll::capture
