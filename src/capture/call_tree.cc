#include "capture/call_tree.h"

#include <sched.h>

#include <new>
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
    : quick_{{interpreter.layout.frame.previous, interpreter.layout.frame.position, interpreter.layout.frame.executable,
              interpreter.layout.frame.entry_mark},
             interpreter.attached_state_of_caller,
             &seen,
             last_tree.fetch_add(1, std::memory_order_relaxed) + 1,
             interpreter.layout.tstate.current_frame,
             interpreter.layout.cframe.current_frame},
      interpreter_(interpreter),
      max_depth_(max_depth),
      positions_(positions_of(interpreter.layout, modules != nullptr)),
      code_mask_(~(interpreter.layout.executable_tag_mask | (positions_ == Positions::kEntered ? kIsEntry : 0))),
      modules_(modules),
      sampler_(sampler),
      seen_(seen) {
  (void)held_key();  // made here, not in a hook
}

CallTree::~CallTree() {
  const std::lock_guard guard(chains_->mutex);
  chains_->all.clear();
}

std::size_t CallTree::threads_kept() const {
  const std::lock_guard guard(chains_->mutex);
  return chains_->all.size();
}

pthread_key_t CallTree::held_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    if (::pthread_key_create(&made, &thread_ends) != 0) throw std::bad_alloc();
    return made;
  }();
  return key;
}

// (What a thread allocates later than this is on another chain, which is given back likewise.)
void CallTree::thread_ends(void* pointer) noexcept {
  const std::unique_ptr<Held> held(static_cast<Held*>(pointer));
  known_chain = {};
  // In the child of a fork, somebody may hold this who does not exist there: then the chain stays.
  constexpr int kTries = 1000;
  std::unique_lock lock(held->chains->mutex, std::try_to_lock);
  for (int i = 0; i < kTries && !lock.owns_lock(); ++i) {
    ::sched_yield();
    (void)lock.try_lock();
  }
  if (!lock.owns_lock()) return;
  std::erase_if(held->chains->all, [&](const std::unique_ptr<Chain>& chain) { return chain.get() == held->chain; });
}

CallTree::Positions CallTree::positions_of(const cpython::Layout& layout, bool has_modules) {
  if (layout.position_style != cpython::PositionStyle::kInstruction) return Positions::kNarrow;
  return has_modules && layout.entries_are_marked() ? Positions::kEntered : Positions::kWide;
}

inline CallTree::Chain& CallTree::chain_of_caller() {
  return known_chain.session == quick_.session ? *static_cast<Chain*>(known_chain.chain) : new_chain();
}

CallTree::Chain& CallTree::new_chain() {
  auto made = std::make_unique<Chain>();
  made->thread = sampler_.serial_of_caller();
  made->links.resize(32);
  begin_era(*made);
  Chain& chain = *made;
  auto held = std::make_unique<Held>(Held{chains_, &chain});
  const std::unique_ptr<Held> before(static_cast<Held*>(::pthread_getspecific(held_key())));
  const std::lock_guard guard(mutex_);
  chain.links[0].node = chain.root = root_of(chain.thread, CallNodeInfo::Kind::kThread);
  chain.nodes.set_number(0, chain.root);
  const std::lock_guard chains_guard(chains_->mutex);
  chains_->all.push_back(std::move(made));
  // (Without memory for that the chain stays after the thread's end.)
  if (::pthread_setspecific(held_key(), held.get()) == 0) (void)held.release();
  known_chain = {quick_.session, &chain};
  return chain;
}

void CallTree::begin_era(Chain& chain) {
  clear(chain);
  chain.deaths = seen_.deaths();
  const std::uint64_t era = last_era_.fetch_add(1, std::memory_order_relaxed) + 1;
  chain.era = era << 32U;
  // If there is no era left that no keys are of, there are no keys any more.
  chain.era_deaths = era <= 0xffffffffU ? chain.deaths : kNoKeys;
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

// Adds kIsEntry to a word if the frame is an entry from C.
inline bool CallTree::load_entry(Address frame, std::uint64_t mark_at, std::uint64_t& word) {
  std::uint8_t mark = 0;
  if (!kMemory.load(offset_by(frame, mark_at), mark)) return false;
  if (mark != 0) word |= kIsEntry;
  return true;
}

template <CallTree::Positions positions>
inline bool CallTree::load_words(FrameOffsets offsets, Address frame, FrameWords& words) {
  using Word = std::conditional_t<positions == Positions::kNarrow, std::uint32_t, std::uint64_t>;
  if (!load_position<Word>(frame, offsets.position, words.position) ||
      !kMemory.load_at(frame, offsets.executable, words.executable))
    return false;
  if constexpr (positions == Positions::kEntered) return load_entry(frame, offsets.entry_mark, words.executable);
  return true;
}

// Calls `with(std::integral_constant<Positions, ...>)`, of how they are.
template <typename With>
inline auto CallTree::with_positions(With with) const {
  switch (positions_) {
    case Positions::kNarrow: return with(std::integral_constant<Positions, Positions::kNarrow>{});
    case Positions::kWide: return with(std::integral_constant<Positions, Positions::kWide>{});
    case Positions::kEntered: break;
  }
  return with(std::integral_constant<Positions, Positions::kEntered>{});
}

inline bool CallTree::load_any_words(Address frame, FrameWords& words) const {
  return with_positions([&](auto positions) { return load_words<positions()>(frame_offsets(), frame, words); });
}

inline std::uint32_t CallTree::deaths_of(const FrameWords& words) const {
  return seen_.deaths_at(Address{words.executable & code_mask_});
}

template <CallTree::Positions positions>
inline const CallTree::Link* CallTree::find_other(FrameOffsets offsets, const Link* begin, const Link* end) {
  for (const Link* at = begin; at != end; ++at) {
    const Address frame = at->frame;
    if (!kMemory.is_at(frame, offsets.previous, raw(at[-1].frame))) return at;
    if constexpr (positions != Positions::kNarrow) {
      if (!kMemory.is_at(frame, offsets.position, at->position)) return at;
      if constexpr (positions == Positions::kEntered) {
        std::uint64_t entry = 0;
        if (!load_entry(frame, offsets.entry_mark, entry) || entry != (at->executable & kIsEntry)) return at;
      }
    } else {
      const auto position = static_cast<std::uint32_t>(at->position);
      if (position != at->position || !kMemory.is_at(frame, offsets.position, position) ||
          !kMemory.is_at(frame, offsets.executable, at->executable))
        return at;
    }
  }
  return end;
}

inline void CallTree::push(Chain& chain, const Link& link) {
  if (chain.depth + 1 == chain.links.size()) [[unlikely]]
    chain.links.resize(2 * chain.links.size());
  set_depth(chain, chain.depth + 1);
  chain.index_of_frame[frame_row(link.frame)] = static_cast<std::uint32_t>(chain.depth);
  chain.links[chain.depth] = link;
}

template <CallTree::Positions positions>
inline bool CallTree::find_link(FrameOffsets offsets, Chain& chain, Address frame, const Link*& other) {
  const Link* link = chain.top;
  if (link->frame != frame) [[unlikely]] {
    link = link_of(chain, frame);
    other = nullptr;
    if (link == nullptr) return false;
  }
  other = find_other<positions>(offsets, chain.links.data() + 1, link);
  if (other != link || !kMemory.is_at(frame, offsets.previous, raw(link[-1].frame))) return false;
  chain.found = link;
  return true;
}

template <CallTree::Positions positions>
inline StackKey CallTree::key_on(FrameOffsets offsets, const Chain& chain, Address frame) {
  StackKey key{0, chain.era | chain.found[-1].place};
  if constexpr (positions == Positions::kWide) {
    if (!kMemory.load_at(frame, offsets.position, key.at)) return {};
  } else if constexpr (positions == Positions::kEntered) {
    FrameWords words;
    if (!load_words<positions>(offsets, frame, words)) return {};
    key.at = words.position | (words.executable & kIsEntry);  // which no instruction's address has
  } else {
    // The code object and the place in it, as one word, if they fit.
    constexpr unsigned kPositionBits = 17;
    FrameWords words;
    if (!load_words<positions>(offsets, frame, words)) return {};
    const std::uint32_t position = static_cast<std::uint32_t>(words.position) + 1;  // which was -1 at the beginning
    key.at = words.executable << kPositionBits | position;
    if (position >> kPositionBits != 0 || words.executable >> (64U - kPositionBits) != 0) return {};
  }
  return key;
}

template <CallTree::Positions positions, cpython::FrameStyle style>
StackKey CallTree::find_key(void* self) {
  CallTree& tree = *static_cast<CallTree*>(self);
  const Quick& quick = tree.quick_;
  const Address state = quick.attached_state();
  if (is_null(state) || known_chain.session != quick.session) [[unlikely]]
    return {};
  Chain& chain = *static_cast<Chain*>(known_chain.chain);
  std::uint64_t word = 0;
  if (!kMemory.load_at(state, quick.current_frame, word)) return {};
  if constexpr (style == cpython::FrameStyle::kCFrame)
    if (!kMemory.load_at(Address{word}, quick.frame_of_entry, word)) return {};
  const Address frame{word};
  if (chain.era_deaths != quick.seen->deaths()) [[unlikely]]
    return {};
  const Link* other = nullptr;
  if (!find_link<positions>(quick.frame, chain, frame, other)) [[unlikely]]
    return tree.walk_to_key(chain, frame, other);
  return key_on<positions>(quick.frame, chain, frame);
}

template <CallTree::Positions positions, cpython::FrameStyle style>
StackKey CallTree::find_mixed_key(void* self) {
  CallTree& tree = *static_cast<CallTree*>(self);
  if (known_chain.session != tree.quick_.session) [[unlikely]]
    return {};
  Chain& chain = *static_cast<Chain*>(known_chain.chain);
  chain.unmet = {};
  tree.find_machine_code(chain);
  if (chain.machine_code == nullptr) return {};
  if (chain.deaths != tree.seen_.deaths()) [[unlikely]]
    tree.begin_era(chain);
  const StackKey python = find_key<positions, style>(self);
  // (An innermost frame that is an entry from C is not told from others by its place.)
  if (python.is_none() || chain.machine_code->has(chain.found->frame)) [[unlikely]]
    return {};
  const MixedKey key{python, chain.machine_code->number};
  const auto known = chain.mixed_nodes.find(key);
  if (known != chain.mixed_nodes.end()) [[likely]]
    return {known->second, kMixedEra};
  chain.unmet = key;
  return {};
}

template <CallTree::Positions positions, cpython::FrameStyle style>
KeyFinder CallTree::finder() {
  return {modules_ != nullptr ? &find_mixed_key<positions, style> : &find_key<positions, style>, this};
}

KeyFinder CallTree::key_finder() {
  using Style = cpython::FrameStyle;
  const Style style = interpreter_.layout.frame_style;
  if (interpreter_.attached_state_of_caller == nullptr) return {&no_key, this};
  if (positions_ == Positions::kNarrow) return finder<Positions::kNarrow, Style::kFrameObject>();
  if (positions_ == Positions::kEntered) return finder<Positions::kEntered, Style::kCFrame>();
  return style == Style::kCFrame ? finder<Positions::kWide, Style::kCFrame>()
                                 : finder<Positions::kWide, Style::kDirect>();
}

StackKey CallTree::walk_to_key(Chain& chain, Address frame, const Link* other) {
  if (is_null(frame) || walk(chain, frame, other) != cpython::WalkStop::kComplete) return {};
  return with_positions([&](auto positions) { return key_on<positions()>(frame_offsets(), chain, frame); });
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
  if (modules_ != nullptr) return mixed_stack_of_caller(chain);
  if (is_null(state)) return native_root(chain);
  Address frame{};
  if (!cpython::current_frame(kMemory, interpreter_.layout, state, frame))
    return unproven(chain, cpython::WalkStop::kUnreadable);
  if (chain.deaths != seen_.deaths()) begin_era(chain);
  const cpython::WalkStop stop = find_any_link(chain, frame);
  if (stop == cpython::WalkStop::kTruncated) return truncated(chain, frame);
  if (stop != cpython::WalkStop::kComplete) return unproven(chain, stop);
  StackKey key;
  return stack_of_found(chain, key);
}

CallNode CallTree::stack_of(StackKey& key) {
  if (modules_ != nullptr) return mixed_stack_of(chain_of_caller(), key);
  return key.is_none() ? stack_of_caller() : stack_of_found(*static_cast<Chain*>(known_chain.chain), key);
}

CallNode CallTree::stack_of_found(Chain& chain, StackKey& key) {
  const Link& link = *chain.found;
  if (is_null(link.frame)) return link.node;
  FrameWords words;
  if (!load_any_words(link.frame, words)) {
    key = {};
    return unproven(chain, cpython::WalkStop::kUnreadable);
  }
  if (words.position == link.position && words.executable == link.executable) return link.node;
  const Link& below = (&link)[-1];
  FrameNodes::Guess& guess = chain.nodes.guess(below.place, words.position);
  if (guess.is(below.place, chain.deaths, words) || find_on_top(chain, below.place, words, guess)) return guess.number;
  auto stop = cpython::WalkStop::kComplete;
  const FrameNodes::Place made = prove(chain, link.frame, words, below.place, stop);
  if (stop == cpython::WalkStop::kComplete) return chain.nodes.number(made);
  key = {};
  // The innermost may be between two states, and is left out.
  return stop == cpython::WalkStop::kNotCode ? below.node : unproven(chain, stop);
}

inline const CallTree::Link* CallTree::find_any_other(const Link* begin, const Link* end) const {
  return with_positions([&](auto positions) { return find_other<positions()>(frame_offsets(), begin, end); });
}

cpython::WalkStop CallTree::find_any_link(Chain& chain, Address frame) {
  const Link* other = nullptr;
  const bool is_found = !is_null(frame) && with_positions([&](auto positions) {
    return find_link<positions()>(frame_offsets(), chain, frame, other);
  });
  return is_found ? cpython::WalkStop::kComplete : walk(chain, frame, other);
}

cpython::WalkStop CallTree::walk(Chain& chain, Address frame, const Link* other) {
  chain.fresh.clear();
  const Link* kept = chain.links.data();
  while (!is_null(frame)) {
    if (const Link* link = link_of(chain, frame); link != nullptr) {
      if (other == nullptr) other = find_any_other(chain.links.data() + 1, link + 1);
      if (link < other) {
        kept = link;
        break;
      }
    }
    if (chain.fresh.size() == max_depth_) return cpython::WalkStop::kTruncated;
    chain.fresh.push_back(frame);
    if (!load_previous(frame, frame)) return cpython::WalkStop::kUnreadable;
  }
  const auto depth = static_cast<std::size_t>(kept - chain.links.data());
  if (depth + chain.fresh.size() > max_depth_) return cpython::WalkStop::kTruncated;
  return extend(chain, depth);
}

cpython::WalkStop CallTree::extend(Chain& chain, std::size_t kept) {
  chain.found = &chain.links[kept];
  if (chain.fresh.empty()) return cpython::WalkStop::kComplete;
  set_depth(chain, kept);
  FrameNodes::Place place = chain.found->place;
  for (std::size_t i = chain.fresh.size(); i > 1; --i) {
    const Address frame = chain.fresh[i - 1];
    FrameWords there;
    if (!load_any_words(frame, there)) return cpython::WalkStop::kUnreadable;
    FrameWords words = told_words(chain, frame, there);
    FrameNodes::Guess& guess = chain.nodes.guess(place, words.position);
    const bool is_known = guess.is(place, chain.deaths, words) || find_on_top(chain, place, words, guess);
    if (is_known) {
      place = guess.at;
    } else {
      auto stop = cpython::WalkStop::kComplete;
      place = prove(chain, frame, words, place, stop);
      if (stop != cpython::WalkStop::kComplete) return stop;
    }
    push(chain, {frame, there.position, there.executable, place, chain.nodes.number(place)});
  }
  push(chain, {chain.fresh.front(), kNotLookedUp});
  chain.found = chain.top;
  return cpython::WalkStop::kComplete;
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
    if (!chain.nodes.is_noted(words)) {  // else it has been looked for
      chain.nodes.note(words, chain.lines.of(interpreter_.layout, found, seen_.deaths()));
      if (const FrameNodes::Place met = chain.nodes.find(below, words); met != 0) return met;
    }
    seen_.mark(found.code);
    if (modules_ == nullptr) {  // else it is no stack yet
      CallNodeInfo info;
      info.parent = number;
      info.frame = found;
      const std::lock_guard guard(mutex_);
      number = new_node(info);
    }
  }
  return chain.nodes.add(below, words, number);
}

CallNode CallTree::truncated(Chain& chain, Address frame) {
  clear(chain);
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
    if (look.found) node = node_of(chain, node, found);
  }
  return node;
}

CallNode CallTree::unproven(Chain& chain, cpython::WalkStop stop) {
  clear(chain);
  sampler_.count_drop(reason_of(stop), 0);
  return chain.root;
}

CallNode CallTree::node_of(Chain& chain, CallNode parent, const cpython::PyFrame& frame) {
  const std::int32_t line = chain.lines.of(interpreter_.layout, frame, seen_.deaths());
  const Key key{parent, line, raw(frame.code), seen_.deaths_at(frame.code)};
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

void CallTree::take_new(GrowingArray<CallNodeInfo>& out) {
  out.clear();
  const std::lock_guard guard(mutex_);
  std::swap(out, new_);
}

}  // namespace plimsoll::capture
