// python/tag_binding.h: where the tags of this interpreter's threads are.
#pragma once

#include "base/result.h"
#include "capture/tags.h"
#include "cpython/layout.h"

namespace plimsoll::python {

// How to find tags with this layout, proven: a tag set that is entered into a context of ours, alone and among many
// variables, must be found where CPython keeps it. Otherwise a source without a registry: there will be no tags, and
// all else goes on. Needs an attached thread state; no exception may be set.
capture::TagSource find_tag_source(const cpython::Layout& layout);

}  // namespace plimsoll::python
