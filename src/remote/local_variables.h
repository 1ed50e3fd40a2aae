// remote/local_variables.h: the variables of the frames of a process's threads, read while their stack is proven.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cpython/frame_variables.h"
#include "remote/stack_reader.h"

namespace plimsoll::remote {

// So many words a value may cost.
inline constexpr std::uint64_t kWordsPerValue = 1U << 14U;

// Looks along with a StackReader, which it must outlive.
class LocalVariables {
 public:
  // `layout` must outlive it.
  LocalVariables(const cpython::Layout& layout, const cpython::ValueLimits& limits)
      : layout_(layout), limits_(limits) {}

  // Before the first thread. An error if it is not known where this version keeps objects.
  Status begin(Address code_type, StackReader& reader) {
    const Result<cpython::ObjectFields> fields = cpython::object_fields(layout_.version);
    if (!fields.ok()) return fields.error();
    fields_ = fields.value();
    code_type_ = code_type;
    reader.look_along([this](const memory::PagedReader& memory, Address state,
                             std::span<const cpython::PyFrame> frames) { look(memory, state, frames); });
    return Ok{};
  }

  // What was read of the thread before is forgotten.
  void begin_thread() {
    found_.clear();
    look_ = Look::kNone;
  }
  // Whether they are to be read at the next look.
  enum class Wanted : std::uint8_t { kNo, kYes };
  // Likewise of the look before.
  void begin_look(Wanted wanted) {
    begin_thread();
    wanted_ = wanted;
  }

  // Of a frame of the last stack, by its place in it.
  [[nodiscard]] cpython::FrameVariables of(std::size_t frame) const {
    return frame < found_.size() ? found_[frame] : cpython::FrameVariables();
  }
  // Why there are none of the last stack; or "".
  [[nodiscard]] std::string problem() const {
    switch (look_) {
      case Look::kRead: return {};
      case Look::kFailed: return "no variables: they could not be read";
      case Look::kNone: break;
    }
    return "no variables: it runs on too fast for them to be read";
  }

 private:
  // What the last look came to.
  enum class Look : std::uint8_t { kNone, kRead, kFailed };

  void look(const memory::PagedReader& memory, Address state, std::span<const cpython::PyFrame> frames) {
    found_.clear();
    if (wanted_ == Wanted::kNo) return;
    if (!view_) {
      view_ = std::make_unique<View>(memory, layout_, fields_, kWordsPerValue);
      reader_ = std::make_unique<Reader>(*view_, code_type_, limits_);
    }
    const std::vector<Address> addresses = cpython::frame_addresses(memory, layout_, code_type_, state, frames);
    for (std::size_t i = 0; i < addresses.size(); ++i)
      found_.push_back(is_null(addresses[i]) ? cpython::FrameVariables() : reader_->read(addresses[i], frames[i].code));
    look_ = found_.size() == frames.size() ? Look::kRead : Look::kFailed;
  }

  using View = cpython::ObjectView<memory::PagedReader>;
  using Reader = cpython::VariablesReader<memory::PagedReader>;
  const cpython::Layout& layout_;
  const cpython::ValueLimits limits_;
  cpython::ObjectFields fields_;
  Address code_type_{};
  std::unique_ptr<View> view_;
  std::unique_ptr<Reader> reader_;
  std::vector<cpython::FrameVariables> found_;  // of the last stack, by frame
  Wanted wanted_ = Wanted::kYes;
  Look look_ = Look::kNone;
};

}  // namespace plimsoll::remote
