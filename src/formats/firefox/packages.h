// formats/firefox/packages.h: which package a source file belongs to.
#pragma once

#include <string>
#include <string_view>

namespace plimsoll::formats::firefox {

// A name for the bag of code that a Python file comes from: an installed package by its directory under site-packages,
// "Python standard library", or else the directory of the file. A guess from the path, good for grouping only.
// A text like "<string>" is its own package.
std::string package_of(std::string_view file);

}  // namespace plimsoll::formats::firefox
