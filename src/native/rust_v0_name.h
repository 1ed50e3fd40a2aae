// native/rust_v0_name.h: names of Rust's functions in its own scheme, version 0, as their programmers wrote them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::native {

inline constexpr std::size_t kMostRustName = 4096;  // bytes

// What stands behind "_R" (see rust_name.h, which is for all of Rust's names).
std::optional<std::string> rust_v0_name(std::string_view text);

}  // namespace plimsoll::native
