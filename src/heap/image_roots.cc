#include "heap/image_roots.h"

#include <algorithm>
#include <utility>

#include "cpython/collector_lists.h"
#include "cpython/collector_pages.h"
#include "cpython/walk.h"
#include "heap/image_edges.h"

namespace plimsoll::heap {
namespace {

constexpr std::size_t kMostInterpreters = 4096, kMostThreads = 65536;
constexpr std::uint64_t kLongestName = 200;

// The roots of one interpreter.
class InterpreterRoots {
 public:
  InterpreterRoots(const ImageView& view, ImageTypes& types, const ImageRuntime& runtime, std::vector<ImageRoot>& roots)
      : view_(view), types_(types), runtime_(runtime), roots_(roots) {}

  // `suffix` tells it apart from the main one.
  void add(Address interpreter, const std::string& suffix) {
    const auto& fields = view_.fields().interpreter;
    const Address modules = view_.pointer(interpreter, fields.modules);
    roots_.push_back({"[modules]", "modules" + suffix, {}, {}});
    if (is_dict(modules))
      each_item(view_, modules, [&](Address key, Address value) {
        const ImageType* type = types_.of_object(key);
        if (type != nullptr && type->is(cpython::type_flag::kText)) roots_.back().edges.push_back({value, key});
      });
    roots_.push_back({"[interpreter]", "interpreter" + suffix, {}, {}});
    if (is_dict(modules)) roots_.back().edges.push_back({modules, {}, "modules"});
    for (const auto& [offset, word] : {std::pair{fields.dict, "dict"}, std::pair{fields.builtins, "builtins"}})
      if (const Address dict = view_.pointer(interpreter, offset); is_dict(dict))
        roots_.back().edges.push_back({dict, {}, word});
    add_threads(interpreter, suffix);
  }

 private:
  bool is_dict(Address object) {
    const ImageType* type = types_.of_object(object);
    return type != nullptr && type->is(cpython::type_flag::kDict);
  }

  void add_threads(Address interpreter, const std::string& suffix) {
    const std::size_t threads = roots_.size();
    roots_.push_back({"[threads]", "threads" + suffix, {}, {}});
    Address thread = view_.pointer(interpreter, view_.layout().runtime.threads);
    for (std::size_t i = 0; i < kMostThreads && !is_null(thread) && view_.spend(1); ++i) {
      roots_[threads].children.push_back(roots_.size());
      add_thread(thread);
      thread = view_.pointer(thread, view_.layout().tstate.next);
    }
  }

  void add_thread(Address thread) {
    const auto& fields = view_.fields().thread;
    const std::size_t number = roots_.size();
    const std::uint64_t id = view_.word(thread, view_.layout().tstate.thread_id);
    roots_.push_back({"[thread]", "thread " + std::to_string(id), {}, {}});
    const Address exception = view_.pointer(view_.pointer(thread, fields.exception), fields.value);
    for (const Address held : {view_.pointer(thread, fields.dict), view_.pointer(thread, fields.context),
                               view_.pointer(thread, fields.async_exception), exception})
      if (const ImageType* type = types_.of_object(held); type != nullptr && type->c_name != "NoneType")
        roots_[number].edges.push_back({held, {}, "state"});
    Address frame{};
    if (!cpython::current_frame(view_.image(), view_.layout(), thread, frame) || is_null(frame)) return;
    if (view_.layout().frame_style == cpython::FrameStyle::kFrameObject)
      roots_[number].edges.push_back({frame, {}, "frame"});
    else
      add_frames(frame, number);
  }

  void add_frames(Address frame, std::size_t thread) {
    constexpr std::size_t kDeepest = 1'000'000;
    if (!view_.spend(8)) return;
    bool is_innermost = true;
    cpython::internal::each_frame(view_.image(), view_.layout(), runtime_.code_type, frame, kDeepest,
                                  [&](Address at, const auto& look, const cpython::PyFrame& found) {
                                    if (!look.found) return view_.spend(8);
                                    add_frame(at, found.code, thread);
                                    if (!std::exchange(is_innermost, false)) add_stack(roots_.back(), at, found.code);
                                    return view_.spend(8);
                                  });
  }

  void add_frame(Address frame, Address code, std::size_t thread) {
    const auto& fields = view_.fields().frame;
    constexpr std::uint64_t kTag = 3;
    ImageRoot root{"[frame]",
                   text_of(view_, view_.pointer(code, view_.layout().code.name), kLongestName) + "()",
                   {{code, {}, "code"}},
                   {}};
    const auto add = [&](Address held, const char* word) {
      if (!is_null(held)) root.edges.push_back({held, {}, word});
    };
    add(Address{view_.word(frame, fields.function) & ~kTag}, "function");
    add(view_.pointer(frame, fields.locals), "locals");
    add(view_.pointer(frame, fields.object), "frame");
    add_variables(root, frame, view_.pointer_in(code, view_.fields().code.variable_names));
    roots_[thread].children.push_back(roots_.size());
    roots_.push_back(std::move(root));
  }

  void add_variables(ImageRoot& root, Address frame, Address names) {
    constexpr std::uint64_t kMost = 1U << 20U;
    const std::uint64_t count = std::min(view_.item_count(names), kMost);
    Address at = view_.place_in(names, view_.fields().tuple_items);
    view_.each_row<1>(offset_by(frame, view_.fields().frame.variables), count, [&](const auto& row) {
      const Address name = view_.pointer(at, 0);
      at = offset_by(at, 8);
      if (const Address held = held_by(row[0]); !is_null(held)) root.edges.push_back({held, name});
    });
  }

  // What it goes on with when the call that it waits for is done. (Of the innermost one nobody knows how much that is:
  // it may run.)
  void add_stack(ImageRoot& root, Address frame, Address code) {
    const std::uint64_t first = view_.item_count(view_.pointer_in(code, view_.fields().code.variable_names));
    const std::uint64_t depth = view_.number_in<std::uint32_t>(code, view_.fields().code.stack_size);
    const std::uint64_t end = places_in_use(view_, frame);
    if (end <= first || end - first > depth) return;
    const std::uint64_t start = view_.fields().frame.variables + 8 * first;
    view_.each_row<1>(offset_by(frame, start), end - first, [&](const auto& row) {
      if (const Address held = held_by(row[0]); !is_null(held)) root.edges.push_back({held, {}, "stack"});
    });
  }

  // By a place of a frame: null for nothing, and for a small number in place of a reference.
  [[nodiscard]] Address held_by(std::uint64_t word) const {
    constexpr std::uint64_t kTag = 3;  // both bits: such a number
    if (!view_.fields().has_tagged_frames) return Address{word};
    return (word & kTag) == kTag ? Address{} : Address{word & ~kTag};
  }

  const ImageView& view_;
  ImageTypes& types_;
  const ImageRuntime& runtime_;
  std::vector<ImageRoot>& roots_;
};

}  // namespace

std::vector<Address> interpreters_of(const ImageView& view, Address runtime) {
  std::vector<Address> found;
  Address interpreter = view.pointer(runtime, view.layout().runtime.interpreters);
  while (!is_null(interpreter) && found.size() < kMostInterpreters) {
    found.push_back(interpreter);
    interpreter = view.pointer(interpreter, view.layout().runtime.next_interpreter);
  }
  return found;
}

std::vector<ImageRoot> find_roots(const ImageView& view, ImageTypes& types, const ImageRuntime& runtime) {
  std::vector<ImageRoot> roots;
  std::vector<Address> interpreters = interpreters_of(view, runtime.runtime);
  std::reverse(interpreters.begin(), interpreters.end());  // the main one is the oldest
  InterpreterRoots adding(view, types, runtime, roots);
  for (std::size_t i = 0; i < interpreters.size(); ++i)
    adding.add(interpreters[i], i == 0 ? "" : " (interpreter " + std::to_string(i) + ")");
  return roots;
}

namespace {

using Visit = std::function<void(std::size_t, Address)>;

bool each_on_lists(const ImageView& view, ImageTypes& types, Address interpreter, const Visit& visit) {
  const auto is_tracked = [&](Address object) {
    const ImageType* type = types.of_object(object);
    return type != nullptr && type->is(cpython::type_flag::kCollected);
  };
  const cpython::CollectorLists lists(view, interpreter, is_tracked);
  return lists.each([&](std::size_t list, Address object) {
    if (!view.spend(1)) return false;
    visit(list, object);
    return true;
  });
}

bool each_in_pages(const ImageView& view, std::span<const Address> interpreters, const Visit& visit) {
  std::vector<Address> known;
  for (const Address interpreter : interpreters)
    for (const std::uint32_t field : {view.fields().interpreter.modules, view.fields().interpreter.builtins})
      known.push_back(view.pointer(interpreter, field));
  cpython::CollectorPages pages(view, known);
  bool is_whole = pages.is_found();
  if (pages.is_found())
    view.image().each_copied(cpython::page_size::kSegment, [&](Address segment) {
      is_whole = pages.each_in(segment, [&](Address object) { visit(kNoList, object); }) && is_whole;
    });
  return is_whole;
}

}  // namespace

bool each_tracked(const ImageView& view, ImageTypes& types, std::span<const Address> interpreters, const Visit& visit) {
  if (view.layout().version.threading == cpython::Version::Threading::kFree)
    return each_in_pages(view, interpreters, visit);
  bool is_whole = true;
  for (const Address interpreter : interpreters) is_whole = each_on_lists(view, types, interpreter, visit) && is_whole;
  return is_whole;
}

}  // namespace plimsoll::heap
