#include "server/entrance.h"

#include <algorithm>

namespace plimsoll::server {
namespace {

// Without a difference in time that would tell how much of a guess was right.
bool is_secret(std::string_view guess, std::string_view secret) {
  unsigned different = guess.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(guess.size(), secret.size()); ++i)
    different |= static_cast<unsigned>(static_cast<unsigned char>(guess[i]) ^ static_cast<unsigned char>(secret[i]));
  return different == 0;
}

std::string_view without_query(std::string_view target) { return target.substr(0, target.find('?')); }

bool is_ours(std::string_view host, const std::vector<std::string>& authorities) {
  return authorities.empty() || std::find(authorities.begin(), authorities.end(), host) != authorities.end();
}

}  // namespace

std::optional<std::string_view> Entrance::path_below(std::string_view target, std::string_view host) const {
  const std::string_view path = without_query(target);
  const std::string_view guess = path.substr(0, std::min(path.size(), secret.size() + 1));
  if (!is_ours(host, authorities) || !is_secret(guess, "/" + secret)) return std::nullopt;
  return path.substr(guess.size());
}

bool Entrance::is_ticket(std::string_view target, std::string_view host) const {
  return !ticket.empty() && is_ours(host, authorities) && is_secret(without_query(target), "/" + ticket);
}

}  // namespace plimsoll::server
