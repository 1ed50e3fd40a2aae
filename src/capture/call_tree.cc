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
      positions_(interpreter.layout.position_style == cpython::PositionStyle::kInstruction ? Positions::kWide
                                                                                           : Positions::kNarrow),
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

namespace {

// The position of a frame, as wide as it is.
template <typename Word>
bool load_position(Address frame, std::uint64_t position_at, std::uint64_t& position) {
  Word word = 0;
  if (!kMemory.load_at(frame, position_at, word)) return false;
  position = word;
  return true;
}

}  // namespace

template <CallTree::Positions positions>
inline bool CallTree::load_words(Address frame, FrameWords& words) const {
  using Word = std::conditional_t<positions == Positions::kWide, std::uint64_t, std::uint32_t>;
  return load_position<Word>(frame, interpreter_.layout.frame.position, words.position) &&
         kMemory.load_at(frame, interpreter_.layout.frame.executable, words.executable);
}

inline bool CallTree::load_any_words(Address frame, FrameWords& words) const {
  return positions_ == Positions::kWide ? load_words<Positions::kWide>(frame, words)
                                        : load_words<Positions::kNarrow>(frame, words);
}

inline std::uint16_t CallTree::deaths_of(const FrameWords& words) const {
  return seen_.deaths_at(Address{words.executable & ~interpreter_.layout.executable_tag_mask});
}

template <CallTree::Positions positions>
inline const CallTree::Link* CallTree::find_other(const Link* begin, const Link* end) const {
  const std::uint64_t previous_at = interpreter_.layout.frame.previous;
  const std::uint64_t position_at = interpreter_.layout.frame.position;
  const std::uint64_t executable_at = interpreter_.layout.frame.executable;
  std::uint64_t around = 0;
  for (const Link* at = begin; at != end; ++at) {
    // (All of the link is read before a guarded load, which the compiler takes for one that may write.)
    const Address frame = at->frame;
    FrameWords known{at->position, at->executable, 0};
    FrameWords found;
    std::uint64_t previous = 0;
    if constexpr (positions == Positions::kWide) {
      if (!kMemory.load_at(frame, previous_at, previous) || previous != around ||
          !kMemory.load_at(frame, position_at, found.position) || found.position != known.position)
        return at;
    } else {
      std::uint32_t position = 0;
      if (!kMemory.load_at(frame, previous_at, previous) || previous != around ||
          !kMemory.load_at(frame, position_at, position) || position != known.position ||
          !kMemory.load_at(frame, executable_at, found.executable) || found.executable != known.executable)
        return at;
    }
    around = raw(frame);
  }
  return end;
}

inline void CallTree::push(Chain& chain, const Link& link) {
  if (chain.depth == chain.links.size()) [[unlikely]]
    chain.links.resize(2 * chain.depth + 16);
  chain.index_of_frame[frame_row(link.frame)] = static_cast<std::uint32_t>(chain.depth);
  chain.links[chain.depth++] = link;
}

template <CallTree::Positions positions>
inline CallNode CallTree::node_at(Chain& chain, Address frame) {
  const std::size_t index = chain.index_of_frame[frame_row(frame)];
  Link* const links = chain.links.data();
  if (index >= chain.depth || links[index].frame != frame) return walk(chain, frame);
  Link& link = links[index];
  if (find_other<positions>(links, &link) != &link) return walk(chain, frame);
  const Address around = index == 0 ? Address{} : links[index - 1].frame;
  std::uint64_t previous = 0;
  FrameWords words;
  if (!kMemory.load_at(frame, interpreter_.layout.frame.previous, previous) || previous != raw(around) ||
      !load_words<positions>(frame, words))
    return walk(chain, frame);
  chain.depth = index + 1;
  if (words.position == link.position && words.executable == link.executable) return link.node;
  const FrameNodes::Place below = index == 0 ? 0 : links[index - 1].place;
  const FrameNodes::Guess& guess = chain.nodes.guess(below, words.position);
  if (!guess.is(below, chain.deaths, words)) [[unlikely]]
    return unguessed(chain, words.position, words.executable);
  return link.become(guess);
}

CallNode CallTree::unguessed(Chain& chain, std::uint64_t position, std::uint64_t executable) {
  Link& link = chain.links[chain.depth - 1];
  const FrameNodes::Place below = chain.depth == 1 ? 0 : chain.links[chain.depth - 2].place;
  FrameWords words{position, executable, 0};
  FrameNodes::Guess& guess = chain.nodes.guess(below, position);
  return find_on_top(chain, below, words, guess) ? link.become(guess) : walk(chain, link.frame);
}

bool CallTree::find_on_top(Chain& chain, FrameNodes::Place below, FrameWords& words, FrameNodes::Guess& guess) {
  words.deaths = deaths_of(words);
  const FrameNodes::Place found = chain.nodes.find(below, words);
  if (found == 0) return false;
  guess = {words.position, words.executable, below, chain.deaths, found, chain.nodes.number(found)};
  return true;
}

CallNode CallTree::stack_of_caller() {
  const Address state = interpreter_.thread_state_of_caller().address;
  Chain& chain = chain_of_caller();
  if (modules_ != nullptr) [[unlikely]]
    return mixed_stack_of_caller(chain);
  Address frame{};
  if (is_null(state)) [[unlikely]]
    return native_root(chain);
  if (!cpython::current_frame(kMemory, interpreter_.layout, state, frame)) [[unlikely]]
    return unproven(chain, cpython::WalkStop::kUnreadable);
  if (chain.deaths != seen_.deaths()) [[unlikely]] {
    chain.depth = 0;
    chain.deaths = seen_.deaths();
  }
  return positions_ == Positions::kWide ? node_at<Positions::kWide>(chain, frame)
                                        : node_at<Positions::kNarrow>(chain, frame);
}

inline std::size_t CallTree::count_same(const Chain& chain, std::size_t count) const {
  const Link* const links = chain.links.data();
  const Link* const other = positions_ == Positions::kWide ? find_other<Positions::kWide>(links, links + count)
                                                           : find_other<Positions::kNarrow>(links, links + count);
  return static_cast<std::size_t>(other - links);
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
    if (!load_any_words(frame, words)) return unproven(chain, cpython::WalkStop::kUnreadable);
    FrameNodes::Guess& guess = chain.nodes.guess(place, words.position);
    const bool is_known = guess.is(place, chain.deaths, words) || find_on_top(chain, place, words, guess);
    FrameNodes::Place found = is_known ? guess.at : 0;
    if (!is_known) [[unlikely]] {
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
