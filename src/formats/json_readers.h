// formats/json_readers.h: the readers of formats that are JSON, or JSON in a container.
#pragma once

#include <vector>

#include "formats/input.h"

namespace plimsoll::formats {

std::vector<Reader> json_readers();

}  // namespace plimsoll::formats
