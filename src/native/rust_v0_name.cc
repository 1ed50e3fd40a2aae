#include "native/rust_v0_name.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/hexadecimal.h"
#include "base/utf8.h"

namespace plimsoll::native {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }

// Punycode (RFC 3492), which says where among the ASCII characters of a text the others are. None if it is damaged.
std::optional<std::string> of_punycode(std::string_view ascii, std::string_view digits) {
  constexpr std::uint64_t kBase = 36, kLeast = 1, kMost = 26, kSkew = 38, kDamp = 700;
  constexpr std::size_t kLongest = 256;  // each character is moved for each one that comes before it
  if (ascii.size() + digits.size() > kLongest) return std::nullopt;
  std::vector<std::uint32_t> points(ascii.begin(), ascii.end());
  std::uint64_t point = 0x80, place = 0, bias = 72;
  for (bool is_first = true; !digits.empty(); is_first = false) {
    std::uint64_t delta = 0, weight = 1;
    for (std::uint64_t k = kBase;; k += kBase) {
      if (digits.empty() || weight > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
      const char c = digits[0];
      digits.remove_prefix(1);
      if (!is_lower(c) && !is_digit(c)) return std::nullopt;
      const auto digit = static_cast<std::uint64_t>(is_lower(c) ? c - 'a' : c - '0' + 26);
      delta += digit * weight;
      const std::uint64_t threshold = std::clamp(k > bias ? k - bias : 0, kLeast, kMost);
      if (digit < threshold) break;
      weight *= kBase - threshold;
    }
    const std::uint64_t count = points.size() + 1;
    place += delta;
    point += place / count;
    place %= count;
    if (point > 0x10ffff) return std::nullopt;
    points.insert(points.begin() + static_cast<std::ptrdiff_t>(place++), static_cast<std::uint32_t>(point));
    delta /= is_first ? kDamp : 2;
    delta += delta / count;
    bias = 0;
    for (; delta > (kBase - kLeast) * kMost / 2; bias += kBase) delta /= kBase - kLeast;
    bias += kBase * delta / (delta + kSkew);
  }
  std::string text;
  for (const std::uint32_t each : points) append_utf8(text, each);
  return text;
}

std::string_view basic_type(char tag) {
  constexpr std::array<std::string_view, 26> kTypes = {
      "i8",   "bool", "char", "f64", "str", "f32", "",    "u8", "isize", "usize", "",    "i32", "u32",
      "i128", "u128", "_",    "",    "",    "i16", "u16", "()", "...",   "",      "i64", "u64", "!"};
  return is_lower(tag) ? kTypes[static_cast<std::size_t>(tag - 'a')] : std::string_view{};
}

// Reads a name and writes down what it says. After an error there is nothing more to read, and nothing is written.
class V0Name {
 public:
  explicit V0Name(std::string_view text) : text_(text) {}

  std::optional<std::string> read() {
    path(Place::kValue);
    if (!is_failed_ && is_upper(peek())) quietly([&] { path(Place::kValue); });  // the crate that it was made for
    const bool is_whole = at_ == text_.size() || peek() == '.' || peek() == '$';
    if (is_failed_ || !is_whole || out_.empty()) return std::nullopt;
    return std::move(out_);
  }

 private:
  // Where generic arguments stand: f::<T> in an expression, Vec<T> in a type.
  enum class Place : std::uint8_t { kValue, kType };
  struct Identifier {
    std::string_view ascii, punycode;
    [[nodiscard]] bool is_empty() const { return ascii.empty() && punycode.empty(); }
  };
  // References let few bytes say very much, which takes as long even where nothing of it is written.
  static constexpr std::size_t kMostSteps = 10000, kMostDepth = 200;

  // One level deeper.
  class Step {
   public:
    explicit Step(V0Name& name) : name_(name) {
      if (++name.depth_ > kMostDepth || ++name.steps_ > kMostSteps) name.fail();
    }
    ~Step() { --name_.depth_; }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    V0Name& name_;
  };

  // ---- characters and numbers ----

  void fail() {
    is_failed_ = true;
    at_ = text_.size();
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() {
    if (at_ < text_.size()) return text_[at_++];
    fail();
    return '\0';
  }
  bool eat(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void write(std::string_view text) {
    if (is_quiet_ || is_failed_) return;
    if (out_.size() + text.size() > kMostRustName) return fail();
    out_ += text;
  }
  template <typename Work>
  void quietly(Work work) {
    const bool was_quiet = std::exchange(is_quiet_, true);
    work();
    is_quiet_ = was_quiet;
  }
  // What is repeated up to an E, of which there is at least the E.
  template <typename Work>
  std::size_t list(Work one) {
    std::size_t count = 0;
    for (; !is_failed_ && !eat('E'); ++count) {
      if (count > 0) write(", ");
      one();
    }
    return count;
  }

  std::uint64_t base_62() {
    if (eat('_')) return 0;
    std::uint64_t value = 0;
    while (!is_failed_ && !eat('_')) {
      const char c = next();
      const int digit = is_digit(c) ? c - '0' : is_lower(c) ? c - 'a' + 10 : is_upper(c) ? c - 'A' + 36 : -1;
      if (digit < 0 || value > (std::numeric_limits<std::uint64_t>::max() - 61) / 62) fail();
      value = value * 62 + static_cast<std::uint64_t>(std::max(digit, 0));
    }
    return value + 1;
  }
  std::uint64_t optional_base_62(char tag) { return eat(tag) ? base_62() + 1 : 0; }

  Identifier identifier() {
    const bool has_punycode = eat('u');
    std::size_t size = 0;
    if (!is_digit(peek())) fail();
    if (!eat('0'))
      while (is_digit(peek()) && size <= text_.size()) size = size * 10 + static_cast<std::size_t>(next() - '0');
    eat('_');
    if (size > text_.size() - at_) fail();
    if (is_failed_) return {};
    const std::string_view bytes = text_.substr(at_, size);
    at_ += size;
    if (!has_punycode) return {bytes, {}};
    const std::size_t end = bytes.rfind('_');
    if (end == std::string_view::npos) return {{}, bytes};
    return {bytes.substr(0, end), bytes.substr(end + 1)};
  }
  void write(const Identifier& name) {
    if (name.punycode.empty()) return write(name.ascii);
    if (const std::optional<std::string> text = of_punycode(name.ascii, name.punycode)) return write(*text);
    fail();
  }

  // What was said before, from that place on. (Where nothing is written, nothing needs to be read twice.)
  template <typename Work>
  void reference(Work read_again) {
    const std::size_t here = at_ - 1;
    const std::uint64_t target = base_62();
    if (target >= here) return fail();
    if (is_quiet_ || is_failed_) return;
    const std::size_t after = std::exchange(at_, target);
    read_again();
    if (!is_failed_) at_ = after;
  }

  // ---- paths ----

  void path(Place place) {
    const Step step(*this);
    switch (const char tag = next(); tag) {
      case 'C': optional_base_62('s'); return write(identifier());
      case 'N': return nested(place);
      case 'M':
      case 'X':
      case 'Y':
        if (tag != 'Y') {  // where the impl stands
          optional_base_62('s');
          quietly([&] { path(Place::kType); });
        }
        write("<");
        type();
        if (tag != 'M') {
          write(" as ");
          path(Place::kType);
        }
        return write(">");
      case 'I':
        path(place);
        write(place == Place::kValue ? "::<" : "<");
        list([&] { generic_argument(); });
        return write(">");
      case 'B': return reference([&] { path(place); });
      default: return fail();
    }
  }
  void nested(Place place) {
    const char space = next();
    path(place);
    const std::uint64_t number = optional_base_62('s');
    const Identifier name = identifier();
    if (is_lower(space)) {
      if (!name.is_empty()) write("::");
      return write(name);
    }
    if (!is_upper(space)) return fail();
    write("::{");
    write(space == 'C' ? "closure" : space == 'S' ? "shim" : std::string_view(&space, 1));
    if (!name.is_empty()) write(":");
    write(name);
    write("#" + std::to_string(number) + "}");
  }
  void generic_argument() {
    if (eat('L')) return lifetime(base_62());
    if (eat('K')) return constant();
    type();
  }

  // ---- lifetimes ----

  // By how many binders lie between it and its own.
  void lifetime(std::uint64_t index) {
    if (index == 0) return write("'_");
    if (index > lifetimes_) return fail();
    const std::uint64_t number = lifetimes_ - index;
    const char letter = static_cast<char>('a' + number);
    write("'");
    write(number < 26 ? std::string(1, letter) : "_" + std::to_string(number));
  }
  template <typename Work>
  void with_binder(Work work) {
    const std::uint64_t count = optional_base_62('G');
    if (count > kMostSteps) return fail();
    if (count > 0) write("for<");
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) write(", ");
      ++lifetimes_;
      lifetime(1);
    }
    if (count > 0) write("> ");
    steps_ += count;
    work();
    lifetimes_ -= count;
  }

  // ---- types ----

  void type() {
    const Step step(*this);
    const char tag = next();
    if (const std::string_view name = basic_type(tag); !name.empty()) return write(name);
    switch (tag) {
      case 'R':
      case 'Q':
        write("&");
        if (const std::uint64_t index = eat('L') ? base_62() : 0; index != 0) {
          lifetime(index);
          write(" ");
        }
        if (tag == 'Q') write("mut ");
        return type();
      case 'P':
      case 'O': write(tag == 'P' ? "*const " : "*mut "); return type();
      case 'A':
      case 'S':
        write("[");
        type();
        if (tag == 'A') {
          write("; ");
          constant();
        }
        return write("]");
      case 'T':
        write("(");
        if (list([&] { type(); }) == 1) write(",");
        return write(")");
      case 'F': return with_binder([&] { function(); });
      case 'D': return dynamic();
      case 'B': return reference([&] { type(); });
      default:
        if (is_failed_) return;
        --at_;
        return path(Place::kType);
    }
  }
  void function() {
    if (eat('U')) write("unsafe ");
    if (eat('K')) {
      std::string convention = eat('C') ? "C" : std::string(identifier().ascii);
      std::replace(convention.begin(), convention.end(), '_', '-');
      write("extern \"" + convention + "\" ");
    }
    write("fn(");
    list([&] { type(); });
    write(")");
    if (eat('u')) return;
    write(" -> ");
    type();
  }
  void dynamic() {
    write("dyn ");
    with_binder([&] {
      for (bool is_first = true; !is_failed_ && !eat('E'); is_first = false) {
        if (!is_first) write(" + ");
        bound();
      }
    });
    if (!eat('L')) return fail();
    if (const std::uint64_t index = base_62(); index != 0) {
      write(" + ");
      lifetime(index);
    }
  }
  // A trait, with its associated types between the same brackets as its arguments.
  void bound() {
    bool has_arguments = open_path();
    while (eat('p')) {
      write(std::exchange(has_arguments, true) ? ", " : "<");
      write(identifier());
      write(" = ");
      type();
    }
    if (has_arguments) write(">");
  }
  // A path without the bracket that closes its arguments; whether it has any.
  bool open_path() {
    const Step step(*this);
    bool has_arguments = false;
    if (eat('B')) {
      reference([&] { has_arguments = open_path(); });
    } else if (eat('I')) {
      path(Place::kType);
      write("<");
      list([&] { generic_argument(); });
      has_arguments = true;
    } else {
      path(Place::kType);
    }
    return has_arguments;
  }

  // ---- constants ----

  void constant() {
    const Step step(*this);
    constexpr std::string_view kSigned = "aslxni", kUnsigned = "htmyoj";
    const char tag = next();
    if (tag == 'p') return write("_");
    if (tag == 'B') return reference([&] { constant(); });
    const bool is_signed = kSigned.find(tag) != std::string_view::npos;
    if (!is_signed && tag != 'b' && tag != 'c' && kUnsigned.find(tag) == std::string_view::npos) return fail();
    if (is_signed && eat('n')) write("-");
    const std::size_t start = at_;
    while (!is_failed_ && peek() != '_') next();
    const std::string_view digits = text_.substr(start, at_ - start);
    if (!eat('_') || digits.empty() || digits.find_first_not_of("0123456789abcdef") != std::string_view::npos)
      return fail();
    const std::string number = "0x" + std::string(digits);
    const std::optional<std::uint64_t> value = from_hexadecimal(number);
    if (!value) return write(number);  // of 128 bits
    if (tag == 'b') return write(*value != 0 ? "true" : "false");
    if (tag != 'c') return write(std::to_string(*value));
    if (*value < ' ' || *value > 0x10ffff) return write("'\\u{" + std::string(digits) + "}'");
    std::string character;
    append_utf8(character, static_cast<std::uint32_t>(*value));
    write("'" + character + "'");
  }

  std::string_view text_;
  std::string out_;
  std::size_t at_ = 0, depth_ = 0, steps_ = 0;
  std::uint64_t lifetimes_ = 0;  // that binders around have introduced
  bool is_quiet_ = false, is_failed_ = false;
};

}  // namespace

std::optional<std::string> rust_v0_name(std::string_view text) { return V0Name(text).read(); }

}  // namespace plimsoll::native
