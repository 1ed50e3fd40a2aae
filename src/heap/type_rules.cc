#include "heap/type_rules.h"

#include <charconv>

#include "heap/class_pattern.h"
#include "heap/words.h"

namespace plimsoll::heap {
namespace {

template <typename T>
void take(std::optional<T>& into, const std::optional<T>& from) {
  if (!into) into = from;
}

// The words of one rule, one after another.
class RuleWords {
 public:
  explicit RuleWords(std::string_view text) {
    split(text, " \t", [&](std::string_view word) {
      words_.push_back(word);
      return true;
    });
  }
  bool read_into(TypeRule& rule) {
    const std::string_view what = next();
    if (what == "exactly") {
      rule.reach = Reach::kExactly;
    } else if (what == "label") {
      rule.facets.label = next();
      is_good_ = is_good_ && !rule.facets.label->empty();
    } else if (what == "native") {
      rule.facets.native = native();
    } else {
      return false;
    }
    return is_good_ && at_ == words_.size();
  }

 private:
  std::string_view next() { return at_ < words_.size() ? words_[at_++] : std::string_view{}; }
  std::uint64_t number() {
    constexpr std::uint64_t kMost = 1U << 31U;
    const std::string_view word = next();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value > kMost) is_good_ = false;
    return value;
  }
  NativeMemory native() {
    NativeMemory memory;
    memory.pointer = number();
    memory.length = number();
    while (is_good_ && at_ < words_.size()) {
      const std::string_view what = next();
      if (what == "unit")
        memory.unit = number();
      else if (what == "owned")
        memory.owned = number();
      else
        is_good_ = false;
    }
    return memory;
  }

  std::vector<std::string_view> words_;
  std::size_t at_ = 0;
  bool is_good_ = true;
};

}  // namespace

std::vector<TypeRule> built_in_rules() {
  // Offsets into the objects of C structures that have not changed from 3.9 to 3.15. tests/python/test_heap_rules.py
  // holds each against buffers of known size.
  return {
      // mmap_object: data, size.
      {"mmap.mmap", Reach::kInstances, {NativeMemory{0, 8}, {}, {}}},
      // CDataObject: b_ptr, b_needsfree, b_base, b_size.
      {"_ctypes._CData", Reach::kInstances, {NativeMemory{0, 24, 1, 8}, {}, {}}},
      // stringio: buf, pos, string_size, buf_size in characters of 4 bytes.
      {"_io.StringIO", Reach::kInstances, {NativeMemory{0, 24, 4}, {}, {}}},
  };
}

Result<std::vector<TypeRule>> parse_rules(std::string_view words) {
  std::vector<TypeRule> rules;
  const bool is_good = split(words, ";\n", [&](std::string_view line) {
    if (line[0] == '#') return true;
    TypeRule& rule = rules.emplace_back();
    const std::size_t colon = std::min(line.find(':'), line.size());
    rule.classes = trimmed(line.substr(0, colon));
    bool says_something = false;
    const bool is_read = colon != line.size() && split(line.substr(colon + 1), ",", [&](std::string_view piece) {
                           says_something = true;
                           return RuleWords(piece).read_into(rule);
                         });
    if (is_read && says_something && !rule.classes.empty()) return true;
    rule.classes = line;  // for the message
    return false;
  });
  if (is_good) return rules;
  return Error{
      ErrorKind::kUsage,
      "a rule is CLASSES: label ATTRIBUTE, or CLASSES: native POINTER LENGTH [unit BYTES] [owned OFFSET], with "
      "\", exactly\" behind it if subclasses are not meant; not \"" +
          rules.back().classes + "\""};
}

Facets facets_of(std::span<const std::string> names, std::span<const TypeRule> rules) {
  Facets found;
  for (std::size_t base = 0; base < names.size(); ++base)
    for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
      if (rule->reach == Reach::kExactly && base != 0) continue;
      if (!matches_pattern(names[base], rule->classes)) continue;
      take(found.native, rule->facets.native);
      take(found.label, rule->facets.label);
      take(found.asked, rule->facets.asked);
    }
  return found;
}

}  // namespace plimsoll::heap
