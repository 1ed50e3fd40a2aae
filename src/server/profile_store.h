// server/profile_store.h: a directory of profiles, and what clients of vmprof's send to it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace plimsoll::server {

// A profile's file.
struct StoredProfile {
  std::string name;  // in the directory
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;  // CLOCK_REALTIME

  friend bool operator==(const StoredProfile&, const StoredProfile&) = default;
};

// What a client sends, until it is whole.
struct Arriving {
  UniqueFd file;
  std::string path;  // where it is meanwhile
};

// Looks at the directory anew each time. What is not a regular file with the ending of a profile, or is hidden, is not
// there: a link leads elsewhere. For one thread.
class ProfileStore {
 public:
  // What can be sent.
  enum class Kind : std::uint8_t { kProfile, kJitlog };

  explicit ProfileStore(std::string directory) : directory_(std::move(directory)) {}

  // The latest first; at most kMostListed.
  static constexpr std::size_t kMostListed = 1000;
  [[nodiscard]] std::vector<StoredProfile> list() const;
  // The profile of a name; none if there is none.
  [[nodiscard]] std::optional<StoredProfile> find(std::string_view name) const;
  [[nodiscard]] std::string path_of(const StoredProfile& profile) const { return directory_ + "/" + profile.name; }

  // A new entry, for a program of this command line, and its number. Of too many that were begun and never ended the
  // oldest ends. Error kSystem without randomness.
  Result<std::string> begin(std::string_view argv);
  [[nodiscard]] bool is_open(std::string_view entry) const { return entry_of(entry) != nullptr; }
  // Room for what an open entry is sent. Errors as of begin_new_file.
  [[nodiscard]] Result<Arriving> receive() const;
  // Gives it its name. Errors: kBadInput if it should be a profile, and is none; kSystem.
  Status keep(std::string_view entry, Kind kind, const std::string& path);
  // Nothing more is taken for it.
  void freeze(std::string_view entry);

  // 24 random bytes in hexadecimal, which are kept in the directory, for its owner only: who knows them may see what is
  // there. Errors: kSystem, kPermission.
  [[nodiscard]] Result<std::string> secret() const;

 private:
  // What is sent by one client.
  struct Entry {
    std::string number;
    std::string name;  // of its files, without their endings
  };

  [[nodiscard]] const Entry* entry_of(std::string_view number) const;

  std::string directory_;
  std::deque<Entry> open_;  // the oldest first
};

}  // namespace plimsoll::server
