#include "formats/collapsed/writer.h"
namespace plimsoll::formats::collapsed {
std::string write(const profile::Profile&) { return {}; }
}
