// cpython/context.h: the value of a context variable (contextvars.ContextVar) in a thread's current context.
//
// A context holds its variables in a hash array mapped trie: five bits of the variable's hash choose the way at each
// node. The trie is persistent: a change makes new nodes along one way and then swings one pointer, so whoever stops
// the thread between two instructions, or is sure that it does not run, sees a whole one. asyncio enters a task's own
// context for each of its steps, a thread has one of its own, greenlets take theirs along: what is found here is what
// ContextVar.get() would say.
#pragma once

#include <bit>
#include <cstdint>

#include "cpython/layout.h"
#include "memory/reader.h"

namespace plimsoll::cpython {

// A variable to look for. Types of nodes are not exported by CPython: python/context_lookup.cc learns them.
struct ContextVariable {
  Address variable{};  // the ContextVar
  std::uint32_t hash = 0;
  Address bitmap_node{};  // type of nodes that have up to 16 children, with a bitmap
  Address array_node{};   // type of nodes that have more
};

// The hash that tries are keyed by, made of the object's own hash as hamt.c does.
constexpr std::uint32_t trie_hash(std::int64_t hash) {
  const auto bits = static_cast<std::uint64_t>(hash);
  const auto folded = static_cast<std::uint32_t>(bits) ^ static_cast<std::uint32_t>(bits >> 32U);
  return folded == 0xffffffffU ? 0xfffffffeU : folded;
}

namespace internal {

// What a node says: the value; or the node to go on at; or neither.
struct TrieStep {
  Address value{};
  Address next{};
};

template <memory::Reader M>
bool step_in_trie(const M& memory, const Layout& layout, const ContextVariable& wanted, Address node, unsigned shift,
                  TrieStep& out) {
  const std::uint32_t branch = (wanted.hash >> shift) & 31U;
  Address type{};
  if (!memory::load_address(memory, offset_by(node, layout.object.type), type)) return false;
  if (type == wanted.array_node) {
    const Address at = offset_by(node, layout.context.array_entries + std::uint64_t{branch} * 8);
    return memory::load_address(memory, at, out.next);
  }
  // The third kind of node holds variables whose whole hashes are equal: one pair in four thousand million.
  if (type != wanted.bitmap_node) return false;
  std::uint32_t bitmap = 0;
  if (!memory.load(offset_by(node, layout.context.bitmap), bitmap)) return false;
  if ((bitmap >> branch & 1U) == 0) return true;
  const int before = std::popcount(bitmap & ((1U << branch) - 1));
  const Address pair = offset_by(node, layout.context.bitmap_entries + static_cast<std::uint64_t>(before) * 16);
  Address key{};
  Address value{};
  if (!memory::load_address(memory, pair, key) || !memory::load_address(memory, offset_by(pair, 8), value))
    return false;
  if (is_null(key)) out.next = value;  // a pair without a key leads to the next node
  if (key == wanted.variable) out.value = value;
  return true;
}

}  // namespace internal

// Finds the variable's value (a borrowed PyObject) in the current context of a thread state; null if it has none.
// False if something on the way could not be read. Async-signal-safe if `memory` is.
template <memory::Reader M>
bool find_in_context(const M& memory, const Layout& layout, const ContextVariable& wanted, Address tstate,
                     Address& value) {
  value = {};
  Address context{};
  Address trie{};
  Address node{};
  if (!memory::load_address(memory, offset_by(tstate, layout.tstate.context), context)) return false;
  if (is_null(context)) return true;  // a thread has no context before it first needs one
  if (!memory::load_address(memory, offset_by(context, layout.context.variables), trie) ||
      !memory::load_address(memory, offset_by(trie, layout.context.root), node))
    return false;
  constexpr unsigned kHashBits = 32;
  constexpr unsigned kBitsPerNode = 5;
  for (unsigned shift = 0; shift < kHashBits && !is_null(node); shift += kBitsPerNode) {
    internal::TrieStep step;
    if (!internal::step_in_trie(memory, layout, wanted, node, shift, step)) return false;
    value = step.value;
    node = step.next;
  }
  return is_null(node);
}

}  // namespace plimsoll::cpython
