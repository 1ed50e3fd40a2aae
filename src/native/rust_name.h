// native/rust_name.h: names of Rust's functions, as they stand in symbol tables -> as their programmers wrote them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace plimsoll::native {

// Of both kinds: "_R..." (v0, of the standard library since 2025) and "_ZN...17h0123456789abcdefE". Without what tells
// crates of one name apart, and without the hash. None if it is neither, is damaged, would be longer than 4 KiB, or has
// what the stable language cannot say: constants of types other than integers, bool and char. The time is bounded,
// whatever the name. After the chapter "v0 Symbol Format" of the rustc book, and RFC 2603.
std::optional<std::string> rust_name(std::string_view mangled);

}  // namespace plimsoll::native
