// capture/call_tree.h: numbers for call stacks, found so cheaply that every allocation can have one.
//
// A stack is a node of a prefix tree; frames are told apart by their lines. A thread keeps the chain of frames that it
// was met on last, with the words of memory that make each of them what it is. It is met again on much the same chain:
// frames are read from the innermost outwards until one is found that was there before. That those around it are as
// they were takes a comparison of two words a frame, at addresses that are known beforehand, so that no load waits for
// another. The stack below the innermost frame and the position of that are a key, by which others may know the stack;
// only of a new key is the node looked up (capture/frame_nodes.h).
//
// Equal words are a proof: the chain was proven when they were read, the thread stands still in the middle of its own
// allocation, and no code object that the tree knows has died since.
//
// With machine code the same holds of both kinds of frames (native/proven_stacks.h). How both go together follows from
// these, if it is told where C entered Python: by the places of the entries' frames on the stack of C (from 3.12 on),
// or by which frames are marked as entries (3.11); up to 3.10 each frame has a call of the loop. So what was met before
// is found by the numbers of both (mixed_calls.cc).
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "base/growing_array.h"
#include "base/stack_key.h"
#include "capture/code_registry.h"
#include "capture/cpu_sampler.h"
#include "capture/frame_lines.h"
#include "capture/frame_nodes.h"
#include "capture/interleave.h"
#include "capture/native_sample.h"
#include "capture/raw_sample.h"
#include "native/proven_stacks.h"

namespace plimsoll::capture {

// The number of a stack in a CallTree; 0 = none.
using CallNode = std::uint32_t;

// A stack: a frame on top of another stack; or the beginning of a thread's stacks.
struct CallNodeInfo {
  // What it adds to the stack.
  enum class Kind : std::uint8_t {
    kFrame,
    kMachineCode,  // `frame.code` is an instruction
    kThread,       // `thread` is meant, and that it runs no Python code at the moment
    kNative,       // likewise, of a thread that Python does not know
    kTruncated,    // outer frames are missing
  };
  Kind kind = Kind::kFrame;
  CallNode parent = 0;
  cpython::PyFrame frame;
  ThreadSerial thread;
  std::int64_t time_ns = 0;  // when it was first met, or before; but later than any death of a code object before that
};
// Whether it is the beginning of stacks.
constexpr bool is_root(CallNodeInfo::Kind kind) {
  return kind != CallNodeInfo::Kind::kFrame && kind != CallNodeInfo::Kind::kMachineCode;
}

// The tree of one session. For any thread, with the GIL or without: one on a chain that it was on before takes no lock.
// May throw std::bad_alloc.
class CallTree {
 public:
  // `modules` is the machine code that stacks are to be of, too; null: Python frames only.
  CallTree(const Interpreter& interpreter, CpuSampler& sampler, SeenFilter& seen, std::size_t max_depth,
           const native::Modules* modules);
  CallTree(const CallTree&) = delete;
  CallTree& operator=(const CallTree&) = delete;
  ~CallTree();

  [[nodiscard]] const Interpreter& interpreter() const { return interpreter_; }
  // The stack that the calling thread is on.
  CallNode stack_of_caller();
  // What that stack is known by; none if it is to be asked for itself, as not all is as usual.
  [[nodiscard]] KeyFinder key_finder();
  // The stack that the calling thread is on, whose key it has just found, if there was one. Takes the key away if
  // it does not stand for the stack.
  CallNode stack_of(StackKey& key);
  // For the drain thread: nodes that are new, in order; their numbers go on from those of the last call.
  void take_new(GrowingArray<CallNodeInfo>& out);
  // How many threads there is something kept of: those that are there, and were met.
  [[nodiscard]] std::size_t threads_kept() const;

 private:
  // Narrow ones are of 4 bytes, and count from the beginning of the code: they do not say which code object it is.
  // Entered ones are wide, and it counts whether the frame is marked as an entry from C.
  enum class Positions : std::uint8_t { kNarrow, kWide, kEntered };
  static Positions positions_of(const cpython::Layout& layout, bool has_modules);
  // In FrameWords::executable: the frame is an entry from C.
  static constexpr std::uint64_t kIsEntry = 1;
  // A frame, and what makes it the frame that it is.
  struct Link {
    Address frame{};
    std::uint64_t position = 0;    // as it lies in the frame
    std::uint64_t executable = 0;  // likewise, and kIsEntry
    FrameNodes::Place place = 0;   // of the stack up to here
    CallNode node = 0;             // likewise
  };
  // The position of a link that was not looked up: frames that calls go on from are, but not the innermost.
  static constexpr std::uint64_t kNotLookedUp = ~std::uint64_t{0};
  // Where what a frame is told from others by lies in it.
  struct FrameOffsets {
    std::uint64_t previous = 0, position = 0, executable = 0, entry_mark = 0;
  };
  // A frame of either kind.
  struct MixedLink {
    Address code{};  // or instruction
    std::int32_t position = 0;
    CallNode node = 0;  // of the stack up to here
  };
  // With machine code: what else a stack is told from others by, beside its frames of both kinds.
  struct MixedFacts {
    RawNative head;
    cpython::WalkStop stop{};
    bool has_state = false;  // the thread is one of Python's
    std::uint32_t deaths = 0, unloads = 0;
    bool operator==(const MixedFacts&) const = default;
  };
  // A look at the calling thread.
  struct MixedLook {
    MixedFacts facts;
    // Room for the deepest stack, and how many Python frames there are.
    std::vector<native::NativeFrame> native_room;
    std::vector<cpython::PyFrame> python_room;
    std::size_t python_count = 0;
    [[nodiscard]] std::span<const native::NativeFrame> native() const { return {native_room.data(), facts.head.count}; }
    [[nodiscard]] std::span<const cpython::PyFrame> python() const { return {python_room.data(), python_count}; }
  };
  // A stack that a thread was met on, and how its frames went together.
  struct MixedStack {
    MixedFacts facts;
    std::vector<native::NativeFrame> native;
    std::vector<cpython::PyFrame> python;
    bool is_matched = true;
    CallNode node = 0;  // 0: there is none
  };
  // That which was looked up last, outermost frame first.
  struct MixedLinks {
    std::uint32_t deaths = 0, unloads = 0;
    std::vector<MixedLink> links;
  };
  // A program allocates in some places in turn, each of which is met again and again. What no place is kept for is
  // deep.
  static constexpr unsigned kMixedBits = 6;
  static constexpr std::size_t kDeepMixed = 256;
  using MixedStacks = std::array<MixedStack, std::size_t{1} << kMixedBits>;
  // What a stack of both kinds is known by to its thread.
  struct MixedKey {
    StackKey python;
    std::uint64_t native = 0;  // number of a ProvenStack; 0: this is no key
    bool operator==(const MixedKey&) const = default;
    friend std::size_t hash_value(const MixedKey& key) {
      std::uint64_t hash = key.python.at * 0x9e3779b97f4a7c15U;
      hash ^= (key.python.below + key.native) * 0xc2b2ae3d27d4eb4fU;
      return static_cast<std::size_t>(hash ^ (hash >> 29U));
    }
  };
  // So many are kept of a thread; then it begins anew.
  static constexpr std::size_t kMostMixed = std::size_t{1} << 18U;
  static constexpr unsigned kFrameBits = 9;
  static std::size_t frame_row(Address frame) {
    return static_cast<std::size_t>(raw(frame) * 0x9e3779b97f4a7c15U >> (64U - kFrameBits));
  }
  static constexpr std::uint64_t kNoKeys = ~std::uint64_t{0};
  // What a thread was met on.
  struct alignas(64) Chain {
    // Outermost first, the first being what is below all frames. So many others, up to `top`; the rest is room:
    std::vector<Link> links;
    std::size_t depth = 0;
    const Link* top = nullptr;
    const Link* found = nullptr;         // that of the frame which was innermost when the thread was met last
    std::uint64_t era = 0;               // of its keys until another dies, in their upper half; nobody else's
    std::uint64_t era_deaths = kNoKeys;  // as `deaths`
    // (What is above is one cache line, and what every allocation needs.)
    ThreadSerial thread;
    CallNode root = 0;
    CallNode native_root = 0;    // 0: it was not met without Python
    std::uint32_t deaths = 0;    // of code objects, when it was proven
    std::vector<Address> fresh;  // frames that differ, innermost first; kept to save allocations
    FrameNodes nodes;            // numbers are CallNodes
    FrameLines lines;
    // Where in `links` a frame may be, by its address.
    std::array<std::uint32_t, std::size_t{1} << kFrameBits> index_of_frame{};
    // With machine code: what is looked at, where it was met before, and what is kept to save allocations.
    MixedLook look;
    std::unique_ptr<MixedStacks> mixed;
    MixedLinks mixed_links, next_links;
    std::vector<StackItem> items;
    bool is_whole = false;  // what was looked up last, from its beginning to its end
    // What was met by its key, and the key that was not.
    std::unique_ptr<native::ProvenStacks> proven;
    const native::ProvenStack* machine_code = nullptr;  // that the thread is on
    boost::unordered_flat_map<MixedKey, CallNode, boost::hash<MixedKey>> mixed_nodes;
    MixedKey unmet;
  };
  // What a node is found by.
  struct Key {
    CallNode parent = 0;
    std::int32_t position = 0;  // of Python code its line: FrameLines
    std::uint64_t code = 0;     // its address
    std::uint32_t deaths = 0;   // at that address, before it; of machine code: libraries that had been unloaded
    bool operator==(const Key&) const = default;
    friend std::size_t hash_value(const Key& key) {
      std::uint64_t hash = (key.code ^ std::uint64_t{key.deaths} << 32U) * 0x9e3779b97f4a7c15U;
      hash ^= (std::uint64_t{key.parent} << 32U | static_cast<std::uint32_t>(key.position)) * 0xc2b2ae3d27d4eb4fU;
      return static_cast<std::size_t>(hash ^ (hash >> 29U));
    }
  };

  // For one way that versions may be; and for stacks that have none. (This and what it is made of is run with every
  // allocation. What is not as usual is left to another function as a whole: so nothing need be kept for after a call.)
  template <Positions positions, cpython::FrameStyle style>
  static StackKey find_key(void* tree);
  static StackKey no_key(void* /*tree*/) { return {}; }
  // Of a stack of both kinds: its number is its key.
  template <Positions positions, cpython::FrameStyle style>
  static StackKey find_mixed_key(void* tree);
  template <Positions positions, cpython::FrameStyle style>
  KeyFinder finder();
  // Of a thread whose chain is not what it was. As for `other`, see walk().
  StackKey walk_to_key(Chain& chain, Address frame, const Link* other);
  // Of an innermost frame, whose link was found.
  template <Positions positions>
  [[nodiscard]] static StackKey key_on(FrameOffsets offsets, const Chain& chain, Address frame);
  // Finds the link of the innermost frame, if all around it is what it was. Else `other` is the first that is not, or
  // null if none were compared.
  template <Positions positions>
  static bool find_link(FrameOffsets offsets, Chain& chain, Address frame, const Link*& other);

  // The chains of threads that have not ended. A thread may outlive the tree, and the tree most threads.
  struct Chains {
    mutable std::mutex mutex;
    std::vector<std::unique_ptr<Chain>> all;
  };
  // What a thread knows of its own, for when it ends.
  struct Held {
    std::shared_ptr<Chains> chains;
    Chain* chain = nullptr;
  };
  // Each thread's Held.
  static pthread_key_t held_key();
  static void thread_ends(void* held) noexcept;
  Chain& chain_of_caller();
  Chain& new_chain();
  // Nothing is known of its frames any more.
  static void clear(Chain& chain) { set_depth(chain, 0); }
  static void set_depth(Chain& chain, std::size_t depth) {
    static constexpr Link kNoFrame{.frame = Address{1}};  // nor null, which is the frame of a thread without any
    chain.depth = depth;
    chain.top = depth == 0 ? &kNoFrame : &chain.links[depth];
  }
  // Forgets what may be of code objects that have died since.
  void begin_era(Chain& chain);
  // The link of this frame, if it is one in the place where it was met; else null.
  static const Link* link_of(const Chain& chain, Address frame) {
    const std::size_t index = chain.index_of_frame[frame_row(frame)];
    const Link* const link = &chain.links[index];
    return index <= chain.depth && link->frame == frame ? link : nullptr;
  }
  [[nodiscard]] FrameOffsets frame_offsets() const { return quick_.frame; }
  template <typename With>
  auto with_positions(With with) const;
  // The first link that is not what it was, or not around the one before; `end` if all are.
  template <Positions positions>
  [[nodiscard]] static const Link* find_other(FrameOffsets offsets, const Link* begin, const Link* end);
  [[nodiscard]] const Link* find_any_other(const Link* begin, const Link* end) const;
  [[nodiscard]] bool load_previous(Address frame, Address& previous) const;
  // Reads them, but for the number of deaths.
  template <Positions positions>
  [[nodiscard]] static bool load_words(FrameOffsets offsets, Address frame, FrameWords& words);
  [[nodiscard]] static bool load_entry(Address frame, std::uint64_t mark_at, std::uint64_t& word);
  [[nodiscard]] bool load_any_words(Address frame, FrameWords& words) const;
  [[nodiscard]] std::uint32_t deaths_of(const FrameWords& words) const;
  // Puts a frame on top of the links that there are.
  static void push(Chain& chain, const Link& link);
  // The stack of the link that was found, which is new or was not looked up. As for the key, see stack_of().
  CallNode stack_of_found(Chain& chain, StackKey& key);
  // Finds what was met on top of the stack at `below`, and notes it. Sets the number of deaths, in any case.
  bool find_on_top(Chain& chain, FrameNodes::Place below, FrameWords& words, FrameNodes::Guess& guess);
  // Reads the chain from `frame` outwards as far as it differs, and finds the innermost link. `other` is the first link
  // that is known to be another; null if none were compared.
  cpython::WalkStop walk(Chain& chain, Address frame, const Link* other);
  // Likewise, where it may not differ.
  cpython::WalkStop find_any_link(Chain& chain, Address frame);
  // What a frame is told from others by, of which an entry from C has its place on C's stack, if that counts.
  static FrameWords told_words(const Chain& chain, Address frame, const FrameWords& words) {
    const bool is_entry = chain.machine_code != nullptr && chain.machine_code->has(frame);
    return is_entry ? FrameWords{raw(frame), words.executable} : words;
  }
  // Puts what is in `fresh` on top of the first `kept` links.
  cpython::WalkStop extend(Chain& chain, std::size_t kept);
  // Of a frame on top of a stack, which is looked at first: it may be on the line of one that was met there. `below` if
  // it is no frame.
  FrameNodes::Place prove(Chain& chain, Address frame, const FrameWords& words, FrameNodes::Place below,
                          cpython::WalkStop& stop);
  CallNode node_of(Chain& chain, CallNode parent, const cpython::PyFrame& frame);
  CallNode new_node(const CallNodeInfo& info);
  CallNode native_root(Chain& chain);
  CallNode root_of(ThreadSerial thread, CallNodeInfo::Kind kind);
  // Of a chain that is too long to be kept: its innermost frames.
  CallNode truncated(Chain& chain, Address frame);
  CallNode unproven(Chain& chain, cpython::WalkStop stop);

  // With machine code: mixed_calls.cc.
  CallNode mixed_stack_of_caller(Chain& chain);
  // Likewise, of a stack whose key was looked for.
  CallNode mixed_stack_of(Chain& chain, StackKey key);
  // Finds what machine code the calling thread is in, for chain.machine_code; null if that cannot be proven.
  void find_machine_code(Chain& chain) const;
  // Reads both kinds of frames.
  void read_both(MixedLook& look, Address state);
  // Where the stack that is looked at would have been kept.
  static MixedStack& place_of(Chain& chain);
  // Whether it is that one.
  static bool is_same(const MixedStack& stack, const MixedLook& look);
  // Puts both kinds together and finds the node, for that place.
  void mix(Chain& chain, MixedStack& stack);
  [[nodiscard]] CallNode mixed_root(Chain& chain);
  // The node of what chain.items say.
  CallNode mixed_node(Chain& chain, CallNode root);
  CallNode machine_node_of(CallNode parent, const cpython::PyFrame& at, std::uint32_t unloads);

  // What every allocation needs of what follows, in one cache line: each that it takes is one that the program loses.
  struct alignas(64) Quick {
    FrameOffsets frame;
    Address (*attached_state)() = nullptr;
    const SeenFilter* seen = nullptr;
    std::uint32_t session = 0;
    std::uint32_t current_frame = 0;   // of a thread state
    std::uint32_t frame_of_entry = 0;  // cpython::FrameStyle::kCFrame: of what that names
  };
  static_assert(sizeof(Quick) == 64);
  const Quick quick_;
  const Interpreter interpreter_;
  const std::size_t max_depth_;
  const Positions positions_;
  const std::uint64_t code_mask_;  // what of FrameWords::executable is an address
  const native::Modules* const modules_;
  // The last of the eras of threads' keys; the first is that of the keys of stacks of both kinds, which are numbers.
  static constexpr std::uint64_t kMixedEra = std::uint64_t{1} << 32U;
  std::atomic<std::uint64_t> last_era_{1};
  CpuSampler& sampler_;
  SeenFilter& seen_;
  const std::shared_ptr<Chains> chains_ = std::make_shared<Chains>();
  std::mutex mutex_;  // guards what follows; before that of the chains
  boost::unordered_flat_map<Key, CallNode, boost::hash<Key>> nodes_;
  std::vector<CallNode> thread_roots_, native_roots_, truncated_roots_;  // by ThreadSerial
  CallNode last_node_ = 0;
  GrowingArray<CallNodeInfo> new_;
  std::int64_t met_ns_ = 0;  // when the last nodes were met, and how many code objects had died
  std::uint32_t met_deaths_ = 0;
};

}  // namespace plimsoll::capture
