// formats/foreign_readers.h: the foreign formats that can be read.
#pragma once

#include <vector>

#include "formats/input.h"

namespace plimsoll::formats {

// In the order in which they are asked; the last one takes any text that ends with a number.
std::vector<Reader> foreign_readers();

}  // namespace plimsoll::formats
