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

CallTree::Chain& CallTree::chain_of_caller() {
  if (known_chain.session == session_) [[likely]]
    return *static_cast<Chain*>(known_chain.chain);
  auto made = std::make_unique<Chain>();
  made->known.resize(std::size_t{1} << kKnownBits);
  made->deaths = seen_.deaths();
  made->thread = sampler_.serial_of_caller();
  const std::lock_guard guard(mutex_);
  made->root = root_of(made->thread, CallNodeInfo::Kind::kThread);
  chains_.push_back(std::move(made));
  known_chain = {session_, chains_.back().get()};
  return *chains_.back();
}

CallNode CallTree::stack_of_caller() {
  Chain& chain = chain_of_caller();
  if (modules_ != nullptr) return mixed_stack_of_caller(chain);
  const Address state = interpreter_.thread_state_of_caller().address;
  Address frame{};
  if (is_null(state)) return native_root(chain);
  if (!cpython::current_frame(kMemory, interpreter_.layout, state, frame))
    return unproven(chain, cpython::WalkStop::kUnreadable);
  if (is_same(chain, frame)) [[likely]]
    return chain.links.empty() ? chain.root : chain.links.back().node;
  return walk(chain, frame);
}

bool CallTree::is_same(const Chain& chain, Address frame) const {
  if (chain.deaths != seen_.deaths()) return false;
  const auto& offsets = interpreter_.layout.frame;
  for (std::size_t i = chain.links.size(); i > 0; --i) {
    const Link& link = chain.links[i - 1];
    if (frame != link.frame) return false;
    std::uint64_t position = 0;
    std::uint64_t executable = link.executable;
    if (!load_position(frame, position) || position != link.position) return false;
    if (is_narrow_ && !kMemory.load(offset_by(frame, offsets.executable), executable)) return false;
    if (executable != link.executable || !memory::load_address(kMemory, offset_by(frame, offsets.previous), frame))
      return false;
  }
  return is_null(frame);
}

bool CallTree::load_position(Address frame, std::uint64_t& position) const {
  const Address at = offset_by(frame, interpreter_.layout.frame.position);
  if (!is_narrow_) return kMemory.load(at, position);
  std::uint32_t narrow = 0;
  const bool is_there = kMemory.load(at, narrow);
  position = narrow;
  return is_there;
}

bool CallTree::read_words(Address frame, Link& link) const {
  const auto& offsets = interpreter_.layout.frame;
  link.frame = frame;
  if ((raw(frame) & 7U) != 0) return false;
  return load_position(frame, link.position) && kMemory.load(offset_by(frame, offsets.executable), link.executable) &&
         memory::load_address(kMemory, offset_by(frame, offsets.previous), link.previous);
}

CallNode CallTree::walk(Chain& chain, Address frame) {
  chain.fresh.clear();
  if (chain.deaths != seen_.deaths()) {
    chain.links.clear();
    chain.known.assign(std::size_t{1} << kKnownBits, {});
    chain.deaths = seen_.deaths();
  }
  while (!is_null(frame)) {
    if (chain.fresh.size() == max_depth_) return truncated(chain);
    Link& link = chain.fresh.emplace_back();
    if (!read_words(frame, link)) return unproven(chain, cpython::WalkStop::kUnreadable);
    frame = link.previous;
  }
  std::size_t kept = 0;
  const std::size_t most = std::min(chain.fresh.size(), chain.links.size());
  while (kept < most) {
    const Link& now = chain.fresh[chain.fresh.size() - 1 - kept];
    const Link& before = chain.links[kept];
    if (now.frame != before.frame || now.position != before.position || now.executable != before.executable) break;
    ++kept;
  }
  return extend(chain, kept);
}

CallNode CallTree::extend(Chain& chain, std::size_t kept) {
  chain.links.resize(kept);
  CallNode node = kept == 0 ? chain.root : chain.links.back().node;
  for (std::size_t i = chain.fresh.size() - kept; i > 0; --i) {
    Link& link = chain.fresh[i - 1];
    const Known& known = chain.known[known_row(link, node)];
    if (known.parent == node && known.position == link.position && known.executable == link.executable) {
      node = known.node;
    } else {
      auto stop = cpython::WalkStop::kComplete;
      const CallNode found = prove(chain, link, node, stop);
      // The innermost may be between two states, and is left out.
      const bool is_half_made = stop == cpython::WalkStop::kNotCode && i == 1;
      if (found == 0 && !is_half_made) return unproven(chain, stop);
      if (found != 0) node = found;
    }
    link.node = node;
    chain.links.push_back(link);
  }
  return node;
}

CallNode CallTree::prove(Chain& chain, const Link& link, CallNode parent, cpython::WalkStop& stop) {
  cpython::PyFrame found;
  const auto look =
      cpython::internal::look_at_frame(kMemory, interpreter_.layout, interpreter_.code_type, link.frame, found);
  stop = look.stop;
  if (stop != cpython::WalkStop::kComplete) return 0;
  CallNode node = parent;  // of an entry from C, which is no frame of Python code
  if (look.found) {
    const std::lock_guard guard(mutex_);
    node = node_of(parent, found);
  }
  chain.known[known_row(link, parent)] = {link.position, link.executable, parent, node};
  return node;
}

CallNode CallTree::truncated(Chain& chain) {
  const std::lock_guard guard(mutex_);
  CallNode node = root_of(chain.thread, CallNodeInfo::Kind::kTruncated);
  chain.links.clear();
  for (std::size_t i = chain.fresh.size(); i > 0; --i) {
    cpython::PyFrame found;
    const Address frame = chain.fresh[i - 1].frame;
    const auto look =
        cpython::internal::look_at_frame(kMemory, interpreter_.layout, interpreter_.code_type, frame, found);
    if (look.found) node = node_of(node, found);
  }
  return node;
}

CallNode CallTree::unproven(Chain& chain, cpython::WalkStop stop) {
  chain.links.clear();
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
  new_.push_back(info);
  new_.back().time_ns = monotonic_ns();
  return ++last_node_;
}

void CallTree::take_new(std::vector<CallNodeInfo>& out) {
  out.clear();
  const std::lock_guard guard(mutex_);
  out.swap(new_);
}

}  // namespace plimsoll::capture
