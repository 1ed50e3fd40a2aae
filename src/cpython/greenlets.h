// cpython/greenlets.h: the greenlets of a process (of the module greenlet, on which gevent stands), and where each is
// suspended.
//
// Up to Python 3.15 and greenlet 3.5 a greenlet is an object with a pointer to one of C++, which keeps what the
// thread's state has to be when the greenlet goes on. No table says where. But the order of what is wanted has been the
// same since greenlet 2.0: the thread's state of exceptions, the C stack, the context, the innermost frame; and behind
// numbers that differ by version the thread's main greenlet, what is to be run, and the parent. So two offsets are
// learned from the greenlets that there are: where one of them has a frame, and where it has another greenlet.
//
// GIL builds; without a GIL objects have other heads, and no list leads to them.
#pragma once

#include <algorithm>
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cpython/frame_variables.h"

namespace plimsoll::cpython {

// Where a greenlet's object of C++ keeps things, in bytes; 0: not known.
struct GreenletPlaces {
  std::uint32_t top_frame = 0;
  std::uint32_t main = 0;
};

// A greenlet as one reading has it.
struct GreenletRecord {
  // Whether its thread runs it, and whether it has begun and ended.
  enum class State : std::uint8_t { kRunning, kSuspended, kNew, kEnded };

  Address greenlet{};
  State state = State::kNew;
  Address thread_state{};            // one of those that are known, or null
  Address main{};                    // the main greenlet of its thread, or null; itself, if it is one
  Address parent{};                  // or null
  Address innermost{};               // where its innermost frame is
  WalkStop stop{};                   // why there are no more frames
  std::size_t most = 0;              // frames that were wanted
  std::vector<PyFrame> frames = {};  // innermost first
};

// Whether two readings agree.
inline bool is_same(const GreenletRecord& one, const GreenletRecord& other) {
  const auto is_same_frame = [](const PyFrame& a, const PyFrame& b) {
    return a.code == b.code && a.position == b.position;
  };
  return one.greenlet == other.greenlet && one.state == other.state && one.thread_state == other.thread_state &&
         one.main == other.main && one.parent == other.parent && one.innermost == other.innermost &&
         one.stop == other.stop &&
         std::equal(one.frames.begin(), one.frames.end(), other.frames.begin(), other.frames.end(), is_same_frame);
}

// Reads them. Nothing that it reads is believed to be what it should be. Used by one thread at a time.
template <memory::Reader M>
class GreenletReader {
 public:
  // Where a frame is looked for: no farther than the object of C++ may be long, as behind it may be that of another.
  static constexpr std::uint32_t kSearched = 256;

  // `view` must outlive it. `code_type` is the address of PyCode_Type, `thread_states` are all that there are. Of a
  // greenlet no more than `most_frames` are read.
  GreenletReader(const ObjectView<M>& view, Address code_type, std::vector<Address> thread_states,
                 std::size_t most_frames)
      : view_(view),
        code_type_(code_type),
        type_type_(view.type_of(code_type)),
        thread_states_(std::move(thread_states)),
        room_(most_frames) {
    std::sort(thread_states_.begin(), thread_states_.end());
  }

  // Of an object that the collector's lists lead to: whether it is one, of a class that the collector knows.
  [[nodiscard]] bool is_tracked(Address object) const { return kind_of_object(object) != Kind::kOther; }
  [[nodiscard]] bool is_greenlet(Address object) const { return kind_of_object(object) == Kind::kGreenlet; }
  // Whether there are any of greenlet before 2.0, which are laid out otherwise.
  [[nodiscard]] bool has_met_old_ones() const { return has_met_old_ones_; }

  // Learns from one of them where a suspended one has its frame. All that there are should be shown, and then all again
  // to learn_main().
  void learn_frame(Address greenlet) {
    constexpr std::uint32_t kEnough = 16;
    const Address made = implementation(greenlet);
    if (frames_seen_ == kEnough || is_null(made)) return;
    for (std::uint32_t at = kLeastBefore; at < kSearched; at += 8) {
      if (!is_frame(view_.pointer(made, at))) continue;
      ++frames_seen_;
      if (places_.top_frame == 0 || at < places_.top_frame) places_.top_frame = at;
      return;
    }
  }
  // And where one that has begun has its thread's main greenlet: the first behind its frame, but for (in greenlet 2)
  // itself.
  void learn_main(Address greenlet) {
    const Address made = implementation(greenlet);
    if (places_.top_frame == 0 || places_.main != 0 || is_null(made) || !has_begun(made) || is_main(made)) return;
    for (std::uint32_t at = places_.top_frame + 8; at <= places_.top_frame + kMostBetween; at += 8)
      if (const Address other = view_.pointer(made, at); other != greenlet && is_greenlet(other)) {
        places_.main = at;
        return;
      }
  }
  [[nodiscard]] const GreenletPlaces& places() const { return places_; }

  // At most `most` of its frames. False if there is no greenlet at the address, or nothing was learned.
  bool read(Address greenlet, std::size_t most, GreenletRecord& out) {
    const Address made = implementation(greenlet);
    if (places_.top_frame == 0 || is_null(made)) return false;
    out = {};
    out.greenlet = greenlet;
    out.most = std::min(most, room_.size());
    out.thread_state = thread_of(greenlet, made);
    const Address top = view_.pointer(made, places_.top_frame);
    const bool is_active = view_.word(made, places_.top_frame - kStackStart) != 0;
    using State = GreenletRecord::State;
    if (is_null(top) && !is_active)
      out.state = has_begun(made) ? State::kEnded : State::kNew;
    else  // (C code alone leaves no frame when it is suspended; but the state of exceptions is kept then only.)
      out.state = is_null(top) && is_null(out.thread_state) ? State::kRunning : State::kSuspended;
    read_others(made, out);
    if (!is_null(top)) read_frames(top, out);
    return true;
  }

  // Where the frames are that a reading has found, if they are still there; else none.
  [[nodiscard]] std::vector<Address> addresses(const GreenletRecord& record) const {
    std::vector<Address> found;
    const bool are_there = internal::follow_frames(view_.memory(), view_.layout(), code_type_, record.innermost,
                                                   std::span(record.frames), found);
    return are_there ? found : std::vector<Address>();
  }

 private:
  // What a class says of its instances.
  enum class Kind : std::uint8_t { kOther, kTracked, kGreenlet };

  // PyGreenlet: a head, weak references, a dict, the pointer.
  static constexpr std::uint32_t kImplementation = 32, kSize = 40;
  // In front of the innermost frame: stack_start, stack_stop, three more words of the C stack, and the context.
  static constexpr std::uint32_t kStackStart = 48, kStackStop = 40;
  // The least that stands in front of it: a table of functions, the state of exceptions, arguments, and these.
  static constexpr std::uint32_t kLeastBefore = 48 + 40;
  // Behind the main greenlet: what is to be run, the parent.
  static constexpr std::uint32_t kParent = 16;
  static constexpr std::uint32_t kMostBetween = 160;  // the frame and the main greenlet

  // Null if there is no greenlet.
  [[nodiscard]] Address implementation(Address greenlet) const {
    const Address made = is_greenlet(greenlet) ? view_.pointer(greenlet, kImplementation) : Address{};
    return (raw(made) & 7U) == 0 ? made : Address{};
  }

  [[nodiscard]] Kind kind_of_object(Address object) const {
    if (is_null(object) || (raw(object) & 7U) != 0) return Kind::kOther;
    const Address type = view_.type_of(object);
    if (type == last_type_) return last_kind_;
    // (What a class is takes long to find out. Who has more than this has made them up.)
    constexpr std::size_t kMostClasses = 1U << 17U;
    auto known = kinds_.find(raw(type));
    if (known == kinds_.end()) {
      if (kinds_.size() == kMostClasses) return Kind::kOther;
      known = kinds_.emplace(raw(type), kind_of(type)).first;
    }
    last_type_ = type;
    last_kind_ = known->second;
    return last_kind_;
  }

  [[nodiscard]] Kind kind_of(Address type) const {
    constexpr int kLongestChain = 64;
    view_.refill();
    if (is_null(type) || (raw(type) & 7U) != 0 || !is_class(view_, type_type_, type)) return Kind::kOther;
    if ((flags_of(type) & type_flag::kCollected) == 0) return Kind::kOther;
    Address base = type;
    for (int i = 0; i < kLongestChain && !is_null(base); ++i, base = view_.pointer(base, type_field::kBase)) {
      const bool is_of_c = (flags_of(base) & type_flag::kHeapType) == 0;
      if (!is_of_c || c_text(view_, view_.pointer(base, type_field::kName)) != "greenlet.greenlet") continue;
      if (view_.word(base, type_field::kBasicSize) == kSize) return Kind::kGreenlet;
      has_met_old_ones_ = true;
    }
    return Kind::kTracked;
  }
  [[nodiscard]] std::uint64_t flags_of(Address type) const { return view_.word(type, type_field::kFlags); }

  // Whether there is a frame object, of a frame that has not ended.
  [[nodiscard]] bool is_frame(Address object) const {
    if (kind_of_object(object) != Kind::kTracked) return false;
    const Address type = view_.type_of(object);
    view_.refill();
    if ((flags_of(type) & type_flag::kHeapType) != 0 ||
        c_text(view_, view_.pointer(type, type_field::kName)) != "frame")
      return false;
    const Address frame = frame_of(object);
    PyFrame found;
    if (is_null(frame) || !internal::look_at_frame(view_.memory(), view_.layout(), code_type_, frame, found).found)
      return false;
    const bool knows_object = view_.fields().frame.object != kNoField;
    return !knows_object || view_.pointer(frame, view_.fields().frame.object) == object;
  }
  // The interpreter's own frame, which up to 3.10 is the object.
  [[nodiscard]] Address frame_of(Address object) const {
    const bool is_object = view_.layout().frame_style == FrameStyle::kFrameObject;
    return is_object ? object : view_.pointer(object, view_.fields().frame_object.frame);
  }

  [[nodiscard]] bool has_begun(Address made) const { return view_.word(made, places_.top_frame - kStackStop) != 0; }
  // The stack of a thread's main greenlet has no end.
  [[nodiscard]] bool is_main(Address made) const {
    return view_.word(made, places_.top_frame - kStackStop) == ~std::uint64_t{0};
  }

  void read_others(Address made, GreenletRecord& out) const {
    if (is_main(made)) out.main = out.greenlet;
    if (places_.main == 0 || is_main(made)) return;
    const Address main = view_.pointer(made, places_.main);
    if (is_greenlet(main)) out.main = main;
    const Address parent = view_.pointer(made, places_.main + kParent);
    if (is_greenlet(parent)) out.parent = parent;
  }

  void read_frames(Address top, GreenletRecord& out) {
    out.stop = WalkStop::kUnreadable;
    if (!is_frame(top)) return;
    out.innermost = frame_of(top);
    const Walk walk = walk_frames(view_.memory(), view_.layout(), code_type_, out.innermost,
                                  std::span(room_).first(out.most), EntryMarks{});
    out.stop = walk.stop;
    // (Each that was found is a frame, but in a ring nothing is known of their order.)
    if (walk.stop == WalkStop::kCycle) return;
    const auto end = room_.begin() + walk.count;
    // From 3.12 on an entry from C is on the C stack, where by now that of another greenlet is. greenlet takes entries
    // out of the chain; what is behind one that is still in it is not known.
    const auto entry =
        std::find_if(room_.begin(), end, [](const PyFrame& frame) { return frame.position == kEntryMark; });
    if (entry != end) out.stop = WalkStop::kEntering;
    out.frames.assign(room_.begin(), entry);
  }

  // While it is suspended it keeps where the thread has its exception that is being handled: in a generator, from which
  // a chain leads on, or in the state of the thread. Null if it is none that is known.
  [[nodiscard]] Address thread_of(Address greenlet, Address made) const {
    constexpr std::uint64_t kStateSize = 1024;  // the part of it that matters
    constexpr int kLongestChain = 1000;
    // The state of exceptions is behind a table of functions, and in most versions a pointer to the object of Python.
    Address item = view_.pointer(made, view_.pointer(made, 8) == greenlet ? 16 : 8);
    const std::uint32_t previous = view_.fields().thread.value == 0 ? 8 : 24;
    for (int i = 0; i < kLongestChain && !is_null(item); ++i, item = view_.pointer(item, previous)) {
      const auto after = std::upper_bound(thread_states_.begin(), thread_states_.end(), item);
      if (after != thread_states_.begin() && raw(item) - raw(*std::prev(after)) < kStateSize) return *std::prev(after);
    }
    return {};
  }

  const ObjectView<M>& view_;
  const Address code_type_, type_type_;
  std::vector<Address> thread_states_;  // in order
  std::vector<PyFrame> room_;
  GreenletPlaces places_;
  std::uint32_t frames_seen_ = 0;  // greenlets that the first was learned from
  // Classes by address; what was asked for last is often asked for again.
  mutable boost::unordered_flat_map<std::uint64_t, Kind> kinds_;
  mutable Address last_type_{};
  mutable Kind last_kind_ = Kind::kOther;
  mutable bool has_met_old_ones_ = false;
};

}  // namespace plimsoll::cpython
