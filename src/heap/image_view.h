// heap/image_view.h: how objects look in a copy of a process's memory. Whatever the copy says, nothing is read outside
// of it, and the work is bounded: whoever reads rows of words pays for them out of a budget.
#pragma once

#include "cpython/object_view.h"
#include "memory/image.h"

namespace plimsoll::heap {

using cpython::KeyTable;

// A copy of memory with what is known of the Python in it. The budget: some times the words that there are, as a heap
// has each reference at one place only.
class ImageView : public cpython::ObjectView<memory::Image> {
 public:
  ImageView(const memory::Image& image, const cpython::Layout& layout, const cpython::ObjectFields& fields)
      : ObjectView(image, layout, fields, image.copied_bytes() + kLeastBudget) {}

  [[nodiscard]] const memory::Image& image() const { return memory(); }

 private:
  static constexpr std::uint64_t kLeastBudget = 1U << 20U;
};

}  // namespace plimsoll::heap
