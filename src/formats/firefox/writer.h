// formats/firefox/writer.h
#pragma once

#include <string>

#include "profile/profile.h"

namespace plimsoll::formats::firefox {

std::string write(const profile::Profile& profile);

}  // namespace plimsoll::formats::firefox
