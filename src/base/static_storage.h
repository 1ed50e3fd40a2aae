// base/static_storage.h: room in static memory for what is made at first use and never destroyed.
//
// For what hooks share, which others may call to the very end of the process: the compiler knows the address, so that
// the way of a call has one load less, and nothing waits for an initialisation.
#pragma once

namespace plimsoll {

// Room for one T. Whoever makes it (placement new at `&value`) knows whether it is made.
template <typename T>
union StaticStorage {
  constexpr StaticStorage() : nothing(0) {}
  ~StaticStorage() {}  // NOLINT(modernize-use-equals-default): that would be deleted
  char nothing;
  T value;
};

}  // namespace plimsoll
