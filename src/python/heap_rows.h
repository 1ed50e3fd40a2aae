// python/heap_rows.h: objects as words, which whoever looks at them writes, and the rows of a file that are made of
// those meanwhile, by another thread if there is one.
//
// A word is a kind, in its upper 8 bits, and mostly an address; words without a kind may follow it.
#pragma once

#include <Python.h>

#include <algorithm>
#include <array>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heap/address_set.h"
#include "heap/generations.h"
#include "heap/snapshot_writer.h"
#include "heap/word_stream.h"
#include "python/compat.h"
#include "python/type_plan.h"

namespace plimsoll::python {

// The kinds of words. Those of edges have the numbers of EdgeKind.
enum class WordKind : std::uint8_t {
  kNamed = static_cast<std::uint8_t>(heap::EdgeKind::kNamed),  // what is held; the name, a str
  kWeak = static_cast<std::uint8_t>(heap::EdgeKind::kWeak),
  kNamedByUs = heap::kEdgeKindCount,  // what is held; the name, a text of ours
  kObject,   // the object; type and references; whether it is on a list, and size. Ends the one before
  kContent,  // of a str or bytes; its hash
  kBuffer,   // where it begins; its size
  kStack,    // its number
  kText,     // its size; the bytes, as many words as they take
};

// Writes them.
class ObjectWords {
 public:
  explicit ObjectWords(heap::WordStream& words) : words_(words) {}

  void object(Address object, std::uint32_t type, std::uint32_t references, bool is_on_a_list, std::uint64_t size) {
    put(WordKind::kObject, raw(object), std::uint64_t{type} << 32U | references, word(is_on_a_list ? 1 : 0, size));
  }
  void edge(heap::EdgeKind kind, Address held) { *words_.put(1) = word(static_cast<std::uint8_t>(kind), raw(held)); }
  void named(Address held, PyObject* name) { put(WordKind::kNamed, raw(held), raw(address_of(name))); }
  void named(Address held, const char* name) { put(WordKind::kNamedByUs, raw(held), raw(address_of(name))); }
  void content(std::uint64_t hash) { put(WordKind::kContent, 0, hash); }
  void buffer(std::uint64_t start, std::uint64_t size) { put(WordKind::kBuffer, start, size); }
  void allocated_by(std::uint32_t stack) { put(WordKind::kStack, stack); }
  // What does not fit into a piece is left out; texts are cut at some hundred characters before, all but names in C.
  void text(std::string_view whole) {
    const std::string_view text = whole.substr(0, (heap::WordStream::kPieceWords - 1) * sizeof(std::uint64_t));
    std::uint64_t* room = words_.put(1 + (text.size() + 7) / 8);
    *room = word(static_cast<std::uint8_t>(WordKind::kText), text.size());
    text.copy(reinterpret_cast<char*>(room + 1), text.size());
  }

 private:
  static std::uint64_t word(std::uint8_t kind, std::uint64_t value) { return std::uint64_t{kind} << 56U | value; }
  template <typename... More>
  void put(WordKind kind, std::uint64_t value, More... more) {
    std::uint64_t* room = words_.put(1 + sizeof...(more));
    *room = word(static_cast<std::uint8_t>(kind), value);
    ((*++room = more), ...);
  }

  heap::WordStream& words_;
};

// Makes rows: from words, or from what it is told. Looks at no object but the names of others, and calls nothing of
// Python's.
class RowMaker {
 public:
  // `hidden`: references to these are not lost.
  RowMaker(const heap::AddressSet& found, const heap::Generations& generations, const std::vector<PyObject*>& hidden,
           heap::SnapshotWriter& writer)
      : found_(found), generations_(generations), hidden_(hidden), writer_(writer) {}

  // Records of words, each of them whole.
  void take(std::span<const std::uint64_t> words) {
    // In words: of these what they will need is fetched, and those come from another CPU, which takes longer.
    constexpr std::size_t kAhead = 16, kFarAhead = 96;
    const std::uint64_t* const end = words.data() + words.size();
    for (const std::uint64_t* at = words.data(); at < end;) {
      __builtin_prefetch(at + kFarAhead);
      if (end - at > static_cast<std::ptrdiff_t>(kAhead)) fetch(at[kAhead]);
      at = take(at);
    }
  }
  // After all words.
  void end_objects() {
    end_object();
    writer_.end_objects();
  }

  void edge(heap::EdgeKind kind, Address held) {
    const heap::Node target = found_.rank(held);
    if (target == heap::kNoNode)
      lose(held);
    else
      writer_.edge(kind, target);
  }
  template <typename Name>
  void named(Address held, Name name) {
    const heap::Node target = found_.rank(held);
    if (target == heap::kNoNode) return lose(held);
    LastName& last = last_names_[raw(address_of(name)) * 0x9e3779b97f4a7c15U >> (64U - kLastNameBits)];
    if (last.name != name) last = {name, number_of(name)};
    writer_.named_edge(target, last.number);
  }

 private:
  static constexpr std::uint64_t kValueBits = (std::uint64_t{1} << 56U) - 1;
  static constexpr Py_ssize_t kLongestName = 200;

  // What a word will need. (Of one without a kind that is something else, and does no harm.)
  void fetch(std::uint64_t word) const { found_.prefetch(Address{word & kValueBits}); }

  // Takes one of them; returns what comes after it.
  const std::uint64_t* take(const std::uint64_t* at) {
    const auto kind = static_cast<std::uint8_t>(*at >> 56U);
    const std::uint64_t value = *at & kValueBits;
    switch (static_cast<WordKind>(kind)) {
      case WordKind::kObject: object(value, at[1], at[2]); return at + 3;
      case WordKind::kNamed: named(Address{value}, pointer_to<PyObject>(Address{at[1]})); return at + 2;
      case WordKind::kNamedByUs: named(Address{value}, pointer_to<const char>(Address{at[1]})); return at + 2;
      case WordKind::kContent: writer_.content_hash(at[1]); return at + 2;
      case WordKind::kBuffer: writer_.buffer(value, at[1]); return at + 2;
      case WordKind::kStack: writer_.allocated_by(static_cast<std::uint32_t>(value)); return at + 1;
      case WordKind::kText:
        writer_.text({reinterpret_cast<const char*>(at + 1), value});
        return at + 1 + (value + 7) / 8;
      case WordKind::kWeak: weak(Address{value}); return at + 1;
    }
    if (static_cast<heap::EdgeKind>(kind) == heap::EdgeKind::kType)
      writer_.edge_to_type();
    else
      edge(static_cast<heap::EdgeKind>(kind), Address{value});
    return at + 1;
  }
  void object(std::uint64_t address, std::uint64_t type, std::uint64_t size) {
    end_object();
    is_open_ = true;
    writer_.begin_node(static_cast<std::uint32_t>(type >> 32U), size & kValueBits, static_cast<std::uint32_t>(type),
                       Address{address});
    writer_.generation(size >> 56U != 0 ? generations_.of(Address{address}) : heap::Generation::kUntracked);
  }
  void end_object() {
    if (is_open_) writer_.end_node();
    is_open_ = false;
  }
  template <typename Name>
  std::uint32_t number_of(Name name) {
    const auto [found, is_new] = names_.try_emplace(name, 0);
    if (is_new) found->second = writer_.add_name(text_of_name(name));
    return found->second;
  }
  void weak(Address held) {
    const heap::Node target = found_.rank(held);
    if (target != heap::kNoNode) writer_.edge(heap::EdgeKind::kWeak, target);
  }
  void lose(Address held) {
    const auto is_held = [&](PyObject* each) { return address_of(each) == held; };
    if (std::none_of(hidden_.begin(), hidden_.end(), is_held)) writer_.count_lost_edge();
  }
  static std::string text_of_name(const char* name) { return name; }
  static std::string text_of_name(PyObject* name) { return text_of(name, kLongestName); }

  const heap::AddressSet& found_;
  const heap::Generations& generations_;
  const std::vector<PyObject*>& hidden_;
  heap::SnapshotWriter& writer_;
  boost::unordered_flat_map<const void*, std::uint32_t> names_;
  // What was asked for last of those that share a place.
  struct LastName {
    const void* name = nullptr;
    std::uint32_t number = 0;
  };
  static constexpr unsigned kLastNameBits = 8;
  std::array<LastName, std::size_t{1} << kLastNameBits> last_names_{};
  bool is_open_ = false;  // an object
};

}  // namespace plimsoll::python
