// capture/call_tree.h: numbers for call stacks, found so cheaply that every allocation can have one.
//
// A stack is a node of a prefix tree. A thread keeps the chain of frames that it was met on last, with the words of
// memory that make each of them what it is: most allocations come from the very same chain, and to know that takes a
// comparison of two words a frame. Else only the frames that differ are looked up.
//
// Equal words are a proof: the chain was proven when they were read, the thread stands still in the middle of its own
// allocation, and no code object that the tree knows has died since.
#pragma once

#include <atomic>
#include <boost/unordered/unordered_flat_map.hpp>
#include <memory>
#include <mutex>
#include <vector>

#include "capture/code_registry.h"
#include "capture/cpu_sampler.h"
#include "capture/interleave.h"
#include "capture/native_sample.h"
#include "capture/raw_sample.h"

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
  std::int64_t time_ns = 0;  // when it was first met
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

  // The stack that the calling thread is on.
  CallNode stack_of_caller();
  // For the drain thread: nodes that are new, in order; their numbers go on from those of the last call.
  void take_new(std::vector<CallNodeInfo>& out);

 private:
  // A frame, and what makes it the frame that it is.
  struct Link {
    Address frame{};
    std::uint64_t position = 0;    // as it lies in the frame
    std::uint64_t executable = 0;  // likewise
    Address previous{};
    CallNode node = 0;  // of the stack up to here
  };
  // A node that was looked up: of a frame with these words, on top of that stack.
  struct Known {
    std::uint64_t position = 0, executable = 0;
    CallNode parent = 0, node = 0;
  };
  static constexpr std::size_t kKnownBits = 10;
  static std::size_t known_row(const Link& link, CallNode parent) {
    return static_cast<std::size_t>(
        ((link.position ^ link.executable) * 0x9e3779b97f4a7c15U + parent) * 0xc2b2ae3d27d4eb4fU >> (64U - kKnownBits));
  }
  // A frame of either kind.
  struct MixedLink {
    Address code{};  // or instruction
    std::int32_t position = 0;
    CallNode node = 0;  // of the stack up to here
  };
  // What a thread was met on, with machine code: the two kinds of frames, and how they went together.
  struct Mixed {
    RawNative head;
    // Room for the deepest stack, and how many there are.
    std::vector<native::NativeFrame> native_room;
    std::vector<cpython::PyFrame> python_room;
    std::size_t python_count = 0;
    std::uint32_t deaths = 0, unloads = 0;
    bool is_matched = true;
    CallNode node = 0;
    std::vector<MixedLink> links;  // outermost first
    [[nodiscard]] std::span<const native::NativeFrame> native() const { return {native_room.data(), head.count}; }
    [[nodiscard]] std::span<const cpython::PyFrame> python() const { return {python_room.data(), python_count}; }
  };
  // What a thread was met on.
  struct Chain {
    ThreadSerial thread;
    CallNode root = 0;
    CallNode native_root = 0;  // 0: it was not met without Python
    std::uint32_t deaths = 0;  // of code objects, when it was proven
    std::vector<Link> links;   // outermost first
    std::vector<Known> known;  // by known_row, since the last death; found without a lock
    std::vector<Link> fresh;   // innermost first: those that are looked at; kept to save allocations
    // With machine code: how it was met last, and what is looked at.
    Mixed mixed, mixed_now;
    std::vector<StackItem> items;
  };
  // What a node is found by.
  struct Key {
    CallNode parent = 0;
    std::int32_t position = 0;
    std::uint64_t code = 0;  // with the number of deaths at its address
    bool operator==(const Key&) const = default;
    friend std::size_t hash_value(const Key& key) {
      std::uint64_t hash = key.code * 0x9e3779b97f4a7c15U;
      hash ^= (std::uint64_t{key.parent} << 32U | static_cast<std::uint32_t>(key.position)) * 0xc2b2ae3d27d4eb4fU;
      return static_cast<std::size_t>(hash ^ (hash >> 29U));
    }
  };

  Chain& chain_of_caller();
  // Whether the chain from `frame` outwards is what it was.
  [[nodiscard]] bool is_same(const Chain& chain, Address frame) const;
  [[nodiscard]] bool load_position(Address frame, std::uint64_t& position) const;
  [[nodiscard]] bool read_words(Address frame, Link& link) const;
  // Reads the chain from `frame` outwards, finds its node.
  CallNode walk(Chain& chain, Address frame);
  // Brings the links up to what is in `fresh`, but for the first `kept`, which are the same.
  CallNode extend(Chain& chain, std::size_t kept);
  // Of a frame on top of a stack, which is looked at first; 0 if it is none, and `stop` says why. Takes the lock.
  CallNode prove(Chain& chain, const Link& link, CallNode parent, cpython::WalkStop& stop);
  CallNode node_of(CallNode parent, const cpython::PyFrame& frame);
  CallNode new_node(const CallNodeInfo& info);
  CallNode native_root(Chain& chain);
  CallNode root_of(ThreadSerial thread, CallNodeInfo::Kind kind);
  // Of a chain that is too long to be kept: its innermost frames.
  CallNode truncated(Chain& chain);
  CallNode unproven(Chain& chain, cpython::WalkStop stop);

  // With machine code: mixed_calls.cc.
  CallNode mixed_stack_of_caller(Chain& chain);
  // Reads both kinds of frames into mixed_now.
  cpython::Walk read_both(Chain& chain, Address state);
  // Whether that is what the thread was met on last.
  [[nodiscard]] bool is_as_before(const Chain& chain) const;
  // Puts both kinds together, finds the node.
  CallNode mix(Chain& chain, CallNode root, cpython::WalkStop stop);
  CallNode machine_node_of(CallNode parent, const cpython::PyFrame& at, std::uint32_t unloads);

  const Interpreter interpreter_;
  const std::size_t max_depth_;
  const std::uint32_t session_;
  // Positions are of 4 bytes, and count from the beginning of the code: they do not say which code object it is.
  const bool is_narrow_;
  const native::Modules* const modules_;
  CpuSampler& sampler_;
  SeenFilter& seen_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Chain>> chains_;
  boost::unordered_flat_map<Key, CallNode, boost::hash<Key>> nodes_;
  std::vector<CallNode> thread_roots_, native_roots_, truncated_roots_;  // by ThreadSerial
  CallNode last_node_ = 0;
  std::vector<CallNodeInfo> new_;
};

}  // namespace plimsoll::capture
